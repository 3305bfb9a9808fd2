//! Whether a result that was read from somewhere can be one of a scenario.

use super::environment::Environment;
use super::report::{Cell, Levels, Report};
use std::collections::{BTreeMap, BTreeSet};

/// The greatest figure that is believed, of whatever unit.
const MOST: f64 = 1e18;
/// The same of a share of one, which has no unit.
const WHOLE: f64 = 1.0;
/// The same of a load average: no machine has so many threads.
const MOST_LOAD: f64 = 1e6;
/// The same of CPUs, eight times what Linux can be built for.
const MOST_CPUS: u32 = 65_536;
/// Figures of all cells and metrics together, each with one of every round; a file of four rounds with so many is longer than
/// what is read.
const MOST_FIGURES: usize = 20_000;

/// Checks all of it. Error: the first thing that stands twice, names what is not there, or is no figure; a sentence without the
/// name of the file.
pub fn check(report: &Report) -> Result<(), String> {
    machine(&report.machine)?;
    let count: usize = report.cells.iter().map(|cell| cell.figures.len()).sum();
    if count > MOST_FIGURES {
        return Err(format!(
            "its cells and metrics have {count} figures, and no scenario more than {MOST_FIGURES}"
        ));
    }
    once(report.factors.iter().map(|factor| &factor.name), |name| format!("factor {name}"))?;
    let mut factors: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for factor in &report.factors {
        let names = factor.levels.iter().map(|level| &level.name);
        factors
            .insert(&factor.name, once(names, |level| format!("of factor {} level {level}", factor.name))?);
    }
    once(report.metrics.iter().map(|metric| &metric.name), |name| format!("metric {name}"))?;
    let most = |unit: &str| if unit.is_empty() { WHOLE } else { MOST };
    let metrics: BTreeMap<&str, f64> =
        report.metrics.iter().map(|metric| (metric.name.as_str(), most(&metric.unit))).collect();
    once(report.facts.iter().map(|fact| &fact.question), |question| format!("the answer to {question}"))?;
    let cell_name = |levels: &Levels| format!("the cell {}", options(levels));
    let cells = once(report.cells.iter().map(|cell| &cell.levels), cell_name)?;
    for cell in &report.cells {
        for (factor, level) in &cell.levels {
            if !factors.get(factor.as_str()).is_some_and(|levels| levels.contains(level)) {
                return Err(format!("a cell has {factor}={level}, which is no level of any factor there"));
            }
        }
        figures(report, cell, &metrics).map_err(|why| format!("{}: {why}", cell_name(&cell.levels)))?;
    }
    let verdicts = report.verdicts.iter().map(|verdict| (&verdict.metric, &verdict.cell, &verdict.baseline));
    once(verdicts, |(_, cell, _)| format!("a verdict on {}", options(cell)))?;
    for verdict in &report.verdicts {
        if !metrics.contains_key(verdict.metric.as_str()) {
            return Err(format!("a verdict is on {}, which is no metric there", verdict.metric));
        }
        for levels in [&verdict.cell, &verdict.baseline] {
            if !cells.contains(levels) {
                return Err(format!("a verdict is on {}, which is no cell there", options(levels)));
            }
        }
    }
    Ok(())
}

fn machine(machine: &Environment) -> Result<(), String> {
    let figures = [
        ("the load average", machine.load_average, 0.0..=MOST_LOAD),
        ("the share of the time in which CPUs were busy before", machine.busy_before, 0.0..=WHOLE),
        ("the number of CPUs", machine.cpus.map(f64::from), 1.0..=f64::from(MOST_CPUS)),
    ];
    for (what, figure, range) in figures {
        if let Some(figure) = figure.filter(|figure| !range.contains(figure)) {
            let (least, most) = range.into_inner();
            return Err(format!(
                "{what} of its machine is {figure:e}, which nothing measures ({least} to {most})"
            ));
        }
    }
    Ok(())
}

