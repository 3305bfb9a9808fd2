//! `rxlane steer status IFACE --json`: what an XDP program hands to which CPU (schema `rxlane.steer/1`).
//!
//! An object that has no mode that is known is not read.

use super::Tool;
use super::rxlane_json::{Kind, Object, Part, WORDS, is_word};
use crate::{Counter, Observed, Snapshot, SteerTarget, Steering, Xdp};
use serde::Deserialize;

static STATUS: Kind = Kind { schema: "rxlane.steer/1", command: "rxlane steer status", read };

pub(super) static TOOL: Tool = Tool {
    name: STATUS.command,
    command: |command| command.prints_status_of("steer"),
    heading: |line| STATUS.is_heading(line),
    open: |_| STATUS.open(),
};

/// The fields that are read.
#[derive(Deserialize)]
struct Status<'a> {
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

/// The daemon of the program.
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

/// Errors: why nothing of it can be used.
fn read(object: &Object, snapshot: &mut Snapshot) -> Result<(), String> {
    let status: Status<'_> = object.fields()?;
    let interface = status.interface.as_deref().filter(|name| !name.is_empty());
    let interface = interface.ok_or("it names no interface")?;
    let mode = object.mode(status.mode.as_ref())?;
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
    let cpus = status.cpus.iter().flatten().map(|part| cpu(object, steering, part)).filter(Option::is_none);
    let mut omitted = cpus.count();
    let reasons = status.reasons.iter().flatten().map(|part| reason(object, steering, part));
    omitted += reasons.filter(Option::is_none).count();
    if let Some(Part { raw, value: Some(moves) }) = status.moves
        && let Some(quote) = object.quote(raw, "\"moves\": ")
    {
        Counter::note(&mut steering.moves, moves, &quote);
    }
    if let Some(Part { raw, value: Some(classes) }) = status.classes
        && classes.len() <= WORDS
        && classes.iter().all(|class| is_word(class))
        && let Some(quote) = object.quote(raw, "\"classes\": ")
    {
        Observed::note(&mut steering.classes, classes, &quote);
    }
    if let Some(Part { raw, value: Some(Keeper { alive, rebalance }) }) = status.keeper
        && let Some(quote) = object.quote(raw, "\"keeper\": ")
    {
        let rebalances = rebalance && alive != Some(false);
        Observed::note(&mut steering.rebalances, rebalances, &quote);
    }
    snapshot.omitted = snapshot.omitted.saturating_add(omitted as u64);
    Ok(())
}

/// `None` where the part is left out.
fn cpu(object: &Object, steering: &mut Steering, part: &Part<'_, Cpu>) -> Option<()> {
    let &Cpu { cpu, frames, drops } = part.value.as_ref()?;
    let is_known = steering.cpus.contains_key(&cpu);
    if cpu as usize >= Snapshot::CPUS || (!is_known && steering.cpus.len() >= Snapshot::CPUS) {
        return None;
    }
    let quote = object.quote(part.raw, "")?;
    let target = steering.cpus.entry(cpu).or_insert_with(|| SteerTarget::seen(quote.clone()));
    Counter::note(&mut target.frames, frames, &quote);
    Counter::note(&mut target.drops, drops, &quote);
    Some(())
}

/// `None` where the part is left out.
fn reason(object: &Object, steering: &mut Steering, part: &Part<'_, Reason>) -> Option<()> {
    let Reason { reason, frames } = part.value.as_ref()?;
    let quote = object.quote(part.raw, "").filter(|_| is_word(reason))?;
    Counter::note_at(&mut steering.reasons, reason.clone(), *frames, quote, WORDS).then_some(())
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
