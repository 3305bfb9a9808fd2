//! Metrics of a machine. Every label has few values: interfaces (at most [`INTERFACES`]), queues, vectors, CPUs, and words of this
//! program; no flow, address or user is one.

use client::status::SessionStatus;
use concentrator::ConcentratorStatus;
use doctor::report::{Outcome, Report, Verdict};
use explain::report::Imbalance;
use host::{Counter, Interface, Snapshot};
use service::metrics::Page;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use steer::metrics::Steering;

/// Most interfaces with samples of their own.
const INTERFACES: usize = 64;

/// What metrics are made of.
pub struct Material {
    pub snapshot: Snapshot,
    pub report: Report,
    /// Of interfaces that are steered.
    pub steering: Vec<steer::status::Status>,
    pub fastpath: Option<fastpath::status::Status>,
    pub clients: Vec<SessionStatus>,
    pub concentrators: Vec<ConcentratorStatus>,
    /// For how long the machine was read, without the time between the samples.
    pub took: Duration,
}

/// All metrics.
pub fn page(material: &Material) -> Page {
    let mut page = about(true);
    page.gauge("rxlane_collect_duration_seconds", "Time that reading the machine took.")
        .sample(&[], material.took.as_secs_f64());
    findings(&mut page, &material.report);
    let interfaces = judged(&material.snapshot, &material.report);
    for interface in interfaces.iter().take(INTERFACES) {
        counters(&mut page, interface);
        queues(&mut page, interface);
        vectors(&mut page, &material.snapshot, &interface.name);
    }
    page.gauge("rxlane_interfaces_left_out", "Interfaces without samples, since there are too many.")
        .sample(&[], interfaces.len().saturating_sub(INTERFACES));
    cpus(&mut page, material);
    material.steering.iter().for_each(|status| Steering::of(status).add_to(&mut page));
    material.fastpath.iter().for_each(|status| fast(&mut page, status));
    sessions(&mut page, material);
    page
}

/// What there is when the machine could not be read.
pub fn failed() -> Page {
    about(false)
}

fn about(is_read: bool) -> Page {
    let mut page = Page::new();
    page.gauge("rxlane_build_info", "Version of rxlane.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.gauge("rxlane_collect_success", "Whether the machine could be read.").sample(&[], u8::from(is_read));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
    page.gauge("rxlane_collect_timestamp_seconds", "When it was read, seconds since 1970-01-01 UTC.")
        .known(&[], now.map(|now| now.as_secs()));
    page
}

fn findings(page: &mut Page, report: &Report) {
    for verdict in [Verdict::Healthy, Verdict::Limited, Verdict::Unknown] {
        page.gauge("rxlane_verdict", "The verdict of the doctor: 1 for the one that holds.")
            .sample(&[("verdict", verdict.name())], u8::from(report.verdict == verdict));
    }
    let mut count: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for finding in &report.findings {
        *count.entry((finding.id, finding.severity.name())).or_default() += 1;
    }
    for ((id, severity), count) in count {
        page.gauge("rxlane_findings", "Findings of the doctor (rxlane doctor --explain ID).")
            .sample(&[("id", id), ("severity", severity)], count);
    }
    let outcomes = [
        ("found", Outcome::Found),
        ("clear", Outcome::Clear),
        ("insufficient-data", Outcome::InsufficientData),
        ("does-not-apply", Outcome::DoesNotApply),
    ];
    for (word, outcome) in outcomes {
        let rules = report.rules.iter().filter(|rule| rule.outcome == outcome).count();
        page.gauge("rxlane_rules", "Rules of the doctor by outcome.").sample(&[("outcome", word)], rules);
    }
}

/// Interfaces that the doctor has judged, those with the most receive queues first.
fn judged<'s>(snapshot: &'s Snapshot, report: &Report) -> Vec<&'s Interface> {
    // One without a name has interrupts of which nobody knows whose they are.
    let rows = report.interfaces.iter().filter(|row| !row.name.is_empty());
    let mut interfaces: Vec<&Interface> = rows.filter_map(|row| snapshot.interface(&row.name)).collect();
    interfaces.sort_by_key(|interface| std::cmp::Reverse(interface.queues.len()));
    interfaces
}

