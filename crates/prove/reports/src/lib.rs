//! Field reports as scenarios: what was reported, what the model says, and what its costs were fitted to.
//!
//! A report is a TOML file (`reports/*.toml`): a machine, runs that change it, and figures of the report with their role.
//!
//! ```
//! use rxlane_reports::{Report, text};
//!
//! let report = Report::parse("i210", text("i210").expect("it comes with the program"))?;
//! let result = report.reproduce()?;
//! assert!(result.orders.iter().all(|(_, holds)| *holds));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

use model::measure::measure;
use model::{Answer, FileError, Scenario, run};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

const FILES: &[(&str, &str)] = &[
    ("apu4", include_str!("../reports/apu4.toml")),
    ("bge", include_str!("../reports/bge.toml")),
    ("i210", include_str!("../reports/i210.toml")),
    ("pppoe-2002", include_str!("../reports/pppoe-2002.toml")),
    ("stacked-vlan", include_str!("../reports/stacked-vlan.toml")),
];

/// A report.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Its short name.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// What was measured, on what, and how the model takes it.
    pub story: String,
    /// The machine; what runs change is said by them.
    #[serde(default)]
    scenario: Option<Table>,
    /// The runs by name.
    #[serde(default)]
    run: BTreeMap<String, Run>,
    /// Costs that were fitted.
    #[serde(default)]
    pub parameter: Vec<Parameter>,
    /// What was reported.
    #[serde(default)]
    pub figure: Vec<Figure>,
    /// What was more than what.
    #[serde(default)]
    pub order: Vec<Order>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    /// What it is, for readers.
    #[allow(dead_code, reason = "a scenario file is documentation, too")]
    what: String,
    /// Keys and values in which it differs from the report's scenario.
    #[serde(default)]
    set: BTreeMap<String, Value>,
}

/// A cost or setting that no source gives and that was fitted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its key in the scenario.
    pub key: String,
    /// Unit.
    pub unit: String,
    /// The run that it belongs to, where it is not the report's scenario.
    #[serde(default)]
    pub run: Option<String>,
    /// The calibrated figure that it was fitted to.
    pub fitted_to: String,
}

/// Why a figure stands where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A parameter was fitted to it.
    Calibrated,
    /// It follows.
    Predicted,
    /// It does not follow from anything that the report says.
    Underivable,
}

impl Role {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Calibrated => "calibrated",
            Role::Predicted => "predicted",
            Role::Underivable => "underivable",
        }
    }
}

/// A number, or a range.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Reported {
    /// A number.
    Number(f64),
    /// From the first to the second.
    Range(f64, f64),
}

/// As a file has it.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or a range of two")]
enum Written {
    Number(f64),
    Range(f64, f64),
}

impl TryFrom<Written> for Reported {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Reported, &'static str> {
        match written {
            Written::Number(number) if number.is_finite() => Ok(Reported::Number(number)),
            Written::Range(low, high) if low.is_finite() && high.is_finite() && low <= high => {
                Ok(Reported::Range(low, high))
            }
            _ => Err("expected a finite number, or two, the lower one first"),
        }
    }
}

impl Reported {
    /// By what part `modelled` misses: of a range, its nearer end counts, and within it nothing is missed.
    pub fn error(self, modelled: f64) -> f64 {
        let (low, high) = match self {
            Reported::Number(number) => (number, number),
            Reported::Range(low, high) => (low, high),
        };
        let nearest = modelled.clamp(low, high);
        (modelled - nearest) / nearest
    }
}

/// A reported figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it is.
    pub quantity: String,
    /// Its unit.
    pub unit: String,
    /// What was reported.
    pub reported: Reported,
    /// How it is used.
    pub role: Role,
    /// Where the model says it: a run and a figure of it.
    #[serde(default)]
    of: Option<String>,
    /// The same, by which that is divided.
    #[serde(default)]
    over: Option<String>,
    /// The same, which is taken off.
    #[serde(default)]
    less: Option<String>,
    /// Factor.
    #[serde(default = "one")]
    times: f64,
    /// Added in the end.
    #[serde(default)]
    plus: f64,
    /// Why it is underivable, or what else there is to say.
    #[serde(default)]
    pub note: String,
}

fn one() -> f64 {
    1.0
}

/// What was more than what.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What was reported.
    pub statement: String,
    /// A run and a figure of it.
    smaller: String,
    /// The same; `smaller` is to be at most `times` this.
    larger: String,
    #[serde(default = "one")]
    times: f64,
}

/// A figure with what the model says.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The figure.
    pub figure: Figure,
    /// What the model says; `None` of an underivable one.
    pub modelled: Option<f64>,
    /// By what part it misses.
    pub error: Option<f64>,
}

