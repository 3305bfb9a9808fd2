//! What `up` would do on an interface, whether it could, and whether it is worth it.

use crate::classes::{self, Choice, ClassRow};
use crate::expected::Expected;
use crate::facts::{self, Fact, Input, Level, Tagged};
use crate::observation::{Observation, Sampled};
use crate::plan::{self, LeftOut, Plan, PlanError};
use crate::receiving;
use crate::recommend::{self, Answer, BusiestCpu, Costs, Evidence, Recommendation};
use crate::status::Status;
use crate::ways::{self, Means};
use crate::weights::Receiving;
use doctor::Case;
use host::{Delta, Interface, Kind};
use kernel::netlink::XdpFeatures;
use serde::Serialize;
use std::collections::BTreeMap;
use xdp::{Family, Program};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub interface: String,
    /// Target CPUs; `None`: choose.
    pub cpus: Option<Vec<u32>>,
    pub generic: bool,
    pub choice: Choice,
    pub disable_rxvlan: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Known {
    pub online: Vec<u32>,
    pub features: Option<XdpFeatures>,
    pub program: Option<Program>,
    /// Whether the machine forwards; otherwise frames are delivered to its own sockets.
    pub forwards: bool,
}

/// The answer of `steer check`, schema `rxlane.steer-check/1`: fields are added, never renamed.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub schema: &'static str,
    pub interface: String,
    pub kernel: Option<String>,
    pub driver: Option<String>,
    pub profile: Option<String>,
    pub possible: bool,
    pub steered: bool,
    /// How steering stands, where it is steered and that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Frames that arrived during the observation; `None`: not counted twice.
    pub frames: Option<u64>,
    /// One fact after the other, those that stop steering first.
    pub facts: Vec<Fact>,
    pub queues: Vec<QueueRow>,
    pub classes: Vec<ClassRow>,
    pub receiving: Vec<ReceivingRow>,
    /// CPUs that `up` would steer to; empty where the requested CPUs cannot be had.
    pub targets: Vec<TargetRow>,
    pub left_out: Vec<LeftOutRow>,
    pub sample: Option<SampleRow>,
    pub remarks: Vec<String>,
    pub recommendation: Recommendation,
    /// The commands of the kernel's way or of the fast path, where that is recommended instead of steering.
    pub commands: Vec<String>,
    /// What the model expects RPS and steering to bring; `None` where it was not computed, is unknown, or frames are steered.
    pub expected: Option<Expected>,
}

impl Check {
    pub const SCHEMA: &str = "rxlane.steer-check/1";

    pub fn stops(&self) -> impl Iterator<Item = &Fact> {
        self.facts.iter().filter(|fact| fact.level == Level::Stops)
    }

    /// Whether what stops it is the machine's: its kernel, or its driver.
    pub fn lacks(&self) -> bool {
        self.stops().next().is_some() && self.stops().all(|fact| matches!(fact.about, "kernel" | "driver"))
    }

