//! `ethtool -g`, `-l`, `-c`, `-k` and `-i`: a heading that names the interface, and lines `name: value` below it.
//!
//! `-g` (rings) and `-l` (channels) have two blocks, "Pre-set maximums" and "Current hardware settings"; a driver that
//! does not report a number prints `n/a` (`-l` before 5.x: 0). `-k` indents the features of a group; a value may be
//! `off [fixed]` or `on [requested off]`. `-i` has no heading: it is about the interface that a command named last, if
//! that has no other driver.

use super::line::{is_word_of, one_of_two};
use super::{Context, Line, Outcome, Section, Tool};
use crate::{Fact, Feature, Interface, Kind, Limited, Observed, Quote, Snapshot};
use std::sync::Arc;

/// ethtool with this option, whose output has one of these headings and lines that the function reads.
macro_rules! with_heading {
    ($option:literal, $headings:expr, $pair:ident) => {
        Tool {
            name: concat!("ethtool ", $option),
            command: |command| command.is("ethtool", $option),
            heading: |line| has_heading(line, &$headings),
            open: |context| Output::open(context, &$headings, $pair),
        }
    };
}

pub(super) static RINGS: Tool = with_heading!("-g", ["Ring parameters for "], ring);
pub(super) static CHANNELS: Tool = with_heading!("-l", ["Channel parameters for "], channel);
pub(super) static COALESCE: Tool = with_heading!("-c", ["Coalesce parameters for "], coalesce);
pub(super) static FEATURES: Tool = with_heading!("-k", FEATURES_FOR, feature);

pub(super) static DRIVER: Tool = Tool {
    name: "ethtool -i",
    command: |command| command.is("ethtool", "-i"),
    heading: |line| line.strip_prefix("driver: ").is_some_and(is_driver),
    open: |context| Box::new(Driver { context: context.clone(), driver: None, bus: None }),
};

/// Since ethtool 3.x, and before.
const FEATURES_FOR: [&str; 2] = ["Features for ", "Offload parameters for "];

fn has_heading(line: &str, headings: &[&str]) -> bool {
    headings.iter().any(|heading| line.starts_with(heading)) && line.ends_with(':')
}

/// Reads a line `name: value`.
type Pair = fn(&Output, &str, &str, &Line<'_>, &mut Snapshot) -> Outcome;

/// The output of one of these commands, while it is being read.
struct Output {
    headings: &'static [&'static str],
    pair: Pair,
    interface: String,
    block: Block,
}

#[derive(Clone, Copy)]
enum Block {
    /// What came before was cut off: which block it is, is unknown.
    Unknown,
    Most,
    Current,
}

impl Output {
    fn open(context: &Context, headings: &'static [&'static str], pair: Pair) -> Box<dyn Section> {
        Box::new(Output { headings, pair, interface: context.interface().to_owned(), block: Block::Unknown })
    }

    /// Notes a number of the block that is open, at a place of the interface.
    fn limited(
        &self,
        value: &str,
        line: &Line<'_>,
        snapshot: &mut Snapshot,
        place: impl FnOnce(&mut Interface) -> Option<&mut Limited>,
    ) -> Outcome {
        let Ok(number) = value.parse::<u32>() else { return Outcome::Skipped };
        let fact = line.fact(number);
        if let Some(kind) = snapshot.interface_mut(&self.interface, &fact.quote).and_then(place) {
            match self.block {
                Block::Most => kind.most = Some(fact),
                Block::Current => Observed::note(&mut kind.current, number, &fact.quote),
                Block::Unknown => {}
            }
        }
        Outcome::Taken
    }
}

impl Section for Output {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if let Some(interface) = self.headings.iter().find_map(|heading| text.strip_prefix(heading)) {
            self.interface = interface.trim_end_matches(':').to_owned();
            self.block = Block::Unknown;
            return Outcome::Taken;
        }
        match text {
            "" => return Outcome::Skipped,
            "Pre-set maximums:" => self.block = Block::Most,
            "Current hardware settings:" => self.block = Block::Current,
            _ => {
                let Some((name, value)) = text.split_once(':') else { return Outcome::Over };
                return (self.pair)(self, name, value.trim(), line, snapshot);
            }
        }
        Outcome::Taken
    }
}