/// `metrics`: the greatest figure that is believed of each.
fn figures(report: &Report, cell: &Cell, metrics: &BTreeMap<&str, f64>) -> Result<(), String> {
    for (metric, figures) in &cell.figures {
        let Some(most) = metrics.get(metric.as_str()) else {
            return Err(format!("{metric} is no metric there"));
        };
        if figures.raw.len() != report.rounds as usize {
            let (count, rounds) = (figures.raw.len(), report.rounds);
            return Err(format!("{metric} has {count} figures, and rounds were {rounds}"));
        }
        let is_wrong = |figure: &Option<f64>| figure.is_some_and(|figure| !(0.0..=*most).contains(&figure));
        if let Some(round) = figures.raw.iter().position(is_wrong) {
            let figure = figures.raw.get(round).copied().flatten().unwrap_or_default();
            let round = round + 1;
            return Err(format!(
                "{metric} of round {round} is {figure:e}, which nothing measures (0 to {most:e})"
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

/// All of these, none of which may be there twice; `name` is that of one in a sentence.
fn once<K: Ord + Copy>(
    all: impl Iterator<Item = K>,
    name: impl Fn(K) -> String,
) -> Result<BTreeSet<K>, String> {
    let mut seen = BTreeSet::new();
    for one in all {
        if !seen.insert(one) {
            return Err(format!("{} stands there twice", name(one)));
        }
    }
    Ok(seen)
}

/// As `--level` takes them.
fn options(levels: &Levels) -> String {
    let all = levels.iter().map(|(factor, level)| format!("{factor}={level}"));
    all.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::design::levels;
    use super::super::report::{Factor, Failure, Figures, Metric};
    use super::super::verdict::Verdict;
    use super::*;

    type Spoiling = fn(&mut Report);

    fn sound() -> Report {
        let of = |way: &str| Cell {
            levels: levels(&format!("way={way}")),
            figures: [("sent".to_owned(), Figures::of(vec![Some(0.0), None]))].into(),
            failures: vec![Failure { round: 1, why: "x".to_owned() }],
        };
        let verdict = Verdict {
            metric: "sent".to_owned(),
            cell: levels("way=off"),
            baseline: levels("way=on"),
            ..Verdict::default()
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
        let wrong: [(&str, Spoiling); 20] = [
            ("the cell way=off stands there twice", |r| r.cells.push(r.cells[0].clone())),
            ("metric sent stands there twice", |r| r.metrics.push(r.metrics[0].clone())),
            ("factor way stands there twice", |r| r.factors.push(r.factors[0].clone())),
            ("sent is no metric there", |r| r.metrics.clear()),
            ("sent of round 1 is -1e0", |r| change(r, -1.0)),
            ("sent of round 1 is 1e308", |r| change(r, 1e308)),
            ("sent of round 1 is NaN", |r| change(r, f64::NAN)),
            ("sent of round 1 is 7e0, which nothing measures (0 to 1e0)", |r| {
                r.metrics[0].unit.clear();
                change(r, 7.0);
            }),
            ("busy before of its machine is -5e300", |r| r.machine.busy_before = Some(-5e300)),
            ("busy before of its machine is 1.5e0", |r| r.machine.busy_before = Some(1.5)),
            ("the load average of its machine is 1e300", |r| r.machine.load_average = Some(1e300)),
            ("the load average of its machine is NaN", |r| r.machine.load_average = Some(f64::NAN)),
            ("the number of CPUs of its machine is 0e0", |r| r.machine.cpus = Some(0)),
            ("its cells and metrics have 20001 figures", |r| {
                let figures = &mut r.cells[0].figures;
                figures.extend((0..19_999).map(|number| (number.to_string(), Figures::default())));
            }),
            ("sent has 2 figures, and rounds were 3", |r| r.rounds = 3),
            ("it failed in round 8", |r| r.cells[0].failures[0].round = 7),
            ("a cell has way=on, which is no level", |r| drop(r.factors[0].levels.pop())),
            ("of factor way level off stands there twice", |r| {
                let level = r.factors[0].levels[0].clone();
                r.factors[0].levels.push(level);
            }),
            ("a verdict is on x, which is no metric", |r| r.verdicts[0].metric = "x".to_owned()),
            ("a verdict is on way=x, which is no cell", |r| {
                r.verdicts[0].baseline = levels("way=x");
            }),
        ];
        for (expected, spoil) in wrong {
            let mut report = sound();
            spoil(&mut report);
            let why = check(&report).expect_err(expected);
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn all_of_something_is_a_share_and_more_than_one_a_figure_with_a_unit() {
        let mut report = sound();
        change(&mut report, 7.0);
        assert_eq!(check(&report), Ok(()));
        report.metrics[0].unit.clear();
        change(&mut report, 1.0);
        assert_eq!(check(&report), Ok(()));
    }

    fn change(report: &mut Report, figure: f64) {
        let figures = report.cells[0].figures.get_mut("sent").expect("figures");
        figures.raw[0] = Some(figure);
    }
}
