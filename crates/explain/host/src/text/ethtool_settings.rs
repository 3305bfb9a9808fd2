//! `ethtool eth0`: the negotiated link.
//!
//! Lists of link modes go over several lines; they are believed once the line after them was read, since the
//! fastest mode stands last.

use super::line::one_of_two;
use super::{Line, Outcome, Section, Tool};
use crate::{Fact, Link, Observed, Quote, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "ethtool",
    command: |command| command.program == "ethtool" && command.option.is_none(),
    heading: |line| line.starts_with(HEADING) && line.ends_with(':'),
    open: |context| Box::new(Settings { interface: context.interface().to_owned(), modes: None }),
};

const HEADING: &str = "Settings for ";

/// Names of lines that are not read, by their beginnings, for pastes that lost the indentation.
const OTHERS: [&str; 16] = [
    "Supported ",
    "Supports ",
    "Advertised ",
    "Link partner ",
    "Lanes",
    "Port",
    "PHYAD",
    "Transceiver",
    "Auto-negotiation",
    "MDI-X",
    "Wake-on",
    "SecureOn password",
    "Current message level",
    "master-slave",
    "SQI",
    "No data available",
];

struct Settings {
    interface: String,
    modes: Option<Modes>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Supported,
    Partner,
}

struct Modes {
    list: List,
    fastest: Option<u32>,
    quote: Quote,
}

impl Section for Settings {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if let Some(interface) = text.strip_prefix(HEADING) {
            self.modes = None;
            self.interface = interface.trim_end_matches(':').to_owned();
            return Outcome::Taken;
        }
        if text.is_empty() {
            return Outcome::Skipped;
        }
        let Some((name, value)) = text.split_once(':') else { return self.more_modes(text) };
        let is_indented = line.text.starts_with([' ', '\t']);
        let is_known = matches!(name, "Speed" | "Duplex" | "Link detected")
            || OTHERS.iter().any(|other| name.starts_with(other));
        if !is_known {
            return if is_indented { Outcome::Skipped } else { Outcome::Over };
        }
        self.believe_modes(snapshot);
        match name {
            "Supported link modes" => self.open_modes(List::Supported, value, line),
            "Link partner advertised link modes" => self.open_modes(List::Partner, value, line),
            "Speed" | "Duplex" | "Link detected" => {
                let quote = line.quote();
                if let Some(interface) = snapshot.interface_mut(&self.interface, &quote) {
                    note(&mut interface.link, name, value.trim(), &quote);
                }
            }
            _ => {}
        }
        Outcome::Taken
    }
}

impl Settings {
    fn open_modes(&mut self, list: List, value: &str, line: &Line<'_>) {
        self.modes = Some(Modes { list, fastest: fastest(value), quote: line.quote() });
    }

    /// A line of modes alone.
    fn more_modes(&mut self, text: &str) -> Outcome {
        if !text.split_whitespace().all(|word| mode(word).is_some()) {
            return if OTHERS.contains(&text) { Outcome::Taken } else { Outcome::Over };
        }
        if let Some(modes) = &mut self.modes {
            modes.fastest = modes.fastest.max(fastest(text));
        }
        Outcome::Taken
    }

    fn believe_modes(&mut self, snapshot: &mut Snapshot) {
        let Some(Modes { list, fastest: Some(fastest), quote }) = self.modes.take() else { return };
        let Some(interface) = snapshot.interface_mut(&self.interface, &quote) else { return };
        let fact = Some(Fact::new(fastest, quote));
        match list {
            List::Supported => interface.link.supported = fact,
            List::Partner => interface.link.partner = fact,
        }
    }
}

fn note(link: &mut Link, name: &str, value: &str, quote: &Quote) {
    match (name, value.split(' ').next().unwrap_or_default()) {
        ("Speed", speed) => {
            // `Unknown!` where there is no carrier; old versions print the -1 of the kernel, too.
            let speed = speed.strip_suffix("Mb/s").and_then(|speed| speed.parse().ok());
            let speed = speed.filter(|speed| ![0, 65535, u32::MAX].contains(speed));
            if speed.is_none() {
                link.no_speed.get_or_insert_with(|| quote.clone());
            }
            Observed::note(&mut link.speed, speed, quote);
        }
        ("Duplex", duplex) => {
            Observed::note(&mut link.full_duplex, one_of_two(duplex, "Full", "Half"), quote)
        }
        ("Link detected", word) => Observed::note(&mut link.up, one_of_two(word, "yes", "no"), quote),
        _ => {}
    }
}

fn fastest(modes: &str) -> Option<u32> {
    modes.split_whitespace().filter_map(mode).max()
}

/// Mbit/s of `1000baseT/Full`.
fn mode(word: &str) -> Option<u32> {
    let (speed, medium) = word.split_once("base")?;
    if medium.is_empty() {
        return None;
    }
    speed.parse().ok()
}