fn ring(output: &Output, name: &str, value: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    if !["RX", "TX", "CQE"].iter().any(|kind| name.starts_with(kind)) {
        return Outcome::Over;
    }
    output.limited(value, line, snapshot, |interface| (name == "RX").then_some(&mut interface.rings.rx))
}

fn channel(output: &Output, name: &str, value: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    if !matches!(name, "RX" | "TX" | "Other" | "Combined") {
        return Outcome::Over;
    }
    output.limited(value, line, snapshot, |interface| match name {
        "RX" => Some(&mut interface.channels.rx),
        "Combined" => Some(&mut interface.channels.combined),
        _ => None,
    })
}

/// Numbers of one interface that are kept; ethtool has some thirty.
const MOST_NUMBERS: usize = 64;

fn coalesce(output: &Output, name: &str, value: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    match name {
        // `off  TX: off`
        "Adaptive RX" => {
            let word = value.split_whitespace().next().unwrap_or_default();
            let Some(is_on) = one_of_two(word, "on", "off") else { return Outcome::Skipped };
            let quote = line.quote();
            if let Some(interface) = snapshot.interface_mut(&output.interface, &quote) {
                Observed::note(&mut interface.adaptive_rx, is_on, &quote);
            }
            return Outcome::Taken;
        }
        "CQE mode RX" => return Outcome::Taken,
        _ => {}
    }
    // ethtool 6.1, netlink/coalesce.c.
    let beginnings = ["rx-", "tx-", "stats-block-usecs", "sample-interval", "pkt-rate-"];
    if !beginnings.iter().any(|known| name.starts_with(known)) {
        return Outcome::Over;
    }
    let Ok(number) = value.parse::<u64>() else { return Outcome::Skipped };
    let fact = line.fact(number);
    let Some(interface) = snapshot.interface_mut(&output.interface, &fact.quote) else {
        return Outcome::Taken;
    };
    let is_kept = Observed::note_at(&mut interface.coalesce, name, fact, MOST_NUMBERS);
    snapshot.omitted += u64::from(!is_kept);
    Outcome::Taken
}

/// Features of one interface that are kept; Linux has 64.
const MOST_FEATURES: usize = 128;

fn feature(output: &Output, name: &str, value: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let Some(feature) = feature_state(value).filter(|_| is_feature(name)) else { return Outcome::Over };
    let fact = line.fact(feature);
    let Some(interface) = snapshot.interface_mut(&output.interface, &fact.quote) else {
        return Outcome::Taken;
    };
    // ethtool before 2.6.38 wrote the names with blanks (`tcp segmentation offload`).
    let is_kept = Observed::note_at(&mut interface.features, &name.replace(' ', "-"), fact, MOST_FEATURES);
    snapshot.omitted += u64::from(!is_kept);
    Outcome::Taken
}

fn is_feature(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b' '))
}

fn feature_state(value: &str) -> Option<Feature> {
    let (on, remark) = value.split_once(' ').unwrap_or((value, ""));
    let on = one_of_two(on, "on", "off")?;
    let fixed = match remark.trim() {
        "[fixed]" => true,
        "" | "[requested on]" | "[requested off]" | "[not requested]" => false,
        _ => return None,
    };
    Some(Feature { on, fixed })
}

/// `ETHTOOL_GDRVINFO` as ethtool prints it.
const DRIVER_NAMES: &str = "version firmware-version expansion-rom-version supports-statistics supports-test \
                            supports-eeprom-access supports-register-dump supports-priv-flags bus-info driver";

/// Drivers of interfaces that stand on no device, which call themselves with blanks.
const WITH_BLANKS: [&str; 2] = ["802.1Q VLAN Support", "Ethernet Channel Bonding Driver"];

