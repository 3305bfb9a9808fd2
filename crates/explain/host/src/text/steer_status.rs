//! `rxlane steer status IFACE --json`: what an XDP program hands to which CPU (schema `rxlane.steer/1`).
//!
//! One JSON object, on one line or over many. Its fields are named in [`Steering`]; others, of a later version, are
//! passed over, and so is an entry of a list that does not hold what it should. An object that is no JSON, has no
//! mode that is known or ends with the text is not read at all.

use super::{Context, Fate, Line, Section, Tool, unread};
use crate::{Counter, Fact, Observed, Quote, Snapshot, SteerTarget, Steering, Xdp};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// What the objects say of themselves.
const SCHEMA: &str = "rxlane.steer/1";

/// Octets of an object: 4,096 CPUs, each over five lines, take less than half of it.
const LONGEST: usize = 4 << 20;

/// Reasons and classes that are kept of each, and the octets of such a word.
const WORDS: usize = 64;
const LONGEST_WORD: usize = 64;

pub(super) static TOOL: Tool = Tool {
    name: "rxlane steer status",
    command: |command| command.program == "rxlane",
    heading: |line| is_heading(line),
    open: |_: &Context| Box::new(Object::default()),
};

/// A whole object, or the line of one over many that names the schema.
fn is_heading(line: &str) -> bool {
    line.starts_with(['{', '"'])
        && line.contains(SCHEMA)
        && line.strip_prefix('{').unwrap_or(line).trim_start().strip_prefix("\"schema\"").is_some_and(
            |rest| {
                let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
                value
                    .and_then(|value| value.strip_prefix('"')?.strip_prefix(SCHEMA))
                    .is_some_and(|rest| rest.starts_with('"'))
            },
        )
}

/// The object while it is being read.
#[derive(Default)]
struct Object {
    text: String,
    /// Braces and brackets that are open.
    depth: usize,
    /// Where it began; `None` before.
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
            self.begin = Some(Begin {
                source: Arc::clone(line.source),
                command: line.command.cloned(),
                line: line.number,
            });
        }
        let Some(scan) = scan(text, self.depth) else { return Fate::Over };
        if self.text.len() + text.len() > LONGEST {
            return Fate::Over;
        }
        self.text.push_str(text.get(..scan.end).unwrap_or(text));
        self.text.push('\n');
        self.depth = scan.depth;
        if self.depth == 0 {
            self.is_done = true;
            self.read(snapshot);
        }
        Fate::Taken
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        if let Some(begin) = self.begin.as_ref().filter(|_| !self.is_done) {
            begin.refuse(snapshot, "the object has no end");
        }
    }
}

impl Begin {
    fn refuse(&self, snapshot: &mut Snapshot, why: &str) {
        unread(snapshot, self.command.as_deref().unwrap_or(TOOL.name), why);
    }
}

/// What a line did to an object.
struct Scan {
    /// Braces and brackets that are open behind it.
    depth: usize,
    /// Octets of the line that belong to it.
    end: usize,
}

/// Reads a line of JSON; `None` where it holds what no line of JSON does.
fn scan(text: &str, mut depth: usize) -> Option<Scan> {
    let mut octets = text.bytes().enumerate();
    while let Some((at, octet)) = octets.next() {
        match octet {
            b'"' => loop {
                // A string ends on its line.
                match octets.next()?.1 {
                    b'"' => break,
                    b'\\' => _ = octets.next()?,
                    _ => {}
                }
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(Scan { depth, end: at + 1 });
                }
            }
            // Numbers, `true`, `false`, `null`.
            b' ' | b'\t' | b',' | b':' | b'0'..=b'9' | b'+' | b'-' | b'.' | b'E' => {}
            octet if b"truefalsn".contains(&octet) => {}
            _ => return None,
        }
    }
    Some(Scan { depth, end: text.len() })
}

