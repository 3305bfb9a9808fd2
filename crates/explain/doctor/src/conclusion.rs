//! The answer in one to three sentences.

use crate::report::{Certainty, Finding, Outcome, RuleRow, Severity, Verdict};
use crate::{Case, ENOUGH_BETWEEN, steered};
use host::Delta;

/// The verdict, the gravest finding, and what to do first.
pub(crate) fn sentences(
    case: &Case<'_>,
    verdict: Verdict,
    findings: &[Finding],
    rules: &[RuleRow],
) -> Vec<String> {
    let gravest = findings.iter().find(|finding| finding.severity != Severity::Info);
    let mut sentences = Vec::new();
    match (verdict, gravest) {
        (Verdict::Limited, Some(finding)) => sentences.push(format!(
            "Limited at stage {}{}: {}",
            finding.stage,
            of(finding),
            first_sentence(&finding.explanation)
        )),
        (Verdict::Unknown, Some(finding)) if finding.certainty == Certainty::Possible => {
            sentences.push(format!(
                "Perhaps limited at stage {}{}, which this text does not prove: {}",
                finding.stage,
                of(finding),
                first_sentence(&finding.explanation)
            ))
        }
        (Verdict::Healthy, _) if steered::any(case).is_some() => sentences.push(
            "Healthy: frames spread over the CPUs, by steering where the queues do not, and none are lost, as far as was \
             read."
                .to_owned(),
        ),
        (Verdict::Healthy, _) => sentences.push(
            "Healthy: frames spread over the receive queues and CPUs, and none are lost, as far as was read."
                .to_owned(),
        ),
        _ if case.snapshot().read.is_empty() => {
            sentences
                .push("Unknown: nothing in this text is the output of a tool that rxlane knows.".to_owned());
        }
        _ => {
            let lacking = rules.iter().filter(|row| row.outcome == Outcome::InsufficientData).count();
            let possible = findings.iter().filter(|finding| finding.certainty == Certainty::Possible);
            let possible: Vec<&str> = possible.map(|finding| finding.id).collect();
            let seen = if possible.is_empty() {
                "nothing wrong was seen".to_owned()
            } else {
                format!("nothing certain was seen (possible: {})", possible.join(", "))
            };
            sentences.push(format!(
                "Unknown: {seen}, but {lacking} of {} rules lack the data to tell.",
                rules.len()
            ));
        }
    }
    if verdict == Verdict::Unknown && is_idle(case) {
        sentences.push(
            "Hardly a frame came in between the samples: look again while the line is busy.".to_owned(),
        );
    }
    let others = findings
        .iter()
        .filter(|finding| finding.severity != Severity::Info && Some(*finding) != gravest)
        .map(|finding| finding.id);
    let others: Vec<&str> = others.collect();
    if !others.is_empty() {
        sentences.push(format!("Also: {}.", others.join(", ")));
    }
    sentences
}

/// Whether two samples show that next to nothing was received.
fn is_idle(case: &Case<'_>) -> bool {
    let counted = case.devices().filter_map(|device| match device.totals.packets.as_ref()?.delta() {
        Delta::Counted(counted) | Delta::Wrapped(counted) => Some(counted),
        Delta::Reset | Delta::OneSample => None,
    });
    let counted: Vec<u64> = counted.collect();
    !counted.is_empty() && counted.iter().fold(0, |sum: u64, &n| sum.saturating_add(n)) < ENOUGH_BETWEEN
}

fn of(finding: &Finding) -> String {
    match finding.interface.as_deref() {
        Some("") | None => String::new(),
        Some(name) => format!(" of {name}"),
    }
}

/// Up to the first full stop that a blank and a capital follow.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at);
    let is_end = |at: &usize| text.get(at + 2..).is_some_and(|rest| rest.starts_with(char::is_uppercase));
    let end = ends.into_iter().find(is_end).map_or(text.len(), |at| at + 1);
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_point_ends_no_sentence() {
        assert_eq!(
            first_sentence("Queue 0 took 99.9 % of it. The text says no more."),
            "Queue 0 took 99.9 % of it."
        );
        assert_eq!(first_sentence("One sentence."), "One sentence.");
        assert_eq!(first_sentence(""), "");
    }
}
