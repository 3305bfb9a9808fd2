//! Cells measured in rounds.

use super::environment::{Environment, IdleCheck};
use super::report::{Cell, Factor, Failure, Figures, LeftOut, Levels, Report, SCHEMA};
use super::verdict::{self, LEAST_ROUNDS};
use super::{Design, Error, Measured, Scenario, Tools};
use format::utc;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub rounds: u32,
    /// Factors of which only some levels are measured.
    pub only: Vec<(String, Vec<String>)>,
}

#[derive(Clone, Debug)]
pub struct Step<'a> {
    pub done: usize,
    pub all: usize,
    /// Number of the round, from 1.
    pub round: u32,
    pub cell: &'a str,
    /// How long the rest takes, where that is known.
    pub left: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// The CPUs were busy before the first round, for this share of their time.
    BusyBefore(f64),
    /// They were busy before these rounds, for up to this share of their time.
    BusyBetween(Vec<u32>, f64),
    /// It ended before all of so many rounds were whole.
    Incomplete(u32),
    Failures {
        failures: usize,
        cells: usize,
        of: usize,
    },
    /// Rounds are too few to show how far figures vary.
    FewRounds,
}

/// A report, with neither sentences of verdicts nor warnings, and what these are about.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub report: Report,
    pub warnings: Vec<Warning>,
}

impl Selection {
    fn has(&self, cell: &Levels) -> bool {
        let is_one = |(factor, levels): &(String, Vec<String>)| {
            cell.get(factor).is_some_and(|level| levels.contains(level))
        };
        self.only.iter().all(is_one)
    }

    fn options(&self) -> String {
        let each = self.only.iter().map(|(factor, levels)| format!("--level {factor}={}", levels.join(",")));
        each.collect::<Vec<_>>().join(" ")
    }

