//! `pps --interface`: datagrams that reach this host by a real network card, by its settings.
//!
//! The load comes from another host: asked for ([`crate::request`]), or sent by whoever likes. Cells vary one thing, or a few
//! together, and leave everything else as it was found (level `as-found`). A setting that the driver refuses is told as refused.

use super::super::report::{Fact, Factor, LeftOut, Levels, Metric};
use super::super::verdict::Comparison;
use super::super::{Error, Means, Measured, Scenario, level};
use super::card::Card;
use super::settings::{FACTORS, FOUND, Settings};
use super::{arrival, placement};
use crate::machine::Watched;
use crate::request::{self, AskError};
use crate::udp::PORT;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Receive queues of which the share is a metric of its own.
const MOST_QUEUES: usize = 16;
const USECS: [&str; 5] = ["0", "3", "10", "50", "100"];
/// The value of the parameter `from` where load comes by itself.
pub const ANYBODY: &str = "whoever sends";
/// What is varied unless something else is said: what stands in a group is crossed.
const GROUPS: [&[&str]; 4] = [&["senders", "receivers", "queues"], &["usecs"], &["ring"], &["hash", "table"]];

/// The scenario.
#[derive(Debug)]
pub struct PpsInterface {
    /// The card's interface.
    pub interface: String,
    /// Where load is asked for; `None`: it comes by itself.
    pub from: Option<SocketAddr>,
    /// Octets of payload, and flows, of what is asked for.
    pub payload: u16,
    /// The same.
    pub flows: u16,
    /// Factors that are varied, those of a group each with each; none: all, in groups of their own.
    pub vary: Vec<Vec<String>>,
    /// Folder of the journal.
    pub journal: PathBuf,
    /// What was found, once it was looked at.
    ready: Option<Ready>,
}

/// What was found on this host.
#[derive(Debug)]
struct Ready {
    settings: Settings,
    card: Card,
    own: Option<IpAddr>,
}

impl PpsInterface {
    /// Of an interface.
    pub fn new(interface: String, from: Option<SocketAddr>, payload: u16, flows: u16) -> PpsInterface {
        let (vary, journal) = (Vec::new(), PathBuf::from(service::StateDir::DEFAULT));
        PpsInterface { interface, from, payload, flows, vary, journal, ready: None }
    }

    fn ready(&self) -> Result<&Ready, Error> {
        self.ready.as_ref().ok_or_else(|| Error::Failed("nothing is prepared".to_owned()))
    }

    /// Groups of factors that are crossed; senders are somebody else's unless load is asked for.
    fn groups(&self) -> Vec<Vec<&str>> {
        let asked = self.vary.iter().map(|group| group.iter().map(String::as_str).collect()).collect();
        let own = || GROUPS.iter().map(|group| group.to_vec()).collect();
        let mut groups: Vec<Vec<&str>> = if self.vary.is_empty() { own() } else { asked };
        if self.from.is_none() {
            groups.iter_mut().for_each(|group| group.retain(|factor| *factor != "senders"));
        }
        groups
    }

    /// What everything is where it is not varied.
    fn base(&self) -> Levels {
        let first = |factor: &Factor| {
            let level = factor.levels.first().map(|level| level.name.clone());
            (factor.name.clone(), level.unwrap_or_default())
        };
        self.factors().iter().map(first).collect()
    }

    fn facts_of(&self, ready: &Ready, cells: &[Levels]) -> Vec<Fact> {
        let fact = |question: String, answer: String| Fact { question, answer };
        let mut facts = vec![fact(format!("what {} is", self.interface), ready.card.shown())];
        if let Some(own) = ready.own {
            facts.push(fact("address to which the load is sent".to_owned(), own.to_string()));
        }
        let unknown = || "unknown: the driver does not tell".to_owned();
        for factor in FACTORS {
            let now = ready.settings.present(factor).unwrap_or_else(unknown);
            facts.push(fact(format!("{factor} as found"), now));
        }
        let driver = ready.card.driver.as_deref().unwrap_or("the driver");
        let is_varied = |usecs: &str| cells.iter().any(|cell| level(cell, "usecs") == usecs);
        for microseconds in USECS.into_iter().filter(|level| is_varied(level)) {
            let means = microseconds.parse().ok().and_then(|number| ready.card.means(number));
            let means = means.unwrap_or("unknown: no profile of this card says it (rxlane nics)");
            facts.push(fact(format!("rx-usecs {microseconds} to {driver}"), means.to_owned()));
        }
        facts
    }
}

