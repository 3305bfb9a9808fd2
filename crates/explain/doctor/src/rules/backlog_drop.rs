//! `backlog-drop`: a CPU's backlog of frames was full.

use crate::loss::{self, Loss, When};
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain::{self, Strain};
use crate::{Case, steered, steering};
use host::{Interface, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "backlog-drop",
    stage: "steer",
    page: Page {
        title: "Frames are dropped at a CPU's backlog",
        means: "Each CPU of Linux has a queue of frames that other CPUs hand to it: by RPS, and by drivers without NAPI \
                (veth without XDP, tun, loopback). When it holds `net.core.netdev_max_backlog` frames, 1000 by \
                default, more are dropped. Frames that a network card's driver polls on the same CPU never pass it. \
                Steering in XDP has a queue of its own to each CPU, of as many frames as `rxlane steer up --queue-size` \
                says, and what finds it full is dropped, too.",
        shows: "The second column of `/proc/net/softnet_stat`, one line a CPU, in hexadecimal, rises. Of steering: `drops` in \
                `rxlane steer status`.",
        fix: "If the CPU that drops has time left, deepen the queue: `sysctl -w net.core.netdev_max_backlog=N`. If it \
              has none, give RPS more CPUs, or other ones than those that serve interrupts (`rps-same-cpu`). Steering: \
              `--rebalance` where other CPUs have time, more CPUs where none has, a deeper queue for bursts; a CPU that \
              one flow fills is helped by none of them.",
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
    let at_targets: Vec<Finding> = case.devices().filter_map(|device| at_target(case, device)).collect();
    match at_backlogs(case) {
        Judgement::Found(more) => Judgement::Found(more.into_iter().chain(at_targets).collect()),
        _ if !at_targets.is_empty() => Judgement::Found(at_targets),
        other => other,
    }
}

/// Frames that steering could not hand on, since the queue to a CPU was full.
fn at_target(case: &Case<'_>, interface: &Interface) -> Option<Finding> {
    let steered = steered::of(case, interface)?;
    let losses = steered.losses(case);
    let all: Vec<Loss> = losses.iter().map(|(_, loss)| loss.clone()).collect();
    let gravest = loss::gravest(&all)?;
    let cpu = losses.iter().find(|(_, loss)| loss.quote == gravest.quote).map(|(cpu, _)| *cpu);
    let now = if gravest.when == When::Before { " None since." } else { "" };
    let lopsided = steered.lopsided().filter(|(busiest, _)| Some(*busiest) == cpu);
    let whose = lopsided.map_or(String::new(), |(_, share)| {
        format!(" It takes {:.0} % of what is steered while the other targets take the rest.", share * 100.0)
    });
    let full = steered.full_target(case).filter(|(full, ..)| Some(*full) == cpu);
    let load = full.as_ref().map_or(String::new(), |(cpu, idle, _)| {
        format!(" CPU {cpu} is idle {idle:.0} % of the time: it is the limit now.")
    });
    let explanation = format!("{}.{now}{whose}{load}", gravest.sentence());
    let finding = RULE
        .finding(Some(&interface.name), gravest.severity(), [&gravest.quote], explanation)
        .and(all.iter().map(|loss| &loss.quote))
        .and(full.as_ref().map(|(_, _, quote)| quote))
        .and(&steered.quotes());
    if gravest.severity() == Severity::Info {
        return Some(finding);
    }
    let name = steering::name(interface);
    let option = if steered.rebalances() || full.is_none() { "--queue-size N" } else { "--rebalance" };
    Some(finding.with(Remedy {
        os: "linux",
        what: "look at the frames and drops of each CPU; then attach it again with `--rebalance` where one CPU has too much \
               and others have time, more `--cpus` where none has, or a larger `--queue-size` where the CPU that drops has \
               time and only bursts overflow its queue"
            .to_owned(),
        commands: vec![format!("rxlane steer status {name}")],
        expected: format!(
            "By what was read `{option}` comes first. One flow that fills a CPU is helped by none of them."
        ), modelled: None,
}))
}

/// Frames lost at the backlogs.
fn at_backlogs(case: &Case<'_>) -> Judgement {
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
        modelled: None,
    }
}
