//! One cell compared with another: a ratio, taken round by round, and what it means.

use super::Comparison;
use super::bounded::map;
use super::report::{Figures, Levels, Report};
use super::spread::Spread;
use serde::{Deserialize, Serialize};

/// What is less than so many times more or less is a tie: identical work varies by as much on machines that others share.
pub const TIE: f64 = 1.3;
/// Of fewer rounds nothing is said: one has no spread, and of two that agree by chance every second pair does.
pub const LEAST_ROUNDS: usize = 3;
/// The greatest chance at which rounds that do not all say the same still agree.
const CHANCE: f64 = 0.05;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// At least 1.3 times, and the rounds agree that it is more; or some in every round where the other has none.
    More,
    Less,
    /// The median is less than 1.3 times away.
    Tie,
    /// The median is farther away, and the rounds do not agree which has more.
    Unclear,
    /// Fewer than three rounds have figures of both.
    #[default]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub metric: String,
    #[serde(deserialize_with = "map")]
    pub cell: Levels,
    #[serde(deserialize_with = "map")]
    pub baseline: Levels,
    /// The cell's figure over the other's, of each round that has both; that of nothing and nothing is 1, and of something and
    /// nothing there is none.
    pub ratio: Option<Spread>,
    pub outcome: Outcome,
    /// The sentence, where whoever words the report has made it.
    pub text: String,
}

/// The cell's figure over the baseline's, of each round that has both.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios {
    /// Of nothing and nothing it is 1.
    pub(super) all: Vec<f64>,
    /// Rounds in which the baseline has nothing, and the cell has something: of nothing there is no multiple.
    pub endless: usize,
}

impl Ratios {
    pub(super) fn of(cell: &Figures, baseline: &Figures) -> Ratios {
        let both =
            cell.raw.iter().zip(&baseline.raw).filter_map(|(cell, baseline)| Some(((*cell)?, (*baseline)?)));
        let ratio = |(cell, baseline): (f64, f64)| if cell == baseline { 1.0 } else { cell / baseline };
        let (all, endless) = both.map(ratio).partition::<Vec<f64>, _>(|ratio| ratio.is_finite());
        Ratios { all, endless: endless.len() }
    }

    /// Those of a verdict; `None` where a report has no figures for it.
    pub fn of_verdict(report: &Report, verdict: &Verdict) -> Option<Ratios> {
        let Verdict { metric, cell, baseline, .. } = verdict;
        Some(Ratios::of(report.figures(cell, metric)?, report.figures(baseline, metric)?))
    }

    /// Median, least and greatest of those that are a number.
    pub fn spread(&self) -> Option<Spread> {
        Spread::of(self.all.iter().copied())
    }

    /// All of them, with one that is more than any where the baseline has nothing.
    pub(super) fn comparable(&self) -> Vec<f64> {
        [self.all.as_slice(), &vec![f64::MAX; self.endless]].concat()
    }

    /// Rounds that are not on the side of one on which the median is, and of how many.
    pub fn against(&self) -> (usize, usize) {
        let all = self.comparable();
        let more = Spread::of(all.iter().copied()).is_some_and(|all| all.median > 1.0);
        let agrees = |ratio: &&f64| if more { **ratio > 1.0 } else { **ratio < 1.0 };
        (all.len() - all.iter().filter(agrees).count(), all.len())
    }