impl Scenario for PpsInterface {
    fn name(&self) -> &'static str {
        "pps"
    }

    fn title(&self) -> &'static str {
        "Packets a second from another host, by settings of the network card"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let from = self.from.map_or_else(|| ANYBODY.to_owned(), |from| from.to_string());
        let mut parameters = BTreeMap::from([("interface", self.interface.clone()), ("from", from)]);
        if self.from.is_some() {
            parameters.insert("payload", self.payload.to_string());
            parameters.insert("flows", self.flows.to_string());
        }
        if !self.vary.is_empty() {
            let groups: Vec<String> = self.vary.iter().map(|group| group.join(",")).collect();
            parameters.insert("vary", groups.join(" "));
        }
        parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn factors(&self) -> Vec<Factor> {
        let found = (FOUND, "");
        let mut factors = Vec::new();
        if self.from.is_some() {
            let senders = [("1", "one sender"), ("2", "two senders"), ("4", "four senders")];
            factors.push(Factor::new("senders", &senders));
        }
        factors.extend([
            Factor::new("receivers", &[("1", "one receiver"), ("2", "two receivers")]),
            Factor::new("queues", &[found, ("1", "one queue"), ("2", "two queues"), ("4", "four queues")]),
            Factor::new(
                "usecs",
                &[
                    found,
                    ("0", "rx-usecs 0"),
                    ("3", "rx-usecs 3"),
                    ("10", "rx-usecs 10"),
                    ("50", "rx-usecs 50"),
                    ("100", "rx-usecs 100"),
                ],
            ),
            Factor::new("ring", &[found, ("256", "ring of 256"), ("4096", "ring of 4096")]),
            Factor::new(
                "hash",
                &[found, ("sd", "UDP hashed by addresses"), ("sdfn", "UDP hashed by addresses and ports")],
            ),
            Factor::new(
                "table",
                &[
                    found,
                    ("one", "table with one queue"),
                    ("equal", "table with all queues in turn"),
                    ("blocks", "table with a block for each queue"),
                ],
            ),
        ]);
        factors
    }

    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = vec![
            Metric::new("received", "Datagrams that programs received", "packets/s", Some(true)),
            Metric::new("sent", "Datagrams that were sent", "packets/s", None),
            Metric::new("loss", "Share of the datagrams that did not arrive", "", Some(false)),
            Metric::new("missed", "Frames for which the card had no room", "packets/s", Some(false)),
            Metric::new("interrupts", "Interrupts of the card", "interrupts/s", None),
            Metric::new("each", "Frames for each interrupt", "frames", None),
            Metric::new("busiest", "Share of the frames that the busiest queue got", "", Some(false)),
            Metric::of_machine("cpu", "CPUs that were busy", "CPUs", None),
            Metric::of_machine("user", "CPUs that were busy with programs", "CPUs", None),
            Metric::of_machine("system", "CPUs that were busy in the kernel", "CPUs", None),
            Metric::of_machine("softirq", "CPUs that were busy with soft interrupts", "CPUs", None),
        ];
        let queues = arrival::QUEUES.iter().take(MOST_QUEUES.min(placement::queues(&self.interface).max(1)));
        metrics.extend(queues.enumerate().map(|(queue, name)| {
            Metric::new(name, &format!("Share of the frames that queue {queue} got"), "", None)
        }));
        metrics
    }

    fn cells(&self) -> Vec<Levels> {
        let (base, factors) = (self.base(), self.factors());
        let mut cells = vec![base.clone()];
        for group in self.groups() {
            let mut crossed = vec![base.clone()];
            for factor in factors.iter().filter(|factor| group.contains(&factor.name.as_str())) {
                let with = |cell: &Levels| -> Vec<Levels> {
                    let set = |level: &super::super::report::Level| {
                        let mut cell = cell.clone();
                        cell.insert(factor.name.clone(), level.name.clone());
                        cell
                    };
                    factor.levels.iter().map(set).collect()
                };
                crossed = crossed.iter().flat_map(with).collect();
            }
            for cell in crossed {
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
        }
        cells
    }

    fn prepare(&mut self, means: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Lacks("settings of a network card take root".to_owned()));
        }
        self.check_vary()?;
        let watched = Watched::open(&self.interface).map_err(|error| Error::Wrong(error.to_string()))?;
        let own = self.from.map(|from| request::reach(from, means.stop)).transpose().map_err(unasked)?;
        if let Some(own) = own {
            arrival::comes_by(own, &self.interface)?;
        }
        let card = Card::of(&watched.snapshot(), watched.device());
        let settings = Settings::open(&self.interface, &self.journal)?;
        self.ready = Some(Ready { settings, card, own });
        Ok(Vec::new())
    }

    fn wants(&self) -> Option<String> {
        let interface = &self.interface;
        self.from.is_none().then(|| {
            format!(
                "what comes to UDP port {PORT} of {interface} is measured: on other hosts, `rxlane bench send ADDRESS-OF-THIS-HOST` until this ends"
            )
        })
    }

    fn facts(&self, cells: &[Levels], _means: &Means<'_>) -> Result<Vec<Fact>, Error> {
        Ok(self.facts_of(self.ready()?, cells))
    }

    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
        let ready = self.ready()?;
        ready.settings.enter(cell)?;
        let measured = arrival::Arrival {
            interface: &self.interface,
            from: self.from,
            payload: self.payload,
            flows: self.flows,
            senders: level(cell, "senders").parse().unwrap_or(1),
            receivers: level(cell, "receivers").parse().unwrap_or(1),
        }
        .measure(means);
        ready.settings.leave()?;
        measured
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let base = self.base();
        let with = |cell: &Levels, factor: &str, level: &str| {
            let mut cell = cell.clone();
            cell.insert(factor.to_owned(), level.to_owned());
            cell
        };
        let mut comparisons = Vec::new();
        for factor in self.factors() {
            for level in factor.levels.iter().skip(1) {
                let cell = with(&base, &factor.name, &level.name);
                for metric in told_of(&factor.name) {
                    comparisons.push(Comparison { metric, cell: cell.clone(), baseline: base.clone() });
                }
            }
        }
        // A table means something where the hash tells the flows apart.
        let hashed = with(&base, "hash", "sdfn");
        for level in ["equal", "blocks"] {
            for metric in told_of("table") {
                let [cell, baseline] = [level, "one"].map(|level| with(&hashed, "table", level));
                comparisons.push(Comparison { metric, cell, baseline });
            }
        }
        comparisons
    }
}

