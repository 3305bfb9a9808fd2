//! `vmstat -i`: interrupts since boot, of FreeBSD and NetBSD.
//!
//! Columns `interrupt total rate`, the name of any number of words, and a last line `Total` (FreeBSD
//! `usr.bin/vmstat/vmstat.c`, `dointr`; NetBSD's of the same name). FreeBSD names a vector `irq135: igc1:rxq0`
//! (iflib), `irq256: igb0:que 0` (drivers before it), `irq16: em0 uhci0+` (shared, cut at 19 characters);
//! FreeBSD 4 `fxp0 irq11`; NetBSD `ioapic0 pin 16` or `msix1 vec 0`, which says nothing about the device.

use super::proc_interrupts::{bare, is_bare};
use super::{Line, Outcome, Section, Tool, freebsd_nics};
use crate::{Counter, Fact, Interrupt, Quote, Snapshot, System};
use std::collections::{HashMap, HashSet};

pub(super) static TOOL: Tool = Tool {
    name: "vmstat -i",
    command: |command| command.program == "vmstat" && command.has_flag('i'),
    heading: is_heading,
    open: |_| Box::new(Interrupts::default()),
};

fn is_heading(line: &str) -> bool {
    line.starts_with("interrupt") && line.split_whitespace().eq(["interrupt", "total", "rate"])
}

#[derive(Default)]
struct Interrupts {
    /// Where the snapshot has which vector and action.
    places: Option<HashMap<(String, String), usize>>,
    /// What this table had so far: the same name once more is another vector that cannot be distinguished.
    seen: HashSet<usize>,
    is_whole: bool,
}

impl Section for Interrupts {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if self.is_whole {
            return Outcome::Over;
        }
        if text.is_empty() {
            return Outcome::Skipped;
        }
        if is_heading(text) {
            self.seen.clear();
            return Outcome::Taken;
        }
        let Some(entry) = Entry::parse(text) else { return Outcome::Over };
        if entry.name == "Total" {
            self.is_whole = true;
        } else {
            self.note(&entry, line.quote(), snapshot);
        }
        Outcome::Taken
    }
}

impl Interrupts {
    fn note(&mut self, entry: &Entry<'_>, quote: Quote, snapshot: &mut Snapshot) {
        let (vector, action) = entry.parts();
        if vector.starts_with("irq") {
            super::sysctl_machine::infer(snapshot, System::FreeBsd, &quote);
        }
        let places = self.places.get_or_insert_with(|| {
            let names = snapshot.interrupts.iter().map(|one| (one.vector.clone(), one.action.clone()));
            names.zip(0..).collect()
        });
        let key = (vector.to_owned(), action.to_owned());
        // One of which only the affinity was read has no action yet.
        let bare = (vector.to_owned(), String::new());
        let is_bare = |place: &usize| snapshot.interrupts.get(*place).is_some_and(is_bare);
        if !action.is_empty()
            && let Some(place) = places.get(&bare).copied().filter(is_bare)
        {
            places.remove(&bare);
            places.insert(key.clone(), place);
            if let Some(known) = snapshot.interrupts.get_mut(place) {
                *known =
                    Interrupt { affinity: known.affinity.take(), ..interrupt(vector, action, quote.clone()) };
            }
        }
        let place = match places.get(&key) {
            Some(&place) => place,
            None if snapshot.interrupts.len() >= Snapshot::INTERRUPTS => {
                snapshot.omitted += 1;
                return;
            }
            None => {
                places.insert(key, snapshot.interrupts.len());
                snapshot.interrupts.push(interrupt(vector, action, quote.clone()));
                snapshot.interrupts.len() - 1
            }
        };
        let Some(interrupt) = snapshot.interrupts.get_mut(place) else { return };
        if !self.seen.insert(place) {
            return;
        }
        Counter::note_at(&mut interrupt.counts, None, entry.total, quote.clone(), Snapshot::CPUS);
        interrupt.rate = Some(Fact::new(entry.rate, quote));
    }
}

fn interrupt(vector: &str, action: &str, quote: Quote) -> Interrupt {
    let source = Source::of(action);
    Interrupt {
        action: action.to_owned(),
        interface: source.interface.map(str::to_owned),
        queue: source.queue,
        receives: source.receives,
        ..bare(vector, quote)
    }
}

struct Entry<'a> {
    name: &'a str,
    total: u64,
    /// A second.
    rate: u64,
}

impl<'a> Entry<'a> {
    fn parse(text: &'a str) -> Option<Entry<'a>> {
        let (rest, rate) = text.rsplit_once(char::is_whitespace)?;
        let (name, total) = rest.trim_end().rsplit_once(char::is_whitespace)?;
        let name = name.trim_end();
        // Cut before the rate: what looks like the total belongs to the name.
        let is_cut = [":que", ":rx", ":tx", " pin", " vec", " irq"].iter().any(|end| name.ends_with(end));
        if is_cut {
            return None;
        }
        Some(Entry { name, total: total.parse().ok()?, rate: rate.parse().ok()? })
    }

    /// Vector and action.
    fn parts(&self) -> (&'a str, &'a str) {
        if let Some(parts) = self.name.split_once(": ") {
            return (parts.0, parts.1.trim());
        }
        match self.name.rsplit_once(' ') {
            Some((device, irq)) if irq.strip_prefix("irq").is_some_and(is_number) => (irq, device.trim_end()),
            _ if self.name.starts_with("cpu") => self.name.split_once(':').unwrap_or((self.name, "")),
            _ => (self.name, ""),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// What an action says about the traffic that it serves.
pub(super) struct Source<'a> {
    pub interface: Option<&'a str>,
    pub queue: Option<u32>,
    pub receives: Option<bool>,
}

impl<'a> Source<'a> {
    pub fn of(action: &'a str) -> Source<'a> {
        let action = action.trim_end_matches('+');
        // Devices that share a vector stand side by side; the network device among them is what matters here.
        let device = action
            .split_whitespace()
            .find(|word| freebsd_nics::driver(word.split(':').next().unwrap_or(word)).is_some());
        let name = device.map(|word| word.split(':').next().unwrap_or(word));
        let (head, role) = action.split_once(':').unwrap_or((action, ""));
        let (receives, queue) = role_of(role.trim());
        // A driver that is not in the list, whose vectors are named after queues, is one all the same.
        let interface =
            name.or_else(|| Some(head).filter(|head| queue.is_some() && super::command::is_interface(head)));
        if interface.is_none() {
            return Source { interface: None, queue: None, receives: None };
        }
        Source { interface, queue, receives }
    }
}

/// Whether a vector of that role receives, and its queue: `rxq0`, `que 0` (both directions), `tx 1`, `aq`.
fn role_of(role: &str) -> (Option<bool>, Option<u32>) {
    let role = role.trim_end_matches('+');
    let digits = role.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (name, number) = role.split_at(role.len() - digits);
    let queue = number.parse().ok();
    match name.trim_end_matches([' ', '-', '_', ':']) {
        "rxq" | "rx" | "que" | "q" => (queue.map(|_| true), queue),
        "txq" | "tx" => (queue.map(|_| false), queue),
        name if name.ends_with("TxRx") => (queue.map(|_| true), queue),
        "aq" | "link" | "admin" | "mgmnt" | "lsc" => (Some(false), None),
        _ => (None, None),
    }
}
