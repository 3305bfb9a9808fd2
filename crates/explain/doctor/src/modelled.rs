//! What the model of the receive path expects of a remedy that deals frames to other CPUs.

use crate::case::ENOUGH_BETWEEN;
use crate::report::{Modelled, Remedy};
use crate::{Case, steering, strain};
use host::{Basis, Interface};
use model::forecast::{self, Measured, Spreading, transferred};

/// What deals.
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

/// With what the model expects where the frames of a queue, all of one CPU now, are dealt on.
pub(crate) fn with(mut remedy: Remedy, case: &Case<'_>, interface: &Interface, queue: u32, by: By) -> Remedy {
    if steering::online(case).len() < 2 {
        return remedy;
    }
    let driver = interface.driver.as_ref().map(|driver| driver.value.as_str());
    if by == By::Steering && driver.is_some_and(|driver| BUFFERED.contains(&driver)) {
        remedy.expected.push_str(
            " What the model expects of it is unknown: what a program costs where frames arrive in socket buffers was not \
             counted.",
        );
        return remedy;
    }
    let Some(modelled) = case.modelled(interface, queue, by) else { return remedy };
    remedy.expected.push_str(&sentence(&modelled));
    remedy.modelled = Some(modelled);
    remedy
}

/// The same where each queue gets a CPU of its own; `frames` are those of each queue, whose interrupts one CPU takes now.
pub(crate) fn with_a_cpu_each(mut remedy: Remedy, case: &Case<'_>, cpus: usize, frames: &[u64]) -> Remedy {
    let measured = Measured::of(forwards(case));
    let mut dealt = vec![0.0; cpus];
    for (at, frames) in frames.iter().enumerate() {
        if let Some(cpu) = dealt.get_mut(at % cpus.max(1)) {
            *cpu += *frames as f64;
        }
    }
    let rate = |received: &[f64]| transferred(measured, ANY, received, Spreading::Nothing);
    let (Some(now), Some(then)) = (rate(&one_receives(cpus)), rate(&dealt)) else { return remedy };
    let modelled = Modelled {
        times: then / now,
        packets_per_second_now: None,
        packets_per_second: None,
        assumptions: vec![
            "the vectors' interrupts tell how many frames each queue has".to_owned(),
            "a frame takes as long on every CPU".to_owned(),
        ],
    };
    remedy.expected.push_str(&sentence(&modelled));
    remedy.modelled = Some(modelled);
    remedy
}

fn sentence(modelled: &Modelled) -> String {
    let Modelled { times, packets_per_second_now, packets_per_second, assumptions } = modelled;
    let rates = match (packets_per_second_now, packets_per_second) {
        (Some(now), Some(then)) => format!(
            " (some {} now, {} then)",
            format::thousands(rounded(*now)),
            format::thousands(rounded(*then))
        ),
        _ => String::new(),
    };
    format!(
        " The model expects {times:.1} times the packets a second without loss{rates}, if {}.",
        assumptions.join(", and ")
    )
}

/// To two digits: more would promise what no model keeps.
fn rounded(rate: f64) -> u64 {
    let unit = 10f64.powf(rate.max(1.0).log10().floor() - 1.0).max(1.0);
    ((rate / unit).round() * unit) as u64
}

fn one_receives(cpus: usize) -> Vec<f64> {
    let mut received = vec![0.0; cpus];
    if let Some(first) = received.first_mut() {
        *first = 1.0;
    }
    received
}

/// Whether the machine forwards; a router is what most are asked about.
fn forwards(case: &Case<'_>) -> bool {
    case.snapshot().sysctls.get("net.ipv4.ip_forward").is_none_or(|seen| seen.get().trim() != "0")
}

/// Asked by [`Case::modelled`], which keeps the answer.
pub(crate) fn simulate(case: &Case<'_>, interface: &Interface, queue: u32, by: By) -> Option<Modelled> {
    let cpus = steering::online(case).len();
    let measured = Measured::of(forwards(case));
    let received = one_receives(cpus);
    let (own, other) = match by {
        By::Rps => (0.0, 1.0),
        By::Steering => forecast::shares(measured.steer, cpus),
    };
    let others = if own > 0.0 { cpus } else { cpus - 1 };
    let flows = by_flow(case, interface, others);
    let mut dealt = vec![other; cpus];
    dealt[0] = own;
    if let Some(flows) = &flows {
        // The flows' shares, among those that take any.
        let taking = dealt.iter_mut().filter(|share| **share > 0.0);
        taking.zip(flows).for_each(|(share, flow)| *share *= flow);
    }
    let spreading = if by == By::Rps { Spreading::Rps(&dealt) } else { Spreading::Steer(&dealt) };
    let known = seconds_a_frame(case, interface, queue);
    let rate = |spreading| transferred(measured, known.unwrap_or(ANY), &received, spreading);
    let (now, then) = (rate(Spreading::Nothing)?, rate(spreading)?);
    let what = if forwards(case) { "forwarded" } else { "delivered" };
    let mut assumptions =
        vec![format!("work for a frame that is {what} divides as was counted with igb on Linux 6.12")];
    if flows.is_none() {
        assumptions.push("flows are many and alike".to_owned());
    }
    if let Some(seconds) = known {
        assumptions.push(format!("a frame takes {:.2} µs as between the samples", seconds * 1e6));
    }
    Some(Modelled {
        times: then / now,
        packets_per_second_now: known.map(|_| now),
        packets_per_second: known.map(|_| then),
        assumptions,
    })
}

/// Frames of the sample by CPU, where its flows are dealt to so many; `None` without a sample that says something.
fn by_flow(case: &Case<'_>, interface: &Interface, cpus: usize) -> Option<Vec<f64>> {
    let steered = case.steered(interface, Some(u16::try_from(cpus).ok()?))?;
    let frames: u64 = steered.per_cpu.iter().map(|row| row.frames).sum();
    let by_cpu: Vec<f64> = steered.per_cpu.iter().map(|row| row.frames as f64).collect();
    (frames >= ENOUGH_BETWEEN && by_cpu.len() == cpus).then_some(by_cpu)
}

/// Seconds of the queue's CPU for a frame, where load and frames were taken between two samples.
fn seconds_a_frame(case: &Case<'_>, interface: &Interface, queue: u32) -> Option<f64> {
    let cpu = steering::cpu_of_queue(case, interface, queue)?;
    let receiving = strain::receiving_in_softirq(&case.snapshot().cpus.load.get(&cpu)?.value)?;
    let spread = case.spread(interface).filter(|spread| spread.is_enough())?;
    let Basis::Between(_) = spread.shares.basis else { return None };
    let place = spread.queues.iter().position(|number| *number == queue)?;
    let rate = spread.shares.per_second(*spread.shares.counts.get(place)?)?;
    (receiving >= MEASURABLE && rate > 0.0).then(|| receiving / 100.0 / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_two_digits() {
        for (rate, expected) in [(1_234_567.0, 1_200_000), (98_765.0, 99_000), (7.0, 7), (0.0, 0)] {
            assert_eq!(rounded(rate), expected);
        }
    }
}
