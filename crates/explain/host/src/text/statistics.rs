//! `ethtool -S`: a driver's statistics.
//!
//! Lines `name: value` under "NIC statistics:" (ethtool 6.1, ethtool.c, `do_gstats`), or alone, since people filter
//! them. Names are understood by [`crate::statistics`]. A counter that appears again opens the next sample, with
//! or without a heading; a sample's counters are recorded together, for some of them are sums. Of an interface without
//! a name, which may be two interfaces, a second sample is only what a bundle, a prompt or a text of its own says is
//! one.

use super::line::{Context, trim};
use super::{Line, Outcome, Section, Tool};
use crate::statistics::{Clues, Found, Match, Meaning, What, find, is_clue};
use crate::{Counter, Fact, Interface, Quote, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -S",
    command: |command| command.is("ethtool", "-S"),
    heading: |line| line == HEADING || counter(line).is_some_and(|(name, _)| is_known(name)),
    open: |context| Box::new(Statistics::of(context)),
};

const HEADING: &str = "NIC statistics:";

/// Counters of one sample that are kept, and names that only the driver can explain.
const MOST: usize = 8 * Snapshot::QUEUES;

/// A line `name: value`. The name may contain colons.
fn counter(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.rsplit_once(':')?;
    let (name, value) = (trim(name), trim(value));
    // `parse` would take a sign.
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    (!name.is_empty() && is_number).then(|| value.parse().ok())?.map(|value| (name, value))
}

fn is_known(name: &str) -> bool {
    match find(name, None) {
        Found::Match(_) | Found::AskDriver(_) => true,
        Found::Nothing => is_clue(name),
    }
}

/// Whether a line is of another tool that writes `name: value`, too: a FreeBSD sysctl.
fn is_sysctl(name: &str) -> bool {
    ["dev.", "hw.", "net.", "kern.", "vm."].iter().any(|root| name.starts_with(root))
}

/// What was read of the interface without a name.
#[derive(Debug)]
pub(super) struct Observation {
    round: u64,
    prompt: u64,
    command: Option<Arc<str>>,
    has_heading: bool,
    cells: BTreeSet<(Option<u32>, Cell)>,
    names: BTreeSet<String>,
}

#[derive(Default)]
struct Statistics {
    interface: String,
    context: Context,
    /// Whether "NIC statistics:" stands above.
    has_heading: bool,
    /// Whether a prompt or the heading said that these are statistics.
    is_certain: bool,
    /// The receive queue of the heading above.
    under: Option<u32>,
    clues: Clues,
    /// The first line that names the driver.
    clue: Option<Quote>,
    sample: Sample,
}

impl Statistics {
    fn of(context: &Context) -> Statistics {
        // The first of several is kept, without a name.
        let interface = if context.is_several { "" } else { context.interface() };
        Statistics {
            interface: interface.to_owned(),
            context: context.clone(),
            is_certain: context.requested.is_some(),
            ..Statistics::default()
        }
    }
}

impl Section for Statistics {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        // Nothing, or the dots of something left out.
        if !text.contains(char::is_alphanumeric) {
            return Outcome::Skipped;
        }
        if text == HEADING {
            self.end(snapshot);
            *self = Statistics { is_certain: true, has_heading: true, ..Statistics::of(&self.context) };
            return Outcome::Taken;
        }
        let Some((name, value)) = counter(text) else { return Outcome::Over };
        if is_sysctl(name) {
            return Outcome::Over;
        }
        let is_clue = self.clues.note(name);
        if is_clue {
            self.clue.get_or_insert_with(|| line.quote());
        }
        let found = find(name, None);
        if found != Found::Nothing {
            self.counter(found, name, value, line, snapshot);
        }
        let is_ours = self.is_certain || is_clue || found != Found::Nothing;
        if is_ours { Outcome::Taken } else { Outcome::Skipped }
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        let sample = std::mem::take(&mut self.sample);
        let Some(seen) = sample.seen.as_ref().or(self.clue.as_ref()) else { return };
        if self.interface.is_empty() && !self.is_new(&sample) {
            snapshot.note_unread(TOOL.name, "counters of an interface without a name, a second time");
            snapshot.omitted += 1;
            return;
        }
        let proved = self.clues.driver();
        let Some(interface) = snapshot.interface_mut(&self.interface, seen) else { return };
        let named = interface.driver.as_ref().map(|driver| driver.value.as_str());
        // Outputs of two devices whose names the text leaves out are no two samples of one.
        if self.interface.is_empty() && named.is_some() && proved.is_some() && named != proved {
            snapshot.omitted += 1;
            return;
        }
        let driver = named.or(proved).map(str::to_owned);
        if let (None, Some(proved), Some(clue)) = (&interface.driver, proved, &self.clue) {
            interface.driver = Some(Fact::new(proved.to_owned(), clue.clone()));
        }
        let omitted = sample.note(interface, driver.as_deref());
        snapshot.omitted += omitted;
    }
}

