//! `vlan`: what tags cost, by whom, with and without offloads and RPS.
//!
//! Two hosts, each in a network namespace, joined by a veth pair; on it nothing, VLAN devices of the kernel's 8021q module, or
//! interfaces of `rxlane link`. TCP of one and of eight connections by `iperf3`, and datagrams as fast as they go.

mod admission;

use super::cpu_time::CpuTime;
use super::pair::{self, Pair, WAN};
use super::program::Staying;
use super::report::{Fact, Factor, LeftOut, Levels, Metric};
use super::udp_load::UdpLoad;
use super::verdict::Comparison;
use super::{Error, Means, Measured, Scenario, iperf, level, levels};
use crate::namespace::{Folder, Namespace};
use crate::pin;
use std::collections::BTreeMap;

/// Of the IP packets of all cells; of the pair below, with room for two tags.
const MTU: u16 = 1500;
const BELOW: u16 = MTU + 8;
/// The interface with tags.
const TAGGED: &str = "sub0";
/// Octets of payload and number of flows of the datagrams: 18 octets make a frame of 64 without tags.
const PAYLOAD: usize = 18;
const FLOWS: u16 = 8;

/// Tags, outermost first: TPID as `rxlane link` writes it, and VID.
type Stack = &'static [(&'static str, u16)];

/// Name of the level, text, tags.
const TAGS: [(&str, &str, Stack); 4] = [
    ("none", "no tag", &[]),
    ("q", "one tag (0x8100)", &[("q", 100)]),
    ("ad+q", "two tags (0x88a8, 0x8100)", &[("ad", 100), ("q", 200)]),
    ("q+q", "two tags (0x8100, 0x8100)", &[("q", 100), ("q", 200)]),
];

/// Who adds and removes tags.
const NOBODY: &str = "nobody";
const RXLANE: &str = "rxlane";
const KERNEL: &str = "8021q";

/// The scenario.
#[derive(Debug, Default)]
pub struct Vlan;

fn tags(cell: &Levels) -> Stack {
    let name = level(cell, "tags");
    TAGS.iter().find(|(known, ..)| *known == name).map_or(&[], |(_, _, tags)| tags)
}

impl Scenario for Vlan {
    fn name(&self) -> &'static str {
        "vlan"
    }

    fn title(&self) -> &'static str {
        "What VLAN tags cost"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        [("mtu", MTU.to_string()), ("udp payload", PAYLOAD.to_string()), ("udp flows", FLOWS.to_string())]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new("tags", &TAGS.map(|(name, text, _)| (name, text))),
            Factor::new("by", &[(NOBODY, ""), (RXLANE, "by rxlane link"), (KERNEL, "by the kernel's 8021q")]),
            Factor::new("offloads", &[("on", "offloads on"), ("off", "offloads off")]),
            Factor::new("rps", &[("off", "RPS off"), ("on", "RPS on")]),
        ]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::new("tcp_1", "TCP of one connection", "bit/s", Some(true)),
            Metric::new("tcp_8", "TCP of eight connections", "bit/s", Some(true)),
            Metric::of_machine("cpu_tcp_1", "CPU time of one connection", "s/GB", Some(false)),
            Metric::new("udp", "Datagrams that arrive", "packets/s", Some(true)),
            Metric::new("udp_loss", "Share of the datagrams that do not arrive", "", Some(false)),
        ]
    }

    fn cells(&self) -> Vec<Levels> {
        let mut cells = Vec::new();
        for offloads in ["on", "off"] {
            for rps in ["off", "on"] {
                for (name, _, tags) in TAGS {
                    let by: &[&str] = if tags.is_empty() { &[NOBODY] } else { &[RXLANE, KERNEL] };
                    cells.extend(by.iter().map(|by| {
                        levels([("tags", name), ("by", *by), ("offloads", offloads), ("rps", rps)])
                    }));
                }
            }
        }
        cells
    }

    fn prepare(&mut self, _means: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(&["iperf3", "ethtool", "sh"])?;
        let left = pair::lacks_8021q()?.map(|why| LeftOut { levels: levels([("by", KERNEL)]), why });
        Ok(left.into_iter().collect())
    }

    fn facts(&self, cells: &[Levels], _means: &Means<'_>) -> Result<Vec<Fact>, Error> {
        let is_measured = |tags: &str| cells.iter().any(|cell| level(cell, "tags") == tags);
        let tags = TAGS.into_iter().filter(|(tags, ..)| is_measured(tags));
        admission::facts(tags.map(|(_, text, tags)| (text, tags)))
    }

    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
        let pair = Pair::new(1, BELOW)?;
        if level(cell, "offloads") == "off" {
            pair.without_offloads()?;
        }
        if level(cell, "rps") == "on" {
            for (end, _) in pair.ends() {
                pair::spread_by_rps(end, WAN, &pin::allowed())?;
            }
        }
        let _line = Line::new(&pair, cell, means)?;
        let time = CpuTime::start();
        let one = iperf::tcp(&pair, false, 1, means)?;
        let spent = time.spent();
        let eight = iperf::tcp(&pair, false, 8, means)?;
        let datagrams = datagrams().deliver(&pair, means)?;
        let mut measured = vec![
            ("tcp_1", one.bits_per_second),
            ("tcp_8", eight.bits_per_second),
            ("udp", datagrams.per_second),
        ];
        measured.extend(datagrams.loss.map(|loss| ("udp_loss", loss)));
        measured.extend(spent.map(|spent| ("cpu_tcp_1", spent.all / (one.octets / 1e9))));
        Ok(measured)
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let cell = |tags, by, offloads, rps| {
            levels([("tags", tags), ("by", by), ("offloads", offloads), ("rps", rps)])
        };
        let mut comparisons = Vec::new();
        for metric in ["tcp_1", "tcp_8", "cpu_tcp_1", "udp", "udp_loss"] {
            // Offloads do nothing for small datagrams.
            let offloads: &[&str] = if metric.starts_with("udp") { &["on"] } else { &["on", "off"] };
            for offloads in offloads.iter().copied() {
                for (tags, by) in
                    TAGS.iter().skip(1).flat_map(|(tags, ..)| [(*tags, RXLANE), (*tags, KERNEL)])
                {
                    let (cell, baseline) =
                        (cell(tags, by, offloads, "off"), cell("none", NOBODY, offloads, "off"));
                    comparisons.push(Comparison { metric, cell, baseline });
                }
            }
        }
        for (tags, by) in [("none", NOBODY), ("q", KERNEL), ("ad+q", RXLANE), ("q+q", KERNEL)] {
            let (cell, baseline) = (cell(tags, by, "on", "off"), cell(tags, by, "off", "off"));
            comparisons.push(Comparison { metric: "tcp_1", cell, baseline });
        }
        for (tags, by) in [("none", NOBODY), ("ad+q", RXLANE), ("ad+q", KERNEL)] {
            let (cell, baseline) = (cell(tags, by, "off", "on"), cell(tags, by, "off", "off"));
            comparisons.push(Comparison { metric: "tcp_8", cell, baseline });
        }
        comparisons
    }
}

