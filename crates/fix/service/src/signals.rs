//! Signals: what asks for the end, and what must not end a process before it has undone its changes.

use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::{flag, low_level};
use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What SIGHUP means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HangUp {
    /// The terminal was closed: the end, unless the caller ignores it, as nohup(1) does.
    Ends,
    /// Something else: a process in the background has no terminal.
    Other,
}

/// A stream that becomes readable when SIGTERM, SIGINT or SIGQUIT asks for the end, and its other end, for those who ask
/// otherwise.
pub fn end_requests(hang_up: HangUp) -> io::Result<(UnixStream, UnixStream)> {
    let (stop, ask) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGQUIT].into_iter().chain(ends(hang_up)) {
        low_level::pipe::register(signal, ask.try_clone()?)?;
    }
    Ok((stop, ask))
}

fn ends(hang_up: HangUp) -> Option<i32> {
    (hang_up == HangUp::Ends && !is_ignored(SIGHUP)).then_some(SIGHUP)
}

/// Remembers the signals that ask for the end, from when it is made until the process ends; they do not end it.
#[derive(Debug)]
pub struct Interrupted {
    by: Arc<AtomicUsize>,
}

impl Interrupted {
    /// Begins. The stream becomes readable with each such signal.
    pub fn watch() -> io::Result<(Interrupted, UnixStream)> {
        let by = Arc::new(AtomicUsize::new(0));
        let (stop, ask) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM].into_iter().chain(ends(HangUp::Ends)) {
            flag::register_usize(signal, Arc::clone(&by), usize::try_from(signal).unwrap_or(1))?;
            low_level::pipe::register(signal, ask.try_clone()?)?;
        }
        Ok((Interrupted { by }, stop))
    }

    /// The name of the last signal that came.
    pub fn by(&self) -> Option<&'static str> {
        match self.by.load(Ordering::SeqCst) {
            0 => None,
            number => Some(i32::try_from(number).ok().and_then(low_level::signal_name).unwrap_or("a signal")),
        }
    }
}

/// Has signals that would end the process without undoing anything do nothing, and reports each: scripts send them to pppd(8),
/// where SIGUSR1 and SIGUSR2 have a meaning.
pub fn report_others(report: impl Fn(&str) + Clone + Send + 'static) -> io::Result<()> {
    for (signal, name) in [(SIGUSR1, "SIGUSR1"), (SIGUSR2, "SIGUSR2"), (SIGALRM, "SIGALRM")] {
        let (mut came, sender) = UnixStream::pair()?;
        let report = report.clone();
        let wait = move || {
            // As many as came while one was reported are reported as one.
            while matches!(came.read(&mut [0; 64]), Ok(count) if count > 0) {
                report(name);
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
        low_level::pipe::register(signal, sender)?;
    }
    Ok(())
}

/// Whether the process that started this one had it ignore a signal (proc_pid_status(5)).
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal - 1)) != 0
}
