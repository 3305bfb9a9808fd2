//! Whether steering is worth it: an answer with its reasons, from an observation of the machine under its load.
//!
//! The baseline is not "off" but RPS, which costs nothing to try. Steering is recommended where it leaves the busiest
//! CPU with clearly less work than RPS would ([`WORTH`]); "nothing to do" where no CPU is the limit, where the device
//! spreads the traffic already, or where one flow is most of it, which nothing can spread.

use crate::ways::{self, Means, Spread, Way};
use crate::weights::{self, Receiving, Work};
use host::Load;
use model::forecast::Measured;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Steer,
    Rps,
    /// What the kernel has: PPPoE GRO, a flowtable, either with RPS or without.
    Kernel,
    /// `rxlane fastpath`.
    Fastpath,
    Nothing,
    Unknown,
    /// It is steered: what a look shows is what steering left.
    Steered,
}

impl Answer {
    pub const fn words(self) -> &'static str {
        match self {
            Answer::Steer => "steer",
            Answer::Rps => "RPS is enough",
            Answer::Kernel => "the kernel's own way is better",
            Answer::Fastpath => "the fast path is better",
            Answer::Nothing => "nothing to do",
            Answer::Unknown => "unknown",
            Answer::Steered => "steered already",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    pub answer: Answer,
    /// Sentences, where whoever prints the recommendation has made them.
    pub reasons: Vec<String>,
    #[serde(skip)]
    pub why: Vec<Reason>,
    /// What the busiest CPU would have to do; `None` where the CPUs that receive are not known.
    pub predicted: Option<Prediction>,
    /// The way that is recommended, where there is more than RPS and steering.
    pub way: Option<Way>,
    /// Every way that was compared; empty where there is nothing besides RPS and steering.
    pub ways: Vec<Way>,
}

/// Why an answer is what it is. Shares are 0 to 1, times per cent.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    OneCpu,
    DeviceSpreads,
    /// So small a share of the sampled frames is of the selected classes.
    FewSelected(f64),
    /// The CPU that receives most is idle for so much of its time.
    Idle(u32, f64),
    /// The CPU that receives most is full, and receives for so much of its time.
    OtherWork(u32, f64),
    OneFlow,
    FewFrames(u64),
    NotCounted,
    ReceiverUnknown,
    /// The same, since CPUs count frames for the whole machine and other network namespaces bring most.
    OtherNamespaces,
    /// A CPU receives such a share of the frames, and is idle for so much of its time.
    Receives(BusiestCpu),
    NoNative,
    Buffered,
    /// With so many CPUs RPS and steering leave the busiest one about the same work.
    TooLittle(usize, Prediction),
    Leaves(Prediction),
    /// With so many CPUs the kernel's way is as good as the best with steering, or better; or the fast path as the best without.
    KernelWay(usize, Way, Option<Way>),
    /// With so many CPUs steering is better than what the kernel has; the best of that, too.
    SteerWay(usize, Way, Option<Way>),
    /// The interface is steered, attached under another name where one stands here.
    Steered(String, Option<String>),
}

/// Work of the busiest CPU for an average frame, as part of what it is with neither RPS nor steering.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// With RPS; `None` where no measurement says how much of the stack's work RPS leaves behind.
    pub rps: Option<f64>,
    pub steer: f64,
}

/// What work for a frame costs where, in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// All of it, on the one CPU that receives, with neither RPS nor steering.
    pub now: f64,
    /// With steering: more in all than `now`, for the handing over and a second poll.
    pub steer: Work,
    /// With RPS; `None`: not measured.
    pub rps: Option<Work>,
}

impl Costs {
    /// Those of a machine that forwards, or delivers to its own sockets, as they were counted.
    pub const fn of(forwards: bool) -> Costs {
        Costs::measured(Measured::of(forwards))
    }

