//! One turn of a way: transfers and round trips both ways, and what they took.

use crate::ends::{Ends, Way};
use crate::topology::{End, Topology};
use anyhow::{Context, Result, bail};
use rxlane_lab::Guest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Of `/proc/stat` and `/proc/PID/stat` (`USER_HZ`).
const TICKS: f64 = 100.0;

/// Percent of a CPU's time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Split {
    pub user: f64,
    pub system: f64,
    pub softirq: f64,
    pub idle: f64,
}

/// A transfer of one TCP connection.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Payload that arrived, and how fast, bit/s.
    pub bytes: f64,
    pub rate: f64,
    pub retransmitted: f64,
    /// Where the time of each end's CPU went.
    pub split: [Split; 2],
    /// CPU seconds of the programs of each end but `iperf3`, by name.
    pub programs: [BTreeMap<String, f64>; 2],
    /// CPU seconds of each end's CPU, of whatever kind.
    pub busy: [f64; 2],
    /// Instructions of each end's CPU for a byte of payload.
    pub instructions: [f64; 2],
    /// Frames of the line that carried it, and those that went back.
    pub frames: [f64; 2],
}

/// Memory of the client's programs, KiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Proportional set size of all.
    pub pss: f64,
    /// Of that, the rings that packet sockets share with the kernel.
    pub rings: f64,
    /// Of that, anonymous memory.
    pub anonymous: f64,
}

#[derive(Clone, Debug)]
pub struct Turn {
    /// From the subscriber to the provider, and back.
    pub up: Transfer,
    pub down: Transfer,
    /// Median round trips when nothing else is carried, sent by the subscriber and by the provider, ms.
    pub pings: [f64; 2],
    pub memory: Memory,
}

pub fn turn(topology: &Topology, way: Way, seconds: u32) -> Result<Turn> {
    let ends = Ends::new(topology, way)?;
    let pings =
        [ping(topology, End::Home, &ends.addresses[1])?, ping(topology, End::Isp, &ends.addresses[0])?];
    let up = transfer(topology, &ends, false, seconds).context("up")?;
    let down = transfer(topology, &ends, true, seconds).context("down")?;
    let memory = memory(&topology.guest)?;
    Ok(Turn { up, down, pings, memory })
}

/// Median of fifty round trips, ms.
fn ping(topology: &Topology, end: End, address: &str) -> Result<f64> {
    let script = format!("ping -n -q -c 3 -i 0.05 {address} >/dev/null; ping -n -c 50 -i 0.02 {address}");
    let said = topology.at(end, &script, Duration::from_secs(30))?;
    let times = said.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok());
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().context("no round trip")
}

/// Starts the provider's `iperf3` for one transfer, and gives its process id.
pub fn listen(topology: &Topology) -> Result<u32> {
    let words = format!("{} iperf3 -s -1", End::Isp.prefix());
    let pid = topology.guest.start(&words.split(' ').collect::<Vec<_>>(), "/tmp/iperf3.output")?;
    // 5201, as /proc/net/tcp writes it.
    let ready = format!(
        "timeout 20 sh -c 'until cat /proc/{pid}/net/tcp /proc/{pid}/net/tcp6 | grep -q :1451; do sleep 0.05; done'"
    );
    topology.guest.sh(&ready).context("iperf3 does not listen")?;
    Ok(pid)
}

pub fn transfer(topology: &Topology, ends: &Ends<'_>, is_down: bool, seconds: u32) -> Result<Transfer> {
    let server = listen(topology)?;
    let result = measure(topology, ends, is_down, seconds);
    topology.guest.signal(server, libc::SIGTERM, true)?;
    result
}

fn measure(topology: &Topology, ends: &Ends<'_>, is_down: bool, seconds: u32) -> Result<Transfer> {
    let guest = &topology.guest;
    let reverse = if is_down { " -R" } else { "" };
    let script = format!("iperf3 -c {} -J -t {seconds} --connect-timeout 5000{reverse}", ends.addresses[1]);
    let programs = [programs(guest, End::Home)?, programs(guest, End::Isp)?];
    let (frames, ticks) = (frames(guest, ends.interface)?, ticks(guest)?);
    let count = topology.count()?;
    let output = topology.at(End::Home, &script, Duration::from_secs(u64::from(seconds) + 20));
    let instructions = topology.transferred(&count)?;
    let (frames_after, ticks_after) =
        (crate::turn::frames(guest, ends.interface)?, crate::turn::ticks(guest)?);
    let after = [crate::turn::programs(guest, End::Home)?, crate::turn::programs(guest, End::Isp)?];
    let answer: Value = serde_json::from_str(&output?).context("what iperf3 says")?;
    if let Some(error) = answer["error"].as_str() {
        bail!("iperf3: {error}");
    }
    let sum = |name: &str, field: &str| answer["end"][name][field].as_f64();
    let bytes = sum("sum_received", "bytes").context("iperf3 reports no bytes")?;
    let spent: Vec<[f64; 5]> =
        ticks.iter().zip(&ticks_after).map(|(before, after)| less(after, before)).collect();
    let [up, down] = [0, 1].map(|way| frames_after[way] - frames[way]);
    Ok(Transfer {
        bytes,
        rate: sum("sum_received", "bits_per_second").context("iperf3 reports no rate")?,
        retransmitted: sum("sum_sent", "retransmits").unwrap_or_default(),
        split: [0, 1].map(|cpu| split(&spent[cpu])),
        busy: [0, 1].map(|cpu| spent[cpu][..4].iter().sum::<f64>() / TICKS),
        programs: [0, 1].map(|end| since(&after[end], &programs[end])),
        instructions: instructions.map(|count| count / bytes),
        frames: if is_down { [down, up] } else { [up, down] },
    })
}

