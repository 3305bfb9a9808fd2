//! `ethtool -S`: the driver's counters.

use crate::live::bundle::{Output, printable};
use kernel::ethtool::Ioctl;
use std::fmt::Write as _;

/// Reads the counters of the interface `name`.
pub(super) fn read(ioctl: &mut Ioctl, name: &[u8]) -> Output {
    let mut text = String::from("NIC statistics:\n");
    for (name, value) in ioctl.statistics(name)? {
        let _ = writeln!(text, "     {}: {value}", printable(&name));
    }
    Ok(text)
}
