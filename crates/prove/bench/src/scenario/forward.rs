//! `forward`: frames of least size through a router, one way and with a stream against them, over two interfaces and over a VLAN trunk.
//!
//! As fast as the lines send, and the greatest rate at which nothing is lost, searched as RFC 2544 section 26.1 says: a trial at a
//! rate passes when as many frames come as were sent. Lines are veth pairs, or adapters of this machine that are joined by cables; of
//! those interrupt moderation is varied, too. Where the lines cannot send as much as the router forwards, there is no such
//! rate, and it is said so.

mod interrupts;
mod search;
mod trial;
mod wedge;

use super::moderation::Moderation;
use super::pair::{self, spread_by_rps};
use super::report::{Cell, Fact, Factor, LeftOut, Levels, Metric, Report};
use super::router::{self, Lines, Router, Tagger, Way};
use super::verdict::Comparison;
use super::{Error, Means, Measured, Scenario, level, levels};
use crate::pin;
use std::collections::BTreeMap;
use std::process::Command;
use trial::trial;

pub use super::router::Cable;

/// Microseconds between interrupts (`rx-usecs`), as on the APU of the field report.
const MODERATIONS: [(&str, &str); 5] = [
    ("0", "rx-usecs 0"),
    ("3", "rx-usecs 3"),
    ("10", "rx-usecs 10"),
    ("50", "rx-usecs 50"),
    ("100", "rx-usecs 100"),
];
/// As the adapters were found.
const AS_IS: &str = "as-is";

const KERNEL_TRUNK: &str = "trunk-8021q";
const RXLANE_TRUNK: &str = "trunk-rxlane";

/// The scenario.
#[derive(Debug)]
pub struct Forward {
    /// Flows each way.
    pub flows: u16,
    /// Adapters that are joined: none, one for the trunk alone, or two.
    pub cables: Vec<Cable>,
}

fn lines(cell: &Levels) -> Lines {
    match level(cell, "lines") {
        KERNEL_TRUNK => Lines::Trunk(Tagger::Kernel),
        RXLANE_TRUNK => Lines::Trunk(Tagger::Rxlane),
        _ => Lines::Two,
    }
}

