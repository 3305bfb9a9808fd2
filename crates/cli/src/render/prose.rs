//! A diagnosis in sentences: the one place that words what crate `doctor` states as facts.

pub mod coalescing;
pub mod explain;
mod facts;
pub mod fast;
mod flow;
mod locks;
mod remedies;
pub mod trace;

use doctor::Report;
use doctor::facts::{Assumption, Fact, Insufficient, Model};
use doctor::finding::{Certainty, Finding, Remedy, Severity};
use doctor::report::{Outcome, Verdict};
use facts::insufficient::{Reading, insufficient_live};
use format::{Share, thousands};
use kernel::cpu::CpuSet;
use serde::Serialize;
use std::ops::Deref;

/// A report with its sentences, as `--json` prints it.
#[derive(Serialize)]
pub struct Worded<'r> {
    #[serde(flatten)]
    report: &'r Report,
    /// The answer in one to three sentences.
    pub conclusion: Vec<String>,
    /// Findings, the gravest first.
    pub findings: Vec<WordedFinding<'r>>,
}

impl Deref for Worded<'_> {
    type Target = Report;

    fn deref(&self) -> &Report {
        self.report
    }
}

/// A finding with its sentences.
#[derive(PartialEq, Serialize)]
pub struct WordedFinding<'r> {
    #[serde(flatten)]
    finding: &'r Finding,
    /// All sentences.
    pub explanation: String,
    /// What helps.
    pub remedies: Vec<WordedRemedy<'r>>,
}

impl Deref for WordedFinding<'_> {
    type Target = Finding;

    fn deref(&self) -> &Finding {
        self.finding
    }
}

/// A remedy with its sentences.
#[derive(Debug, PartialEq, Serialize)]
pub struct WordedRemedy<'r> {
    /// `linux`, `freebsd` or `netbsd`.
    pub os: &'static str,
    /// In a few words, what the commands do.
    pub what: String,
    /// Commands for this machine, in the order in which to run them.
    pub commands: &'r [String],
    /// What to expect.
    pub expected: String,
    /// Whether the commands change nothing, and only show what the fix depends on.
    #[serde(skip)]
    pub is_question: bool,
    /// What to know before the commands run, where it is short; `expected` has it, too.
    #[serde(skip)]
    pub caution: Option<String>,
    /// What the model of the receive path expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelled: Option<WordedModel>,
}

/// What the model expects, with what it assumes as clauses that follow "if".
#[derive(Debug, PartialEq, Serialize)]
pub struct WordedModel {
    times: f64,
    packets_per_second_now: Option<f64>,
    packets_per_second: Option<f64>,
    assumptions: Vec<String>,
}

/// The report with its sentences. What a live machine did not show, no command of the person's would.
pub fn worded(report: &Report, live: bool) -> Worded<'_> {
    let findings = report.findings.iter().map(|finding| worded_finding(report, finding, live)).collect();
    Worded { report, conclusion: conclusion(report), findings }
}

fn worded_finding<'r>(report: &'r Report, finding: &'r Finding, live: bool) -> WordedFinding<'r> {
    let sentence = |fact: &Fact| match fact {
        Fact::Insufficient(Insufficient { ids, of, .. }) if live => {
            let (sample, traced) = (report.summary.sample, report.trace.is_some());
            let as_root = crate::privilege::is_root();
            insufficient_live(ids, *of, &Reading { as_root, sample, traced })
        }
        fact => facts::sentence(report, finding, fact),
    };
    let sentences: Vec<String> = finding.facts.iter().map(sentence).collect();
    let remedies = finding.remedies.iter().map(|remedy| worded_remedy(finding, remedy)).collect();
    WordedFinding { finding, explanation: sentences.join(" ").replace('\n', " "), remedies }
}