/// The fields that are read. Entries of lists are read one by one, so that a bad one costs itself alone.
#[derive(Deserialize)]
struct Status<'a> {
    schema: String,
    interface: Option<String>,
    #[serde(borrow)]
    mode: Option<&'a RawValue>,
    #[serde(borrow)]
    cpus: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    reasons: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    moves: Option<&'a RawValue>,
    #[serde(borrow)]
    classes: Option<&'a RawValue>,
    #[serde(borrow)]
    keeper: Option<&'a RawValue>,
    /// `false` where the process was not allowed to read all; its mode is then that of which it knew.
    #[serde(borrow)]
    complete: Option<&'a RawValue>,
    #[serde(borrow)]
    remarks: Option<&'a RawValue>,
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
    fn read(&self, snapshot: &mut Snapshot) {
        let Some(begin) = &self.begin else { return };
        let status: Status<'_> = match serde_json::from_str(&self.text) {
            Ok(status) => status,
            Err(error) => return begin.refuse(snapshot, &format!("not understood: {error}")),
        };
        if status.schema != SCHEMA {
            return begin.refuse(snapshot, &format!("not of the schema {SCHEMA}"));
        }
        let Some(interface) = status.interface.as_deref().filter(|name| !name.is_empty()) else {
            return begin.refuse(snapshot, "it names no interface");
        };
        let mode = status.mode.and_then(|raw| Some((mode(raw.get())?, raw)));
        let Some((mode, said)) = mode else {
            return begin.refuse(snapshot, "its mode is none that is known");
        };
        let is_complete = status.complete.is_none_or(|raw| raw.get() != "false");
        if mode == Xdp::Off && !is_complete {
            return begin.refuse(snapshot, &remark(&status));
        }
        let mut place = Place { begin, text: &self.text, at: 0, line: begin.line };
        let quote = place.rewound().quote(said, "\"mode\": ");
        let mut omitted = 0;
        let Some(known) = snapshot.interface_mut(interface, &quote) else { return };
        let mode = Fact::new(mode, quote);
        let steering = match &mut known.steering {
            Some(steering) => {
                steering.mode.again(mode);
                steering
            }
            none => none.insert(Steering::new(Observed::once(mode))),
        };
        for raw in status.cpus.iter().flatten() {
            omitted += u64::from(cpu(steering, raw, &mut place).is_none());
        }
        place = place.rewound();
        for raw in status.reasons.iter().flatten() {
            omitted += u64::from(reason(steering, raw, &mut place).is_none());
        }
        if let Some((moves, raw)) = parsed(status.moves) {
            Counter::note(&mut steering.moves, moves, place.rewound().quote(raw, "\"moves\": "));
        }
        if let Some((classes, raw)) = parsed::<Vec<String>>(status.classes)
            && classes.len() <= WORDS
            && classes.iter().all(|class| is_word(class))
        {
            let quote = place.rewound().quote(raw, "\"classes\": ");
            Observed::note(&mut steering.classes, Fact::new(classes, quote));
        }
        if let Some((Keeper { alive, rebalance }, raw)) = parsed(status.keeper) {
            let quote = place.rewound().quote(raw, "\"keeper\": ");
            let rebalances = rebalance && alive != Some(false);
            Observed::note(&mut steering.rebalances, Fact::new(rebalances, quote));
        }
        snapshot.omitted = snapshot.omitted.saturating_add(omitted);
    }
}

/// A field's value, where it is one of that type, and as it was written.
fn parsed<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<(T, &'a RawValue)> {
    let raw = raw?;
    Some((serde_json::from_str(raw.get()).ok()?, raw))
}

/// Why not all was read, in the words of the one who could not.
fn remark(status: &Status<'_>) -> String {
    let remarks = parsed::<Vec<String>>(status.remarks).map(|(remarks, _)| remarks).unwrap_or_default();
    remarks.into_iter().next().unwrap_or_else(|| "not all could be read".to_owned())
}

/// Whether a name can stand in a sentence.
fn is_word(text: &str) -> bool {
    (1..=LONGEST_WORD).contains(&text.len())
        && text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b" -_./".contains(&octet))
}

fn mode(json: &str) -> Option<Xdp> {
    match json {
        r#""native""# => Some(Xdp::Native),
        r#""generic""# => Some(Xdp::Generic),
        r#""off""# => Some(Xdp::Off),
        _ => None,
    }
}

fn cpu(steering: &mut Steering, raw: &RawValue, place: &mut Place<'_>) -> Option<()> {
    let entry: Cpu = serde_json::from_str(raw.get()).ok()?;
    let is_known = steering.cpus.contains_key(&entry.cpu);
    if entry.cpu as usize >= Snapshot::CPUS || (!is_known && steering.cpus.len() >= Snapshot::CPUS) {
        return None;
    }
    let quote = place.quote(raw, "");
    let target = steering.cpus.entry(entry.cpu).or_insert_with(|| SteerTarget::seen(quote.clone()));
    if let Some(frames) = entry.frames {
        Counter::note(&mut target.frames, frames, quote.clone());
    }
    if let Some(drops) = entry.drops {
        Counter::note(&mut target.drops, drops, quote);
    }
    Some(())
}

fn reason(steering: &mut Steering, raw: &RawValue, place: &mut Place<'_>) -> Option<()> {
    let Reason { reason, frames } = serde_json::from_str(raw.get()).ok()?;
    let has_room = steering.reasons.contains_key(&reason) || steering.reasons.len() < WORDS;
    if !is_word(&reason) || !has_room {
        return None;
    }
    let quote = place.quote(raw, "");
    match steering.reasons.get_mut(&reason) {
        Some(counter) => counter.again(frames, quote),
        None => _ = steering.reasons.insert(reason, Counter::new(frames, quote)),
    }
    Some(())
}

/// A place in the text, to know the line of what stands behind it.
struct Place<'a> {
    begin: &'a Begin,
    text: &'a str,
    /// Octets before it.
    at: usize,
    line: u64,
}

impl Place<'_> {
    /// The same text, from the place where the object begins.
    fn rewound(&self) -> Self {
        Place { at: 0, line: self.begin.line, ..*self }
    }

    /// Part of the object as evidence: in one line, as a line of the object may hold all of it. The place moves there,
    /// and does not move back for a part that stands before it.
    fn quote(&mut self, raw: &RawValue, name: &str) -> Quote {
        let at = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        if let Some(between) = self.text.get(self.at..at) {
            self.line += between.bytes().filter(|octet| *octet == b'\n').count() as u64;
            self.at = at;
        }
        let words: Vec<&str> = raw.get().split_whitespace().collect();
        let text = format!("{name}{}", words.join(" "));
        Quote::new(&self.begin.source, self.line, self.begin.command.as_ref(), &text)
    }
}

#[cfg(test)]
mod tests {
    use crate::text::Reader;
    use crate::{Delta, Snapshot, Steering, Xdp};

    fn read(text: &str) -> Snapshot {
        let mut reader = Reader::new();
        reader.read("paste", text.as_bytes()).expect("memory");
        reader.finish()
    }

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
