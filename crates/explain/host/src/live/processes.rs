//! Processes that carry PPPoE in user space, with their share of a CPU.

use super::bundle::{Unread, printable};
use super::files::bytes;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Command names: clients, relays, concentrators and tunnels of Linux and of ports to it.
const NAMES: [&[u8]; 13] = [
    b"pppd",
    b"pppoe",
    b"ppp",
    b"rp-pppoe",
    b"pppoe-server",
    b"pppoe-relay",
    b"pppoe-connect",
    b"pppoecd",
    b"mpd5",
    b"accel-pppd",
    b"xl2tpd",
    b"openl2tpd",
    b"go-l2tpd",
];

/// A process at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    name: Vec<u8>,
    /// When it was started, ticks since boot: with the pid it distinguishes processes.
    started: u64,
    /// Time that it took, ticks.
    taken: u64,
}

/// All such processes at one time, and when that was.
#[derive(Clone, Debug)]
pub(super) struct Processes {
    processes: BTreeMap<u32, Process>,
    /// Seconds since boot.
    at: f64,
}

impl Processes {
    /// Reads `/proc`.
    pub(super) fn read() -> Result<Processes, Unread> {
        let own = std::fs::read_dir("/proc")?;
        // With hidepid, others' processes are not there at all, and none of them would mean nothing.
        if std::fs::metadata("/proc/1").is_err() {
            return Err(Unread("other users' processes are hidden (hidepid)".to_owned()));
        }
        let processes = own.flatten().filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            // One that ended in the meantime is no longer of interest.
            let process = process(&bytes(&entry.path().join("stat")).ok()?)?;
            NAMES.contains(&process.name.as_slice()).then_some((pid, process))
        });
        Ok(Processes { processes: processes.collect(), at: uptime()? })
    }

    /// A listing as `top -b -n 1` prints it, without users: the share of a CPU since `former`, or since each
    /// process was started.
    pub(super) fn listing(&self, former: Option<&Processes>) -> String {
        let mut text = String::from("    PID USER      %CPU COMMAND\n");
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        for (&pid, process) in &self.processes {
            let before = former.and_then(|former| {
                let before = former.processes.get(&pid).filter(|before| before.started == process.started)?;
                Some((before.taken, former.at))
            });
            let (taken, since) = before.unwrap_or((0, process.started as f64 / ticks_per_second));
            let seconds = self.at - since;
            let busy = process.taken.saturating_sub(taken) as f64 / ticks_per_second;
            let share = if seconds > 0.0 { busy / seconds * 100.0 } else { 0.0 };
            let _ = writeln!(text, "{pid:>7} {:<8} {share:>5.1} {}", "-", printable(&process.name));
        }
        text
    }
}

fn uptime() -> Result<f64, Unread> {
    let text = super::files::text(Path::new("/proc/uptime"))?;
    let seconds = text.split_whitespace().next().and_then(|seconds| seconds.parse().ok());
    seconds.ok_or_else(|| Unread("/proc/uptime holds no number".to_owned()))
}

/// Fields 2 (name, in parentheses, itself anything), 14, 15 (time) and 22 (start) of `/proc/PID/stat`, proc(5).
fn process(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|&c| c == b'(')?;
    let close = stat.iter().rposition(|&c| c == b')')?;
    let rest = std::str::from_utf8(stat.get(close.checked_add(1)?..)?).ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first field behind the name is number 3.
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<u64>().ok();
    let taken = field(14)?.checked_add(field(15)?)?;
    Some(Process { name: stat.get(open.checked_add(1)?..close)?.to_vec(), started: field(22)?, taken })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, user: u64, system: u64, started: u64) -> Vec<u8> {
        format!("42 ({name}) S 1 1 1 0 -1 4194304 1 0 0 0 {user} {system} 0 0 20 0 1 0 {started} 1 1\n")
            .into()
    }

    fn at(seconds: f64, user: u64, started: u64) -> Processes {
        let process = process(&stat("pppd", user, 0, started)).expect("a process");
        Processes { processes: [(42, process)].into(), at: seconds }
    }

    #[test]
    fn a_name_may_be_anything() {
        let process = process(&stat("a) S 9 (b", 10, 20, 30)).expect("a process");
        assert_eq!(
            (process.name.as_slice(), process.taken, process.started),
            (b"a) S 9 (b".as_slice(), 30, 30)
        );
        assert_eq!(super::process(b"42 (pppd"), None);
        assert_eq!(super::process(b"42 )pppd("), None);
    }

    #[test]
    fn the_share_is_of_the_time_between() {
        let ticks = rustix::param::clock_ticks_per_second();
        let listing = at(103.0, 10 * ticks + 3 * ticks / 2, 0).listing(Some(&at(100.0, 10 * ticks, 0)));
        assert_eq!(listing, "    PID USER      %CPU COMMAND\n     42 -         50.0 pppd\n");
        // The same pid, another process: since its own start.
        let listing = at(103.0, ticks, 102 * ticks).listing(Some(&at(100.0, 9 * ticks, 0)));
        assert!(listing.ends_with("     42 -        100.0 pppd\n"), "{listing}");
    }
}
