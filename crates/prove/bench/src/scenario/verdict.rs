//! One cell beside another: a ratio, taken round by round, and a sentence.

use super::bounded::map;
use super::report::{Figures, Levels, Report};
use super::spread::Spread;
use serde::{Deserialize, Serialize};

/// What is less than so many times more or less is a tie: identical work varies by as much on machines that others share.
pub const TIE: f64 = 1.3;
/// Of fewer rounds nothing is said: one has no spread, and of two that agree by chance every second pair does.
const ROUNDS: usize = 3;
/// The greatest chance at which rounds that do not all say the same still agree.
const CHANCE: f64 = 0.05;

/// A cell that is worth a sentence beside another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Of this metric.
    pub metric: &'static str,
    /// The cell.
    pub cell: Levels,
    /// The other.
    pub baseline: Levels,
}

/// How a cell stands beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// At least 1.3 times, and the rounds agree that it is more; or some in every round, beside none.
    More,
    /// The other way round.
    Less,
    /// The median is less than 1.3 times away.
    Tie,
    /// The median is farther away, and the rounds do not agree which has more.
    Unclear,
    /// Fewer than three rounds have figures of both.
    Unknown,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Of this metric.
    pub metric: String,
    /// The cell.
    #[serde(deserialize_with = "map")]
    pub cell: Levels,
    /// The other.
    #[serde(deserialize_with = "map")]
    pub baseline: Levels,
    /// The cell's figure over the other's, of each round that has both; that of nothing and nothing is 1, and of something and
    /// nothing there is none.
    pub ratio: Option<Spread>,
    /// What it means.
    pub outcome: Outcome,
    /// The sentence.
    pub text: String,
}

/// The cell's figure over the baseline's, of each round that has both.
pub(super) struct Ratios {
    /// Of nothing and nothing it is 1.
    pub(super) all: Vec<f64>,
    /// Rounds in which the baseline has nothing, and the cell has something: of nothing there is no multiple.
    pub(super) endless: usize,
}

impl Ratios {
    pub(super) fn of(cell: &Figures, baseline: &Figures) -> Ratios {
        let both =
            cell.raw.iter().zip(&baseline.raw).filter_map(|(cell, baseline)| Some(((*cell)?, (*baseline)?)));
        let ratio = |(cell, baseline): (f64, f64)| if cell == baseline { 1.0 } else { cell / baseline };
        let (all, endless) = both.map(ratio).partition::<Vec<f64>, _>(|ratio| ratio.is_finite());
        Ratios { all, endless: endless.len() }
    }

    pub(super) fn spread(&self) -> Option<Spread> {
        Spread::of(self.all.iter().copied())
    }

    /// All of them, with one that is more than any where the baseline has nothing.
    pub(super) fn comparable(&self) -> Vec<f64> {
        [self.all.as_slice(), &vec![f64::MAX; self.endless]].concat()
    }

    /// Rounds that are not on the side of one on which the median is, and of how many.
    fn against(&self) -> (usize, usize) {
        let all = self.comparable();
        let more = Spread::of(all.iter().copied()).is_some_and(|all| all.median > 1.0);
        let agrees = |ratio: &&f64| if more { **ratio > 1.0 } else { **ratio < 1.0 };
        (all.len() - all.iter().filter(agrees).count(), all.len())
    }

    /// What they mean.
    pub(super) fn outcome(&self) -> Outcome {
        let (against, rounds) = self.against();
        match Spread::of(self.comparable()) {
            None => Outcome::Unknown,
            Some(_) if rounds < ROUNDS => Outcome::Unknown,
            Some(ratio) if ratio.median < TIE && ratio.median > 1.0 / TIE => Outcome::Tie,
            Some(_) if !agree(rounds, against) => Outcome::Unclear,
            Some(ratio) if ratio.median > 1.0 => Outcome::More,
            Some(_) => Outcome::Less,
        }
    }
}

