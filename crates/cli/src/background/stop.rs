//! The end of a command that stays, asked for by a signal; and what it prints when nobody reads.

use crate::output::complain;
use crate::steer_command::interrupted::is_ignored;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::thread;

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
    for signal in [SIGTERM, SIGINT, SIGQUIT] {
        signal_hook::low_level::pipe::register(signal, ask.try_clone()?)?;
    }
    Ok((stop, ask))
}

/// Has signals that would end the process without putting anything back end nothing, and each told: scripts send them to
/// pppd(8), where SIGUSR1 and SIGUSR2 have a meaning.
///
/// # Errors
///
/// There are no more descriptors or threads.
pub fn note_others() -> io::Result<()> {
    for (signal, name) in [(SIGUSR1, "SIGUSR1"), (SIGUSR2, "SIGUSR2"), (SIGALRM, "SIGALRM")] {
        let (mut came, ring) = UnixStream::pair()?;
        let tell = move || {
            // As many as came while one was told are told as one.
            while matches!(came.read(&mut [0; 64]), Ok(count) if count > 0) {
                complain(&format!("{name} changes nothing here; SIGTERM ends the session"));
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(tell)?;
        signal_hook::low_level::pipe::register(signal, ring)?;
    }
    Ok(())
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