    pub const fn measured(measured: &Measured) -> Costs {
        let Measured { now, steer, rps } = *measured;
        Costs { now, steer: Work::measured(steer), rps: Some(Work::measured(rps)) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusiestCpu {
    pub cpu: u32,
    /// Its part of the received frames, 0 to 1.
    pub share: f64,
    pub load: Option<Load>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub online: Vec<u32>,
    pub targets: Vec<u32>,
    /// CPUs that receive, with their parts of the frames; empty: unknown.
    pub receiving: Vec<Receiving>,
    pub busiest: Option<BusiestCpu>,
    /// Frames that arrived during the observation; `None`: not counted.
    pub frames: Option<u64>,
    /// Whether most frames that the machine's CPUs took up are of no interface of this network namespace.
    pub elsewhere: bool,
    /// Part of the sampled IP frames whose class would be steered; `None`: no sample.
    pub steerable: Option<f64>,
    /// Equivalent number of evenly loaded CPUs, the sample's flows distributed; `None`: no sample, or a small one.
    pub worth: Option<f64>,
    pub selected: bool,
    pub native: Option<bool>,
    /// Whether frames arrive in socket buffers, as on the end of a veth pair or a TUN device.
    pub buffered: bool,
    pub rps: bool,
    pub forwards: bool,
    pub costs: Costs,
    /// What the kernel has besides RPS.
    pub means: Means,
}

/// How much less work on the busiest CPU than with RPS makes steering worth it. Measurements of the same thing differ
/// by less.
pub const WORTH: f64 = 1.3;
/// Frames during a look below which its distribution says nothing.
const ENOUGH: u64 = 1000;
/// Idle time above which a CPU is not the limit, per cent.
const ROOM: f64 = 30.0;
/// Part of its time that a CPU without idle time must receive for receiving to be what fills it, per cent.
const RECEIVING: f64 = 50.0;
/// Evenly used CPUs below which the flows are one flow.
const ONE_FLOW: f64 = 1.3;
/// Part of the frames below which steering them changes little.
const LITTLE: f64 = 0.1;

/// The answer for an interface that rxlane steers, attached as it was called then.
pub fn steered(interface: &str, attached_as: &str) -> Recommendation {
    let formerly = Some(attached_as).filter(|name| *name != interface).map(str::to_owned);
    let why = vec![Reason::Steered(interface.to_owned(), formerly)];
    let (reasons, ways) = (Vec::new(), Vec::new());
    Recommendation { answer: Answer::Steered, reasons, why, predicted: None, way: None, ways }
}

pub fn recommend(evidence: &Evidence) -> Recommendation {
    let predicted = predict(evidence);
    let ways = ways::ways(evidence);
    let settled = no_use(evidence)
        .map(|reason| (Answer::Nothing, reason))
        .or_else(|| unknown(evidence).map(|reason| (Answer::Unknown, reason)));
    let way = match &settled {
        None => ways::best(&ways, evidence.native != Some(false)),
        // What nothing can spread can be less all the same.
        Some((_, Reason::OneFlow)) if is_busy(evidence) => ways.iter().find(|way| way.fastpath).copied(),
        Some(_) => None,
    };
    let (answer, why) = match (settled, way) {
        (Some((_, reason)), Some(way)) => {
            let (answer, why) = by_way(evidence, way, &ways);
            (answer, why.into_iter().chain([reason]).collect())
        }
        (Some((answer, reason)), None) => (answer, vec![reason]),
        (None, Some(way)) => by_way(evidence, way, &ways),
        (None, None) => worth(evidence, predicted),
    };
    Recommendation { answer, reasons: Vec::new(), why, predicted, way, ways }
}

/// Why nothing is to be done, if so.
fn no_use(evidence: &Evidence) -> Option<Reason> {
    if evidence.online.len() < 2 {
        return Some(Reason::OneCpu);
    }
    if !evidence.selected {
        return Some(Reason::DeviceSpreads);
    }
    if !is_enough(evidence) {
        return None;
    }
    if let Some(part) = evidence.steerable.filter(|part| *part < LITTLE) {
        return Some(Reason::FewSelected(part));
    }
    if let Some(BusiestCpu { cpu, load: Some(load), .. }) = evidence.busiest {
        if load.idle >= ROOM {
            return Some(Reason::Idle(cpu, load.idle));
        }
        let received = receiving(&load);
        if received < RECEIVING && load.idle < 10.0 {
            return Some(Reason::OtherWork(cpu, received));
        }
    }
    evidence.worth.is_some_and(|worth| worth < ONE_FLOW).then_some(Reason::OneFlow)
}

/// Whether the CPU that receives most is known to have no time left.
fn is_busy(evidence: &Evidence) -> bool {
    evidence.busiest.and_then(|busiest| busiest.load).is_some_and(|load| load.idle < ROOM)
}

fn receiving(load: &Load) -> f64 {
    load.interrupt + load.softirq.unwrap_or(load.system)
}

fn is_enough(evidence: &Evidence) -> bool {
    evidence.frames.is_some_and(|frames| frames >= ENOUGH)
}

/// Why it is unknown, if so.
fn unknown(evidence: &Evidence) -> Option<Reason> {
    match evidence.frames {
        Some(frames) if frames < ENOUGH => Some(Reason::FewFrames(frames)),
        None => Some(Reason::NotCounted),
        Some(_) if evidence.busiest.is_some() => None,
        Some(_) if evidence.elsewhere => Some(Reason::OtherNamespaces),
        Some(_) => Some(Reason::ReceiverUnknown),
    }
}

/// The answer where there is more than RPS and steering.
fn by_way(evidence: &Evidence, way: Way, ways: &[Way]) -> (Answer, Vec<Reason>) {
    let least = |is_such: fn(&&Way) -> bool| {
        ways.iter().filter(is_such).min_by(|a, b| a.busiest.total_cmp(&b.busiest)).copied()
    };
    let steered = || least(|way| way.spreading == Spread::Steer);
    let cpus = evidence.online.len();
    let (answer, decisive) = match way.spreading {
        _ if way.fastpath => (Answer::Fastpath, Reason::KernelWay(cpus, way, least(|way| !way.fastpath))),
        Spread::Steer => {
            (Answer::Steer, Reason::SteerWay(cpus, way, least(|way| way.spreading != Spread::Steer)))
        }
        Spread::Nothing if evidence.means.is_used(way) => {
            (Answer::Nothing, Reason::KernelWay(cpus, way, steered()))
        }
        Spread::Rps if !way.pppoe_gro && !way.flowtable => {
            (Answer::Rps, Reason::KernelWay(cpus, way, steered()))
        }
        _ => (Answer::Kernel, Reason::KernelWay(cpus, way, steered())),
    };
    let no_native = (evidence.native == Some(false)).then_some(Reason::NoNative);
    let receives = evidence.busiest.map(Reason::Receives);
    (answer, [Some(decisive), no_native, receives].into_iter().flatten().collect())
}

fn worth(evidence: &Evidence, predicted: Option<Prediction>) -> (Answer, Vec<Reason>) {
    let mut reasons: Vec<Reason> = evidence.busiest.map(Reason::Receives).into_iter().collect();
    let decisive = match predicted {
        _ if evidence.native == Some(false) => Reason::NoNative,
        _ if evidence.buffered => Reason::Buffered,
        Some(found @ Prediction { rps: Some(rps), steer }) if rps < steer * WORTH => {
            Reason::TooLittle(evidence.online.len(), found)
        }
        found => {
            reasons.extend(found.map(Reason::Leaves));
            return (Answer::Steer, reasons);
        }
    };
    reasons.insert(0, decisive);
    (Answer::Rps, reasons)
}

/// What the busiest CPU would have to do as part of what it has now.
fn predict(evidence: &Evidence) -> Option<Prediction> {
    let (Prediction { rps, steer }, now) = busiest_with(evidence, evidence.costs, 1.0)?;
    Some(Prediction { rps: rps.map(|rps| rps / now), steer: steer / now })
}

/// What the busiest CPU has to do with such costs ([`Work::spent`]), in their unit, and what it has with neither RPS nor steering.
/// The busiest of the CPUs that do not receive gets `uneven` times the mean of what moves to them. Steering chooses the shares
/// ([`weights::weigh`]); RPS has a mask, which is taken for all CPUs or for those that do not receive,
/// whichever is better.
pub(crate) fn busiest_with(evidence: &Evidence, costs: Costs, uneven: f64) -> Option<(Prediction, f64)> {
    let Costs { now, steer, rps } = costs;
    let receives = |cpu: u32| received(evidence, cpu);
    let most = evidence.receiving.iter().map(|receiving| receiving.share).fold(0.0, f64::max);
    let now = most * now;
    if now <= 0.0 || evidence.targets.is_empty() {
        return None;
    }
    let weights_of_targets = weights::weigh(steer, &evidence.targets, &evidence.receiving);
    let weights_of_targets = |cpu: u32| {
        weights_of_targets.iter().find(|weight| weight.cpu == cpu).map_or(0.0, |weight| weight.share)
    };
    let with_rps = rps.map(|rps| {
        let over = |mask: &[u32]| {
            let each = 1.0 / mask.len().max(1) as f64;
            busiest(evidence, rps, uneven, |cpu| if mask.contains(&cpu) { each } else { 0.0 })
        };
        let others: Vec<u32> = evidence.online.iter().copied().filter(|&cpu| receives(cpu) == 0.0).collect();
        let among_all = over(&evidence.online);
        if others.is_empty() { among_all } else { among_all.min(over(&others)) }
    });
    Some((Prediction { rps: with_rps, steer: busiest(evidence, steer, uneven, weights_of_targets) }, now))
}

fn received(evidence: &Evidence, cpu: u32) -> f64 {
    weights::received(cpu, &evidence.receiving)
}

/// Work of the busiest CPU for an average frame, with such shares of what moves.
fn busiest(evidence: &Evidence, work: Work, uneven: f64, share: impl Fn(u32) -> f64) -> f64 {
    let receiving = evidence.receiving.iter().map(|receiving| receiving.cpu);
    let all = evidence.online.iter().copied().chain(evidence.targets.iter().copied()).chain(receiving);
    let spent = |cpu: u32| {
        let received = received(evidence, cpu);
        let uneven = if received > 0.0 { 1.0 } else { uneven };
        work.spent(received, (uneven * share(cpu)).min(1.0))
    };
    all.map(spent).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(softirq: f64, idle: f64) -> Option<Load> {
        Some(Load { softirq: Some(softirq), idle, user: 100.0 - softirq - idle, ..Load::default() })
    }

    fn evidence() -> Evidence {
        Evidence {
            online: vec![0, 1, 2, 3],
            targets: vec![1, 2, 3],
            receiving: vec![Receiving { cpu: 0, share: 1.0 }],
            busiest: Some(BusiestCpu { cpu: 0, share: 1.0, load: busy(97.0, 3.0) }),
            frames: Some(100_000),
            elsewhere: false,
            steerable: Some(1.0),
            worth: Some(3.9),
            selected: true,
            native: Some(true),
            buffered: false,
            rps: false,
            forwards: true,
            means: Means::default(),
            costs: Costs {
                now: 4.0,
                steer: Work { stays: 1.0, moves: 3.0, own: 4.0 },
                rps: Some(Work { stays: 2.0, moves: 2.0, own: 4.0 }),
            },
        }
    }

    fn answer(change: impl FnOnce(&mut Evidence)) -> (Answer, Reason) {
        let mut evidence = evidence();
        change(&mut evidence);
        let found = recommend(&evidence);
        (found.answer, found.why.first().cloned().expect("a reason"))
    }

    #[test]
    fn a_full_cpu_among_four_is_steered_away_from() {
        let found = recommend(&evidence());
        assert_eq!(found.answer, Answer::Steer);
        // Now 4; RPS max(2, 2/3); steering max(1, 3/3).
        assert_eq!(found.predicted, Some(Prediction { rps: Some(0.5), steer: 0.25 }));
    }

    #[test]
    fn where_rps_is_about_as_good_it_is_enough() {
        // Two CPUs: steering (1 + 3)/2, RPS max(2, 2).
        let (found, reason) = answer(|evidence| {
            evidence.online = vec![0, 1];
            evidence.targets = vec![0, 1];
        });
        let half = Prediction { rps: Some(0.5), steer: 0.5 };
        assert_eq!((found, reason), (Answer::Rps, Reason::TooLittle(2, half)));
        assert_eq!(answer(|evidence| evidence.native = Some(false)), (Answer::Rps, Reason::NoNative));
        assert_eq!(answer(|evidence| evidence.buffered = true), (Answer::Rps, Reason::Buffered));
    }

    #[test]
    fn what_was_measured_is_predicted() {
        let mut evidence = evidence();
        evidence.costs = Costs::of(true);
        let predicted = |evidence: &Evidence| predict(evidence).expect("a prediction");
        // CPU 0 left out: 2,114 and 2,399 of 5,060 and 5,083 instructions were counted on the busiest.
        let left_out = predicted(&evidence);
        assert!((0.41..0.48).contains(&left_out.steer), "{left_out:?}");
        // RPS to the others: 2,062 and 2,077.
        assert!(left_out.rps.is_some_and(|rps| (rps - 2077.0 / 5083.0).abs() < 0.02), "{left_out:?}");
        // With it: 1,763 and 2,033.
        evidence.targets = evidence.online.clone();
        assert!((0.34..0.41).contains(&predicted(&evidence).steer), "{:?}", predicted(&evidence));
        // With more CPUs the part that RPS leaves behind is the limit, and steering is worth it.
        let forwards = evidence.clone();
        let with = |cpus: u32| {
            let mut evidence = forwards.clone();
            evidence.online = (0..cpus).collect();
            evidence.targets = evidence.online.clone();
            recommend(&evidence).answer
        };
        assert_eq!((with(2), with(4), with(8)), (Answer::Rps, Answer::Rps, Answer::Steer));
        // Delivery is no other matter with these four.
        evidence.costs = Costs::of(false);
        assert_eq!(recommend(&evidence).answer, Answer::Rps);
    }

    #[test]
    fn nothing_is_to_be_done_where_nothing_is_gained() {
        let saturated = |softirq, idle| Some(BusiestCpu { cpu: 2, share: 1.0, load: busy(softirq, idle) });
        type Change = fn(&mut Evidence);
        let cases: [(Change, Reason); 4] = [
            (|evidence| evidence.online = vec![0], Reason::OneCpu),
            (|evidence| evidence.selected = false, Reason::DeviceSpreads),
            (|evidence| evidence.steerable = Some(0.02), Reason::FewSelected(0.02)),
            (|evidence| evidence.worth = Some(1.0), Reason::OneFlow),
        ];
        for (change, reason) in cases {
            assert_eq!(answer(change), (Answer::Nothing, reason));
        }
        for (softirq, idle, reason) in
            [(50.0, 50.0, Reason::Idle(2, 50.0)), (5.0, 1.0, Reason::OtherWork(2, 5.0))]
        {
            assert_eq!(
                answer(|evidence| evidence.busiest = saturated(softirq, idle)),
                (Answer::Nothing, reason)
            );
        }
    }

    #[test]
    fn one_flow_cannot_be_spread_and_can_be_less_work() {
        let one_flow = |evidence: &mut Evidence| {
            evidence.worth = Some(1.0);
            evidence.means.fastpath = true;
        };
        let (found, reason) = answer(one_flow);
        assert_eq!(found, Answer::Fastpath);
        assert!(matches!(reason, Reason::KernelWay(4, way, Some(_)) if way.fastpath), "{reason:?}");
        // A CPU whose load nobody knows may have time left.
        let (found, reason) = answer(|evidence| {
            one_flow(evidence);
            evidence.busiest = Some(BusiestCpu { cpu: 0, share: 1.0, load: None });
        });
        assert_eq!((found, reason), (Answer::Nothing, Reason::OneFlow));
    }

    #[test]
    fn nothing_is_recommended_without_load() {
        for frames in [None, Some(12)] {
            let (found, _) = answer(|evidence| evidence.frames = frames);
            assert_eq!(found, Answer::Unknown);
        }
        assert_eq!(answer(|evidence| evidence.busiest = None), (Answer::Unknown, Reason::ReceiverUnknown));
        let elsewhere = answer(|evidence| (evidence.busiest, evidence.elsewhere) = (None, true));
        assert_eq!(elsewhere, (Answer::Unknown, Reason::OtherNamespaces));
        // A few frames of one flow are no proof that there is one.
        let found = answer(|evidence| {
            evidence.frames = Some(12);
            evidence.worth = Some(1.0);
        });
        assert_eq!(found, (Answer::Unknown, Reason::FewFrames(12)));
    }

    #[test]
    fn without_a_measurement_of_rps_nothing_is_claimed_of_it() {
        let mut evidence = evidence();
        evidence.costs.rps = None;
        let found = recommend(&evidence);
        assert_eq!(
            (found.answer, found.predicted.and_then(|predicted| predicted.rps)),
            (Answer::Steer, None)
        );
        assert!(
            matches!(found.why[..], [Reason::Receives(_), Reason::Leaves(Prediction { rps: None, .. })]),
            "{found:?}"
        );
    }
}
