//! `pppoe`: what a PPPoE session of `rxlane pppoe connect` with `rxlane pppoe serve` carries beside the bare line below.
//!
//! TCP both ways, of one and of eight connections, round trips on the idle line, CPU time, memory. The IP packets of all cells have
//! the same MTU.

use super::cpu_time::CpuTime;
use super::iperf::{self, Transfer};
use super::pair::{ADDRESSES, Pair, WAN, is_possible};
use super::program::{Staying, said};
use super::report::{Factor, LeftOut, Levels, Metric};
use super::verdict::Comparison;
use super::{Error, Means, Measured, Scenario, level, levels};
use crate::namespace::{Folder, Namespace};
use std::collections::BTreeMap;
use std::fs;

/// Of the IP packets of all cells; of the pair below a session (RFC 4638 is not needed then).
const MTU: u16 = 1492;
const BELOW: u16 = 1500;
/// Round trips that are averaged, those before them in which neighbours are asked for, and seconds between them.
const PINGS: &str = "200";
const FIRST: &str = "10";
const INTERVAL: &str = "0.002";

/// The scenario.
#[derive(Debug, Default)]
pub struct Pppoe;

impl Scenario for Pppoe {
    fn name(&self) -> &'static str {
        "pppoe"
    }

    fn title(&self) -> &'static str {
        "What PPPoE costs, by data path"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        [("mtu".to_owned(), MTU.to_string())].into()
    }

    fn factors(&self) -> Vec<Factor> {
        let paths = [
            ("bare-off", "the bare line without offloads"),
            ("bare", "the bare line"),
            ("simple", "rxlane pppoe, one packet a call"),
            ("batch", "rxlane pppoe, many packets a call"),
        ];
        vec![Factor::new("path", &paths)]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::new("up_1", "TCP from the client, one connection", "bit/s", Some(true)),
            Metric::new("down_1", "TCP to the client, one connection", "bit/s", Some(true)),
            Metric::new("up_8", "TCP from the client, eight connections", "bit/s", Some(true)),
            Metric::new("down_8", "TCP to the client, eight connections", "bit/s", Some(true)),
            Metric::new("round_trip", "Mean round trip on the idle line", "s", Some(false)),
            Metric::new("cpu_up", "CPU time of one connection from the client", "s/GB", Some(false)),
            Metric::new("cpu_down", "CPU time of one connection to the client", "s/GB", Some(false)),
            Metric::new("connect_memory", "Memory of connect (proportional set size)", "B", Some(false)),
            Metric::new("serve_memory", "Memory of serve (proportional set size)", "B", Some(false)),
        ]
    }

    fn cells(&self) -> Vec<Levels> {
        ["bare-off", "bare", "simple", "batch"].map(|path| levels([("path", path)])).to_vec()
    }

    fn prepare(&mut self, _means: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
        is_possible(&[("iperf3", "iperf3"), ("ethtool", "ethtool"), ("ping", "iputils-ping")])?;
        Ok(Vec::new())
    }

    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
        let path = level(cell, "path");
        let has_session = !path.starts_with("bare");
        let pair = Pair::new(1, if has_session { BELOW } else { MTU })?;
        let session = if has_session { Some(Session::open(&pair, path, means)?) } else { None };
        if !has_session {
            pair.give_addresses(WAN)?;
        }
        if path == "bare-off" {
            pair.without_offloads()?;
        }
        let mut measured = vec![("round_trip", round_trip(&pair.near, means)?)];
        for (is_back, name, cpu) in [(false, "up_1", "cpu_up"), (true, "down_1", "cpu_down")] {
            let time = CpuTime::start();
            let Transfer { bits_per_second, octets } = iperf::tcp(&pair, is_back, 1, means)?;
            measured.push((name, bits_per_second));
            measured.extend(time.spent().map(|spent| (cpu, spent.all / (octets / 1e9))));
        }
        measured.push(("up_8", iperf::tcp(&pair, false, 8, means)?.bits_per_second));
        measured.push(("down_8", iperf::tcp(&pair, true, 8, means)?.bits_per_second));
        if let Some(session) = &session {
            measured.extend(memory(&session.connect).map(|octets| ("connect_memory", octets)));
            measured.extend(memory(&session.serve).map(|octets| ("serve_memory", octets)));
        }
        Ok(measured)
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let beside = |metric, path: &str, other: &str| Comparison {
            metric,
            cell: levels([("path", path)]),
            baseline: levels([("path", other)]),
        };
        let metrics = ["up_1", "down_1", "up_8", "down_8", "round_trip"];
        let of = |metric| [beside(metric, "batch", "simple"), beside(metric, "batch", "bare-off")];
        metrics.into_iter().flat_map(of).collect()
    }
}

/// A session over the pair: the client at the near end has the first address, the concentrator the second.
struct Session {
    /// Ended first.
    connect: Staying,
    serve: Staying,
    _folder: Folder,
}

impl Session {
    fn open(pair: &Pair, path: &str, means: &Means<'_>) -> Result<Session, Error> {
        let folder = Folder::new()?;
        let [client, concentrator] = ADDRESSES.map(|address| address.to_string());
        let start = |end: &Namespace, words: &[&str], ready: &str| {
            let mut command = end.command(&means.rxlane);
            command
                .arg("pppoe")
                .args(words)
                .args(["--ipv6=false", "--state"])
                .arg(folder.path().join(end.name()));
            Staying::ready(&mut command, ready)
        };
        let pool = format!("{client}-{client}");
        let serve = ["serve", WAN, "--anybody", "--local", &concentrator, "--pool", &pool];
        let serve = start(&pair.far, &serve, "serves")?;
        let connect = start(&pair.near, &["connect", WAN, "--datapath", path], ": open")?;
        Ok(Session { connect, serve, _folder: folder })
    }
}

/// Mean round trip, seconds.
fn round_trip(from: &Namespace, means: &Means<'_>) -> Result<f64, Error> {
    let to = ADDRESSES[1].to_string();
    let ping =
        |count: &str| said(from.command("ping").args(["-q", "-c", count, "-i", INTERVAL, &to]), means.stop);
    ping(FIRST)?;
    mean_of(&String::from_utf8_lossy(&ping(PINGS)?))
        .ok_or_else(|| Error::Failed(format!("ping: no answer from {to}")))
}

/// Of `rtt min/avg/max/mdev = 0.022/0.026/0.120/0.009 ms`, in seconds.
fn mean_of(said: &str) -> Option<f64> {
    let times =
        said.lines().find_map(|line| line.split_once("= ").filter(|(name, _)| name.contains("/avg/")))?;
    Some(times.1.split('/').nth(1)?.parse::<f64>().ok()? / 1e3)
}

/// Proportional set size of a program, octets.
fn memory(program: &Staying) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", program.pid())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? * 1024.0)
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
