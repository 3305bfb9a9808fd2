//! Cells measured in rounds.

use super::report::{Cell, Factor, Failure, Figures, LeftOut, Levels, Report, SCHEMA};
use super::surroundings::{Rests, Surroundings};
use super::{Error, Means, Measured, Scenario, verdict};
use format::utc;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Fewer rounds than these are worth a warning.
const FEW: u32 = 3;

/// How often, and which cells.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Rounds.
    pub rounds: u32,
    /// Factors of which only some levels are wanted.
    pub only: Vec<(String, Vec<String>)>,
}

impl Asked {
    fn wants(&self, cell: &Levels) -> bool {
        let is_one = |(factor, levels): &(String, Vec<String>)| {
            cell.get(factor).is_some_and(|level| levels.contains(level))
        };
        self.only.iter().all(is_one)
    }

    /// As it was typed.
    fn shown(&self) -> String {
        let each = self.only.iter().map(|(factor, levels)| format!("{factor}={}", levels.join(",")));
        each.collect::<Vec<_>>().join(" --only ")
    }
}

/// What is being measured.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// Measurements that are over, and all.
    pub done: usize,
    /// All.
    pub all: usize,
    /// Number of the round, from 1.
    pub round: u32,
    /// The cell in words.
    pub cell: &'a str,
    /// How long the rest takes, where that is known.
    pub left: Option<Duration>,
}

/// What is known of the cells so far.
struct Progress {
    cells: Vec<Cell>,
    /// By cell and metric, one a round.
    raw: Vec<BTreeMap<String, Vec<Option<f64>>>>,
    /// What turned out not to be possible here.
    refused: Vec<LeftOut>,
    rounds: u32,
    complete: bool,
}

/// Measures each cell once a round. What was measured until somebody wanted an end is in the report, too.
///
/// # Errors
///
/// Something is missing or wrong, or nothing could be measured; nothing is left behind.
pub fn run(
    scenario: &mut dyn Scenario,
    asked: &Asked,
    means: &Means<'_>,
    tell: &mut dyn FnMut(&Step<'_>),
) -> Result<Report, Error> {
    check(&scenario.factors(), &asked.only)?;
    let mut cells = scenario.cells();
    cells.retain(|cell| asked.wants(cell));
    if cells.is_empty() {
        return Err(Error::Wrong(format!("--only {}: no cell is all of that", asked.shown())));
    }
    let mut left_out = scenario.prepare(means)?;
    left_out.retain(|left| cells.iter().any(|cell| covers(left, cell)));
    let why_not =
        |cell: &Levels| left_out.iter().find(|left| covers(left, cell)).map(|left| left.why.clone());
    if let Some(why) =
        cells.iter().map(why_not).collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().next())
    {
        return Err(Error::Lacks(format!("nothing is left to measure here: {why}")));
    }
    cells.retain(|cell| why_not(cell).is_none());
    let mut rests = Rests::new();
    let machine = Surroundings::look(&mut rests);
    let mut report = empty(scenario, machine);
    report.parameters = parameters(scenario, asked, means);
    report.left_out = left_out;
    report.facts = scenario.facts(&cells, means)?;
    let progress = measure(scenario, &cells, asked.rounds, means, &report, &mut rests, tell)?;
    (report.rounds, report.complete) = (progress.rounds, progress.complete);
    report.left_out.extend(progress.refused.iter().cloned());
    report.warnings.extend(rests.warning());
    report.cells = progress.concluded();
    if !report.complete {
        report.warnings.push(format!("ended before all of {} rounds were whole", asked.rounds));
    }
    if report.failures() > 0 {
        report.warnings.push(failed(&report));
    }
    if report.rounds < FEW {
        report.warnings.push(format!("fewer than {FEW} rounds do not tell how far figures vary"));
    }
    let comparisons = scenario.comparisons();
    report.verdicts =
        comparisons.iter().filter_map(|comparison| verdict::judge(&report, comparison)).collect();
    report.remarks = scenario.remarks(&report);
    Ok(report)
}

fn failed(report: &Report) -> String {
    let cells = report.cells.iter().filter(|cell| !cell.failures.is_empty()).count();
    let of = format!("in {cells} of {} cells", report.cells.len());
    match report.failures() {
        1 => format!("a measurement failed, {of}: its figures are missing"),
        failures => format!("{failures} measurements failed, {of}: their figures are missing"),
    }
}

