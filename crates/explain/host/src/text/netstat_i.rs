//! `netstat -i` with `-b`, `-n`, `-d`: frames by interface, of FreeBSD and NetBSD.
//!
//! Only the lines of the link layer (`<Link#1>`; NetBSD `<Link>`) count frames of the interface; the others count
//! by address. Columns after the address are read from the right by their titles, since an interface without a
//! link address has one word less (FreeBSD and NetBSD `usr.bin/netstat/if.c`).

use super::{Line, Outcome, Section, Tool};
use crate::{Counter, Observed, Quote, Snapshot};
use std::collections::HashSet;

pub(super) static TOOL: Tool = Tool {
    name: "netstat -i",
    command: |command| command.program == "netstat" && (command.has_flag('i') || command.has_flag('I')),
    heading: |line| titles(line).is_some(),
    open: |_| Box::new(Links::default()),
};

const FIRST: [&str; 4] = ["Name", "Mtu", "Network", "Address"];

/// Titles of the columns after the address.
fn titles(line: &str) -> Option<Vec<String>> {
    if !line.starts_with("Name") {
        return None;
    }
    let mut words = line.split_whitespace();
    let is_table = FIRST.iter().all(|title| words.next() == Some(title));
    let titles: Vec<String> = words.map(str::to_owned).collect();
    (is_table && titles.iter().any(|title| title == "Ipkts")).then_some(titles)
}

#[derive(Default)]
struct Links {
    titles: Vec<String>,
    seen: HashSet<String>,
}

impl Section for Links {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if text.is_empty() {
            return Outcome::Skipped;
        }
        if let Some(titles) = titles(text) {
            *self = Links { titles, seen: HashSet::new() };
            return Outcome::Taken;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if self.titles.is_empty() || words.len() <= self.titles.len() {
            return Outcome::Over;
        }
        let [name, mtu, network, ..] = words.as_slice() else { return Outcome::Over };
        // With and without an address; lines of an address have `-` for what belongs to the interface.
        let is_row = words.len() <= self.titles.len() + FIRST.len()
            && (*mtu == "-" || mtu.bytes().all(|c| c.is_ascii_digit()));
        if !is_row {
            return Outcome::Over;
        }
        if !network.starts_with("<Link") {
            return Outcome::Taken;
        }
        let quote = line.quote();
        self.link(name, mtu, &words, &quote, snapshot);
        Outcome::Taken
    }
}

impl Links {
    fn link(&mut self, name: &str, mtu: &str, words: &[&str], quote: &Quote, snapshot: &mut Snapshot) {
        let is_down = name.ends_with('*');
        let name = name.trim_end_matches('*');
        // `-W` was not given and the name filled its column: FreeBSD cuts it without a mark, which cannot be seen.
        if !super::command::is_interface(name) || self.seen.len() >= Snapshot::INTERFACES {
            return;
        }
        if !self.seen.insert(name.to_owned()) {
            return;
        }
        let Some(interface) = snapshot.interface_mut(name, quote) else { return };
        Observed::note(&mut interface.mtu, mtu.parse().ok(), quote);
        Observed::note(&mut interface.up, is_down.then_some(false), quote);
        let values = words.get(words.len() - self.titles.len()..).unwrap_or_default();
        for (title, value) in self.titles.iter().zip(values) {
            // `-` where the kernel does not count.
            let Ok(value) = value.parse() else { continue };
            match title.as_str() {
                "Ipkts" => Counter::note(&mut interface.totals.packets, value, quote),
                "Ibytes" => Counter::note(&mut interface.totals.bytes, value, quote),
                "Idrop" => {
                    let overflow = &mut interface.totals.overflow;
                    Counter::note_at(overflow, title.clone(), value, quote.clone(), Snapshot::LINES);
                }
                _ => {}
            }
        }
    }
}
