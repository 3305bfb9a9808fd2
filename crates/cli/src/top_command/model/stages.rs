//! Frames and drops by stage of the receive path, from `admit` to `deliver`, with what each number was read from.
//!
//! A stage without a counter says so. `segment` and `transmit` are the way out and stand on another port's screen.

use super::rows::{per_second, sum};
use super::{Heat, Material, Totals, TrafficRows};
use crate::top_command::table::share;
use host::{Counter, Interface, Kind, Snapshot, Xdp};
use serde::Serialize;
use std::time::Duration;

/// A stage of a frame's way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    pub stage: &'static str,
    /// Frames that passed it.
    pub frames_per_second: Option<f64>,
    /// Frames lost there.
    pub drops_per_second: Option<f64>,
    /// Since counters were started.
    pub drops: Option<u64>,
    /// What was counted, and the settings that matter there.
    #[serde(rename = "told")]
    pub text: String,
    #[serde(skip)]
    pub heat: Heat,
}

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

/// The largest of those that are known.
pub fn largest(rates: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    rates.into_iter().flatten().reduce(f64::max)
}

/// Frames refused as too long a second, by each counter that says so.
pub fn too_long(own: &Interface, interval: Option<Duration>) -> impl Iterator<Item = Option<f64>> {
    own.totals.too_long.values().map(move |counter| per_second(Some(counter), interval))
}

/// What is known of a stage.
#[derive(Default)]
struct Counts {
    frames: Option<f64>,
    drops_per_second: Option<f64>,
    drops: Option<u64>,
    text: Vec<String>,
}

