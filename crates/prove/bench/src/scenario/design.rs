//! What a scenario measures: its factors, cells, metrics, and the comparisons that are worth a verdict.

use super::report::{Factor, Levels, Metric};
use std::collections::BTreeMap;

/// All of it. The first level of a factor is what others are compared with.
#[derive(Clone, Debug, Default)]
pub struct Design {
    pub name: &'static str,
    pub title: &'static str,
    /// Options besides rounds and seconds, by name.
    pub parameters: BTreeMap<String, String>,
    pub factors: Vec<Factor>,
    pub metrics: Vec<Metric>,
    pub cells: Vec<Levels>,
    pub comparisons: Vec<Comparison>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub metric: &'static str,
    pub cell: Levels,
    pub baseline: Levels,
}

impl Comparison {
    /// Of levels as text, with what both have in common.
    pub(super) fn new(metric: &'static str, cell: &str, baseline: &str, both: &str) -> Comparison {
        let [cell, baseline] = [cell, baseline].map(|text| levels(&format!("{text} {both}")));
        Comparison { metric, cell, baseline }
    }
}

/// Levels as text: `tags=q by=rxlane`.
pub(super) fn levels(text: &str) -> Levels {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(factor, level)| (factor.to_owned(), level.to_owned())).collect()
}

pub(super) fn parameters<const N: usize>(of: [(&str, String); N]) -> BTreeMap<String, String> {
    of.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Each level of these factors with each of the others; the last factor changes from cell to cell.
pub(super) fn crossed<'f>(factors: impl IntoIterator<Item = &'f Factor>) -> Vec<Levels> {
    let with = |cells: Vec<Levels>, factor: &Factor| {
        let each = |cell: &Levels| {
            let with = |level: &super::report::Level| {
                let mut cell = cell.clone();
                cell.insert(factor.name.clone(), level.name.clone());
                cell
            };
            factor.levels.iter().map(with).collect::<Vec<_>>()
        };
        cells.iter().flat_map(each).collect()
    };
    factors.into_iter().fold(vec![Levels::new()], with)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Scenario, pppoe::Pppoe, pps::Pps, steer::Steer, vlan::Vlan};
    use super::*;

    #[test]
    fn factors_are_crossed_and_the_last_changes_fastest() {
        let of = |name: &str, levels: [&str; 2]| Factor::new(name, &levels.map(|level| (level, "")));
        let cells = crossed(&[of("a", ["1", "2"]), of("b", ["x", "y"])]);
        assert_eq!(cells, ["a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y"].map(levels));
    }

    #[test]
    fn every_design_is_whole() {
        let pps = Pps { payload: 32, flows: 16 };
        [Vlan.design(), pps.design(), Pppoe.design(), Steer::new(7).design()].iter().for_each(check);
    }

    /// Every cell has every factor, and every comparison is between cells and by a metric of the scenario.
    pub fn check(design: &Design) {
        let names: std::collections::BTreeSet<&Levels> = design.cells.iter().collect();
        assert_eq!(names.len(), design.cells.len(), "a cell twice");
        for cell in &design.cells {
            let has = |factor: &Factor| {
                factor.levels.iter().any(|level| cell.get(&factor.name) == Some(&level.name))
            };
            assert!(cell.len() == design.factors.len() && design.factors.iter().all(has), "{cell:?}");
        }
        for comparison in &design.comparisons {
            let Comparison { metric, cell, baseline } = comparison;
            assert!(names.contains(cell) && names.contains(baseline), "{comparison:?}");
            assert!(design.metrics.iter().any(|known| known.name == *metric), "{comparison:?}");
        }
    }
}
