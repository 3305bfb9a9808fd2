//! `time-squeeze`: receive softirqs end with work left.

use crate::Case;
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use format::Share;
use host::{Delta, Observed, Quote, Softnet, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "time-squeeze",
    stage: "poll",
    page: Page {
        title: "Receive softirqs run out of budget",
        means: "One run of the receive softirq may take `net.core.netdev_budget` frames (300) and \
                `net.core.netdev_budget_usecs` microseconds (2000 to 20000, by kernel). When either is used up with \
                frames left, the run ends, is counted as squeezed, and the rest waits for the next run, or for ksoftirqd, \
                which competes with processes. A few squeezes are normal under bursts; many say that this CPU has \
                more receive work than it can do in one go.",
        shows: "The third column of `/proc/net/softnet_stat`, one line a CPU, in hexadecimal, rises by a notable part of \
                the first.",
        fix: "Spread the load over CPUs if it is on one. A larger budget (`net.core.netdev_budget` 600, \
              `net.core.netdev_budget_usecs` 4000 and more) lets each run do more before it yields.",
        costs: "Processes on that CPU wait longer for it. A budget makes no CPU faster.",
    },
    judge: Judge::Machine(judge),
};

/// Squeezed runs to frames above which a third and more of the frames were taken in runs that used up the usual
/// budget of 300.
const MANY: f64 = 1.0 / 1000.0;
/// Frames below which the ratio says nothing.
const ENOUGH: u64 = 1000;
/// Squeezes a second below which no CPU is short of time.
const A_SECOND: f64 = 10.0;

const BUDGET: &str = "net.core.netdev_budget";
const MICROSECONDS: &str = "net.core.netdev_budget_usecs";

struct Squeezed<'a> {
    cpu: u32,
    times: u64,
    frames: u64,
    per_second: Option<f64>,
    is_now: bool,
    softnet: &'a Softnet,
}

impl Squeezed<'_> {
    fn ratio(&self) -> f64 {
        self.times as f64 / self.frames.max(1) as f64
    }

    fn is_many(&self) -> bool {
        self.is_now
            && self.frames >= ENOUGH
            && self.ratio() >= MANY
            && self.per_second.is_none_or(|rate| rate >= A_SECOND)
    }
}

fn judge(case: &Case<'_>) -> Judgement {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
    let snapshot = case.snapshot();
    if snapshot.softnet.is_empty() {
        return Judgement::lacks("cat /proc/net/softnet_stat");
    }
    let squeezed = snapshot.softnet.iter().filter_map(|(&cpu, softnet)| squeezed(case, cpu, softnet));
    let Some(worst) = squeezed.max_by(|a, b| {
        (a.is_many(), a.is_now, a.ratio())
            .partial_cmp(&(b.is_many(), b.is_now, b.ratio()))
            .unwrap_or(std::cmp::Ordering::Equal)
    }) else {
        return Judgement::Clear;
    };
    let quote: &Quote = worst.softnet.time_squeeze.quote();
    if !worst.is_many() {
        // A handful since boot is what every machine shows.
        return match worst.is_now || worst.ratio() >= MANY {
            true => RULE.finding(None, Severity::Info, [quote], few(&worst)).into(),
            false => Judgement::Clear,
        };
    }
    RULE.finding(None, Severity::Warning, [quote], many(&worst)).and(sysctls(case)).with(remedy(case)).into()
}

fn squeezed<'a>(case: &Case<'_>, cpu: u32, softnet: &'a Softnet) -> Option<Squeezed<'a>> {
    let interval = case.snapshot().interval.map(|interval| interval.as_secs_f64());
    let (times, frames, is_now) = match (softnet.time_squeeze.delta(), softnet.processed.delta()) {
        (Delta::Counted(times) | Delta::Wrapped(times), Delta::Counted(frames) | Delta::Wrapped(frames))
            if times > 0 =>
        {
            (times, frames, true)
        }
        (Delta::Counted(_), _) => return None,
        _ => (softnet.time_squeeze.value(), softnet.processed.value(), false),
    };
    let per_second = interval.filter(|_| is_now).map(|seconds| times as f64 / seconds);
    (times > 0).then_some(Squeezed { cpu, times, frames, per_second, is_now, softnet })
}

fn many(worst: &Squeezed<'_>) -> String {
    format!(
        "On CPU {} the receive softirq ran out of budget {} times for {} frames between the samples{}: at 300 frames a \
         run, {} of its frames came in runs that ended with work left.",
        worst.cpu,
        worst.times,
        worst.frames,
        worst.per_second.map_or(String::new(), |rate| format!(", {rate:.0} times a second")),
        Share::fraction((worst.ratio() * 300.0).min(1.0)).small(),
    )
}

fn few(worst: &Squeezed<'_>) -> String {
    format!(
        "On CPU {} the receive softirq ran out of budget {} times for {} frames {}. That happens under bursts and costs \
         little by itself.",
        worst.cpu,
        worst.times,
        worst.frames,
        if worst.is_now { "between the samples" } else { "since the counters were started" },
    )
}

fn sysctls<'a>(case: &Case<'a>) -> Vec<&'a Quote> {
    [BUDGET, MICROSECONDS]
        .iter()
        .filter_map(|name| case.snapshot().sysctls.get(*name))
        .map(Observed::quote)
        .collect()
}

/// Twice the present budget. Where that is not known no command is given: it might lower it.
fn remedy(case: &Case<'_>) -> Remedy {
    let present = |name: &str| {
        case.snapshot()
            .sysctls
            .get(name)
            .and_then(|seen| seen.get().trim().parse::<u64>().ok())
            .filter(|&now| now > 0)
    };
    let doubled = |name: &str, most: u64| {
        let now = present(name)?;
        let wanted = now.saturating_mul(2).min(most);
        (wanted > now).then(|| format!("sysctl -w {name}={wanted}"))
    };
    let commands: Vec<String> =
        [doubled(BUDGET, 2400), doubled(MICROSECONDS, 32_000)].into_iter().flatten().collect();
    let what = if commands.is_empty() {
        format!("a larger budget: 600 for {BUDGET} if it is at its default of 300, and twice {MICROSECONDS}")
    } else {
        "twice the budget of frames and time for a run".to_owned()
    };
    Remedy {
        os: "linux",
        what,
        commands,
        expected:
            "Fewer, longer runs. It makes no CPU faster: if the CPU is full, only spreading the load helps."
                .to_owned(),
        modelled: None,
    }
}
