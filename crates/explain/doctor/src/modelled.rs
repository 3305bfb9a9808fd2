//! What the model of the receive path expects of a remedy that spreads frames over other CPUs.

use crate::Case;
use crate::case::ENOUGH_BETWEEN;
use crate::device::{self, Device};
use crate::facts::{Assumption, Model, Modelled};
use crate::finding::Remedy;
use crate::load;
use host::Basis;
use model::forecast::{self, Measured, Spreading, transferred};

/// What spreads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    /// RPS, to the CPUs that do not take the queue's interrupts.
    Rps,
    /// Steering in XDP, with the share for the receiving CPU that makes all have the same to do.
    Steering,
}

/// Devices whose frames arrive in socket buffers: what a program costs there was not counted.
const BUFFERED: [&str; 2] = ["veth", "tun"];
/// What a frame takes where that is not known; ratios do not depend on it.
const ANY: f64 = 1e-6;
/// Part of its time that a CPU has to receive for the time of a frame to be read off it, per cent.
const MEASURABLE: f64 = 5.0;

/// With what the model expects where software spreads the frames of a queue, which are all of one CPU now.
pub(crate) fn with(remedy: Remedy, device: &Device<'_>, queue: u32, by: By) -> Remedy {
    let uncounted =
        || by == By::Steering && device.driver_name().is_some_and(|name| BUFFERED.contains(&name));
    let model = match device::online(device.case).len() {
        0 | 1 => None,
        _ if !device.case.has_known_costs() => None,
        _ if uncounted() => Some(Model::Uncounted),
        _ => device.case.modelled(device, queue, by).map(Model::Expected),
    };
    Remedy { model, ..remedy }
}

/// The same where each queue gets a CPU of its own; `frames` are those of each queue, whose interrupts one CPU takes now.
pub(crate) fn with_a_cpu_each(remedy: Remedy, case: &Case<'_>, cpus: usize, frames: &[u64]) -> Remedy {
    let measured = Measured::of(forwards(case));
    let mut spread = vec![0.0; cpus];
    for (at, frames) in frames.iter().enumerate() {
        if let Some(cpu) = spread.get_mut(at % cpus.max(1)) {
            *cpu += *frames as f64;
        }
    }
    let rate = |received: &[f64]| transferred(measured, ANY, received, Spreading::Nothing);
    let expected = rate(&one_receives(cpus)).zip(rate(&spread)).map(|(now, then)| Modelled {
        times: then / now,
        packets_per_second: None,
        assumptions: vec![Assumption::InterruptsCountFrames, Assumption::CpusAlike],
    });
    Remedy { model: expected.map(Model::Expected), ..remedy }
}

fn one_receives(cpus: usize) -> Vec<f64> {
    let mut received = vec![0.0; cpus];
    if let Some(first) = received.first_mut() {
        *first = 1.0;
    }
    received
}

/// Whether the machine forwards; most of those that are judged are routers.
fn forwards(case: &Case<'_>) -> bool {
    case.snapshot().sysctls.get("net.ipv4.ip_forward").is_none_or(|seen| seen.get().trim() != "0")
}

/// For [`Case::modelled`], which keeps the answer.
pub(crate) fn simulate(device: &Device<'_>, queue: u32, by: By) -> Option<Modelled> {
    let case = device.case;
    let cpus = device::online(case).len();
    let coalesced = case.coalesces_pppoe(device);
    let measured = &match coalesced {
        true => Measured::coalesced(forwards(case), case.coalesces_steered() == Some(true)),
        false => *Measured::of(forwards(case)),
    };
    let received = one_receives(cpus);
    let (own, other) = match by {
        By::Rps => (0.0, 1.0),
        By::Steering => forecast::shares(measured.steer, cpus),
    };
    let others = if own > 0.0 { cpus } else { cpus - 1 };
    let flows = by_flow(device, others);
    let mut spread = vec![other; cpus];
    spread[0] = own;
    if let Some(flows) = &flows {
        // The flows' shares, among those that take any.
        let taking = spread.iter_mut().filter(|share| **share > 0.0);
        taking.zip(flows).for_each(|(share, flow)| *share *= flow);
    }
    let means = if by == By::Rps { Spreading::Rps(&spread) } else { Spreading::Steer(&spread) };
    let seconds = seconds_a_frame(device, queue);
    let rate = |means| transferred(measured, seconds.unwrap_or(ANY), &received, means);
    let (now, then) = (rate(Spreading::Nothing)?, rate(means)?);
    let assumptions = [
        Some(Assumption::WorkDivides { forwarded: forwards(case), coalesced }),
        flows.is_none().then_some(Assumption::FlowsAlike),
        seconds.map(Assumption::SecondsAFrame),
    ];
    Some(Modelled {
        times: then / now,
        packets_per_second: seconds.map(|_| (now, then)),
        assumptions: assumptions.into_iter().flatten().collect(),
    })
}

/// Frames of the sample by CPU, where software spreads its flows over so many; `None` without a sample that says
/// something.
fn by_flow(device: &Device<'_>, cpus: usize) -> Option<Vec<f64>> {
    let steered = device.case.steered(device, Some(u16::try_from(cpus).ok()?))?;
    let frames: u64 = steered.per_cpu.iter().map(|row| row.frames).sum();
    let by_cpu: Vec<f64> = steered.per_cpu.iter().map(|row| row.frames as f64).collect();
    (frames >= ENOUGH_BETWEEN && by_cpu.len() == cpus).then_some(by_cpu)
}

/// Seconds of the queue's CPU for a frame, where load and frames were taken between two samples.
fn seconds_a_frame(device: &Device<'_>, queue: u32) -> Option<f64> {
    let load = device.case.snapshot().cpus.load.get(&device.cpu_of(queue)?)?;
    let receiving = load::receiving_in_softirq(&load.value)?;
    let spread = device.case.spread(device).filter(|spread| spread.is_enough())?;
    let Basis::Between(_) = spread.shares.basis else { return None };
    let place = spread.queues.iter().position(|number| *number == queue)?;
    let rate = spread.shares.per_second(*spread.shares.counts.get(place)?)?;
    (receiving >= MEASURABLE && rate > 0.0).then(|| receiving / 100.0 / rate)
}