impl Scenario for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn title(&self) -> &'static str {
        "Small packets through a router"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let mut parameters: BTreeMap<String, String> =
            [("flows", self.flows.to_string()), ("payload", router::PAYLOAD.to_string())]
                .map(|(name, value)| (name.to_owned(), value))
                .into();
        if !self.cables.is_empty() {
            let cables = self.cables.iter().map(|cable| format!("{}:{}", cable.line, cable.router));
            parameters.insert("cables".to_owned(), cables.collect::<Vec<_>>().join(","));
        }
        parameters
    }

    fn factors(&self) -> Vec<Factor> {
        let mut factors = vec![
            Factor::new(
                "lines",
                &[
                    ("two", "two interfaces"),
                    (KERNEL_TRUNK, "a VLAN trunk by the kernel's 8021q"),
                    (RXLANE_TRUNK, "a VLAN trunk by rxlane link"),
                ],
            ),
            Factor::new("streams", &[("one", "one way"), ("both", "both ways")]),
            Factor::new("rps", &[("off", "RPS off"), ("on", "RPS on")]),
        ];
        if !self.cables.is_empty() {
            let levels = [(AS_IS, "moderation as it was")].into_iter().chain(MODERATIONS);
            factors.push(Factor::new("moderation", &levels.collect::<Vec<_>>()));
        }
        factors
    }

    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = vec![
            Metric::new(
                "forwarded",
                "Packets forwarded when as many are sent as can be",
                "packets/s",
                Some(true),
            ),
            Metric::new("sent", "Packets sent when as many are sent as can be", "packets/s", None),
            Metric::new("loss", "Share lost of those when as many are sent as can be", "", Some(false)),
            Metric::new(
                "loss_free",
                "Greatest rate without loss (RFC 2544 section 26.1)",
                "packets/s",
                Some(true),
            ),
        ];
        if !self.cables.is_empty() {
            let title = "Interrupts of the router's adapters for each thousand packets that it forwards then";
            metrics.push(Metric::new("interrupts", title, "per 1000 packets", Some(false)));
        }
        metrics
    }

    fn cells(&self) -> Vec<Levels> {
        let mut cells = Vec::new();
        for lines in ["two", KERNEL_TRUNK, RXLANE_TRUNK] {
            if lines == "two" && self.cables.len() == 1 {
                continue;
            }
            for streams in ["one", "both"] {
                for rps in ["off", "on"] {
                    let cell = levels([("lines", lines), ("streams", streams), ("rps", rps)]);
                    let with = |moderation: &str| {
                        let mut cell = cell.clone();
                        cell.insert("moderation".to_owned(), moderation.to_owned());
                        cell
                    };
                    if self.cables.is_empty() {
                        cells.push(cell);
                        continue;
                    }
                    cells.push(with(AS_IS));
                    if rps == "off" {
                        cells.extend(MODERATIONS.map(|(moderation, _)| with(moderation)));
                    }
                }
            }
        }
        cells
    }

    fn prepare(&mut self, _means: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
        let programs: &[&str] = if self.cables.is_empty() { &["sh"] } else { &["sh", "ethtool"] };
        pair::is_possible(programs)?;
        self.cables.iter().try_for_each(Cable::check)?;
        let left = pair::lacks_8021q()?.map(|why| LeftOut { levels: levels([("lines", KERNEL_TRUNK)]), why });
        Ok(left.into_iter().collect())
    }

    fn facts(&self, _cells: &[Levels], _means: &Means<'_>) -> Result<Vec<Fact>, Error> {
        Ok(self.cables.iter().map(|cable| as_found(&cable.router)).collect())
    }

    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
        let router = Router::with(lines(cell), &self.cables, self.flows, means)?;
        if level(cell, "rps") == "on" {
            for interface in router.ports() {
                spread_by_rps(router.namespace(), interface, &pin::allowed())?;
            }
        }
        let ports: Vec<&str> = router.ports().collect();
        let moderation = match cell.get("moderation").map(String::as_str) {
            None | Some(AS_IS) => None,
            Some(microseconds) => Some(Moderation::set(router.namespace(), &ports, microseconds)?),
        };
        let measured = measure(&router, cell, means);
        let restored = moderation.map_or(Ok(()), Moderation::restore);
        let measured = measured?;
        restored.map(|()| measured)
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let cell = |lines: &str, streams: &str, rps: &str| {
            let mut cell = levels([("lines", lines), ("streams", streams), ("rps", rps)]);
            if !self.cables.is_empty() {
                cell.insert("moderation".to_owned(), AS_IS.to_owned());
            }
            cell
        };
        let mut comparisons = Vec::new();
        for metric in ["forwarded", "loss_free"] {
            let mut beside =
                |cell: Levels, baseline: Levels| comparisons.push(Comparison { metric, cell, baseline });
            for lines in ["two", KERNEL_TRUNK, RXLANE_TRUNK] {
                if lines != "two" {
                    for streams in ["one", "both"] {
                        beside(cell(lines, streams, "off"), cell("two", streams, "off"));
                    }
                }
                beside(cell(lines, "both", "off"), cell(lines, "one", "off"));
                for streams in ["one", "both"] {
                    beside(cell(lines, streams, "on"), cell(lines, streams, "off"));
                }
            }
        }
        if !self.cables.is_empty() {
            for metric in ["forwarded", "interrupts"] {
                for (moderation, _) in MODERATIONS {
                    let baseline = cell("two", "one", "off");
                    let mut this = baseline.clone();
                    this.insert("moderation".to_owned(), moderation.to_owned());
                    comparisons.push(Comparison { metric, cell: this, baseline });
                }
            }
        }
        comparisons
    }

    /// Where the lines could not send enough.
    fn remarks(&self, report: &Report) -> Vec<String> {
        let limited = |cell: &Cell| {
            let loss = &cell.figures.get("loss")?.raw;
            let [measured, without] = [loss.iter().flatten().count(), lossless(loss)];
            let sent = cell.figures.get("sent")?.spread.filter(|_| without > 0)?;
            let (kpps, words) = (sent.median / 1e3, report.words(&cell.levels));
            Some(format!("{kpps:.1} kpps ({words}; {without} of {measured} rounds)"))
        };
        let limited: Vec<String> = report.cells.iter().filter_map(limited).collect();
        if limited.is_empty() {
            return Vec::new();
        }
        vec![format!(
            "Nothing was lost when as many were sent as can be, so that the sender is the limit, and the greatest rate without loss is not \
             known, but at least: {}.",
            limited.join(", ")
        )]
    }
}

