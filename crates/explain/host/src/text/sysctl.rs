//! `sysctl`: FreeBSD's `name: value` and, with `-e`, `name=value`; NetBSD's and Linux's `name = value`.
//!
//! All of it goes to the snapshot's sysctls by name. What some of them say about devices and about the machine is
//! read in [`super::freebsd_devices`] and [`super::sysctl_machine`].

use super::{Context, Line, Outcome, Section, Tool, freebsd_devices, sysctl_machine};
use crate::{Fact, Observed, Quote, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "sysctl",
    command: |command| command.program == "sysctl",
    heading: is_heading,
    open: |context| Box::new(Settings::of_command(context)),
};

/// First parts of names, of the three systems (`sysctl -N -a`).
const ROOTS: [&str; 20] = [
    "abi", "compat", "crypto", "ddb", "debug", "dev", "emul", "fs", "hw", "kern", "kernel", "kstat",
    "machdep", "net", "proc", "security", "sunrpc", "user", "vfs", "vm",
];

/// Names under these are settings wherever they stand: a message or a sentence does not begin with one.
const HEADINGS: [&str; 12] = [
    "net.isr.",
    "net.inet.",
    "net.core.",
    "net.ipv4.",
    "net.ipv6.",
    "net.netfilter.",
    "net.bridge.",
    "net.link.",
    "dev.",
    "hw.",
    "kern.",
    "machdep.",
];

fn is_heading(line: &str) -> bool {
    HEADINGS.iter().any(|root| line.starts_with(root))
        && Assignment::parse(line).is_some_and(|one| one.form != Form::Equals)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `name: value`
    Colon,
    /// `name = value`
    Spaced,
    /// `name=value`, which a configuration file has, too.
    Equals,
}

struct Assignment<'a> {
    name: &'a str,
    value: &'a str,
    form: Form,
}

impl<'a> Assignment<'a> {
    fn parse(text: &'a str) -> Option<Assignment<'a>> {
        let root = text.split('.').next().filter(|root| ROOTS.contains(root))?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '%' | '/' | '@');
        let end = text.find(|c| !is_part(c))?;
        let (name, rest) = text.split_at_checked(end)?;
        if name.len() <= root.len() + 1 || name.split('.').any(str::is_empty) {
            return None;
        }
        let (form, value) = if let Some(value) = rest.strip_prefix(" = ") {
            (Form::Spaced, value)
        } else if let Some(value) = rest.strip_prefix('=') {
            (Form::Equals, value)
        } else {
            let value = rest.strip_prefix(':')?;
            (Form::Colon, value.strip_prefix(' ').or(Some("").filter(|_| value.is_empty()))?)
        };
        Some(Assignment { name, value: value.trim(), form })
    }
}

struct Settings {
    /// The command requested it, so that `name=value` is output and no configuration file.
    is_output: bool,
    /// The one name of `sysctl -n name`, whose output is a value alone.
    bare: Option<String>,
}

impl Settings {
    fn of_command(context: &Context) -> Settings {
        let command = context.command.as_deref().filter(|command| command.contains("sysctl"));
        let mut is_bare = false;
        let mut names = Vec::new();
        let words = command.unwrap_or_default().split_whitespace().skip(1);
        for word in words.take_while(|word| !matches!(*word, "|" | ">" | ";" | "&&")) {
            match word.strip_prefix('-') {
                Some(flags) => is_bare |= flags.contains('n'),
                None => names.push(word),
            }
        }
        let bare = match names.as_slice() {
            [name] if is_bare && name.contains('.') && !name.contains('=') => Some((*name).to_owned()),
            _ => None,
        };
        Settings { is_output: command.is_some(), bare }
    }
}

impl Section for Settings {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        let assignment = Assignment::parse(text).filter(|one| self.is_output || one.form != Form::Equals);
        let quote = line.quote();
        match assignment {
            Some(Assignment { name, value, .. }) => {
                // What a change prints: `name: before -> after`.
                match value.split_once(" -> ") {
                    Some((before, after)) => {
                        note(name, before, &quote, snapshot);
                        note(name, after, &quote, snapshot);
                    }
                    None => note(name, value, &quote, snapshot),
                }
                Outcome::Taken
            }
            None if text.is_empty() => Outcome::Skipped,
            None if text.starts_with("sysctl:") => Outcome::Skipped,
            None => match self.bare.take() {
                Some(name) => {
                    note(&name, text, &quote, snapshot);
                    Outcome::Taken
                }
                // A value of several lines, or the end: the next name shows which.
                None => Outcome::Skipped,
            },
        }
    }
}

fn note(name: &str, value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let fact = Fact::new(value.to_owned(), quote.clone());
    if !Observed::note_at(&mut snapshot.sysctls, name, fact, Snapshot::NAMES) {
        snapshot.omitted += 1;
        return;
    }
    sysctl_machine::note(name, value, quote, snapshot);
    freebsd_devices::note(name, value, quote, snapshot);
}
