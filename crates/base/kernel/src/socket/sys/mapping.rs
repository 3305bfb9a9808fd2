//! Memory shared with the kernel.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Memory shared with the kernel. Every access checks its bounds, and finds nothing where they are exceeded.
pub struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: the memory belongs to nobody else in this process and is not bound to a thread.
unsafe impl Send for Mapping {}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.length)
    }
}

impl Mapping {
    /// What a socket shares at `offset`.
    pub fn shared(socket: BorrowedFd<'_>, length: usize, offset: u64) -> io::Result<Mapping> {
        Mapping::of(length, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset)
    }

    /// Memory of this process, to be shared.
    pub fn anonymous(length: usize) -> io::Result<Mapping> {
        Mapping::of(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, 0)
    }

    fn of(length: usize, flags: libc::c_int, descriptor: libc::c_int, offset: u64) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: no address is requested, so no other mapping is replaced.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, flags, descriptor, offset as libc::off_t)
        };
        if start == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Mapping { start: start.cast(), length })
        }
    }

    /// Where it starts, as the kernel wants to know it.
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// Bytes.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// The word at `offset`, which both sides change; `None` beyond the end, or where it is not aligned.
    #[inline]
    pub fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let fits = offset.is_multiple_of(4) && self.length.checked_sub(4).is_some_and(|last| offset <= last);
        // SAFETY: four aligned bytes of the mapping, which lives as long as `self`; words that both sides change are
        // accessed in no other way.
        fits.then(|| unsafe { AtomicU32::from_ptr(self.start.add(offset).cast()) })
    }

    /// The same of eight bytes.
    #[inline]
    pub fn long(&self, offset: usize) -> Option<&AtomicU64> {
        let fits = offset.is_multiple_of(8) && self.length.checked_sub(8).is_some_and(|last| offset <= last);
        // SAFETY: eight aligned bytes of the mapping (see above).
        fits.then(|| unsafe { AtomicU64::from_ptr(self.start.add(offset).cast()) })
    }

    /// Bytes that the kernel has handed over by a word read before, and does not change until another word is written;
    /// none where there are not so many.
    #[inline]
    pub fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        if !self.has(offset, length) {
            return &[];
        }
        // SAFETY: bytes of the mapping, which the kernel leaves alone (see above).
        unsafe { std::slice::from_raw_parts(self.start.add(offset), length) }
    }

    /// The same, to be written.
    #[inline]
    pub fn bytes_mut(&mut self, offset: usize, length: usize) -> &mut [u8] {
        if !self.has(offset, length) {
            return &mut [];
        }
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), length) }
    }

    fn has(&self, offset: usize, length: usize) -> bool {
        offset <= self.length && length <= self.length - offset
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and no reference outlives `self`.
        let _ = unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_end_is_nothing() {
        let mut mapping = Mapping::anonymous(4096).expect("memory");
        assert_eq!((mapping.bytes(4090, 6).len(), mapping.bytes(4090, 7).len()), (6, 0));
        assert_eq!((mapping.bytes_mut(0, 4096).len(), mapping.bytes_mut(usize::MAX, 2).len()), (4096, 0));
        assert!(mapping.long(4088).is_some() && mapping.long(4092).is_none() && mapping.long(4096).is_none());
        assert!(mapping.word(4092).is_some() && mapping.word(4096).is_none() && mapping.word(2).is_none());
    }
}
