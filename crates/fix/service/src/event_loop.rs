//! Waiting for whatever comes first.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Waits until one of these descriptors can be read, or reports an error or its end, but no longer than `timeout`; which of them
/// do. Where there is `None` instead of a descriptor, that is never so; at least one has to be there. A signal ends the wait with none of them.
pub fn ready<const N: usize>(
    sources: [Option<BorrowedFd<'_>>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    // Allocates nothing. Another descriptor stands for what is not there, and nothing is polled of it.
    let Some(other) = sources.iter().flatten().next().copied() else { return Ok([false; N]) };
    let mut polled = sources.map(|source| match source {
        Some(fd) => PollFd::from_borrowed_fd(fd, PollFlags::IN),
        None => PollFd::from_borrowed_fd(other, PollFlags::empty()),
    });
    match poll(&mut polled, timeout.map(timespec).as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok([false; N]),
        Err(error) => return Err(error.into()),
    }
    let mut events = polled.iter().map(|source| !source.revents().is_empty());
    Ok(sources.map(|source| events.next().unwrap_or_default() && source.is_some()))
}

/// The same of any number of descriptors: whether one of them can be read, or reports an error or its end. A signal ends the wait with none.
pub fn any_ready<'f>(
    sources: impl IntoIterator<Item = BorrowedFd<'f>>,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let polled = |source| PollFd::from_borrowed_fd(source, PollFlags::IN);
    let mut polled: Vec<PollFd<'_>> = sources.into_iter().map(polled).collect();
    match poll(&mut polled, timeout.map(timespec).as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A time as poll(2) takes it.
pub fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn what_can_be_read_or_has_ended_is_ready() {
        let (silent, _silent) = io::pipe().expect("a pipe");
        let (full, mut writer) = io::pipe().expect("a pipe");
        let (ended, other) = io::pipe().expect("a pipe");
        writer.write_all(b"x").expect("written");
        drop(other);
        let sources = [Some(silent.as_fd()), None, Some(full.as_fd()), Some(ended.as_fd())];
        assert_eq!(ready(sources, None).expect("polled"), [false, false, true, true]);
        assert_eq!(ready([Some(silent.as_fd()), None], Some(Duration::ZERO)).expect("polled"), [false; 2]);
    }
}
