//! The sentences of scenarios and comparisons, made of their facts.

use super::scenario::Scale;
use bench::scenario::compare::{Aspect, Compared, Difference};
use bench::scenario::forward::sender_is_limit;
use bench::scenario::report::Report;
use bench::scenario::rounds::{self, Warning};
use bench::scenario::spread::Spread;
use bench::scenario::verdict::{LEAST_ROUNDS, Outcome, Ratios, Subject, Verdict};
use format::plural;

pub fn report(outcome: rounds::Outcome) -> Report {
    let rounds::Outcome { mut report, warnings } = outcome;
    let texts: Vec<String> = report.verdicts.iter().map(|verdict| sentence(&report, verdict)).collect();
    report.verdicts.iter_mut().zip(texts).for_each(|(verdict, text)| verdict.text = text);
    report.warnings = warnings.iter().map(warning).collect();
    report.remarks = limited_by_sender(&report).into_iter().collect();
    report
}

/// Sentences of comparisons. Those that lack rounds are not among them: a warning says it of all.
pub fn sentences(report: &Report) -> impl Iterator<Item = &str> {
    let has_rounds = report.rounds as usize >= LEAST_ROUNDS;
    let verdicts = report.verdicts.iter();
    let verdicts = verdicts.filter(move |verdict| has_rounds || verdict.outcome != Outcome::Unknown);
    verdicts.map(|verdict| verdict.text.as_str()).chain(report.remarks.iter().map(String::as_str))
}

/// The sentences that differ most, in every round, at most so many.
pub fn clearest(report: &Report, most: usize) -> Vec<&str> {
    let is_clear = |verdict: &&Verdict| matches!(verdict.outcome, Outcome::More | Outcome::Less);
    let distance = |verdict: &Verdict| verdict.ratio.map_or(0.0, |ratio| ratio.median.max(1e-9).ln().abs());
    let mut clear: Vec<&Verdict> = report.verdicts.iter().filter(is_clear).collect();
    clear.sort_by(|one, other| distance(other).total_cmp(&distance(one)));
    if clear.is_empty() && report.verdicts.iter().any(|verdict| verdict.outcome != Outcome::Unknown) {
        return vec!["Nothing differs clearly: less than 1.3 times, or not the same way in every round."];
    }
    clear.into_iter().take(most).map(|verdict| verdict.text.as_str()).collect()
}

fn sentence(report: &Report, verdict: &Verdict) -> String {
    let subject = Subject::of(report, &verdict.metric, &verdict.cell, &verdict.baseline);
    match Ratios::of_verdict(report, verdict) {
        Some(ratios) => of_ratios(&subject, &ratios),
        None => format!("{}: {} compared with {} is unknown.", subject.title, subject.this, subject.other),
    }
}

fn of_ratios(subject: &Subject, ratios: &Ratios) -> String {
    let (Subject { title, this, other }, endless, outcome) = (subject, ratios.endless, ratios.outcome());
    let rounds = if endless == 1 { "a round".to_owned() } else { format!("{endless} rounds") };
    let Some(ratio) = ratios.spread() else {
        if outcome == Outcome::More {
            return format!("{title}: {this} has some in every round, {other} none.");
        }
        let why = match endless {
            0 => "no round has figures of both".to_owned(),
            _ => format!("in {rounds} {this} has some, {other} none, of which nothing is a multiple"),
        };
        return format!("{title}: {this} compared with {other} is unknown: {why}.");
    };
    let end = ending(&ratio, ratios.against(), outcome);
    let times = times(&ratio);
    if endless > ratio.count {
        let others =
            if ratio.count == 1 { "the other one".to_owned() } else { format!("the other {}", ratio.count) };
        return format!(
            "{title}: {this} has some in {rounds} in which {other} has none, and {times} times that of it in {others}{end}."
        );
    }
    let but =
        if endless > 0 { format!(", but for {rounds} in which {other} has none") } else { String::new() };
    format!("{title}: {this} has {times} times that of {other}{but}{end}.")
}

fn ending(ratio: &Spread, (against, of): (usize, usize), outcome: Outcome) -> String {
    let end = match outcome {
        Outcome::Tie if ratio.most < 1.0 => {
            ": less in every round, but by less than a machine may vary, so a tie"
        }
        Outcome::Tie if ratio.least > 1.0 => {
            ": more in every round, but by less than a machine may vary, so a tie"
        }
        Outcome::Tie => ": a tie",
        Outcome::Unclear => ": unclear, the rounds do not agree",
        Outcome::Unknown => ": unknown, of fewer than three rounds (--rounds)",
        Outcome::More | Outcome::Less if against > 0 => {
            return format!(": {} of {of} rounds say so", of - against);
        }
        Outcome::More | Outcome::Less => "",
    };
    end.to_owned()
}