impl Counts {
    fn row(self, stage: &'static str) -> StageRow {
        let is_lossy = self.drops_per_second.is_some_and(|drops| drops > 0.0);
        StageRow {
            stage,
            frames_per_second: self.frames,
            drops_per_second: self.drops_per_second,
            drops: self.drops,
            text: self.text.join("; "),
            heat: if is_lossy { Heat::Critical } else { Heat::Calm },
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

fn admit(own: &Interface, interval: Option<Duration>, totals: &Totals) -> Counts {
    let mut counts = Counts { frames: totals.frames_per_second, ..Counts::default() };
    counts.drops_per_second = largest(too_long(own, interval));
    counts.drops = own.totals.too_long.values().map(Counter::value).max();
    let names: Vec<&str> = own.totals.too_long.keys().map(String::as_str).collect();
    counts.say(if names.is_empty() { "no counter of frames too long".to_owned() } else { names.join(", ") });
    counts
}

fn parse(traffic: &TrafficRows) -> Counts {
    let mut counts = Counts::default();
    let mut classes: Vec<_> = traffic.classes.iter().filter(|row| row.frames > 0).collect();
    classes.sort_by_key(|row| std::cmp::Reverse(row.frames));
    if classes.is_empty() {
        counts.say("no counter; no sample of the traffic");
        return counts;
    }
    let words = classes.iter().map(|row| format!("{} {}", share(row.share), row.class.name()));
    counts.say(format!("sample: {}", words.collect::<Vec<_>>().join(", ")));
    counts
}

fn hash(own: Option<&Interface>) -> Counts {
    let mut counts = Counts::default();
    counts.say("no counter");
    let is_off = |feature: &host::Observed<host::Feature>| !feature.get().on;
    if own.and_then(|own| own.features.get("receive-hashing")).is_some_and(is_off) {
        counts.say("receive-hashing off");
    }
    counts
}

fn queue(own: &Interface, interval: Option<Duration>) -> Counts {
    let frames = sum(own.queues.values().map(|queue| per_second(queue.packets.as_ref(), interval)));
    let mut counts = Counts { frames, drops_per_second: lost(own, interval), ..Counts::default() };
    let of_queues = own.queues.values().filter_map(|queue| Some(queue.drops.as_ref()?.value()));
    let of_queues = of_queues.reduce(u64::saturating_add);
    counts.drops = own.totals.overflow.values().map(Counter::value).chain(of_queues).max();
    if let Some(ring) = &own.rings.rx.current {
        counts.say(format!("ring {}", ring.get()));
    }
    let is_moving = |counter: &&Counter| counter.counted().is_some_and(|counted| counted > 0);
    let moving: Vec<&str> = own
        .totals
        .overflow
        .iter()
        .filter(|(_, counter)| is_moving(counter))
        .map(|(name, _)| name.as_str())
        .collect();
    if !moving.is_empty() {
        counts.say(moving.join(", "));
    } else if counts.drops.is_none() {
        counts.say("no counter of frames lost");
    }
    counts
}

fn moderate(own: &Interface, totals: &Totals) -> Counts {
    let mut counts = Counts::default();
    match totals.interrupts_per_second {
        None => counts.say("no interrupts known"),
        Some(interrupts) => {
            counts.say(format!("{} interrupts/s", format::compact(interrupts)));
            if let Some(frames) = totals.frames_per_second.filter(|_| interrupts > 0.0) {
                counts.say(format!("{} frames each", format::compact(frames / interrupts)));
            }
        }
    }
    if let Some(time) = own.coalesce.get("rx-usecs") {
        counts.say(format!("rx-usecs {}", time.get()));
    }
    if own.adaptive_rx.as_ref().is_some_and(|adaptive| *adaptive.get()) {
        counts.say("adaptive");
    }
    counts
}

fn poll(snapshot: &Snapshot) -> Counts {
    let interval = snapshot.interval;
    let each = |of: fn(&host::Softnet) -> &Counter| {
        sum(snapshot.softnet.values().map(|row| per_second(Some(of(row)), interval)))
    };
    let mut counts = Counts { frames: each(|row| &row.processed), ..Counts::default() };
    counts.say("all interfaces");
    if let Some(squeezes) = each(|row| &row.time_squeeze) {
        counts.say(format!("{} time_squeeze/s", format::compact(squeezes)));
    }
    counts
}

fn steer(material: &Material, own: Option<&Interface>) -> Counts {
    let snapshot = &material.snapshot;
    let of_backlog =
        sum(snapshot.softnet.values().map(|row| per_second(Some(&row.dropped), snapshot.interval)));
    let readings = &material.steering;
    let status = readings.on();
    let mut counts = Counts {
        frames: status.and_then(|_| readings.steered_per_second()),
        drops_per_second: sum([of_backlog, readings.drops_per_second()].into_iter().filter(Option::is_some)),
        ..Counts::default()
    };
    let backlog = snapshot.softnet.values().map(|row| row.dropped.value()).reduce(u64::saturating_add);
    let cpumap = status.map(|status| status.cpus.iter().map(|row| row.drops).sum::<u64>());
    counts.drops = [backlog, cpumap].into_iter().flatten().reduce(u64::saturating_add);
    match (status, readings.latest.as_ref().ok(), own.and_then(|own| own.xdp.as_ref())) {
        (Some(status), ..) => counts.say(format!("rxlane {}", status.mode)),
        (None, Some(_), _) => counts.say("rxlane off"),
        (None, None, Some(xdp)) => counts.say(format!("XDP {}", xdp_word(*xdp.get()))),
        (None, None, None) => {}
    }
    let rps: Vec<bool> = own
        .into_iter()
        .flat_map(|own| own.queues.values())
        .filter_map(|queue| queue.rps.as_ref().map(|rps| !rps.get().is_empty()))
        .collect();
    match (rps.iter().any(|on| *on), rps.iter().all(|on| *on)) {
        _ if rps.is_empty() => {}
        (false, _) => counts.say("RPS off"),
        (true, true) => counts.say("RPS on"),
        (true, false) => counts.say("RPS on some queues"),
    }
    counts.say("drops: backlogs of all CPUs");
    counts
}

fn coalesce(own: Option<&Interface>, traffic: &TrafficRows) -> Counts {
    let mut counts = Counts::default();
    if let Some(gro) = own.and_then(|own| own.features.get("generic-receive-offload")) {
        counts.say(format!("GRO {}", if gro.get().on { "on" } else { "off" }));
    }
    match traffic.merged_share {
        Some(merged) => counts.say(format!("sample: {} merged", share(Some(merged)))),
        None => counts.say("no counter"),
    }
    counts
}

/// VLAN and PPP interfaces that take their frames from the device itself: what stands on those sees the same frames.
fn decap(snapshot: &Snapshot, device: &str) -> Counts {
    let mut counts = Counts::default();
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
    counts.frames = sum(above.iter().map(|(rate, _)| *rate));
    above.sort_by(|(one, _), (other, _)| other.unwrap_or(0.0).total_cmp(&one.unwrap_or(0.0)));
    let words: Vec<String> =
        above.iter().take(4).map(|(rate, name)| format!("{name} {}", format::compact(*rate))).collect();
    counts.say(if words.is_empty() {
        "no VLAN or PPP interface stands on it".to_owned()
    } else {
        words.join(", ")
    });
    if above.len() > words.len() {
        counts.say(format!("{} more", above.len() - words.len()));
    }
    counts
}

fn deliver(material: &Material) -> Counts {
    let mut counts = Counts::default();
    let [Some(first), Some(latest)] = &material.ip else {
        counts.say("no counter");
        return counts;
    };
    let seconds =
        material.snapshot.interval.map(|interval| interval.as_secs_f64()).filter(|seconds| *seconds > 0.0);
    let each = |first: u64, latest: u64| Some(latest.checked_sub(first)? as f64 / seconds?);
    counts.frames = each(first.received, latest.received);
    counts.drops_per_second = each(first.discarded, latest.discarded);
    counts.drops = Some(latest.discarded);
    counts.say("all interfaces: InReceives, InDiscards of IP");
    counts
}

/// What the IP layer of this network namespace took from below since it was made, in `/proc/net/snmp` and `/proc/net/snmp6`
/// (net/ipv4/proc.c and net/ipv6/proc.c of Linux; RFC 4293 names the counters), both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpCounts {
    /// Packets that came from an interface (`InReceives`).
    pub received: u64,
    /// Packets that were dropped, though nothing was wrong with them (`InDiscards`).
    pub discarded: u64,
}

impl IpCounts {
    /// Reads both files' text; a machine without IPv6 has no second one.
    pub fn read(snmp: &str, snmp6: Option<&str>) -> Option<IpCounts> {
        let mut rows = snmp.lines().filter_map(|line| line.strip_prefix("Ip: "));
        let (names, values) = (rows.next()?, rows.next()?);
        let v4 = |requested: &str| {
            let mut pairs = names.split_whitespace().zip(values.split_whitespace());
            pairs.find(|(name, _)| *name == requested)?.1.parse::<u64>().ok()
        };
        let v6 = |requested: &str| {
            let Some(text) = snmp6 else { return Some(0) };
            let mut pairs = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
            pairs.find(|(name, _)| *name == requested)?.1.trim().parse::<u64>().ok()
        };
        Some(IpCounts {
            received: v4("InReceives")?.saturating_add(v6("Ip6InReceives")?),
            discarded: v4("InDiscards")?.saturating_add(v6("Ip6InDiscards")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_counts_of_both_versions_are_added_up_and_other_forms_unknown() {
        let snmp =
            "Ip: Forwarding DefaultTTL InReceives InHdrErrors InDiscards\nIp: 1 64 1000 2 3\nIcmp: InMsgs\n";
        let v6 = "Ip6InReceives                   \t40\nIp6InDiscards                   \t2\n";
        for (snmp, v6, expected) in [
            (snmp, Some(v6), Some((1040, 5))),
            (snmp, None, Some((1000, 3))),
            (snmp, Some("nothing"), None),
            ("", None, None),
            ("Ip: InReceives InDiscards\n", None, None),
            ("Ip: InReceives\nIp: 5\n", None, None),
            ("Ip: InReceives InDiscards\nIp: x 1\n", None, None),
        ] {
            let counts = IpCounts::read(snmp, v6).map(|counts| (counts.received, counts.discarded));
            assert_eq!(counts, expected, "{snmp} {v6:?}");
        }
    }
}