    pub fn is_yes(&self) -> bool {
        self.possible && self.recommendation.answer == Answer::Steer
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    pub queue: u32,
    /// Frames that it took; `None`: not counted.
    pub frames: Option<u64>,
    /// The same for a second; `None` where they are counted since the counters were started.
    pub per_second: Option<f64>,
    /// Its vector as `/proc/interrupts` names it.
    pub vector: Option<String>,
    /// The CPUs of the vector: those that took its interrupts during the observation, else those that it may go to.
    pub cpus: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReceivingRow {
    pub cpu: u32,
    /// Its part of the frames, 0 to 1.
    pub share: f64,
    /// Idle time during the observation, per cent.
    pub idle: Option<f64>,
    /// Time spent on interrupts, soft ones included, per cent.
    pub receiving: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TargetRow {
    pub cpu: u32,
    /// Its part of the steered frames, 0 to 1.
    pub share: f64,
    pub buckets: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOutRow {
    pub cpu: u32,
    pub why: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SampleRow {
    pub frames: u64,
    pub seconds: f64,
    /// Flows, each direction counted.
    pub flows: u64,
    /// Equivalent number of evenly loaded CPUs, distributed by inner flow.
    pub worth: f64,
}

pub struct Checked {
    pub check: Check,
    pub plan: Result<Plan, PlanError>,
    /// The bits of the selected classes.
    pub classes: u32,
    /// What strips tags on the device now, as `ethtool -K` calls it.
    pub stripping: Vec<&'static str>,
    /// What the recommendation follows from.
    pub evidence: Evidence,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A profile that comes with the program does not load; a test rules that out.
    #[error(transparent)]
    Profile(#[from] nic::FileError),
    #[error(
        "{0} is not among the interfaces that were read: it was removed meanwhile, or its name has characters that rxlane does not take \
         (a shell would run them); then give it another (ip link set dev NAME name NEW)"
    )]
    NotListed(String),
}

/// Sampled frames below which the number of their flows says nothing.
const ENOUGH: u64 = 1000;

/// Everything but [`Check::expected`], which takes a simulation ([`expected`](crate::expected::expected)).
pub fn check(request: &Request, observation: &Observation, known: &Known) -> Result<Checked, Error> {
    let case = Case::new(&observation.snapshot, observation.traffic.as_ref(), Some(&request.interface))?;
    let interface = observation
        .snapshot
        .interface(&request.interface)
        .ok_or_else(|| Error::NotListed(request.interface.clone()))?;
    let classes = classes::classes(&case, interface, &request.choice);
    let input = Input {
        generic: request.generic,
        disable_rxvlan: request.disable_rxvlan,
        features: known.features,
        program: known.program.as_ref(),
        tagged: tagged(&case, interface, observation, &request.choice),
    };
    let facts = facts::facts(&case, interface, &input);
    let receiving = receiving::receiving(&case, interface);
    let plan = plan::plan(&plan::Request {
        cpus: request.cpus.as_deref(),
        online: &known.online,
        nodes: &observation.snapshot.cpus.nodes,
        receiving: &receiving,
        work: Costs::of(known.forwards).steer,
        even: false,
    });
    let sample = sample(&case, interface, observation);
    let evidence =
        evidence(&case, interface, known, &classes, &receiving, plan.as_ref().ok(), sample, &input);
    let stripping = facts::stripping(interface);
    let attached_as = known.program.as_ref().and_then(|program| program.attached_name(Family::Steer));
    let recommendation = match attached_as {
        Some(attached_as) => recommend::steered(&request.interface, attached_as),
        None => recommend::recommend(&evidence),
    };
    let check = Check {
        schema: Check::SCHEMA,
        interface: request.interface.clone(),
        kernel: observation.snapshot.kernel.as_ref().map(|kernel| kernel.value.clone()),
        driver: interface.driver.as_ref().map(|driver| driver.value.clone()),
        profile: match case.profiles(interface)[..] {
            [only] => Some(only.name()),
            _ => None,
        },
        possible: plan.is_ok() && facts.iter().all(|fact| fact.level != Level::Stops),
        steered: attached_as.is_some(),
        status: None,
        frames: evidence.frames,
        queues: queues(&case, interface),
        receiving: receiving.iter().map(|one| receiving_row(&case, one)).collect(),
        targets: plan.iter().flat_map(targets).collect(),
        left_out: plan.iter().flat_map(|plan| &plan.left_out).map(left_out).collect(),
        sample,
        remarks: remarks(observation, plan.as_ref().err()),
        commands: commands(&case, interface, &evidence, &recommendation),
        recommendation,
        expected: None,
        classes,
        facts,
    };
    let classes = classes::bits(&check.classes);
    let stripping = stripping.into_iter().filter(|(_, fixed)| !fixed).map(|(name, _)| name).collect();
    Ok(Checked { check, plan, classes, stripping, evidence })
}

/// What leads to the kernel's way or the fast path; nothing where that is not the answer.
fn commands(
    case: &Case<'_>,
    interface: &Interface,
    evidence: &Evidence,
    found: &Recommendation,
) -> Vec<String> {
    match (found.answer, found.way) {
        (Answer::Kernel | Answer::Fastpath | Answer::Rps, Some(way)) => {
            ways::commands(case, interface, evidence, way)
        }
        (Answer::Rps, None) if !evidence.rps => ways::rps_commands(case, interface),
        _ => Vec::new(),
    }
}

fn tagged(case: &Case<'_>, interface: &Interface, observation: &Observation, choice: &Choice) -> Tagged {
    let is_vlan =
        |other: &Interface| matches!(other.kind.as_ref().map(|kind| &kind.value), Some(Kind::Vlan { .. }));
    let mut others = observation.snapshot.interfaces.iter().filter(|other| other.name != interface.name);
    if others.any(|other| is_vlan(other) && case.physical(&other.name) == interface.name) {
        return Tagged::Devices;
    }
    let seen = matches!(&observation.sampled, Sampled::Taken(sample) if sample.tags > 0)
        || case
            .share_of(interface, |stack| stack.split('/').any(|word| word == "vlan"))
            .is_some_and(|part| part > 0.0);
    let named = matches!(choice, Choice::Named(named)
        if named.iter().any(|class| matches!(class, xdp::layout::Class::Vlan | xdp::layout::Class::Qinq)));
    if seen || named { Tagged::Seen } else { Tagged::Unseen }
}

fn sample(case: &Case<'_>, interface: &Interface, observation: &Observation) -> Option<SampleRow> {
    let Sampled::Taken(taken) = &observation.sampled else { return None };
    let mix = case.sampled(interface);
    Some(SampleRow {
        frames: taken.frames,
        seconds: taken.elapsed.as_secs_f64(),
        flows: mix.map_or(0, |mix| mix.flows.unidirectional),
        worth: mix.map_or(0.0, |mix| mix.steered.effective_queues),
    })
}

#[allow(clippy::too_many_arguments, reason = "each is one thing that the look found")]
fn evidence(
    case: &Case<'_>,
    interface: &Interface,
    known: &Known,
    classes: &[ClassRow],
    receiving: &[Receiving],
    plan: Option<&Plan>,
    sample: Option<SampleRow>,
    input: &Input<'_>,
) -> Evidence {
    let native = input
        .features
        .map(|features| features.is_native() && features.redirects())
        .or_else(|| case.native_xdp(interface));
    let takes_program = native == Some(true) && input.program.is_none();
    let means = Means::of(case, interface, known.forwards, takes_program);
    let shares: Vec<f64> = classes.iter().filter(|row| row.selected).filter_map(|row| row.share).collect();
    let busiest = receiving.first().map(|most| BusiestCpu {
        cpu: most.cpu,
        share: most.share,
        load: case.snapshot().cpus.load.get(&most.cpu).map(|load| load.value),
    });
    Evidence {
        online: known.online.clone(),
        targets: plan.iter().flat_map(|plan| &plan.weights).map(|weight| weight.cpu).collect(),
        receiving: receiving.to_vec(),
        busiest,
        frames: receiving::frames(interface, case),
        elsewhere: receiving::is_elsewhere(case),
        steerable: (!shares.is_empty()).then(|| shares.iter().sum()),
        worth: sample.filter(|sample| sample.frames >= ENOUGH).map(|sample| sample.worth),
        selected: classes.iter().any(|row| row.selected),
        native,
        buffered: interface
            .driver
            .as_ref()
            .is_some_and(|driver| matches!(driver.value.as_str(), "veth" | "tun")),
        rps: !facts::rps_queues(interface).is_empty(),
        forwards: known.forwards,
        costs: Costs::measured(&means.measured(known.forwards)),
        means,
    }
}

fn queues(case: &Case<'_>, interface: &Interface) -> Vec<QueueRow> {
    let spread = case.spread(interface);
    let vectors = case.receive_interrupts(interface);
    // Shares of nothing are those since the counters were started; here none is what was counted.
    let is_silent = receiving::frames(interface, case) == Some(0);
    let mut rows: BTreeMap<u32, QueueRow> = BTreeMap::new();
    let named = vectors.iter().filter_map(|vector| vector.queue);
    let all = interface.queues.keys().copied().chain(named);
    for queue in all.filter(|&queue| case.queue_count(interface).is_none_or(|count| queue < count)) {
        let vector = vectors.iter().find(|vector| vector.queue == Some(queue)).or(match &vectors[..] {
            [only] if only.queue.is_none() => Some(only),
            _ => None,
        });
        let counted = spread.as_ref().and_then(|spread| {
            let place = spread.queues.iter().position(|number| *number == queue)?;
            let frames = *spread.shares.counts.get(place)?;
            Some((frames, spread.shares.per_second(frames)))
        });
        let silence = (is_silent && is_counted(interface, queue)).then_some((0, Some(0.0)));
        let counted = silence.or(counted);
        rows.insert(
            queue,
            QueueRow {
                queue,
                frames: counted.map(|(frames, _)| frames),
                per_second: counted.and_then(|(_, rate)| rate),
                vector: vector.map(|vector| vector.vector.clone()),
                cpus: vector.map(|vector| cpus_of(case, vector)).unwrap_or_default(),
            },
        );
    }
    rows.into_values().collect()
}

/// Whether a queue's frames were counted twice.
fn is_counted(interface: &Interface, queue: u32) -> bool {
    let counter = interface.queues.get(&queue).and_then(|queue| queue.packets.as_ref());
    counter.is_some_and(|counter| matches!(counter.delta(), Delta::Counted(_) | Delta::Wrapped(_)))
}

fn cpus_of(case: &Case<'_>, vector: &host::Interrupt) -> Vec<u32> {
    let counts = host::Shares::of(vector.counts.values(), case.snapshot().interval);
    let took = counts.filter(|shares| matches!(shares.basis, host::Basis::Between(_))).map(|shares| {
        let counted = vector.counts.keys().zip(shares.counts);
        counted.filter(|(_, count)| *count > 0).filter_map(|(cpu, _)| *cpu).collect::<Vec<u32>>()
    });
    took.filter(|cpus| !cpus.is_empty())
        .or_else(|| Some(vector.affinity.as_ref()?.get().clone()))
        .unwrap_or_default()
}

fn receiving_row(case: &Case<'_>, one: &Receiving) -> ReceivingRow {
    let load = case.snapshot().cpus.load.get(&one.cpu).map(|load| load.value);
    ReceivingRow {
        cpu: one.cpu,
        share: one.share,
        idle: load.map(|load| load.idle),
        receiving: load.and_then(|load| Some(load.interrupt + load.softirq?)),
    }
}

pub fn targets(plan: &Plan) -> impl Iterator<Item = TargetRow> {
    plan.weights.iter().map(|weight| TargetRow {
        cpu: weight.cpu,
        share: weight.share,
        buckets: plan.buckets.iter().filter(|cpu| **cpu == weight.cpu).count(),
    })
}

fn left_out(&(cpu, why): &(u32, LeftOut)) -> LeftOutRow {
    LeftOutRow { cpu, why: why.reason() }
}

fn remarks(observation: &Observation, plan: Option<&PlanError>) -> Vec<String> {
    let mut remarks: Vec<String> = plan.iter().map(|error| error.to_string()).collect();
    match &observation.sampled {
        Sampled::Unrequested => {}
        Sampled::NotPermitted => remarks.push(
            "the traffic was not sampled, which requires root: which classes come in, and how many flows, is not known"
                .to_owned(),
        ),
        Sampled::Failed(why) => remarks.push(format!("the traffic was not sampled: {why}")),
        Sampled::Taken(sample) => {
            if sample.dropped > 0 {
                let dropped = format::thousands(sample.dropped);
                remarks.push(format!("the sample lacks {dropped} frames that came too fast for it"));
            }
        }
    }
    remarks
}
