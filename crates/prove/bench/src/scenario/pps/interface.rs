//! `pps --interface`: datagrams that reach this host on a physical NIC, by its settings.
//!
//! The load comes from another host: requested ([`crate::request`]), or sent by whoever likes. Cells vary one thing, or a few
//! together, and leave everything else as it was found (level `as-found`). A setting that the driver refuses is reported as
//! refused.

use super::super::design::{Comparison, Design, crossed};
use super::super::moderation::USECS;
use super::super::report::{Fact, Factor, LESS, LeftOut, Levels, Metric};
use super::super::{Error, Measured, Scenario, Tools, level};
use super::card::Card;
use super::settings::{FACTORS, FOUND, Settings};
use super::{arrival, placement, receivers, senders};
use crate::machine::Watched;
use crate::request::{self, AskError};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The value of the parameter `from` where load comes by itself.
pub const ANYBODY: &str = "whoever sends";
/// What is varied unless something else is requested: what stands in a group is crossed.
const GROUPS: [&[&str]; 4] = [&["senders", "receivers", "queues"], &["usecs"], &["ring"], &["hash", "table"]];

#[derive(Debug)]
pub struct PpsInterface {
    pub interface: String,
    /// Where load is requested; `None`: it comes by itself.
    pub from: Option<SocketAddr>,
    /// Bytes of payload, and flows, of what is requested.
    pub payload: u16,
    pub flows: u16,
    /// Factors that are varied, those of a group each with each; none: all, in groups of their own.
    pub vary: Vec<Vec<String>>,
    pub journal: PathBuf,
    ready: Option<Ready>,
}

/// What this host has.
#[derive(Debug)]
struct Ready {
    settings: Settings,
    card: Card,
    own: Option<IpAddr>,
}

impl PpsInterface {
    pub fn new(interface: String, from: Option<SocketAddr>, payload: u16, flows: u16) -> PpsInterface {
        let (vary, journal) = (Vec::new(), PathBuf::from(service::StateDir::DEFAULT));
        PpsInterface { interface, from, payload, flows, vary, journal, ready: None }
    }

    fn ready(&self) -> Result<&Ready, Error> {
        self.ready.as_ref().ok_or_else(|| Error::Failed("nothing is prepared".to_owned()))
    }

    /// Groups of factors that are crossed; senders are somebody else's unless load is requested.
    fn groups(&self) -> Vec<Vec<&str>> {
        let own = || GROUPS.iter().map(|group| group.to_vec()).collect();
        let requested = || self.vary.iter().map(|group| group.iter().map(String::as_str).collect()).collect();
        let mut groups: Vec<Vec<&str>> = if self.vary.is_empty() { own() } else { requested() };
        if self.from.is_none() {
            groups.iter_mut().for_each(|group| group.retain(|factor| *factor != "senders"));
        }
        groups
    }

    fn check_vary(&self) -> Result<(), Error> {
        let factors = self.factors();
        let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
        let Some(unknown) = self.vary.iter().flatten().find(|factor| !names.contains(&factor.as_str()))
        else {
            return Ok(());
        };
        let more = if unknown == "senders" { "; senders need --from" } else { "" };
        Err(Error::Wrong(format!("--factor {unknown}: the factors are {}{more}", names.join(", "))))
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
        let settings: [(&str, &[(&str, &str)]); 5] = [
            ("queues", &[("1", "one queue"), ("2", "two queues"), ("4", "four queues")]),
            ("usecs", &USECS),
            ("ring", &[("256", "ring of 256"), ("4096", "ring of 4096")]),
            ("hash", &[("sd", "UDP hashed by addresses"), ("sdfn", "UDP hashed by addresses and ports")]),
            (
                "table",
                &[
                    ("one", "table with one queue"),
                    ("equal", "table with all queues in turn"),
                    ("blocks", "table with a block for each queue"),
                ],
            ),
        ];
        let setting =
            |(name, levels): (&str, &[(&str, &str)])| Factor::new(name, &[&[(FOUND, "")], levels].concat());
        let senders = self.from.map(|_| senders());
        senders.into_iter().chain([receivers()]).chain(settings.map(setting)).collect()
    }

    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = super::metrics();
        let of_nic = [
            Metric::new("missed", "Frames for which the NIC had no room", "packets/s", LESS),
            Metric::new("interrupts", "Interrupts of the NIC", "interrupts/s", None),
            Metric::new("each", "Frames for each interrupt", "frames", None),
            Metric::new("busiest", "Share of the frames that the busiest queue got", "", LESS),
        ];
        let at = metrics.iter().position(|metric| metric.name == "cpu").unwrap_or(metrics.len());
        metrics.splice(at..at, of_nic);
        metrics.extend([
            Metric::of_machine("user", "CPUs that were busy with programs", "CPUs", None),
            Metric::of_machine("system", "CPUs that were busy in the kernel", "CPUs", None),
        ]);
        let queues = arrival::QUEUES.iter().take(placement::queues(&self.interface).max(1));
        metrics.extend(queues.enumerate().map(|(queue, name)| {
            Metric::new(name, &format!("Share of the frames that queue {queue} got"), "", None)
        }));
        metrics
    }
}

fn with(cell: &Levels, factor: &str, level: &str) -> Levels {
    let mut cell = cell.clone();
    cell.insert(factor.to_owned(), level.to_owned());
    cell
}

