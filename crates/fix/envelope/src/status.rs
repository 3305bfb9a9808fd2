//! How an envelope stands: numbers, counters, and what is wrong with it.

use crate::{Error, place};
use format::quoted;
use serde::Serialize;
use std::time::UNIX_EPOCH;
use steer::record::Records;
use steer::{named, up};
use xdp::envelope::Envelope;
use xdp::envelope_layout::Kind;
use xdp::{Family, Interface, Mode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Up,
    /// Something was changed since: `problems` says what.
    Damaged,
    Off,
}

/// The answer of `envelope status`, schema `rxlane.envelope/1`: fields are added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    pub schema: &'static str,
    pub interface: String,
    pub state: State,
    /// Who runs the program, `native` or `generic`; `None` where it is not on the interface.
    pub mode: Option<&'static str>,
    /// MTU of now, bytes.
    pub mtu: Option<u32>,
    /// MTU without the envelope, bytes: the longest payload.
    pub payload: Option<u32>,
    /// Room for headers, bytes.
    pub header: Option<u32>,
    /// When it was put up, seconds since 1970-01-01 UTC.
    pub since: Option<u64>,
    pub frags: Option<bool>,
    /// Frames that went on to the stack, by kind.
    pub passed: Vec<Row>,
    /// Frames that were dropped, by reason.
    pub refused: Vec<Row>,
    /// What is wrong, and what to do about it.
    pub problems: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `untagged`, `tagged`, `pppoe`; of refused frames `untagged-long`, `tagged-long`, `pppoe-long`.
    pub word: &'static str,
    pub frames: u64,
}

impl Status {
    pub const SCHEMA: &str = "rxlane.envelope/1";

    fn of(interface: &Interface, mtu: Option<u32>) -> Status {
        Status {
            schema: Status::SCHEMA,
            interface: interface.name.clone(),
            state: State::Off,
            mode: None,
            mtu,
            payload: None,
            header: None,
            since: None,
            frags: None,
            passed: Vec::new(),
            refused: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// Looks at an interface, by its present name or that under which it got the envelope.
pub fn status(name: &str, records: &Records) -> Result<Status, Error> {
    let found = look(name, records);
    // What an `up` or `down` has half done looks like damage.
    let is_settled = match &found {
        Ok(status) => status.state != State::Damaged,
        Err(error) => {
            !matches!(error, Error::Steer(steer::error::Error::Programs(xdp::Error::Damaged { .. })))
        }
    };
    if is_settled || !records.wait_for_change() { found } else { look(name, records) }
}

fn look(name: &str, records: &Records) -> Result<Status, Error> {
    let found = named::named(Family::Envelope, name)?.interface;
    let Some(interface) = found else {
        return Err(named::nowhere(Family::Envelope, name, records).into());
    };
    let mut status = Status::of(&interface, interface.described()?.mtu);
    match Envelope::open(&interface)? {
        Some(envelope) => fill(&mut status, &envelope)?,
        None => look_for_remains(&mut status, &interface, records),
    }
    Ok(status)
}

fn fill(status: &mut Status, envelope: &Envelope) -> Result<(), Error> {
    let (payload, header) = (envelope.payload(), envelope.header());
    let counted = envelope.counts()?;
    let rows = |word: fn(Kind) -> &'static str, frames: [u64; 3]| {
        let rows = Kind::ALL.into_iter().zip(frames);
        rows.map(|(kind, frames)| Row { word: word(kind), frames }).collect()
    };
    status.mode = Some(envelope.mode().map(Mode::name)?);
    status.payload = Some(payload);
    status.header = Some(header);
    status.since = envelope.since().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs());
    status.frags = Some(envelope.frags());
    status.passed = rows(Kind::name, counted.passed);
    status.refused = rows(Kind::refusal, counted.refused);
    let raised = payload.saturating_add(header);
    status.problems.extend(status.mtu.and_then(|mtu| changed(&status.interface, mtu, payload, raised)));
    status.state = if status.problems.is_empty() { State::Up } else { State::Damaged };
    Ok(())
}

fn changed(name: &str, mtu: u32, payload: u32, raised: u32) -> Option<String> {
    let restore =
        format!("`ip link set dev {quoted_name} mtu {raised}` makes it so", quoted_name = quoted(name));
    match mtu {
        _ if mtu == raised => None,
        _ if mtu < raised => Some(format!(
            "the MTU is {mtu} and not {raised}, so the device may refuse frames with headers that there should be room \
             for: {restore}"
        )),
        _ => Some(format!(
            "the MTU is {mtu} and not {raised}; payloads of more than {payload} bytes are refused all the same: {restore}"
        )),
    }
}

/// An interface without the program may have what is left of an envelope.
fn look_for_remains(status: &mut Status, interface: &Interface, records: &Records) {
    let name = &interface.name;
    // Without root neither is to be seen; then nothing is said.
    let is_recorded = up::existing_journal(records)
        .ok()
        .flatten()
        .is_some_and(|journal| !place::entries(&journal, interface, None).is_empty());
    let has_pins = named::dead(Family::Envelope, name).is_ok_and(|dead| !dead.is_empty());
    if is_recorded {
        status.problems.push(Error::Bare { interface: name.clone() }.to_string());
    }
    if has_pins {
        status.problems.push(format!(
            "pins of an envelope are left whose program is on no interface: `rxlane envelope down {quoted_name}` removes them", quoted_name = quoted(name)));
    }
    if !status.problems.is_empty() {
        status.state = State::Damaged;
    }
}
