//! What the journal holds of an interface.

use crate::{by, is_by};
use service::journal::{Entry, Journal};
use steer::record::Records;
use steer::{named, up};
use xdp::envelope::Envelope;
use xdp::{Family, Interface};

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
    let is_removed = |entry: &&Entry| {
        let is_its = entry.by == by(name) && entry.namespace == here;
        is_its && entry.index.is_none_or(|index| named::name_of(index).is_none())
    };
    journal.entries().iter().filter(is_removed).map(|entry| entry.number).collect()
}

/// Whether an interface of that name which is no more has entries. Without root the journal is closed: then `false`.
pub(super) fn is_recorded(name: &str, records: &Records) -> bool {
    up::existing_journal(records).ok().flatten().is_some_and(|journal| !orphans(&journal, name).is_empty())
}
