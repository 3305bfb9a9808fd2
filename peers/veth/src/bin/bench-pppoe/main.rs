//! What a PPPoE session of `rxlane pppoe connect` with `rxlane pppoe serve` carries between two network namespaces, compared with the
//! bare veth pair below it: TCP both ways, of one and of eight flows, round trips on an idle line, CPU time and memory.
//!
//! `bench-pppoe RXLANE [ROUNDS [SECONDS [VLANS]]]`, as root; `iperf3`, `ping` and `ethtool` do the work. In each round every
//! way has its turn, one after the other; ratios are taken round by round. The IP packets of all have the same MTU. VLANS is
//! what `connect --vlan` takes. Other clients need the kernel's PPP: `lab/examples/pppoe`.

mod topology;

use anyhow::Context;
use std::path::Path;
use topology::{Topology, Way};
use veth::cpu::Busy;
use veth::rounds::{self, Column, Turns, spread};

/// One turn of a way.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Bit/s of TCP payload that arrived: from the client, to it, and both of eight flows.
    up: f64,
    down: f64,
    up_eight: f64,
    down_eight: f64,
    /// Mean round trip on the idle line, microseconds.
    round_trip: f64,
    /// What one flow from the client took, and what one to it.
    spent: [Spent; 2],
    /// Of `connect`, then of `serve`, with all this behind it: proportional set size, KiB.
    memory: [f64; 2],
}

/// CPU seconds for a gigabyte: all of the machine, of that in soft interrupts, of `connect`, of `serve`.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    all: f64,
    softirq: f64,
    connect: f64,
    serve: f64,
}

const COLUMNS: [Column<Turn>; 15] = [
    ("up, Gbit/s", |turn| turn.up / 1e9, 2),
    ("down, Gbit/s", |turn| turn.down / 1e9, 2),
    ("up x 8, Gbit/s", |turn| turn.up_eight / 1e9, 2),
    ("down x 8, Gbit/s", |turn| turn.down_eight / 1e9, 2),
    ("round trip, us", |turn| turn.round_trip, 0),
    ("up: CPU s/GB", |turn| turn.spent[0].all, 2),
    ("up: softirq s/GB", |turn| turn.spent[0].softirq, 2),
    ("up: connect s/GB", |turn| turn.spent[0].connect, 2),
    ("up: serve s/GB", |turn| turn.spent[0].serve, 2),
    ("down: CPU s/GB", |turn| turn.spent[1].all, 2),
    ("down: softirq s/GB", |turn| turn.spent[1].softirq, 2),
    ("down: connect s/GB", |turn| turn.spent[1].connect, 2),
    ("down: serve s/GB", |turn| turn.spent[1].serve, 2),
    ("connect, Pss KiB", |turn| turn.memory[0], 0),
    ("serve, Pss KiB", |turn| turn.memory[1], 0),
];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-pppoe RXLANE [ROUNDS [SECONDS [VLANS]]]";
    let rxlane = std::fs::canonicalize(arguments.next().context(usage)?).context("the program rxlane")?;
    let rounds: usize = arguments.next().map_or(Ok(9), |text| text.parse()).context(usage)?;
    let seconds: u32 = arguments.next().map_or(Ok(2), |text| text.parse()).context(usage)?;
    let vlans = arguments.next();
    let vlan_text = vlans.as_deref().unwrap_or("none");
    println!("VLANs {vlan_text}, {rounds} rounds, {seconds} s each; MTU {}", topology::MTU);
    let turn = |way| turn(way, &rxlane, vlans.as_deref(), seconds);
    let turns = rounds::measure(&Way::ALL, rounds, &COLUMNS, Way::name, turn)?;
    rounds::markdown(&turns, &COLUMNS, Way::name);
    print_against_bare(&turns);
    Ok(())
}

fn turn(way: Way, rxlane: &Path, vlans: Option<&str>, seconds: u32) -> anyhow::Result<Turn> {
    let topology = Topology::new(way, rxlane, vlans)?;
    let mut turn = Turn { round_trip: topology.round_trip()?, ..Turn::default() };
    (turn.up, turn.spent[0]) = one(&topology, false, seconds)?;
    (turn.down, turn.spent[1]) = one(&topology, true, seconds)?;
    turn.up_eight = topology.tcp(false, 8, seconds)?.0;
    turn.down_eight = topology.tcp(true, 8, seconds)?.0;
    if let Some(pids) = topology.pids() {
        turn.memory = [memory(pids[0])?, memory(pids[1])?];
    }
    Ok(turn)
}

/// One flow: bit/s, and what it took.
fn one(topology: &Topology, is_down: bool, seconds: u32) -> anyhow::Result<(f64, Spent)> {
    let now = || -> anyhow::Result<[Busy; 2]> {
        let [connect, serve] =
            topology.pids().map_or([vec![], vec![]], |[connect, serve]| [vec![connect], vec![serve]]);
        Ok([Busy::now(&connect)?, Busy::now(&serve)?])
    };
    let before = now()?;
    let (rate, bytes) = topology.tcp(is_down, 1, seconds)?;
    let after = now()?;
    let [connect, serve] = [0, 1].map(|end| after[end].since(&before[end]));
    let each = |seconds: f64| seconds / (bytes / 1e9);
    let spent = Spent {
        all: each(connect.all),
        softirq: each(connect.softirq),
        connect: each(connect.processes),
        serve: each(serve.processes),
    };
    Ok((rate, spent))
}

/// Proportional set size of a process, KiB.
fn memory(pid: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context(path)?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Throughput as a part of that of the bare pair without offloads, and what a round trip takes more than on it.
fn print_against_bare(turns: &Turns<Way, Turn>) {
    let Some((_, bare)) = turns.iter().find(|(way, _)| *way == Way::BareWithout) else { return };
    println!("\ncompared with the bare pair without TSO, GSO and GRO, round by round:");
    for (way, turns) in turns {
        let pairs = || turns.iter().zip(bare);
        let up = spread(pairs().map(|(this, bare)| this.up / bare.up));
        let down = spread(pairs().map(|(this, bare)| this.down / bare.down));
        let more = spread(pairs().map(|(this, bare)| this.round_trip - bare.round_trip));
        println!(
            "{:<18} up {:.2} [{:.2}-{:.2}] times, down {:.2} [{:.2}-{:.2}] times, round trip {:+.0} [{:+.0} to {:+.0}] us",
            way.name(),
            up.0,
            up.1,
            up.2,
            down.0,
            down.1,
            down.2,
            more.0,
            more.1,
            more.2,
        );
    }
}
