//! Processes: which one it is, and whether it is still alive; what a thread has of its own.

mod sys;

pub(crate) use sys::unshare_network;
pub use sys::{
    close_inherited_on_exec, inherited_sockets, kernel_log, share_heap, trim_heap, unshare_file_system,
    unshare_mounts,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// One process for all time until the machine starts again: the kernel gives a PID to another process later, but not with
/// the same start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Id {
    /// Its PID.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

impl Id {
    /// This process.
    pub fn own() -> io::Result<Id> {
        Id::of(std::process::id())
            .ok_or_else(|| io::Error::other("cannot read /proc/PID/stat of this process"))
    }

    /// The process that has this PID now; `None`: there is none, or it has ended and waits for its parent.
    pub fn of(pid: u32) -> Option<Id> {
        let stat = Stat::of(pid)?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(Id { pid, start: stat.start })
    }

    /// Whether the process has not ended.
    pub fn is_alive(self) -> bool {
        Id::of(self.pid) == Some(self)
    }
}

/// Whether a signal has stopped the process (SIGSTOP, Ctrl-Z).
pub fn is_stopped(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.state == 'T')
}

/// The parent of a process.
pub fn parent(pid: u32) -> Option<u32> {
    Stat::of(pid).map(|stat| stat.parent)
}

/// Waits until a process has ended; `false`: it has not within `limit`.
pub fn wait_for_end(pid: u32, limit: Duration) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(error) => return error == Errno::SRCH,
    };
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            polled => return polled.is_ok_and(|count| count > 0),
        }
    }
}

/// Fields of `/proc/PID/stat` (proc_pid_stat(5)).
struct Stat {
    state: char,
    parent: u32,
    start: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field, the name in parentheses, can hold anything: what follows its end counts.
    fn parse(text: &str) -> Option<Stat> {
        let mut fields = text.rsplit_once(") ")?.1.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Stat { state, parent, start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_name_may_hold_anything() {
        let text = "7 (a) Z 1 (b) S 4 7 7 0 -1 64 0 0 0 0 1 2 3 4 20 0 1 0 88 0 0 18446744073709551615\n";
        let stat = Stat::parse(text).expect("fields");
        assert_eq!((stat.state, stat.parent, stat.start), ('S', 4, 88));
        for wrong in ["", "7 (a) S", "7 (a) S x 7 7 0 -1 64 0 0 0 0 1 2 3 4 20 0 1 0 88 0"] {
            assert!(Stat::parse(wrong).is_none(), "{wrong}");
        }
    }

    /// As many small pieces as sessions have, all but the last of which are free again.
    #[cfg(target_env = "gnu")]
    #[test]
    fn memory_below_what_is_in_use_goes_to_the_system() {
        let resident = || {
            let status = fs::read_to_string("/proc/self/status").expect("a file");
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
            line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
        };
        let mut pieces: Vec<Box<[u8; 1000]>> = (0..100_000).map(|at| Box::new([at as u8; 1000])).collect();
        let last = pieces.pop();
        let full = resident();
        drop(pieces);
        trim_heap();
        let (trimmed, last) = (resident(), last.map(|last| last[0]));
        assert!(full - trimmed.min(full) > 50_000, "{full} KiB before, {trimmed} after, {last:?}");
    }

    #[test]
    fn a_process_is_alive_until_it_has_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("a process");
        let id = Id::of(child.id()).expect("an identity");
        assert_eq!(parent(id.pid), Some(std::process::id()));
        assert!(id.is_alive() && !is_stopped(id.pid) && !wait_for_end(id.pid, Duration::ZERO));
        assert!(!Id { start: id.start + 1, ..id }.is_alive(), "another process of that number");
        child.kill().expect("killed");
        assert!(wait_for_end(id.pid, Duration::from_secs(60)));
        assert!(!id.is_alive(), "before its parent asks for its status");
        child.wait().expect("a status");
        assert!(!id.is_alive() && wait_for_end(id.pid, Duration::ZERO));
        assert!(!wait_for_end(0, Duration::ZERO));
    }
}
