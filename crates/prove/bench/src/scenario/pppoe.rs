//! `pppoe`: what a PPPoE session carries, compared with the bare line below: of `rxlane pppoe connect`, and of `pppd` with the kernel's PPPoE
//! and behind rp-pppoe's program, each with `rxlane pppoe serve` at the other end.
//!
//! TCP both ways, of one and of eight connections, round trips on the idle line, CPU time, memory; and what is to be done to set
//! each up. The IP packets of all cells have the same MTU.

mod session;

use super::cpu_time::CpuTime;
use super::design::{Comparison, Design, crossed, parameters};
use super::iperf::{self, Transfer};
use super::pair::{ADDRESSES, Pair, WAN, is_possible};
use super::program::output;
use super::report::{Fact, Factor, LESS, LeftOut, Levels, MORE, Metric};
use super::{Error, Measured, Scenario, Tools, level};
use crate::namespace::Namespace;
use session::Session;
use std::time::Duration;

/// Of the IP packets of all cells; of the pair below a session (RFC 4638 is not needed then).
const MTU: u16 = 1492;
const BELOW: u16 = 1500;
/// Round trips that are averaged, those before them in which neighbours are resolved, and seconds between them.
const PINGS: &str = "200";
const FIRST: &str = "10";
const INTERVAL: &str = "0.002";

const PATHS: [(&str, &str); 6] = [
    ("bare-off", "the bare line without offloads"),
    ("bare", "the bare line"),
    ("simple", "rxlane pppoe, one packet a call"),
    ("batch", "rxlane pppoe, many packets a call"),
    (KERNEL, "pppd with the kernel's PPPoE"),
    (USER, "pppd behind rp-pppoe's program"),
];
const KERNEL: &str = "kernel";
const USER: &str = "user";

#[derive(Debug, Default)]
pub struct Pppoe;

impl Scenario for Pppoe {
    fn design(&self) -> Design {
        let factors = vec![Factor::new("path", &PATHS)];
        let tcp = |name, title| Metric::new(name, title, "bit/s", MORE);
        let rtt = |name, by| {
            Metric::new(name, &format!("Mean round trip on the idle line, asked by {by}"), "s", LESS)
        };
        let cpu = |name, title, better| Metric::of_machine(name, title, "s/GB", better);
        let memory =
            |name, of| Metric::new(name, &format!("Memory of {of} (proportional set size)"), "B", LESS);
        let pairs = [
            ("batch", "simple"),
            ("batch", "bare-off"),
            ("batch", KERNEL),
            (KERNEL, "bare-off"),
            (USER, KERNEL),
        ];
        let compare = |metric| {
            pairs.map(|(path, other)| {
                let [cell, baseline] = [path, other].map(|path| format!("path={path}"));
                Comparison::new(metric, &cell, &baseline, "")
            })
        };
        Design {
            name: "pppoe",
            title: "What PPPoE costs, by data path",
            parameters: parameters([("mtu", MTU.to_string())]),
            cells: crossed(&factors),
            factors,
            metrics: vec![
                tcp("up_1", "TCP from the client, one connection"),
                tcp("down_1", "TCP to the client, one connection"),
                tcp("up_8", "TCP from the client, eight connections"),
                tcp("down_8", "TCP to the client, eight connections"),
                rtt("round_trip", "the client"),
                rtt("round_trip_back", "the concentrator"),
                cpu("cpu_up", "CPU time of one connection from the client", LESS),
                cpu("cpu_up_user", "Of that from the client, in programs", None),
                cpu("cpu_up_softirq", "Of that from the client, in soft interrupts", None),
                cpu("cpu_down", "CPU time of one connection to the client", LESS),
                cpu("cpu_down_user", "Of that to the client, in programs", None),
                cpu("cpu_down_softirq", "Of that to the client, in soft interrupts", None),
                memory("connect_memory", "the client's programs"),
                memory("serve_memory", "serve"),
            ],
            comparisons: ["up_1", "down_1", "up_8", "down_8", "round_trip"]
                .into_iter()
                .flat_map(compare)
                .collect(),
        }
    }

