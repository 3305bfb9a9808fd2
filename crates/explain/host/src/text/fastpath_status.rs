//! `rxlane fastpath status --json`: what a fast path forwards, and why the rest is the kernel's (schema `rxlane.fastpath/1`).
//!
//! An object without ports, without a mode that is known or without packets is not read. A reason that is not listed has not
//! occurred: in a second sample of the same process it began at 0.

use super::Tool;
use super::rxlane_json::{Kind, Object, Part, WORDS, is_word};
use crate::interface::is_plain_name;
use crate::{Counter, Fact, FastPath, Observed, Snapshot};
use serde::Deserialize;
use std::collections::BTreeMap;

static STATUS: Kind = Kind { schema: "rxlane.fastpath/1", command: "rxlane fastpath status", read };

pub(super) static TOOL: Tool = Tool {
    name: STATUS.command,
    command: |command| command.prints_status_of("fastpath"),
    heading: |line| STATUS.is_heading(line),
    open: |_| STATUS.open(),
};

/// The fields that are read.
#[derive(Deserialize)]
struct Status<'a> {
    #[serde(borrow)]
    ports: Option<Part<'a, Vec<String>>>,
    #[serde(borrow)]
    mode: Option<Part<'a, String>>,
    #[serde(borrow)]
    packets: Option<Packets<'a>>,
    #[serde(borrow)]
    refusals: Option<BTreeMap<String, Part<'a, u64>>>,
    #[serde(borrow)]
    flows: Option<Part<'a, u64>>,
    #[serde(borrow)]
    flows_most: Option<Part<'a, u64>>,
    #[serde(borrow)]
    seconds: Option<Part<'a, f64>>,
    #[serde(borrow)]
    pid: Option<Part<'a, u32>>,
}

#[derive(Deserialize)]
struct Packets<'a> {
    #[serde(borrow)]
    fast: Part<'a, u64>,
    #[serde(borrow)]
    slow: Option<BTreeMap<String, Part<'a, u64>>>,
}

/// Errors: why nothing of it can be used.
fn read(object: &Object, snapshot: &mut Snapshot) -> Result<(), String> {
    let status: Status<'_> = object.fields()?;
    let ports = status.ports.as_ref().and_then(|part| {
        let names = part.value.clone().filter(|names| !names.is_empty() && names.len() <= WORDS)?;
        let is_plain = names.iter().all(|name| is_plain_name(name));
        Some(Fact::new(names, object.quote(part.raw, "\"ports\": ").filter(|_| is_plain)?))
    });
    let fast = status
        .packets
        .as_ref()
        .and_then(|packets| Some((packets.fast.value?, object.quote(packets.fast.raw, "\"fast\": ")?)));
    let ports = ports.ok_or("it names no ports")?;
    let mode = object.mode(status.mode.as_ref())?;
    let (fast, quote) = fast.ok_or("it counts no packets")?;
    let pid = status.pid.as_ref().and_then(|part| part.value);
    let former = snapshot.fast_path.take().filter(|former| former.pid == pid);
    let is_second = former.is_some();
    let mut known = match former {
        Some(mut former) => {
            former.fast.again(fast, quote);
            FastPath { mode, ports, ..former }
        }
        None => FastPath {
            mode,
            ports,
            fast: Counter::new(fast, quote),
            slow: BTreeMap::new(),
            refusals: BTreeMap::new(),
            flows: None,
            flows_most: None,
            seconds: None,
            pid,
        },
    };
    let slow = status.packets.and_then(|packets| packets.slow);
    let omitted = counted(object, slow, &mut known.slow, is_second)
        + counted(object, status.refusals, &mut known.refusals, is_second);
    if let Some(Part { raw, value: Some(flows) }) = status.flows
        && let Some(quote) = object.quote(raw, "\"flows\": ")
    {
        Observed::note(&mut known.flows, flows, &quote);
    }
    if let Some(Part { raw, value: Some(most) }) = status.flows_most {
        known.flows_most = object.quote(raw, "\"flows_most\": ").map(|quote| Fact::new(most, quote));
    }
    if let Some(Part { raw, value: Some(seconds) }) = status.seconds
        && seconds.is_finite()
        && let Some(quote) = object.quote(raw, "\"seconds\": ")
    {
        Observed::note(&mut known.seconds, seconds, &quote);
    }
    snapshot.fast_path = Some(known);
    snapshot.omitted = snapshot.omitted.saturating_add(omitted);
    Ok(())
}

/// Puts counts by reason where they belong; how many were left out.
fn counted(
    object: &Object,
    counts: Option<BTreeMap<String, Part<'_, u64>>>,
    known: &mut BTreeMap<String, Counter>,
    is_second: bool,
) -> u64 {
    let mut omitted = 0;
    for (reason, Part { raw, value }) in counts.unwrap_or_default() {
        let quote = object.quote(raw, &format!("\"{reason}\": ")).filter(|_| is_word(&reason));
        let Some((value, quote)) = value.zip(quote) else {
            omitted += 1;
            continue;
        };
        if is_second && known.len() < WORDS && !known.contains_key(&reason) {
            known.insert(reason.clone(), Counter::new(0, quote.clone()));
        }
        omitted += u64::from(!Counter::note_at(known, reason, value, quote, WORDS));
    }
    omitted
}
