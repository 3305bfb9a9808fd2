//! Settings that `up` changed: which of them concern the interface that is taken back, and what becomes of each.

use super::Down;
use crate::error::Error;
use crate::named;
use crate::record::Records;
use crate::up;
use service::Instance;
use service::journal::{Entry, Journal, Moved, Outcome};
use service::namespace::exists;
use xdp::{Family, Interface};

enum Concern {
    Here,
    /// It was made where the interface was before.
    Before,
    None,
}

pub(super) fn restore(
    down: &mut Down,
    interface: Option<&Interface>,
    instances: &[Instance],
    records: &Records,
) -> Result<(), Error> {
    let Some(mut journal) = up::existing_journal(records)? else { return Ok(()) };
    forget_removed(&mut journal)?;
    let entries = journal.entries().to_vec();
    let concern = |entry: &Entry| concern(entry, &down.interface, interface, instances);
    let (mut here, mut before) = (Vec::new(), Vec::new());
    for entry in entries {
        match concern(&entry) {
            Concern::Here => here.push(entry.number),
            Concern::Before => before.push(entry),
            Concern::None => {}
        }
    }
    for entry in before {
        restore_moved(down, &mut journal, &entry, interface)?;
    }
    for one in journal.undo_these(&here, false)? {
        let is_kept = one.outcome.is_kept();
        down.kept += usize::from(is_kept);
        match &one.outcome {
            // Of a removed interface there is nothing to report.
            Outcome::Removed => {}
            Outcome::Moved => down.left.push(elsewhere(&one.entry)),
            _ if is_kept => down.left.push(one.to_string()),
            _ => down.settings.push(one.to_string()),
        }
    }
    Ok(())
}

fn concern(entry: &Entry, name: &str, interface: Option<&Interface>, instances: &[Instance]) -> Concern {
    if !entry.by.starts_with(&up::by("")) {
        return Concern::None;
    }
    let here = named::here();
    let (is_here, is_named) = (here.is_none_or(|here| entry.namespace == here), entry.by == up::by(name));
    if is_here && interface.is_some_and(|interface| entry.index == Some(interface.index)) {
        return Concern::Here;
    }
    if interface.is_some_and(|interface| is_where_it_went(entry, interface)) {
        return Concern::Before;
    }
    if !is_here {
        let came = is_named && instances.iter().any(|instance| instance.namespace.0 == entry.namespace);
        return if came { Concern::Before } else { Concern::None };
    }
    let is_elsewhere = entry.moved.is_some() || away(name).is_some();
    let is_another = interface.is_some() && (is_elsewhere || entry.index.and_then(named::name_of).is_some());
    if is_named && !is_another { Concern::Here } else { Concern::None }
}

/// Whether an interface is the one that an entry's went to be.
fn is_where_it_went(entry: &Entry, interface: &Interface) -> bool {
    let Some(moved) = &entry.moved else { return false };
    let is_known = moved.namespace.is_some();
    moved.index == interface.index
        && moved.namespace.is_none_or(|namespace| namespace == interface.namespace)
        && (is_known || entry.by == up::by(&interface.name))
}

/// A setting that was changed in another network namespace, of an interface that is here now: its value is read here, and
/// the command said where it is not what it was.
fn restore_moved(
    down: &mut Down,
    journal: &mut Journal,
    entry: &Entry,
    interface: Option<&Interface>,
) -> Result<(), Error> {
    let name = interface.and_then(|interface| Some((interface, interface.name.parse().ok()?)));
    let Some((interface, name)) = name else {
        down.kept += 1;
        down.left.push(elsewhere(entry));
        return Ok(());
    };
    if journal.settle(entry.number, &name).is_ok_and(|is_back| is_back) {
        down.settings.push(format!("already back: {}", entry.former.of(&name)));
        return Ok(());
    }
    let moved =
        Moved { namespace: Some(interface.namespace), index: interface.index, name: Some(name.to_string()) };
    journal.note_moved(entry.number, moved)?;
    down.kept += 1;
    down.left.push(format!(
        "the interface was in another network namespace when it was changed; this restores it: {}",
        entry.former.of(&name)
    ));
    Ok(())
}

/// What is to be done about a setting of an interface that went away.
fn elsewhere(entry: &Entry) -> String {
    let name = entry.moved.as_ref().and_then(|moved| moved.name.clone()).and_then(|name| name.parse().ok());
    let former = name.as_ref().map_or_else(|| entry.former.clone(), |name| entry.former.of(name));
    format!(
        "the interface is in another network namespace; this restores it there (`ip netns exec NAMESPACE …`), and \
         `rxlane steer down` there notes that: {former}"
    )
}

/// Forgets what was changed on interfaces whose namespace was removed, unless they came back from it.
fn forget_removed(journal: &mut Journal) -> Result<(), Error> {
    let here = named::here();
    let removed = |entry: &&Entry| {
        let namespace = entry.moved.as_ref().and_then(|moved| moved.namespace);
        let is_ours = here.is_none_or(|here| entry.namespace == here);
        let is_back = entry.index.and_then(named::name_of).is_some();
        is_ours && !is_back && namespace.is_some_and(|namespace| !exists(namespace))
    };
    let numbers: Vec<u64> = journal.entries().iter().filter(removed).map(|entry| entry.number).collect();
    for number in numbers {
        journal.forget(number)?;
    }
    Ok(())
}

/// The index of an interface that was attached here under the name and is in another network namespace.
pub(super) fn away(name: &str) -> Option<u32> {
    xdp::away(Family::Steer, name, named::here()?)
}

/// Notes that the settings of an interface are where that is now.
pub(super) fn note_away(name: &str, index: u32, records: &Records) -> Result<(), Error> {
    let Some(mut journal) = up::existing_journal(records)? else { return Ok(()) };
    let (by, here) = (up::by(name), named::here());
    let of_it = |entry: &&Entry| entry.by == by && Some(entry.namespace) == here && entry.moved.is_none();
    let numbers: Vec<u64> = journal.entries().iter().filter(of_it).map(|entry| entry.number).collect();
    for number in numbers {
        journal.note_moved(number, Moved { namespace: None, index, name: None })?;
    }
    Ok(())
}

/// Whether a setting of an interface of that name in this network namespace is recorded.
pub(super) fn is_recorded(name: &str, records: &Records) -> bool {
    let (by, here) = (up::by(name), named::here());
    let is_its = |entry: &Entry| entry.by == by && here.is_none_or(|here| entry.namespace == here);
    up::existing_journal(records)
        .is_ok_and(|journal| journal.is_some_and(|journal| journal.entries().iter().any(is_its)))
}
