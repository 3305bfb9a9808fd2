//! Where no interface can be sampled: captures are read.

use crate::output::Lacks;
use capture::Capture;
use explain::report::LiveSample;
use nic::{Profile, Setup};
use std::time::Duration;

/// Of a sample that is not taken.
#[derive(Default)]
pub struct Limits {
    pub duration: Duration,
    pub frames: u64,
}

/// A device that nobody can look at.
pub struct Present {
    pub profile: Profile,
    pub setup: Setup,
}

pub const fn present(_: &str) -> Option<Present> {
    None
}

pub const fn nor(_: &str) -> &'static str {
    ""
}

/// Error: this is no Linux.
pub fn take(name: &str, _: &Limits) -> anyhow::Result<(Capture, LiveSample)> {
    let name = format::quoted(name);
    Err(Lacks(format!(
        "an interface can be sampled on Linux only; here record a file and explain that: tcpdump -Q in -i {name} -c 100000 -s 256 -w FILE"
    ))
    .into())
}