/// A report that begins now and in which nothing is measured yet.
pub(super) fn empty(scenario: &dyn Scenario, machine: Surroundings) -> Report {
    Report {
        schema: SCHEMA.to_owned(),
        scenario: scenario.name().to_owned(),
        title: scenario.title().to_owned(),
        began: utc(SystemTime::now()),
        warnings: machine.warnings(),
        machine,
        parameters: BTreeMap::new(),
        rounds: 0,
        complete: false,
        factors: scenario.factors(),
        metrics: scenario.metrics(),
        cells: Vec::new(),
        left_out: Vec::new(),
        facts: Vec::new(),
        verdicts: Vec::new(),
        remarks: Vec::new(),
    }
}

fn parameters(scenario: &dyn Scenario, asked: &Asked, means: &Means<'_>) -> BTreeMap<String, String> {
    let mut parameters = scenario.parameters();
    parameters.insert("seconds".to_owned(), means.seconds.as_secs_f64().to_string());
    for (factor, levels) in &asked.only {
        parameters.insert(format!("only {factor}"), levels.join(","));
    }
    parameters
}

/// Every factor and level that was named is there.
fn check(factors: &[Factor], only: &[(String, Vec<String>)]) -> Result<(), Error> {
    for (name, levels) in only {
        let Some(factor) = factors.iter().find(|factor| factor.name == *name) else {
            let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
            return Err(Error::Wrong(format!("--only {name}: the factors are {}", names.join(", "))));
        };
        let names: Vec<&str> = factor.levels.iter().map(|level| level.name.as_str()).collect();
        if let Some(level) = levels.iter().find(|level| !names.contains(&level.as_str())) {
            return Err(Error::Wrong(format!(
                "--only {name}={level}: {name} is one of {}",
                names.join(", ")
            )));
        }
    }
    Ok(())
}

fn covers(left: &LeftOut, cell: &Levels) -> bool {
    left.levels.iter().all(|(factor, level)| cell.get(factor) == Some(level))
}

