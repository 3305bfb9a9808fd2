//! Any bytes as the texts that somebody pasted (a NUL parts the first from the second), to the end of a diagnosis:
//! no panic, every finding rests on lines of the texts, "healthy" only where the deciding rules have looked, and no
//! command that a shell would read otherwise than as its words.

use rxlane_doctor::finding::{Certainty, Finding, Severity};
use rxlane_doctor::report::{Outcome, Report, Verdict};
use rxlane_doctor::{Case, diagnose};
use rxlane_host::text::Reader;
use rxlane_host::{Quote, System};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of a line that the reader looks at.
const LONGEST_LINE: usize = 64 * 1024;

/// For each of these questions one of the rules has to have looked before a machine is called healthy.
const DECIDING: [&[&str]; 3] =
    [&["one-queue-hot"], &["irq-one-cpu", "softirq-one-cpu"], &["ring-overflow", "backlog-drop"]];

/// The lines of a text as evidence shows them.
fn lines(text: &[u8]) -> impl Iterator<Item = Arc<str>> {
    let source: Arc<str> = "".into();
    text.split(|byte| *byte == b'\n').map(move |line| {
        let line = String::from_utf8_lossy(line.get(..LONGEST_LINE).unwrap_or(line));
        let mut line = line.trim_end_matches('\r');
        // Marks of mail quoting.
        while let Some(rest) = line.strip_prefix('>') {
            line = rest.strip_prefix(' ').unwrap_or(rest);
        }
        Quote::new(&source, 0, None, line).text
    })
}

/// Every finding quotes what was read, or says what was not.
fn check_evidence(finding: &Finding, lines: &BTreeSet<Arc<str>>) {
    assert!(!finding.facts.is_empty(), "{}: no fact", finding.id);
    assert!(!finding.evidence.is_empty(), "{}: no evidence", finding.id);
    for evidence in &finding.evidence {
        let is_refusal = finding.id == "insufficient-data" && evidence.text.starts_with("not read: ");
        assert!(
            is_refusal || lines.contains(evidence.text.as_str()),
            "{}: {:?} is no line of the text",
            finding.id,
            evidence.text
        );
    }
}

/// Commands are one line, and a shell takes them for words, quoted ones among them, the next command behind `&&`, and at most the file that
/// `echo` writes to.
fn check_commands(finding: &Finding) {
    for remedy in &finding.remedies {
        for command in &remedy.commands {
            assert!(!command.contains(char::is_control), "{}: {command:?}", finding.id);
            // A comment says what to write into a file.
            if remedy.os != System::Linux || command.starts_with("# ") {
                continue;
            }
            for one in command.split(" && ") {
                assert!(are_words(one), "{}: {command}", finding.id);
            }
        }
    }
}

fn are_words(command: &str) -> bool {
    // Every second piece stands in quotes, and there is nothing that ends them but the next one.
    let pieces: Vec<&str> = command.split('\'').collect();
    let bare: String = pieces.iter().step_by(2).copied().collect();
    let words = match bare.split_once(" > ") {
        Some((words, file)) => {
            let is_below = ["/sys/", "/proc/"].iter().any(|root| file.starts_with(root));
            if !words.starts_with("echo ") || !is_below || file.contains(' ') {
                return false;
            }
            format!("{words} {file}")
        }
        None => bare,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " @%+=:,./-_[]".contains(c);
    pieces.len() % 2 == 1 && words.chars().all(is_plain) && !words.contains("..")
}

fn check_verdict(report: &Report) {
    let grave = |finding: &&Finding| finding.severity != Severity::Info;
    let certain = |finding: &Finding| finding.certainty == Certainty::Certain;
    assert_eq!(report.verdict == Verdict::Limited, report.findings.iter().filter(grave).any(certain));
    if report.verdict == Verdict::Healthy {
        assert_eq!(report.findings.iter().filter(grave).count(), 0);
        let has_looked = |id: &&str| {
            let rule = report.rules.iter().find(|rule| rule.id == *id).expect("a rule");
            // What it found is no limit, or the verdict would be another.
            matches!(rule.outcome, Outcome::Clear | Outcome::Found)
        };
        assert!(DECIDING.iter().all(|any_of| any_of.iter().any(has_looked)));
    }
}

fn check(report: &Report, lines: &BTreeSet<Arc<str>>) {
    for finding in &report.findings {
        check_evidence(finding, lines);
        check_commands(finding);
    }
    check_verdict(report);
    serde_json::to_writer(std::io::sink(), report).expect("a report is JSON");
}

pub fn run(input: &[u8]) {
    let texts: Vec<&[u8]> = input.splitn(2, |byte| *byte == 0).collect();
    let mut reader = Reader::new();
    for (name, text) in ["first", "second"].into_iter().zip(&texts) {
        reader.read(name, *text).expect("memory does not fail");
    }
    let snapshot = reader.finish();
    let lines: BTreeSet<Arc<str>> = texts.iter().flat_map(|text| lines(text)).collect();
    let only = snapshot.interfaces.last().map(|interface| interface.name.as_str());
    for only in [None, only] {
        let case = Case::new(&snapshot, None, only).expect("built-in profiles load");
        check(&diagnose(&case), &lines);
    }
}
