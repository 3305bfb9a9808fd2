//! Verdicts of two results: whether they have the same word, and whether it is more than chance where they do not.
//!
//! A verdict has one word, and a median near the border of a tie has another one each time. So the ratios of both are held against each
//! other as figures are, by the rules of [`super`]: another word within the noise is nothing that has changed.

use super::super::report::{Cell, Levels, Report};
use super::super::spread::Spread;
use super::super::verdict::{Outcome, Ratios, Subject, Verdict};
use super::Row;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictRow<'r> {
    pub metric: &'r str,
    pub cell: &'r Levels,
    /// The other cell, with which it is compared.
    pub baseline: &'r Levels,
    /// What it is about, in words: the metric, the cell, the other.
    pub words: [String; 3],
    /// That of the first; `None` where it has none.
    pub before: Option<Judged>,
    /// That of the second; `None` where it has none.
    pub after: Option<Judged>,
    pub change: Change,
}

/// A verdict, by today's rules and from the figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judged {
    pub outcome: Outcome,
    /// Of the rounds in which the other cell has something.
    pub ratio: Option<Spread>,
    /// Rounds in which it has nothing, and the cell has something.
    pub endless: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    None,
    /// Another word, by what chance or the state of the machine could have done.
    WithinNoise,
    /// Another ratio, outside the noise, whatever the word.
    OutsideNoise,
    /// Another word, and too few ratios to say more.
    TooFew,
    /// The second has none.
    OnlyBefore,
    OnlyAfter,
}

impl VerdictRow<'_> {
    /// Whether both have one, of the same word.
    pub fn has_same_word(&self) -> bool {
        self.before.zip(self.after).is_some_and(|(before, after)| before.outcome == after.outcome)
    }
}

/// Of all verdicts, in the order of the second, with those of the first alone behind. Cells are found by their levels, as in
/// [`super::rows`].
pub(super) fn rows<'r>(before: &'r Report, after: &'r Report, tie: f64) -> Vec<VerdictRow<'r>> {
    let [first, second] = [before, after].map(Judges::of);
    let alone = before.verdicts.iter().filter(|verdict| !second.verdicts.contains(&key(verdict)));
    let row = |(words_of, verdict): (&Report, &'r Verdict)| {
        let (was, is) = (first.ratios(verdict), second.ratios(verdict));
        let Verdict { metric, cell, baseline, .. } = verdict;
        let Subject { title, this, other } = Subject::of(words_of, metric, cell, baseline);
        let change = match (&was, &is) {
            (Some(was), Some(is)) => change(was, is, tie),
            (Some(_), None) => Change::OnlyBefore,
            (None, Some(_)) => Change::OnlyAfter,
            (None, None) => return None,
        };
        let [before, after] = [was, is].map(|ratios| ratios.as_ref().map(Judged::of));
        Some(VerdictRow { metric, cell, baseline, words: [title, this, other], before, after, change })
    };
    let of_second = after.verdicts.iter().map(|verdict| (after, verdict));
    of_second.chain(alone.map(|verdict| (before, verdict))).filter_map(row).collect()
}

type Key<'r> = (&'r str, &'r Levels, &'r Levels);

fn key(verdict: &Verdict) -> Key<'_> {
    (&verdict.metric, &verdict.cell, &verdict.baseline)
}

/// A report, to be queried for ratios.
struct Judges<'r> {
    cells: BTreeMap<&'r Levels, &'r Cell>,
    verdicts: BTreeSet<Key<'r>>,
}

impl<'r> Judges<'r> {
    fn of(report: &'r Report) -> Judges<'r> {
        Judges { cells: super::cells_of(report), verdicts: report.verdicts.iter().map(key).collect() }
    }

    /// Where it has that verdict, and figures for it.
    fn ratios(&self, verdict: &Verdict) -> Option<Ratios> {
        let figures = |levels: &Levels| self.cells.get(levels)?.figures.get(&verdict.metric);
        let has_it = self.verdicts.contains(&key(verdict));
        has_it.then(|| Some(Ratios::of(figures(&verdict.cell)?, figures(&verdict.baseline)?)))?
    }
}

impl Judged {
    fn of(ratios: &Ratios) -> Judged {
        Judged { outcome: ratios.outcome(), ratio: ratios.spread(), endless: ratios.endless }
    }
}

fn change(before: &Ratios, after: &Ratios, tie: f64) -> Change {
    use super::Outcome::{Less, More, WithinNoise};
    let nowhere = Levels::new();
    match Row::of(&nowhere, &before.comparable(), &after.comparable(), tie).outcome {
        More | Less => Change::OutsideNoise,
        _ if before.outcome() == after.outcome() => Change::None,
        WithinNoise => Change::WithinNoise,
        _ => Change::TooFew,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change_of(before: &[f64], after: &[f64]) -> Change {
        let of = |all: &[f64]| Ratios { all: all.to_vec(), endless: 0 };
        change(&of(before), &of(after), 1.3)
    }

    #[test]
    fn another_word_is_a_change_where_the_ratios_do_not_overlap() {
        let tie = [0.8, 0.75, 0.85, 0.9, 0.78];
        assert_eq!(change_of(&tie, &tie), Change::None);
        // Less, in every round: 0.74 in the median, near the border.
        assert_eq!(change_of(&tie, &[0.74, 0.6, 0.8, 0.7, 0.76]), Change::WithinNoise);
        assert_eq!(change_of(&tie, &[0.4, 0.5, 0.45, 0.41, 0.5]), Change::OutsideNoise);
        // More, and more than before: the same word, another ratio.
        assert_eq!(change_of(&[2.0; 5], &[4.0; 5]), Change::OutsideNoise);
        assert_eq!(change_of(&[0.8; 3], &[0.5; 3]), Change::TooFew);
    }

    #[test]
    fn of_nothing_anything_is_more() {
        let [none, some] = [5, 0].map(|endless| Ratios { all: vec![1.0; 5 - endless], endless });
        assert_eq!(change(&none, &none, 1.3), Change::None);
        assert_eq!(change(&some, &none, 1.3), Change::OutsideNoise);
        let few = Ratios { all: vec![1.0; 2], endless: 0 };
        assert_eq!(change(&none, &few, 1.3), Change::TooFew);
    }
}
