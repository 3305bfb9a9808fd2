//! Spreading in software: `rps-off`, `rps-same-cpu`, `xdp-generic-only`, `backlog-drop`.

use super::queues::{self, Queues};
use super::{reta, unhashed};
use crate::Case;
use crate::device::Device;
use crate::distribution::Distribution;
use crate::facts::{self, Carried, DropCounter, Effect, Fact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::load;
use crate::loss::{self, Lost};
use crate::rule::Judgement;
use crate::software::{State, status, steer_again};
use crate::steered::{self, Handover};
use host::{Observed, Quote, Xdp};
use nic::schema;

/// Why a device cannot spread, and which queue carries the frames.
struct Need {
    queue: u32,
    why: facts::Need,
    quotes: Vec<Quote>,
    /// Whether it limits, or will.
    severity: Severity,
}

/// Whether spreading is missing: `Ok(None)` where the device spreads, `Err` where the text does not say.
fn need(device: &Device<'_>) -> Result<Option<Need>, Vec<String>> {
    if queues::is_one_flow(device) || reta::only_queue(device).is_some() {
        return Ok(None);
    }
    if let Queues::One(quotes) = queues::queues(device) {
        let severity = device.load_of(0).severity(Severity::Info);
        return Ok(Some(Need { queue: 0, why: facts::Need::SingleQueue, quotes, severity }));
    }
    let distribution = device.distribution();
    if let Distribution::OneQueue(busy) = distribution {
        let severity = busy.severity(&device.load_of(busy.queue));
        let why = facts::Need::OneQueue { queue: busy.queue, share: busy.share };
        return Ok(Some(Need { queue: busy.queue, why, quotes: busy.quotes, severity }));
    }
    let carries = [Carried::Pppoe, Carried::Qinq].into_iter().find_map(|what| unhashed::proven(device, what));
    match (carries, distribution) {
        (Some(carries), distribution) => {
            let severity = distribution.unhashed(&device.load_of(0));
            Ok(Some(Need { queue: 0, why: facts::Need::Unhashed, quotes: carries.quotes, severity }))
        }
        (None, Distribution::Spread { .. }) => Ok(None),
        (None, distribution) => Err(distribution.lacks(device)),
    }
}

fn mask<'d>(device: &'d Device<'_>, queue: u32) -> Option<&'d Observed<Vec<u32>>> {
    device.queues.get(&queue)?.rps.as_ref()
}

/// `rps-off`: the device cannot spread its frames, and software does not either.
pub(super) fn rps_off(device: &Device<'_>) -> Judgement {
    if device.case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let Need { queue, why, quotes, severity } = match need(device) {
        Ok(Some(need)) => need,
        Ok(None) => return Judgement::Clear,
        Err(commands) => return Judgement::Lacks(commands),
    };
    let software = device.software(queue, None);
    match software.as_ref().map(|software| software.state) {
        // Steering does what RPS would, or RPS is on.
        Some(State::Spreads) => return Judgement::Clear,
        Some(State::Unread) => {
            return Judgement::lacks(format!("rxlane steer status {} (as root)", device.word()));
        }
        Some(State::Passes) | None => {}
    }
    let Some(mask) = mask(device, queue) else {
        return Judgement::lacks(format!("cat {}", device.rps_file(queue)));
    };
    let load = device.load_of(queue);
    // RPS would only cost where its CPU is not the limit.
    if !mask.get().is_empty() || load.is_no_limit() {
        return Judgement::Clear;
    }
    let finding =
        found(severity, Fact::RpsOff { queue, why }).quotes([mask.quote()]).quotes(&quotes).load(&load);
    match software {
        Some(software) => software.into_finding(finding).into(),
        None => finding.fix([device.rps(&[queue])]).into(),
    }
}

/// `rps-same-cpu`: RPS hands packets to the CPU that has them already.
pub(super) fn rps_same_cpu(device: &Device<'_>) -> Judgement {
    if device.case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let masks: Vec<(u32, &Observed<Vec<u32>>)> =
        device.queues.keys().filter_map(|queue| Some((*queue, mask(device, *queue)?))).collect();
    if masks.is_empty() {
        return Judgement::lacks(format!("cat {}", device.rps_file(0)));
    }
    // Masks of one CPU, with the CPU that serves the queue.
    let single = || {
        masks.iter().filter_map(|(queue, mask)| match mask.get()[..] {
            [cpu] => Some((*queue, *mask, cpu, device.cpu_of(*queue))),
            _ => None,
        })
    };
    let Some((queue, mask, cpu, _)) = single().find(|(_, _, cpu, serving)| Some(*cpu) == *serving) else {
        let is_unknown = single().any(|(_, _, _, serving)| serving.is_none());
        return if is_unknown { Judgement::lacks("cat /proc/interrupts") } else { Judgement::Clear };
    };
    let load = load::of(device.case, Some(cpu));
    let is_steered = steered::of(device).is_some_and(|steered| steered.handover(None) == Handover::On);
    let need = need(device).ok().flatten().filter(|_| !is_steered);
    let severity = load.severity(need.as_ref().map_or(Severity::Info, |need| need.severity));
    // Where the device spreads, or it is not known that it does not, RPS over more CPUs might only cost.
    let off = || Remedy::linux(Effect::RpsOff, [format!("echo 0 > {}", device.rps_file(queue))]);
    found(severity, Fact::RpsSameCpu { queue, cpu })
        .quotes([mask.quote()])
        .quotes(device.vector_of(queue).map(|vector| &vector.quote))
        .load(&load)
        .fix([if need.is_some() { device.rps(&[queue]) } else { off() }])
        .into()
}

/// `xdp-generic-only`: an XDP program runs after the socket buffer was built.
pub(super) fn xdp_generic(device: &Device<'_>) -> Judgement {
    let Some(xdp) = &device.xdp else {
        return Judgement::lacks(format!("ip -d link show dev {}", device.word()));
    };
    if *xdp.get() != Xdp::Generic {
        return Judgement::Clear;
    }
    let native = device.case.native_xdp(device);
    let since = device.case.agreed(device, |profile| profile.text(schema::XDP_SINCE));
    let severity = if native == Some(true) { Severity::Warning } else { Severity::Info };
    let own = device.steering.as_ref().filter(|steering| *steering.mode.get() == Xdp::Generic);
    // Detaching another program alone would end what it does; how it is attached again its loader knows.
    let remedy = match own {
        Some(_) => steer_again(device, Effect::SteerNative, ""),
        None => Remedy::linux(Effect::AttachNative, [""; 0]),
    };
    found(severity, Fact::GenericXdp { native, since: since.map(str::to_owned) })
        .says(own.map(|_| Fact::GenericSteering))
        .quotes([xdp.quote()])
        .quotes(device.driver.as_ref().map(|driver| &driver.quote))
        .quotes(own.map(|steering| steering.mode.quote()))
        .fix((native == Some(true)).then_some(remedy))
        .into()
}

const BACKLOG: &str = "net.core.netdev_max_backlog";
/// Largest backlog that is offered.
const DEEPEST: u64 = 16_384;

/// `backlog-drop`: a CPU's backlog of frames was full, or the queue through which steering hands frames to it.
pub(super) fn backlog_drop(case: &Case<'_>) -> Judgement {
    let targets = case.devices().filter_map(|device| Some(at_target(&device)?.about(&device.name)));
    let targets: Vec<Finding> = targets.collect();
    match at_backlogs(case) {
        Judgement::Found(found) => Judgement::Found(found.into_iter().chain(targets).collect()),
        _ if !targets.is_empty() => Judgement::Found(targets),
        other => other,
    }
}

/// Frames that steering could not hand on, since the queue to a CPU was full.
fn at_target(device: &Device<'_>) -> Option<Finding> {
    let steered = steered::of(device)?;
    let losses = steered.losses(device.case);
    let gravest = loss::gravest(&losses)?;
    let DropCounter::Target { cpu, .. } = gravest.loss.counter else { return None };
    let uneven = steered.uneven().filter(|(busiest, _)| *busiest == cpu);
    let full = steered.full_target(device.case).filter(|(full, ..)| *full == cpu);
    let load = full.map(|(cpu, idle, _)| Fact::Load(facts::CpuLoad::Full { cpu, idle }));
    let severity = gravest.severity();
    let finding = gravest
        .found(severity, &losses, Fact::TargetFull)
        .says(gravest.past())
        .says(uneven.map(|(_, share)| Fact::TargetShare { share }))
        .says(load)
        .quotes(full.map(|(_, _, quote)| quote))
        .quotes(steered.quotes());
    let rebalance = !steered.rebalances() && full.is_some();
    let remedy = || status(device, Effect::SteeredDrops { rebalance });
    Some(finding.fix((severity != Severity::Info).then(remedy)))
}

/// Frames lost at the backlogs.
fn at_backlogs(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    if snapshot.softnet.is_empty() {
        return Judgement::lacks("cat /proc/net/softnet_stat");
    }
    let losses = snapshot.softnet.iter().filter_map(|(&cpu, softnet)| {
        loss::of(case, DropCounter::Backlog(cpu), &softnet.dropped, Some(&softnet.processed))
    });
    let losses: Vec<Lost<'_>> = losses.collect();
    let Some(gravest) = loss::gravest(&losses) else { return Judgement::Clear };
    let cpu = if let DropCounter::Backlog(cpu) = gravest.loss.counter { Some(cpu) } else { None };
    let load = load::of(case, cpu);
    let finding = gravest
        .found(gravest.severity(), &losses, Fact::BacklogFull)
        .says(gravest.past())
        .says([Fact::BacklogIs])
        .load(&load);
    if gravest.severity() == Severity::Info || load.is_full() {
        return finding.into();
    }
    // Twice the present depth. Where that is not known no command is given: it might make the queue shorter.
    let now = case.sysctl(BACKLOG).map(|(now, _)| now);
    let deeper =
        now.map(|now| (now, now.saturating_mul(2).min(DEEPEST))).filter(|(now, deeper)| deeper > now);
    let commands = deeper.map(|(_, deeper)| format!("sysctl -w {BACKLOG}={deeper}"));
    finding
        .quotes(snapshot.sysctls.get(BACKLOG).map(Observed::quote))
        .fix([Remedy::linux(Effect::Backlog { now }, commands)])
        .into()
}