impl Statistics {
    /// Whether counters of the interface without a name may be those of the one that was read before: others, or a
    /// sample that was announced.
    fn is_new(&self, sample: &Sample) -> bool {
        let context = &self.context;
        // Without headings nobody sees where the output of the next interface begins.
        if context.is_several && !self.has_heading {
            return false;
        }
        let cells = || sample.cells.keys().copied();
        let named = [&sample.overflow, &sample.too_long, &sample.allowances, &sample.unexplained];
        let names = || named.into_iter().flat_map(BTreeMap::keys).cloned();
        let mut kept = context.kept();
        kept.is_of_several |= context.is_several;
        if let Some(seen) = kept.statistics.as_mut().filter(|seen| !seen.is_over(context)) {
            let is_again = self.has_heading && seen.has_heading
                || cells().any(|cell| seen.cells.contains(&cell))
                || names().any(|name| seen.names.contains(&name));
            if !is_again {
                seen.has_heading |= self.has_heading;
                seen.cells.extend(cells());
                seen.names.extend(names());
            }
            return !is_again;
        }
        kept.statistics = Some(Observation {
            round: context.rounds,
            prompt: context.prompts,
            command: context.command.clone(),
            has_heading: self.has_heading,
            cells: cells().collect(),
            names: names().collect(),
        });
        true
    }

    /// Takes a counter that means something, or may.
    fn counter(&mut self, found: Found, name: &str, value: u64, line: &Line<'_>, snapshot: &mut Snapshot) {
        let Found::Match(matched) = found else {
            if self.sample.unexplained.contains_key(name) {
                self.end(snapshot);
            }
            let kept = self.sample.keep_unexplained(name, value, line.quote());
            snapshot.omitted += u64::from(!kept);
            return;
        };
        if let Meaning::Heading { receive } = matched.meaning {
            self.under = u32::try_from(value).ok().filter(|_| receive);
            return;
        }
        let Some(reading) = Reading::of(matched, name, self.under) else { return };
        if self.sample.has(&reading, name) {
            self.end(snapshot);
        }
        let kept = self.sample.add(reading, name, value, line.quote());
        snapshot.omitted += u64::from(!kept);
    }
}

impl Observation {
    /// Whether what follows is said to be another sample.
    fn is_over(&self, context: &Context) -> bool {
        let is_repeated = !context.is_unknown
            && self.prompt != context.prompts
            && self.command.is_some()
            && self.command == context.command;
        self.round != context.rounds || is_repeated
    }
}

/// What is counted of a queue, or of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Packets,
    Bytes,
    Drops,
}

/// How a counter goes into its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    Whole,
    /// Frames of one kind; without the unicast ones the sum would be none of the queue's.
    Part {
        unicast: bool,
    },
    Cause,
    Minus,
    /// The whole, unless it is zero everywhere.
    WhilePolled,
}

/// Where a counter belongs.
enum Reading {
    /// `None` is the device.
    Cell {
        queue: Option<u32>,
        cell: Cell,
        share: Share,
        pattern: u16,
    },
    Overflow,
    TooLong,
    Allowance,
}

