//! What distribution of frames to other CPUs is expected to bring: the model of the receive path, run with what was observed.
//!
//! [`crate::recommend`] chooses by the work of the busiest CPU. Here the same costs are simulated, with the shares in which the CPUs
//! receive, the shares of the plan, and the flows of the sample: how many packets a second come through without loss.

use crate::check::{self, Checked, Known, Request};
use crate::observation::Observation;
use crate::plan::Plan;
use crate::recommend::Evidence;
use crate::ways::Use;
use crate::weights;
use doctor::Case;
use host::Interface;
use model::forecast::{Spreading, transferred};
use serde::Serialize;

/// Packets a second without loss, with nothing, RPS and steering.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Where a frame stays on the CPU that receives it; `null`: the time that a frame takes is not known, and only ratios are.
    pub packets_per_second: Option<f64>,
    /// RPS; `null`: unknown.
    pub rps: Option<Gain>,
    /// Steering; `null`: unknown.
    pub steer: Option<Gain>,
    pub assumptions: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// How many times as many packets as with nothing.
    pub times: f64,
    /// Packets a second; `null`: unknown.
    pub packets_per_second: Option<f64>,
}

/// Frames of a sample below which it says nothing of flows.
const ENOUGH: u64 = 1000;
/// Part of its time that the receiving CPU has to receive for the time of a frame to be read off it, per cent.
const MEASURABLE: f64 = 5.0;
/// What a frame takes where that is not known; ratios do not depend on it.
const ANY: f64 = 1e-6;

/// What is expected. `None` where frames are steered already, the CPUs that receive are not known, there is one CPU, or the plan
/// has no targets.
pub fn expected(
    request: &Request,
    observation: &Observation,
    known: &Known,
    checked: &Checked,
) -> Result<Option<Expected>, check::Error> {
    let case = Case::new(&observation.snapshot, observation.traffic.as_ref(), Some(&request.interface))?;
    let interface = observation.snapshot.interface(&request.interface);
    let (Some(interface), Ok(plan), None) = (interface, &checked.plan, &known.program) else {
        return Ok(None);
    };
    Ok(simulated(&case, interface, request, known.forwards, &checked.evidence, plan))
}

fn simulated(
    case: &Case<'_>,
    interface: &Interface,
    request: &Request,
    forwards: bool,
    evidence: &Evidence,
    plan: &Plan,
) -> Option<Expected> {
    let mut cpus = evidence.online.clone();
    cpus.extend(evidence.receiving.iter().map(|receiving| receiving.cpu));
    cpus.sort_unstable();
    cpus.dedup();
    if evidence.receiving.is_empty() || cpus.len() < 2 || plan.weights.is_empty() {
        return None;
    }
    if !case.has_known_costs() {
        return None;
    }
    let measured = &evidence.means.measured(forwards);
    let received: Vec<f64> = cpus.iter().map(|&cpu| weights::received(cpu, &evidence.receiving)).collect();
    let known = seconds_a_frame(case, evidence);
    let seconds = known.unwrap_or(ANY);
    let now = transferred(measured, seconds, &received, Spreading::Nothing)?;
    let gain = |spreading: Spreading<'_>| {
        let found = transferred(measured, seconds, &received, spreading)?;
        Some(Gain { times: found / now, packets_per_second: known.map(|_| found) })
    };
    let targets: Vec<(u32, f64)> = plan.weights.iter().map(|weight| (weight.cpu, weight.share)).collect();
    let steered = on_cpus(&cpus, &uneven(case, interface, &targets));
    let rps = on_cpus(&cpus, &uneven(case, interface, &mask(evidence, &cpus)));
    let why_not = not_counted(request, evidence);
    Some(Expected {
        packets_per_second: known.map(|_| now),
        rps: gain(Spreading::Rps(&rps)),
        steer: if why_not.is_none() { gain(Spreading::Steer(&steered)) } else { None },
        assumptions: assumptions(
            case,
            interface,
            forwards,
            known,
            why_not,
            evidence.means.pppoe_gro == Use::On,
        ),
    })
}

