//! syslog(2).

#![allow(unsafe_code)]

use std::io;

/// `SYSLOG_ACTION_READ_ALL`, `SYSLOG_ACTION_SIZE_BUFFER` (`include/linux/syslog.h`).
const READ_ALL: libc::c_int = 3;
const SIZE_BUFFER: libc::c_int = 10;

/// The whole log, which stays as it is.
pub(super) fn whole_log() -> io::Result<Vec<u8>> {
    // SAFETY: this action looks at neither the pointer nor the length.
    let size = unsafe { libc::klogctl(SIZE_BUFFER, std::ptr::null_mut(), 0) };
    let size = usize::try_from(size).map_err(|_| io::Error::last_os_error())?;
    let mut log = vec![0u8; size.min(64 << 20)];
    let length = libc::c_int::try_from(log.len()).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` octets to the buffer, which has that many.
    let written = unsafe { libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), length) };
    log.truncate(usize::try_from(written).map_err(|_| io::Error::last_os_error())?);
    Ok(log)
}