impl Reading {
    fn of(found: Match, name: &str, under: Option<u32>) -> Option<Reading> {
        let pattern = found.pattern;
        let part = || Share::Part { unicast: name.contains("ucast") || name.contains("unicast") };
        let cell = |queue: Option<u32>, what: What| {
            let (cell, share) = match what {
                What::Packets => (Cell::Packets, Share::Whole),
                What::PacketsPart => (Cell::Packets, part()),
                What::Bytes => (Cell::Bytes, Share::Whole),
                What::BytesPart => (Cell::Bytes, part()),
                What::Drops => (Cell::Drops, Share::Cause),
                What::DropsByXdp => (Cell::Drops, Share::Minus),
                What::PacketsWhilePolled => (Cell::Packets, Share::WhilePolled),
            };
            Reading::Cell { queue, cell, share, pattern }
        };
        Some(match found.meaning {
            Meaning::Queue { queue, what } => cell(Some(queue), what),
            Meaning::UnderHeading(what) => cell(Some(under?), what),
            Meaning::TotalPackets => cell(None, What::Packets),
            Meaning::TotalPacketsPart => cell(None, What::PacketsPart),
            Meaning::TotalBytes => cell(None, What::Bytes),
            Meaning::Overflow => Reading::Overflow,
            Meaning::TooLong => Reading::TooLong,
            Meaning::Allowance => Reading::Allowance,
            Meaning::Heading { .. } | Meaning::Other => return None,
        })
    }
}

/// A pattern in a set of those of one driver, of which no driver has more than 64.
fn bit(pattern: u16) -> u64 {
    1 << (pattern % 64)
}

#[derive(Default)]
struct Sum {
    /// Every counter that was seen of it.
    seen: u64,
    /// A counter of all, and its pattern. Of two the one that stands first in the tables.
    whole: Option<(u64, u16, Quote)>,
    while_polled: Option<(u64, u16, Quote)>,
    parts: u64,
    total: u64,
    minus: u64,
    /// Whether the parts make up the whole.
    is_main: bool,
    quote: Option<Quote>,
}

impl Sum {
    fn add(&mut self, share: Share, pattern: u16, value: u64, quote: Quote) {
        self.seen |= bit(pattern);
        match share {
            Share::Whole => match &self.whole {
                Some((_, other, _)) if *other < pattern => {}
                _ => self.whole = Some((value, pattern, quote)),
            },
            Share::WhilePolled => self.while_polled = Some((value, pattern, quote)),
            Share::Minus => self.minus = self.minus.saturating_add(value),
            Share::Part { unicast } => self.part(unicast, pattern, value, quote),
            Share::Cause => self.part(true, pattern, value, quote),
        }
    }

    fn part(&mut self, is_main: bool, pattern: u16, value: u64, quote: Quote) {
        self.total = self.total.saturating_add(value);
        self.parts |= bit(pattern);
        self.is_main |= is_main;
        // Evidence is the largest kind, which the unicast frames mostly are.
        if is_main || self.quote.is_none() {
            self.quote = Some(quote);
        }
    }

    /// Value, parts and evidence. `is_polled` says whether the device's queues are polled, `is_cut` whether parts
    /// are missing.
    fn result(self, is_polled: bool, is_cut: bool) -> Option<(u64, u64, Quote)> {
        let of_parts = self
            .quote
            .filter(|_| self.is_main && !is_cut)
            .map(|quote| (self.total.saturating_sub(self.minus), self.parts, quote));
        let of_one = |(value, pattern, quote)| (value, bit(pattern), quote);
        self.whole.map(of_one).or(of_parts).or(self.while_polled.filter(|_| is_polled).map(of_one))
    }
}

/// What was read at one time.
#[derive(Default)]
struct Sample {
    seen: Option<Quote>,
    cells: BTreeMap<(Option<u32>, Cell), Sum>,
    overflow: BTreeMap<String, (u64, Quote)>,
    too_long: BTreeMap<String, (u64, Quote)>,
    allowances: BTreeMap<String, (u64, Quote)>,
    /// Lines that the driver will explain, once it is known.
    unexplained: BTreeMap<String, (u64, Quote)>,
}

impl Sample {
    fn has(&self, reading: &Reading, name: &str) -> bool {
        match reading {
            Reading::Cell { queue, cell, pattern, .. } => {
                self.cells.get(&(*queue, *cell)).is_some_and(|sum| sum.seen & bit(*pattern) != 0)
            }
            Reading::Overflow => self.overflow.contains_key(name),
            Reading::TooLong => self.too_long.contains_key(name),
            Reading::Allowance => self.allowances.contains_key(name),
        }
    }

