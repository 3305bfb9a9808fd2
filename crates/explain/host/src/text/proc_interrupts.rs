//! `/proc/interrupts` and `/proc/softirqs`: a column for each CPU.
//!
//! Both open with the same heading, so the rows show which it is. `/proc/interrupts` (kernel/irq/proc.c) has a
//! column for every CPU that is online and names it; `/proc/softirqs` (fs/proc/softirqs.c) one for every possible
//! CPU. Rows of a `grep` have no heading: their columns are taken for CPUs 0, 1, 2 and so on. Lines that a
//! terminal broke are put together again where the heading shows how many columns there are.

use super::line::{is_word_of, trim_start};
use super::{Line, Outcome, Section, Tool, vector_name};
use crate::{Architecture, Chip, Counter, Fact, Interrupt, Quote, Snapshot};
use std::collections::{BTreeMap, HashMap};

pub(super) static TOOL: Tool = Tool {
    name: "/proc/interrupts",
    command: |command| command.reads("/proc/interrupts"),
    heading: |line| is_cpu_heading(line) || is_interrupt_row(line),
    open: |_| Box::new(Table::new(None)),
};

pub(super) static SOFTIRQS: Tool = Tool {
    name: "/proc/softirqs",
    command: |command| command.reads("/proc/softirqs"),
    heading: |_| false,
    open: |_| Box::new(Table::new(Some(Kind::Softirqs))),
};

/// Names of softirqs (`softirq_to_name`, kernel/softirq.c).
const SOFTIRQ_NAMES: &str = "HI TIMER NET_TX NET_RX BLOCK IRQ_POLL BLOCK_IOPOLL TASKLET SCHED HRTIMER RCU";

/// Chips whose interrupts stand in front of nothing else that is printed.
const CHIPS: [&str; 8] =
    ["PCI-MSI", "IR-PCI-MSI", "IO-APIC", "IR-IO-APIC", "GIC", "ITS-MSI", "xen-p", "ITS-PCI-MSI"];

/// Counters of all interrupts together that are kept.
const COUNTERS: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Interrupts,
    Softirqs,
}

/// A row that may go on with the next line.
struct Row {
    name: String,
    counts: Vec<u64>,
    rest: String,
    quote: Quote,
}

struct Table {
    kind: Option<Kind>,
    /// The CPU of each column; empty where no heading was read.
    cpus: Vec<u32>,
    heading: Option<Quote>,
    row: Option<Row>,
    /// Where the last row was found among the interrupts: the next sample has them in the same order.
    place: usize,
    /// Places by vector, made when the order does not hold.
    places: Option<HashMap<String, Vec<usize>>>,
}

impl Section for Table {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if text.is_empty() {
            self.flush(snapshot);
            return Outcome::Skipped;
        }
        if let Some(cpus) = cpu_heading(text) {
            return self.heading(cpus, line, snapshot);
        }
        if let Some((name, rest)) = row(text) {
            self.flush(snapshot);
            let kind = if is_word_of(SOFTIRQ_NAMES, name) { Kind::Softirqs } else { Kind::Interrupts };
            if *self.kind.get_or_insert(kind) != kind {
                return Outcome::Over;
            }
            let (counts, rest) = counts(rest, self.columns());
            if counts.is_empty() {
                return Outcome::Over;
            }
            self.row =
                Some(Row { name: name.to_owned(), counts, rest: rest.to_owned(), quote: line.quote() });
            return Outcome::Taken;
        }
        self.continuation(text)
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        self.flush(snapshot);
    }

    fn name(&self) -> Option<&'static str> {
        (self.kind == Some(Kind::Softirqs)).then_some(SOFTIRQS.name)
    }
}

impl Table {
    fn new(kind: Option<Kind>) -> Table {
        Table { kind, cpus: Vec::new(), heading: None, row: None, place: 0, places: None }
    }

    fn columns(&self) -> usize {
        if self.cpus.is_empty() { Snapshot::CPUS } else { self.cpus.len() }
    }

