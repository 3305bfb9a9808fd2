//! JSON objects that `rxlane … --json` prints, on one line or over many.
//!
//! Fields of a later version are passed over, and so is an entry that does not hold what it should. An object that is no JSON, is of
//! another schema or ends with the text is not read at all.

use super::{Line, Outcome, Section};
use crate::{Fact, Quote, Snapshot, Xdp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Bytes of an object: 4,096 CPUs, each over five lines, take less than half of it.
const LONGEST: usize = 2 << 20;

/// Words that are kept of a list, and the bytes of such a word.
pub(super) const WORDS: usize = 64;
const LONGEST_WORD: usize = 64;

/// A kind of object.
pub(super) struct Kind {
    /// What the objects say of themselves.
    pub schema: &'static str,
    /// The command that prints them.
    pub command: &'static str,
    /// Reads a whole one. Errors: why nothing of it can be used.
    pub read: fn(&Object, &mut Snapshot) -> Result<(), String>,
}

impl Kind {
    /// Whether a line is a whole object, or the line of one over many that names the schema.
    pub fn is_heading(&self, line: &str) -> bool {
        let after = |text: &str, what: &str| text.trim_start().strip_prefix(what).map(str::to_owned);
        line.starts_with(['{', '"'])
            && line.contains(self.schema)
            && after(line.strip_prefix('{').unwrap_or(line), "\"schema\"")
                .and_then(|rest| after(&rest, ":"))
                .is_some_and(|value| value.trim_start().starts_with(&format!("\"{}\"", self.schema)))
    }

    /// A section that reads one.
    pub fn open(&'static self) -> Box<dyn Section> {
        Box::new(Object {
            kind: self,
            text: String::new(),
            lines: Vec::new(),
            depth: 0,
            begin: None,
            is_done: false,
        })
    }
}

/// The object while it is being read.
pub(super) struct Object {
    kind: &'static Kind,
    text: String,
    /// Where its lines begin in the text.
    lines: Vec<usize>,
    /// Braces and brackets that are open.
    depth: usize,
    /// Its first line.
    begin: Option<Begin>,
    is_done: bool,
}

struct Begin {
    source: Arc<str>,
    command: Option<Arc<str>>,
    line: u64,
}

impl Section for Object {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if self.is_done {
            return Outcome::Over;
        }
        if self.begin.is_none() {
            match text.as_bytes().first() {
                None => return Outcome::Skipped,
                Some(b'{') => {}
                // Somebody copied it without its first line.
                Some(b'"') if self.kind.is_heading(text) => {
                    self.text.push('{');
                    self.depth = 1;
                }
                Some(_) => return Outcome::Over,
            }
            let (source, command) = (Arc::clone(line.source), line.command.cloned());
            self.begin = Some(Begin { source, command, line: line.number });
        }
        let Some((depth, end)) = scan(text, self.depth) else { return Outcome::Over };
        if self.text.len() + end > LONGEST {
            return Outcome::Over;
        }
        self.lines.push(self.text.len());
        self.text.push_str(text.get(..end).unwrap_or(text));
        self.text.push('\n');
        self.depth = depth;
        self.is_done = depth == 0;
        if self.is_done
            && let Err(why) = (self.kind.read)(self, snapshot)
        {
            self.refuse(snapshot, &why);
        }
        Outcome::Taken
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        if !self.is_done {
            self.refuse(snapshot, "the object has no end");
        }
    }
}

/// Braces and brackets that are open behind a line of JSON, and where the object ends in it; `None` for what is no
/// such line.
fn scan(text: &str, mut depth: usize) -> Option<(usize, usize)> {
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => loop {
                // A string ends on its line.
                match bytes.next()?.1 {
                    b'"' => break,
                    b'\\' => _ = bytes.next()?,
                    _ => {}
                }
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some((0, at + 1));
                }
            }
            // Numbers, `true`, `false`, `null`.
            byte if b" \t,:0123456789+-.Etruefalsn".contains(&byte) => {}
            _ => return None,
        }
    }
    Some((depth, text.len()))
}

/// A part of the object as it is written, and what it says where it holds what it should: a bad one costs itself
/// alone.
pub(super) struct Part<'a, T> {
    pub raw: &'a str,
    pub value: Option<T>,
}

impl<'de: 'a, 'a, T: DeserializeOwned> Deserialize<'de> for Part<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(Part { raw, value: serde_json::from_str(raw).ok() })
    }
}

/// How a program is attached.
fn mode(word: &str) -> Option<Xdp> {
    match word {
        "native" => Some(Xdp::Native),
        "generic" => Some(Xdp::Generic),
        "off" => Some(Xdp::Off),
        _ => None,
    }
}

impl Object {
    /// How its program is attached. Errors: it does not say, or in another word.
    pub fn mode(&self, part: Option<&Part<'_, String>>) -> Result<Fact<Xdp>, String> {
        let known = part.and_then(|part| {
            let mode = mode(part.value.as_deref()?)?;
            Some(Fact::new(mode, self.quote(part.raw, "\"mode\": ")?))
        });
        known.ok_or_else(|| "its mode is none that is known".to_owned())
    }

    fn refuse(&self, snapshot: &mut Snapshot, why: &str) {
        let Some(begin) = &self.begin else { return };
        snapshot.note_unread(begin.command.as_deref().unwrap_or(self.kind.command), why);
    }

    /// Its fields. Errors: it is no such object.
    pub fn fields<'a, T: Deserialize<'a>>(&'a self) -> Result<T, String> {
        #[derive(Deserialize)]
        struct Named {
            schema: String,
        }
        let not_understood = |error: serde_json::Error| format!("not understood: {error}");
        let Named { schema } = serde_json::from_str(&self.text).map_err(not_understood)?;
        if schema != self.kind.schema {
            return Err(format!("not of the schema {}", self.kind.schema));
        }
        serde_json::from_str(&self.text).map_err(not_understood)
    }

    /// Part of the object as evidence: in one line, as a line of the object may hold all of it.
    pub fn quote(&self, raw: &str, name: &str) -> Option<Quote> {
        let Begin { source, command, line } = self.begin.as_ref()?;
        let at = (raw.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.lines.partition_point(|&start| start <= at).saturating_sub(1);
        let words: Vec<&str> = raw.split_whitespace().collect();
        let text = format!("{name}{}", words.join(" "));
        Some(Quote::new(source, line + before as u64, command.as_ref(), &text))
    }
}

/// Whether a name can stand in a sentence.
pub(super) fn is_word(text: &str) -> bool {
    (1..=LONGEST_WORD).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" -_./".contains(&byte))
}