/// Seconds of the CPU that receives most for a frame, as it spent them during the observation.
fn seconds_a_frame(case: &Case<'_>, evidence: &Evidence) -> Option<f64> {
    let busiest = evidence.busiest?;
    let load = busiest.load?;
    let receiving = load.interrupt + load.softirq?;
    let interval = case.snapshot().interval?.as_secs_f64();
    let frames = evidence.frames.filter(|frames| *frames >= ENOUGH)? as f64 * busiest.share;
    (receiving >= MEASURABLE && frames > 0.0 && !evidence.rps).then(|| receiving / 100.0 * interval / frames)
}

/// CPUs that a mask of RPS should have, alike: those that do not receive, where there are such.
fn mask(evidence: &Evidence, cpus: &[u32]) -> Vec<(u32, f64)> {
    let receives = |cpu: u32| weights::received(cpu, &evidence.receiving) > 0.0;
    let others: Vec<u32> = cpus.iter().copied().filter(|&cpu| !receives(cpu)).collect();
    let mask = if others.is_empty() { cpus.to_vec() } else { others };
    let share = 1.0 / mask.len() as f64;
    mask.into_iter().map(|cpu| (cpu, share)).collect()
}

/// The shares as the flows of the sample make them, which do not divide evenly.
fn uneven(case: &Case<'_>, interface: &Interface, targets: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let Some(frames) = by_flow(case, interface, targets.len()) else { return targets.to_vec() };
    targets.iter().zip(frames).map(|((cpu, share), frames)| (*cpu, share * frames)).collect()
}

/// Frames of the sample by CPU, where flows are distributed to so many; `None` without a sample that says something.
fn by_flow(case: &Case<'_>, interface: &Interface, cpus: usize) -> Option<Vec<f64>> {
    let steered = case.steered(interface, Some(u16::try_from(cpus).ok()?))?;
    let frames: u64 = steered.per_cpu.iter().map(|row| row.frames).sum();
    let found: Vec<f64> = steered.per_cpu.iter().map(|row| row.frames as f64).collect();
    (frames >= ENOUGH && found.len() == cpus).then_some(found)
}

fn on_cpus(cpus: &[u32], shares: &[(u32, f64)]) -> Vec<f64> {
    let of = |cpu: &u32| shares.iter().find(|(one, _)| one == cpu).map_or(0.0, |(_, share)| *share);
    cpus.iter().map(of).collect()
}

fn not_counted(request: &Request, evidence: &Evidence) -> Option<&'static str> {
    if evidence.buffered {
        return Some(
            "What steering costs where frames arrive in socket buffers (veth, TUN) is unknown to the model.",
        );
    }
    if request.generic || evidence.native == Some(false) {
        return Some("What steering costs in generic mode is unknown to the model.");
    }
    None
}

fn assumptions(
    case: &Case<'_>,
    interface: &Interface,
    forwards: bool,
    seconds: Option<f64>,
    why_not: Option<&'static str>,
    coalesced: bool,
) -> Vec<String> {
    let what = if forwards { "forwarded" } else { "delivered" };
    let kernel = match coalesced {
        true => "Linux 7.3 with PPPoE GRO (docs/measurements/kernel-paths.md)",
        false => "Linux 6.12 (docs/measurements/steering.md)",
    };
    let mut assumptions = vec![format!(
        "Work for a frame divides as was counted for PPPoE TCP that is {what}, with igb and {kernel}."
    )];
    assumptions.push(match seconds {
        Some(seconds) => format!(
            "A frame takes {:.2} µs, as all interrupts and soft interrupts of the receiving CPU together took during the look.",
            seconds * 1e6
        ),
        None => "How long a frame takes here is unknown (it shows while the CPU that receives is busy and RPS is off): only ratios are \
                 known."
            .to_owned(),
    });
    assumptions.push(match by_flow(case, interface, 2) {
        Some(_) => "Flows have the shares that they have in the sample.".to_owned(),
        None => "Flows are many and alike; with few or uneven ones less is gained.".to_owned(),
    });
    assumptions.extend(why_not.map(str::to_owned));
    assumptions
}
