//! `softirq-one-cpu`: one CPU does nearly all receive work.

use crate::case::enough;
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::steered::{self, Steered};
use crate::strain::{self, Strain};
use crate::{Case, ksoftirqd};
use host::{Basis, Counter, Shares, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "softirq-one-cpu",
    stage: "poll",
    page: Page {
        title: "One CPU does nearly all receive work",
        means: "Receive work runs in the softirq NET_RX, on the CPU that took the interrupt or to which RPS handed the \
                packets. If one CPU has nearly all of it, nothing spreads the work: neither queues, nor interrupts, \
                nor RPS. This is a symptom; the rules on queues and interrupts say why. Where frames are steered in XDP, \
                the softirq is what the driver does, the rest runs in a thread on another CPU, and the frames in \
                `/proc/net/softnet_stat` say which.",
        shows: "`/proc/softirqs`: the line NET_RX grows in one column. `/proc/net/softnet_stat`: the first column of one \
                line.",
        fix: "Look at the interface that is busy: `/proc/interrupts` says whether it has several vectors on one CPU \
              (`irq-one-cpu`), `ethtool -S` whether one queue takes all (`one-queue-hot`). With one queue: RPS, or \
              steering in XDP.",
        costs: "Depends on the cause. On a machine whose one CPU has time to spare, spreading costs more than it brings.",
    },
    judge: Judge::Machine(judge),
};

/// Part of the receive work that one CPU must have.
const NEARLY_ALL: f64 = 0.9;

/// Receive softirqs a second that any CPU carries: below this the machine is idle.
const LITTLE: f64 = 1_000.0;

/// Receive softirqs for each timer softirq below which the machine is idle most of the time. A CPU that is awake
/// counts `CONFIG_HZ`, 100 to 1000, of the latter a second, so that they measure how long the counts took.
const LITTLE_TO_TIMER: f64 = 0.1;

/// Receive work by CPU.
struct Work<'a> {
    cpus: Vec<u32>,
    counters: Vec<&'a Counter>,
    shares: Shares,
    /// Whether softirqs were counted, not frames.
    by_softirqs: bool,
}

/// Steering hands frames to threads, whose work is no softirq and does count in `softnet_stat`
/// (`cpu_map_kthread_run()` in kernel/bpf/cpumap.c, `__netif_receive_skb_core()` in net/core/dev.c).
fn work<'a>(case: &Case<'a>, is_steered: bool) -> Option<Work<'a>> {
    let snapshot = case.snapshot();
    let softirqs = snapshot.softirqs.get("NET_RX").filter(|_| !is_steered || snapshot.softnet.len() < 2);
    let counted: Vec<(u32, &Counter)> = match softirqs {
        Some(by_cpu) => by_cpu.iter().map(|(cpu, counter)| (*cpu, counter)).collect(),
        None => snapshot.softnet.iter().map(|(cpu, row)| (*cpu, &row.processed)).collect(),
    };
    let (cpus, counters): (Vec<u32>, Vec<&Counter>) = counted.into_iter().unzip();
    let shares = Shares::of(counters.iter().copied(), snapshot.interval)?;
    Some(Work { cpus, counters, shares, by_softirqs: softirqs.is_some() })
}

fn judge(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
    if snapshot.softirqs.is_empty() && snapshot.softnet.is_empty() {
        return by_thread(case);
    }
    let steered = steered::any(case);
    let Some(work) = work(case, steered.is_some()) else {
        // Counters that were reset between the samples.
        return Judgement::lacks("cat /proc/softirqs");
    };
    if work.cpus.len() < 2 {
        let is_one = snapshot.cpu_count() == Some(1);
        return if is_one { Judgement::DoesNotApply } else { Judgement::lacks("cat /proc/softirqs") };
    }
    let largest = work.shares.largest().filter(|_| work.shares.total() >= enough(work.shares.basis));
    let Some((place, share)) = largest else {
        return Judgement::lacks("cat /proc/softirqs, twice under load");
    };
    match work.cpus.get(place) {
        Some(&cpu) if share >= NEARLY_ALL => found(case, &work, place, cpu, share, steered.as_ref()),
        _ => Judgement::Clear,
    }
}

