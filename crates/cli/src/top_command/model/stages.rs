//! Frames and drops by stage of the receive path, from `admit` to `deliver`, with what each number was read from.
//!
//! A stage without a counter says so. `segment` and `transmit` are the way out and stand on another port's screen.

use super::rate::{largest, per_second, sum};
use super::{Heat, Material, Totals, TrafficRows, rate};
use crate::top_command::figures;
use crate::top_command::steering::Mode;
use host::{Counter, Interface, Kind, Snapshot, Xdp};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A stage of a frame's way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// Its name.
    pub stage: &'static str,
    /// Frames that passed it, a second.
    pub frames_per_second: Option<f64>,
    /// Frames lost there, a second.
    pub drops_per_second: Option<f64>,
    /// Frames lost there since counters were started.
    pub drops: Option<u64>,
    /// What was counted, and the settings that matter there.
    pub told: String,
    /// Whether frames are lost.
    #[serde(skip)]
    pub heat: Heat,
}

/// The word for how an XDP program is attached.
pub fn xdp_word(xdp: Xdp) -> &'static str {
    match xdp {
        Xdp::Off => "off",
        Xdp::Native => "native",
        Xdp::Generic => "generic",
        Xdp::Offloaded => "offloaded",
    }
}

/// Frames lost at the ring a second. A loss has several names in most drivers (`rx_missed_errors` and
/// `rx_fifo_errors` of igb are one register), so the largest of them counts, and not their sum.
pub fn lost(own: &Interface, interval: Option<Duration>) -> Option<f64> {
    let of_queues = sum(own.queues.values().map(|queue| per_second(queue.drops.as_ref(), interval)));
    let named = own.totals.overflow.values().map(|counter| per_second(Some(counter), interval));
    largest(named.chain([of_queues]))
}

/// Frames refused as too long a second, by each counter that says so.
pub fn too_long(own: &Interface, interval: Option<Duration>) -> impl Iterator<Item = Option<f64>> {
    own.totals.too_long.values().map(move |counter| per_second(Some(counter), interval))
}

/// What is told of a stage, before it is known which.
#[derive(Default)]
struct Told {
    frames: Option<f64>,
    drops_per_second: Option<f64>,
    drops: Option<u64>,
    text: Vec<String>,
}

impl Told {
    fn row(self, stage: &'static str) -> StageRow {
        let heat =
            if self.drops_per_second.is_some_and(|drops| drops > 0.0) { Heat::Hot } else { Heat::Calm };
        StageRow {
            stage,
            frames_per_second: self.frames,
            drops_per_second: self.drops_per_second,
            drops: self.drops,
            told: self.text.join("; "),
            heat,
        }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.text.push(text.into());
    }
}

/// Every stage that receives.
pub fn rows(material: &Material, device: &str, totals: &Totals, traffic: &TrafficRows) -> Vec<StageRow> {
    let snapshot = &material.snapshot;
    let own = snapshot.interface(device);
    let mut rows = Vec::new();
    if let Some(own) = own {
        rows.push(admit(own, snapshot.interval, totals).row("admit"));
    }
    rows.push(parse(traffic).row("parse"));
    rows.push(hash(own).row("hash"));
    if let Some(own) = own {
        rows.push(queue(own, snapshot.interval).row("queue"));
        rows.push(moderate(own, totals).row("moderate"));
    }
    rows.push(poll(snapshot).row("poll"));
    rows.push(steer(material, own).row("steer"));
    rows.push(coalesce(own, traffic).row("coalesce"));
    rows.push(decap(snapshot, device).row("decap"));
    rows.push(deliver(material).row("deliver"));
    rows
}

fn admit(own: &Interface, interval: Option<Duration>, totals: &Totals) -> Told {
    let mut told = Told { frames: totals.frames_per_second, ..Told::default() };
    told.drops_per_second = largest(too_long(own, interval));
    told.drops = own.totals.too_long.values().map(Counter::value).max();
    told.say(names(&own.totals.too_long).unwrap_or_else(|| "no counter of frames too long".to_owned()));
    told
}

