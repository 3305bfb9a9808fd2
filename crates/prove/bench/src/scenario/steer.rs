//! `steer`: a router all of whose traffic arrives on one CPU, without steering, with RPS, and with `rxlane steer`.
//!
//! The line sends UDP frames of many flows from one CPU over a veth pair; the router's end receives on the same CPU, as a
//! router does whose NIC cannot hash what arrives. It forwards them out of a second pair. What leaves is counted.
//!
//! Frames are of one PPPoE session, which `rxlane link` terminates, since many machines lack the kernel's PPPoE; or plain
//! ones, which the kernel alone forwards.

use super::design::{Comparison, Design, crossed, parameters};
use super::pair::{self, spread_by_rps};
use super::program::{Programs, Running};
use super::report::{Factor, LeftOut, Levels, MORE, Metric};
use super::router::{Lines, PAYLOAD, ROUTER, Router, Way};
use super::{Error, Measured, Scenario, Tools, level};
use crate::frames::Playing;
use crate::namespace::Folder;
use crate::{pin, softnet};
use kernel::cpu::CpuSet;
use std::thread::sleep;
use std::time::Duration;

/// What waits in the queues of other CPUs is forwarded, too.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
/// Names of the metrics, by the place of the CPU among those that may be used.
const CPU_SHARES: [&str; 16] = [
    "share_0", "share_1", "share_2", "share_3", "share_4", "share_5", "share_6", "share_7", "share_8",
    "share_9", "share_10", "share_11", "share_12", "share_13", "share_14", "share_15",
];

#[derive(Debug)]
pub struct Steer {
    flows: u16,
    /// CPUs that there are; the first receives.
    cpus: Vec<u16>,
}

impl Steer {
    pub fn new(flows: u16) -> Steer {
        Steer { flows, cpus: pin::allowed() }
    }

    fn others(&self) -> &[u16] {
        self.cpus.get(1..).unwrap_or_default()
    }

    fn spread(&self, router: &Router, cell: &Levels, tools: &Tools<'_>) -> Result<Option<Programs>, Error> {
        let others = self.others();
        match level(cell, "way") {
            "rps" => spread_by_rps(router.namespace(), ROUTER, others).map(|()| None),
            "rps-all" => spread_by_rps(router.namespace(), ROUTER, &self.cpus).map(|()| None),
            "xdp" => {
                let folder = Folder::new()?;
                let cpus = CpuSet::new(others.iter().map(|cpu| u32::from(*cpu)));
                let cpus = cpus.map_err(|error| Error::Wrong(error.to_string()))?.list();
                let mut command = router.namespace().command(&tools.rxlane);
                command.args(["steer", "up", ROUTER, "--classes", level(cell, "frames"), "--cpus", &cpus]);
                command.args(["--seconds", "0", "--foreground", "--journal"]).arg(folder.path());
                let program = Running::ready(&mut command, "is steered in", tools.stop)?;
                Ok(Some((vec![program], folder)))
            }
            _ => Ok(None),
        }
    }
}

impl Scenario for Steer {
    fn design(&self) -> Design {
        // The levels of `frames` are classes of `rxlane steer`.
        let factors = vec![
            Factor::new("frames", &[("pppoe", "PPPoE"), ("plain", "plain frames")]),
            Factor::new(
                "way",
                &[
                    ("off", "no steering"),
                    ("rps", "RPS over the other CPUs"),
                    ("rps-all", "RPS over all CPUs"),
                    ("xdp", "rxlane steer over the other CPUs"),
                ],
            ),
        ];
        let mut metrics = vec![
            Metric::new("forwarded", "Packets that the router forwards", "packets/s", MORE),
            Metric::new("sent", "Packets that the line sends", "packets/s", None),
            Metric::new("busiest", "Share of the frames that the busiest CPU took", "", None),
        ];
        metrics.extend(self.cpus.iter().zip(CPU_SHARES).map(|(cpu, name)| {
            Metric::new(name, &format!("Share of the frames that CPU {cpu} took"), "", None)
        }));
        let pairs = [("rps", "off"), ("rps-all", "off"), ("xdp", "off"), ("xdp", "rps")];
        let compare = |frames| {
            pairs.map(|(way, other)| {
                let [cell, baseline] = [way, other].map(|way| format!("way={way}"));
                Comparison::new("forwarded", &cell, &baseline, frames)
            })
        };
        Design {
            name: "steer",
            title: "What spreading brings a router that receives on one CPU",
            parameters: parameters([("flows", self.flows.to_string()), ("payload", PAYLOAD.to_string())]),
            cells: crossed(&factors),
            comparisons: ["frames=pppoe", "frames=plain"].into_iter().flat_map(compare).collect(),
            factors,
            metrics,
        }
    }

    fn prepare(&mut self, _tools: &Tools<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(&["sh"])?;
        if self.others().is_empty() {
            return Err(Error::Lacks("this process may use one CPU: spreading takes two".to_owned()));
        }
        Ok(Vec::new())
    }

    fn measure(&self, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error> {
        let lines = if level(cell, "frames") == "pppoe" { Lines::Session } else { Lines::Two };
        let router = Router::new(lines, &[], self.flows, tools)?;
        let _steering = self.spread(&router, cell, tools)?;
        let before = (router.forwarded(Way::There)?, read_softnet()?);
        let cpus = self.cpus.first().copied().into_iter().collect();
        let playing = Playing { cpus, length: Some(tools.seconds), ..Playing::default() };
        let sent = router.play(Way::There, playing, tools)?;
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
        measured.extend(self.cpus.iter().zip(CPU_SHARES).map(|(cpu, name)| {
            let frames = taken.iter().find(|(number, _)| *number == u32::from(*cpu));
            (name, share(frames.map_or(0, |(_, frames)| *frames)))
        }));
        Ok(measured)
    }
}

fn read_softnet() -> Result<softnet::Processed, Error> {
    softnet::read().map_err(|error| Error::Failed(format!("/proc/net/softnet_stat: {error}")))
}
