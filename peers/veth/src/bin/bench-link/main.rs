//! What a link carries between two network namespaces, compared with the bare veth pair below it: TCP of one and of eight flows,
//! long datagrams, datagrams of 64 bytes, round trips on an idle link, and the CPU time of it all.
//!
//! `bench-link RXLANE [ROUNDS [SECONDS [ENCAPSULATION]]]`, as root; `iperf3`, `ping` and `ethtool` do the work. In each round
//! every way has its turn, one after the other; ratios are taken round by round. The IP packets of all have the same MTU.
//! `PEER` in an encapsulation is the MAC address of the other end.

mod topology;

use anyhow::Context;
use std::path::Path;
use topology::{Topology, Version, Way};
use veth::cpu::Busy;
use veth::rounds::{self, Column, Turns, spread};

/// One turn of a way.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Bit/s of TCP payload that arrived: one flow, eight flows.
    one: f64,
    eight: f64,
    /// The same over IPv6.
    one_v6: f64,
    eight_v6: f64,
    /// Bit/s of UDP payload that arrived in datagrams that fill a packet, over IPv4 and IPv6.
    long: f64,
    long_v6: f64,
    /// Datagrams of 64 bytes that arrived a second.
    short: f64,
    /// Mean round trip on the idle link, microseconds.
    round_trip: f64,
    /// CPU seconds for a gigabyte of one TCP flow: all of the machine, of that in soft interrupts, and of both processes of
    /// the link.
    cpu: f64,
    softirq: f64,
    link: f64,
}

const COLUMNS: [Column<Turn>; 11] = [
    ("TCP, Gbit/s", |turn| turn.one / 1e9, 2),
    ("8 flows, Gbit/s", |turn| turn.eight / 1e9, 2),
    ("IPv6, Gbit/s", |turn| turn.one_v6 / 1e9, 2),
    ("IPv6 x 8, Gbit/s", |turn| turn.eight_v6 / 1e9, 2),
    ("UDP, Gbit/s", |turn| turn.long / 1e9, 2),
    ("UDP IPv6, Gbit/s", |turn| turn.long_v6 / 1e9, 2),
    ("UDP 64, kpps", |turn| turn.short / 1e3, 0),
    ("round trip, us", |turn| turn.round_trip, 0),
    ("CPU s/GB", |turn| turn.cpu, 2),
    ("softirq s/GB", |turn| turn.softirq, 2),
    ("link s/GB", |turn| turn.link, 2),
];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-link RXLANE [ROUNDS [SECONDS [ENCAPSULATION]]]";
    let rxlane = std::fs::canonicalize(arguments.next().context(usage)?).context("the program rxlane")?;
    let rounds: usize = arguments.next().map_or(Ok(9), |text| text.parse()).context(usage)?;
    let seconds: u32 = arguments.next().map_or(Ok(2), |text| text.parse()).context(usage)?;
    let encapsulation = arguments.next().unwrap_or_else(|| "ad:100,q:200,pppoe:7@PEER".to_owned());
    println!("{encapsulation}, {rounds} rounds, {seconds} s each; MTU {}", topology::MTU);
    let turn = |way| turn(way, &rxlane, &encapsulation, seconds);
    let turns = rounds::measure(&Way::ALL, rounds, &COLUMNS, Way::name, turn)?;
    table(&turns);
    rounds::markdown(&turns, &COLUMNS, Way::name);
    Ok(())
}

fn turn(way: Way, rxlane: &Path, encapsulation: &str, seconds: u32) -> anyhow::Result<Turn> {
    let topology = Topology::new(way, rxlane, encapsulation)?;
    let round_trip = topology.round_trip()?;
    let before = Busy::now(&topology.pids())?;
    let (one, bytes) = topology.tcp(Version::V4, 1, seconds)?;
    let spent = Busy::now(&topology.pids())?.since(&before);
    let (eight, _) = topology.tcp(Version::V4, 8, seconds)?;
    let (one_v6, _) = topology.tcp(Version::V6, 1, seconds)?;
    let (eight_v6, _) = topology.tcp(Version::V6, 8, seconds)?;
    let long = |version: Version| {
        let bytes = version.longest_datagram();
        Ok::<f64, anyhow::Error>(topology.udp(version, bytes, seconds)? * f64::from(bytes) * 8.0)
    };
    let gigabytes = bytes / 1e9;
    Ok(Turn {
        one,
        eight,
        one_v6,
        eight_v6,
        long: long(Version::V4)?,
        long_v6: long(Version::V6)?,
        short: topology.udp(Version::V4, 64, seconds)?,
        round_trip,
        cpu: spent.all / gigabytes,
        softirq: spent.softirq / gigabytes,
        link: spent.processes / gigabytes,
    })
}

/// Medians, least and greatest, and the median of the ratios to `simple`.
fn table(turns: &Turns<Way, Turn>) {
    let Some((_, simple)) = turns.first() else { return };
    for (name, figure, digits) in COLUMNS {
        println!(
            "\n{name:<18} {:>10} {:>22} {:>14} {:>20}",
            "median", "[least-greatest]", "times simple", "[least-greatest]"
        );
        for (way, turns) in turns {
            let ratios = turns.iter().zip(simple).map(|(this, first)| figure(this) / figure(first));
            let (median, least, greatest) = spread(turns.iter().map(figure));
            let (ratio, lowest, highest) = spread(ratios);
            println!(
                "{:<18} {median:>10.digits$} {:>22} {ratio:>14.2} {:>20}",
                way.name(),
                format!("[{least:.digits$}-{greatest:.digits$}]"),
                format!("[{lowest:.2}-{highest:.2}]"),
            );
        }
    }
    let Some((_, bare)) = turns.iter().find(|(way, _)| *way == Way::BareWithout) else { return };
    println!("\nTCP of one flow, times the bare veth without TSO, GSO and GRO:");
    for (way, turns) in turns {
        let (ratio, lowest, highest) = spread(turns.iter().zip(bare).map(|(this, bare)| this.one / bare.one));
        println!("{:<18} {ratio:>10.2} {:>22}", way.name(), format!("[{lowest:.2}-{highest:.2}]"));
    }
}
