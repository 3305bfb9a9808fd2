//! Whether a result that was read from somewhere can be one of a scenario.

use super::report::{Cell, Levels, Report};
use std::collections::{BTreeMap, BTreeSet};

/// The greatest figure that is believed, of whatever unit.
const MOST: f64 = 1e18;

/// Looks through all of it.
///
/// # Errors
///
/// The first thing that stands twice, names what is not there, or is no figure; a sentence without the name of the file.
pub fn check(report: &Report) -> Result<(), String> {
    let mut factors: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for factor in &report.factors {
        let levels = once("level", factor.levels.iter().map(|level| level.name.as_str()))
            .map_err(|why| format!("of factor {} {why}", factor.name))?;
        if factors.insert(&factor.name, levels).is_some() {
            return Err(format!("factor {} stands there twice", factor.name));
        }
    }
    let metrics = once("metric", report.metrics.iter().map(|metric| metric.name.as_str()))?;
    once("the answer to", report.facts.iter().map(|fact| fact.question.as_str()))?;
    let mut cells: BTreeSet<&Levels> = BTreeSet::new();
    for cell in &report.cells {
        if !cells.insert(&cell.levels) {
            return Err(format!("the cell {} stands there twice", shown(&cell.levels)));
        }
        for (factor, level) in &cell.levels {
            if !factors.get(factor.as_str()).is_some_and(|levels| levels.contains(level.as_str())) {
                return Err(format!("a cell has {factor}={level}, which is no level of any factor there"));
            }
        }
        figures(report, cell, &metrics).map_err(|why| format!("the cell {}: {why}", shown(&cell.levels)))?;
    }
    for verdict in &report.verdicts {
        if !metrics.contains(verdict.metric.as_str()) {
            return Err(format!("a verdict is on {}, which is no metric there", verdict.metric));
        }
        for levels in [&verdict.cell, &verdict.baseline] {
            if !cells.contains(levels) {
                return Err(format!("a verdict is on {}, which is no cell there", shown(levels)));
            }
        }
    }
    Ok(())
}

fn figures(report: &Report, cell: &Cell, metrics: &BTreeSet<&str>) -> Result<(), String> {
    for (metric, figures) in &cell.figures {
        if !metrics.contains(metric.as_str()) {
            return Err(format!("{metric} is no metric there"));
        }
        if figures.raw.len() != report.rounds as usize {
            let (count, rounds) = (figures.raw.len(), report.rounds);
            return Err(format!("{metric} has {count} figures, and rounds were {rounds}"));
        }
        let is_wrong = |figure: &Option<f64>| figure.is_some_and(|figure| !(0.0..=MOST).contains(&figure));
        if let Some(round) = figures.raw.iter().position(is_wrong) {
            let figure = figures.raw.get(round).copied().flatten().unwrap_or_default();
            let round = round + 1;
            return Err(format!(
                "{metric} of round {round} is {figure:e}, which nothing measures (0 to {MOST:e})"
            ));
        }
    }
    match cell.failures.iter().find(|failure| failure.round >= report.rounds) {
        Some(failure) => {
            Err(format!("it failed in round {}, and rounds were {}", failure.round + 1, report.rounds))
        }
        None => Ok(()),
    }
}

fn once<'n>(what: &str, names: impl Iterator<Item = &'n str>) -> Result<BTreeSet<&'n str>, String> {
    let mut all = BTreeSet::new();
    for name in names {
        if !all.insert(name) {
            return Err(format!("{what} {name} stands there twice"));
        }
    }
    Ok(all)
}

/// As `--only` takes it.
fn shown(levels: &Levels) -> String {
    let all = levels.iter().map(|(factor, level)| format!("{factor}={level}"));
    all.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::levels;
    use super::super::report::{Factor, Failure, Figures, Metric};
    use super::super::verdict::{Outcome, Verdict};
    use super::*;

    type Spoiling = fn(&mut Report);

    fn sound() -> Report {
        let of = |way: &str| Cell {
            levels: levels([("way", way)]),
            figures: [("sent".to_owned(), Figures::of(vec![Some(0.0), None]))].into(),
            failures: vec![Failure { round: 1, why: "x".to_owned() }],
        };
        let verdict = Verdict {
            metric: "sent".to_owned(),
            cell: levels([("way", "off")]),
            baseline: levels([("way", "on")]),
            ratio: None,
            outcome: Outcome::Unknown,
            text: String::new(),
        };
        Report {
            rounds: 2,
            factors: vec![Factor::new("way", &[("off", ""), ("on", "")])],
            metrics: vec![Metric::new("sent", "Sent", "packets/s", None)],
            cells: vec![of("off"), of("on")],
            verdicts: vec![verdict],
            ..Report::default()
        }
    }

    #[test]
    fn what_cannot_be_a_result_is_named() {
        assert_eq!(check(&sound()), Ok(()));
        let wrong: [(&str, Spoiling); 13] = [
            ("the cell way=off stands there twice", |r| r.cells.push(r.cells[0].clone())),
            ("metric sent stands there twice", |r| r.metrics.push(r.metrics[0].clone())),
            ("factor way stands there twice", |r| r.factors.push(r.factors[0].clone())),
            ("sent is no metric there", |r| r.metrics.clear()),
            ("sent of round 1 is -1e0", |r| change(r, -1.0)),
            ("sent of round 1 is 1e308", |r| change(r, 1e308)),
            ("sent of round 1 is NaN", |r| change(r, f64::NAN)),
            ("sent has 2 figures, and rounds were 3", |r| r.rounds = 3),
            ("it failed in round 8", |r| r.cells[0].failures[0].round = 7),
            ("a cell has way=on, which is no level", |r| drop(r.factors[0].levels.pop())),
            ("of factor way level off stands there twice", |r| {
                let level = r.factors[0].levels[0].clone();
                r.factors[0].levels.push(level);
            }),
            ("a verdict is on x, which is no metric", |r| r.verdicts[0].metric = "x".to_owned()),
            ("a verdict is on way=x, which is no cell", |r| {
                r.verdicts[0].baseline = levels([("way", "x")]);
            }),
        ];
        for (expected, spoil) in wrong {
            let mut report = sound();
            spoil(&mut report);
            let why = check(&report).expect_err(expected);
            assert!(why.contains(expected), "{why}");
        }
    }

    fn change(report: &mut Report, figure: f64) {
        let figures = report.cells[0].figures.get_mut("sent").expect("figures");
        figures.raw[0] = Some(figure);
    }
}
