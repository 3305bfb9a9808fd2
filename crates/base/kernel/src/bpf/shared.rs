//! The memory of a map that this process and programs change at the same time.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;

/// The values of a map of `BPF_MAP_TYPE_ARRAY` with `BPF_F_MMAPABLE` (Linux 5.5), as words, one behind the other. They stay when the map is
/// closed.
pub struct SharedWords {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory belongs to nobody else in this process and is not bound to a thread.
unsafe impl Send for SharedWords {}
// SAFETY: nothing but atomic words is ever made of it.
unsafe impl Sync for SharedWords {}

impl fmt::Debug for SharedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedWords({})", self.words)
    }
}

impl SharedWords {
    /// Of a map with so many words in all its values.
    ///
    /// # Errors
    ///
    /// mmap(2) refuses: the map has fewer, or other flags.
    pub fn of(map: BorrowedFd<'_>, words: usize) -> io::Result<SharedWords> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let length = words * size_of::<AtomicU64>();
        // SAFETY: no address is requested, so no other mapping is replaced.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(SharedWords { start, words })
    }

    /// All of them.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped, at an address of a page, as long as `self` lives, and nobody in this process has them in
        // another form; programs change them as whole words, too.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and no reference outlives `self`.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
    }
}
