//! `forward`: frames of the least size through a router, one way and with a stream against them, over two interfaces and
//! over a VLAN trunk.
//!
//! As fast as the lines send, and the greatest rate at which nothing is lost, searched as RFC 2544 section 26.1 says: a trial
//! at a rate passes when as many frames arrive as were sent. Lines are veth pairs, or physical NICs of this machine that are
//! joined by cables; of those interrupt moderation is varied, too. Where the lines cannot send as much as the router
//! forwards, there is no such rate ([`sender_is_limit`]).

mod interrupts;
mod stall;
mod trial;

use super::design::{Comparison, Design, crossed, parameters};
use super::moderation::{Moderation, USECS};
use super::pair::{self, spread_by_rps};
use super::report::{Cell, Fact, Factor, LESS, LeftOut, Levels, MORE, Metric, Report};
use super::router::{Lines, PAYLOAD, Router, Way};
use super::{Error, Measured, Scenario, Tools, level};
use crate::pin;
use std::process::Command;
use trial::{search, trial};

pub use super::router::Cable;

/// As the NICs were found.
const AS_IS: &str = "as-is";
const KERNEL_TRUNK: &str = "trunk-8021q";
const RXLANE_TRUNK: &str = "trunk-rxlane";
const TRUNKS: [&str; 2] = [KERNEL_TRUNK, RXLANE_TRUNK];

#[derive(Debug)]
pub struct Forward {
    pub flows: u16,
    /// NICs that are joined: none, one cable for the trunk alone, or two.
    pub cables: Vec<Cable>,
}

impl Forward {
    fn has_cables(&self) -> bool {
        !self.cables.is_empty()
    }

    fn factors(&self) -> Vec<Factor> {
        let lines = [
            ("two", "two interfaces"),
            (KERNEL_TRUNK, "a VLAN trunk by the kernel's 8021q"),
            (RXLANE_TRUNK, "a VLAN trunk by rxlane link"),
        ];
        let mut factors = vec![
            Factor::new("lines", &lines),
            Factor::new("streams", &[("one", "one way"), ("both", "both ways")]),
            Factor::new("rps", &[("off", "RPS off"), ("on", "RPS on")]),
        ];
        if self.has_cables() {
            factors
                .push(Factor::new("moderation", &[&[(AS_IS, "moderation as it was")], &USECS[..]].concat()));
        }
        factors
    }

    fn metrics(&self) -> Vec<Metric> {
        let pps = "packets/s";
        let mut metrics = vec![
            Metric::new("forwarded", "Packets forwarded when as many are sent as can be", pps, MORE),
            Metric::new("sent", "Packets sent when as many are sent as can be", pps, None),
            Metric::new("loss", "Share lost of those when as many are sent as can be", "", LESS),
            Metric::new("loss_free", "Greatest rate without loss (RFC 2544 section 26.1)", pps, MORE),
        ];
        if self.has_cables() {
            let title = "Interrupts of the router's NICs for each thousand packets that it forwards then";
            metrics.push(Metric::new("interrupts", title, "per 1000 packets", LESS));
        }
        metrics
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let as_is = if self.has_cables() { "moderation=as-is" } else { "" };
        let mut comparisons = Vec::new();
        for metric in ["forwarded", "loss_free"] {
            let mut compare = |cell: &str, baseline: &str, both: &str| {
                comparisons.push(Comparison::new(metric, cell, baseline, &format!("{both} {as_is}")));
            };
            for lines in ["two", KERNEL_TRUNK, RXLANE_TRUNK] {
                let this = format!("lines={lines}");
                for streams in ["streams=one", "streams=both"] {
                    if lines != "two" {
                        compare(&this, "lines=two", &format!("{streams} rps=off"));
                    }
                    compare("rps=on", "rps=off", &format!("{this} {streams}"));
                }
                compare("streams=both", "streams=one", &format!("{this} rps=off"));
            }
        }
        if self.has_cables() {
            for metric in ["forwarded", "interrupts"] {
                for (moderation, _) in USECS {
                    let this = format!("moderation={moderation}");
                    comparisons.push(Comparison::new(metric, &this, as_is, "lines=two streams=one rps=off"));
                }
            }
        }
        // With one cable there is a trunk alone.
        let is_possible = |levels: &Levels| self.cables.len() != 1 || level(levels, "lines") != "two";
        comparisons.retain(|comparison| is_possible(&comparison.cell) && is_possible(&comparison.baseline));
        comparisons
    }
}

impl Scenario for Forward {
    fn design(&self) -> Design {
        let mut parameters =
            parameters([("flows", self.flows.to_string()), ("payload", PAYLOAD.to_string())]);
        if self.has_cables() {
            let cables = self.cables.iter().map(|cable| format!("{}:{}", cable.line, cable.router));
            parameters.insert("cables".to_owned(), cables.collect::<Vec<_>>().join(","));
        }
        let factors = self.factors();
        let mut cells = crossed(&factors);
        cells.retain(|cell| {
            let is_varied = !["", AS_IS].contains(&level(cell, "moderation"));
            let has_line = self.cables.len() != 1 || TRUNKS.contains(&level(cell, "lines"));
            has_line && !(is_varied && level(cell, "rps") == "on")
        });
        Design {
            name: "forward",
            title: "Small packets through a router",
            parameters,
            factors,
            metrics: self.metrics(),
            cells,
            comparisons: self.comparisons(),
        }
    }