/// The output of `ethtool -i`, while it is being read.
struct Driver {
    context: Context,
    driver: Option<Fact<String>>,
    bus: Option<Fact<String>>,
}

impl Section for Driver {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if text.is_empty() {
            return Outcome::Skipped;
        }
        let Some((name, value)) = text.split_once(':').filter(|(name, _)| is_word_of(DRIVER_NAMES, name))
        else {
            return Outcome::Over;
        };
        let value = value.trim();
        if name == "driver" {
            // The output of another interface, whose name no prompt says.
            self.end(snapshot);
        }
        if !value.is_empty() && value != "N/A" {
            match name {
                "driver" => self.driver = Some(line.fact(value.to_owned())),
                "bus-info" => self.bus = Some(line.fact(value.to_owned())),
                _ => {}
            }
        }
        Outcome::Taken
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        let (driver, bus) = (self.driver.take(), self.bus.take());
        let Some(seen) = driver.as_ref().or(bus.as_ref()).map(|fact| fact.quote.clone()) else { return };
        let is_other = |known: &Interface| {
            differ(&known.name, &known.driver, &driver) || differ(&known.name, &known.bus, &bus)
        };
        let mut names = [self.context.interface(), ""].into_iter();
        let Some(name) = names.find(|name| !snapshot.interface(name).is_some_and(is_other)) else {
            self.context.kept().is_of_several = true;
            return;
        };
        let Some(interface) = snapshot.interface_mut(name, &seen) else { return };
        if let Some(driver) = driver {
            kind(interface, &driver.value, &driver.quote);
            interface.driver = Some(driver);
        }
        interface.bus = bus.or(interface.bus.take());
    }
}

/// Whether two lines of `ethtool -i` are of two interfaces, although the second may be of the one of that name.
/// A later command that names it says that it changed.
fn differ(name: &str, known: &Option<Fact<String>>, other: &Option<Fact<String>>) -> bool {
    let (Some(known), Some(other)) = (known, other) else { return false };
    let is_later = match (&known.quote.command, &other.quote.command) {
        _ if name.is_empty() => false,
        (known, Some(other)) => known.as_ref().is_none_or(|known| !Arc::ptr_eq(known, other)),
        (_, None) => false,
    };
    let is_printed = ["driver:", "bus-info:"].iter().any(|start| known.quote.text.starts_with(start));
    is_printed && !is_later && known.value != other.value
}

fn is_driver(name: &str) -> bool {
    WITH_BLANKS.contains(&name) || (!name.is_empty() && !name.contains(char::is_whitespace))
}

/// What an interface is by its driver; `ip -d link` says more and is not overruled.
fn kind(interface: &mut Interface, driver: &str, quote: &Quote) {
    let kind = match driver {
        "802.1Q VLAN Support" => {
            parent_by_name(interface, quote);
            Kind::Vlan { tpid: None, id: None }
        }
        "bridge" => Kind::Bridge { filtering: None, tpid: None },
        "veth" => Kind::Veth,
        "bonding" | "Ethernet Channel Bonding Driver" => Kind::Other("bond".to_owned()),
        "tun" | "team" | "macvlan" | "ipvlan" | "dummy" | "vxlan" | "wireguard" | "openvswitch" => {
            Kind::Other(driver.to_owned())
        }
        _ => Kind::Device,
    };
    interface.kind.get_or_insert_with(|| Fact::new(kind, quote.clone()));
}

/// `eth0.35` stands on `eth0`, as vconfig and every network manager name it. Other names say nothing.
fn parent_by_name(interface: &mut Interface, quote: &Quote) {
    let Some((parent, id)) = interface.name.rsplit_once('.') else { return };
    if !parent.is_empty() && id.parse::<u16>().is_ok_and(|id| id < 4096) {
        let parent = parent.to_owned();
        interface.parent.get_or_insert_with(|| Fact::new(parent, quote.clone()));
    }
}
