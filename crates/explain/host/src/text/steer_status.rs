//! `rxlane steer status IFACE --json`: what an XDP program hands to which CPU (schema `rxlane.steer/1`).
//!
//! One JSON object, on one line or over many. Fields of a later version are passed over, and so is an entry of a list
//! that does not hold what it should. An object that is no JSON, has no
//! mode that is known or ends with the text is not read at all.

use super::{Line, Outcome, Section, Tool};
use crate::{Counter, Fact, Observed, Quote, Snapshot, SteerTarget, Steering, Xdp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::sync::Arc;

/// What the objects say of themselves.
const SCHEMA: &str = "rxlane.steer/1";

/// Bytes of an object: 4,096 CPUs, each over five lines, take less than half of it.
const LONGEST: usize = 2 << 20;

/// Reasons and classes that are kept of each, and the bytes of such a word.
const WORDS: usize = 64;
const LONGEST_WORD: usize = 64;

pub(super) static TOOL: Tool = Tool {
    name: "rxlane steer status",
    command: |command| command.program == "rxlane",
    heading: |line| is_heading(line),
    open: |_| Box::new(Object::default()),
};

/// A whole object, or the line of one over many that names the schema.
fn is_heading(line: &str) -> bool {
    let after = |text: &str, what: &str| text.trim_start().strip_prefix(what).map(str::to_owned);
    line.starts_with(['{', '"'])
        && line.contains(SCHEMA)
        && after(line.strip_prefix('{').unwrap_or(line), "\"schema\"")
            .and_then(|rest| after(&rest, ":"))
            .is_some_and(|value| value.trim_start().starts_with(&format!("\"{SCHEMA}\"")))
}

/// The object while it is being read.
#[derive(Default)]
struct Object {
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
                Some(b'"') if is_heading(text) => {
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
            && let Err(why) = self.read(snapshot)
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

/// The fields that are read.
#[derive(Deserialize)]
struct Status<'a> {
    schema: String,
    interface: Option<String>,
    #[serde(borrow)]
    mode: Option<Part<'a, String>>,
    #[serde(borrow)]
    cpus: Option<Vec<Part<'a, Cpu>>>,
    #[serde(borrow)]
    reasons: Option<Vec<Part<'a, Reason>>>,
    #[serde(borrow)]
    moves: Option<Part<'a, u64>>,
    #[serde(borrow)]
    classes: Option<Part<'a, Vec<String>>>,
    #[serde(borrow)]
    keeper: Option<Part<'a, Keeper>>,
    /// `false` where the process was not allowed to read all; its mode is then that of which it knew.
    #[serde(borrow)]
    complete: Option<Part<'a, bool>>,
    #[serde(borrow)]
    remarks: Option<Part<'a, Vec<String>>>,
}

/// A part of the object as it is written, and what it says where it holds what it should: a bad one costs itself
/// alone.
struct Part<'a, T> {
    raw: &'a str,
    value: Option<T>,
}

impl<'de: 'a, 'a, T: DeserializeOwned> Deserialize<'de> for Part<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(Part { raw, value: serde_json::from_str(raw).ok() })
    }
}

/// The process that stays with the program.
#[derive(Deserialize)]
struct Keeper {
    alive: Option<bool>,
    rebalance: bool,
}

#[derive(Deserialize)]
struct Cpu {
    cpu: u32,
    frames: Option<u64>,
    drops: Option<u64>,
}

#[derive(Deserialize)]
struct Reason {
    reason: String,
    frames: u64,
}

impl Object {
    fn refuse(&self, snapshot: &mut Snapshot, why: &str) {
        let Some(begin) = &self.begin else { return };
        snapshot.note_unread(begin.command.as_deref().unwrap_or(TOOL.name), why);
    }

