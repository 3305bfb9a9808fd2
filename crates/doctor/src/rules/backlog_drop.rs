//! `backlog-drop`: a CPU's backlog of frames was full.

use crate::Case;
use crate::loss::{self, Loss, When};
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain::{self, Strain};
use host::{Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "backlog-drop",
    stage: "steer",
    page: Page {
        title: "Frames are dropped at a CPU's backlog",
        means: "Each CPU of Linux has a queue of frames that other CPUs hand to it: by RPS, and by drivers without NAPI \
                (veth without XDP, tun, loopback). When it holds `net.core.netdev_max_backlog` frames, 1000 by \
                default, more are dropped. Frames that a network card's driver polls on the same CPU never pass it.",
        shows: "The second column of `/proc/net/softnet_stat`, one line a CPU, in hexadecimal, rises.",
        fix: "If the CPU that drops has time left, deepen the queue: `sysctl -w net.core.netdev_max_backlog=N`. If it \
              has none, give RPS more CPUs, or other ones than those that serve interrupts (`rps-same-cpu`).",
        costs: "Memory for the frames that wait, and latency: 4000 frames take a slow CPU many milliseconds.",
    },
    judge: Judge::Machine(judge),
};

const SYSCTL: &str = "net.core.netdev_max_backlog";
/// Largest queue that is offered.
const DEEPEST: u64 = 16_384;

fn judge(case: &Case<'_>) -> Judgement {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
    let snapshot = case.snapshot();
    if snapshot.softnet.is_empty() {
        return Judgement::lacks("cat /proc/net/softnet_stat");
    }
    let losses: Vec<(u32, Loss)> = snapshot
        .softnet
        .iter()
        .filter_map(|(&cpu, softnet)| {
            let name = format!("the drop counter of CPU {cpu}'s backlog");
            Some((cpu, loss::of(case, &name, &softnet.dropped, Some(&softnet.processed))?))
        })
        .collect();
    let all: Vec<Loss> = losses.iter().map(|(_, loss)| loss.clone()).collect();
    let Some(gravest) = loss::gravest(&all) else { return Judgement::Clear };
    let cpu = losses.iter().find(|(_, loss)| loss.quote == gravest.quote).map(|(cpu, _)| *cpu);
    let strained = strain::of(case, cpu);
    let now = if gravest.when == When::Before { " None since." } else { "" };
    let explanation = format!(
        "{}.{now} The queue through which other CPUs (RPS) and drivers without NAPI hand frames to this CPU was full.{}",
        gravest.sentence(),
        strained.sentence
    );
    let quotes = all.iter().map(|loss| &loss.quote);
    let mut finding = RULE
        .finding(None, gravest.severity(), [&gravest.quote], explanation)
        .and(quotes)
        .and(strained.quote.as_ref());
    if gravest.severity() != Severity::Info && strained.strain != Strain::Full {
        finding = finding.and(sysctl(case)).with(remedy(case));
    }
    finding.into()
}

fn sysctl<'a>(case: &Case<'a>) -> Option<&'a Quote> {
    case.snapshot().sysctls.get(SYSCTL).map(host::Observed::quote)
}

/// Twice the present depth. Where that is not known no command is given: it might make the queue shorter.
fn remedy(case: &Case<'_>) -> Remedy {
    let now = case.snapshot().sysctls.get(SYSCTL).and_then(|seen| seen.get().trim().parse::<u64>().ok());
    let commands = now
        .map(|now| now.saturating_mul(2).min(DEEPEST).max(now))
        .filter(|&wanted| Some(wanted) != now)
        .map(|wanted| format!("sysctl -w {SYSCTL}={wanted}"));
    Remedy {
        os: "linux",
        what: match now {
            Some(now) => format!("a deeper backlog than {now} frames"),
            None => {
                format!("a backlog of twice what `sysctl {SYSCTL}` shows (1000 unless somebody changed it)")
            }
        },
        commands: commands.into_iter().collect(),
        expected:
            "Bursts of that length survive. Drops that go on mean that the CPU cannot keep up at any depth."
                .to_owned(),
    }
}
