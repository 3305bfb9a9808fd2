//! What a rule is: an id, a page of documentation, and a judgement of a case.

use crate::Case;
use crate::report::{Certainty, Evidence, Finding, Remedy, Severity};
use host::{Interface, Quote};

/// A rule.
pub struct Rule {
    /// Its finding's id.
    pub id: &'static str,
    /// Stage of the receive path (ARCHITECTURE.md lists them).
    pub stage: &'static str,
    /// Its documentation.
    pub page: Page,
    /// Its judgement.
    pub judge: Judge,
}

/// What a rule looks at.
pub enum Judge {
    /// Each device of the case in turn ([`Case::devices`]).
    Device(fn(&Case<'_>, &Interface) -> Judgement),
    /// Each stacked interface in turn: VLAN, PPP, bridge ([`Case::stacked`]).
    Stacked(fn(&Case<'_>, &Interface) -> Judgement),
    /// The machine as a whole.
    Machine(fn(&Case<'_>) -> Judgement),
}

/// The documentation of a finding, in Markdown without headings.
pub struct Page {
    /// A line: what it is.
    pub title: &'static str,
    /// What it means.
    pub means: &'static str,
    /// How it shows.
    pub shows: &'static str,
    /// How to fix it.
    pub fix: &'static str,
    /// What the fix costs.
    pub costs: &'static str,
}

/// What a rule came to for one interface, or for the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// Something.
    Found(Vec<Finding>),
    /// It had what it needs, and there is nothing.
    Clear,
    /// It lacks these outputs (`ethtool -S eth0`), each a command that a person can run.
    Lacks(Vec<String>),
    /// There is nothing that it is about.
    DoesNotApply,
}

impl Judgement {
    /// It lacks one output.
    pub fn lacks(command: impl Into<String>) -> Judgement {
        Judgement::Lacks(vec![command.into()])
    }
}

impl Rule {
    /// A finding of this rule about `interface`, on the evidence of `quotes`.
    pub fn finding<'a>(
        &self,
        interface: Option<&str>,
        severity: Severity,
        quotes: impl IntoIterator<Item = &'a Quote>,
        explanation: impl Into<String>,
    ) -> Finding {
        Finding {
            id: self.id,
            severity,
            certainty: Certainty::Certain,
            stage: self.stage,
            interface: interface.map(str::to_owned),
            evidence: quotes.into_iter().map(Evidence::from).collect(),
            explanation: explanation.into(),
            remedies: Vec::new(),
        }
    }
}

impl Finding {
    /// It fits, and so would something else.
    #[must_use]
    pub fn possible(self) -> Finding {
        Finding { certainty: Certainty::Possible, ..self }
    }

    /// With something that helps.
    #[must_use]
    pub fn with(mut self, remedy: Remedy) -> Finding {
        self.remedies.push(remedy);
        self
    }

    /// With more evidence.
    #[must_use]
    pub fn and<'a>(mut self, quotes: impl IntoIterator<Item = &'a Quote>) -> Finding {
        for quote in quotes {
            let evidence = Evidence::from(quote);
            if !self.evidence.contains(&evidence) {
                self.evidence.push(evidence);
            }
        }
        self
    }
}

impl From<Finding> for Judgement {
    fn from(finding: Finding) -> Judgement {
        Judgement::Found(vec![finding])
    }
}
