//! The documentation page of a finding, in Markdown: `docs/findings/ID.md`, and what `rxlane doctor --why ID`
//! shows.

use crate::Rule;

/// The page.
pub fn markdown(rule: &Rule) -> String {
    let page = &rule.page;
    format!(
        "# {}\n\n{}. Stage of the receive path: `{}`.\n\n## What it means\n\n{}\n\n## How it shows\n\n{}\n\n## How to fix it\n\n{}\n\n## What the fix costs\n\n{}\n",
        rule.id,
        page.title,
        rule.stage,
        page.means.trim(),
        page.shows.trim(),
        page.fix.trim(),
        page.costs.trim(),
    )
}

/// The list of all findings, in Markdown: `docs/findings/README.md`.
pub fn index(rules: &[&Rule]) -> String {
    let mut text = String::from(
        "# Findings\n\nEvery finding of `rxlane doctor`, in the order of the receive path. Written by `make docs` from the rules; `rxlane doctor --why ID` shows the same pages.\n\n| finding | stage | what |\n| --- | --- | --- |\n",
    );
    for rule in rules {
        text.push_str(&format!("| [{}]({}.md) | {} | {} |\n", rule.id, rule.id, rule.stage, rule.page.title));
    }
    text
}