    /// Whether there was room.
    fn add(&mut self, reading: Reading, name: &str, value: u64, quote: Quote) -> bool {
        let named = [&self.overflow, &self.too_long, &self.allowances];
        if self.cells.len() + named.iter().map(|named| named.len()).sum::<usize>() >= MOST {
            return false;
        }
        self.seen.get_or_insert_with(|| quote.clone());
        match reading {
            Reading::Cell { queue, cell, share, pattern } => {
                self.cells.entry((queue, cell)).or_default().add(share, pattern, value, quote);
            }
            Reading::Overflow => drop(self.overflow.insert(name.to_owned(), (value, quote))),
            Reading::TooLong => drop(self.too_long.insert(name.to_owned(), (value, quote))),
            Reading::Allowance => drop(self.allowances.insert(name.to_owned(), (value, quote))),
        }
        true
    }

    fn keep_unexplained(&mut self, name: &str, value: u64, quote: Quote) -> bool {
        if self.unexplained.len() >= MOST {
            return false;
        }
        self.seen.get_or_insert_with(|| quote.clone());
        self.unexplained.insert(name.to_owned(), (value, quote));
        true
    }

    /// Notes everything at `interface`; how much found no room.
    fn note(mut self, interface: &mut Interface, driver: Option<&str>) -> u64 {
        for (name, (value, quote)) in std::mem::take(&mut self.unexplained) {
            let found = match find(&name, driver) {
                Found::Match(found) | Found::AskDriver(Some(found)) => found,
                Found::AskDriver(None) | Found::Nothing => continue,
            };
            if let Some(reading) = Reading::of(found, &name, None) {
                self.add(reading, &name, value, quote);
            }
        }
        // Every queue has the same parts, unless the output was cut.
        let parts_of = |cell: Cell| {
            let queues = self.cells.iter().filter(|((queue, of), _)| queue.is_some() && *of == cell);
            queues.fold(0, |parts, (_, sum)| parts | sum.parts)
        };
        let (packet_parts, byte_parts) = (parts_of(Cell::Packets), parts_of(Cell::Bytes));
        let is_polled =
            self.cells.values().any(|sum| sum.while_polled.as_ref().is_some_and(|&(value, _, _)| value > 0));
        let mut omitted = 0;
        for ((queue, cell), sum) in self.cells {
            let is_cut = match (queue, cell) {
                (Some(_), Cell::Packets) => sum.parts != packet_parts,
                (Some(_), Cell::Bytes) => sum.parts != byte_parts,
                _ => false,
            };
            let is_while_polled = sum.while_polled.is_some();
            let Some((value, parts, quote)) = sum.result(is_polled, is_cut) else { continue };
            let Some(slot) = slot(interface, queue, cell) else {
                omitted += 1;
                continue;
            };
            Counter::note_sum(slot, value, parts, quote);
            if let Some(counter) = slot {
                counter.is_while_polled = is_while_polled;
            }
        }
        let totals = &mut interface.totals;
        for (to, from) in [
            (&mut totals.overflow, self.overflow),
            (&mut totals.too_long, self.too_long),
            (&mut totals.allowances, self.allowances),
        ] {
            for (name, (value, quote)) in from {
                omitted += u64::from(!Counter::note_at(to, name, value, quote, Snapshot::NAMES));
            }
        }
        omitted
    }
}

/// The place of a counter; `None` beyond the bound.
fn slot(interface: &mut Interface, queue: Option<u32>, cell: Cell) -> Option<&mut Option<Counter>> {
    let Some(queue) = queue else {
        return match cell {
            Cell::Packets => Some(&mut interface.totals.packets),
            Cell::Bytes => Some(&mut interface.totals.bytes),
            Cell::Drops => None,
        };
    };
    let queue = interface.queue_mut(queue)?;
    Some(match cell {
        Cell::Packets => &mut queue.packets,
        Cell::Bytes => &mut queue.bytes,
        Cell::Drops => &mut queue.drops,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_colons_and_blanks() {
        assert_eq!(counter("     [0]: rx_ucast_packets: 194"), Some(("[0]: rx_ucast_packets", 194)));
        assert_eq!(counter("rx_octets_ok            : 5"), Some(("rx_octets_ok", 5)));
        assert_eq!(counter("     cgx_rxstat0: : 7"), Some(("cgx_rxstat0:", 7)));
        for line in
            ["rx_packets:", "rx_packets: -1", "rx_packets: +1", ": 5", "x: 1.5", "x: 99999999999999999999"]
        {
            assert_eq!(counter(line), None, "{line}");
        }
    }
}