fn worded_remedy<'r>(finding: &Finding, remedy: &'r Remedy) -> WordedRemedy<'r> {
    let (what, mut expected) = remedies::words(finding, remedy);
    if let Some(forecast) = &remedy.forecast {
        expected = remedies::forecast(forecast);
    }
    let modelled = remedy.model.as_ref().and_then(worded_model);
    match (&remedy.model, &modelled) {
        (Some(Model::Uncounted), _) => expected.push_str(
            " What the model expects of it is unknown: what a program costs where frames arrive in socket buffers was not \
             counted.",
        ),
        (_, Some(modelled)) => expected.push_str(&modelled.sentence()),
        _ => {}
    }
    let caution = remedies::caution(finding, remedy);
    let is_question = remedy.effect == doctor::facts::Effect::FindLock;
    WordedRemedy {
        os: remedy.os.name(),
        what,
        commands: &remedy.commands,
        expected,
        is_question,
        caution,
        modelled,
    }
}

fn worded_model(model: &Model) -> Option<WordedModel> {
    let Model::Expected(modelled) = model else { return None };
    let (now, then) = modelled.packets_per_second.unzip();
    let assumptions = modelled.assumptions.iter().map(|assumption| match assumption {
        Assumption::WorkDivides { forwarded, coalesced } => format!(
            "work for a frame that is {} divides as was counted with igb on Linux {}",
            if *forwarded { "forwarded" } else { "delivered" },
            if *coalesced { "7.3 with PPPoE GRO" } else { "6.12" }
        ),
        Assumption::FlowsAlike => "flows are many and alike".to_owned(),
        Assumption::SecondsAFrame(seconds) => {
            format!("a frame takes {:.2} µs as between the samples", seconds * 1e6)
        }
        Assumption::InterruptsCountFrames => {
            "the vectors' interrupts show how many frames each queue has".to_owned()
        }
        Assumption::CpusAlike => "a frame takes as long on every CPU".to_owned(),
    });
    Some(WordedModel {
        times: modelled.times,
        packets_per_second_now: now,
        packets_per_second: then,
        assumptions: assumptions.collect(),
    })
}

impl WordedModel {
    /// With a blank before it.
    fn sentence(&self) -> String {
        let rates = match (self.packets_per_second_now, self.packets_per_second) {
            (Some(now), Some(then)) => {
                format!(" (some {} now, {} then)", thousands(rounded(now)), thousands(rounded(then)))
            }
            _ => String::new(),
        };
        format!(
            " The model expects {:.1} times the packets a second without loss{rates}, if {}.",
            self.times,
            self.assumptions.join(", and ")
        )
    }
}

/// To two digits: more would promise what no model keeps.
fn rounded(rate: f64) -> u64 {
    let unit = 10f64.powf(rate.max(1.0).log10().floor() - 1.0).max(1.0);
    ((rate / unit).round() * unit) as u64
}

/// The verdict, the gravest finding, and what to do first.
fn conclusion(report: &Report) -> Vec<String> {
    let graver = || report.findings.iter().filter(|finding| finding.severity != Severity::Info);
    let mut sentences = vec![first(report, graver().next())];
    if report.verdict == Verdict::Unknown && report.summary.idle {
        sentences.push(
            "Hardly a frame arrived between the samples: run it again while the line is busy.".to_owned(),
        );
    }
    let others: Vec<&str> = graver().skip(1).map(|finding| finding.id).collect();
    if !others.is_empty() {
        sentences.push(format!("Also: {}.", others.join(", ")));
    }
    sentences
}

