//! A line as sections see it, and what the lines before it said.

use super::kept::Kept;
use crate::{Fact, Quote};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A line of a text.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Without its end and without marks of mail quoting.
    pub text: &'a str,
    /// What findings call the text.
    pub source: &'a Arc<str>,
    /// From 1.
    pub number: u64,
    /// The command whose output it is.
    pub command: Option<&'a Arc<str>>,
    pub kept: &'a Mutex<Kept>,
}

impl<'a> Line<'a> {
    /// What waits for other lines.
    pub fn kept(&self) -> MutexGuard<'a, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without the blanks around it.
    pub(crate) fn trimmed(&self) -> &str {
        trim(self.text)
    }

    /// As evidence.
    pub fn quote(&self) -> Quote {
        Quote::new(self.source, self.number, self.command, self.text)
    }

    /// What it says, with itself as evidence.
    pub fn fact<T>(&self, value: T) -> Fact<T> {
        Fact::new(value, self.quote())
    }
}

/// What the lines before said.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    /// The last command at a prompt.
    pub command: Option<Arc<str>>,
    /// The line on which it stands.
    pub prompt: Option<Quote>,
    /// The interface that it names; `None` where it names none.
    pub requested: Option<String>,
    /// The interface that a command named last, this one or one before.
    pub interface: Option<String>,
    /// Whether output without a name is of an interface that nobody knows, and of which one of several where
    /// `is_several`.
    pub is_unknown: bool,
    /// Whether the last command that was about an interface named several.
    pub is_several: bool,
    /// Prompts before.
    pub prompts: u64,
    /// Texts, and samples of bundles, before.
    pub rounds: u64,
    /// The file that the command reads (`/proc/interrupts`).
    pub path: Option<String>,
    /// What waits for other lines to make a fact with, wherever they stand.
    pub kept: Arc<Mutex<Kept>>,
}

impl Context {
    /// What waits for other lines.
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the command shows only part of what the tool printed (`| head`, `| grep`).
    pub fn is_filtered(&self) -> bool {
        self.command.as_ref().is_some_and(|command| command.contains('|'))
    }

    /// The interface that output without a name of its own is about: the one last named, or the unnamed one.
    pub fn interface(&self) -> &str {
        self.interface.as_deref().unwrap_or_default()
    }
}

/// Whether a word is one of a list of words with a blank between them.
pub(super) fn is_word_of(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// Which of two words it is: `true` for the first, `None` for any other word.
pub(crate) fn one_of_two(word: &str, yes: &str, no: &str) -> Option<bool> {
    [(yes, true), (no, false)].into_iter().find_map(|(known, is_first)| (word == known).then_some(is_first))
}

/// [`str::trim`], which decodes characters; nearly every line begins and ends with ASCII.
pub(super) fn trim(text: &str) -> &str {
    let ascii = text.trim_ascii();
    let is_end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_graphic);
    let bytes = ascii.as_bytes();
    if is_end(bytes.first()) && is_end(bytes.last()) { ascii } else { text.trim() }
}

/// [`str::trim_start`] in the same way.
pub(super) fn trim_start(text: &str) -> &str {
    let ascii = text.trim_ascii_start();
    if ascii.as_bytes().first().is_none_or(u8::is_ascii_graphic) { ascii } else { text.trim_start() }
}

/// The line without its end and without the `>` that mail programs put before what they quote.
pub(super) fn unquoted(text: &str) -> &str {
    let mut text = text;
    // One byte after the other: a search for two characters costs more than the rest of a line.
    while let Some(rest) = text.strip_suffix('\n').or_else(|| text.strip_suffix('\r')) {
        text = rest;
    }
    while let Some(rest) = text.strip_prefix('>') {
        text = rest.strip_prefix(' ').unwrap_or(rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_and_line_ends_are_no_part_of_a_line() {
        assert_eq!(unquoted("     rx_queue_0_packets: 1\r\n"), "     rx_queue_0_packets: 1");
        assert_eq!(unquoted("> > driver: igb\n"), "driver: igb");
        assert_eq!(unquoted(">>driver: igb"), "driver: igb");
        assert_eq!(unquoted("\n"), "");
    }

    #[test]
    fn blanks_are_those_of_unicode() {
        for text in [
            "",
            " ",
            "a",
            "  a b\t",
            "\u{b}a\u{b}",
            "\u{a0}a\u{2003}",
            "\u{1f}a",
            "é ",
            " \u{85}",
            "\u{feff}a ",
        ] {
            assert_eq!(trim(text), text.trim(), "{text:?}");
            assert_eq!(trim_start(text), text.trim_start(), "{text:?}");
        }
    }
}
