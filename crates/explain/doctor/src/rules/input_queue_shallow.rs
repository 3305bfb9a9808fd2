//! `input-queue-shallow`: the IP input queue is shorter than the bursts that reach it.

use crate::Case;
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use host::{Observed, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "input-queue-shallow",
    stage: "deliver",
    page: Page {
        title: "The IP input queue overflows",
        means: "Between the driver and IP there is a queue of packets (NetBSD's `ipintrq`, FreeBSD's netisr queues). \
                What moderation saves in interrupts arrives in bursts: each level of NetBSD's bge interrupt mitigation \
                doubles them, up to 30 or 40 full-size segments, and many more small frames. A queue shorter than the \
                bursts of all interfaces together drops the rest.",
        shows: "`sysctl net.inet.ip.ifq` (NetBSD) shows drops above zero; on FreeBSD `net.inet.ip.intr_queue_drops`, \
                or QDrops of `netstat -Q`.",
        fix: "A deeper queue: 512 for one interface at mitigation level 4 or 5, 2048 for four; more for small frames. \
              FreeBSD's limit of direct and deferred queues is `net.inet.ip.intr_queue_maxlen`.",
        costs: "Memory for the packets that wait, and latency under overload. A queue that overflows since the CPU is \
                too slow overflows at any depth.",
    },
    judge: Judge::Machine(judge),
};

/// Depth that was found enough for one interface at high mitigation, J. Stone, tech-net, December 2006.
const AN_INTERFACE: u64 = 512;

/// Depth beyond which waiting takes longer than it helps.
const DEEPEST: u64 = 8192;

fn judge(case: &Case<'_>) -> Judgement {
    match case.system() {
        Some(System::NetBsd) => by_sysctl(case, "netbsd", "net.inet.ip.ifq.drops", "net.inet.ip.ifq.maxlen"),
        Some(System::FreeBsd) => freebsd(case),
        Some(System::Linux) => Judgement::DoesNotApply,
        None if case.snapshot().sysctls.contains_key("net.inet.ip.ifq.drops") => {
            by_sysctl(case, "netbsd", "net.inet.ip.ifq.drops", "net.inet.ip.ifq.maxlen")
        }
        None if case.snapshot().netisr.is_some() => freebsd(case),
        None => Judgement::DoesNotApply,
    }
}

fn freebsd(case: &Case<'_>) -> Judgement {
    let streams = case.snapshot().netisr.iter().flat_map(|netisr| &netisr.workstreams);
    let dropping: Vec<(&Quote, u64)> = streams
        .filter(|((_, protocol), _)| matches!(protocol.as_str(), "ip" | "ip6" | "ether" | "pppoe"))
        .filter(|(_, stream)| stream.dropped.value() > 0)
        .map(|(_, stream)| (stream.dropped.quote(), stream.dropped.value()))
        .collect();
    if !dropping.is_empty() {
        let drops = dropping.iter().fold(0, |sum: u64, (_, drops)| sum.saturating_add(*drops));
        let quotes = dropping.into_iter().map(|(quote, _)| quote);
        return found(case, "freebsd", drops, None, quotes.collect(), "net.inet.ip.intr_queue_maxlen").into();
    }
    let judged = by_sysctl(case, "freebsd", "net.inet.ip.intr_queue_drops", "net.inet.ip.intr_queue_maxlen");
    // netstat -Q without a drop has answered.
    if case.snapshot().netisr.is_some() && matches!(judged, Judgement::Lacks(_)) {
        Judgement::Clear
    } else {
        judged
    }
}

fn by_sysctl(case: &Case<'_>, os: &'static str, drops: &str, depth: &'static str) -> Judgement {
    let Some(seen) = case.snapshot().sysctls.get(drops) else {
        return Judgement::lacks(if os == "netbsd" { "sysctl net.inet.ip.ifq" } else { "netstat -Q" });
    };
    let Some(count) = number(seen) else { return Judgement::lacks(format!("sysctl {drops}")) };
    if count == 0 {
        return Judgement::Clear;
    }
    let limit = case.snapshot().sysctls.get(depth);
    let quotes: Vec<&Quote> = std::iter::once(seen.quote()).chain(limit.map(Observed::quote)).collect();
    let former = seen.former().and_then(|former| former.value.trim().parse::<u64>().ok());
    let rising = former.map(|former| count.saturating_sub(former));
    found(case, os, count, rising, quotes, depth).into()
}

fn found(
    case: &Case<'_>,
    os: &'static str,
    drops: u64,
    rising: Option<u64>,
    quotes: Vec<&Quote>,
    depth: &'static str,
) -> Finding {
    let (severity, when) = match rising {
        Some(new) if new > 0 => (Severity::Critical, format!("{new} of them between the samples")),
        _ => (Severity::Warning, "since the counters were started".to_owned()),
    };
    let devices = (case.devices().count() as u64).max(1);
    let now = case.snapshot().sysctls.get(depth).and_then(number);
    let wanted = (AN_INTERFACE * devices).max(now.unwrap_or(0).saturating_mul(2)).min(DEEPEST);
    let explanation = format!(
        "The IP input queue{} dropped {drops} packets, {when}: bursts from the interfaces are longer than it is.",
        now.map_or(String::new(), |depth| format!(" of {depth} packets"))
    );
    let finding = RULE.finding(None, severity, quotes, explanation);
    if now.is_some_and(|now| now >= wanted) {
        return finding;
    }
    let set = if os == "netbsd" { "sysctl -w " } else { "sysctl " };
    finding.with(Remedy {
        os,
        what: "a deeper IP input queue".to_owned(),
        commands: vec![format!("{set}{depth}={wanted}")],
        expected: "Bursts up to that length survive. Drops that go on mean that the CPU is too slow, not the queue too \
                   short."
            .to_owned(), modelled: None,
})
}

fn number(seen: &Observed<String>) -> Option<u64> {
    seen.get().trim().parse().ok()
}
