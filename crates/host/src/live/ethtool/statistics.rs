//! `ethtool -S`: the driver's counters.

use super::ioctl::Ioctl;
use crate::live::bundle::{Output, Unread};
use std::fmt::Write as _;

/// Reads the counters of the interface `name`.
pub(super) fn read(ioctl: &mut Ioctl, name: &[u8]) -> Output {
    let statistics = ioctl.statistics(name)?;
    if statistics.is_empty() {
        return Err(Unread("no stats available".to_owned()));
    }
    let mut text = String::from("NIC statistics:\n");
    for (name, value) in statistics {
        let _ = writeln!(text, "     {name}: {value}");
    }
    Ok(text)
}
