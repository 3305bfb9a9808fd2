//! What a scenario found, as `--json` prints it and `rxlane bench compare` reads it (schema `rxlane.bench-scenario/1`).

use super::bounded::{Bounded, list, map};
use super::environment::Environment;
use super::spread::Spread;
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const SCHEMA: &str = "rxlane.bench-scenario/1";

/// Level by factor: what a cell is.
pub type Levels = BTreeMap<String, String>;

pub(super) const MORE: Option<bool> = Some(true);
pub(super) const LESS: Option<bool> = Some(false);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was measured: `vlan`, `steer`.
    pub scenario: String,
    pub title: String,
    /// When it began, UTC (RFC 3339).
    pub began: String,
    pub machine: Environment,
    /// What was requested, by name.
    #[serde(deserialize_with = "map")]
    pub parameters: BTreeMap<String, String>,
    pub rounds: u32,
    /// Whether all requested rounds are whole.
    pub complete: bool,
    /// What differs between cells, in the order in which it is displayed.
    #[serde(deserialize_with = "list")]
    pub factors: Vec<Factor>,
    #[serde(deserialize_with = "list")]
    pub metrics: Vec<Metric>,
    #[serde(deserialize_with = "list")]
    pub cells: Vec<Cell>,
    #[serde(deserialize_with = "list")]
    pub left_out: Vec<LeftOut>,
    /// What was found out once.
    #[serde(deserialize_with = "list")]
    pub facts: Vec<Fact>,
    #[serde(deserialize_with = "list")]
    pub verdicts: Vec<Verdict>,
    /// What else is to be said of them, in sentences.
    #[serde(default, deserialize_with = "list")]
    pub remarks: Vec<String>,
    #[serde(deserialize_with = "list")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    pub name: String,
    /// What it can be; the first is what others are compared with.
    #[serde(deserialize_with = "list")]
    pub levels: Vec<Level>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    pub name: String,
    /// The same in words, for sentences; empty where there is nothing to say.
    pub text: String,
}

impl Factor {
    pub fn new(name: &str, levels: &[(&str, &str)]) -> Factor {
        let level =
            |(name, text): &(&str, &str)| Level { name: (*name).to_owned(), text: (*text).to_owned() };
        Factor { name: name.to_owned(), levels: levels.iter().map(level).collect() }
    }

    /// The text of a level; of one that is not known its word.
    pub fn text<'f>(&'f self, level: &'f str) -> &'f str {
        self.levels.iter().find(|known| known.name == level).map_or(level, |known| &known.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    pub name: String,
    pub title: String,
    /// `bit/s`, `packets/s`, `s/GB`, `s`, `B`, `CPUs`, `per 1000 packets`; empty for a share of one.
    pub unit: String,
    /// Whether more is better; `None`: neither is.
    pub more_is_better: Option<bool>,
    /// Whether it is of all that ran on the machine meanwhile, and not of what is measured alone.
    #[serde(default)]
    pub whole_machine: bool,
}

impl Metric {
    pub fn new(name: &str, title: &str, unit: &str, more_is_better: Option<bool>) -> Metric {
        let [name, title, unit] = [name, title, unit].map(str::to_owned);
        Metric { name, title, unit, more_is_better, whole_machine: false }
    }

    /// A metric of all that ran on the machine.
    pub fn of_machine(name: &str, title: &str, unit: &str, more_is_better: Option<bool>) -> Metric {
        let title = format!("{title}, of the whole machine");
        Metric { whole_machine: true, ..Metric::new(name, &title, unit, more_is_better) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    #[serde(deserialize_with = "map")]
    pub levels: Levels,
    #[serde(deserialize_with = "map")]
    pub figures: BTreeMap<String, Figures>,
    #[serde(deserialize_with = "list")]
    pub failures: Vec<Failure>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Raw")]
pub struct Figures {
    /// `None`: there is no figure.
    #[serde(flatten)]
    pub spread: Option<Spread>,
    /// One a round, from the first; `None` where it could not be measured.
    pub raw: Vec<Option<f64>>,
}

/// What is read of them: how they are spread is what they say, and not what is said of them. (To read what is flattened takes all that
/// stands there into memory, known or not.)
#[derive(Deserialize)]
struct Raw {
    #[serde(deserialize_with = "list")]
    raw: Vec<Option<f64>>,
}

impl From<Raw> for Figures {
    fn from(read: Raw) -> Figures {
        // JSON knows a nothing that is below nothing.
        Figures::of(read.raw.into_iter().map(|figure| figure.map(|figure| figure + 0.0)).collect())
    }
}

/// A round in which a cell could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its number, from 0.
    pub round: u32,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    #[serde(deserialize_with = "map")]
    pub levels: Levels,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub question: String,
    pub answer: String,
}

/// How much of what there is at most: a scenario has a few dozen of each, and hundreds of cells where everything is crossed.
macro_rules! at_most {
    ($($most:literal $what:literal: $kind:ty,)+) => {$(
        impl Bounded for $kind {
            const WHAT: &'static str = $what;
            const MOST: usize = $most;
        }
    )+};
}

at_most! {
    2048 "cells": Cell,
    512 "kinds of cells that were left out": LeftOut,
    2048 "failures of a cell": Failure,
    2048 "answers": Fact,
    512 "verdicts": Verdict,
    256 "metrics": Metric,
    256 "metrics of a cell": Figures,
    256 "levels of a factor": Level,
    64 "factors": Factor,
    1000 "rounds of a figure": Option<f64>,
}

/// Remarks and warnings; levels of a cell and parameters by name.
impl Bounded for String {
    const WHAT: &'static str = "sentences, levels or parameters at one place";
    const MOST: usize = 64;
}

impl Figures {
    /// Of one figure a round.
    pub fn of(raw: Vec<Option<f64>>) -> Figures {
        Figures { spread: Spread::of(raw.iter().copied().flatten()), raw }
    }
}

impl Report {
    pub fn cell(&self, levels: &Levels) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.levels == *levels)
    }

    pub fn figures(&self, levels: &Levels, metric: &str) -> Option<&Figures> {
        self.cell(levels)?.figures.get(metric)
    }

    /// Metrics of which there is a figure of some cell; where nothing was measured, all.
    pub fn measured(&self) -> Vec<&Metric> {
        let is_measured = |metric: &&Metric| {
            let mut figures = self.cells.iter().filter_map(|cell| cell.figures.get(&metric.name));
            figures.any(|figures| figures.spread.is_some())
        };
        let measured: Vec<&Metric> = self.metrics.iter().filter(is_measured).collect();
        if measured.is_empty() { self.metrics.iter().collect() } else { measured }
    }

    /// Measurements that failed: cells times rounds.
    pub fn failures(&self) -> usize {
        self.cells.iter().map(|cell| cell.failures.len()).sum()
    }

    /// Levels in words, in the order of the factors, without those that say nothing.
    pub fn words(&self, levels: &Levels) -> String {
        let text = |factor: &Factor| Some(factor.text(levels.get(&factor.name)?).to_owned());
        let texts = self.factors.iter().filter_map(text).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join(", ")
    }
}
