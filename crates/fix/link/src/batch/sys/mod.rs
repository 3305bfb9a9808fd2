//! System calls of the data path `batch` that no safe function covers.
#![allow(unsafe_code)]

mod mapping;
pub mod packet;
pub mod xdp;

pub use mapping::Mapping;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Types whose octets may be handed to the kernel and taken from it.
///
/// # Safety
///
/// Integers only, of which every value is allowed, without padding.
pub unsafe trait Plain: Copy + Default {}

// SAFETY: an integer.
unsafe impl Plain for u32 {}

/// setsockopt(2).
pub fn set<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` octets of a whole T, which has no padding.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    checked(result.into()).map(drop)
}

/// getsockopt(2) of what the kernel gives whole.
pub fn get<T: Plain>(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` octets of a T, all of whose values are allowed.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    checked(result.into())?;
    Ok(value)
}

/// Lets timers of the calling thread end when they should, and not 50 µs later (prctl(2), `PR_SET_TIMERSLACK`).
pub fn exact_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one number.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// The answer of a system call, `-1` being an error.
fn checked(answer: libc::c_long) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}