/// Whether so many rounds say the same, all but `against` of them: none is against, or so few that of equal cells chance divides the
/// rounds like that, or less evenly, at most once in twenty times (the two-sided sign test). One of nine may be, two of twelve.
fn agree(rounds: usize, against: usize) -> bool {
    let ways = (0..against).scan(1.0, |ways, k| {
        *ways *= (rounds - k) as f64 / (k + 1) as f64;
        Some(*ways)
    });
    against == 0 || 2.0 * (1.0 + ways.sum::<f64>()) / (rounds as f64).exp2() <= CHANCE
}

/// The verdict; `None` where one of the cells was not measured at all, since it was left out.
pub fn judge(report: &Report, comparison: &Comparison) -> Option<Verdict> {
    let Comparison { metric, cell, baseline } = comparison;
    let ratios = Ratios::of(report.figures(cell, metric)?, report.figures(baseline, metric)?);
    let outcome = ratios.outcome();
    Some(Verdict {
        metric: (*metric).to_owned(),
        cell: cell.clone(),
        baseline: baseline.clone(),
        ratio: ratios.spread(),
        outcome,
        text: sentence(&Subject::of(report, metric, cell, baseline), &ratios, outcome),
    })
}

/// What a verdict is about, in words.
pub(super) struct Subject {
    /// The metric, and behind it in brackets what both cells have in common.
    pub(super) title: String,
    /// What the cell has alone.
    pub(super) this: String,
    /// What the other has alone.
    pub(super) other: String,
}

impl Subject {
    pub(super) fn of(report: &Report, metric: &str, cell: &Levels, baseline: &Levels) -> Subject {
        let title =
            report.metrics.iter().find(|known| known.name == metric).map_or(metric, |known| &known.title);
        let is_common = |factor: &String| cell.get(factor) == baseline.get(factor);
        let only = |levels: &Levels, common: bool| {
            let kept = levels.iter().filter(|(factor, _)| is_common(factor) == common);
            report.words(&kept.map(|(factor, level)| (factor.clone(), level.clone())).collect())
        };
        let common = Some(only(cell, true)).filter(|words| !words.is_empty());
        let common = common.map(|words| format!(" ({words})")).unwrap_or_default();
        // A level that says nothing beside others has to be told here.
        let named = |levels: &Levels| {
            let kept = levels.iter().filter(|(factor, _)| !is_common(factor));
            kept.map(|(factor, level)| format!("{factor} {level}")).collect::<Vec<_>>().join(", ")
        };
        let told = |levels: &Levels| Some(only(levels, false)).filter(|words| !words.is_empty());
        let [this, other] = [cell, baseline].map(|levels| told(levels).unwrap_or_else(|| named(levels)));
        Subject { title: format!("{title}{common}"), this, other }
    }
}

fn sentence(subject: &Subject, ratios: &Ratios, outcome: Outcome) -> String {
    let (Subject { title, this, other }, endless) = (subject, ratios.endless);
    let rounds = if endless == 1 { "a round".to_owned() } else { format!("{endless} rounds") };
    let Some(ratio) = ratios.spread() else {
        if outcome == Outcome::More {
            return format!("{title}: {this} has some in every round, {other} none.");
        }
        let why = match endless {
            0 => "no round has figures of both".to_owned(),
            _ => format!("in {rounds} {this} has some, {other} none, of which nothing is a multiple"),
        };
        return format!("{title}: {this} beside {other} is unknown: {why}.");
    };
    let (against, of) = ratios.against();
    let end = match outcome {
        Outcome::Tie if ratio.most < 1.0 => {
            ": less in every round, but by less than a machine may vary, so a tie".to_owned()
        }
        Outcome::Tie if ratio.least > 1.0 => {
            ": more in every round, but by less than a machine may vary, so a tie".to_owned()
        }
        Outcome::Tie => ": a tie".to_owned(),
        Outcome::Unclear => ": unclear, the rounds do not agree".to_owned(),
        Outcome::Unknown => ": unknown, since that takes three rounds at least (--rounds)".to_owned(),
        Outcome::More | Outcome::Less if against > 0 => {
            format!(": {} of {of} rounds say so", of - against)
        }
        Outcome::More | Outcome::Less => String::new(),
    };
    let but =
        if endless > 0 { format!(", but for {rounds} in which {other} has none") } else { String::new() };
    let times = times(&ratio);
    if endless > ratio.count {
        let others =
            if ratio.count == 1 { "the other one".to_owned() } else { format!("the other {}", ratio.count) };
        return format!(
            "{title}: {this} has some in {rounds} in which {other} has none, and {times} times that of it in {others}{end}."
        );
    }
    format!("{title}: {this} has {times} times that of {other}{but}{end}.")
}

