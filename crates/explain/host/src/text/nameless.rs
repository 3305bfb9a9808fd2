//! Output that names no interface, in a text that names one.
//!
//! `ethtool -i` and `-S` print no name, and people paste them without the command behind a `Settings for eth0:` or
//! an `ifconfig eth0` that has it. Where the whole text names one interface, the nameless output is that one's;
//! where it names several, it is unknown.

use super::kept::Kept;
use crate::{Interface, Kind, Snapshot, System};
use std::collections::BTreeMap;

/// Gives what names no interface to the only one that the text names, if there is such a one.
pub(super) fn give(snapshot: &mut Snapshot, kept: &mut Kept) {
    // The tools of the BSDs name the interface in every line.
    let system = snapshot.system.as_ref().map(|system| system.value);
    if matches!(system, Some(System::FreeBsd | System::NetBsd)) {
        return;
    }
    if kept.is_of_several {
        return;
    }
    let Some(name) = only_name(snapshot) else { return };
    let Some(place) = snapshot.interfaces.iter().position(|interface| interface.name.is_empty()) else {
        return;
    };
    if !snapshot.interfaces.get(place).is_some_and(|nameless| may_be(nameless, snapshot.interface(&name))) {
        return;
    }
    let nameless = snapshot.interfaces.remove(place);
    let seen = nameless.seen.clone();
    if let Some(named) = snapshot.interface_mut(&name, &seen) {
        complete(named, nameless);
    }
    give_entry(&mut kept.devices, &name);
    give_entry(&mut kept.vendors, &name);
    give_entry(&mut kept.totals, &name);
}

/// The only interface that lines name, besides the loopback one.
fn only_name(snapshot: &Snapshot) -> Option<String> {
    let by_interrupts = snapshot.interrupts.iter().filter_map(|interrupt| interrupt.interface.as_deref());
    let mut names = snapshot
        .interfaces
        .iter()
        .map(|interface| interface.name.as_str())
        .chain(by_interrupts)
        .filter(|name| !name.is_empty() && !matches!(*name, "lo" | "lo0"));
    let only = names.next()?;
    names.all(|name| name == only).then(|| only.to_owned())
}

/// Whether nothing says that they differ: stacked devices have no driver's statistics, and a driver is one.
fn may_be(nameless: &Interface, named: Option<&Interface>) -> bool {
    let Some(named) = named else { return true };
    let is_device = matches!(named.kind.as_ref().map(|kind| &kind.value), None | Some(Kind::Device));
    let differs = |one: &Option<crate::Fact<String>>, other: &Option<crate::Fact<String>>| {
        one.as_ref().zip(other.as_ref()).is_some_and(|(one, other)| one.value != other.value)
    };
    is_device
        && !named.name.contains('.')
        && !differs(&nameless.driver, &named.driver)
        && !differs(&nameless.bus, &named.bus)
}

/// Fills these fields of the first with those of the second.
macro_rules! fill {
    ($mine:ident, $other:ident: $($($field:ident).+),+) => {
        $(fill(&mut $mine.$($field).+, $other.$($field).+);)+
    };
}

/// Adds what the named one lacks. What both say stays as the line with the name has it.
fn complete(named: &mut Interface, nameless: Interface) {
    fill!(named, nameless: kind, parent, master, driver, bus, pci, model, mtu, mtu_most, up);
    fill!(named, nameless: link.speed, link.no_speed, link.full_duplex, link.up, link.supported, link.partner);
    fill!(named, nameless: channels.rx.current, channels.rx.most);
    fill!(named, nameless: channels.combined.current, channels.combined.most);
    fill!(named, nameless: rings.rx.current, rings.rx.most);
    fill!(named, nameless: adaptive_rx, reta, totals.packets, totals.bytes, xdp, virtual_functions);
    add(&mut named.coalesce, nameless.coalesce);
    add(&mut named.features, nameless.features);
    add(&mut named.hash_fields, nameless.hash_fields);
    for (number, other) in nameless.queues {
        let mine = named.queues.entry(number).or_default();
        fill!(mine, other: packets, bytes, drops, rps);
    }
    add(&mut named.totals.overflow, nameless.totals.overflow);
    add(&mut named.totals.too_long, nameless.totals.too_long);
    add(&mut named.totals.allowances, nameless.totals.allowances);
}

fn fill<T>(mine: &mut Option<T>, other: Option<T>) {
    if mine.is_none() {
        *mine = other;
    }
}

fn add<T>(mine: &mut BTreeMap<String, T>, others: BTreeMap<String, T>) {
    for (name, other) in others {
        mine.entry(name).or_insert(other);
    }
}

fn give_entry<T>(entries: &mut BTreeMap<String, T>, name: &str) {
    if let Some(entry) = entries.remove("") {
        entries.entry(name.to_owned()).or_insert(entry);
    }
}
