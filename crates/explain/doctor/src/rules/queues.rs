//! How many queues there are, and how frames use them: `single-queue`, `one-queue-hot`, `one-flow`,
//! `queues-below-cpus`.

use super::{reta, udp, unhashed};
use crate::case::since;
use crate::device::Device;
use crate::distribution::{BusyQueue, Distribution};
use crate::facts::{Carried, Cause, Effect, Fact, MoreQueues};
use crate::finding::{Evidence, Finding, Remedy, Severity, found};
use crate::rule::Judgement;
use crate::{ENOUGH_BETWEEN, load, remedies};
use explain::report::FlowRow;
use format::thousands;
use host::{Limited, Quote, System};
use nic::schema;

/// How many receive queues the device can have.
pub(super) enum Queues {
    One(Vec<Quote>),
    /// Several, whether or not they are in use.
    Several,
    /// The text does not say.
    Unknown,
}

/// How many receive queues the device can have: by its channels, its counters and its table, its profile, or its
/// vectors.
pub(super) fn queues(device: &Device<'_>) -> Queues {
    let channels = [&device.channels.combined.most, &device.channels.rx.most];
    let most = channels.into_iter().flatten().map(|fact| fact.value).fold(0, u32::saturating_add);
    let counted = device.queues.values().filter(|queue| queue.packets.is_some()).count();
    let rings = device.reta.as_ref().map_or(0, |reta| reta.get().rings);
    if most > 1 || counted > 1 || rings > 1 || device.channel_count().is_some_and(|count| count > 1) {
        return Queues::Several;
    }
    if most == 1 {
        let said = channels.into_iter().flatten().filter(|fact| fact.value == 1);
        return Queues::One(said.map(|fact| fact.quote.clone()).collect());
    }
    let by_profile = device.case.agreed(device, |profile| {
        let is_single = profile.text(schema::SELECTION) == Some("single");
        Some(is_single || profile.int(schema::RX_QUEUES) == Some(1))
    });
    let vectors = device.case.receive_interrupts(device);
    let quotes = vectors.iter().map(|vector| vector.quote.clone());
    match (by_profile, &vectors[..]) {
        (_, [_, _, ..]) => Queues::Several,
        (Some(true), _) => Queues::One(quotes.chain(device.identity().cloned()).collect()),
        // One vector that is named for a queue may be what a grep left of several.
        (_, [only]) if only.queue.is_none() => Queues::One(quotes.collect()),
        _ => Queues::Unknown,
    }
}

/// `single-queue`: the device has one receive queue.
pub(super) fn single(device: &Device<'_>) -> Judgement {
    if device.case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    match queues(device) {
        Queues::One(quotes) => one(device, &quotes).into(),
        Queues::Several => Judgement::Clear,
        Queues::Unknown => {
            let linux = vec![format!("ethtool -l {}", device.word()), "cat /proc/interrupts".to_owned()];
            let bsd = vec!["vmstat -i".to_owned()];
            Judgement::Lacks(device.case.by_system(linux, bsd.clone(), bsd))
        }
    }
}

fn one(device: &Device<'_>, quotes: &[Quote]) -> Finding {
    let load = device.load_of(0);
    let software = device.software(0, None);
    let severity = load.severity(Severity::Info);
    let severity = software.as_ref().map_or(severity, |software| software.severity(&load, severity));
    let is_one_flow = is_one_flow(device);
    let finding = found(severity, Fact::SingleQueue { cpu: device.cpu_of(0) })
        .quotes(quotes)
        .load(&load)
        .says(is_one_flow.then_some(Fact::LoadIsOneFlow));
    if let Some(software) = software {
        return software.into_finding(finding);
    }
    if is_one_flow || load.is_no_limit() {
        return finding;
    }
    let mut rps = device.rps(&[0]);
    if let Effect::Rps { conditional, .. } = &mut rps.effect {
        *conditional = !load.is_full();
    }
    let linux = [rps].into_iter().chain(device.steer_queue(0)).filter(|_| !device.case.is_bsd());
    finding.fix(linux).fix(netisr(device))
}

fn netisr(device: &Device<'_>) -> Option<Remedy> {
    if device.case.may_be(System::FreeBsd) { remedies::netisr(device.case) } else { None }
}

/// `one-queue-hot`: one receive queue takes nearly all frames of a device that has several.
pub(super) fn one_busy(device: &Device<'_>) -> Judgement {
    if device.case.queue_count(device) == Some(1) {
        return Judgement::DoesNotApply;
    }
    match device.distribution() {
        Distribution::OneQueue(busy) => busy_queue(device, &busy).into(),
        Distribution::Spread { .. } => Judgement::Clear,
        distribution => Judgement::Lacks(distribution.lacks(device)),
    }
}

