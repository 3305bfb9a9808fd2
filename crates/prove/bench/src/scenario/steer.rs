//! `steer`: a router all of whose traffic arrives on one CPU, without steering, with RPS, and with `rxlane steer`.
//!
//! The line sends UDP frames of many flows from one CPU over a veth pair; the router's end receives on the same CPU, as a
//! router does behind a card that cannot hash what comes. It forwards them out of a second pair. What leaves is counted.
//!
//! Frames are of one PPPoE session, which `rxlane link` ends, since many machines lack the kernel's PPPoE; or plain ones,
//! which the kernel alone forwards.

mod line;

use super::pair::{self, spread_by_rps};
use super::program::Staying;
use super::report::{Factor, LeftOut, Levels, Metric};
use super::router::{self, Router, Way};
use super::verdict::Comparison;
use super::{Error, Means, Measured, Scenario, level, levels};
use crate::frames::Played;
use crate::namespace::{Folder, Namespace};
use crate::scene::ROUTER;
use crate::{pin, softnet};
use kernel::cpu::CpuSet;
use line::Line;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

/// CPUs of which the share is a metric of its own.
const MOST_CPUS: usize = 16;
/// What waits in the queues of other CPUs is forwarded, too.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
const WAYS: [&str; 4] = ["off", "rps", "rps-all", "xdp"];

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
            ("xdp", "rxlane steer over the other CPUs"),
        ];
        let frames = [("pppoe", "PPPoE"), ("plain", "plain frames")];
        vec![Factor::new("frames", &frames), Factor::new("way", &ways)]
    }

    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = vec![
            Metric::new("forwarded", "Packets that the router forwards", "packets/s", Some(true)),
            Metric::new("sent", "Packets that the line sends", "packets/s", None),
            Metric::new("busiest", "Share of the frames that the busiest CPU took", "", None),
        ];
        let of_cpus = self.cpus.iter().zip(CPU_SHARES).take(MOST_CPUS);
        metrics.extend(of_cpus.map(|(cpu, name)| {
            Metric::new(name, &format!("Share of the frames that CPU {cpu} took"), "", None)
        }));
        metrics
    }

    fn cells(&self) -> Vec<Levels> {
        let of = |frames| WAYS.map(|way| levels([("frames", frames), ("way", way)]));
        ["pppoe", "plain"].into_iter().flat_map(of).collect()
    }

    fn prepare(&mut self, _means: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(&["sh"])?;
        if self.others().is_empty() {
            return Err(Error::Lacks("this process may use one CPU: spreading takes two".to_owned()));
        }
        Ok(Vec::new())
    }

    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
        let receiver = Receiver::new(level(cell, "frames"), self.flows, means)?;
        let _steering = self.spread(&receiver, level(cell, "way"), means)?;
        let before = (receiver.forwarded()?, read_softnet()?);
        let sent = receiver.play(self.cpus.first().copied(), means)?;
        sleep(ON_ITS_WAY);
        let forwarded = receiver.forwarded()?.saturating_sub(before.0);
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
        let beside = |frames: &str, way: &str, other: &str| {
            let [cell, baseline] = [way, other].map(|way| levels([("frames", frames), ("way", way)]));
            Comparison { metric: "forwarded", cell, baseline }
        };
        let of = |frames| {
            let pairs = [("rps", "off"), ("rps-all", "off"), ("xdp", "off"), ("xdp", "rps")];
            pairs.map(|(way, other)| beside(frames, way, other))
        };
        ["pppoe", "plain"].into_iter().flat_map(of).collect()
    }
}

/// A router that receives on one CPU.
enum Receiver {
    Pppoe(Line),
    Plain(Box<Router>),
}

impl Receiver {
    fn new(frames: &str, flows: u16, means: &Means<'_>) -> Result<Receiver, Error> {
        match frames {
            "plain" => Router::new(flows).map(|router| Receiver::Plain(Box::new(router))),
            _ => Line::new(flows, means).map(Receiver::Pppoe),
        }
    }

    fn namespace(&self) -> &Namespace {
        match self {
            Receiver::Pppoe(line) => line.namespace(),
            Receiver::Plain(router) => router.namespace(),
        }
    }

    /// The class of its frames, as `rxlane steer` names it.
    fn class(&self) -> &'static str {
        match self {
            Receiver::Pppoe(_) => "pppoe",
            Receiver::Plain(_) => "plain",
        }
    }

    fn forwarded(&self) -> Result<u64, Error> {
        match self {
            Receiver::Pppoe(line) => line.forwarded(),
            Receiver::Plain(router) => router.forwarded(Way::There),
        }
    }

    fn play(&self, cpu: Option<u16>, means: &Means<'_>) -> Result<Played, Error> {
        match self {
            Receiver::Pppoe(line) => line.play(cpu, means),
            Receiver::Plain(router) => router.play(Way::There, None, cpu, means),
        }
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
    fn spread(&self, router: &Receiver, way: &str, means: &Means<'_>) -> Result<Option<Steering>, Error> {
        let others = self.others();
        match way {
            "rps" => spread_by_rps(router.namespace(), ROUTER, others).map(|()| None),
            "rps-all" => spread_by_rps(router.namespace(), ROUTER, &self.cpus).map(|()| None),
            "xdp" => {
                let folder = Folder::new()?;
                let cpus = CpuSet::new(others.iter().map(|cpu| u32::from(*cpu)));
                let cpus = cpus.map_err(|error| Error::Wrong(error.to_string()))?.list();
                let mut command = router.namespace().command(&means.rxlane);
                command.args(["steer", "up", ROUTER, "--classes", router.class(), "--cpus", &cpus]);
                command.args(["--seconds", "0", "--foreground", "--journal"]).arg(folder.path());
                let program = Staying::ready(&mut command, "is steered in", means.stop)?;
                Ok(Some(Steering { _program: program, _folder: folder }))
            }
            _ => Ok(None),
        }
    }
}

fn read_softnet() -> Result<softnet::Processed, Error> {
    softnet::read().map_err(|error| Error::Failed(format!("/proc/net/softnet_stat: {error}")))
}
