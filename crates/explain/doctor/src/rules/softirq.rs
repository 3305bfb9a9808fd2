//! Receive work of the CPUs: `softirq-one-cpu`, `cpus-full`, `time-squeeze`.

use crate::case::{enough, since};
use crate::distribution::NEARLY_ALL;
use crate::facts::{CpuLoad, Effect, Fact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::load;
use crate::rule::Judgement;
use crate::steered::{self, Steered};
use crate::{Case, ENOUGH_BETWEEN};
use host::{Basis, Counter, Delta, Quote, Shares, Softnet};

/// Receive softirqs a second that any CPU carries: below this the machine is idle.
const LITTLE: f64 = 1_000.0;

/// Receive softirqs for each timer softirq below which the machine is idle most of the time. A CPU that is awake
/// counts `CONFIG_HZ`, 100 to 1000, of the latter a second, so that they measure how long the counts took.
const LITTLE_TO_TIMER: f64 = 0.1;

/// Receive softirqs, or frames, since boot that are little however short ago that was: ten minutes at [`LITTLE`].
const TINY: u64 = 600_000;

/// Lines of evidence besides the busy CPU's.
const MOST_QUOTES: usize = 4;

/// Receive work by CPU.
struct Work<'c> {
    cpus: Vec<u32>,
    counters: Vec<&'c Counter>,
    shares: Shares,
    /// Whether softirqs were counted, not frames.
    by_softirqs: bool,
}

/// Steering hands frames to threads, whose work is no softirq and does count in `softnet_stat`
/// (`cpu_map_kthread_run()` in kernel/bpf/cpumap.c, `__netif_receive_skb_core()` in net/core/dev.c).
fn work<'c>(case: &Case<'c>, is_steered: bool) -> Option<Work<'c>> {
    let snapshot = case.snapshot();
    let softirqs = snapshot.softirqs.get("NET_RX").filter(|_| !is_steered || snapshot.softnet.len() < 2);
    let (cpus, counters): (Vec<u32>, Vec<&Counter>) = match softirqs {
        Some(by_cpu) => by_cpu.iter().map(|(cpu, counter)| (*cpu, counter)).unzip(),
        None => snapshot.softnet.iter().map(|(cpu, row)| (*cpu, &row.processed)).unzip(),
    };
    let shares = case.shares(counters.iter().copied())?;
    Some(Work { cpus, counters, shares, by_softirqs: softirqs.is_some() })
}

/// `softirq-one-cpu`: one CPU does nearly all receive work.
pub(super) fn one_cpu(case: &Case<'_>) -> Judgement {
    match by_counts(case) {
        Judgement::Lacks(commands) => {
            by_load(case).or_else(|| by_thread(case)).map_or(Judgement::Lacks(commands), Judgement::from)
        }
        judged => judged,
    }
}

fn by_counts(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let is_one = snapshot.cpu_count() == Some(1);
    if snapshot.softirqs.is_empty() && snapshot.softnet.is_empty() {
        return if is_one { Judgement::DoesNotApply } else { Judgement::lacks("cat /proc/softirqs") };
    }
    let steered = steered::any(case);
    // Without shares, counters were reset between the samples.
    let work = work(case, steered.is_some());
    let Some(work) = work.filter(|work| work.cpus.len() >= 2 || is_one) else {
        return Judgement::lacks("cat /proc/softirqs");
    };
    if work.cpus.len() < 2 {
        return Judgement::DoesNotApply;
    }
    let largest = work.shares.largest().filter(|_| work.shares.total() >= enough(work.shares.basis));
    let Some((place, share)) = largest else {
        return Judgement::lacks("cat /proc/softirqs, twice under load");
    };
    match work.cpus.get(place) {
        Some(&cpu) if share >= NEARLY_ALL => busy_cpu(case, &work, (place, cpu), share, steered.as_ref()),
        // What was spread since the start may be on one CPU now.
        _ if work.shares.basis == Basis::SinceStart => {
            by_load(case).map_or(Judgement::Clear, Judgement::from)
        }
        _ => Judgement::Clear,
    }
}

