//! The end of a command that stays, asked for by a signal; and what it prints when nobody reads.

use crate::steer_command::interrupted::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::os::unix::net::UnixStream;

/// What a terminal that is gone answers (errno(3)).
const EIO: i32 = 5;

/// A stream that becomes readable when a signal asks for the end, and its other end.
///
/// # Errors
///
/// There are no more descriptors.
pub fn by_signals() -> io::Result<(UnixStream, UnixStream)> {
    let ends = by_signals_but_hang_up()?;
    // nohup(1) wants a process to outlive its terminal.
    if !is_ignored(SIGHUP) {
        signal_hook::low_level::pipe::register(SIGHUP, ends.1.try_clone()?)?;
    }
    Ok(ends)
}

/// The same for a process in the background, which has no terminal that could hang up: SIGHUP means something else to it.
///
/// # Errors
///
/// As [`by_signals`].
pub fn by_signals_but_hang_up() -> io::Result<(UnixStream, UnixStream)> {
    let (stop, ask) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, ask.try_clone()?)?;
    }
    Ok((stop, ask))
}

/// That nobody reads what it prints is no reason to end, nor to fail with the terminal.
///
/// # Errors
///
/// Other ones.
pub fn unread(printed: io::Result<()>) -> io::Result<()> {
    printed.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ if error.raw_os_error() == Some(EIO) => Ok(()),
        _ => Err(error),
    })
}