pub fn times(ratio: &Spread) -> String {
    // Of what is next to nothing there are many times.
    let short = |ratio: f64| if ratio < 1e6 { format!("{ratio:.2}") } else { format!("{ratio:.1e}") };
    let Spread { median, least, most, count } = *ratio;
    match count {
        1 => short(median),
        _ => format!("{} [{}–{}]", short(median), short(least), short(most)),
    }
}

fn warning(warning: &Warning) -> String {
    match warning {
        Warning::BusyBefore(busy) => format!(
            "this machine was not idle: its CPUs were {:.0} % busy in the half second before; stop what else runs on it, or \
             trust the figures less",
            100.0 * busy
        ),
        Warning::BusyBetween(rounds, most) => {
            let (noun, to) = if rounds.len() == 1 { ("round", "") } else { ("rounds", "up to ") };
            let rounds = rounds.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let most = 100.0 * most;
            format!("this machine was not idle before {noun} {rounds}: its CPUs were {to}{most:.0} % busy")
        }
        Warning::Incomplete(rounds) => format!("ended before all of {rounds} rounds were whole"),
        Warning::Failures { failures: 1, cells, of } => {
            format!("a measurement failed, in {cells} of {of} cells: its figures are missing")
        }
        Warning::Failures { failures, cells, of } => {
            format!("{failures} measurements failed, in {cells} of {of} cells: their figures are missing")
        }
        Warning::FewRounds => format!(
            "fewer than {LEAST_ROUNDS} rounds show neither how far figures vary nor how cells compare (--rounds {LEAST_ROUNDS})"
        ),
    }
}

/// Where the lines of `bench forward` could not send enough.
fn limited_by_sender(report: &Report) -> Option<String> {
    let limited = sender_is_limit(report);
    let cells = limited.iter().map(|cell| {
        let words = report.words(cell.levels);
        format!("{:.1} kpps ({words}; {} of {} rounds)", cell.sent / 1e3, cell.lossless, cell.rounds)
    });
    (report.scenario == "forward" && !limited.is_empty()).then(|| {
        format!(
            "Nothing was lost when as many were sent as can be, so that the sender is the limit, and the greatest rate without loss \
             is unknown, but at least: {}.",
            cells.collect::<Vec<_>>().join(", ")
        )
    })
}

/// What makes a comparison of two reports worth less.
pub fn compare_warnings(compared: &Compared<'_>, before: &Report, after: &Report) -> Vec<String> {
    let value = |value: &Option<String>, of: &Aspect| {
        let none = if matches!(of, Aspect::Parameter(_)) { "unset" } else { "unknown" };
        value.clone().unwrap_or_else(|| none.to_owned())
    };
    let difference = |Difference { of, before, after }: &Difference| {
        let what = match of {
            Aspect::CpuModel => "the model of the CPUs",
            Aspect::CpuCount => "the number of CPUs",
            Aspect::Kernel => "the kernel",
            Aspect::Version => "the version of rxlane",
            Aspect::Parameter(name) => &format!("parameter {name}"),
        };
        format!("{what} differs: {} and {}", value(before, of), value(after, of))
    };
    let mut warnings: Vec<String> = compared.differences.iter().map(difference).collect();
    for (name, report) in [("first", before), ("second", after)] {
        warnings.extend(report.warnings.iter().map(|warning| format!("of the {name}: {warning}")));
    }
    warnings
}

/// Why a cell has no figures, of the first failure of all, and how many more there are.
pub fn failures(report: &Report) -> Option<String> {
    let mut all =
        report.cells.iter().flat_map(|cell| cell.failures.iter().map(move |failure| (cell, failure)));
    let (cell, failure) = all.next()?;
    let more = match all.count() {
        0 => String::new(),
        more => format!(" (and {})", plural(more as u64, "other")),
    };
    Some(format!("{}, round {}: {}{more}", report.words(&cell.levels), failure.round + 1, failure.why))
}

pub fn left_out(report: &Report) -> Option<String> {
    let all = report.left_out.iter().map(|left| format!("{}: {}", report.words(&left.levels), left.why));
    (!report.left_out.is_empty()).then(|| all.collect::<Vec<_>>().join("; "))
}

