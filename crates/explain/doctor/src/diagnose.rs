//! Runs the rules over a case and draws the verdict.

use crate::finding::{Certainty, Finding, Severity};
use crate::remedies;
use crate::report::{Outcome, Report, RuleRow, Summary, Verdict};
use crate::rule::{Judge, Judgement, Rule};
use crate::traffic::Traffic;
use crate::{Case, ENOUGH_BETWEEN, RULES, load, placement, rows, rules, stacked, steered};
use host::{Snapshot, System, Unread};

/// Findings that decide whether a receive path is in order: where each of these rules has looked and found
/// nothing, nothing of the usual limits.
const DECIDING: [&[&str]; 3] = [
    // Do frames spread over queues, or is there only one?
    &["one-queue-hot"],
    // Do CPUs share the work?
    &["irq-one-cpu", "softirq-one-cpu"],
    // Are frames lost?
    &["ring-overflow", "backlog-drop"],
];

/// What is wrong, as far as the case shows.
pub fn diagnose(case: &Case<'_>) -> Report {
    let mut findings: Vec<Finding> = Vec::new();
    let mut rules: Vec<RuleRow> = Vec::new();
    let is_full = load::all_full(case).is_some();
    for rule in RULES {
        let judgements = judge(rule, case);
        rules.push(outcome(rule, case, &judgements));
        for judgement in judgements {
            if let Judgement::Found(found) = judgement {
                let found = found.into_iter().map(|finding| remedies::by_uci(case, finding));
                findings
                    .extend(found.map(|one| if is_full { remedies::without_spreading(one) } else { one }));
            }
        }
    }
    debug_assert!(findings.iter().all(|finding| !finding.evidence.is_empty()), "a finding without evidence");
    findings.retain(|finding| !finding.evidence.is_empty());
    let is_steered_idle = steered::is_idle(case);
    let verdict = match verdict(&findings, &rules) {
        // What other interfaces bring says nothing of what this one's frames do.
        Verdict::Healthy if is_steered_idle => Verdict::Unknown,
        verdict => verdict,
    };
    findings.sort_by_key(|finding| {
        (finding.severity, finding.certainty == Certainty::Possible, finding.id != "cpus-full")
    });
    placement::before_rps(case, &mut findings);
    findings.extend(rules::insufficient(case, &rules));
    let snapshot = case.snapshot();
    Report {
        schema: Report::SCHEMA,
        verdict,
        summary: Summary {
            nothing_read: snapshot.read.is_empty(),
            steered: steered::any(case).is_some(),
            idle: is_idle(case) || is_steered_idle,
            sample: case.traffic().map(Traffic::has_frames),
        },
        system: case.system().map(System::name),
        cpus: snapshot.cpu_count(),
        cpu_model: snapshot.cpus.model.as_ref().map(|model| model.value.clone()),
        seconds: snapshot.interval.map(|interval| interval.as_secs_f64()),
        interfaces: rows::interfaces(case),
        vectors: rows::vectors(case),
        per_cpu: rows::per_cpu(case),
        stacked: stacked::rows(case),
        fastpath: rows::fast_path(case),
        traffic: rows::traffic(case),
        findings,
        rules,
        unread: unread(snapshot),
        trace: None,
    }
}

/// Whether two samples show that next to nothing was received.
fn is_idle(case: &Case<'_>) -> bool {
    let counters = case.devices().filter_map(|device| device.interface.totals.packets.as_ref());
    let counted: Vec<u64> = counters.filter_map(host::Counter::counted).collect();
    !counted.is_empty() && counted.iter().fold(0, |sum: u64, &n| sum.saturating_add(n)) < ENOUGH_BETWEEN
}

/// What could not be read, and that there was more than is kept.
fn unread(snapshot: &Snapshot) -> Vec<Unread> {
    let omitted = (snapshot.omitted > 0).then(|| Unread {
        what: format!("{} more facts", snapshot.omitted),
        why: "more interfaces, queues, vectors or names than are kept of each".to_owned(),
    });
    snapshot.unread.iter().cloned().chain(omitted).collect()
}

fn judge(rule: &Rule, case: &Case<'_>) -> Vec<Judgement> {
    let signed = |mut judgement: Judgement, interface: Option<&str>| {
        if let Judgement::Found(found) = &mut judgement {
            for finding in found {
                (finding.id, finding.stage) = (rule.id, rule.stage);
                finding.interface = finding.interface.take().or_else(|| interface.map(str::to_owned));
            }
        }
        judgement
    };
    let applies = !rule.linux || !case.is_bsd();
    match rule.judge {
        Judge::Machine(judge) if applies => vec![signed(judge(case), None)],
        Judge::Device(judge) if applies => {
            case.devices().map(|device| signed(judge(&device), Some(&device.interface.name))).collect()
        }
        Judge::Machine(_) => vec![Judgement::DoesNotApply],
        Judge::Device(_) => case.devices().map(|_| Judgement::DoesNotApply).collect(),
    }
}

/// What a rule came to over all interfaces: found before insufficient before clear.
fn outcome(rule: &Rule, case: &Case<'_>, judgements: &[Judgement]) -> RuleRow {
    let mut lacks: Vec<String> = Vec::new();
    let mut outcome = Outcome::DoesNotApply;
    for judgement in judgements {
        match judgement {
            Judgement::Found(found) if !found.is_empty() => outcome = Outcome::Found,
            Judgement::Found(_) | Judgement::Clear => {
                if outcome == Outcome::DoesNotApply {
                    outcome = Outcome::Clear;
                }
            }
            Judgement::Lacks(commands) => {
                if outcome != Outcome::Found {
                    outcome = Outcome::InsufficientData;
                }
                for command in commands {
                    if !lacks.contains(command) {
                        lacks.push(command.clone());
                    }
                }
            }
            Judgement::DoesNotApply => {}
        }
    }
    // No device at all: a rule about devices has nothing to judge.
    if judgements.is_empty() {
        outcome = Outcome::InsufficientData;
        let counters = case.by_system(
            "ethtool -S IFACE, cat /proc/interrupts",
            "sysctl dev.igb (or the driver's name), vmstat -i",
            "vmstat -i, netstat -i -b",
        );
        lacks.push(counters.to_owned());
    }
    rules::lacking::of_named_interfaces(case, &mut lacks);
    RuleRow { id: rule.id, outcome, lacks }
}

fn verdict(findings: &[Finding], rules: &[RuleRow]) -> Verdict {
    let limits =
        |finding: &Finding| finding.severity != Severity::Info && finding.certainty == Certainty::Certain;
    if findings.iter().any(limits) {
        return Verdict::Limited;
    }
    let is_clear = |id: &str| {
        rules.iter().any(|row| row.id == id && matches!(row.outcome, Outcome::Clear | Outcome::Found))
    };
    let decided = DECIDING.iter().all(|any_of| any_of.iter().any(|id| is_clear(id)));
    let open = findings.iter().any(|finding| finding.severity != Severity::Info);
    if decided && !open { Verdict::Healthy } else { Verdict::Unknown }
}