    fn heading(&mut self, cpus: Vec<u32>, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let is_wrapped = self.row.is_none()
            && self.cpus.last().zip(cpus.first()).is_some_and(|(last, first)| last < first);
        if is_wrapped {
            self.cpus.extend(cpus);
            return Outcome::Taken;
        }
        if self.heading.is_some() || self.row.is_some() {
            // The next sample, or the other of the two files.
            return Outcome::Over;
        }
        if cpus.len() > Snapshot::CPUS {
            snapshot.omitted += 1;
            return Outcome::Over;
        }
        self.cpus = cpus;
        self.heading = Some(line.quote());
        // Until a row shows which of the two it is, neither was read.
        if self.kind.is_some() { Outcome::Taken } else { Outcome::Skipped }
    }

    /// A line that a terminal broke: the rest of the counts, or of the name.
    fn continuation(&mut self, text: &str) -> Outcome {
        let columns = self.cpus.len();
        let Some(row) = self.row.as_mut() else { return Outcome::Over };
        // The handler's name alone.
        let is_nameless = || description(&row.rest).is_some_and(|(_, _, actions)| actions.is_empty());
        if row.counts.len() == columns && is_nameless() && !text.contains(char::is_whitespace) {
            row.rest.push(' ');
            row.rest.push_str(text);
            return Outcome::Taken;
        }
        if row.counts.len() >= columns || !row.rest.is_empty() {
            return Outcome::Over;
        }
        let (more, rest) = counts(text, columns - row.counts.len());
        if more.is_empty() {
            return Outcome::Over;
        }
        row.counts.extend(more);
        rest.clone_into(&mut row.rest);
        Outcome::Taken
    }

    fn flush(&mut self, snapshot: &mut Snapshot) {
        let Some(row) = self.row.take() else { return };
        // A row with fewer counts than CPUs was cut, or is one sum (`ERR`, `MIS`).
        if !self.cpus.is_empty() && row.counts.len() != self.cpus.len() {
            return;
        }
        match self.kind {
            Some(Kind::Softirqs) => self.softirq(row, snapshot),
            _ => self.interrupt(row, snapshot),
        }
    }

    fn cpu(&self, column: usize) -> u32 {
        // Columns are no more than `Snapshot::CPUS`.
        self.cpus.get(column).copied().unwrap_or(column as u32)
    }

    fn softirq(&self, row: Row, snapshot: &mut Snapshot) {
        let counters = snapshot.softirqs.entry(row.name).or_default();
        for (column, count) in row.counts.into_iter().enumerate() {
            Counter::note_at(counters, self.cpu(column), count, row.quote.clone(), Snapshot::CPUS);
        }
    }

    fn interrupt(&mut self, row: Row, snapshot: &mut Snapshot) {
        if let Some(heading) = &self.heading
            && snapshot.cpus.online.is_none()
            && let Ok(online) = u32::try_from(self.cpus.len())
        {
            snapshot.cpus.online = Some(Fact::new(online, heading.clone()));
        }
        // The interrupts of the architecture itself have words for a name, and no chip.
        let is_numbered = row.name.bytes().all(|digit| digit.is_ascii_digit());
        let action = if is_numbered { action(&row.rest) } else { &row.rest };
        let chip = is_numbered.then(|| chip(&row.rest)).flatten();
        let Some(place) = self.find(&row.name, action, row.counts.len(), &row.quote, snapshot) else {
            snapshot.omitted += 1;
            return;
        };
        self.place = place + 1;
        let controller = chip.as_ref().and_then(|chip| Architecture::of_controller(&chip.name));
        snapshot.note_architecture(controller, &row.quote);
        let Some(interrupt) = snapshot.interrupts.get_mut(place) else { return };
        for (column, count) in row.counts.into_iter().enumerate() {
            let cpu = Some(self.cpu(column));
            Counter::note_at(&mut interrupt.counts, cpu, count, row.quote.clone(), Snapshot::CPUS);
        }
        interrupt.chip = chip.or(interrupt.chip.take());
        interrupt.quote = row.quote;
    }

