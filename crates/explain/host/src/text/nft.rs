//! `nft list ruleset`, `nft list flowtables` and parts of them (libnftables' rule.c), a rule set as people write it (nft(8)),
//! and `fw4 print` of OpenWrt. Read are flowtables, and of the rules what [`super::nft_rule`] makes of them.

use super::nft_rule::{Chain, Rules};
use super::{Context, Line, Outcome, Section, Tool, sysctl_machine};
use crate::netfilter::{Flowtable, Netfilter};
use crate::{Quote, Snapshot, System};

/// Bytes of a statement that are kept: a set of a few thousand elements is none that matters.
const LONGEST: usize = 16 * 1024;
/// Blocks within each other: a table has chains, sets and flowtables, and these have none.
const DEEPEST: usize = 8;

pub(super) static TOOL: Tool = Tool {
    name: "nft list",
    command: |command| {
        let is_json = command.text.split_whitespace().any(|word| matches!(word, "-j" | "--json"));
        matches!(command.program, "nft" | "fw4") && !is_json
    },
    heading: |line| matches!(Block::parse(line.trim_end().trim_end_matches('{'), &[]), Some(Block::Table(_)) | Some(Block::Flowtable(_)) if line.contains('{')),
    open: |context| Box::new(Ruleset::requested_by(context)),
};

/// What stands between braces.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    /// Family and name.
    Table(String),
    Chain(String),
    Flowtable(usize),
    /// A set, map or object.
    Other,
}

impl Block {
    /// The block that these words open, within others. A flowtable's place is not known yet.
    fn parse(words: &str, within: &[Block]) -> Option<Block> {
        let mut words = words.split_whitespace();
        // As a command: `add table inet x {`.
        let first =
            words.next().filter(|word| !matches!(*word, "add" | "create")).or_else(|| words.next())?;
        let rest: Vec<&str> = words.collect();
        match (first, &rest[..]) {
            ("table", [family, name]) if FAMILIES.contains(family) => {
                Some(Block::Table(format!("{family} {name}")))
            }
            ("table", [name]) => Some(Block::Table(format!("ip {name}"))),
            ("flowtable", [.., name]) if is_name(name) => Some(Block::Flowtable(0)),
            ("chain", [.., name]) if !within.is_empty() => Some(Block::Chain((*name).to_owned())),
            (
                "set" | "map" | "ct" | "counter" | "quota" | "limit" | "secmark" | "synproxy" | "meter",
                [_, ..],
            ) if within.len() == 1 => Some(Block::Other),
            _ => None,
        }
    }
}

const FAMILIES: [&str; 6] = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-./\\".contains(&c))
}

/// The listing while it is being read.
#[derive(Default)]
struct Ruleset {
    blocks: Vec<Block>,
    statement: String,
    /// Braces of a set that are open within the statement.
    inner: usize,
    is_quoted: bool,
    rules: Rules,
    /// The listing requested: every flowtable, and every rule.
    all: All,
    /// The prompt, which is the evidence where the command prints nothing.
    prompt: Option<Quote>,
    has_lines: bool,
    /// Whether another line than those of a rule set stood in it.
    is_refused: bool,
}

/// What a command lists wholly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum All {
    #[default]
    Nothing,
    Flowtables,
    Rules,
}

impl All {
    /// What a command lists: `nft list ruleset`, `nft list flowtables`, both without a filter behind.
    pub(super) fn of(context: &Context) -> All {
        // A family behind it, output that goes elsewhere, or errors that do: then what is missing may be there.
        let words = context.command.as_deref().unwrap_or_default().split_whitespace();
        let words: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
        match words[..] {
            _ if context.is_filtered() => All::Nothing,
            ["nft", "list", "ruleset"] => All::Rules,
            ["nft", "list", "flowtables"] => All::Flowtables,
            _ => All::Nothing,
        }
    }

    /// Notes that everything was listed.
    pub(super) fn note(self, quote: &Quote, snapshot: &mut Snapshot) {
        let netfilter = &mut snapshot.netfilter;
        if self != All::Nothing {
            netfilter.listed.get_or_insert_with(|| quote.clone());
        }
        if self == All::Rules {
            netfilter.ruleset.get_or_insert_with(|| quote.clone());
        }
    }
}

impl Ruleset {
    fn requested_by(context: &Context) -> Ruleset {
        Ruleset { all: All::of(context), prompt: context.prompt.clone(), ..Ruleset::default() }
    }

    fn table(&self) -> &str {
        let name = self.blocks.iter().find_map(|block| match block {
            Block::Table(name) => Some(name.as_str()),
            _ => None,
        });
        name.unwrap_or_default()
    }

    fn open(&mut self, quote: &Quote, snapshot: &mut Snapshot) {
        let statement = std::mem::take(&mut self.statement);
        let Some(block) = Block::parse(&statement, &self.blocks).filter(|_| self.blocks.len() < DEEPEST)
        else {
            self.statement = statement;
            self.statement.push('{');
            self.inner += 1;
            return;
        };
        let block = match block {
            Block::Flowtable(_) => {
                let name = statement.split_whitespace().last().unwrap_or_default();
                Block::Flowtable(begin(self.table(), name, quote, snapshot))
            }
            Block::Chain(name) => {
                self.rules.begin(Chain { table: self.table().to_owned(), name: name.clone() });
                Block::Chain(name)
            }
            block => block,
        };
        self.blocks.push(block);
    }

