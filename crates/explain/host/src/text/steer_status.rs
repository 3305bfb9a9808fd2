//! `rxlane steer status IFACE --json`: what an XDP program hands to which CPU (schema `rxlane.steer/1`).
//!
//! One JSON object, on one line or over many. Fields of a later version are passed over, and so is an entry of a list
//! that does not hold what it should. An object that is no JSON, has no
//! mode that is known or ends with the text is not read at all.

use super::{Fate, Line, Section, Tool, unread};
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
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let text = line.trimmed();
        if self.is_done {
            return Fate::Over;
        }
        if self.begin.is_none() {
            match text.as_bytes().first() {
                None => return Fate::Skipped,
                Some(b'{') => {}
                // Somebody copied it without its first line.
                Some(b'"') if is_heading(text) => {
                    self.text.push('{');
                    self.depth = 1;
                }
                Some(_) => return Fate::Over,
            }
            let (source, command) = (Arc::clone(line.source), line.command.cloned());
            self.begin = Some(Begin { source, command, line: line.number });
        }
        let Some((depth, end)) = scan(text, self.depth) else { return Fate::Over };
        if self.text.len() + end > LONGEST {
            return Fate::Over;
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
        Fate::Taken
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
        unread(snapshot, begin.command.as_deref().unwrap_or(TOOL.name), why);
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
            Counter::note(&mut steering.moves, moves, quote);
        }
        if let Some(Part { raw, value: Some(classes) }) = status.classes
            && classes.len() <= WORDS
            && classes.iter().all(|class| is_word(class))
            && let Some(quote) = self.quote(raw, "\"classes\": ")
        {
            Observed::note(&mut steering.classes, Fact::new(classes, quote));
        }
        if let Some(Part { raw, value: Some(Keeper { alive, rebalance }) }) = status.keeper
            && let Some(quote) = self.quote(raw, "\"keeper\": ")
        {
            let rebalances = rebalance && alive != Some(false);
            Observed::note(&mut steering.rebalances, Fact::new(rebalances, quote));
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
        if let Some(frames) = frames {
            Counter::note(&mut target.frames, frames, quote.clone());
        }
        if let Some(drops) = drops {
            Counter::note(&mut target.drops, drops, quote);
        }
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
    use crate::{Delta, Snapshot, Steering, Xdp};

    fn steering(snapshot: &Snapshot) -> &Steering {
        snapshot.interface("eth0").and_then(|eth0| eth0.steering.as_ref()).expect("steering of eth0")
    }

    /// `(steered, frames of CPU 1, its drops, moves)`
    fn object(steered: u64, frames: u64, drops: u64, moves: u64) -> serde_json::Value {
        serde_json::json!({
            "schema": "rxlane.steer/1", "interface": "eth0", "mode": "native",
            "cpus": [{"cpu": 1, "frames": frames, "drops": drops, "queue": 2048}, {"cpu": 2, "frames": 40, "drops": 0}],
            "reasons": [{"reason": "steered", "frames": steered}, {"reason": "not-selected", "frames": 7}],
            "buckets": 256, "moves": moves, "later": {"a": [null, true, -1.5e3, "}\"{"]}
        })
    }

    /// The schema first, as it is printed: a map of serde_json's is sorted.
    fn one_line(object: &serde_json::Value) -> String {
        let rest = object.to_string().replace(r#","schema":"rxlane.steer/1""#, "");
        rest.replacen('{', r#"{"schema":"rxlane.steer/1","#, 1)
    }

    fn pretty(object: &serde_json::Value) -> String {
        let text = serde_json::to_string_pretty(object).expect("JSON");
        let rest = text.replace(",\n  \"schema\": \"rxlane.steer/1\"", "");
        rest.replacen('{', "{\n  \"schema\": \"rxlane.steer/1\",", 1)
    }

    #[test]
    fn one_line_and_many_say_the_same() {
        let object = object(93, 53, 2, 4);
        let texts = [
            one_line(&object),
            pretty(&object),
            pretty(&object).replacen("{\n", "", 1),
            format!("$ rxlane steer status eth0 --json\n{}\n", pretty(&object)),
            format!("root@router:~# sudo rxlane steer status --json eth0\n{}", one_line(&object)),
            format!("> {}\n", pretty(&object).replace('\n', "\n> ")),
        ];
        for text in texts {
            let snapshot = read(&text);
            let steering = steering(&snapshot);
            assert_eq!(steering.mode.get(), &Xdp::Native, "{text}");
            let frames: Vec<_> = steering
                .cpus
                .iter()
                .map(|(cpu, to)| {
                    (*cpu, to.frames.as_ref().map(|n| n.value()), to.drops.as_ref().map(|n| n.value()))
                })
                .collect();
            assert_eq!(frames, [(1, Some(53), Some(2)), (2, Some(40), Some(0))], "{text}");
            let reasons: Vec<_> =
                steering.reasons.iter().map(|(name, n)| (name.as_str(), n.value())).collect();
            assert_eq!(reasons, [("not-selected", 7), ("steered", 93)]);
            assert_eq!(steering.moves.as_ref().map(|moves| moves.value()), Some(4));
            assert_eq!((snapshot.omitted, snapshot.unread.as_slice()), (0, [].as_slice()));
            assert!(snapshot.read.contains_key("rxlane steer status"));
        }
    }

    #[test]
    fn a_part_is_quoted_with_its_line() {
        let text = format!("$ rxlane steer status eth0 --json\n{}", pretty(&object(93, 53, 2, 4)));
        let snapshot = read(&text);
        let steering = steering(&snapshot);
        let line = |at: u64| text.lines().nth(at as usize - 1).expect("a line");
        assert_eq!(steering.mode.quote().text.as_ref(), "\"mode\": \"native\"");
        assert!(line(steering.mode.quote().line).contains("\"mode\": \"native\""));
        let quote = steering.reasons["steered"].quote();
        assert_eq!(quote.text.as_ref(), r#"{ "frames": 93, "reason": "steered" }"#);
        assert_eq!(quote.command.as_deref(), Some("rxlane steer status eth0 --json"));
        assert_eq!(line(quote.line + 1).trim(), "\"frames\": 93,");
        let quote = steering.cpus[&2].frames.as_ref().expect("frames").quote();
        assert_eq!(line(quote.line + 1).trim(), "\"cpu\": 2,");
    }

    #[test]
    fn a_second_sample_is_compared_with_the_first() {
        let mut off = object(0, 0, 0, 0);
        let texts = [object(93, 53, 2, 4), object(193, 103, 5, 4)]
            .map(|object| format!("$ rxlane steer status eth0 --json\n{}\n", pretty(&object)));
        let snapshot = read(&format!("# sample 1 at 5.0\n{}# sample 2 at 8.0\n{}", texts[0], texts[1]));
        let now = steering(&snapshot);
        assert_eq!(now.reasons["steered"].delta(), Delta::Counted(100));
        let cpu = &now.cpus[&1];
        assert_eq!(cpu.frames.as_ref().map(|n| n.delta()), Some(Delta::Counted(50)));
        assert_eq!(cpu.drops.as_ref().map(|n| n.delta()), Some(Delta::Counted(3)));
        assert_eq!(now.moves.as_ref().map(|n| n.delta()), Some(Delta::Counted(0)));
        off["mode"] = "off".into();
        off["cpus"] = serde_json::json!([]);
        let snapshot = read(&format!("{}{}", texts[0], pretty(&off)));
        let mode = &steering(&snapshot).mode;
        assert_eq!((mode.get(), mode.former().map(|fact| fact.value)), (&Xdp::Off, Some(Xdp::Native)));
    }

    #[test]
    fn off_and_generic_are_modes_and_others_are_not_read() {
        for (word, mode) in [("off", Xdp::Off), ("generic", Xdp::Generic)] {
            let text =
                one_line(&serde_json::json!({"schema": "rxlane.steer/1", "interface": "eth0", "mode": word}));
            assert_eq!(steering(&read(&text)).mode.get(), &mode);
        }
        for mode in [serde_json::json!("offloaded"), serde_json::json!(null), serde_json::json!(7)] {
            let mut object = object(1, 1, 1, 1);
            object["mode"] = mode;
            let snapshot = read(&one_line(&object));
            assert_eq!(snapshot.interface("eth0"), None);
            assert_eq!(snapshot.unread.len(), 1, "{:?}", snapshot.unread);
        }
    }

    /// As `from_outside` of crate `steer` writes it without privilege.
    #[test]
    fn off_is_not_believed_of_one_who_could_not_look() {
        let mut object = serde_json::json!({
            "schema": "rxlane.steer/1", "interface": "eth0", "mode": "off", "complete": false,
            "remarks": ["whether it is rxlane's takes root to read"], "keeper": null, "classes": []
        });
        let snapshot = read(&one_line(&object));
        assert_eq!(snapshot.interface("eth0"), None);
        assert_eq!(snapshot.unread[0].why, "whether it is rxlane's takes root to read");
        object["mode"] = "native".into();
        let snapshot = read(&one_line(&object));
        assert_eq!(steering(&snapshot).mode.get(), &Xdp::Native);
        assert_eq!((&steering(&snapshot).rebalances, steering(&snapshot).reasons.len()), (&None, 0));
    }

    #[test]
    fn classes_and_who_rebalances() {
        let mut object = object(1, 1, 1, 1);
        object["classes"] = serde_json::json!(["qinq", "pppoe"]);
        for (alive, rebalances) in [(true, true), (false, false)] {
            object["keeper"] =
                serde_json::json!({"pid": 7, "alive": alive, "rebalance": true, "metrics": null});
            let snapshot = read(&pretty(&object));
            let steering = steering(&snapshot);
            assert_eq!(
                steering.classes.as_ref().map(|seen| seen.get().join(" ")).as_deref(),
                Some("qinq pppoe")
            );
            assert_eq!(steering.rebalances.as_ref().map(|seen| *seen.get()), Some(rebalances));
        }
        object["classes"] = serde_json::json!(["pppoe;reboot"]);
        object["keeper"] = serde_json::json!([1]);
        let snapshot = read(&one_line(&object));
        assert_eq!((&steering(&snapshot).classes, &steering(&snapshot).rebalances), (&None, &None));
    }

    #[test]
    fn entries_that_do_not_hold_what_they_should_are_left_out() {
        let text = r#"{"schema":"rxlane.steer/1","interface":"eth0","mode":"native","buckets":[],"moves":1e999,
            "cpus":[{"cpu":4294967296,"frames":1,"drops":0},{"cpu":4095,"frames":18446744073709551615,"drops":0},
            {"cpu":4096,"frames":1},{"cpu":3,"frames":18446744073709551616},{"cpu":-1,"frames":1},{"cpu":2,"frames":1.5},
            null,[],"x",{},{"cpu":1}],
            "reasons":[{"reason":"steered","frames":-3},{"reason":"","frames":1},{"reason":"\u001b[31m","frames":1},
            {"reason":"a;b","frames":1},{"reason":"steered","frames":9,"more":1}]}"#;
        let snapshot = read(text);
        let steering = steering(&snapshot);
        let cpus: Vec<_> =
            steering.cpus.iter().map(|(cpu, to)| (*cpu, to.frames.as_ref().map(|n| n.value()))).collect();
        assert_eq!(cpus, [(1, None), (4095, Some(u64::MAX))]);
        assert_eq!(steering.reasons.keys().collect::<Vec<_>>(), ["steered"]);
        assert_eq!((&steering.moves, snapshot.omitted), (&None, 13));
    }

    #[test]
    fn no_text_panics_and_no_part_says_more_than_the_whole() {
        let text = pretty(&object(93, 53, 2, 4));
        for at in 0..text.len() {
            let part = format!("$ rxlane steer status eth0 --json\n{}\n$ nproc\n4\n", &text[..at]);
            let snapshot = read(&part);
            assert_eq!(snapshot.interface("eth0"), None, "{part}");
            assert_eq!(snapshot.cpu_count(), Some(4), "{part}");
            read(&text[at..]);
            read(&one_line(&object(93, 53, 2, 4))[..at.min(200)]);
        }
        let deep = format!("{{\"schema\":\"rxlane.steer/1\",\"x\":{}", "[".repeat(5000));
        assert!(read(&format!("{deep}\n{}", "]".repeat(5000))).interfaces.is_empty());
        let endless = format!("{{\"schema\":\"rxlane.steer/1\",\"x\":[\n{}", "1,\n".repeat(600_000));
        assert_eq!(read(&endless).unread.len(), 1);
        let hostile = one_line(&object(1, 1, 1, 1)).replace("eth0", "eth0;reboot");
        assert!(read(&hostile).interfaces.is_empty());
    }

    #[test]
    fn other_output_ends_an_object_and_another_schema_is_none() {
        let cut = "{\"schema\":\"rxlane.steer/1\",\"interface\":\"eth0\",\n2: eth1: <UP> mtu 1500\n";
        let snapshot = read(cut);
        assert!(snapshot.interface("eth1").is_some() && snapshot.interface("eth0").is_none(), "{snapshot:?}");
        assert_eq!(snapshot.unread.len(), 1);
        let other = one_line(&object(1, 1, 1, 1)).replace("rxlane.steer/1", "rxlane.steer/12");
        assert_eq!(read(&other), Snapshot::default());
        let prompted = format!("$ rxlane steer status eth0 --json\n{other}\n");
        assert_eq!(read(&prompted).unread.len(), 1);
        // What a person sees is not what a program reads, and ends nothing.
        let snapshot = read("$ rxlane steer status eth0\neth0 is steered\n$ nproc\n2\n");
        assert_eq!((snapshot.cpu_count(), snapshot.unread.len()), (Some(2), 0));
    }
}