    /// Every factor and level that was named exists.
    fn check(&self, factors: &[Factor]) -> Result<(), Error> {
        for (name, levels) in &self.only {
            let Some(factor) = factors.iter().find(|factor| factor.name == *name) else {
                let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
                return Err(Error::Wrong(format!("--level {name}: the factors are {}", names.join(", "))));
            };
            let names: Vec<&str> = factor.levels.iter().map(|level| level.name.as_str()).collect();
            if let Some(level) = levels.iter().find(|level| !names.contains(&level.as_str())) {
                return Err(Error::Wrong(format!(
                    "--level {name}={level}: {name} is one of {}",
                    names.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// Measures each cell once a round. What was measured until a signal requested the end is in the report, too. Error: something
/// is missing or wrong, or nothing could be measured; nothing is left behind.
pub fn run(
    scenario: &mut dyn Scenario,
    selection: &Selection,
    tools: &Tools<'_>,
    progress: &mut dyn FnMut(&Step<'_>),
) -> Result<Outcome, Error> {
    let Design { name, title, mut parameters, factors, metrics, mut cells, comparisons } = scenario.design();
    selection.check(&factors)?;
    cells.retain(|cell| selection.has(cell));
    if cells.is_empty() {
        return Err(Error::Wrong(format!("{}: no cell is all of that", selection.options())));
    }
    let mut left_out = scenario.prepare(tools)?;
    left_out.retain(|left| cells.iter().any(|cell| covers(left, cell)));
    cells.retain(|cell| !left_out.iter().any(|left| covers(left, cell)));
    if let (true, Some(left)) = (cells.is_empty(), left_out.first()) {
        return Err(Error::Lacks(format!("nothing is left to measure here: {}", left.why)));
    }
    parameters.insert("seconds".to_owned(), tools.seconds.as_secs_f64().to_string());
    for (factor, levels) in &selection.only {
        parameters.insert(format!("only {factor}"), levels.join(","));
    }
    let mut idle = IdleCheck::new();
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        scenario: name.to_owned(),
        title: title.to_owned(),
        began: utc(SystemTime::now()),
        machine: Environment::now(&mut idle),
        parameters,
        factors,
        metrics,
        left_out,
        facts: scenario.facts(&cells)?,
        ..Report::default()
    };
    let found = measure(scenario, &cells, selection.rounds, tools, &report, &mut idle, progress)?;
    (report.rounds, report.complete) = (found.rounds, found.complete);
    report.left_out.extend(found.refused.iter().cloned());
    report.cells = found.concluded();
    report.verdicts =
        comparisons.iter().filter_map(|comparison| verdict::judge(&report, comparison)).collect();
    let warnings = warnings(&report, &idle, selection.rounds);
    Ok(Outcome { report, warnings })
}

fn warnings(report: &Report, idle: &IdleCheck, rounds: u32) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = report.machine.was_busy().map(Warning::BusyBefore).into_iter().collect();
    warnings.extend(idle.busy_rounds().map(|(rounds, most)| Warning::BusyBetween(rounds, most)));
    if !report.complete {
        warnings.push(Warning::Incomplete(rounds));
    }
    let failures = report.failures();
    if failures > 0 {
        let cells = report.cells.iter().filter(|cell| !cell.failures.is_empty()).count();
        warnings.push(Warning::Failures { failures, cells, of: report.cells.len() });
    }
    if (report.rounds as usize) < LEAST_ROUNDS {
        warnings.push(Warning::FewRounds);
    }
    warnings
}

fn covers(left: &LeftOut, cell: &Levels) -> bool {
    left.levels.iter().all(|(factor, level)| cell.get(factor) == Some(level))
}

struct Found {
    cells: Vec<Cell>,
    /// By cell and metric, one a round.
    raw: Vec<BTreeMap<String, Vec<Option<f64>>>>,
    /// What turned out not to be possible here.
    refused: Vec<LeftOut>,
    rounds: u32,
    complete: bool,
}

fn measure(
    scenario: &dyn Scenario,
    cells: &[Levels],
    rounds: u32,
    tools: &Tools<'_>,
    report: &Report,
    idle: &mut IdleCheck,
    progress: &mut dyn FnMut(&Step<'_>),
) -> Result<Found, Error> {
    let words: Vec<String> = cells.iter().map(|cell| report.words(cell)).collect();
    let all = cells.len() * rounds as usize;
    let start = Instant::now();
    let mut found = Found::new(cells);
    for round in 0..rounds {
        // Before the first the machine was sampled.
        if round > 0 {
            idle.rest(round + 1);
        }
        for place in 0..cells.len() {
            let at = (place + round as usize) % cells.len();
            let (Some(cell), Some(words)) = (cells.get(at), words.get(at)) else { continue };
            if found.refused.iter().any(|refused| covers(refused, cell)) {
                continue;
            }
            let done = round as usize * cells.len() + place;
            let left = (done > 0).then(|| start.elapsed().mul_f64((all - done) as f64 / done as f64));
            progress(&Step { done, all, round: round + 1, cell: words, left });
            let measured = scenario.measure(cell, tools);
            // What was being measured when a signal came is not whole.
            if tools.stop.load(Ordering::Relaxed) {
                return if found.has_nothing() { Err(Error::Interrupted) } else { Ok(found) };
            }
            found.add(at, round, measured)?;
        }
        found.first_failure_of_all()?;
    }
    found.complete = true;
    Ok(found)
}

impl Found {
    fn new(cells: &[Levels]) -> Found {
        let cells: Vec<Cell> =
            cells.iter().map(|levels| Cell { levels: levels.clone(), ..Cell::default() }).collect();
        Found {
            raw: vec![BTreeMap::new(); cells.len()],
            cells,
            refused: Vec::new(),
            rounds: 0,
            complete: false,
        }
    }

    fn has_nothing(&self) -> bool {
        self.raw.iter().all(BTreeMap::is_empty)
    }

    fn add(&mut self, at: usize, round: u32, measured: Result<Measured, Error>) -> Result<(), Error> {
        self.rounds = round + 1;
        match measured {
            Ok(measured) => {
                let Some(raw) = self.raw.get_mut(at) else { return Ok(()) };
                for (metric, figure) in measured {
                    let figures = raw.entry(metric.to_owned()).or_default();
                    figures.resize(round as usize, None);
                    figures.push(Some(figure).filter(|figure| figure.is_finite()));
                }
            }
            // What was measured before is not lost with it.
            Err(error @ (Error::Lacks(_) | Error::Wrong(_))) if self.has_nothing() => return Err(error),
            Err(Error::Refused { levels, why }) => self.refused.push(LeftOut { levels, why }),
            Err(error) => {
                let Some(cell) = self.cells.get_mut(at) else { return Ok(()) };
                cell.failures.push(Failure { round, why: error.to_string() });
            }
        }
        Ok(())
    }

    /// Where no cell could be measured so far, the reason of the first.
    fn first_failure_of_all(&self) -> Result<(), Error> {
        if !self.has_nothing() {
            return Ok(());
        }
        let failures = self.cells.iter().flat_map(|cell| &cell.failures).map(|failure| &failure.why);
        let why = failures.chain(self.refused.iter().map(|refused| &refused.why)).next();
        Err(Error::Failed(why.map_or_else(|| "nothing was measured".to_owned(), Clone::clone)))
    }

    fn concluded(self) -> Vec<Cell> {
        let rounds = self.rounds as usize;
        let figures = |(metric, mut raw): (String, Vec<Option<f64>>)| {
            raw.resize(rounds, None);
            (metric, Figures::of(raw))
        };
        let refused = self.refused;
        let is_refused = |cell: &Cell| refused.iter().any(|refused| covers(refused, &cell.levels));
        let cells = self.cells.into_iter().zip(self.raw);
        // What was refused for good is listed with what was left out.
        let cells = cells.filter(|(cell, raw)| !(raw.is_empty() && is_refused(cell)));
        cells.map(|(cell, raw)| Cell { figures: raw.into_iter().map(figures).collect(), ..cell }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::design::{Comparison, levels};
    use super::super::report::{Fact, Metric};
    use super::*;
    use std::cell::RefCell;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicBool;

    /// Records which cells are measured.
    #[derive(Default)]
    struct Recorded {
        measured: RefCell<String>,
        /// The cell that fails, the one that is refused, and the measurement in which a signal comes.
        fails: &'static str,
        refuses: &'static str,
        stops_at: usize,
        left_out: Vec<LeftOut>,
    }

    impl Scenario for Recorded {
        fn design(&self) -> Design {
            Design {
                name: "recorded",
                title: "Recorded",
                factors: vec![Factor::new("letter", &[("a", "letter a"), ("b", "letter b"), ("c", "")])],
                metrics: vec![Metric::new("size", "Size", "", None)],
                cells: ["a", "b", "c"].map(|letter| levels(&format!("letter={letter}"))).to_vec(),
                comparisons: vec![Comparison::new("size", "letter=b", "letter=a", "")],
                ..Design::default()
            }
        }

        fn prepare(&mut self, _: &Tools<'_>) -> Result<Vec<LeftOut>, Error> {
            Ok(self.left_out.clone())
        }

        fn facts(&self, _: &[Levels]) -> Result<Vec<Fact>, Error> {
            Ok(vec![Fact { question: "is it".to_owned(), answer: "yes".to_owned() }])
        }

        fn measure(&self, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error> {
            let letter = super::super::level(cell, "letter");
            self.measured.borrow_mut().push_str(letter);
            if self.measured.borrow().len() == self.stops_at {
                tools.stop.store(true, Ordering::Relaxed);
                return Err(Error::Interrupted);
            }
            if letter == self.fails {
                return Err(Error::Failed("it fails".to_owned()));
            }
            if letter == self.refuses {
                return Err(Error::Refused { levels: cell.clone(), why: "not here".to_owned() });
            }
            Ok(vec![("size", f64::from(letter.as_bytes()[0]))])
        }
    }

    impl Recorded {
        /// So many rounds of these levels; none: all.
        fn run(&mut self, rounds: u32, only: &[(&str, &str)]) -> Result<Outcome, Error> {
            let levels = |levels: &str| levels.split(',').map(str::to_owned).collect();
            let only = only.iter().map(|(factor, of)| ((*factor).to_owned(), levels(of))).collect();
            let stop = AtomicBool::new(false);
            let tools = Tools { rxlane: PathBuf::new(), seconds: Duration::from_millis(1), stop: &stop };
            run(self, &Selection { rounds, only }, &tools, &mut |_| ())
        }
    }

    #[test]
    fn each_round_begins_with_another_cell() {
        let mut scenario = Recorded::default();
        let report = scenario.run(3, &[]).expect("a report").report;
        assert_eq!(*scenario.measured.borrow(), "abcbcacab");
        assert_eq!((report.rounds, report.complete, report.cells.len()), (3, true, 3));
        let figures = report.figures(&levels("letter=b"), "size").expect("figures");
        assert_eq!(figures.raw, [Some(98.0); 3]);
        assert_eq!(report.verdicts[0].outcome, verdict::Outcome::Tie);
        let text = serde_json::to_string(&report).expect("JSON");
        assert_eq!(serde_json::from_str::<Report>(&text).expect("the same"), report);
    }

    #[test]
    fn a_cell_that_fails_or_is_refused_leaves_the_others_and_a_reason() {
        let mut failing = Recorded { fails: "a", ..Recorded::default() };
        let Outcome { report, warnings } = failing.run(2, &[]).expect("a report");
        assert_eq!(report.cells[0].failures.len(), 2);
        assert!(report.cells[0].figures.is_empty() && report.cells[1].figures["size"].raw.len() == 2);
        assert!(report.verdicts.is_empty());
        let failures = Warning::Failures { failures: 2, cells: 1, of: 3 };
        assert!(warnings.contains(&failures) && warnings.contains(&Warning::FewRounds), "{warnings:?}");
        let mut refusing = Recorded { refuses: "a", ..Recorded::default() };
        let report = refusing.run(2, &[]).expect("a report").report;
        // It is tried once, and listed as left out.
        assert_eq!((refusing.measured.borrow().as_str(), report.cells.len()), ("abcbc", 2));
        let refused = LeftOut { levels: levels("letter=a"), why: "not here".to_owned() };
        assert_eq!((report.left_out, report.complete), (vec![refused], true));
        for (mut scenario, why) in [(failing, "it fails"), (refusing, "not here")] {
            let error = scenario.run(2, &[("letter", "a")]).expect_err("nothing");
            assert_eq!(error.to_string(), why);
        }
    }

    #[test]
    fn what_was_measured_before_the_end_counts() {
        let mut scenario = Recorded { stops_at: 5, ..Recorded::default() };
        let Outcome { report, warnings } = scenario.run(3, &[]).expect("a report");
        assert_eq!((report.rounds, report.complete), (2, false));
        assert_eq!(report.cells[1].figures["size"].raw, [Some(98.0); 2]);
        assert_eq!(report.cells[0].figures["size"].raw, [Some(97.0), None]);
        assert!(warnings.contains(&Warning::Incomplete(3)), "{warnings:?}");
        let error = Recorded { stops_at: 1, ..Recorded::default() }.run(3, &[]).expect_err("nothing");
        assert!(matches!(error, Error::Interrupted));
    }

    #[test]
    fn cells_can_be_chosen_and_left_out() {
        let mut scenario = Recorded::default();
        scenario.run(1, &[("letter", "c,a")]).expect("a report");
        assert_eq!(*scenario.measured.borrow(), "ac");
        for (only, expected) in [
            (&[("colour", "red")][..], "--level colour: the factors are letter"),
            (&[("letter", "x")], "--level letter=x: letter is one of a, b, c"),
            (
                &[("letter", "a"), ("letter", "b")],
                "--level letter=a --level letter=b: no cell is all of that",
            ),
        ] {
            let error = scenario.run(1, only).expect_err("wrong");
            assert!(matches!(error, Error::Wrong(_)) && error.to_string().contains(expected), "{error}");
        }
        let left = LeftOut { levels: levels("letter=b"), why: "no b here".to_owned() };
        let mut scenario = Recorded { left_out: vec![left], ..Recorded::default() };
        let report = scenario.run(1, &[]).expect("a report").report;
        assert_eq!((report.cells.len(), report.left_out.len()), (2, 1));
        let error = scenario.run(1, &[("letter", "b")]).expect_err("nothing");
        assert!(matches!(error, Error::Lacks(why) if why.contains("no b here")));
    }
}