fn less(after: &[f64; 5], before: &[f64; 5]) -> [f64; 5] {
    std::array::from_fn(|place| after[place] - before[place])
}

fn split(ticks: &[f64; 5]) -> Split {
    let percent = |place: usize| 100.0 * ticks[place] / ticks.iter().sum::<f64>();
    Split { user: percent(0), system: percent(1), softirq: percent(2) + percent(3), idle: percent(4) }
}

/// Of the CPUs of both ends: user, system, soft interrupts, interrupts, idle (proc(5)).
fn ticks(guest: &Guest) -> Result<[[f64; 5]; 2]> {
    let text = String::from_utf8(guest.read("/proc/stat")?)?;
    let of = |end: End| -> Result<[f64; 5]> {
        let name = format!("cpu{} ", end.cpu());
        let line = text.lines().find_map(|line| line.strip_prefix(&name)).context("/proc/stat")?;
        let all: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, waiting, interrupts, softirq, ..] = all[..] else {
            bail!("/proc/stat: {line}")
        };
        Ok([user + nice, system, softirq, interrupts, idle + waiting])
    };
    Ok([of(End::Home)?, of(End::Isp)?])
}

/// Frames that an interface of the subscriber's end has sent and received.
fn frames(guest: &Guest, interface: &str) -> Result<[f64; 2]> {
    let said = guest.sh(&format!("ip -n home -s -j link show dev {interface}"))?;
    let said: Value = serde_json::from_str(&said)?;
    let of = |way: &str| said[0]["stats64"][way]["packets"].as_f64().context("no count of frames");
    Ok([of("tx")?, of("rx")?])
}

fn pids(guest: &Guest, end: End) -> Result<Vec<u32>> {
    let said = guest.sh(&format!("ip netns pids {}", end.namespace()))?;
    Ok(said.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// CPU seconds so far of the programs at an end but `iperf3`, by process id, with their names.
fn programs(guest: &Guest, end: End) -> Result<BTreeMap<u32, (String, f64)>> {
    let mut all = BTreeMap::new();
    for pid in pids(guest, end)? {
        // One that has ended meanwhile had nothing to do with it.
        let Ok(text) = guest.read(&format!("/proc/{pid}/stat")) else { continue };
        let text = String::from_utf8(text)?;
        let (head, rest) = text.rsplit_once(") ").context("a line of /proc/PID/stat")?;
        let name = head.split_once('(').map_or("?", |(_, name)| name);
        if name == "iperf3" {
            continue;
        }
        // Behind the name, utime and stime are the 12th and 13th.
        let ticks: f64 = rest.split(' ').skip(11).take(2).filter_map(|word| word.parse::<f64>().ok()).sum();
        all.insert(pid, (name.to_owned(), ticks / TICKS));
    }
    Ok(all)
}

fn since(
    after: &BTreeMap<u32, (String, f64)>,
    before: &BTreeMap<u32, (String, f64)>,
) -> BTreeMap<String, f64> {
    let mut names = BTreeMap::new();
    for (pid, (name, seconds)) in after {
        let earlier = before.get(pid).map_or(0.0, |(_, seconds)| *seconds);
        *names.entry(name.clone()).or_default() += seconds - earlier;
    }
    names
}

/// Memory of the programs at the subscriber's end.
pub fn memory(guest: &Guest) -> Result<Memory> {
    let mut memory = Memory::default();
    for pid in pids(guest, End::Home)? {
        let text = String::from_utf8(guest.read(&format!("/proc/{pid}/smaps"))?)?;
        let mut is_ring = false;
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let kib = || second.parse::<f64>().unwrap_or_default();
            match first {
                "Pss:" => {
                    memory.pss += kib();
                    memory.rings += if is_ring { kib() } else { 0.0 };
                }
                "Anonymous:" => memory.anonymous += kib(),
                // An address range begins the next mapping.
                range if !range.ends_with(':') => is_ring = line.contains("socket:"),
                _ => {}
            }
        }
    }
    Ok(memory)
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, transfer) in [("up", &self.up), ("down", &self.down)] {
            let [home, isp] = transfer.split;
            let list = |programs: &BTreeMap<String, f64>| {
                let each = programs.iter().map(|(name, seconds)| format!("{name} {seconds:.2}"));
                each.collect::<Vec<_>>().join(" ")
            };
            write!(
                f,
                "{name} {:.1} Mbit/s, {:.0} bytes, {:.0} retransmitted, frames {:.0} and {:.0}, \
                 instructions a byte {:.3} and {:.3}, home {home}, isp {isp}, CPU s {:.2} and {:.2}, of that {} and {}; ",
                transfer.rate / 1e6,
                transfer.bytes,
                transfer.retransmitted,
                transfer.frames[0],
                transfer.frames[1],
                transfer.instructions[0],
                transfer.instructions[1],
                transfer.busy[0],
                transfer.busy[1],
                list(&transfer.programs[0]),
                list(&transfer.programs[1]),
            )?;
        }
        write!(
            f,
            "ping {:.3} and {:.3} ms; Pss {:.0} KiB (rings {:.0}, anonymous {:.0})",
            self.pings[0], self.pings[1], self.memory.pss, self.memory.rings, self.memory.anonymous
        )
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "user {:.0} system {:.0} softirq {:.0} idle {:.0} %",
            self.user, self.system, self.softirq, self.idle
        )
    }
}