/// From one CPU to another, so that a machine with more does the same.
fn datagrams() -> UdpLoad {
    let cpus = pin::allowed();
    let (first, second) = (cpus.first().copied(), cpus.get(1).or(cpus.first()).copied());
    UdpLoad {
        payload: PAYLOAD,
        senders: (1, first.into_iter().collect()),
        receivers: (1, second.into_iter().collect()),
        flows: FLOWS,
        coalesce: false,
        mtu: MTU,
    }
}

/// What stands on the pair at both ends.
struct Line {
    /// Dropped before the folder with their sockets.
    _links: Vec<Staying>,
    _folder: Option<Folder>,
}

impl Line {
    fn new(pair: &Pair, cell: &Levels, means: &Means<'_>) -> Result<Line, Error> {
        match level(cell, "by") {
            RXLANE => {
                let folder = Folder::new()?;
                let links = by_rxlane(pair, tags(cell), &folder, means)?;
                return Ok(Line { _links: links, _folder: Some(folder) });
            }
            KERNEL => {
                by_kernel(pair, tags(cell))?;
                pair.give_addresses(TAGGED)?;
            }
            _ => {
                for (end, _) in pair.ends() {
                    end.ip(&["link", "set", "dev", WAN, "mtu", &MTU.to_string()])?;
                }
                pair.give_addresses(WAN)?;
            }
        }
        Ok(Line { _links: Vec::new(), _folder: None })
    }
}

fn by_rxlane(
    pair: &Pair,
    tags: &[(&str, u16)],
    folder: &Folder,
    means: &Means<'_>,
) -> Result<Vec<Staying>, Error> {
    let encapsulation: Vec<String> = tags.iter().map(|(tpid, vid)| format!("{tpid}:{vid}")).collect();
    let up = |(end, address): (&Namespace, std::net::Ipv4Addr)| {
        let mut command = end.command(&means.rxlane);
        command.args(["link", "up", "--parent", WAN, "--name", TAGGED, "--mtu", &MTU.to_string()]);
        command.args(["--encap", &encapsulation.join(","), "--address", &format!("{address}/24")]);
        // The links of both ends have one name.
        command.arg("--state").arg(folder.path().join(end.name()));
        Staying::ready(&mut command, "is up over", means.stop)
    };
    pair.ends().into_iter().map(up).collect()
}

fn by_kernel(pair: &Pair, tags: &[(&str, u16)]) -> Result<(), Error> {
    for (end, _) in pair.ends() {
        let mut below = WAN.to_owned();
        for (depth, (tpid, vid)) in tags.iter().enumerate() {
            let name = if depth + 1 == tags.len() { TAGGED.to_owned() } else { format!("tag{depth}") };
            let protocol = if *tpid == "ad" { "802.1ad" } else { "802.1Q" };
            let device = ["type", "vlan", "proto", protocol, "id", &vid.to_string()];
            end.ip(&[&["link", "add", "link", &below, "name", &name][..], &device].concat())?;
            end.ip(&["link", "set", "dev", &name, "mtu", &MTU.to_string(), "up"])?;
            below = name;
        }
    }
    Ok(())
}