    fn prepare(&mut self, _tools: &Tools<'_>) -> Result<Vec<LeftOut>, Error> {
        is_possible(&["iperf3", "ethtool", "ping"])?;
        Ok(session::left_out())
    }

    fn facts(&self, cells: &[Levels]) -> Result<Vec<Fact>, Error> {
        let is_measured = |path: &str| cells.iter().any(|cell| level(cell, "path") == path);
        let fact = |(path, text): (&str, &str)| {
            let answer = session::steps(path)?;
            Some(Fact { question: format!("to set up {text}"), answer })
        };
        Ok(PATHS.into_iter().filter(|(path, _)| is_measured(path)).filter_map(fact).collect())
    }

    fn measure(&self, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error> {
        let path = level(cell, "path");
        let has_session = !path.starts_with("bare");
        let pair = Pair::new(1, if has_session { BELOW } else { MTU })?;
        let session = if has_session { Some(Session::open(&pair, path, tools)?) } else { None };
        if !has_session {
            pair.give_addresses(WAN)?;
        }
        if path == "bare-off" {
            pair.without_offloads()?;
        }
        let [client, concentrator] = ADDRESSES.map(|address| address.to_string());
        let mut measured = vec![
            ("round_trip", round_trip(&pair.near, &concentrator, tools)?),
            ("round_trip_back", round_trip(&pair.far, &client, tools)?),
        ];
        for (is_back, name, cpu) in [
            (false, "up_1", ["cpu_up", "cpu_up_user", "cpu_up_softirq"]),
            (true, "down_1", ["cpu_down", "cpu_down_user", "cpu_down_softirq"]),
        ] {
            let time = CpuTime::start();
            let Transfer { bits_per_second, bytes } = iperf::tcp(&pair, is_back, 1, tools)?;
            measured.push((name, bits_per_second));
            let spent = time.spent().map(|spent| [spent.all, spent.user, spent.softirq]);
            let each = cpu.into_iter().zip(spent.into_iter().flatten());
            measured.extend(each.map(|(name, seconds)| (name, seconds / (bytes / 1e9))));
        }
        measured.push(("up_8", iperf::tcp(&pair, false, 8, tools)?.bits_per_second));
        measured.push(("down_8", iperf::tcp(&pair, true, 8, tools)?.bits_per_second));
        if let Some(session) = &session {
            measured.extend(session.client_memory(&pair.near).map(|bytes| ("connect_memory", bytes)));
            measured.extend(session.serve_memory().map(|bytes| ("serve_memory", bytes)));
        }
        Ok(measured)
    }
}

/// Mean round trip, seconds.
fn round_trip(from: &Namespace, to: &str, tools: &Tools<'_>) -> Result<f64, Error> {
    let ping = |count: &str| {
        output(from.command("ping").args(["-q", "-c", count, "-i", INTERVAL, to]), Duration::ZERO, tools.stop)
    };
    ping(FIRST)?;
    let answers = ping(PINGS)?;
    let counted = String::from_utf8_lossy(&answers.stdout);
    mean_of(&counted).ok_or_else(|| {
        let counted = counted.lines().find(|line| line.contains("transmitted"));
        let counted = counted.map_or_else(|| answers.status.to_string(), str::to_owned);
        let complaint = String::from_utf8_lossy(&answers.stderr);
        let complaint = complaint.lines().next().map(|line| format!("; {line}")).unwrap_or_default();
        Error::Failed(format!("ping: no answer from {to}: {counted}{complaint}"))
    })
}

/// Of `rtt min/avg/max/mdev = 0.022/0.026/0.120/0.009 ms`, in seconds.
fn mean_of(said: &str) -> Option<f64> {
    let times =
        said.lines().find_map(|line| line.split_once("= ").filter(|(name, _)| name.contains("/avg/")))?;
    Some(times.1.split('/').nth(1)?.parse::<f64>().ok()? / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_second_time() {
        let said = "--- 198.18.0.2 ping statistics ---\nrtt min/avg/max/mdev = 0.022/0.026/0.120/0.009 ms\n";
        assert_eq!(mean_of(said), Some(0.026 / 1e3));
        assert_eq!(mean_of("10 packets transmitted, 0 received"), None);
    }
}