fn first(report: &Report, gravest: Option<&Finding>) -> String {
    let at_stage = |finding: &Finding| {
        let of = match finding.interface.as_deref() {
            Some("") | None => String::new(),
            Some(name) => format!(" of {name}"),
        };
        let fact = finding.facts.first().map(|fact| facts::sentence(report, finding, fact));
        let fact = fact.and_then(|fact| fact.lines().next().map(str::to_owned));
        (finding.stage, of, fact.unwrap_or_default())
    };
    match (report.verdict, gravest) {
        (Verdict::Limited, Some(finding)) => {
            let (stage, of, fact) = at_stage(finding);
            format!("Bottleneck: {}{of}: {fact}", stage_name(stage))
        }
        (Verdict::Unknown, Some(finding)) if finding.certainty == Certainty::Possible => {
            let (stage, of, fact) = at_stage(finding);
            format!("Possible bottleneck (not proven): {}{of}: {fact}", stage_name(stage))
        }
        (Verdict::Healthy, _) if report.summary.steered => {
            "Healthy: frames spread over the CPUs, by steering where the queues do not, and none are lost, as far as the text shows."
                .to_owned()
        }
        (Verdict::Healthy, _) => {
            "Healthy: frames spread over the receive queues and CPUs, and none are lost, as far as the text shows.".to_owned()
        }
        _ if report.summary.nothing_read => {
            "Unknown: nothing in this text is the output of a tool that rxlane knows.".to_owned()
        }
        _ => {
            let lacking = report.rules.iter().filter(|row| row.outcome == Outcome::InsufficientData).count();
            let possible = report.findings.iter().filter(|f| f.certainty == Certainty::Possible);
            let possible: Vec<&str> = possible.map(|finding| finding.id).collect();
            let seen = match possible.is_empty() {
                true => "nothing wrong was seen".to_owned(),
                false => format!("nothing certain was seen (possible: {})", possible.join(", ")),
            };
            match lacking {
                0 => format!("Unknown: {seen}, but what arrived is too little to say more."),
                _ => format!("Unknown: {seen}, but {lacking} of {} rules lack data.", report.rules.len()),
            }
        }
    }
}

/// A stage of the receive path with what it is.
fn stage_name(stage: &str) -> String {
    let what = match stage {
        "admit" => "the link and the NIC's frame filter",
        "parse" => "the NIC's parser",
        "hash" => "the RSS hash",
        "queue" => "the receive queues",
        "moderate" => "interrupt moderation",
        "poll" => "interrupts and polling",
        "steer" => "steering to other CPUs",
        "coalesce" => "GRO",
        "decap" => "decapsulation",
        "deliver" => "the IP input queue and forwarding",
        "segment" => "checksums and segmentation",
        "transmit" => "the driver's transmit queues",
        _ => return stage.to_owned(),
    };
    format!("{stage} ({what})")
}

/// The interface of a finding in a sentence or a command.
fn name(finding: &Finding) -> &str {
    finding.interface.as_deref().filter(|name| !name.is_empty()).unwrap_or("IFACE")
}

/// `CPU 1`, `CPUs 1-3, 5`.
fn cpus(cpus: &[u32]) -> String {
    format!("CPU{} {}", if cpus.len() == 1 { "" } else { "s" }, numbers(cpus))
}

/// `1-3, 5`.
fn numbers(numbers: &[u32]) -> String {
    CpuSet::new(numbers.iter().copied()).map(|set| set.list().replace(',', ", ")).unwrap_or_default()
}

/// `eth0.7, eth0.8 and 40 more`.
fn named(names: &[String]) -> String {
    const NAMED: usize = 8;
    let first = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// A share as a person reads it, small ones with their first digit.
fn percent(share: f64) -> String {
    Share::fraction(share).small()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_machine_is_to_be_read_as_it_was_not() {
        let words = |ids: &[&str], as_root, sample, traced| {
            insufficient_live(ids, 49, &Reading { as_root, sample, traced })
        };
        let none = words(&["lock-contention"], false, None, false);
        for part in ["as root", "--sample", "--trace"] {
            assert!(none.contains(part), "{none}");
        }
        let all = words(&["lock-contention"], true, Some(true), true);
        assert!(all.ends_with("Run it again while the line is busy."), "{all}");
        let empty = words(&[], true, Some(false), true);
        assert!(empty.ends_with("busy; the sample holds no frame."), "{empty}");
        let other = words(&["udp-two-tuple"], true, None, false);
        assert!(other.ends_with("busy; --sample adds the traffic of an interface."), "{other}");
    }

    #[test]
    fn numbers_of_cpus_and_rates() {
        assert_eq!([numbers(&[0, 1, 2, 5, 7, 8]), numbers(&[])], ["0-2, 5, 7-8", ""]);
        for (rate, expected) in [(1_234_567.0, 1_200_000), (98_765.0, 99_000), (7.0, 7), (0.0, 0)] {
            assert_eq!(rounded(rate), expected);
        }
    }
}
