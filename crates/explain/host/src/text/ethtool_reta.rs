//! `ethtool -x`: indirection table, hash key and hash function (`print_indir_table`, `print_rss_hkey`, common.c).
//!
//! A table is believed where its end was read: the heading of the key follows it, or, as before ethtool 3.17,
//! another output does. Where the text ends with a row, only a table of 128 entries is: that is what the drivers
//! have whose tables were printed without a key. Of others it is unknown whether rows are missing.

use super::{Line, Outcome, Section, Tool};
use crate::{Observed, Quote, Reta, Snapshot};
use rss::HashKey;

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -x",
    command: |command| command.is("ethtool", "-x"),
    heading: |line| heading(line).is_some(),
    open: |context| Box::new(Table { is_filtered: context.is_filtered(), ..Table::default() }),
};

const HEADING: &str = "RX flow hash indirection table for ";

/// Entries of a table that are kept; 2,048 are the most that a driver has (ice).
const MOST: usize = 65_536;

/// Entries of a table whose end was not read that is taken for whole.
const COMMON: usize = 128;

/// Bytes of a key that may have been broken over lines after its first one (the shortest key of a driver).
const SHORTEST_KEY: usize = 40;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Rows,
    Key,
    Function,
    Transformation,
}

#[derive(Default)]
struct Table {
    /// Interface and rings, with the line that names them.
    table: Option<(String, u32, Quote)>,
    entries: Vec<u32>,
    /// Why the table is not whole.
    damage: Option<String>,
    part: Part,
    key: String,
    function: Option<String>,
    is_filtered: bool,
}

impl Section for Table {
    fn line(&mut self, line: &Line<'_>, _snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if let Some((interface, rings)) = heading(text) {
            if self.table.is_some() {
                return Outcome::Over;
            }
            self.table = Some((interface.to_owned(), rings, line.quote()));
            return Outcome::Taken;
        }
        if self.table.is_none() {
            // Rows without their heading, or another command's output.
            return if text.is_empty() { Outcome::Skipped } else { Outcome::Over };
        }
        self.body(text)
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        let is_whole = self.part != Part::Rows || !self.is_filtered && self.entries.len().is_power_of_two();
        self.believe(is_whole, snapshot);
    }

    fn cut(&mut self, snapshot: &mut Snapshot) {
        let is_whole = self.part != Part::Rows || !self.is_filtered && self.entries.len() == COMMON;
        self.believe(is_whole, snapshot);
    }
}

impl Table {
    fn body(&mut self, text: &str) -> Outcome {
        match text {
            "" => return Outcome::Skipped,
            "RSS hash key:" => self.part = Part::Key,
            "RSS hash function:" => self.part = Part::Function,
            "RSS input transformation:" => self.part = Part::Transformation,
            _ => match self.part {
                Part::Rows => return self.row(text),
                Part::Key => return self.key(text),
                Part::Function => return self.function(text),
                Part::Transformation => {
                    return if text.ends_with(": on") || text.ends_with(": off") {
                        Outcome::Taken
                    } else {
                        Outcome::Over
                    };
                }
            },
        }
        Outcome::Taken
    }

    /// `   16:      0     1 …`.
    fn row(&mut self, text: &str) -> Outcome {
        let is_damaged = match row(text) {
            Some((label, row)) if label == self.entries.len() && label + row.len() <= MOST => {
                self.entries.extend(row);
                return Outcome::Taken;
            }
            Some(_) => true,
            None => text.starts_with("...") || text.starts_with("[...") || text.starts_with('…'),
        };
        if !is_damaged {
            return Outcome::Over;
        }
        self.damage.get_or_insert_with(|| format!("rows after entry {} are missing", self.entries.len()));
        Outcome::Taken
    }

    /// The key, which a terminal may have broken. A driver that does not report it has `Operation not supported`
    /// there, and bundles, or people, `(hidden)` or `(left out)`.
    fn key(&mut self, text: &str) -> Outcome {
        if text.bytes().all(|c| c.is_ascii_hexdigit() || c == b':') {
            if self.key.len() < 4096 {
                self.key.push_str(text);
            }
            return Outcome::Taken;
        }
        let is_untold = self.key.is_empty();
        if is_untold { Outcome::Taken } else { Outcome::Over }
    }

    fn function(&mut self, text: &str) -> Outcome {
        let Some((name, state)) = text.split_once(": ") else { return Outcome::Over };
        match state {
            "on" => self.function = Some(name.to_owned()),
            "off" => {}
            _ => return Outcome::Over,
        }
        Outcome::Taken
    }

    fn believe(&mut self, is_whole: bool, snapshot: &mut Snapshot) {
        let Some((interface, rings, quote)) = self.table.take() else { return };
        let damage = self.damage.take().or_else(|| {
            (!is_whole && !self.entries.is_empty())
                .then(|| format!("nothing shows that entry {} of the table is the last", self.entries.len()))
        });
        if let Some(why) = damage {
            snapshot.note_unread(&format!("ethtool -x {interface}"), &why);
            return;
        }
        if self.entries.is_empty() {
            return;
        }
        let Some(known) = snapshot.interface_mut(&interface, &quote) else { return };
        let reta = Reta {
            rings,
            entries: std::mem::take(&mut self.entries),
            key: self.whole_key(),
            function: self.function.take(),
        };
        Observed::note(&mut known.reta, reta, &quote);
    }

    fn whole_key(&self) -> Option<HashKey> {
        let key: HashKey = self.key.parse().ok()?;
        let is_closed = self.part != Part::Key || key.bytes().len() >= SHORTEST_KEY;
        is_closed.then_some(key)
    }
}

/// Interface and rings of the first line.
fn heading(text: &str) -> Option<(&str, u32)> {
    let (interface, rings) = text.strip_prefix(HEADING)?.rsplit_once(" with ")?;
    Some((interface, rings.strip_suffix(" RX ring(s):")?.trim().parse().ok()?))
}

fn row(text: &str) -> Option<(usize, Vec<u32>)> {
    let (label, entries) = text.split_once(':')?;
    let entries: Option<Vec<u32>> = entries.split_whitespace().map(|entry| entry.parse().ok()).collect();
    Some((label.trim().parse().ok()?, entries.filter(|entries| !entries.is_empty())?))
}