    pub fn outcome(&self) -> Outcome {
        let (against, rounds) = self.against();
        match Spread::of(self.comparable()) {
            None => Outcome::Unknown,
            Some(_) if rounds < LEAST_ROUNDS => Outcome::Unknown,
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
pub(super) fn judge(report: &Report, comparison: &Comparison) -> Option<Verdict> {
    let Comparison { metric, cell, baseline } = comparison;
    let ratios = Ratios::of(report.figures(cell, metric)?, report.figures(baseline, metric)?);
    Some(Verdict {
        metric: (*metric).to_owned(),
        cell: cell.clone(),
        baseline: baseline.clone(),
        ratio: ratios.spread(),
        outcome: ratios.outcome(),
        text: String::new(),
    })
}

/// What a verdict is about, by the titles and texts of the report.
pub struct Subject {
    /// The metric, and behind it in brackets what both cells have in common.
    pub title: String,
    pub this: String,
    pub other: String,
}

impl Subject {
    pub fn of(report: &Report, metric: &str, cell: &Levels, baseline: &Levels) -> Subject {
        let title =
            report.metrics.iter().find(|known| known.name == metric).map_or(metric, |known| &known.title);
        let is_common = |factor: &String| cell.get(factor) == baseline.get(factor);
        let only = |levels: &Levels, common: bool| -> Levels {
            let kept = levels.iter().filter(|(factor, _)| is_common(factor) == common);
            kept.map(|(factor, level)| (factor.clone(), level.clone())).collect()
        };
        let common = Some(report.words(&only(cell, true))).filter(|words| !words.is_empty());
        let common = common.map(|words| format!(" ({words})")).unwrap_or_default();
        let [this, other] = [cell, baseline].map(|levels| {
            let levels = only(levels, false);
            // A level without words of its own has to be named here.
            let names = || {
                let names = levels.iter().map(|(factor, level)| format!("{factor} {level}"));
                names.collect::<Vec<_>>().join(", ")
            };
            Some(report.words(&levels)).filter(|words| !words.is_empty()).unwrap_or_else(names)
        });
        Subject { title: format!("{title}{common}"), this, other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(cell: &[f64], baseline: &[f64]) -> Ratios {
        let [cell, baseline] =
            [cell, baseline].map(|raw| Figures::of(raw.iter().copied().map(Some).collect()));
        Ratios::of(&cell, &baseline)
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // Of the medians it would be 1.
        let ratios = ratios(&[5.0, 10.0, 20.0], &[10.0, 20.0, 5.0]);
        assert_eq!(ratios.spread(), Some(Spread { median: 0.5, least: 0.5, most: 4.0, count: 3 }));
        assert_eq!(ratios.outcome(), Outcome::Unclear);
        // Of rounds that have figures of one cell alone there is none.
        let [cell, baseline] = [[Some(1.0), None], [None, Some(1.0)]].map(|raw| Figures::of(raw.to_vec()));
        let none = Ratios::of(&cell, &baseline);
        assert_eq!((none.outcome(), none.spread()), (Outcome::Unknown, None));
    }

    #[test]
    fn outcomes_follow_from_median_and_agreement() {
        use Outcome::{Less, More, Tie, Unclear, Unknown};
        let half = |half: usize, endless: usize| {
            let cell = [vec![0.5; half], vec![5.0; endless]].concat();
            (cell, [vec![1.0; half], vec![0.0; endless]].concat())
        };
        let one_against = |against: f64, rounds: usize| {
            ([vec![against], vec![2.0; rounds - 1]].concat(), vec![1.0; rounds])
        };
        for ((cell, baseline), expected) in [
            ((vec![0.7; 3], vec![1.0; 3]), Less),
            ((vec![0.8; 3], vec![1.0; 3]), Tie),
            ((vec![1.29; 3], vec![1.0; 3]), Tie),
            ((vec![1.31; 3], vec![1.0; 3]), More),
            // Fewer rounds than three say nothing.
            ((vec![9.0; 1], vec![1.0; 1]), Unknown),
            ((vec![9.0; 2], vec![1.0; 2]), Unknown),
            // Of many rounds a few may say the opposite.
            (one_against(0.9, 8), Unclear),
            (one_against(0.9, 9), More),
            (one_against(1.0, 8), Unclear),
            (one_against(1.1, 8), More),
            // Of nothing there is no multiple: such rounds are on the side of more.
            ((vec![0.0; 3], vec![0.0; 3]), Tie),
            ((vec![0.1; 3], vec![0.0; 3]), More),
            ((vec![0.1; 2], vec![0.0; 2]), Unknown),
            ((vec![0.0; 3], vec![0.1; 3]), Less),
            ((vec![0.2; 4], vec![0.1, 0.1, 0.1, 0.0]), More),
            (half(3, 6), Unclear),
            (half(1, 8), More),
            (half(8, 1), Less),
        ] {
            assert_eq!(ratios(&cell, &baseline).outcome(), expected, "{cell:?} {baseline:?}");
        }
    }

    #[test]
    fn of_many_rounds_a_few_may_say_the_opposite() {
        for (rounds, may) in [(3, 0), (5, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (20, 5), (1000, 468)]
        {
            let most = (0..=rounds / 2).rev().find(|against| agree(rounds, *against));
            assert_eq!(most, Some(may), "of {rounds}");
        }
    }
}
