//! Reads whatever text people paste: outputs of many tools in any order, with or without prompts, of several
//! interfaces, several samples, half a table. One pass, line by line.
//!
//! A line goes, in this order, to: the bundle's own comments; a shell prompt with a command that is known
//! ([`command`]), which opens the [`Section`] of its output; the section that is open; a heading that opens
//! another one; the kernel log, whose lines stand anywhere. What nobody takes is prose.
//!
//! To add a tool: write a module with a `TOOL` and its section, and put it into [`TOOLS`].

mod command;
mod ethtool_rings;
mod line;

use crate::{Snapshot, Unread};
use command::Command;
use line::{Context, Line};
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::time::Duration;

/// Octets of a line that are looked at; `/proc/interrupts` of 4,096 CPUs fits.
const LONGEST_LINE: u64 = 64 * 1024;

/// What became of a line that was offered to a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It belongs to the output, and was read.
    Taken,
    /// It tells nothing, or something else may open with it; the output may go on after it.
    Skipped,
    /// The output ended before it.
    Over,
}

/// The output of one tool, while it is being read.
trait Section {
    /// Takes a line, the heading that opened the section among them.
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate;

    /// Called once when the output ends, for what only its whole tells.
    fn end(&mut self, _snapshot: &mut Snapshot) {}
}

/// A tool whose output can be read.
struct Tool {
    /// The command as people write it, `ethtool -S`.
    name: &'static str,
    /// Whether this command prints such output.
    command: fn(&Command<'_>) -> bool,
    /// Whether this line, without the blanks around it, opens such output where no command was seen. It must not
    /// be a line that prose or another tool could contain.
    heading: fn(&str) -> bool,
    /// A section in its initial state.
    open: fn(&Context) -> Box<dyn Section>,
}

/// Every tool, in the order in which headings are tried.
static TOOLS: &[&Tool] = &[&ethtool_rings::TOOL];

/// Reads texts into a [`Snapshot`].
#[derive(Default)]
pub struct Reader {
    snapshot: Snapshot,
    context: Context,
    open: Option<(&'static Tool, Box<dyn Section>)>,
    /// When the first and the latest sample were taken, seconds.
    samples: Option<(f64, f64)>,
}

impl Reader {
    /// A reader that has read nothing.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Reads `text` to its end; `name` is what findings call it. What was read before stays: the same counter in
    /// a second text is its second sample. Errors: those of `text`; what came before one is kept.
    pub fn read(&mut self, name: &str, mut text: impl BufRead) -> io::Result<()> {
        let source: Arc<str> = name.into();
        self.context = Context::default();
        let mut octets = Vec::new();
        let mut number = 0;
        let result = loop {
            octets.clear();
            match (&mut text).take(LONGEST_LINE).read_until(b'\n', &mut octets) {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
            let is_cut = octets.last() != Some(&b'\n') && octets.len() as u64 == LONGEST_LINE;
            if is_cut && let Err(error) = skip_line(&mut text) {
                break Err(error);
            }
            number += 1;
            self.line(&source, number, &String::from_utf8_lossy(&octets));
        };
        self.close();
        result
    }

    /// What all texts said together.
    pub fn finish(mut self) -> Snapshot {
        self.close();
        self.snapshot.interval = self
            .samples
            .and_then(|(first, latest)| Duration::try_from_secs_f64(latest - first).ok())
            .filter(|interval| !interval.is_zero());
        self.snapshot
    }

    fn line(&mut self, source: &Arc<str>, number: u64, text: &str) {
        let text = line::unquoted(text);
        if self.bundle_comment(text) {
            return;
        }
        if let Some(command) = Command::at_prompt(text) {
            self.command(&command);
            return;
        }
        let command = self.context.command.clone();
        let line = Line { text, source, number, command: command.as_ref() };
        let fate = match &mut self.open {
            Some((tool, section)) => {
                let fate = section.line(&line, &mut self.snapshot);
                if fate == Fate::Taken {
                    note_read(&mut self.snapshot, tool.name, &line);
                }
                fate
            }
            None => Fate::Over,
        };
        if fate == Fate::Taken {
            return;
        }
        if fate == Fate::Over {
            self.close();
        }
        self.heading(&line);
    }

    /// Opens the section that this line is the heading of, if it is one.
    fn heading(&mut self, line: &Line<'_>) {
        let Some(tool) = TOOLS.iter().find(|tool| (tool.heading)(line.trimmed())) else { return };
        self.close();
        let mut section = (tool.open)(&self.context);
        if section.line(line, &mut self.snapshot) != Fate::Over {
            note_read(&mut self.snapshot, tool.name, line);
            self.open = Some((tool, section));
        }
    }

    fn command(&mut self, command: &Command<'_>) {
        self.close();
        self.context.command = Some(command.text.into());
        if let Some(interface) = command.interface {
            self.context.interface = Some(interface.to_owned());
        }
        self.context.path = command.path.map(str::to_owned);
        self.context.asked_for = command.interface.map(str::to_owned);
        if let Some(tool) = TOOLS.iter().find(|tool| (tool.command)(command)) {
            self.open = Some((tool, (tool.open)(&self.context)));
        }
    }

    fn close(&mut self) {
        if let Some((_, mut section)) = self.open.take() {
            section.end(&mut self.snapshot);
        }
    }

    /// `# sample 2 at 17.5` and `# not read: …` of a bundle. Other comments look like a root prompt and are
    /// left to it.
    fn bundle_comment(&mut self, text: &str) -> bool {
        let Some(comment) = text.strip_prefix("# ") else { return false };
        if let Some(why) = comment.strip_prefix("not read: ") {
            if let Some(what) = &self.context.command {
                unread(&mut self.snapshot, what, why);
            }
            return true;
        }
        let Some((_, at)) = comment.strip_prefix("sample ").and_then(|rest| rest.split_once(" at ")) else {
            return false;
        };
        let Some(at) = at.split_whitespace().next().and_then(|at| at.parse::<f64>().ok()) else {
            return false;
        };
        let first = self.samples.map_or(at, |(first, _)| first);
        self.samples = Some((first, at));
        self.close();
        true
    }
}

/// Records that `what` could not be read.
fn unread(snapshot: &mut Snapshot, what: &str, why: &str) {
    let unread = Unread { what: what.to_owned(), why: why.trim().to_owned() };
    if snapshot.unread.contains(&unread) {
        return;
    }
    if snapshot.unread.len() < Snapshot::LINES {
        snapshot.unread.push(unread);
    } else {
        snapshot.omitted += 1;
    }
}

fn note_read(snapshot: &mut Snapshot, tool: &str, line: &Line<'_>) {
    if !snapshot.read.contains_key(tool) {
        snapshot.read.insert(tool.to_owned(), line.quote());
    }
}

/// Reads on to the end of the line without keeping it.
fn skip_line(text: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = text.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|&octet| octet == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        text.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}