    fn close(&mut self, quote: &Quote, snapshot: &mut Snapshot) {
        if let Some(inner) = self.inner.checked_sub(1) {
            self.inner = inner;
            self.statement.push('}');
            return;
        }
        self.finish_statement(quote, snapshot);
        if let Some(Block::Flowtable(place)) = self.blocks.pop()
            && let Some(table) = snapshot.netfilter.flowtables.get_mut(place)
        {
            table.hardware.get_or_insert(false);
        }
    }

    fn finish_statement(&mut self, quote: &Quote, snapshot: &mut Snapshot) {
        let statement = std::mem::take(&mut self.statement);
        let statement = statement.trim();
        match self.blocks.last() {
            Some(Block::Flowtable(place)) => {
                if let Some(table) = snapshot.netfilter.flowtables.get_mut(*place) {
                    attribute(table, statement, quote);
                }
            }
            Some(Block::Chain(_)) if !statement.is_empty() => {
                self.rules.statement(statement, quote, snapshot)
            }
            _ => {}
        }
    }

    /// Reads a line letter by letter; false where it is none of a rule set.
    fn read(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> bool {
        let quote = line.quote();
        for letter in line.trimmed().chars() {
            match letter {
                '"' => self.is_quoted = !self.is_quoted,
                '#' if !self.is_quoted => break,
                '{' if !self.is_quoted => {
                    self.open(&quote, snapshot);
                    continue;
                }
                '}' if !self.is_quoted => {
                    if self.blocks.is_empty() {
                        return false;
                    }
                    self.close(&quote, snapshot);
                    continue;
                }
                ';' if !self.is_quoted && self.inner == 0 => {
                    self.finish_statement(&quote, snapshot);
                    continue;
                }
                _ => {}
            }
            if self.statement.len() < LONGEST {
                self.statement.push(letter);
            }
        }
        self.is_quoted = false;
        if self.inner == 0 && !self.statement.ends_with('\\') {
            self.finish_statement(&quote, snapshot);
        } else {
            let length = self.statement.trim_end_matches('\\').len();
            self.statement.truncate(length);
            self.statement.push(' ');
        }
        true
    }
}

impl Section for Ruleset {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if text.is_empty() {
            return Outcome::Skipped;
        }
        if self.blocks.is_empty() {
            if matches!(text, "flush ruleset") || text.starts_with("flush table ") || text.starts_with("#!") {
                return Outcome::Skipped;
            }
            let is_whole = text.starts_with("table ") && !text.contains('{') && self.has_lines;
            if is_whole {
                return Outcome::Skipped;
            }
            let head = text.split('{').next().unwrap_or(text);
            if !text.contains('{') || Block::parse(head, &[]).is_none() {
                self.is_refused |= !self.has_lines || is_interrupted(text);
                return Outcome::Over;
            }
        }
        if !self.read(line, snapshot) {
            return Outcome::Over;
        }
        self.has_lines = true;
        sysctl_machine::infer(snapshot, System::Linux, &line.quote());
        Outcome::Taken
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        // A command that printed nothing says that there is nothing.
        if self.is_refused || !self.blocks.is_empty() {
            return;
        }
        if let Some(prompt) = self.prompt.take() {
            self.all.note(&prompt, snapshot);
        }
    }

    fn cut(&mut self, snapshot: &mut Snapshot) {
        // Whether it would have printed something, nobody knows.
        if self.has_lines {
            self.end(snapshot);
        }
    }
}

/// Whether a line says that the listing is not whole: an error of netlink, or what somebody cut.
fn is_interrupted(line: &str) -> bool {
    ["netlink: ", "Error: ", "[...", "...", "[…", "…"].iter().any(|word| line.starts_with(word))
}

/// The place of a flowtable of that name: the one that is known, which is read anew, or another.
pub(super) fn begin(table: &str, name: &str, quote: &Quote, snapshot: &mut Snapshot) -> usize {
    let known = &mut snapshot.netfilter.flowtables;
    let fresh = Flowtable {
        table: table.to_owned(),
        name: name.to_owned(),
        devices: Vec::new(),
        hardware: None,
        priority: None,
        counter: false,
        quote: quote.clone(),
    };
    let same = |one: &Flowtable| one.name == name && (one.table == table || table.is_empty());
    if let Some(place) = known.iter().position(same) {
        if let Some(known) = known.get_mut(place) {
            *known = Flowtable { table: known.table.clone(), ..fresh };
        }
        return place;
    }
    if known.len() < Netfilter::MOST {
        known.push(fresh);
        known.len() - 1
    } else {
        snapshot.omitted += 1;
        usize::MAX
    }
}

/// A statement of a flowtable: `hook ingress priority filter`, `devices = { "lan1", wan }`, `flags offload`, `counter`.
fn attribute(table: &mut Flowtable, statement: &str, quote: &Quote) {
    if let Some(devices) = statement.strip_prefix("devices") {
        let names = devices.split(|c: char| c.is_whitespace() || matches!(c, '=' | '{' | '}' | ',' | '"'));
        table.devices = names
            .filter(|name| !name.is_empty() && name.len() < 16)
            .take(Snapshot::INTERFACES)
            .map(str::to_owned)
            .collect();
        table.quote = quote.clone();
    }
    if let Some((_, priority)) = statement.strip_prefix("hook ").and_then(|hook| hook.split_once("priority "))
    {
        table.priority = Some(priority.trim().to_owned());
    }
    table.counter |= statement == "counter";
    if let Some(flags) = statement.strip_prefix("flags") {
        table.hardware = Some(flags.split([' ', ',', ';']).any(|flag| flag == "offload"));
    }
}