fn busy_queue(device: &Device<'_>, busy: &BusyQueue) -> Finding {
    let load = device.load_of(busy.queue);
    let software = device.software(busy.queue, None);
    let severity = match &software {
        // There is no other CPU to spread to.
        _ if device.case.snapshot().cpu_count() == Some(1) => Severity::Info,
        Some(software) => software.severity(&load, busy.severity(&load)),
        None => busy.severity(&load),
    };
    let proven = proven(device, busy.queue);
    let is_one_flow = !unhashed::is_sampled_elsewhere(device) && is_one_flow(device);
    let fact = Fact::OneQueue {
        queue: busy.queue,
        of: busy.queues,
        share: busy.share,
        total: busy.total,
        interrupts: busy.by_interrupts,
        since: since(busy.basis),
    };
    let causes = match proven.is_empty() {
        true => Fact::CausesPossible(possible_causes(device)),
        false => Fact::CausesKnown { ids: proven.clone() },
    };
    let spread = !is_one_flow && software.is_none() && !load.is_no_limit();
    let finding = found(severity, fact)
        .says(busy.remark(&load))
        .quotes(&busy.quotes)
        .load(&load)
        .says([causes])
        .says(is_one_flow.then_some(Fact::LoadIsOneFlow))
        .fix(spreading(device, busy, &proven, spread))
        .possible_if(busy.by_interrupts);
    match software {
        Some(software) => software.into_finding(finding),
        None => finding,
    }
}

/// Ids of the rules that know why.
fn proven(device: &Device<'_>, queue: u32) -> Vec<&'static str> {
    let proven = [
        ("pppoe-unhashed", unhashed::proven(device, Carried::Pppoe).is_some()),
        ("qinq-unhashed", unhashed::proven(device, Carried::Qinq).is_some()),
        ("reta-uneven", reta::only_queue(device) == Some(queue)),
        ("one-flow", dominant(device).is_some()),
    ];
    proven.into_iter().filter_map(|(id, is_proven)| is_proven.then_some(id)).collect()
}

/// Causes that the text leaves possible.
fn possible_causes(device: &Device<'_>) -> Vec<Cause> {
    let (case, name) = (device.case, device.word());
    // What the device has not, its driver answers so.
    let lacks_table = case.is_refused(&format!("ethtool -x {name}"));
    let lacks_fields = case.is_refused(&format!("ethtool -n {name} rx-flow-hash udp4"));
    let hashes_pppoe = case.agreed(device, |profile| profile.tri(schema::PPPOE)) == Some(true);
    let flow = match udp::is_by_addresses(device) {
        Some(true) => Cause::FlowOrUdp,
        Some(false) => Cause::Flow,
        None if lacks_fields => Cause::Flow,
        None => Cause::FlowOrUdpUnknown,
    };
    let table = match &device.reta {
        None => (case.is_bsd() || !lacks_table).then_some(Cause::Table),
        Some(_) if reta::is_blocks(device) => Some(Cause::FewFlowsInBlocks),
        Some(reta) => reta.former().is_some().then_some(Cause::FormerTable),
    };
    let rss_off = (!(lacks_table && lacks_fields)).then_some(Cause::RssOff);
    let causes = [(!hashes_pppoe).then_some(Cause::Unhashed), Some(flow), table, rss_off];
    causes.into_iter().flatten().collect()
}

fn spreading(device: &Device<'_>, busy: &BusyQueue, proven: &[&str], spread: bool) -> Vec<Remedy> {
    let is_linux = !device.case.is_bsd();
    // A table that names one queue is repaired instead.
    let spread = spread && !proven.iter().any(|id| matches!(*id, "reta-uneven" | "one-flow"));
    let mut remedies = Vec::new();
    if is_linux && spread {
        remedies.push(device.rps(&[busy.queue]));
        remedies.extend(device.steer_queue(busy.queue));
    }
    if is_linux && proven.is_empty() && reta::is_blocks(device) {
        remedies.extend(reta::in_turn(device));
    }
    if spread {
        remedies.extend(netisr(device));
    }
    remedies
}

/// Part of the frames that one flow must have: whatever the others do, the busiest CPU has at least this much.
const DOMINANT: f64 = 0.8;

/// Frames of the sample, and the flow that has the most, with its part of them.
fn largest_flow<'d>(device: &'d Device<'_>) -> Option<(u64, &'d FlowRow, f64)> {
    let mix = device.case.mix(device)?;
    let all: u64 = mix.stacks.iter().map(|row| row.frames).sum();
    let flow = mix.top_flows.iter().max_by_key(|flow| flow.frames)?;
    Some((all, flow, flow.frames as f64 / all.max(1) as f64))
}

