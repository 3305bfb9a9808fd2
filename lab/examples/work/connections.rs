//! Connections of iperf3 whose packets arrive on `client`, in every mode in turn.

use crate::count::{count, idle, print};
use crate::mode::{Mode, Spreading, enter, leave};
use anyhow::{Context, Result};
use rxlane_lab::Guest;
use rxlane_lab::built::program;
use serde_json::Value;
use std::collections::BTreeMap;

/// Of the line and inside.
const PORTS: [&str; 2] = ["client", "inside"];
/// How often every mode is measured.
const ROUNDS: usize = 2;

/// Which packets the instructions are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Those that arrive on `client`.
    OfTheLine,
    /// Those that arrive there and on `inside`: all that are forwarded, in both directions.
    OfBothSides,
}

impl Packets {
    fn received(self, guest: &Guest) -> Result<u64> {
        let line = guest.counter("client", "rx_packets")?;
        let inside = if self == Packets::OfBothSides { guest.counter("inside", "rx_packets")? } else { 0 };
        Ok(line + inside)
    }
}

/// `iperf3` is the command of its client, with all but the time.
pub fn measure(guest: &Guest, cpus: usize, modes: &[Mode], iperf3: &str, packets: Packets) -> Result<()> {
    for mode in modes.iter().cycle().take(ROUNDS * modes.len()) {
        if let Spreading::Steer(_) = mode.spreading {
            // What `up` samples.
            let load = format!("{iperf3} -t 8");
            guest.start(&load.split(' ').collect::<Vec<_>>(), "/tmp/load")?;
        }
        enter(guest, PORTS, mode, cpus)?;
        if let Spreading::Steer(_) = mode.spreading {
            guest.sh("until grep -q 'iperf Done' /tmp/load; do sleep 0.2; done")?;
        }
        guest.sh(&format!("{iperf3} -t 2"))?;
        let idle = idle(guest)?;
        let before = forwarded(guest, mode)?;
        let work = count(guest, &idle, || {
            let former = packets.received(guest)?;
            let received = guest.counter("client", "rx_packets")?;
            let sent = guest.counter("client", "tx_packets")?;
            let rate = guest.sh(&format!(
                "{iperf3} -t 8 -f m | sed -n 's/.*SUM.* \\([0-9.]* Mbits.sec\\).*receiver.*/\\1/p'"
            ))?;
            let received = guest.counter("client", "rx_packets")? - received;
            let sent = guest.counter("client", "tx_packets")? - sent;
            let back = sent as f64 / received as f64;
            let note = format!("({}, {back:.2} packets back for one received)", rate.trim());
            Ok((packets.received(guest)? - former, note))
        })?;
        print(&mode.name(), &work, cpus);
        print_share(before, forwarded(guest, mode)?);
        leave(guest, PORTS, mode)?;
    }
    Ok(())
}

/// Prints how much of what the fast path has seen between two counts it has forwarded, and why it has not the rest.
pub fn print_share(before: Option<Forwarded>, after: Option<Forwarded>) {
    let Some((before, after)) = before.zip(after) else { return };
    let fast = after.fast - before.fast;
    let reasons =
        after.slow.iter().map(|(reason, packets)| (reason, packets - before.slow.get(reason).unwrap_or(&0)));
    let slow: Vec<(&String, u64)> = reasons.filter(|(_, packets)| *packets > 0).collect();
    let all = fast + slow.iter().map(|(_, packets)| packets).sum::<u64>();
    let reasons: Vec<String> = slow.iter().map(|(reason, packets)| format!(", {reason} {packets}")).collect();
    println!("  fast {fast} of {all}, {:.2} %{}", 100.0 * fast as f64 / all as f64, reasons.concat());
}

/// What the fast path has counted.
pub struct Forwarded {
    fast: u64,
    /// By reason.
    slow: BTreeMap<String, u64>,
}

/// What it has counted until now; `None` where it is not up.
pub fn forwarded(guest: &Guest, mode: &Mode) -> Result<Option<Forwarded>> {
    if mode.spreading != Spreading::Fastpath {
        return Ok(None);
    }
    let text = guest.sh(&format!("{} fastpath status --json", program("rxlane")?.display()))?;
    let status: Value = serde_json::from_str(&text)?;
    let fast = status["packets"]["fast"].as_u64().context("no number")?;
    let slow = serde_json::from_value(status["packets"]["slow"].clone())?;
    Ok(Some(Forwarded { fast, slow }))
}
