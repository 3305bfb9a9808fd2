//! What nobody can guess.

use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Fills the bytes in with getrandom(2), which waits until the kernel has been seeded once, long before there are users.
///
/// # Errors
///
/// A kernel without the call (before Linux 3.17), or a sandbox that refuses it.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let filled = retry_on_intr(|| getrandom(&mut *left, GetRandomFlags::empty()))?;
        left = left.get_mut(filled..).unwrap_or_default();
    }
    Ok(())
}
