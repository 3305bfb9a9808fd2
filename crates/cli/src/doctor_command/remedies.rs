//! Which remedies of a report are rendered for people: those of the machine's own system, each once.

use crate::render::prose::{Worded, WordedFinding, WordedRemedy};
use doctor::finding::Severity;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rendered<'r> {
    Whole(&'r WordedRemedy<'r>),
    /// The same as under a finding before.
    As {
        os: &'r str,
        id: &'r str,
    },
}

/// The remedies of each finding, in the order of the report; `--json` has all of every system.
pub fn rendered<'r>(report: &'r Worded<'r>) -> Vec<(&'r WordedFinding<'r>, Vec<Rendered<'r>>)> {
    let mut before: Vec<(&WordedRemedy<'_>, &str)> = Vec::new();
    let of_finding = |finding: &'r WordedFinding<'r>| {
        let mut rendered = Vec::new();
        for remedy in of_system(report, finding) {
            let same = before.iter().find(|(other, _)| is_same(other, remedy));
            let next = match same {
                Some((_, id)) if *id != finding.id => Rendered::As { os: remedy.os, id },
                Some(_) => continue,
                None => {
                    before.push((remedy, finding.id));
                    Rendered::Whole(remedy)
                }
            };
            if !rendered.contains(&next) {
                rendered.push(next);
            }
        }
        (finding, rendered)
    };
    report.findings.iter().map(of_finding).collect()
}

fn of_system<'r>(
    report: &'r Worded<'r>,
    finding: &'r WordedFinding<'r>,
) -> impl Iterator<Item = &'r WordedRemedy<'r>> {
    let is_own = |remedy: &&WordedRemedy<'r>| report.system.is_none_or(|system| remedy.os == system);
    let has_own = finding.remedies.iter().any(|remedy| is_own(&remedy));
    finding
        .remedies
        .iter()
        .filter(move |remedy| !has_own || is_own(remedy))
        // Of a remark, commands are enough: nothing has to be done about it.
        .filter(|remedy| finding.severity != Severity::Info || !remedy.commands.is_empty())
}

/// The same commands, or where there are none the same words.
fn is_same(one: &WordedRemedy<'_>, other: &WordedRemedy<'_>) -> bool {
    let same_words = || one.what == other.what;
    one.os == other.os && one.commands == other.commands && (!one.commands.is_empty() || same_words())
}
