//! A finding: what is stated, the lines that say so, and what helps.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

use crate::facts::{Effect, Fact, Forecast, Model};
use crate::load::Load;
use host::{Quote, System};
use serde::Serialize;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Costs frames or most of the throughput now, as the evidence shows.
    Critical,
    /// Limits, or will when the load grows.
    Warning,
    /// Worth knowing; no reason to change anything by itself.
    Info,
}

impl Severity {
    /// The word of output.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// Whether the evidence proves a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// It does.
    Certain,
    /// It fits, and so would something else.
    Possible,
}

impl Certainty {
    /// The word of output.
    pub const fn name(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Possible => "possible",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub from: String,
    pub text: String,
}

impl From<&Quote> for Evidence {
    fn from(quote: &Quote) -> Evidence {
        Evidence { from: quote.from(), text: quote.text.to_string() }
    }
}

/// Something that limits, or is worth knowing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub id: &'static str,
    pub severity: Severity,
    pub certainty: Certainty,
    pub stage: &'static str,
    /// The interface that it is about; absent where it is about the machine, empty where the text names none.
    pub interface: Option<String>,
    /// What was read; never empty.
    pub evidence: Vec<Evidence>,
    /// What is stated; the first is the finding in a sentence.
    pub facts: Vec<Fact>,
    /// What helps; empty where nothing has to be done.
    #[serde(skip)]
    pub remedies: Vec<Remedy>,
}

/// A finding that states this. Who runs the rule adds the rule's id and stage, and the device that was judged.
pub(crate) fn found(severity: Severity, fact: Fact) -> Finding {
    Finding {
        id: "",
        severity,
        certainty: Certainty::Certain,
        stage: "",
        interface: None,
        evidence: Vec::new(),
        facts: vec![fact],
        remedies: Vec::new(),
    }
}

impl Finding {
    /// About an interface other than the device that is judged.
    pub(crate) fn about(self, interface: &str) -> Finding {
        Finding { interface: Some(interface.to_owned()), ..self }
    }

    pub(crate) fn says(mut self, facts: impl IntoIterator<Item = Fact>) -> Finding {
        self.facts.extend(facts);
        self
    }

    pub(crate) fn quotes<'a>(mut self, quotes: impl IntoIterator<Item = &'a Quote>) -> Finding {
        for quote in quotes {
            let evidence = Evidence::from(quote);
            if !self.evidence.contains(&evidence) {
                self.evidence.push(evidence);
            }
        }
        self
    }

    /// With the load of a CPU, where that is known.
    pub(crate) fn load(self, load: &Load) -> Finding {
        let fact = load.quote.is_some().then_some(Fact::Load(load.state));
        self.says(fact).quotes(&load.quote)
    }

    pub(crate) fn fix(mut self, remedies: impl IntoIterator<Item = Remedy>) -> Finding {
        self.remedies.extend(remedies);
        self
    }

    /// It fits, and so would something else.
    pub(crate) fn possible_if(self, possible: bool) -> Finding {
        if possible { Finding { certainty: Certainty::Possible, ..self } } else { self }
    }
}

/// What helps, on one operating system.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    pub os: System,
    pub effect: Effect,
    /// Commands for this machine, in the order in which to run them.
    pub commands: Vec<String>,
    pub forecast: Option<Forecast>,
    pub model: Option<Model>,
}

impl Remedy {
    pub(crate) fn new<C: Into<String>>(
        os: System,
        effect: Effect,
        commands: impl IntoIterator<Item = C>,
    ) -> Remedy {
        let commands = commands.into_iter().map(Into::into).collect();
        Remedy { os, effect, commands, forecast: None, model: None }
    }

    pub(crate) fn linux<C: Into<String>>(effect: Effect, commands: impl IntoIterator<Item = C>) -> Remedy {
        Remedy::new(System::Linux, effect, commands)
    }
}