/// Median and range of a ratio.
pub fn times(ratio: &Spread) -> String {
    // Of what is next to nothing there are many times.
    let short = |ratio: f64| if ratio < 1e6 { format!("{ratio:.2}") } else { format!("{ratio:.1e}") };
    let Spread { median, least, most, count } = *ratio;
    match count {
        1 => short(median),
        _ => format!("{} [{}–{}]", short(median), short(least), short(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels;
    use super::super::report::{Cell, Factor, Metric};
    use super::*;

    fn verdict(cell: Vec<Option<f64>>, baseline: Vec<Option<f64>>) -> Verdict {
        let of = |tags: &str, raw| Cell {
            levels: levels([("tags", tags), ("rps", "off")]),
            figures: [("tcp".to_owned(), Figures::of(raw))].into(),
            failures: Vec::new(),
        };
        let report = Report {
            rounds: 3,
            complete: true,
            factors: vec![
                Factor::new("tags", &[("none", "no tag"), ("two", "two tags")]),
                Factor::new("rps", &[("off", "no RPS")]),
            ],
            metrics: vec![Metric::new("tcp", "TCP", "bit/s", Some(true))],
            cells: vec![of("none", baseline), of("two", cell)],
            ..Report::default()
        };
        let [cell, baseline] = ["two", "none"].map(|tags| levels([("tags", tags), ("rps", "off")]));
        judge(&report, &Comparison { metric: "tcp", cell, baseline }).expect("both were measured")
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // Of the medians it would be 1.
        let verdict =
            verdict(vec![Some(5.0), Some(10.0), Some(20.0)], vec![Some(10.0), Some(20.0), Some(5.0)]);
        assert_eq!(verdict.ratio, Some(Spread { median: 0.5, least: 0.5, most: 4.0, count: 3 }));
        assert_eq!(verdict.outcome, Outcome::Unclear);
        assert_eq!(
            verdict.text,
            "TCP (no RPS): two tags has 0.50 [0.50–4.00] times that of no tag: unclear, the rounds do not agree."
        );
    }

    #[test]
    fn less_than_1_3_times_is_a_tie() {
        let of = |figure: f64| verdict(vec![Some(figure); 3], vec![Some(1.0); 3]).outcome;
        let outcomes = [0.7, 0.8, 1.0, 1.29, 1.31].map(of);
        assert_eq!(outcomes, [Outcome::Less, Outcome::Tie, Outcome::Tie, Outcome::Tie, Outcome::More]);
    }

    #[test]
    fn of_many_rounds_a_few_may_say_the_opposite() {
        for (rounds, may) in [(3, 0), (5, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (20, 5), (1000, 468)]
        {
            let most = (0..=rounds / 2).rev().find(|against| agree(rounds, *against));
            assert_eq!(most, Some(may), "of {rounds}");
        }
        let of = |against: f64, rounds: usize| {
            let cell: Vec<f64> = std::iter::once(against).chain(vec![2.0; rounds - 1]).collect();
            verdict(cell.into_iter().map(Some).collect(), vec![Some(1.0); rounds])
        };
        assert_eq!((of(0.9, 8).outcome, of(0.9, 9).outcome), (Outcome::Unclear, Outcome::More));
        assert_eq!((of(1.0, 8).outcome, of(1.1, 8).outcome), (Outcome::Unclear, Outcome::More));
        let text = of(0.9, 9).text;
        assert!(text.ends_with("2.00 [0.90–2.00] times that of no tag: 8 of 9 rounds say so."), "{text}");
    }

    #[test]
    fn a_tie_tells_what_every_round_says() {
        let text = |figures: [f64; 3]| verdict(figures.map(Some).to_vec(), vec![Some(1.0); 3]).text;
        assert!(
            text([0.77, 0.8, 0.9])
                .ends_with("less in every round, but by less than a machine may vary, so a tie.")
        );
        assert!(
            text([1.01, 1.2, 1.4])
                .ends_with("more in every round, but by less than a machine may vary, so a tie.")
        );
        assert!(text([0.9, 1.0, 1.1]).ends_with("times that of no tag: a tie."));
    }

    #[test]
    fn fewer_rounds_than_three_say_nothing() {
        for rounds in [1, 2] {
            let verdict = verdict(vec![Some(9.0); rounds], vec![Some(1.0); rounds]);
            assert_eq!(
                (verdict.outcome, verdict.ratio.map(|ratio| ratio.median)),
                (Outcome::Unknown, Some(9.0))
            );
            assert!(verdict.text.contains("three rounds"), "{}", verdict.text);
            assert_eq!(verdict.text.contains("[9.00–9.00]"), rounds > 1, "{}", verdict.text);
        }
    }

    #[test]
    fn of_nothing_there_is_no_multiple() {
        let [none, some] = [vec![Some(0.0); 3], vec![Some(0.1); 3]];
        let equal = verdict(none.clone(), none.clone());
        assert_eq!((equal.outcome, equal.ratio.map(|ratio| ratio.median)), (Outcome::Tie, Some(1.0)));
        let endless = verdict(some.clone(), none.clone());
        assert_eq!((endless.outcome, endless.ratio), (Outcome::More, None));
        assert_eq!(endless.text, "TCP (no RPS): two tags has some in every round, no tag none.");
        let few = verdict(some[1..].to_vec(), none[1..].to_vec());
        assert_eq!((few.outcome, few.ratio), (Outcome::Unknown, None));
        assert!(
            few.text.ends_with("in 2 rounds two tags has some, no tag none, of which nothing is a multiple."),
            "{}",
            few.text
        );
        let nothing = verdict(none, some);
        assert_eq!((nothing.outcome, nothing.ratio.map(|ratio| ratio.most)), (Outcome::Less, Some(0.0)));
        let once = verdict(vec![Some(0.2); 4], [vec![Some(0.1); 3], vec![Some(0.0)]].concat());
        assert_eq!(once.outcome, Outcome::More);
        assert!(
            once.text.ends_with("times that of no tag, but for a round in which no tag has none."),
            "{}",
            once.text
        );
        // Rounds of which nothing is a multiple are on the side of more.
        let mostly = |half: usize, endless: usize| {
            let cell = [vec![Some(0.5); half], vec![Some(5.0); endless]].concat();
            verdict(cell, [vec![Some(1.0); half], vec![Some(0.0); endless]].concat())
        };
        assert_eq!(mostly(3, 6).outcome, Outcome::Unclear);
        assert_eq!((mostly(1, 8).outcome, mostly(8, 1).outcome), (Outcome::More, Outcome::Less));
        let text = mostly(1, 8).text;
        assert!(
            text.ends_with(
                "two tags has some in 8 rounds in which no tag has none, and 0.50 times that of it in the other one: 8 of 9 rounds say so."
            ),
            "{text}"
        );
    }

    #[test]
    fn what_has_no_figures_is_unknown() {
        let verdict = verdict(vec![Some(1.0), None], vec![None, Some(1.0)]);
        assert_eq!((verdict.outcome, verdict.ratio), (Outcome::Unknown, None));
        assert!(verdict.text.contains("unknown"), "{}", verdict.text);
        assert!(serde_json::to_value(verdict).expect("JSON")["ratio"].is_null());
    }
}