/// A report and what the model makes of it.
pub struct Reproduced {
    /// The report.
    pub report: Report,
    /// Its figures.
    pub figures: Vec<Compared>,
    /// Its orders: the statement, and whether the model agrees.
    pub orders: Vec<(String, bool)>,
}

/// Names of the reports that come with the program.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The text of a report that comes with the program.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

impl Report {
    /// Reads a report. `file` is for messages. Errors: as of scenarios.
    pub fn parse(file: &str, text: &str) -> Result<Report, FileError> {
        nic::document::read(file, text)
    }

    /// Simulates every run that a figure or order asks for, and compares.
    ///
    /// # Errors
    ///
    /// A run is no scenario, or a figure is not to be had from it.
    pub fn reproduce(self) -> Result<Reproduced, FileError> {
        let mut answers = Answers { report: &self, of: BTreeMap::new() };
        let mut figures = Vec::new();
        for figure in &self.figure {
            let modelled = figure.modelled(&mut answers)?;
            let error = modelled.map(|modelled| figure.reported.error(modelled));
            figures.push(Compared { figure: figure.clone(), modelled, error });
        }
        let mut orders = Vec::new();
        for order in &self.order {
            let (smaller, larger) = (answers.value(&order.smaller)?, answers.value(&order.larger)?);
            orders.push((order.statement.clone(), smaller <= order.times * larger));
        }
        Ok(Reproduced { figures, orders, report: self })
    }

    /// What a run simulates, as the text of a scenario would say it.
    ///
    /// # Errors
    ///
    /// There is no such run, or a key that it sets is not there.
    pub fn table(&self, run: &str) -> Result<Table, FileError> {
        let key = || format!("run.{run}");
        let fail = |problem: String| FileError::of(key(), problem).in_file(&self.name);
        let of_run = self.run.get(run).ok_or_else(|| fail("there is no such run".to_owned()))?;
        let mut table = self.scenario.clone().ok_or_else(|| fail("the report has no scenario".to_owned()))?;
        for (path, value) in &of_run.set {
            model::scenario::set(&mut table, path, value.clone()).map_err(fail)?;
        }
        Ok(table)
    }

    /// The scenario of a run.
    ///
    /// # Errors
    ///
    /// As [`Report::table`], or it is no scenario.
    pub fn scenario(&self, run: &str) -> Result<Scenario, FileError> {
        let fail =
            |error: toml::de::Error| FileError::of(format!("run.{run}"), error.message()).in_file(&self.name);
        self.table(run)?.try_into().map_err(fail)
    }

    /// Names of the runs.
    pub fn runs(&self) -> impl Iterator<Item = &str> {
        self.run.keys().map(String::as_str)
    }

    /// The value that the scenario gives to a parameter; `None` where it gives none.
    pub fn value(&self, parameter: &Parameter) -> Option<f64> {
        let number =
            |value: &Value| value.as_float().or_else(|| value.as_integer().map(|value| value as f64));
        if let Some(run) = &parameter.run {
            return number(self.run.get(run)?.set.get(&parameter.key)?);
        }
        let mut at = self.scenario.as_ref()?;
        let (path, last) = parameter.key.rsplit_once('.').unwrap_or(("", &parameter.key));
        for part in path.split('.').filter(|part| !part.is_empty()) {
            at = at.get(part)?.as_table()?;
        }
        number(at.get(last)?)
    }
}

struct Answers<'a> {
    report: &'a Report,
    of: BTreeMap<String, Answer>,
}

impl Answers<'_> {
    /// `RUN FIGURE`.
    fn value(&mut self, text: &str) -> Result<f64, FileError> {
        let fail = |problem: String| FileError::of(text, problem).in_file(&self.report.name);
        let (name, figure) = text
            .split_once(' ')
            .ok_or_else(|| fail("expected the name of a run and that of a figure".to_owned()))?;
        if !self.of.contains_key(name) {
            let scenario = self.report.scenario(name)?;
            let plan = scenario.plan(&mut |_, _, _, _| Err("reports have no captures".to_owned()))?;
            let answer = run(plan);
            self.of.insert(name.to_owned(), answer);
        }
        let answer = self.of.get(name).ok_or_else(|| fail("was not simulated".to_owned()))?;
        measure(answer, figure).map_err(fail)
    }
}

impl Figure {
    fn modelled(&self, answers: &mut Answers<'_>) -> Result<Option<f64>, FileError> {
        let Some(of) = &self.of else { return Ok(None) };
        let mut value = answers.value(of)?;
        if let Some(less) = &self.less {
            value -= answers.value(less)?;
        }
        if let Some(over) = &self.over {
            value /= answers.value(over)?;
        }
        Ok(Some(self.times * value + self.plus))
    }
}