/// `cpus-full`: receive work fills every CPU, so that there is nothing to spread to.
pub(super) fn all_full(case: &Case<'_>) -> Judgement {
    if case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let Some(full) = load::all_full(case) else {
        let is_clear = load::not_all_full(case);
        return if is_clear { Judgement::Clear } else { Judgement::lacks(load::command(case)) };
    };
    let os = case.system().unwrap_or(host::System::Linux);
    found(Severity::Critical, Fact::CpusFull { cpus: full.cpus, idle: full.idle, work: full.work })
        .quotes(full.quotes)
        .fix([Remedy::new(os, Effect::LessWork, [""; 0])])
        .into()
}

/// Part of a CPU's time from which soft interrupts leave no doubt that they are what fills it, per cent.
const NO_DOUBT: f64 = 80.0;

/// Without counters, the line of the one CPU that soft interrupts fill.
fn by_load(case: &Case<'_>) -> Option<Finding> {
    let full = load::one_full(case)?;
    let fact = Fact::SoftirqFull { cpu: full.cpu, share: full.share, idle: full.idle, others: full.others };
    let finding = found(Severity::Critical, fact).quotes([full.quote]).fix([find_cause()]);
    Some(finding.possible_if(full.share < NO_DOUBT))
}

/// Without counters, the thread that takes over soft interrupts where they are too many says the same, but not that
/// they are those of reception.
fn by_thread(case: &Case<'_>) -> Option<Finding> {
    let (cpu, process, share) = load::only_full_thread(case)?;
    let finding = found(Severity::Warning, Fact::Ksoftirqd { cpu, share }).quotes([&process.quote]);
    Some(finding.fix([find_cause()]).possible_if(true))
}

fn find_cause() -> Remedy {
    Remedy::linux(Effect::FindCause, [""; 0])
}

fn busy_cpu(
    case: &Case<'_>,
    work: &Work<'_>,
    (place, cpu): (usize, u32),
    share: f64,
    steered: Option<&Steered<'_>>,
) -> Judgement {
    let load = load::of(case, Some(cpu));
    let is_little = is_little(case, work, place, cpu);
    let is_spread = steered.is_some_and(|steered| steered.uneven().is_none());
    let unless = if is_little == Some(true) || is_spread { Severity::Info } else { Severity::Warning };
    let severity = load.severity(unless);
    let amount = match is_little {
        _ if load.is_full() => None,
        Some(is_little) => is_little.then_some(Fact::WorkIsLittle),
        None => Some(Fact::WorkOverUnknownTime),
    };
    let others = work.cpus.len() - 1;
    let by_steering =
        steered.map(|steered| Fact::WorkSteered { steering: steered.fact(), uncounted: work.by_softirqs });
    let line = |counter: &&Counter| counter.quote().clone();
    let all: Vec<Quote> = work.counters.iter().take(work.cpus.len().min(MOST_QUOTES)).map(line).collect();
    let finding =
        found(severity, Fact::OneCpuReceives { cpu, share, others, since: since(work.shares.basis) })
            .says(amount)
            .quotes(work.counters.get(place).map(|counter| counter.quote()))
            .quotes(&all)
            .load(&load)
            .says(by_steering)
            .quotes(steered.into_iter().flat_map(Steered::quotes));
    if severity == Severity::Info || is_spread {
        return finding.into();
    }
    let is_unknown = matches!(load.state, CpuLoad::Between { .. } | CpuLoad::Unknown);
    finding.fix([find_cause()]).possible_if(is_little.is_none() && is_unknown).into()
}

/// Whether one CPU carries the work easily; `None` where there is no measure of the time that it took. `softnet_stat`
/// counts frames and not softirqs, and is judged by its rate alone.
fn is_little(case: &Case<'_>, work: &Work<'_>, place: usize, cpu: u32) -> Option<bool> {
    let count = work.shares.counts.get(place).copied().unwrap_or(0);
    if let Some(rate) = work.shares.per_second(count) {
        return Some(rate < LITTLE);
    }
    let timer = case.snapshot().softirqs.get("TIMER").and_then(|by_cpu| by_cpu.get(&cpu));
    match (timer, work.shares.basis) {
        (_, Basis::Between(_)) => Some(false),
        (Some(timer), Basis::SinceStart) => Some((count as f64) < LITTLE_TO_TIMER * timer.value() as f64),
        (None, Basis::SinceStart) => (count < TINY).then_some(true),
    }
}