/// Rounds in which nothing was lost.
fn lossless(loss: &[Option<f64>]) -> usize {
    loss.iter().flatten().filter(|loss| **loss == 0.0).count()
}

/// Flat out, then by RFC 2544.
fn measure(router: &Router, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
    let ways: &[Way] =
        if level(cell, "streams") == "both" { &[Way::There, Way::Back] } else { &[Way::There] };
    let ports: Vec<&str> = router.ports().collect();
    let before = interrupts::of(&ports);
    let most = trial(router, ways, None, means)?;
    let interrupts = before.zip(interrupts::of(&ports)).map(|(before, after)| after.saturating_sub(before));
    let sent = most.sent as f64 / most.seconds;
    let mut measured =
        vec![("forwarded", most.arrived as f64 / most.seconds), ("sent", sent), ("loss", most.loss())];
    measured
        .extend(interrupts.map(|count| ("interrupts", 1000.0 * count as f64 / most.arrived.max(1) as f64)));
    if !most.passes() {
        let mut passes = |rate| trial(router, ways, Some(rate), means).map(|trial| trial.passes());
        measured.push(("loss_free", search::search(sent, &mut passes)?));
    }
    Ok(measured)
}

/// The moderation of an adapter as it is.
fn as_found(adapter: &str) -> Fact {
    let said = Command::new("ethtool").args(["-c", adapter]).output().map(|output| output.stdout);
    let said = said.map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default();
    let interval = said.lines().find_map(|line| line.strip_prefix("rx-usecs:")).map(str::trim);
    Fact {
        question: format!("rx-usecs of {adapter} as it was"),
        answer: interval.filter(|interval| *interval != "n/a").unwrap_or("not told").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Figures;
    use super::super::{Surroundings, rounds};
    use super::*;

    fn of_cables(count: usize) -> Forward {
        let cable =
            |number: usize| Cable { line: format!("line{number}"), router: format!("router{number}") };
        Forward { flows: 1, cables: (0..count).map(cable).collect() }
    }

    #[test]
    fn every_cell_and_comparison_has_every_factor() {
        for (cables, cells) in [(0, 12), (1, 28), (2, 42)] {
            let scenario = of_cables(cables);
            let factors = scenario.factors();
            let is_whole = |cell: &Levels| {
                cell.len() == factors.len()
                    && factors.iter().all(|factor| {
                        factor.levels.iter().any(|known| cell.get(&factor.name) == Some(&known.name))
                    })
            };
            assert_eq!(scenario.cells().len(), cells);
            assert!(scenario.cells().iter().all(is_whole));
            let metrics = scenario.metrics();
            for comparison in scenario.comparisons() {
                assert!(is_whole(&comparison.cell) && is_whole(&comparison.baseline), "{comparison:?}");
                assert!(metrics.iter().any(|metric| metric.name == comparison.metric), "{comparison:?}");
            }
        }
    }

    #[test]
    fn a_sender_that_is_the_limit_is_told() {
        let scenario = of_cables(0);
        let cell = |streams: &str, loss: [f64; 2]| Cell {
            levels: levels([("lines", "two"), ("streams", streams), ("rps", "off")]),
            figures: [("loss", loss), ("sent", [1000.0; 2])]
                .map(|(name, raw)| (name.to_owned(), Figures::of(raw.map(Some).to_vec())))
                .into(),
            failures: Vec::new(),
        };
        let mut report = rounds::empty(&scenario, Surroundings::default());
        report.cells = vec![cell("one", [0.0, 0.5]), cell("both", [0.5, 0.5])];
        let remarks = scenario.remarks(&report);
        let expected = "but at least: 1.0 kpps (two interfaces, one way, RPS off; 1 of 2 rounds).";
        assert!(remarks.len() == 1 && remarks[0].ends_with(expected), "{remarks:?}");
        report.cells.remove(0);
        assert_eq!(scenario.remarks(&report), Vec::<String>::new());
    }
}
