//! What a rule is: an id, a page of documentation, and a judgement of a case.

use crate::finding::Finding;
use crate::{Case, Device};

/// A rule.
pub struct Rule {
    /// Its finding's id.
    pub id: &'static str,
    /// Stage of the receive path (ARCHITECTURE.md lists them).
    pub stage: &'static str,
    /// Its documentation, `docs/findings/ID.md`.
    pub page: &'static str,
    /// Whether it is about Linux alone.
    pub(crate) linux: bool,
    pub(crate) judge: Judge,
}

impl Rule {
    /// What it is about, in a line.
    pub fn title(&self) -> &'static str {
        self.page.split("\n\n").nth(1).and_then(|line| line.split(". Stage of").next()).unwrap_or_default()
    }
}

/// What a rule looks at: each device of the case in turn ([`Case::devices`]), or the machine as a whole.
pub(crate) enum Judge {
    Device(fn(&Device<'_>) -> Judgement),
    Machine(fn(&Case<'_>) -> Judgement),
}

/// What a rule came to for one interface, or for the machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Judgement {
    Found(Vec<Finding>),
    Clear,
    /// It lacks these outputs (`ethtool -S eth0`), each a command that a person can run.
    Lacks(Vec<String>),
    DoesNotApply,
}

impl Judgement {
    pub fn lacks(command: impl Into<String>) -> Judgement {
        Judgement::Lacks(vec![command.into()])
    }

    /// These findings, else the lack of these outputs, else nothing.
    pub fn of(found: Vec<Finding>, lacks: Vec<String>) -> Judgement {
        match (found.is_empty(), lacks.is_empty()) {
            (false, _) => Judgement::Found(found),
            (_, false) => Judgement::Lacks(lacks),
            _ => Judgement::Clear,
        }
    }
}

impl From<Finding> for Judgement {
    fn from(finding: Finding) -> Judgement {
        Judgement::Found(vec![finding])
    }
}
