//! Facts that remember the line they were read from.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Characters of a line that a quote keeps.
const LONGEST: usize = 240;

/// A line as it was read: what a finding shows as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The file, `standard input` or `this machine`.
    pub source: Arc<str>,
    /// The line's number in it, from 1.
    pub line: u64,
    /// The command whose output the line belongs to (`ethtool -S eth0`), where the text says.
    pub command: Option<Arc<str>>,
    /// The line without the blanks around it, at most 240 characters, control characters replaced.
    pub text: Arc<str>,
}

impl Quote {
    /// A quote of `text`.
    pub fn new(source: &Arc<str>, line: u64, command: Option<&Arc<str>>, text: &str) -> Quote {
        let text = text.trim();
        // A counter is quoted for every line of a long text: the ordinary line is copied as it stands.
        if text.len() <= LONGEST && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Quote { source: Arc::clone(source), line, command: command.cloned(), text: text.into() };
        }
        let printable = text.chars().map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        });
        let mut kept: String = printable.clone().take(LONGEST).collect();
        if printable.clone().nth(LONGEST).is_some() {
            kept.push('…');
        }
        Quote { source: Arc::clone(source), line, command: command.cloned(), text: kept.into() }
    }

    /// Where the line stands, as evidence names it: `ethtool -S eth0 (paste.txt, line 12)`.
    pub fn from(&self) -> String {
        match &self.command {
            Some(command) => format!("{command} ({}, line {})", self.source, self.line),
            None => format!("{}, line {}", self.source, self.line),
        }
    }
}

impl fmt::Display for Quote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.from(), self.text)
    }
}

/// A value with the line that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact<T> {
    pub value: T,
    pub quote: Quote,
}

impl<T> Fact<T> {
    pub fn new(value: T, quote: Quote) -> Fact<T> {
        Fact { value, quote }
    }
}

/// A setting that a text may show several times: as it was first, and as it was last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed<T> {
    former: Option<Fact<T>>,
    latest: Fact<T>,
}

impl<T: PartialEq> Observed<T> {
    /// Read once.
    pub fn once(fact: Fact<T>) -> Observed<T> {
        Observed { former: None, latest: fact }
    }

    /// Read again. A value that did not change leaves the first line in place.
    pub fn again(&mut self, fact: Fact<T>) {
        if self.latest.value != fact.value {
            let replaced = std::mem::replace(&mut self.latest, fact);
            self.former.get_or_insert(replaced);
        }
    }

    /// Puts the value, if there is one, into `slot`, whether or not something is there.
    pub(crate) fn note(slot: &mut Option<Observed<T>>, value: impl Into<Option<T>>, quote: &Quote) {
        let Some(value) = value.into() else { return };
        let fact = Fact::new(value, quote.clone());
        match slot {
            Some(observed) => observed.again(fact),
            None => *slot = Some(Observed::once(fact)),
        }
    }

    /// Puts `fact` into the slot of that name; false where `most` others are known.
    pub(crate) fn note_at(
        settings: &mut BTreeMap<String, Observed<T>>,
        name: &str,
        fact: Fact<T>,
        most: usize,
    ) -> bool {
        if let Some(observed) = settings.get_mut(name) {
            observed.again(fact);
            return true;
        }
        let has_room = settings.len() < most;
        if has_room {
            settings.insert(name.to_owned(), Observed::once(fact));
        }
        has_room
    }
}

impl<T> Observed<T> {
    /// The value as it was last.
    pub fn get(&self) -> &T {
        &self.latest.value
    }

    /// The line that says so.
    pub fn quote(&self) -> &Quote {
        &self.latest.quote
    }

    /// The first value, where a later line says another.
    pub fn former(&self) -> Option<&Fact<T>> {
        self.former.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote(line: u64, text: &str) -> Quote {
        Quote::new(&"paste.txt".into(), line, Some(&"ethtool -S eth0".into()), text)
    }

    #[test]
    fn a_quote_names_its_place_and_is_printable() {
        let quote = quote(12, "   rx_queue_0_packets:\t7\x1b[31m  ");
        assert_eq!(
            quote.to_string(),
            "ethtool -S eth0 (paste.txt, line 12): rx_queue_0_packets: 7\u{fffd}[31m"
        );
        assert_eq!(Quote::new(&"x".into(), 1, None, &"y".repeat(500)).text.chars().count(), LONGEST + 1);
    }

    #[test]
    fn a_setting_remembers_its_first_value_once_it_changed() {
        let mut seen = Observed::once(Fact::new("sd", quote(1, "first")));
        seen.again(Fact::new("sd", quote(2, "same")));
        assert_eq!((seen.former(), seen.quote().line), (None, 1));
        seen.again(Fact::new("sdfn", quote(3, "then")));
        seen.again(Fact::new("sd", quote(4, "last")));
        assert_eq!((*seen.get(), seen.former().map(|fact| fact.quote.line)), ("sd", Some(1)));
    }
}