fn value(counter: Option<&Counter>) -> Option<u64> {
    counter.map(Counter::value)
}

fn counters(page: &mut Page, interface: &Interface) {
    let (name, totals) = (("interface", interface.name.as_str()), &interface.totals);
    page.counter("rxlane_receive_frames", "Frames that the interface received.")
        .known(&[name], value(totals.packets.as_ref()));
    page.counter("rxlane_receive_bytes", "Bytes of them.").known(&[name], value(totals.bytes.as_ref()));
    let places =
        [("ring", &totals.overflow), ("length", &totals.too_long), ("allowance", &totals.allowances)];
    for (place, counters) in places {
        // Several counters of one driver may count one loss: they are not to be summed.
        for (counter, dropped) in counters {
            let help = "Frames lost, by place and the driver's counter; two counters of a place may count the same frames.";
            page.counter("rxlane_drops", help)
                .sample(&[name, ("place", place), ("counter", counter)], dropped.value());
        }
    }
}

fn queues(page: &mut Page, interface: &Interface) {
    let name = ("interface", interface.name.as_str());
    for (number, queue) in &interface.queues {
        let number = number.to_string();
        let labels = [name, ("queue", number.as_str())];
        page.counter("rxlane_queue_frames", "Frames that the queue received.")
            .known(&labels, value(queue.packets.as_ref()));
        page.counter("rxlane_queue_bytes", "Bytes of them.").known(&labels, value(queue.bytes.as_ref()));
        page.counter("rxlane_queue_drops", "Frames that the queue lost.")
            .known(&labels, value(queue.drops.as_ref()));
    }
    if interface.queues.is_empty() {
        return;
    }
    page.gauge("rxlane_queues", "Receive queues.").sample(&[name], interface.queues.len());
    let counted: Option<Vec<u64>> =
        interface.queues.values().map(|queue| queue.packets.as_ref()?.counted()).collect();
    let effective = counted.filter(|counted| counted.iter().sum::<u64>() > 0).map(|counted| {
        let Imbalance { effective_queues, .. } = Imbalance::of(&counted);
        effective_queues
    });
    let help = "Receive queues that would share the frames of the last interval evenly: 1 where one queue takes all.";
    page.gauge("rxlane_effective_queues", help).known(&[name], effective);
}

fn vectors(page: &mut Page, snapshot: &Snapshot, interface: &str) {
    for interrupt in snapshot.interrupts_of(interface) {
        let total: u64 = interrupt.counts.values().map(Counter::value).sum();
        let labels = [("interface", interface), ("vector", &interrupt.vector), ("action", &interrupt.action)];
        page.counter("rxlane_interrupts", "Interrupts of a vector, on all CPUs.").sample(&labels, total);
    }
}

fn cpus(page: &mut Page, material: &Material) {
    for row in &material.report.per_cpu {
        let cpu = row.cpu.to_string();
        let labels = [("cpu", cpu.as_str())];
        let part = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
        page.gauge("rxlane_cpu_busy_ratio", "Part of the last interval in which the CPU was not idle.")
            .known(&labels, part(row.busy));
        page.gauge("rxlane_cpu_softirq_ratio", "Part of it in soft interrupts.")
            .known(&labels, part(row.softirq));
    }
    for (cpu, softnet) in &material.snapshot.softnet {
        let cpu = cpu.to_string();
        let labels = [("cpu", cpu.as_str())];
        page.counter("rxlane_softnet_processed", "Frames that the CPU took up.")
            .sample(&labels, softnet.processed.value());
        page.counter("rxlane_softnet_dropped", "Frames dropped since the CPU's backlog was full.")
            .sample(&labels, softnet.dropped.value());
        let squeezed = "Times that budget or time ran out with frames left.";
        page.counter("rxlane_softnet_time_squeeze", squeezed).sample(&labels, softnet.time_squeeze.value());
        page.counter("rxlane_softnet_received_rps", "Wake-ups by RPS.")
            .known(&labels, value(softnet.received_rps.as_ref()));
    }
}

