//! System calls that no safe function covers. What is built on them has no `unsafe`.

pub mod bpf;
pub mod message;
pub mod socket;
pub mod tun;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU32;

/// Memory shared with the kernel. Every access checks its bounds.
pub struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: the memory belongs to nobody else in this process and is not bound to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// What a socket shares at `offset`.
    pub fn shared(fd: BorrowedFd<'_>, length: usize, offset: u64) -> io::Result<Mapping> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: no address is asked for, so no other mapping is replaced.
        let start = unsafe {
            mmap(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags, fd, offset)
        }?;
        Ok(Mapping { start: start.cast(), length })
    }

    /// Memory of this process.
    pub fn anonymous(length: usize) -> io::Result<Mapping> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: as above.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags)
        }?;
        Ok(Mapping { start: start.cast(), length })
    }

    pub fn address(&self) -> u64 {
        self.start as u64
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// The word at `offset`, which both sides change.
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset < self.length && self.length - offset >= 4);
        // SAFETY: four aligned octets of the mapping, which lives as long as `self`; all words are atomic here.
        unsafe { AtomicU32::from_ptr(self.start.add(offset).cast()) }
    }

    /// Two octets in this machine's order.
    pub fn half(&self, offset: usize) -> u16 {
        assert!(offset.is_multiple_of(2) && offset < self.length && self.length - offset >= 2);
        // SAFETY: two aligned octets of the mapping.
        unsafe { self.start.add(offset).cast::<u16>().read_volatile() }
    }

    /// Octets that the kernel has handed over by a word read before, and does not change until another word is written.
    pub fn octets(&self, offset: usize, length: usize) -> &[u8] {
        assert!(offset <= self.length && length <= self.length - offset);
        // SAFETY: octets of the mapping, which the kernel leaves alone (see above).
        unsafe { std::slice::from_raw_parts(self.start.add(offset), length) }
    }

    /// The same, to be written.
    pub fn octets_mut(&mut self, offset: usize, length: usize) -> &mut [u8] {
        assert!(offset <= self.length && length <= self.length - offset);
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and no reference outlives `self`.
        let _ = unsafe { munmap(self.start.cast::<c_void>(), self.length) };
    }
}

/// Nanoseconds of user and system time of this thread.
pub fn usage() -> (f64, f64) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes a whole `rusage`; zeroes, which are one too, stay where it fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let nanoseconds = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
}

/// Gives the calling thread a network namespace of its own.
pub fn unshare_network() -> rustix::io::Result<()> {
    // SAFETY: only CLONE_FILES is unsafe, and it is not asked for.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
}

/// The answer of a system call, `-1` being an error.
fn checked(answer: libc::c_long) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}
