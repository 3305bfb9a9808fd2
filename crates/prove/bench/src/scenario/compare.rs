//! Two results of a scenario: what differs by more than chance.
//!
//! A figure counts as changed when three things hold.
//!
//! 1. The figures of both do not overlap: the greatest of one is less than the least of the other. If nothing had changed, every
//!    order of the figures would be equally likely, and the chance that all n of one side come
//!    before or behind all m of the other is 2 / C(n+m, n): the exact two-sided test of Mann and Whitney at its outermost value. Figures are too few where even that
//!    chance is above 5 %: four on both sides are enough (2.9 %), three are not (10 %).
//! 2. The medians differ by the factor [`super::verdict::TIE`] at least, or what the caller says. The first rule knows the noise within a run.
//!    Between two runs a machine may have become slower as a whole, by neighbours on the same hardware or its clock, and no
//!    figure of either run shows it.
//! 3. Both have the same cell.
//!
//! Many figures are compared, and each has its chance: of 60 with five rounds (0.8 %), the first rule alone would call every
//! second pair of equal runs changed. The second is what keeps that rare.

pub mod verdicts;

use super::report::{Cell, Figures, Levels, Metric, Report, SCHEMA as SCENARIO};
use super::spread::Spread;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use verdicts::{Change, VerdictRow};

pub const SCHEMA: &str = "rxlane.bench-compare/1";
/// The greatest chance at which figures are enough.
pub const CHANCE: f64 = 0.05;

#[derive(Clone, Debug, Serialize)]
pub struct Compared<'r> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    pub scenario: String,
    /// Medians that differ by less do not count as different.
    pub tie: f64,
    pub conclusion: Conclusion,
    /// What makes it worth less, in sentences, where whoever words the result has made them.
    pub warnings: Vec<String>,
    #[serde(skip)]
    pub differences: Vec<Difference>,
    pub rows: Vec<Row<'r>>,
    pub verdicts: Vec<VerdictRow<'r>>,
    /// Answers of which one or both are there.
    pub facts: Vec<FactRow>,
}

/// Something in which two runs differ, and its value in each; `None`: it has none, or it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub of: Aspect,
    pub before: Option<String>,
    /// In the second.
    pub after: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aspect {
    CpuModel,
    CpuCount,
    Kernel,
    Version,
    Parameter(String),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row<'r> {
    pub levels: &'r Levels,
    /// The same in words, which all rows of the cell share.
    #[serde(serialize_with = "as_text")]
    pub cell: Rc<str>,
    pub metric: &'r str,
    pub before: Option<Spread>,
    pub after: Option<Spread>,
    /// Median of the second over that of the first.
    pub ratio: Option<f64>,
    /// The chance that equal runs do not overlap, with so many figures.
    pub chance: Option<f64>,
    pub outcome: Outcome,
    /// Whether the change is a good one; `None` where there is none, or nobody knows.
    pub better: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing that chance or the state of the machine could not have done.
    WithinNoise,
    More,
    Less,
    TooFew,
    /// The second has none.
    OnlyBefore,
    OnlyAfter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// A figure, a ratio of a verdict or an answer changed outside the noise.
    Changed,
    /// Of those of which something can be said none did.
    Unchanged,
    /// Of no figure anything can be said.
    Unknown,
}