/// Metrics that a factor is worth a sentence about.
fn told_of(factor: &str) -> impl Iterator<Item = &'static str> {
    let more = match factor {
        "usecs" => Some("each"),
        "queues" | "hash" | "table" => Some("busiest"),
        "ring" => Some("missed"),
        _ => None,
    };
    std::iter::once("received").chain(more)
}

impl PpsInterface {
    fn check_vary(&self) -> Result<(), Error> {
        let factors = self.factors();
        let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
        let is_none = |factor: &&String| !names.contains(&factor.as_str());
        if let Some(factor) = self.vary.iter().flatten().find(is_none) {
            let more = if factor == "senders" { "; senders take --from" } else { "" };
            return Err(Error::Wrong(format!("--vary {factor}: the factors are {}{more}", names.join(", "))));
        }
        Ok(())
    }
}

/// No load can be had.
pub fn unasked(error: AskError) -> Error {
    match error {
        AskError::Interrupted => Error::Interrupted,
        AskError::Nobody { .. } => Error::Lacks(error.to_string()),
        AskError::Refused { .. } => Error::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(from: bool, vary: &[&[&str]]) -> PpsInterface {
        let from = from.then(|| "192.0.2.1:7184".parse().expect("an address"));
        let vary = vary.iter().map(|group| group.iter().map(|name| (*name).to_owned()).collect()).collect();
        PpsInterface { vary, ..PpsInterface::new("nothing0".to_owned(), from, 32, 16) }
    }

    #[test]
    fn what_stands_in_a_group_is_crossed_and_the_rest_is_as_found() {
        let cells = scenario(false, &[&["usecs"], &["hash", "table"]]).cells();
        // The base is one of each group.
        assert_eq!(cells.len(), 6 + 3 * 4 - 1, "{cells:?}");
        let is_base = |cell: &Levels, factor: &str| cell[factor] == FOUND;
        assert!(cells.iter().all(|cell| is_base(cell, "usecs") || is_base(cell, "hash")), "{cells:?}");
        assert!(cells.iter().all(|cell| !cell.contains_key("senders") && cell["receivers"] == "1"));
        let all = scenario(true, &[]).cells();
        assert_eq!(all.len(), 3 * 2 * 4 + 5 + 2 + 11, "{all:?}");
        let names: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn every_sentence_is_about_cells_that_there_are() {
        let scenario = scenario(true, &[]);
        let (cells, comparisons) = (scenario.cells(), scenario.comparisons());
        for comparison in &comparisons {
            assert!(
                cells.contains(&comparison.cell) && cells.contains(&comparison.baseline),
                "{comparison:?}"
            );
        }
        assert!(comparisons.len() > 20);
    }

    #[test]
    fn a_factor_that_there_is_not_is_named() {
        let error = scenario(false, &[&["senders"]]).check_vary().expect_err("no senders").to_string();
        assert!(
            error.contains("--vary senders: the factors are receivers, ") && error.contains("--from"),
            "{error}"
        );
        assert!(scenario(true, &[&["senders", "ring"]]).check_vary().is_ok());
    }
}
