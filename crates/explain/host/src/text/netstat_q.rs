//! `netstat -Q`: FreeBSD's netisr, which hands packets to its threads.
//!
//! Three tables, `Configuration`, `Protocols` and `Workstreams` (FreeBSD `usr.bin/netstat/netisr.c`). Columns are
//! found by their titles, since 8.x has others than later releases.

use super::{Line, Outcome, Section, Tool};
use crate::{Counter, Netisr, NetisrProtocol, Observed, Quote, Snapshot, System, Workstream};
use std::collections::HashSet;

pub(super) static TOOL: Tool = Tool {
    name: "netstat -Q",
    command: |command| command.program == "netstat" && command.has_flag('Q'),
    heading: |line| Table::titled(line).is_some(),
    open: |_| Box::new(Tables { table: None, seen: HashSet::new() }),
};

enum Table {
    Configuration,
    Protocols(Vec<String>),
    Workstreams(Vec<String>),
}

impl Table {
    /// The table that these titles open.
    fn titled(line: &str) -> Option<Table> {
        let starts = |first: &str, second: &str| {
            let mut words = line.split_whitespace();
            line.starts_with(first) && words.next() == Some(first) && words.next() == Some(second)
        };
        let titles = || line.split_whitespace().map(str::to_owned).collect();
        if starts("Setting", "Current") || starts("Setting", "Value") {
            Some(Table::Configuration)
        } else if starts("Name", "Proto") && line.contains("QLimit") {
            Some(Table::Protocols(titles()))
        } else if starts("WSID", "CPU") {
            Some(Table::Workstreams(titles()))
        } else {
            None
        }
    }
}

struct Tables {
    table: Option<Table>,
    seen: HashSet<(u32, String)>,
}

impl Section for Tables {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if matches!(text, "" | "Configuration:" | "Protocols:" | "Workstreams:") {
            return if text.is_empty() { Outcome::Skipped } else { Outcome::Taken };
        }
        if let Some(table) = Table::titled(text) {
            self.table = Some(table);
            self.seen.clear();
            return Outcome::Taken;
        }
        let quote = line.quote();
        let is_read = match &self.table {
            None => false,
            Some(Table::Configuration) => setting(text, &quote, snapshot),
            Some(Table::Protocols(titles)) => protocol(titles, text, &quote, snapshot),
            Some(Table::Workstreams(titles)) => workstream(titles, text, &quote, &mut self.seen, snapshot),
        };
        if !is_read {
            return Outcome::Over;
        }
        super::sysctl_machine::infer(snapshot, System::FreeBsd, &quote);
        Outcome::Taken
    }
}

pub(super) fn netisr(snapshot: &mut Snapshot) -> &mut Netisr {
    snapshot.netisr.get_or_insert_default()
}

fn setting(text: &str, quote: &Quote, snapshot: &mut Snapshot) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name @ .., current, _limit] = words.as_slice() else { return false };
    match name.join(" ").as_str() {
        "Thread count" => {
            let Ok(threads) = current.parse::<u32>() else { return false };
            Observed::note(&mut netisr(snapshot).threads, threads, quote);
        }
        "Dispatch policy" => {
            Observed::note(&mut netisr(snapshot).dispatch, (*current).to_owned(), quote);
        }
        // 8.x: direct dispatch was on or off.
        "Direct dispatch" => {
            let policy = if *current == "enabled" { "direct" } else { "deferred" };
            Observed::note(&mut netisr(snapshot).dispatch, policy.to_owned(), quote);
        }
        "Threads bound to CPUs" => {
            let bound = *current == "enabled";
            Observed::note(&mut netisr(snapshot).bound, bound, quote);
        }
        "Default queue limit" | "Forced direct dispatch" => {}
        _ => return false,
    }
    true
}

/// The word below that title; `None` where the line has other columns than the titles.
fn below<'a>(titles: &[String], words: &[&'a str], title: &str) -> Option<&'a str> {
    let place = titles.iter().position(|one| one == title)?;
    words.get(place).copied().filter(|_| titles.len() == words.len())
}

fn protocol(titles: &[String], text: &str, quote: &Quote, snapshot: &mut Snapshot) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let word = |title| below(titles, &words, title);
    let (Some(name), Some(policy)) = (word("Name"), word("Policy")) else { return false };
    let is_row = word("QLimit").is_some_and(|limit| limit.parse::<u32>().is_ok());
    if !is_row {
        return false;
    }
    let protocol = NetisrProtocol {
        policy: policy.to_owned(),
        // Releases without the column have one policy for all protocols.
        dispatch: word("Dispatch").unwrap_or("default").to_owned(),
        quote: quote.clone(),
    };
    if netisr(snapshot).protocols.len() < Snapshot::LINES {
        netisr(snapshot).protocols.insert(name.to_owned(), protocol);
    } else {
        snapshot.omitted += 1;
    }
    true
}

fn workstream(
    titles: &[String],
    text: &str,
    quote: &Quote,
    seen: &mut HashSet<(u32, String)>,
    snapshot: &mut Snapshot,
) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |title| below(titles, &words, title)?.parse::<u64>().ok();
    let (Some(name), Some(handled)) = (below(titles, &words, "Name"), number("Handled")) else {
        return false;
    };
    let Some(cpu) = number("CPU").and_then(|cpu| u32::try_from(cpu).ok()) else { return false };
    let Some(dropped) = number("QDrops") else { return false };
    let key = (cpu, name.to_owned());
    if seen.len() >= Snapshot::NAMES || !seen.insert(key.clone()) {
        return true;
    }
    let streams = &mut netisr(snapshot).workstreams;
    let has_room = streams.len() < Snapshot::NAMES;
    let counter = |value| Counter::new(value, quote.clone());
    match streams.get_mut(&key) {
        Some(stream) => {
            stream.handled.again(handled, quote.clone());
            stream.dropped.again(dropped, quote.clone());
        }
        None if has_room => {
            let stream = Workstream { handled: counter(handled), dropped: counter(dropped) };
            streams.insert(key, stream);
        }
        None => snapshot.omitted += 1,
    }
    true
}