fn fast(page: &mut Page, status: &fastpath::status::Status) {
    for port in &status.ports {
        page.gauge("rxlane_fastpath_info", "The interface is a port of the fast path.")
            .sample(&[("interface", port), ("mode", &status.mode)], 1);
    }
    page.counter("rxlane_fastpath_packets", "Packets that the fast path forwarded.")
        .sample(&[], status.packets.fast);
    page.counter("rxlane_fastpath_bytes", "IP bytes of them.").sample(&[], status.bytes);
    for (reason, packets) in &status.packets.slow {
        page.counter("rxlane_fastpath_kernel_packets", "Packets left to the kernel, by reason.")
            .sample(&[("reason", reason)], packets);
    }
    page.counter("rxlane_fastpath_limited_packets", "Packets dropped for the sake of a limit.")
        .sample(&[], status.limited);
    page.gauge("rxlane_fastpath_flows", "Connections in the fast path.").sample(&[], status.flows);
    page.gauge("rxlane_fastpath_flows_most", "As many as there may be.").sample(&[], status.flows_most);
    page.counter("rxlane_fastpath_installs", "Connections that were installed.").sample(&[], status.installs);
    for (reason, connections) in &status.removals {
        page.counter("rxlane_fastpath_removals", "Connections that were removed, by reason.")
            .sample(&[("reason", reason.name())], connections);
    }
    for (obstacle, connections) in &status.refusals {
        page.counter("rxlane_fastpath_refusals", "Connections left to the kernel, by reason.")
            .sample(&[("reason", obstacle.name())], connections);
    }
}

fn sessions(page: &mut Page, material: &Material) {
    let mut kernel: BTreeMap<&str, u64> = BTreeMap::new();
    for session in &material.snapshot.sessions {
        *kernel.entry(session.interface.as_str()).or_default() += 1;
    }
    for (interface, sessions) in kernel {
        page.gauge("rxlane_pppoe_kernel_sessions", "PPPoE sessions of the kernel (pppd) on the interface.")
            .sample(&[("interface", interface)], sessions);
    }
    for client in &material.clients {
        let labels = [("interface", client.interface.as_str()), ("parent", client.parent.as_str())];
        page.gauge("rxlane_pppoe_client_open", "Whether the session of rxlane's client is open.")
            .sample(&labels, u8::from(client.phase == "open"));
        page.counter("rxlane_pppoe_client_sessions", "Sessions that it had.")
            .sample(&labels, client.sessions);
    }
    for served in &material.concentrators {
        let parent = ("interface", served.parent.as_str());
        page.gauge("rxlane_pppoe_served_sessions", "Open sessions of the concentrator.")
            .sample(&[parent], served.count);
        page.gauge("rxlane_pppoe_served_half_open", "Sessions that are being negotiated.")
            .sample(&[parent], served.half_open);
        page.gauge("rxlane_pppoe_served_draining", "Whether it takes no more sessions.")
            .sample(&[parent], u8::from(served.draining));
        let lost = "Frames of discovery and negotiation that came faster than they were read.";
        page.counter("rxlane_pppoe_served_lost_frames", lost).sample(&[parent], served.frames_lost);
        let records = "Records of accounting that no file took.";
        page.counter("rxlane_pppoe_served_lost_records", records).sample(&[parent], served.records_lost);
        for (event, count) in &served.counters {
            page.counter("rxlane_pppoe_served_events", "What the concentrator counted.")
                .sample(&[parent, ("event", event)], count);
        }
    }
}