/// The flow that is the load, with its part of the sample.
fn dominant<'d>(device: &'d Device<'_>) -> Option<(&'d FlowRow, f64)> {
    let (_, flow, share) = largest_flow(device).filter(|(all, ..)| *all >= ENOUGH_BETWEEN)?;
    (share >= DOMINANT).then_some((flow, share))
}

/// Whether software that spreads by flow has nothing to spread: one flow has nearly all of the sample's frames, or the
/// few there are fall on one CPU.
pub(super) fn is_one_flow(device: &Device<'_>) -> bool {
    dominant(device).is_some() || device.sample_stays_on_one_cpu()
}

/// `one-flow`: the load is one flow, which no spreading can divide.
pub(super) fn one_flow(device: &Device<'_>) -> Judgement {
    let distribution = device.distribution();
    let busy = distribution.one_queue();
    let Some(mix) = device.case.mix(device) else {
        // Only where one queue is busy does it matter how many flows there are.
        return match busy {
            Some(_) => Judgement::lacks(format!(
                "tcpdump -i {} -c 100000 -s 128 -w sample.pcap (for --traffic)",
                device.word()
            )),
            None => Judgement::DoesNotApply,
        };
    };
    let Some((flow, share)) = dominant(device) else {
        let all: u64 = mix.stacks.iter().map(|row| row.frames).sum();
        return if all < ENOUGH_BETWEEN {
            Judgement::lacks("a longer traffic sample")
        } else {
            Judgement::Clear
        };
    };
    let queue = busy.map_or(flow.queue.map(u32::from), |busy| Some(busy.queue));
    let load = load::of(device.case, queue.and_then(|queue| device.cpu_of(queue)));
    // The sample says what the load is made of, and only the CPU whether it is a limit.
    let severity = if load.is_full() { Severity::Critical } else { Severity::Info };
    let (name, protocol) = (flow.flow.to_string(), flow.protocol.to_string());
    let evidence = Evidence {
        from: format!("traffic sample ({})", mix.source.files.join(", ")),
        text: format!("{name} {protocol}: {} frames", thousands(flow.frames)),
    };
    let mut finding = found(severity, Fact::OneFlow { flow: name, protocol, share });
    finding.evidence.push(evidence);
    finding.load(&load).into()
}

/// `queues-below-cpus`: fewer queues are in use than the device has and CPUs could serve.
pub(super) fn below_cpus(device: &Device<'_>) -> Judgement {
    let (case, channels) = (device.case, &device.channels);
    let is_combined = channels.combined.most.as_ref().is_some_and(|most| most.value > 0);
    let used: &Limited = if is_combined { &channels.combined } else { &channels.rx };
    let (Some(current), Some(most)) = (&used.current, &used.most) else {
        return match device.channel_count() {
            Some(_) => Judgement::DoesNotApply,
            None => Judgement::lacks(format!("ethtool -l {}", device.word())),
        };
    };
    let Some(cpus) = &case.snapshot().cpus.online else { return Judgement::lacks("nproc") };
    let by_profile = case.agreed(device, |profile| profile.int(schema::RX_QUEUES));
    let by_profile = by_profile.and_then(|queues| u32::try_from(queues).ok()).unwrap_or(u32::MAX);
    let count = most.value.min(cpus.value).min(by_profile);
    if *current.get() >= count {
        return Judgement::Clear;
    }
    let full = device.full_cpu(device.queues.keys().filter_map(|queue| device.cpu_of(*queue)));
    let is_unhashed =
        [Carried::Pppoe, Carried::Qinq].iter().any(|what| unhashed::proven(device, *what).is_some());
    let is_full = full.is_some() && !is_unhashed;
    let severity = if is_full { Severity::Warning } else { Severity::Info };
    let more = match (is_unhashed, is_full) {
        (true, _) => MoreQueues::Useless,
        (false, true) => MoreQueues::Useful,
        (false, false) => MoreQueues::IfFull,
    };
    let fact = Fact::FewQueues { used: *current.get(), device: most.value, cpus: cpus.value };
    let command = format!("ethtool -L {} combined {count}", device.word());
    let remedy = (!is_unhashed && is_combined).then(|| Remedy::linux(Effect::Channels, [command]));
    let finding = found(severity, fact).quotes([current.quote(), &most.quote, &cpus.quote]);
    let finding = full.iter().fold(finding, |finding, load| finding.load(load));
    finding.says([Fact::MoreQueues(more)]).fix(remedy).into()
}
