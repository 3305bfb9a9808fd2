//! OpenWrt's settings: `uci show CONFIG` (`firewall.@defaults[0].flow_offloading='1'`), `uci get`, and the files below
//! `/etc/config` themselves (`config defaults`, then `option flow_offloading '1'`); uci's cli.c and file.c.
//!
//! A setting is known by configuration, type of its section and option: sections are numbered or named as somebody liked. That
//! a section with such settings was printed is kept, too: an option that it lacks has its default. Of everything else in these
//! files, passwords among it, nothing is kept.

use super::{Context, Line, Outcome, Section, Tool, sysctl_machine};
use crate::{Fact, Observed, Quote, Snapshot, System};
use std::collections::BTreeMap;

/// Settings that are kept: configuration, type of the section, option.
pub(crate) const KEPT: [[&str; 3]; 5] = [
    ["firewall", "defaults", "flow_offloading"],
    ["firewall", "defaults", "flow_offloading_hw"],
    ["network", "globals", "packet_steering"],
    ["network", "globals", "steering_flows"],
    ["irqbalance", "irqbalance", "enabled"],
];

/// Named sections whose type is remembered.
const SECTIONS: usize = 1024;

pub(super) static TOOL: Tool = Tool {
    name: "uci show",
    command: |command| {
        command.program == "uci" || command.path.is_some_and(|path| path.starts_with("/etc/config/"))
    },
    heading: is_heading,
    open: |context| Box::new(Settings::requested_by(context)),
};

fn is_heading(line: &str) -> bool {
    // A section of a file says nothing of its configuration but by its type.
    if let Some(section) = section(line) {
        return KEPT.iter().any(|[_, kind, _]| *kind == section);
    }
    Assignment::parse(line).is_some_and(|one| {
        KEPT.iter().any(|[config, ..]| *config == one.config) && (one.section.starts_with(['@', 'c']))
            || KEPT.iter().any(|[config, kind, _]| *config == one.config && *kind == one.section)
    })
}

/// The type in `config defaults` and `config globals 'globals'`.
pub(crate) fn section(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("config ")?.split_whitespace().map(unquoted);
    let kind = words.next().filter(|kind| is_identifier(kind))?;
    (words.count() <= 1).then_some(kind)
}

/// `firewall.@defaults[0].flow_offloading='1'`, or without an option `firewall.cfg01e63d=defaults`.
struct Assignment<'a> {
    config: &'a str,
    section: &'a str,
    option: Option<&'a str>,
    value: &'a str,
}

impl<'a> Assignment<'a> {
    fn parse(line: &'a str) -> Option<Assignment<'a>> {
        let (name, value) = line.split_once('=')?;
        let mut parts = name.split('.');
        let (config, section, option) = (parts.next()?, parts.next()?, parts.next());
        let bare = section.strip_prefix('@').and_then(|section| section.strip_suffix(']'));
        let is_section = is_identifier(section)
            || bare.and_then(|section| section.split_once('[')).is_some_and(|(kind, _)| is_identifier(kind));
        let is_name = is_identifier(config) && is_section && option.is_none_or(is_identifier);
        (is_name && parts.next().is_none()).then_some(Assignment {
            config,
            section,
            option,
            value: unquoted(value),
        })
    }
}

fn is_identifier(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'))
}

pub(crate) fn unquoted(word: &str) -> &str {
    let word = word.trim();
    ['\'', '"'].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(word)
}

/// The output of one command, or one file.
#[derive(Default)]
struct Settings {
    /// Type of the section of a file that is read.
    kind: Option<String>,
    /// Types of sections that `uci show` named, by configuration and section.
    kinds: BTreeMap<(String, String), String>,
    /// The setting of `uci get`, whose output is its value alone.
    requested: Option<String>,
}

impl Settings {
    fn requested_by(context: &Context) -> Settings {
        let mut words = context.command.as_deref().unwrap_or_default().split_whitespace();
        let is_get = words.by_ref().any(|word| word == "get");
        let requested = words.find(|word| !word.starts_with('-')).filter(|_| is_get).map(str::to_owned);
        Settings { requested, ..Settings::default() }
    }

    /// The type of a section: written in its number, else said before, else its name, as that of `network.globals`.
    fn kind_of<'s>(&'s self, config: &str, section: &'s str) -> &'s str {
        if let Some((kind, _)) = section.strip_prefix('@').and_then(|section| section.split_once('[')) {
            return kind;
        }
        let known = self.kinds.get(&(config.to_owned(), section.to_owned()));
        known.map_or(section, String::as_str)
    }

    fn assigned(&mut self, one: &Assignment<'_>, quote: &Quote, snapshot: &mut Snapshot) {
        match one.option {
            Some(option) => {
                note(one.config, self.kind_of(one.config, one.section), option, one.value, quote, snapshot)
            }
            None if self.kinds.len() < SECTIONS => {
                note_section(one.config, one.value, quote, snapshot);
                self.kinds.insert((one.config.to_owned(), one.section.to_owned()), one.value.to_owned());
            }
            None => {}
        }
    }
}

impl Section for Settings {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        let quote = line.quote();
        if let Some(kind) = section(text) {
            if let Some([config, ..]) = KEPT.iter().find(|[_, known, _]| *known == kind) {
                note_section(config, kind, &quote, snapshot);
            }
            self.kind = Some(kind.to_owned());
            return taken(&quote, snapshot);
        }
        if let Some(kind) = &self.kind {
            let mut words = text.splitn(3, char::is_whitespace);
            return match (words.next(), words.next(), words.next()) {
                (Some("option" | "list"), Some(option), value) => {
                    let config = KEPT.iter().find(|[_, known, _]| known == kind).map(|[config, ..]| *config);
                    if let (Some(config), Some(value)) = (config, value) {
                        note(config, kind, unquoted(option), unquoted(value), &quote, snapshot);
                    }
                    Outcome::Taken
                }
                _ if text.is_empty() || text.starts_with('#') => Outcome::Skipped,
                _ => Outcome::Over,
            };
        }
        if let Some(one) = Assignment::parse(text) {
            self.assigned(&one, &quote, snapshot);
            return taken(&quote, snapshot);
        }
        match self.requested.take() {
            Some(name) if !text.is_empty() && !text.starts_with("uci:") => {
                let line = format!("{name}={text}");
                if let Some(one) = Assignment::parse(&line) {
                    self.assigned(&one, &quote, snapshot);
                    return taken(&quote, snapshot);
                }
                Outcome::Over
            }
            _ if text.is_empty() => Outcome::Skipped,
            _ => Outcome::Over,
        }
    }
}

fn taken(quote: &Quote, snapshot: &mut Snapshot) -> Outcome {
    sysctl_machine::infer(snapshot, System::Linux, quote);
    Outcome::Taken
}

/// Notes that a section was printed, where some of its options are kept.
fn note_section(config: &str, kind: &str, quote: &Quote, snapshot: &mut Snapshot) {
    if KEPT.iter().any(|[of, known, _]| [*of, *known] == [config, kind]) {
        let fact = Fact::new("shown".to_owned(), quote.clone());
        Observed::note_at(&mut snapshot.uci, &format!("{config}.{kind}"), fact, Snapshot::NAMES);
    }
}

fn note(config: &str, kind: &str, option: &str, value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    if KEPT.contains(&[config, kind, option]) {
        let name = format!("{config}.{kind}.{option}");
        let fact = Fact::new(value.to_owned(), quote.clone());
        Observed::note_at(&mut snapshot.uci, &name, fact, Snapshot::NAMES);
    }
}