    fn prepare(&mut self, _tools: &Tools<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(if self.has_cables() { &["sh", "ethtool"] } else { &["sh"] })?;
        self.cables.iter().try_for_each(Cable::check)?;
        pair::without_8021q("lines=trunk-8021q")
    }

    fn facts(&self, _cells: &[Levels]) -> Result<Vec<Fact>, Error> {
        Ok(self.cables.iter().map(|cable| as_found(&cable.router)).collect())
    }

    fn measure(&self, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error> {
        let lines = match level(cell, "lines") {
            KERNEL_TRUNK => Lines::KernelTrunk,
            RXLANE_TRUNK => Lines::RxlaneTrunk,
            _ => Lines::Two,
        };
        let router = Router::new(lines, &self.cables, self.flows, tools)?;
        let ports: Vec<&str> = router.ports().collect();
        if level(cell, "rps") == "on" {
            for interface in &ports {
                spread_by_rps(router.namespace(), interface, &pin::allowed())?;
            }
        }
        let moderation = match level(cell, "moderation") {
            "" | AS_IS => None,
            microseconds => Some(Moderation::set(router.namespace(), &ports, microseconds)?),
        };
        let measured = measure(&router, cell, tools);
        let restored = moderation.map_or(Ok(()), Moderation::restore);
        let measured = measured?;
        restored.map(|()| measured)
    }
}

/// As fast as it goes, then by RFC 2544.
fn measure(router: &Router, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error> {
    let ways: &[Way] =
        if level(cell, "streams") == "both" { &[Way::There, Way::Back] } else { &[Way::There] };
    let ports: Vec<&str> = router.ports().collect();
    let before = interrupts::of(&ports);
    let most = trial(router, ways, None, tools)?;
    let interrupts = before.zip(interrupts::of(&ports)).map(|(before, after)| after.saturating_sub(before));
    let sent = most.sent as f64 / most.seconds;
    let mut measured =
        vec![("forwarded", most.arrived as f64 / most.seconds), ("sent", sent), ("loss", most.loss())];
    measured
        .extend(interrupts.map(|count| ("interrupts", 1000.0 * count as f64 / most.arrived.max(1) as f64)));
    if !most.passes() {
        let mut passes = |rate| trial(router, ways, Some(rate), tools).map(|trial| trial.passes());
        measured.push(("loss_free", search(sent, &mut passes)?));
    }
    Ok(measured)
}

fn as_found(nic: &str) -> Fact {
    let output = Command::new("ethtool").args(["-c", nic]).output().map(|output| output.stdout);
    let output = output.map(|output| String::from_utf8_lossy(&output).into_owned()).unwrap_or_default();
    let interval = output.lines().find_map(|line| line.strip_prefix("rx-usecs:")).map(str::trim);
    let answer = interval.filter(|interval| *interval != "n/a").unwrap_or("unknown to the driver");
    Fact { question: format!("rx-usecs of {nic} as it was"), answer: answer.to_owned() }
}

/// A cell of which the sender was the limit.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderLimited<'r> {
    pub levels: &'r Levels,
    /// Packets a second that were sent, and not lost: the median.
    pub sent: f64,
    /// Rounds in which nothing was lost, and all.
    pub lossless: usize,
    /// All of which there is a figure.
    pub rounds: usize,
}

/// Cells in which nothing was lost when as many were sent as can be: the greatest rate without loss is higher than the
/// sender's, and unknown.
pub fn sender_is_limit(report: &Report) -> Vec<SenderLimited<'_>> {
    let limited = |cell: &'_ Cell| {
        let loss: Vec<f64> = cell.figures.get("loss")?.raw.iter().copied().flatten().collect();
        let lossless = loss.iter().filter(|loss| **loss == 0.0).count();
        let sent = cell.figures.get("sent")?.spread.filter(|_| lossless > 0)?.median;
        Some((sent, lossless, loss.len()))
    };
    let all = report.cells.iter().filter_map(|cell| Some((&cell.levels, limited(cell)?)));
    all.map(|(levels, (sent, lossless, rounds))| SenderLimited { levels, sent, lossless, rounds }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::design::levels;
    use super::super::report::Figures;
    use super::*;

    #[test]
    fn the_design_is_whole_with_and_without_cables() {
        for (cables, cells) in [(0, 12), (1, 28), (2, 42)] {
            let cable = |n: usize| Cable { line: format!("line{n}"), router: format!("router{n}") };
            let design = Forward { flows: 1, cables: (0..cables).map(cable).collect() }.design();
            super::super::design::tests::check(&design);
            assert_eq!(design.cells.len(), cells);
        }
    }

    #[test]
    fn a_sender_that_is_the_limit_is_found() {
        let cell = |streams: &str, loss: [f64; 2]| Cell {
            levels: levels(streams),
            figures: [("loss", loss), ("sent", [1000.0; 2])]
                .map(|(name, raw)| (name.to_owned(), Figures::of(raw.map(Some).to_vec())))
                .into(),
            failures: Vec::new(),
        };
        let cells = vec![cell("streams=one", [0.0, 0.5]), cell("streams=both", [0.5, 0.5])];
        let report = Report { cells, ..Report::default() };
        let limited = SenderLimited { levels: &levels("streams=one"), sent: 1000.0, lossless: 1, rounds: 2 };
        assert_eq!(sender_is_limit(&report), [limited]);
    }
}
