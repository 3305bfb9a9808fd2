//! Buffers of FreeBSD's network stack: `mbufs-denied`.

use crate::Case;
use crate::case::since;
use crate::facts::{Effect, Fact, Since};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::rule::Judgement;
use host::{Basis, Counter, Delta, System};

/// The sysctl that limits each kind (sys/kern/kern_mbuf.c).
const LIMITS: [(&str, &str); 6] = [
    ("clusters", "kern.ipc.nmbclusters"),
    ("mbuf+clusters", "kern.ipc.nmbclusters"),
    ("mbufs", "kern.ipc.nmbufs"),
    ("4k", "kern.ipc.nmbjumbop"),
    ("9k", "kern.ipc.nmbjumbo9"),
    ("16k", "kern.ipc.nmbjumbo16"),
];

/// Part of the greatest number from which that is what was reached. It is approached by batches that CPUs keep.
const REACHED: f64 = 0.9;

/// `mbufs-denied`: requests for buffers that failed.
pub(super) fn denied(case: &Case<'_>) -> Judgement {
    if !case.may_be(System::FreeBsd) {
        return Judgement::DoesNotApply;
    }
    let denied = &case.snapshot().mbufs.denied;
    if denied.is_empty() {
        return Judgement::lacks("netstat -m");
    }
    let failed = |(kind, counter): (&String, &Counter)| {
        let count = counter.counted().unwrap_or(counter.value());
        (count > 0).then(|| (count, kind.clone(), counter.clone()))
    };
    // A cluster comes with its mbuf: the kind of which most failed is the one that is short.
    let most = denied.iter().filter_map(failed).max_by_key(|(count, ..)| *count);
    match most {
        Some((count, kind, counter)) => finding(case, count, &kind, &counter).into(),
        None => Judgement::Clear,
    }
}

fn finding(case: &Case<'_>, count: u64, kind: &str, counter: &Counter) -> Finding {
    let is_now = counter.delta() != Delta::OneSample;
    let since = if is_now { Since::Sample } else { since(Basis::SinceStart) };
    let sysctl = LIMITS.iter().find(|(name, _)| *name == kind).map(|(_, sysctl)| *sysctl);
    let limited = if kind == "mbuf+clusters" { "clusters" } else { kind };
    let used = case.snapshot().mbufs.used.get(limited);
    let is_reached = used.map(|used| used.value.0 as f64 >= REACHED * used.value.1 as f64);
    let limit = used.map(|used| used.value);
    let remedy = sysctl.filter(|_| is_reached != Some(false)).map(|sysctl| {
        let doubled = limit.map(|(_, most)| most.saturating_mul(2));
        let commands = doubled.into_iter().flat_map(|limit| {
            let keep = format!("echo '{sysctl}=\"{limit}\"' >> /boot/loader.conf");
            [format!("sysctl {sysctl}={limit}"), keep]
        });
        Remedy::new(System::FreeBsd, Effect::MoreMbufs { sysctl: sysctl.to_owned() }, commands)
    });
    let severity = if is_now { Severity::Critical } else { Severity::Warning };
    found(severity, Fact::MbufsDenied { kind: kind.to_owned(), count, since, limit })
        .quotes([counter.quote()])
        .quotes(used.map(|used| &used.quote))
        .fix(remedy)
}