/// Without counters, the thread that takes over soft interrupts where they are too many says the same, but not that
/// they are those of reception.
fn by_thread(case: &Case<'_>) -> Judgement {
    if case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let Some((cpu, process, share)) = ksoftirqd::only_full(case) else {
        return Judgement::lacks("cat /proc/softirqs");
    };
    let explanation = format!(
        "ksoftirqd/{cpu} takes {share:.0} % of CPU {cpu}, and no other CPU's thread is as busy: more soft interrupts \
         come to that CPU than it can serve. Of a machine that forwards they are most likely NET_RX, which \
         `cat /proc/softirqs` shows."
    );
    let finding = RULE.finding(None, Severity::Warning, Some(&process.quote), explanation);
    finding.with(cause()).possible().into()
}

fn cause() -> Remedy {
    Remedy {
        os: "linux",
        what: "find the cause at the busy interface: several vectors on one CPU want other affinities, one queue \
               wants RPS or steering in XDP (`rxlane steer`)"
            .to_owned(),
        commands: Vec::new(),
        expected: "Cannot tell before the cause is known: `cat /proc/interrupts` and `ethtool -S IFACE` tell."
            .to_owned(), modelled: None,
}
}

fn found(
    case: &Case<'_>,
    work: &Work<'_>,
    place: usize,
    cpu: u32,
    share: f64,
    steered: Option<&Steered<'_>>,
) -> Judgement {
    let strained = strain::of(case, Some(cpu));
    let amount = amount(case, work, place, cpu);
    let is_dealt = steered.is_some_and(|steered| steered.lopsided().is_none());
    let unless = if amount == Amount::Little || is_dealt { Severity::Info } else { Severity::Warning };
    let severity = strained.severity(unless);
    let basis = match work.shares.basis {
        Basis::Between(_) => "between the samples",
        Basis::SinceStart => "since boot",
    };
    let said = match (amount, strained.strain) {
        (_, Strain::Full) | (Amount::Much, _) => "",
        (Amount::Little, _) => " It is so little that one CPU carries it easily.",
        (Amount::Unknown, _) => {
            " In which time it did that, the text does not say: two samples under load would."
        }
    };
    let others = match work.cpus.len().saturating_sub(1) {
        1 => "the other CPU".to_owned(),
        others => format!("the other {others} CPUs"),
    };
    let uncounted = match work.by_softirqs {
        true => " What their CPUs do is no softirq and not in these counts.",
        false => "",
    };
    let dealt = steered.map_or(String::new(), |steered| {
        format!(" Software spreads frames already: {}.{uncounted}", steered.clause())
    });
    let explanation = format!(
        "CPU {cpu} did {:.0} % of the receive work {basis}, and {others} the rest.{said}{}{dealt}",
        share * 100.0,
        strained.sentence
    );
    let mut quotes =
        work.counters.get(place).into_iter().chain(&work.counters).map(|counter| counter.quote());
    let first = quotes.next();
    let finding = RULE
        .finding(None, severity, first, explanation)
        .and(quotes.take(work.cpus.len().min(MOST_QUOTES)))
        .and(&strained.quote)
        .and(&steered.map(Steered::quotes).unwrap_or_default());
    if severity == Severity::Info || is_dealt {
        return finding.into();
    }
    let finding = finding.with(cause());
    match (amount, strained.strain) {
        (Amount::Unknown, Strain::Between | Strain::Unknown) => finding.possible().into(),
        _ => finding.into(),
    }
}

/// Lines of evidence beside the busy CPU's.
const MOST_QUOTES: usize = 4;

/// Whether the work is a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    /// One CPU carries it easily.
    Little,
    /// It may be one.
    Much,
    /// There is no measure of the time that it took.
    Unknown,
}

/// Receive softirqs, or frames, since boot that are little however short ago that was: ten minutes at [`LITTLE`].
const TINY: u64 = 600_000;

/// How much work it is. `softnet_stat` counts frames and not softirqs, and is taken by its rate alone.
fn amount(case: &Case<'_>, work: &Work<'_>, place: usize, cpu: u32) -> Amount {
    let count = work.shares.counts.get(place).copied().unwrap_or(0);
    let little = |is_little| if is_little { Amount::Little } else { Amount::Much };
    if let Some(rate) = work.shares.per_second(count) {
        return little(rate < LITTLE);
    }
    let snapshot = case.snapshot();
    let timer = snapshot.softirqs.get("TIMER").and_then(|by_cpu| by_cpu.get(&cpu)).map(Counter::value);
    match (timer, work.shares.basis) {
        (_, Basis::Between(_)) => Amount::Much,
        (Some(timer), Basis::SinceStart) => little((count as f64) < LITTLE_TO_TIMER * timer as f64),
        (None, Basis::SinceStart) if count < TINY => Amount::Little,
        (None, Basis::SinceStart) => Amount::Unknown,
    }
}