/// What everything is where it is not varied.
fn base(factors: &[Factor]) -> Levels {
    let first = |factor: &Factor| {
        let level = factor.levels.first().map(|level| level.name.clone());
        (factor.name.clone(), level.unwrap_or_default())
    };
    factors.iter().map(first).collect()
}

fn comparisons(factors: &[Factor]) -> Vec<Comparison> {
    let base = base(factors);
    let mut comparisons = Vec::new();
    let mut compare = |factor: &str, cell: Levels, baseline: &Levels| {
        for metric in metrics_of(factor) {
            comparisons.push(Comparison { metric, cell: cell.clone(), baseline: baseline.clone() });
        }
    };
    for factor in factors {
        for level in factor.levels.iter().skip(1) {
            compare(&factor.name, with(&base, &factor.name, &level.name), &base);
        }
    }
    // A table means something where the hash distinguishes the flows.
    let hashed = with(&base, "hash", "sdfn");
    for level in ["equal", "blocks"] {
        compare("table", with(&hashed, "table", level), &with(&hashed, "table", "one"));
    }
    comparisons
}

/// Metrics by which a factor is worth a verdict.
fn metrics_of(factor: &str) -> impl Iterator<Item = &'static str> {
    let more = match factor {
        "usecs" => Some("each"),
        "queues" | "hash" | "table" => Some("busiest"),
        "ring" => Some("missed"),
        _ => None,
    };
    std::iter::once("received").chain(more)
}

impl Scenario for PpsInterface {
    fn design(&self) -> Design {
        let factors = self.factors();
        let base = base(&factors);
        let mut cells = vec![base.clone()];
        for group in self.groups() {
            for levels in crossed(factors.iter().filter(|factor| group.contains(&factor.name.as_str()))) {
                let cell: Levels = base.clone().into_iter().chain(levels).collect();
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
        }
        Design {
            name: "pps",
            title: "Packets a second from another host, by settings of the network card",
            parameters: self.parameters(),
            metrics: self.metrics(),
            cells,
            comparisons: comparisons(&factors),
            factors,
        }
    }

    fn prepare(&mut self, tools: &Tools<'_>) -> Result<Vec<LeftOut>, Error> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Lacks("changing settings of a NIC requires root".to_owned()));
        }
        self.check_vary()?;
        let watched = Watched::open(&self.interface).map_err(|error| Error::Wrong(error.to_string()))?;
        let own = self.from.map(|from| request::reach(from, tools.stop)).transpose().map_err(no_load)?;
        if let Some(own) = own {
            arrival::check_path(own, &self.interface)?;
        }
        let card = Card::of(&watched.snapshot(), watched.device());
        let settings = Settings::open(&self.interface, &self.journal)?;
        self.ready = Some(Ready { settings, card, own });
        Ok(Vec::new())
    }

    fn facts(&self, cells: &[Levels]) -> Result<Vec<Fact>, Error> {
        let Ready { settings, card, own } = self.ready()?;
        let fact = |question: String, answer: String| Fact { question, answer };
        let mut facts = vec![fact(format!("what {} is", self.interface), card.description())];
        facts.extend(own.map(|own| fact("address to which the load is sent".to_owned(), own.to_string())));
        for factor in FACTORS {
            let now = settings.present(factor);
            let now = now.unwrap_or_else(|| "unknown: the driver does not say".to_owned());
            facts.push(fact(format!("{factor} as found"), now));
        }
        let driver = card.driver.as_deref().unwrap_or("the driver");
        let is_varied = |usecs: &str| cells.iter().any(|cell| level(cell, "usecs") == usecs);
        for (microseconds, _) in USECS.into_iter().filter(|(level, _)| is_varied(level)) {
            let means = microseconds.parse().ok().and_then(|number| card.means(number));
            let means = means.unwrap_or("unknown: no profile of this card says it (rxlane nics)");
            facts.push(fact(format!("rx-usecs {microseconds} to {driver}"), means.to_owned()));
        }
        Ok(facts)
    }

    fn measure(&self, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error> {
        let ready = self.ready()?;
        ready.settings.enter(cell)?;
        let measured = arrival::Arrival {
            interface: &self.interface,
            from: self.from,
            payload: self.payload,
            flows: self.flows,
            senders: super::number(cell, "senders"),
            receivers: super::number(cell, "receivers"),
        }
        .measure(tools);
        ready.settings.leave()?;
        measured
    }
}

pub fn no_load(error: AskError) -> Error {
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
        let cells = scenario(false, &[&["usecs"], &["hash", "table"]]).design().cells;
        // The base is one of each group.
        assert_eq!(cells.len(), 6 + 3 * 4 - 1, "{cells:?}");
        let is_base = |cell: &Levels, factor: &str| cell[factor] == FOUND;
        assert!(cells.iter().all(|cell| is_base(cell, "usecs") || is_base(cell, "hash")), "{cells:?}");
        assert!(cells.iter().all(|cell| !cell.contains_key("senders") && cell["receivers"] == "1"));
        let all = scenario(true, &[]).design();
        assert_eq!(all.cells.len(), 3 * 2 * 4 + 5 + 2 + 11);
        assert!(all.comparisons.len() > 20);
        super::super::super::design::tests::check(&all);
    }

    #[test]
    fn a_factor_that_there_is_not_is_named() {
        let error = scenario(false, &[&["senders"]]).check_vary().expect_err("no senders").to_string();
        assert!(
            error.contains("--factor senders: the factors are receivers, ") && error.contains("--from"),
            "{error}"
        );
        assert!(scenario(true, &[&["senders", "ring"]]).check_vary().is_ok());
    }
}