/// Figures of a metric of a cell, in its scale.
pub fn spread(scale: &Scale, spread: Option<Spread>) -> String {
    let Some(Spread { median, least, most, count }) = spread else { return "–".to_owned() };
    let [median, least, most] = [median, least, most].map(|value| scale.figure(value));
    if count == 1 { median } else { format!("{median} [{least}–{most}]") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::scenario::report::{Cell, Factor, Figures, Metric};

    /// The sentence of a verdict on cells with these figures; 0 is nothing.
    fn sentence_of(cell: &[f64], baseline: &[f64]) -> String {
        let levels = |tags: &str| {
            [("tags", tags), ("rps", "off")].map(|(factor, level)| (factor.to_owned(), level.to_owned()))
        };
        let of = |tags: &str, raw: &[f64]| Cell {
            levels: levels(tags).into(),
            figures: [("tcp".to_owned(), Figures::of(raw.iter().copied().map(Some).collect()))].into(),
            failures: Vec::new(),
        };
        let report = Report {
            factors: vec![
                Factor::new("tags", &[("none", "no tag"), ("two", "two tags")]),
                Factor::new("rps", &[("off", "no RPS")]),
            ],
            metrics: vec![Metric::new("tcp", "TCP", "bit/s", Some(true))],
            cells: vec![of("none", baseline), of("two", cell)],
            ..Report::default()
        };
        let verdict = Verdict {
            metric: "tcp".to_owned(),
            cell: levels("two").into(),
            baseline: levels("none").into(),
            ..Verdict::default()
        };
        sentence(&report, &verdict)
    }

    #[test]
    fn every_outcome_has_a_sentence() {
        let one = [1.0; 3];
        for (cell, baseline, expected) in [
            (&[2.0; 3][..], &one[..], "TCP (no RPS): two tags has 2.00 [2.00–2.00] times that of no tag."),
            (
                &[5.0, 10.0, 20.0],
                &[10.0, 20.0, 5.0],
                "0.50 [0.50–4.00] times that of no tag: unclear, the rounds do not agree.",
            ),
            (
                &[0.77, 0.8, 0.9],
                &one,
                ": less in every round, but by less than a machine may vary, so a tie.",
            ),
            (
                &[1.01, 1.2, 1.4],
                &one,
                ": more in every round, but by less than a machine may vary, so a tie.",
            ),
            (&[0.9, 1.0, 1.1], &one, "times that of no tag: a tie."),
            (&[9.0], &[1.0], "9.00 times that of no tag: unknown, of fewer than three rounds (--rounds)."),
            (
                &[9.0; 2],
                &[1.0; 2],
                "9.00 [9.00–9.00] times that of no tag: unknown, of fewer than three rounds (--rounds).",
            ),
            (
                &[0.9, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0],
                &[1.0; 9],
                "2.00 [0.90–2.00] times that of no tag: 8 of 9 rounds say so.",
            ),
            (&[], &[], "two tags compared with no tag is unknown: no round has figures of both."),
            (&[0.1; 3], &[0.0; 3], "TCP (no RPS): two tags has some in every round, no tag none."),
            (
                &[0.1; 2],
                &[0.0; 2],
                "in 2 rounds two tags has some, no tag none, of which nothing is a multiple.",
            ),
            (
                &[0.2; 4],
                &[0.1, 0.1, 0.1, 0.0],
                "times that of no tag, but for a round in which no tag has none.",
            ),
            (
                &[0.5, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0],
                &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
                "two tags has some in 8 rounds in which no tag has none, and 0.50 times that of it in the other one: 8 of 9 rounds say so.",
            ),
        ] {
            let text = sentence_of(cell, baseline);
            assert!(text.ends_with(expected), "{text}");
        }
    }

    #[test]
    fn what_differs_most_is_first_and_what_lacks_rounds_is_not_repeated() {
        let verdict = |(outcome, ratio): &(Outcome, f64)| Verdict {
            ratio: Some(Spread { median: *ratio, least: *ratio, most: *ratio, count: 1 }),
            outcome: *outcome,
            text: format!("{outcome:?} {ratio}"),
            ..Verdict::default()
        };
        let of = |rounds, verdicts: &[(Outcome, f64)]| Report {
            rounds,
            verdicts: verdicts.iter().map(verdict).collect(),
            ..Report::default()
        };
        use Outcome::{Less, More, Tie, Unclear, Unknown};
        let all = of(3, &[(Tie, 1.1), (More, 3.0), (Unclear, 9.0), (Less, 0.1)]);
        assert_eq!(clearest(&all, 4), ["Less 0.1", "More 3"]);
        assert_eq!(sentences(&all).count(), 4);
        assert_eq!(clearest(&of(3, &[(More, 2.0); 9]), 4).len(), 4);
        assert!(clearest(&of(3, &[(Tie, 1.0)]), 4)[0].starts_with("Nothing differs clearly"));
        let few = of(2, &[(Unknown, 3.0); 13]);
        assert_eq!((clearest(&few, 4).len(), sentences(&few).count()), (0, 0));
        assert_eq!(sentences(&of(3, &[(Unknown, 3.0)])).count(), 1);
    }

    #[test]
    fn warnings_are_sentences() {
        for (of, expected) in [
            (Warning::BusyBefore(0.5), "its CPUs were 50 % busy in the half second before"),
            (Warning::BusyBetween(vec![3], 0.25), "not idle before round 3: its CPUs were 25 % busy"),
            (Warning::BusyBetween(vec![3, 5], 0.75), "before rounds 3, 5: its CPUs were up to 75 % busy"),
            (Warning::Incomplete(3), "ended before all of 3 rounds were whole"),
            (Warning::Failures { failures: 2, cells: 1, of: 3 }, "2 measurements failed, in 1 of 3 cells"),
            (Warning::FewRounds, "fewer than 3 rounds show neither"),
        ] {
            assert!(warning(&of).contains(expected), "{}", warning(&of));
        }
    }
}
