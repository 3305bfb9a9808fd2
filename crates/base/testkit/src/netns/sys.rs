//! A system call that no safe function covers.
#![allow(unsafe_code)]

use rustix::io::Result;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives the calling thread a mount namespace of its own.
pub fn leave_mount_namespace() -> Result<()> {
    // SAFETY: what makes unshare(2) unsafe is CLONE_FILES, after which the file descriptors of other threads are
    // none of this one; it is not asked for.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
}