fn measure(
    scenario: &dyn Scenario,
    cells: &[Levels],
    rounds: u32,
    means: &Means<'_>,
    report: &Report,
    rests: &mut Rests,
    tell: &mut dyn FnMut(&Step<'_>),
) -> Result<Progress, Error> {
    let words: Vec<String> = cells.iter().map(|cell| report.words(cell)).collect();
    let all = cells.len() * rounds as usize;
    let start = Instant::now();
    let mut progress = Progress::new(cells);
    for round in 0..rounds {
        // Before the first the machine was looked at.
        if round > 0 {
            rests.rest(round + 1);
        }
        for place in 0..cells.len() {
            let at = (place + round as usize) % cells.len();
            let (Some(cell), Some(words)) = (cells.get(at), words.get(at)) else { continue };
            if progress.refused.iter().any(|refused| covers(refused, cell)) {
                continue;
            }
            let done = round as usize * cells.len() + place;
            let left = (done > 0).then(|| start.elapsed().mul_f64((all - done) as f64 / done as f64));
            tell(&Step { done, all, round: round + 1, cell: words, left });
            let measured = scenario.measure(cell, means);
            // What was being measured when somebody wanted an end is not whole.
            if means.stop.load(Ordering::Relaxed) {
                return progress.interrupted();
            }
            progress.note(at, round, measured)?;
        }
        progress.first_failure_of_all()?;
    }
    progress.complete = true;
    Ok(progress)
}

impl Progress {
    fn new(cells: &[Levels]) -> Progress {
        let cells: Vec<Cell> =
            cells.iter().map(|levels| Cell { levels: levels.clone(), ..Cell::default() }).collect();
        let (raw, refused) = (vec![BTreeMap::new(); cells.len()], Vec::new());
        Progress { raw, cells, refused, rounds: 0, complete: false }
    }

    /// Takes what a cell gave in a round.
    fn note(&mut self, at: usize, round: u32, measured: Result<Measured, Error>) -> Result<(), Error> {
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
            Err(error @ (Error::Lacks(_) | Error::Wrong(_))) if self.raw.iter().all(BTreeMap::is_empty) => {
                return Err(error);
            }
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
        if self.raw.iter().any(|raw| !raw.is_empty()) {
            return Ok(());
        }
        let failures = self.cells.iter().flat_map(|cell| &cell.failures).map(|failure| &failure.why);
        let why = failures.chain(self.refused.iter().map(|refused| &refused.why)).next();
        Err(Error::Failed(why.map_or_else(|| "nothing was measured".to_owned(), Clone::clone)))
    }

    fn interrupted(self) -> Result<Progress, Error> {
        if self.raw.iter().all(BTreeMap::is_empty) { Err(Error::Interrupted) } else { Ok(self) }
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
        // What was refused for good is told with what was left out.
        let cells = cells.filter(|(cell, raw)| !(raw.is_empty() && is_refused(cell)));
        cells.map(|(cell, raw)| Cell { figures: raw.into_iter().map(figures).collect(), ..cell }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels;
    use super::super::report::{Fact, Metric};
    use super::super::verdict::{Comparison, Outcome};
    use super::*;
    use std::cell::RefCell;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicBool;

    /// Writes down what it is asked for.
    #[derive(Default)]
    struct Written {
        asked: RefCell<Vec<String>>,
        /// The cell that fails, and the measurement in which somebody wants an end.
        fails: &'static str,
        /// The cell that is refused.
        refuses: &'static str,
        stops_at: usize,
        left_out: Vec<LeftOut>,
    }

    /// Nobody sets it.
    static STOP: AtomicBool = AtomicBool::new(false);

    fn means(stop: &AtomicBool) -> Means<'_> {
        Means { rxlane: PathBuf::new(), seconds: Duration::from_millis(1), stop }
    }

    impl Scenario for Written {
        fn name(&self) -> &'static str {
            "written"
        }

        fn title(&self) -> &'static str {
            "Written"
        }

        fn parameters(&self) -> BTreeMap<String, String> {
            BTreeMap::new()
        }

        fn factors(&self) -> Vec<Factor> {
            vec![Factor::new("letter", &[("a", "letter a"), ("b", "letter b"), ("c", "")])]
        }

        fn metrics(&self) -> Vec<Metric> {
            vec![Metric::new("size", "Size", "", None)]
        }

        fn cells(&self) -> Vec<Levels> {
            ["a", "b", "c"].map(|letter| levels([("letter", letter)])).to_vec()
        }

        fn prepare(&mut self, _: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
            Ok(self.left_out.clone())
        }

        fn facts(&self, _: &[Levels], _: &Means<'_>) -> Result<Vec<Fact>, Error> {
            Ok(vec![Fact { question: "is it".to_owned(), answer: "yes".to_owned() }])
        }

        fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
            let letter = super::super::level(cell, "letter");
            self.asked.borrow_mut().push(letter.to_owned());
            if self.asked.borrow().len() == self.stops_at {
                means.stop.store(true, Ordering::Relaxed);
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

        fn comparisons(&self) -> Vec<Comparison> {
            let [cell, baseline] = ["b", "a"].map(|letter| levels([("letter", letter)]));
            vec![Comparison { metric: "size", cell, baseline }]
        }
    }

    fn only(factor: &str, levels: &[&str]) -> Vec<(String, Vec<String>)> {
        vec![(factor.to_owned(), levels.iter().map(|level| (*level).to_owned()).collect())]
    }

    #[test]
    fn each_round_begins_with_another_cell() {
        let mut scenario = Written::default();
        let mut steps = Vec::new();
        let asked = Asked { rounds: 3, only: Vec::new() };
        let report =
            run(&mut scenario, &asked, &means(&STOP), &mut |step| steps.push((step.round, step.done)));
        let report = report.expect("a report");
        assert_eq!(scenario.asked.borrow().concat(), "abcbcacab");
        assert_eq!((steps.len(), steps[3]), (9, (2, 3)));
        assert_eq!((report.rounds, report.complete, report.cells.len()), (3, true, 3));
        let figures = report.figures(&levels([("letter", "b")]), "size").expect("figures");
        assert_eq!(figures.raw, [Some(98.0); 3]);
        assert_eq!(report.verdicts[0].outcome, Outcome::Tie);
        let text = serde_json::to_string(&report).expect("JSON");
        assert_eq!(serde_json::from_str::<Report>(&text).expect("the same"), report);
    }

    #[test]
    fn a_cell_that_fails_leaves_the_others_and_a_reason() {
        let mut scenario = Written { fails: "a", ..Written::default() };
        let asked = Asked { rounds: 2, only: Vec::new() };
        let report = run(&mut scenario, &asked, &means(&STOP), &mut |_| ()).expect("a report");
        assert_eq!(report.cells[0].failures.len(), 2);
        assert!(report.cells[0].figures.is_empty() && report.cells[1].figures["size"].raw.len() == 2);
        assert!(report.verdicts.is_empty());
        let warning = "2 measurements failed, in 1 of 3 cells: their figures are missing";
        assert!(report.warnings.iter().any(|told| told == warning), "{report:?}");
        let mut scenario = Written { fails: "a", ..Written::default() };
        let asked = Asked { rounds: 2, only: only("letter", &["a"]) };
        let error = run(&mut scenario, &asked, &means(&STOP), &mut |_| ()).expect_err("nothing");
        assert_eq!(error.to_string(), "it fails");
    }

    #[test]
    fn what_is_refused_is_asked_for_once_and_told_as_left_out() {
        let mut scenario = Written { refuses: "a", ..Written::default() };
        let asked = Asked { rounds: 2, only: Vec::new() };
        let report = run(&mut scenario, &asked, &means(&STOP), &mut |_| ()).expect("a report");
        assert_eq!(scenario.asked.borrow().concat(), "abcbc");
        assert_eq!(report.cells.len(), 2, "{report:?}");
        let refused = LeftOut { levels: levels([("letter", "a")]), why: "not here".to_owned() };
        assert_eq!((report.left_out, report.complete), (vec![refused], true));
        let mut scenario = Written { refuses: "a", ..Written::default() };
        let asked = Asked { rounds: 2, only: only("letter", &["a"]) };
        let error = run(&mut scenario, &asked, &means(&STOP), &mut |_| ()).expect_err("nothing");
        assert_eq!(error.to_string(), "not here");
    }

    #[test]
    fn what_was_measured_before_the_end_counts() {
        let stop = AtomicBool::new(false);
        let mut scenario = Written { stops_at: 5, ..Written::default() };
        let asked = Asked { rounds: 3, only: Vec::new() };
        let report = run(&mut scenario, &asked, &means(&stop), &mut |_| ()).expect("a report");
        assert_eq!((report.rounds, report.complete), (2, false));
        assert_eq!(report.cells[1].figures["size"].raw, [Some(98.0); 2]);
        assert_eq!(report.cells[0].figures["size"].raw, [Some(97.0), None]);
        assert!(
            report.warnings.iter().any(|warning| warning == "ended before all of 3 rounds were whole"),
            "{report:?}"
        );
        let (stop, mut scenario) = (AtomicBool::new(false), Written { stops_at: 1, ..Written::default() });
        let error = run(&mut scenario, &asked, &means(&stop), &mut |_| ()).expect_err("nothing");
        assert!(matches!(error, Error::Interrupted));
    }

    #[test]
    fn cells_can_be_chosen_and_left_out() {
        let asked = |only| Asked { rounds: 1, only };
        let mut scenario = Written::default();
        run(&mut scenario, &asked(only("letter", &["c", "a"])), &means(&STOP), &mut |_| ())
            .expect("a report");
        assert_eq!(scenario.asked.borrow().concat(), "ac");
        for (only, expected) in [
            (only("colour", &["red"]), "--only colour: the factors are letter"),
            (only("letter", &["x"]), "--only letter=x: letter is one of a, b, c"),
            ([only("letter", &["a"]), only("letter", &["b"])].concat(), "no cell is all of that"),
        ] {
            let error = run(&mut scenario, &asked(only), &means(&STOP), &mut |_| ()).expect_err("wrong");
            assert!(matches!(error, Error::Wrong(_)) && error.to_string().contains(expected), "{error}");
        }
        let left = LeftOut { levels: levels([("letter", "b")]), why: "no b here".to_owned() };
        let mut scenario = Written { left_out: vec![left], ..Written::default() };
        let report = run(&mut scenario, &asked(Vec::new()), &means(&STOP), &mut |_| ()).expect("a report");
        assert_eq!((report.cells.len(), report.left_out.len()), (2, 1));
        let error = run(&mut scenario, &asked(only("letter", &["b"])), &means(&STOP), &mut |_| ());
        assert!(matches!(error.expect_err("nothing"), Error::Lacks(why) if why.contains("no b here")));
    }
}
