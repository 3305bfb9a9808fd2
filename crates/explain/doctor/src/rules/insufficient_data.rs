//! `insufficient-data`: rules that could not tell, and the outputs that would let them.

use crate::report::{Finding, Outcome, RuleRow, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::{Case, report::Evidence};

/// The rule. It looks at what the others lack, after them ([`insufficient`]).
pub(super) static RULE: Rule = Rule {
    id: "insufficient-data",
    stage: "all",
    page: Page {
        title: "Some rules lack the data they need",
        means: "Unknown is an answer. What the text does not show, rxlane does not guess: a missing counter is not \
                zero, and a rule that could not look has not found the machine healthy.",
        shows: "The finding names the rules that could not tell, and the commands whose output they need. \
                `rxlane doctor --json` lists the outcome of every rule.",
        fix: "Run the named commands and give their output as well (`rxlane doctor --from FILE FILE`), or let \
              `rxlane collect` gather everything at once.",
        costs: "Nothing; the commands only read.",
    },
    judge: Judge::Machine(|_| Judgement::DoesNotApply),
};

/// Commands that the explanation names.
const NAMED: usize = 6;

/// The finding, where a rule lacks data and something was read at all.
pub(crate) fn insufficient(case: &Case<'_>, rules: &[RuleRow]) -> Option<Finding> {
    let lacking: Vec<&RuleRow> =
        rules.iter().filter(|row| row.outcome == Outcome::InsufficientData).collect();
    let mut commands: Vec<&str> = Vec::new();
    for command in lacking.iter().flat_map(|row| &row.lacks) {
        if !commands.contains(&command.as_str()) {
            commands.push(command);
        }
    }
    if lacking.is_empty() {
        return None;
    }
    let ids: Vec<&str> = lacking.iter().map(|row| row.id).collect();
    let mut explanation = if ids.len() <= NAMED {
        format!("These rules could not tell: {}.", ids.join(", "))
    } else {
        format!("{} of {} rules could not tell (--json lists them).", ids.len(), rules.len())
    };
    // What was tried and refused need not be asked for.
    commands.retain(|command| !case.snapshot().unread.iter().any(|unread| unread.what == *command));
    if !commands.is_empty() {
        let named = &commands[..commands.len().min(NAMED)];
        explanation.push_str(&format!(" The output of these would help: {}", named.join("; ")));
        let more = commands.len() - named.len();
        explanation.push_str(&if more > 0 { format!(" and {more} more.") } else { ".".to_owned() });
    }
    let read = case.snapshot().read.values().map(Evidence::from);
    let refused = case
        .snapshot()
        .unread
        .iter()
        .filter(|unread| lacking.iter().flat_map(|row| &row.lacks).any(|lacks| lacks.contains(&unread.what)))
        .map(|unread| Evidence { from: unread.what.clone(), text: format!("not read: {}", unread.why) });
    let evidence: Vec<Evidence> = refused.chain(read).collect();
    (!evidence.is_empty())
        .then(|| Finding { evidence, ..RULE.finding(None, Severity::Info, [], explanation) })
}