fn parse(traffic: &TrafficRows) -> Told {
    let mut told = Told::default();
    let mut classes: Vec<_> = traffic.classes.iter().filter(|row| row.frames > 0).collect();
    classes.sort_by_key(|row| std::cmp::Reverse(row.frames));
    if classes.is_empty() {
        told.say("no counter; no sample of the traffic");
        return told;
    }
    let words = classes.iter().map(|row| format!("{} {}", figures::share(row.share), row.class.name()));
    told.say(format!("sample: {}", words.collect::<Vec<_>>().join(", ")));
    told
}

fn hash(own: Option<&Interface>) -> Told {
    let mut told = Told::default();
    told.say("no counter");
    let is_off = |feature: &host::Observed<host::Feature>| !feature.get().on;
    if own.and_then(|own| own.features.get("receive-hashing")).is_some_and(is_off) {
        told.say("receive-hashing off");
    }
    told
}

fn queue(own: &Interface, interval: Option<Duration>) -> Told {
    let frames = sum(own.queues.values().map(|queue| per_second(queue.packets.as_ref(), interval)));
    let mut told = Told { frames, drops_per_second: lost(own, interval), ..Told::default() };
    let of_queues = own.queues.values().filter_map(|queue| Some(queue.drops.as_ref()?.value()));
    let of_queues = of_queues.reduce(u64::saturating_add);
    told.drops = own.totals.overflow.values().map(Counter::value).chain(of_queues).max();
    if let Some(ring) = &own.rings.rx.current {
        told.say(format!("ring {}", ring.get()));
    }
    let is_moving = |counter: &&Counter| rate::counted(counter).is_some_and(|counted| counted > 0);
    let moving: Vec<&str> = own
        .totals
        .overflow
        .iter()
        .filter(|(_, counter)| is_moving(counter))
        .map(|(name, _)| name.as_str())
        .collect();
    if !moving.is_empty() {
        told.say(moving.join(", "));
    } else if told.drops.is_none() {
        told.say("no counter of frames lost");
    }
    told
}

fn moderate(own: &Interface, totals: &Totals) -> Told {
    let mut told = Told::default();
    match totals.interrupts_per_second {
        None => told.say("no interrupts known"),
        Some(interrupts) => {
            told.say(format!("{} interrupts/s", format::compact(interrupts)));
            if let Some(frames) = totals.frames_per_second.filter(|_| interrupts > 0.0) {
                told.say(format!("{} frames each", format::compact(frames / interrupts)));
            }
        }
    }
    if let Some(time) = own.coalesce.get("rx-usecs") {
        told.say(format!("rx-usecs {}", time.get()));
    }
    if own.adaptive_rx.as_ref().is_some_and(|adaptive| *adaptive.get()) {
        told.say("adaptive");
    }
    told
}

fn poll(snapshot: &Snapshot) -> Told {
    let interval = snapshot.interval;
    let each = |of: fn(&host::Softnet) -> &Counter| {
        sum(snapshot.softnet.values().map(|row| per_second(Some(of(row)), interval)))
    };
    let mut told = Told { frames: each(|row| &row.processed), ..Told::default() };
    told.say("all interfaces");
    if let Some(squeezes) = each(|row| &row.time_squeeze) {
        told.say(format!("{} time_squeeze/s", format::compact(squeezes)));
    }
    told
}

