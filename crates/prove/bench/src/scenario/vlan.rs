//! `vlan`: what tags cost, by who adds them, with and without offloads and RPS.
//!
//! Two hosts, each in a network namespace, joined by a veth pair; on it nothing, VLAN devices of the kernel's 8021q module, or
//! interfaces of `rxlane link`. TCP of one and of eight connections by `iperf3`, and datagrams as fast as they go.

mod admission;

use super::cpu_time::CpuTime;
use super::design::{Comparison, Design, crossed, parameters};
use super::pair::{self, Pair, WAN};
use super::program::{Programs, Running};
use super::report::{Fact, Factor, LESS, LeftOut, Levels, MORE, Metric};
use super::udp_load::UdpLoad;
use super::{Error, Measured, Scenario, Tools, iperf, level};
use crate::namespace::{Folder, Namespace};
use crate::pin;

/// Of the IP packets of all cells; of the pair below, with room for two tags.
const MTU: u16 = 1500;
const BELOW: u16 = MTU + 8;
const TAGGED: &str = "sub0";
/// Bytes of payload and number of flows of the datagrams: 18 bytes make a frame of 64 without tags.
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

#[derive(Debug, Default)]
pub struct Vlan;

fn tags(cell: &Levels) -> Stack {
    let name = level(cell, "tags");
    TAGS.iter().find(|(known, ..)| *known == name).map_or(&[], |(_, _, tags)| tags)
}

fn comparisons() -> Vec<Comparison> {
    let untagged = "tags=none by=nobody";
    let mut comparisons = Vec::new();
    for metric in ["tcp_1", "tcp_8", "cpu_tcp_1", "udp", "udp_loss"] {
        // Offloads do nothing for small datagrams.
        let offloads: &[&str] = if metric.starts_with("udp") { &["on"] } else { &["on", "off"] };
        for offloads in offloads {
            for (tags, ..) in TAGS.iter().skip(1) {
                for by in ["rxlane", "8021q"] {
                    let (cell, both) =
                        (format!("tags={tags} by={by}"), format!("offloads={offloads} rps=off"));
                    comparisons.push(Comparison::new(metric, &cell, untagged, &both));
                }
            }
        }
    }
    let mut compare = |metric, cell: &str, baseline: &str, both: &str| {
        comparisons.push(Comparison::new(metric, cell, baseline, both));
    };
    for both in [untagged, "tags=q by=8021q", "tags=ad+q by=rxlane", "tags=q+q by=8021q"] {
        compare("tcp_1", "offloads=on", "offloads=off", &format!("{both} rps=off"));
    }
    for both in [untagged, "tags=ad+q by=rxlane", "tags=ad+q by=8021q"] {
        compare("tcp_8", "rps=on", "rps=off", &format!("{both} offloads=off"));
    }
    comparisons
}

impl Scenario for Vlan {
    fn design(&self) -> Design {
        let factors = [
            Factor::new("tags", &TAGS.map(|(name, text, _)| (name, text))),
            Factor::new(
                "by",
                &[("nobody", ""), ("rxlane", "by rxlane link"), ("8021q", "by the kernel's 8021q")],
            ),
            Factor::new("offloads", &[("on", "offloads on"), ("off", "offloads off")]),
            Factor::new("rps", &[("off", "RPS off"), ("on", "RPS on")]),
        ];
        let [of_tags, by, offloads, rps] = &factors;
        let mut cells = crossed([offloads, rps, of_tags, by]);
        cells.retain(|cell| tags(cell).is_empty() == (level(cell, "by") == "nobody"));
        Design {
            name: "vlan",
            title: "What VLAN tags cost",
            parameters: parameters([
                ("mtu", MTU.to_string()),
                ("udp payload", PAYLOAD.to_string()),
                ("udp flows", FLOWS.to_string()),
            ]),
            cells,
            factors: factors.into(),
            metrics: vec![
                Metric::new("tcp_1", "TCP of one connection", "bit/s", MORE),
                Metric::new("tcp_8", "TCP of eight connections", "bit/s", MORE),
                Metric::of_machine("cpu_tcp_1", "CPU time of one connection", "s/GB", LESS),
                Metric::new("udp", "Datagrams that arrive", "packets/s", MORE),
                Metric::new("udp_loss", "Share of the datagrams that do not arrive", "", LESS),
            ],
            comparisons: comparisons(),
        }
    }

    fn prepare(&mut self, _tools: &Tools<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(&["iperf3", "ethtool", "sh"])?;
        pair::without_8021q("by=8021q")
    }

    fn facts(&self, cells: &[Levels]) -> Result<Vec<Fact>, Error> {
        let is_measured = |tags: &str| cells.iter().any(|cell| level(cell, "tags") == tags);
        let tags = TAGS.into_iter().filter(|(tags, ..)| is_measured(tags));
        admission::facts(tags.map(|(_, text, tags)| (text, tags)))
    }

    fn measure(&self, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error> {
        let pair = Pair::new(1, BELOW)?;
        if level(cell, "offloads") == "off" {
            pair.without_offloads()?;
        }
        if level(cell, "rps") == "on" {
            for (end, _) in pair.ends() {
                pair::spread_by_rps(end, WAN, &pin::allowed())?;
            }
        }
        let _links = line(&pair, cell, tools)?;
        let time = CpuTime::start();
        let one = iperf::tcp(&pair, false, 1, tools)?;
        let spent = time.spent();
        let eight = iperf::tcp(&pair, false, 8, tools)?;
        let datagrams = datagrams().deliver(&pair, tools)?;
        let mut measured = vec![
            ("tcp_1", one.bits_per_second),
            ("tcp_8", eight.bits_per_second),
            ("udp", datagrams.per_second),
        ];
        measured.extend(datagrams.loss.map(|loss| ("udp_loss", loss)));
        measured.extend(spent.map(|spent| ("cpu_tcp_1", spent.all / (one.bytes / 1e9))));
        Ok(measured)
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

/// Makes the interfaces of a cell at both ends; the programs that some take.
fn line(pair: &Pair, cell: &Levels, tools: &Tools<'_>) -> Result<Option<Programs>, Error> {
    match level(cell, "by") {
        "rxlane" => return by_rxlane(pair, tags(cell), tools).map(Some),
        "8021q" => {
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
    Ok(None)
}

fn by_rxlane(pair: &Pair, tags: &[(&str, u16)], tools: &Tools<'_>) -> Result<Programs, Error> {
    let folder = Folder::new()?;
    let encapsulation: Vec<String> = tags.iter().map(|(tpid, vid)| format!("{tpid}:{vid}")).collect();
    let up = |(end, address): (&Namespace, std::net::Ipv4Addr)| {
        let mut command = end.command(&tools.rxlane);
        command.args(["link", "up", "--parent", WAN, "--name", TAGGED, "--mtu", &MTU.to_string()]);
        command.args(["--encap", &encapsulation.join(","), "--address", &format!("{address}/24")]);
        // The links of both ends have one name.
        command.arg("--state").arg(folder.path().join(end.name()));
        Running::ready(&mut command, "is up over", tools.stop)
    };
    let links = pair.ends().into_iter().map(up).collect::<Result<_, _>>()?;
    Ok((links, folder))
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
