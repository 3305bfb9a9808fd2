//! What the tests of rules ask of a report on a text.

use host::System;
use rxlane_doctor::finding::{Certainty, Finding, Severity};
use rxlane_doctor::report::Outcome;
use rxlane_doctor::{Case, Report, diagnose};

/// The report on a text.
pub fn report(text: &str) -> Report {
    let mut reader = host::text::Reader::new();
    reader.read("paste", text.as_bytes()).expect("memory");
    let snapshot = reader.finish();
    diagnose(&Case::new(&snapshot, None, None).expect("profiles"))
}

/// The finding of that id, which there is once.
pub fn one(report: &Report, id: &str) -> Finding {
    let mut findings = report.findings.iter().filter(|finding| finding.id == id);
    let finding = findings.next().unwrap_or_else(|| panic!("no {id}: {:?}", outcome(report, id))).clone();
    assert!(findings.next().is_none(), "{id} twice");
    finding
}

/// What became of a rule, and what it lacks.
pub fn outcome(report: &Report, id: &str) -> (Outcome, Vec<String>) {
    let row = report.rules.iter().find(|row| row.id == id).expect(id);
    (row.outcome, row.lacks.clone())
}

/// Severity and certainty.
pub fn weight(finding: &Finding) -> (Severity, Certainty) {
    (finding.severity, finding.certainty)
}

/// The commands of a finding for an operating system, but for those of rxlane itself. Those for Linux are ones that
/// `--apply` understands, and prints as they stand.
pub fn commands(finding: &Finding, os: System) -> Vec<String> {
    let remedies = finding.remedies.iter().filter(|remedy| remedy.os == os);
    let commands = remedies.flat_map(|remedy| remedy.commands.clone());
    let commands: Vec<String> = commands.filter(|command| !command.starts_with("rxlane ")).collect();
    for command in commands.iter().filter(|_| os == System::Linux) {
        let setting: host::setting::Setting =
            command.parse().unwrap_or_else(|error| panic!("{command}: {error}"));
        assert_eq!(setting.to_string(), *command);
    }
    commands
}

/// Whether a line of the evidence contains that.
pub fn quotes(finding: &Finding, part: &str) -> bool {
    finding.evidence.iter().any(|evidence| evidence.text.contains(part))
}

/// Whether a fact of the finding is written so, at least in part.
pub fn states(finding: &Finding, part: &str) -> bool {
    format!("{:?}", finding.facts).contains(part)
}

/// Whether the first remedy is written so, at least in part.
pub fn offers(finding: &Finding, part: &str) -> bool {
    finding
        .remedies
        .first()
        .is_some_and(|remedy| format!("{:?} {:?}", remedy.effect, remedy.forecast).contains(part))
}
