//! An issue in Markdown, as trackers take it: what only a person knows, what the doctor says, and the bundle.

use super::outputs;
use crate::render::prose::worded;
use doctor::Case;
use host::text::Reader;

/// Characters that GitHub takes of an issue.
pub const MOST: usize = 65_536;

/// The issue about a machine whose bundle has nothing personal any more.
pub fn issue(bundle: &str) -> anyhow::Result<String> {
    let mut reader = Reader::new();
    reader.read("the bundle", bundle.as_bytes())?;
    let snapshot = reader.finish();
    let report = doctor::diagnose(&Case::new(&snapshot, None, None)?);
    let report = worded(&report, false);
    let mut text = format!(
        "\
### What is slow, or wrong

<!-- What you did, what you saw (rates, the busy CPU, drops), and what you expected. -->

### The line and the router

<!-- PPPoE, VLAN, QinQ; its rate; the hardware, the system; what was changed last. -->

### What rxlane {} says

{}

",
        env!("CARGO_PKG_VERSION"),
        report.conclusion.join("\n\n")
    );
    for finding in &report.findings {
        let of = finding.interface.as_ref().map(|interface| format!(" of {interface}")).unwrap_or_default();
        text.push_str(&format!("- `{}`{of}, {}\n", finding.id, finding.severity.name()));
    }
    let fence = fence(bundle);
    text.push_str(&format!(
        "
<details>
<summary>rxlane collect: {}</summary>

{fence}text
{bundle}{fence}

</details>
",
        outputs(bundle)
    ));
    Ok(text)
}

/// More backticks than stand in a row in the text (CommonMark section 4.5).
fn fence(text: &str) -> String {
    let most = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((most + 1).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_cannot_end_its_own_block() {
        assert_eq!(fence("a `b` c"), "```");
        assert_eq!(fence("a ````` c"), "``````");
        let issue = issue("# rxlane bundle 1\n$ uname -s\nLinux\n```\n# end\n").expect("an issue");
        let (_, block) = issue.split_once("\n````text\n").expect("a block");
        assert!(block.ends_with("# end\n````\n\n</details>\n"), "{issue}");
        assert!(issue.contains("<summary>rxlane collect: 1 output</summary>"), "{issue}");
    }
}