fn steer(material: &Material, own: Option<&Interface>) -> Told {
    let snapshot = &material.snapshot;
    let of_backlog =
        sum(snapshot.softnet.values().map(|row| per_second(Some(&row.dropped), snapshot.interval)));
    let readings = &material.steering;
    let of_cpumap = readings.per_second(|status| Some(status.cpus.values().map(|cpu| cpu.drops).sum()));
    let status = readings.latest.as_ref().ok().filter(|status| status.mode != Mode::Off);
    let mut told = Told {
        frames: status.and_then(|_| readings.per_second(|status| status.reasons.get("steered").copied())),
        drops_per_second: sum([of_backlog, of_cpumap].into_iter().filter(Option::is_some)),
        ..Told::default()
    };
    let backlog = snapshot.softnet.values().map(|row| row.dropped.value()).reduce(u64::saturating_add);
    let cpumap = status.map(|status| status.cpus.values().map(|cpu| cpu.drops).sum::<u64>());
    told.drops = [backlog, cpumap].into_iter().flatten().reduce(u64::saturating_add);
    match (status, readings.latest.as_ref().ok(), own.and_then(|own| own.xdp.as_ref())) {
        (Some(status), ..) => told.say(format!("rxlane {}", status.mode.name())),
        (None, Some(_), _) => told.say("rxlane off"),
        (None, None, Some(xdp)) => told.say(format!("XDP {}", xdp_word(*xdp.get()))),
        (None, None, None) => {}
    }
    let rps: Vec<bool> = own
        .into_iter()
        .flat_map(|own| own.queues.values())
        .filter_map(|queue| queue.rps.as_ref().map(|rps| !rps.get().is_empty()))
        .collect();
    match (rps.iter().any(|on| *on), rps.iter().all(|on| *on)) {
        _ if rps.is_empty() => {}
        (false, _) => told.say("RPS off"),
        (true, true) => told.say("RPS on"),
        (true, false) => told.say("RPS on some queues"),
    }
    told.say("drops: backlogs of all CPUs");
    told
}

fn coalesce(own: Option<&Interface>, traffic: &TrafficRows) -> Told {
    let mut told = Told::default();
    if let Some(gro) = own.and_then(|own| own.features.get("generic-receive-offload")) {
        told.say(format!("GRO {}", if gro.get().on { "on" } else { "off" }));
    }
    match traffic.merged_share {
        Some(share) => told.say(format!("sample: {} merged", figures::share(Some(share)))),
        None => told.say("no counter"),
    }
    told
}

/// VLAN and PPP interfaces that take their frames from the device itself: what stands on those sees the same frames.
fn decap(snapshot: &Snapshot, device: &str) -> Told {
    let mut told = Told::default();
    let is_above = |one: &&Interface| {
        let is_kind =
            matches!(one.kind.as_ref().map(|kind| &kind.value), Some(Kind::Vlan { .. } | Kind::Ppp));
        is_kind && one.parent.as_ref().is_some_and(|parent| parent.value == device)
    };
    let mut above: Vec<(Option<f64>, &str)> = snapshot
        .interfaces
        .iter()
        .filter(is_above)
        .map(|one| (per_second(one.totals.packets.as_ref(), snapshot.interval), one.name.as_str()))
        .collect();
    told.frames = sum(above.iter().map(|(rate, _)| *rate));
    above.sort_by(|(one, _), (other, _)| other.unwrap_or(0.0).total_cmp(&one.unwrap_or(0.0)));
    let words: Vec<String> =
        above.iter().take(4).map(|(rate, name)| format!("{name} {}", format::compact(*rate))).collect();
    match words.is_empty() {
        true => told.say("no VLAN or PPP interface stands on it"),
        false => told.say(words.join(", ")),
    }
    if above.len() > words.len() {
        told.say(format!("{} more", above.len() - words.len()));
    }
    told
}

fn deliver(material: &Material) -> Told {
    let mut told = Told::default();
    let [Some(first), Some(latest)] = &material.ip else {
        told.say("no counter");
        return told;
    };
    let seconds =
        material.snapshot.interval.map(|interval| interval.as_secs_f64()).filter(|seconds| *seconds > 0.0);
    let each = |first: u64, latest: u64| Some(latest.checked_sub(first)? as f64 / seconds?);
    told.frames = each(first.received, latest.received);
    told.drops_per_second = each(first.discarded, latest.discarded);
    told.drops = Some(latest.discarded);
    told.say("all interfaces: InReceives, InDiscards of IP");
    told
}

fn names(counters: &BTreeMap<String, Counter>) -> Option<String> {
    let names: Vec<&str> = counters.keys().map(String::as_str).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
