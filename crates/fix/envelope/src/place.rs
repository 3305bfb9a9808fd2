//! Which interface a name means, what the journal holds of it, and which pins are left of it.

use crate::{Error, by, is_by};
use service::journal::{Entry, Journal};
use std::fs;
use steer::record::Records;
use steer::{error, named, up};
use xdp::envelope::Envelope;
use xdp::{Dead, Family, Interface};

/// An interface here that got its envelope under this name and has another one now.
pub(super) fn renamed(name: &str) -> Option<Interface> {
    let here = up::interfaces().into_iter().filter_map(|here| Interface::find(&here).ok());
    here.filter(|interface| interface.name != name).find(|interface| {
        let program = interface.program().ok().flatten();
        program.is_some_and(|program| program.envelope.as_deref() == Some(name))
    })
}

pub(super) fn nowhere(name: &str) -> Error {
    let interface = name.to_owned();
    let is_away = named::here().is_some_and(|here| xdp::away(Family::Envelope, name, here).is_some());
    if is_away {
        return Error::Elsewhere { interface };
    }
    match dead(name) {
        Ok(dead) if !dead.is_empty() => Error::Removed { interface },
        _ => error::unknown(interface, up::interfaces()).into(),
    }
}

/// Pins of that name in this network namespace whose program is on no interface.
pub(super) fn dead(name: &str) -> Result<Vec<Dead>, Error> {
    Ok(named::dead(Family::Envelope, name)?)
}

pub(super) fn journal(records: &Records) -> Result<Option<Journal>, Error> {
    match fs::symlink_metadata(records.folder().join("journal")) {
        Ok(_) => Ok(Some(up::journal(records)?)),
        Err(_) => Ok(None),
    }
}

/// Entries of an interface's MTU, oldest first. With its envelope it is known also where it came from another network
/// namespace.
pub(super) fn entries(journal: &Journal, interface: &Interface, envelope: Option<&Envelope>) -> Vec<Entry> {
    let here = (interface.namespace, interface.index);
    let (namespace, index) = envelope.map_or(here, Envelope::attached_at);
    let is_its = |entry: &&Entry| entry.namespace == namespace && entry.index == Some(index);
    journal.entries().iter().filter(|entry| is_by(&entry.by)).filter(is_its).cloned().collect()
}

/// Entries of interfaces of that name which are no more: neither under it nor under another one, here or elsewhere.
pub(super) fn orphans(journal: &Journal, name: &str) -> Vec<u64> {
    let Some(here) = named::here() else { return Vec::new() };
    if xdp::away(Family::Envelope, name, here).is_some() {
        return Vec::new();
    }
    let is_gone = |entry: &&Entry| {
        let is_its = entry.by == by(name) && entry.namespace == here;
        is_its && entry.index.is_none_or(|index| named::name_of(index).is_none())
    };
    journal.entries().iter().filter(is_gone).map(|entry| entry.number).collect()
}

/// Whether an interface of that name which is no more has entries. Without root the journal is closed: then `false`.
pub(super) fn is_noted(name: &str, records: &Records) -> bool {
    journal(records).ok().flatten().is_some_and(|journal| !orphans(&journal, name).is_empty())
}