    /// The place of the interrupt with that vector and action, made where there is none. One of which only the
    /// affinity is known has no action yet.
    fn find(
        &mut self,
        vector: &str,
        action: &str,
        columns: usize,
        quote: &Quote,
        snapshot: &mut Snapshot,
    ) -> Option<usize> {
        let is_it = |interrupt: &Interrupt| {
            interrupt.vector == vector && (interrupt.action == action || is_bare(interrupt))
        };
        let place = if snapshot.interrupts.get(self.place).is_some_and(is_it) {
            Some(self.place)
        } else {
            let places = self.places.get_or_insert_with(|| places(&snapshot.interrupts));
            let candidates = places.get(vector).map(Vec::as_slice).unwrap_or_default();
            candidates.iter().copied().find(|&place| snapshot.interrupts.get(place).is_some_and(is_it))
        };
        let place = match place {
            Some(place) => place,
            None => {
                let place = snapshot.interrupts.len();
                if place >= Snapshot::INTERRUPTS || place.saturating_mul(columns) >= COUNTERS {
                    return None;
                }
                snapshot.interrupts.push(bare(vector, quote.clone()));
                if let Some(places) = &mut self.places {
                    places.entry(vector.to_owned()).or_default().push(place);
                }
                place
            }
        };
        let interrupt = snapshot.interrupts.get_mut(place)?;
        if is_bare(interrupt) {
            let name = vector_name::read(action);
            action.clone_into(&mut interrupt.action);
            (interrupt.interface, interrupt.queue, interrupt.receives) =
                (name.interface, name.queue, name.receives);
        }
        Some(place)
    }
}

fn places(interrupts: &[Interrupt]) -> HashMap<String, Vec<usize>> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, interrupt) in interrupts.iter().enumerate() {
        places.entry(interrupt.vector.clone()).or_default().push(place);
    }
    places
}

/// An interrupt of which only the number is known.
pub(super) fn bare(vector: &str, quote: Quote) -> Interrupt {
    Interrupt {
        vector: vector.to_owned(),
        chip: None,
        action: String::new(),
        interface: None,
        queue: None,
        receives: None,
        counts: BTreeMap::new(),
        affinity: None,
        rate: None,
        quote,
    }
}

/// Whether nothing but the number, and perhaps its affinity, is known.
pub(super) fn is_bare(interrupt: &Interrupt) -> bool {
    interrupt.action.is_empty() && interrupt.counts.is_empty()
}

/// `CPU0 CPU1 CPU3`, ascending.
fn cpu_heading(text: &str) -> Option<Vec<u32>> {
    if !is_cpu_heading(text) {
        return None;
    }
    let cpus = text.split_whitespace().map(|word| word.strip_prefix("CPU")?.parse().ok());
    cpus.collect::<Option<Vec<u32>>>().filter(|cpus| cpus.is_sorted_by(|one, next| one < next))
}

fn is_cpu_heading(text: &str) -> bool {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let is_cpu = |word: &str| word.strip_prefix("CPU").is_some_and(is_number);
    text.starts_with("CPU") && text.split_whitespace().all(is_cpu)
}

/// A row without its heading: number, counts, a chip and the number that it gives the interrupt. Only of the first is one
/// count enough: other lists have a number, another number and words.
fn is_interrupt_row(text: &str) -> bool {
    let is_number = text.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if !is_number {
        return false;
    }
    let Some((name, rest)) = row(text) else { return false };
    let (counts, rest) = counts(rest, Snapshot::CPUS);
    let is_known = || CHIPS.iter().any(|chip| rest.starts_with(chip));
    let is_like_one = || counts.len() > 1 && description(rest).is_some_and(|(chip, _, _)| is_chip_like(chip));
    name.bytes().all(|digit| digit.is_ascii_digit()) && !counts.is_empty() && (is_known() || is_like_one())
}

