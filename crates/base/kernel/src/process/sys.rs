//! System calls of processes that no safe function covers.

#![allow(unsafe_code)]

use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// `SYSLOG_ACTION_READ_ALL`, `SYSLOG_ACTION_SIZE_BUFFER` (`include/linux/syslog.h`).
const READ_ALL: libc::c_int = 3;
const SIZE_BUFFER: libc::c_int = 10;

/// The kernel's log (syslog(2)), which stays as it is. Error: `EPERM`: only root may read it.
pub fn kernel_log() -> io::Result<Vec<u8>> {
    // SAFETY: this action looks at neither the pointer nor the length.
    let size = unsafe { libc::klogctl(SIZE_BUFFER, std::ptr::null_mut(), 0) };
    let size = usize::try_from(size).map_err(|_| io::Error::last_os_error())?;
    let mut log = vec![0u8; size.min(64 << 20)];
    let length = libc::c_int::try_from(log.len()).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes to the buffer, which has that many.
    let written = unsafe { libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), length) };
    log.truncate(usize::try_from(written).map_err(|_| io::Error::last_os_error())?);
    Ok(log)
}

/// Gives the calling thread a root, a working directory and a umask of its own, as setns(2) wants it before a thread enters a
/// mount namespace.
pub fn unshare_file_system() -> io::Result<()> {
    unshare(UnshareFlags::FS)
}

/// Gives the calling thread a mount namespace of its own. Error: `EPERM` without CAP_SYS_ADMIN.
pub fn unshare_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)
}

/// Gives the calling thread an empty network namespace of its own. Error: `EPERM` without CAP_SYS_ADMIN.
pub(crate) fn unshare_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

fn unshare(what: UnshareFlags) -> io::Result<()> {
    // SAFETY: what makes unshare(2) unsafe is CLONE_FILES, after which the file descriptors of other threads are none of this one;
    // no caller asks for it.
    Ok(unsafe { unshare_unsafe(what) }?)
}

/// Keeps the descriptors that this process was started with, but for the standard streams, from the programs that it starts: a daemon
/// or a hook script would hold a caller's pipe or lock for as long as it runs. Does nothing where `/proc` is missing.
pub fn close_inherited_on_exec() {
    let own = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = own.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::c_int>().ok());
    for number in numbers.filter(|number| *number > 2) {
        // SAFETY: F_SETFD takes a number and changes no memory; of a number that is no descriptor it is an error.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Has all threads allocate from one heap. The C library of GNU gives each thread a heap of 64 MiB of address space, which a limit
/// on that (`RLIMIT_AS`) counts in full.
pub fn share_heap() {
    // SAFETY: mallopt takes two numbers; threads may run already.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1)
    };
}

/// Gives the system the memory that is free in the heaps of all threads. The C library of GNU does so by itself only behind the last bytes
/// of a heap that are in use. No thread allocates meanwhile.
pub fn trim_heap() {
    // SAFETY: malloc_trim takes a number; threads may run.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// The sockets that a service manager has made for this process (sd_listen_fds(3)), which are then its own; none where it has made none.
/// To be called once: a second call gives none.
pub fn inherited_sockets() -> Vec<OwnedFd> {
    /// The first of them (`SD_LISTEN_FDS_START`).
    const START: libc::c_int = 3;
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<libc::c_int>().ok());
    let is_own = number("LISTEN_PID").and_then(|pid| u32::try_from(pid).ok()) == Some(std::process::id());
    if !is_own || TAKEN.swap(true, Ordering::AcqRel) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).clamp(0, 64);
    let open = (START..START + count).filter(|number| {
        // SAFETY: F_GETFD takes a number and changes no memory; of a number that is no descriptor it is an error.
        let flags = unsafe { libc::fcntl(*number, libc::F_GETFD) };
        flags >= 0
    });
    // SAFETY: it is open, and by the manager's protocol no other part of this process has it; no second call gets here.
    open.map(|number| unsafe { OwnedFd::from_raw_fd(number) }).collect()
}