/// Squeezed runs to frames above which a third and more of the frames were taken in runs that used up the usual
/// budget of 300.
const MANY: f64 = 1.0 / 1000.0;
/// Squeezes a second below which no CPU is short of time.
const A_SECOND: f64 = 10.0;
/// Frames of a run, unless somebody changed it.
const USUAL_BUDGET: f64 = 300.0;

/// Settings of the budget, and the most that is offered.
const BUDGET: [(&str, u64); 2] = [("net.core.netdev_budget", 2400), ("net.core.netdev_budget_usecs", 32_000)];

struct Squeezed<'c> {
    cpu: u32,
    times: u64,
    frames: u64,
    per_second: Option<f64>,
    is_now: bool,
    quote: &'c Quote,
}

impl Squeezed<'_> {
    fn of<'c>(case: &Case<'_>, cpu: u32, softnet: &'c Softnet) -> Option<Squeezed<'c>> {
        let (squeezes, processed) = (&softnet.time_squeeze, &softnet.processed);
        let counted = squeezes.counted().zip(processed.counted()).filter(|(times, _)| *times > 0);
        if counted.is_none() && matches!(squeezes.delta(), Delta::Counted(_)) {
            return None;
        }
        let (times, frames) = counted.unwrap_or((squeezes.value(), processed.value()));
        let interval = case.snapshot().interval.filter(|_| counted.is_some());
        let per_second = interval.map(|interval| times as f64 / interval.as_secs_f64());
        let squeezed =
            Squeezed { cpu, times, frames, per_second, is_now: counted.is_some(), quote: squeezes.quote() };
        (times > 0).then_some(squeezed)
    }

    fn ratio(&self) -> f64 {
        self.times as f64 / self.frames.max(1) as f64
    }

    fn is_many(&self) -> bool {
        self.is_now
            && self.frames >= ENOUGH_BETWEEN
            && self.ratio() >= MANY
            && self.per_second.is_none_or(|rate| rate >= A_SECOND)
    }
}

/// `time-squeeze`: receive softirqs end with work left.
pub(super) fn time_squeeze(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    if snapshot.softnet.is_empty() {
        return Judgement::lacks("cat /proc/net/softnet_stat");
    }
    let squeezed = snapshot.softnet.iter().filter_map(|(&cpu, softnet)| Squeezed::of(case, cpu, softnet));
    let rank = |squeezed: &Squeezed<'_>| (squeezed.is_many(), squeezed.is_now, squeezed.ratio());
    let worst = squeezed
        .max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal))
        // A handful since boot is what every machine shows.
        .filter(|worst| worst.is_now || worst.ratio() >= MANY);
    let Some(worst) = worst else { return Judgement::Clear };
    let Squeezed { cpu, times, frames, per_second, is_now, quote } = worst;
    if !worst.is_many() {
        let fact = Fact::SqueezedLittle { cpu, times, frames, now: is_now };
        return found(Severity::Info, fact).quotes([quote]).into();
    }
    let sysctls =
        BUDGET.iter().filter_map(|(name, _)| snapshot.sysctls.get(*name)).map(host::Observed::quote);
    // Twice the present budget. Where that is not known no command is given: it might lower it.
    let doubled = |(name, most): &(&str, u64)| {
        let now = case.sysctl(name).map(|(now, _)| now).filter(|&now| now > 0)?;
        let doubled = now.saturating_mul(2).min(*most);
        (doubled > now).then(|| format!("sysctl -w {name}={doubled}"))
    };
    let commands: Vec<String> = BUDGET.iter().filter_map(doubled).collect();
    let share = (worst.ratio() * USUAL_BUDGET).min(1.0);
    found(Severity::Warning, Fact::Squeezed { cpu, times, frames, share, per_second })
        .quotes([quote])
        .quotes(sysctls)
        .fix([Remedy::linux(Effect::Budget { known: !commands.is_empty() }, commands)])
        .into()
}