/// Whether words may name an interrupt controller: `SiFive PLIC`, `MIPS GIC Local`, `1e000600.gpio`.
fn is_chip_like(chip: &str) -> bool {
    chip.split_whitespace().all(|word| {
        word.bytes().any(|c| c.is_ascii_alphabetic())
            && word
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b':' | b'@'))
    })
}

/// `56:` and `NMI:`.
fn row(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(':')?;
    let is_name = (1..=12).contains(&name.len())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
        && (rest.starts_with([' ', '\t']) || rest.is_empty());
    is_name.then_some((name, rest))
}

/// The leading numbers, at most `most`, and what follows them.
fn counts(text: &str, most: usize) -> (Vec<u64>, &str) {
    let mut counts = Vec::new();
    let mut rest = text.trim_start();
    while counts.len() < most {
        let end = rest.bytes().position(|c| c == b' ' || c == b'\t').unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let Ok(count) = word.parse::<u64>() else { break };
        if !word.bytes().all(|digit| digit.is_ascii_digit()) {
            break;
        }
        counts.push(count);
        rest = trim_start(after);
    }
    (counts, rest.trim())
}

/// The handlers behind chip, hardware number and trigger (`show_interrupts`, kernel/irq/proc.c): `IO-APIC 2-edge timer`,
/// `PCI-MSI 2097152-edge eth0`, `GICv3 37 Level eth0`, `SiFive PLIC 131 Edge eth0`. The per-CPU interrupts of the
/// architecture have only a text there, which comes back whole.
fn action(rest: &str) -> &str {
    if let Some((_, _, actions)) = description(rest) {
        return actions;
    }
    // `MIPS  GIC  eth2`: a chip of several words.
    let mut rest = rest;
    while let Some((_, after)) = rest.split_once(char::is_whitespace).filter(|(chip, _)| is_chip(chip)) {
        rest = after.trim_start();
    }
    if is_chip(rest) { "" } else { rest }
}

/// The controller and the number that it gives the interrupt.
fn chip(rest: &str) -> Option<Chip> {
    let (name, number, _) = description(rest)?;
    let digits = number.split('-').next()?;
    Some(Chip { name: name.to_owned(), number: digits.parse().ok()? })
}

/// Words of a chip's name, at most (`BRCM STB PCIe MSI`; the name of a GPIO bank).
const CHIP_WORDS: usize = 5;

/// Chip, hardware number with the trigger that old kernels join to it, and handlers, of what stands behind the counts. The number
/// is the first word that is one, behind the words of the chip.
fn description(rest: &str) -> Option<(&str, &str, &str)> {
    let mut behind = rest;
    for words in 0..=CHIP_WORDS {
        let (word, after) = behind.split_once(char::is_whitespace).unwrap_or((behind, ""));
        if words > 0 && is_hardware_number(word) {
            let chip = rest.get(..rest.len() - behind.len())?.trim_end();
            let after = after.trim_start();
            let actions = match after.split_once(char::is_whitespace).unwrap_or((after, "")) {
                ("Level" | "Edge" | "level" | "edge" | "fasteoi" | "None", actions) => actions.trim_start(),
                _ => after,
            };
            return Some((chip, word, actions));
        }
        behind = after.trim_start();
    }
    None
}

/// `131`, `524288-edge`.
fn is_hardware_number(word: &str) -> bool {
    let trigger = word.trim_start_matches(|c: char| c.is_ascii_digit());
    trigger.len() < word.len() && (trigger.is_empty() || trigger.starts_with('-'))
}

/// Old kernels joined chip and trigger: `PCI-MSI-edge`, `IO-APIC-fasteoi`, `XT-PIC-XT`, `xen-pirq-msi`.
fn is_chip(word: &str) -> bool {
    word.contains("-edge")
        || word.contains("-fasteoi")
        || word.contains("-level")
        || ["PCI-MSI", "XT-PIC", "xen-", "IO-APIC", "GIC", "MIPS", "MPIC", "INTC"]
            .iter()
            .any(|chip| word.starts_with(chip))
}