impl Conclusion {
    fn of(rows: &[Row<'_>], verdicts: &[VerdictRow<'_>], facts: &[FactRow]) -> Conclusion {
        let is_changed = |row: &Row<'_>| matches!(row.outcome, Outcome::More | Outcome::Less);
        let is_other = |row: &VerdictRow<'_>| row.change == Change::OutsideNoise;
        if rows.iter().any(is_changed)
            || verdicts.iter().any(is_other)
            || facts.iter().any(FactRow::is_changed)
        {
            Conclusion::Changed
        } else if rows.iter().any(|row| row.outcome == Outcome::WithinNoise) {
            Conclusion::Unchanged
        } else {
            Conclusion::Unknown
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactRow {
    pub question: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl FactRow {
    pub fn is_changed(&self) -> bool {
        self.before.is_some() && self.after.is_some() && self.before != self.after
    }
}

/// Holds the second against the first. Spreads are computed anew from the figures. Error: they are not of the same form or
/// scenario; which, in a sentence.
pub fn compare<'r>(before: &'r Report, after: &'r Report, tie: f64) -> Result<Compared<'r>, String> {
    for (name, report) in [("first", before), ("second", after)] {
        if report.schema != SCENARIO {
            return Err(format!("the {name} is of schema `{}`, and not {SCENARIO}", report.schema));
        }
    }
    if before.scenario != after.scenario {
        return Err(format!(
            "the first is of the scenario `{}`, the second of `{}`: only like can be compared",
            before.scenario, after.scenario
        ));
    }
    let formerly: BTreeMap<&str, &Metric> =
        before.metrics.iter().map(|metric| (metric.name.as_str(), metric)).collect();
    for metric in &after.metrics {
        let Some(former) = formerly.get(metric.name.as_str()) else { continue };
        // Whether more is better may have been decided since.
        let is_opposite =
            former.more_is_better.zip(metric.more_is_better).is_some_and(|(one, other)| one != other);
        if former.unit != metric.unit || is_opposite {
            return Err(format!(
                "the metric {} is another one in each: its unit, or whether more is better, differs",
                metric.name
            ));
        }
    }
    let (rows, facts) = (rows(before, after, tie), facts(before, after));
    let verdicts = verdicts::rows(before, after, tie);
    Ok(Compared {
        schema: SCHEMA,
        scenario: after.scenario.clone(),
        tie,
        conclusion: Conclusion::of(&rows, &verdicts, &facts),
        warnings: Vec::new(),
        differences: differences(before, after),
        rows,
        verdicts,
        facts,
    })
}

fn differences(before: &Report, after: &Report) -> Vec<Difference> {
    let names: BTreeSet<&String> = before.parameters.keys().chain(after.parameters.keys()).collect();
    let names = names.into_iter().filter(|name| !name.starts_with("only "));
    let of_machine = [Aspect::CpuModel, Aspect::CpuCount, Aspect::Kernel, Aspect::Version];
    let value = |of: &Aspect, report: &Report| match of {
        Aspect::CpuModel => report.machine.model.clone(),
        Aspect::CpuCount => report.machine.cpus.map(|cpus| cpus.to_string()),
        Aspect::Kernel => Some(report.machine.kernel.clone()),
        Aspect::Version => Some(report.machine.rxlane.clone()),
        Aspect::Parameter(name) => report.parameters.get(name).cloned(),
    };
    let difference = |of: Aspect| {
        let (before, after) = (value(&of, before), value(&of, after));
        (before != after).then_some(Difference { of, before, after })
    };
    let parameters = names.map(|name| Aspect::Parameter(name.clone()));
    of_machine.into_iter().chain(parameters).filter_map(difference).collect()
}

/// Each once, in the order in which they were first seen.
fn distinct<K: Ord + Copy>(names: impl Iterator<Item = K>) -> Vec<K> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

fn cells_of(report: &Report) -> BTreeMap<&Levels, &Cell> {
    report.cells.iter().map(|cell| (&cell.levels, cell)).collect()
}

/// In the order of the reports, and not of the words. Nothing is looked for in a list once for each row: a result of thousands of
/// cells would take minutes.
fn rows<'r>(before: &'r Report, after: &'r Report, tie: f64) -> Vec<Row<'r>> {
    let reports = [after, before];
    let [second, first] = reports.map(cells_of);
    let known = || reports.into_iter().flat_map(|report| &report.metrics);
    let mut more_is_better: BTreeMap<&str, Option<bool>> = BTreeMap::new();
    for metric in known() {
        more_is_better
            .entry(&metric.name)
            .and_modify(|known| *known = known.filter(|_| metric.more_is_better.is_some()))
            .or_insert(metric.more_is_better);
    }
    let cells = distinct(reports.into_iter().flat_map(|report| &report.cells).map(|cell| &cell.levels));
    // The second's words where both have the cell.
    let words = |levels: &&'r Levels| -> Rc<str> {
        let report = if second.contains_key(levels) { after } else { before };
        report.words(levels).into()
    };
    let words: Vec<Rc<str>> = cells.iter().map(words).collect();
    let row = |metric: &'r str, levels: &'r Levels, words: &Rc<str>| {
        let figures = |cells: &BTreeMap<&Levels, &'r Cell>| cells.get(levels)?.figures.get(metric);
        let sides = [figures(&first), figures(&second)];
        if sides == [None, None] {
            return None;
        }
        let raw = |figures: Option<&Figures>| -> Vec<f64> {
            let raw = figures.map(|figures| figures.raw.as_slice()).unwrap_or_default();
            raw.iter().copied().flatten().filter(|figure| figure.is_finite()).collect()
        };
        let [before, after] = sides.map(raw);
        let row = Row::of(levels, &before, &after, tie);
        let better = match (row.outcome, more_is_better.get(metric).copied().flatten()) {
            (Outcome::More, more) => more,
            (Outcome::Less, more) => more.map(|more| !more),
            _ => None,
        };
        Some(Row { cell: Rc::clone(words), metric, better, ..row })
    };
    let metrics = distinct(known().map(|metric| metric.name.as_str()));
    let of_metric =
        |metric| cells.iter().zip(&words).filter_map(move |(levels, words)| row(metric, levels, words));
    metrics.into_iter().flat_map(of_metric).collect()
}

fn as_text<S: Serializer>(text: &Rc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

impl<'r> Row<'r> {
    fn of(levels: &'r Levels, before: &[f64], after: &[f64], tie: f64) -> Row<'r> {
        let (first, second) = (Spread::of(before.iter().copied()), Spread::of(after.iter().copied()));
        let mut row = Row {
            levels,
            cell: Rc::default(),
            metric: "",
            before: first,
            after: second,
            ratio: None,
            chance: None,
            outcome: Outcome::TooFew,
            better: None,
        };
        let (first, second) = match (first, second) {
            (Some(first), Some(second)) => (first, second),
            (Some(_), None) => return Row { outcome: Outcome::OnlyBefore, ..row },
            (None, _) => return Row { outcome: Outcome::OnlyAfter, ..row },
        };
        let chance = chance(before.len(), after.len());
        row.ratio = Some(second.median / first.median).filter(|ratio| ratio.is_finite());
        row.chance = Some(chance);
        let is_far = |more: f64, less: f64| more >= less * tie;
        row.outcome = if chance > CHANCE {
            Outcome::TooFew
        } else if second.least > first.most && is_far(second.median, first.median) {
            Outcome::More
        } else if second.most < first.least && is_far(first.median, second.median) {
            Outcome::Less
        } else {
            Outcome::WithinNoise
        };
        row
    }
}

/// 2 / C(n+m, n).
fn chance(n: usize, m: usize) -> f64 {
    let (few, many) = (n.min(m), n.max(m));
    let orders = (1..=few).fold(1.0, |orders, k| orders * (many + k) as f64 / k as f64);
    (2.0 / orders).min(1.0)
}

fn facts(before: &Report, after: &Report) -> Vec<FactRow> {
    let answers = |report: &Report| -> BTreeMap<String, String> {
        report.facts.iter().map(|fact| (fact.question.clone(), fact.answer.clone())).collect()
    };
    let (mut first, mut second) = (answers(before), answers(after));
    let questions = after.facts.iter().chain(&before.facts).map(|fact| fact.question.as_str());
    let row = |question: &str| FactRow {
        question: question.to_owned(),
        before: first.remove(question),
        after: second.remove(question),
    };
    distinct(questions).into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::design::levels;
    use super::super::report::Fact;
    use super::super::verdict::TIE;
    use super::*;

    #[test]
    fn the_chance_is_that_of_mann_and_whitney_at_its_outermost() {
        for (n, m, expected) in [
            (1, 1, 1.0),
            (3, 3, 0.1),
            (4, 4, 2.0 / 70.0),
            (5, 5, 2.0 / 252.0),
            (3, 5, 2.0 / 56.0),
            (5, 3, 2.0 / 56.0),
        ] {
            assert!((chance(n, m) - expected).abs() < 1e-12, "{n} {m}");
        }
        assert!(chance(2000, 2000) < 1e-100);
    }

    #[test]
    fn only_what_neither_overlaps_nor_is_near_has_changed() {
        use Outcome::{Less, More, OnlyAfter, OnlyBefore, TooFew, WithinNoise};
        let before = [10.0, 11.0, 12.0, 10.5, 11.5];
        let times = |by: f64| before.map(|figure| figure * by);
        for (before, after, expected) in [
            (&before[..], &times(2.0)[..], More),
            (&before, &times(0.5), Less),
            // Apart, and near: 1.25 times.
            (&before, &times(1.25), WithinNoise),
            // Far, and one of five overlaps.
            (&before, &[20.0, 21.0, 22.0, 20.0, 11.0], WithinNoise),
            (&before[..3], &[30.0; 3], TooFew),
            (&before[..3], &[30.0; 5], More),
            (&before, &[], OnlyBefore),
            (&[], &before, OnlyAfter),
            // Where there was nothing, anything is far.
            (&[0.0; 4], &[0.1; 4], More),
            (&[0.0; 4], &[0.0; 4], WithinNoise),
        ] {
            assert_eq!(Row::of(&Levels::new(), before, after, TIE).outcome, expected, "{before:?} {after:?}");
        }
        assert_eq!(Row::of(&Levels::new(), &[0.0; 4], &[0.1; 4], TIE).ratio, None);
    }

    /// With something that is looked for in a list once for each row this does not end: it takes billions of steps.
    #[test]
    fn work_does_not_grow_with_the_square_of_cells_metrics_or_answers() {
        const MANY: usize = 60_000;
        let figures = || Figures::of([1.0, 2.0, 3.0, 4.0].map(Some).to_vec());
        let name = |number: usize| format!("{number:06}");
        let metric = |number: usize| Metric::new(&name(number), "", "CPUs", None);
        let cell = |way: &str, figures: BTreeMap<String, Figures>| Cell {
            levels: levels(&format!("way={way}")),
            figures,
            ..Cell::default()
        };
        let report = |metrics: Vec<Metric>, cells: Vec<Cell>| Report {
            schema: SCENARIO.to_owned(),
            metrics,
            cells,
            ..Report::default()
        };
        let tall: Vec<Cell> =
            (0..MANY).rev().map(|n| cell(&name(n), [(name(0), figures())].into())).collect();
        let tall = report(vec![metric(0)], tall);
        let all = (0..MANY).map(|n| (name(n), figures())).collect();
        let mut wide = report((0..MANY).rev().map(metric).collect(), vec![cell("x", all)]);
        let fact = |n: usize| Fact { question: name(n), answer: String::new() };
        wide.facts = (0..MANY).rev().map(fact).collect();
        for same in [&tall, &wide] {
            let compared = compare(same, same, TIE).expect("compared");
            assert_eq!((compared.rows.len(), compared.conclusion), (MANY, Conclusion::Unchanged));
            // In the order of the report.
            let first = compared.rows.first().expect("a row");
            assert!(first.levels == &same.cells[0].levels && first.metric == same.metrics[0].name);
            assert_eq!(compared.facts.len(), same.facts.len());
        }
    }
}
