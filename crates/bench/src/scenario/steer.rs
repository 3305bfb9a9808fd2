//! `steer`: a router all of whose traffic arrives on one CPU, without steering, with RPS, and with `rxlane steer`.
//!
//! The line sends UDP frames of many flows from one CPU over a veth pair; the router's end receives on the same CPU, as a
//! router does behind a card that cannot hash what comes. It forwards them out of a second pair. What leaves is counted.

use super::pair::{self, spread_by_rps};
use super::program::Staying;
use super::report::{Factor, LeftOut, Levels, Metric};
use super::router::{self, Router, Way};
use super::verdict::Comparison;
use super::{Error, Means, Measured, Scenario, level, levels};
use crate::namespace::Folder;
use crate::scene::ROUTER;
use crate::{pin, softnet};
use host::setting::CpuSet;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

/// CPUs of which the share is a metric of its own.
const MOST_CPUS: usize = 16;
/// What waits in the queues of other CPUs is forwarded, too.
const ON_ITS_WAY: Duration = Duration::from_millis(50);

/// The scenario.
#[derive(Debug)]
pub struct Steer {
    /// Flows on the line.
    pub flows: u16,
    /// CPUs that there are; the first receives.
    cpus: Vec<u16>,
}

impl Steer {
    /// With so many flows.
    pub fn new(flows: u16) -> Steer {
        Steer { flows, cpus: pin::allowed() }
    }

    fn others(&self) -> &[u16] {
        self.cpus.get(1..).unwrap_or_default()
    }
}

impl Scenario for Steer {
    fn name(&self) -> &'static str {
        "steer"
    }

    fn title(&self) -> &'static str {
        "What spreading brings a router that receives on one CPU"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        [("flows", self.flows.to_string()), ("payload", router::PAYLOAD.to_string())]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    fn factors(&self) -> Vec<Factor> {
        let ways = [
            ("off", "no steering"),
            ("rps", "RPS over the other CPUs"),
            ("rps-all", "RPS over all CPUs"),
            ("xdp", "rxlane steer"),
        ];
        vec![Factor::new("way", &ways)]
    }

    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = vec![
            Metric::new("forwarded", "Packets that the router forwards", "packets/s", Some(true)),
            Metric::new("sent", "Packets that the line sends", "packets/s", None),
            Metric::new("busiest", "Share of the frames that the busiest CPU took", "", Some(false)),
        ];
        let of_cpus = self.cpus.iter().zip(CPU_SHARES).take(MOST_CPUS);
        metrics.extend(of_cpus.map(|(cpu, name)| {
            Metric::new(name, &format!("Share of the frames that CPU {cpu} took"), "", None)
        }));
        metrics
    }

    fn cells(&self) -> Vec<Levels> {
        ["off", "rps", "rps-all", "xdp"].map(|way| levels([("way", way)])).to_vec()
    }

    fn prepare(&mut self, _means: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(&[])?;
        if self.others().is_empty() {
            return Err(Error::Lacks("this process may use one CPU: spreading takes two".to_owned()));
        }
        Ok(Vec::new())
    }

    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
        let router = Router::new(self.flows)?;
        let _steering = self.spread(&router, level(cell, "way"), means)?;
        let before = (router.forwarded(Way::There)?, read_softnet()?);
        let sent = router.play(Way::There, None, self.cpus.first().copied(), means)?;
        sleep(ON_ITS_WAY);
        let forwarded = router.forwarded(Way::There)?.saturating_sub(before.0);
        let taken = read_softnet()?.since(&before.1);
        let seconds = sent.time.as_secs_f64().max(1e-9);
        let all: u64 = taken.iter().map(|(_, frames)| frames).sum();
        let share = |frames: u64| frames as f64 / all.max(1) as f64;
        let busiest = taken.iter().map(|(_, frames)| share(*frames)).fold(0.0, f64::max);
        let mut measured = vec![
            ("forwarded", forwarded as f64 / seconds),
            ("sent", sent.counts.packets as f64 / seconds),
            ("busiest", busiest),
        ];
        for (cpu, name) in self.cpus.iter().zip(CPU_SHARES) {
            let frames = taken.iter().find(|(number, _)| number == &u32::from(*cpu));
            measured.push((name, share(frames.map_or(0, |(_, frames)| *frames))));
        }
        Ok(measured)
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let beside = |way: &str, other: &str| Comparison {
            metric: "forwarded",
            cell: levels([("way", way)]),
            baseline: levels([("way", other)]),
        };
        vec![beside("rps", "off"), beside("rps-all", "off"), beside("xdp", "off"), beside("xdp", "rps")]
    }
}

/// Names of the metrics, by the place of the CPU among those that may be used.
const CPU_SHARES: [&str; MOST_CPUS] = [
    "share_0", "share_1", "share_2", "share_3", "share_4", "share_5", "share_6", "share_7", "share_8",
    "share_9", "share_10", "share_11", "share_12", "share_13", "share_14", "share_15",
];

/// Taken back when it is dropped, the program before its folder.
struct Steering {
    _program: Staying,
    _folder: Folder,
}

impl Steer {
    fn spread(&self, router: &Router, way: &str, means: &Means<'_>) -> Result<Option<Steering>, Error> {
        let others = self.others();
        match way {
            "rps" => spread_by_rps(router.namespace(), ROUTER, others).map(|()| None),
            "rps-all" => spread_by_rps(router.namespace(), ROUTER, &self.cpus).map(|()| None),
            "xdp" => {
                let folder = Folder::new()?;
                let cpus = CpuSet::new(others.iter().map(|cpu| u32::from(*cpu)));
                let cpus = cpus.map_err(|error| Error::Wrong(error.to_string()))?.list();
                let mut command = router.namespace().command(&means.rxlane);
                command.args(["steer", "up", ROUTER, "--classes", "plain", "--cpus", &cpus]);
                command.args(["--seconds", "0", "--foreground", "--journal"]).arg(folder.path());
                let program = Staying::ready(&mut command, "is steered in")?;
                Ok(Some(Steering { _program: program, _folder: folder }))
            }
            _ => Ok(None),
        }
    }
}

fn read_softnet() -> Result<softnet::Processed, Error> {
    softnet::read().map_err(|error| Error::Failed(format!("/proc/net/softnet_stat: {error}")))
}
