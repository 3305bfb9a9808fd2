//! Processes that end.

use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use std::thread;
use std::time::{Duration, Instant};

/// How long the kernel may take to take a process apart.
pub const DYING: Duration = Duration::from_secs(2);

/// The kernel takes a killed process apart, and its interface with it, after whoever waits for it knows of its end: waits
/// until no interface has the name. One of somebody else keeps the name; then it is waited for in vain.
pub fn wait_until_removed(name: &str) {
    let until = Instant::now() + DYING;
    let Ok(any) = socket(AddressFamily::INET, SocketType::DGRAM, None) else { return };
    while netdevice::name_to_index(&any, name).is_ok() && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
}