    /// Part of the object as evidence: in one line, as a line of the object may hold all of it.
    fn quote(&self, raw: &str, name: &str) -> Option<Quote> {
        let Begin { source, command, line } = self.begin.as_ref()?;
        let at = (raw.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.lines.partition_point(|&start| start <= at).saturating_sub(1);
        let words: Vec<&str> = raw.split_whitespace().collect();
        let text = format!("{name}{}", words.join(" "));
        Some(Quote::new(source, line + before as u64, command.as_ref(), &text))
    }

    /// Errors: why nothing of it can be used.
    fn read(&self, snapshot: &mut Snapshot) -> Result<(), String> {
        let status: Status<'_> =
            serde_json::from_str(&self.text).map_err(|error| format!("not understood: {error}"))?;
        if status.schema != SCHEMA {
            return Err(format!("not of the schema {SCHEMA}"));
        }
        let interface = status.interface.as_deref().filter(|name| !name.is_empty());
        let interface = interface.ok_or("it names no interface")?;
        let mode = status.mode.as_ref().and_then(|part| {
            let mode = mode(part.value.as_deref()?)?;
            Some(Fact::new(mode, self.quote(part.raw, "\"mode\": ")?))
        });
        let mode = mode.ok_or("its mode is none that is known")?;
        if mode.value == Xdp::Off && status.complete.as_ref().is_some_and(|part| part.value == Some(false)) {
            let remarks = status.remarks.and_then(|part| part.value).unwrap_or_default();
            return Err(remarks.into_iter().next().unwrap_or_else(|| "not all could be read".to_owned()));
        }
        let Some(known) = snapshot.interface_mut(interface, &mode.quote) else { return Ok(()) };
        let steering = match &mut known.steering {
            Some(steering) => {
                steering.mode.again(mode);
                steering
            }
            none => none.insert(Steering::new(Observed::once(mode))),
        };
        let cpus = status.cpus.iter().flatten().map(|part| self.cpu(steering, part)).filter(Option::is_none);
        let mut omitted = cpus.count();
        let reasons = status.reasons.iter().flatten().map(|part| self.reason(steering, part));
        omitted += reasons.filter(Option::is_none).count();
        if let Some(Part { raw, value: Some(moves) }) = status.moves
            && let Some(quote) = self.quote(raw, "\"moves\": ")
        {
            Counter::note(&mut steering.moves, moves, &quote);
        }
        if let Some(Part { raw, value: Some(classes) }) = status.classes
            && classes.len() <= WORDS
            && classes.iter().all(|class| is_word(class))
            && let Some(quote) = self.quote(raw, "\"classes\": ")
        {
            Observed::note(&mut steering.classes, classes, &quote);
        }
        if let Some(Part { raw, value: Some(Keeper { alive, rebalance }) }) = status.keeper
            && let Some(quote) = self.quote(raw, "\"keeper\": ")
        {
            let rebalances = rebalance && alive != Some(false);
            Observed::note(&mut steering.rebalances, rebalances, &quote);
        }
        snapshot.omitted = snapshot.omitted.saturating_add(omitted as u64);
        Ok(())
    }

    /// `None` where the part is left out.
    fn cpu(&self, steering: &mut Steering, part: &Part<'_, Cpu>) -> Option<()> {
        let &Cpu { cpu, frames, drops } = part.value.as_ref()?;
        let is_known = steering.cpus.contains_key(&cpu);
        if cpu as usize >= Snapshot::CPUS || (!is_known && steering.cpus.len() >= Snapshot::CPUS) {
            return None;
        }
        let quote = self.quote(part.raw, "")?;
        let target = steering.cpus.entry(cpu).or_insert_with(|| SteerTarget::seen(quote.clone()));
        Counter::note(&mut target.frames, frames, &quote);
        Counter::note(&mut target.drops, drops, &quote);
        Some(())
    }

    /// `None` where the part is left out.
    fn reason(&self, steering: &mut Steering, part: &Part<'_, Reason>) -> Option<()> {
        let Reason { reason, frames } = part.value.as_ref()?;
        let quote = self.quote(part.raw, "").filter(|_| is_word(reason))?;
        Counter::note_at(&mut steering.reasons, reason.clone(), *frames, quote, WORDS).then_some(())
    }
}

/// Whether a name can stand in a sentence.
fn is_word(text: &str) -> bool {
    (1..=LONGEST_WORD).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" -_./".contains(&byte))
}

fn mode(word: &str) -> Option<Xdp> {
    match word {
        "native" => Some(Xdp::Native),
        "generic" => Some(Xdp::Generic),
        "off" => Some(Xdp::Off),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::text::read;

    #[test]
    fn what_is_deep_or_has_no_end_is_not_read() {
        let deep = format!("{{\"schema\":\"rxlane.steer/1\",\"x\":{}", "[".repeat(5000));
        assert!(read(&format!("{deep}\n{}", "]".repeat(5000))).interfaces.is_empty());
        let endless = format!("{{\"schema\":\"rxlane.steer/1\",\"x\":[\n{}", "1,\n".repeat(600_000));
        assert_eq!(read(&endless).unread.len(), 1);
    }
}
