//! Network namespaces that are no more, and what steering and envelopes left of them.
//!
//! A namespace that is deleted takes its interfaces with it, and their steering. Pins stay, with maps and their idle
//! threads, and so do records and the journal's entries, which a new namespace of the same number would inherit. They are
//! removed where two things are certain: the interface was removed, and nothing that could be seen keeps the namespace. An
//! interface that had left it, or went back to the first namespace as physical devices do, is steered on, and is left alone
//! with all that is recorded of it.

use crate::named;
use crate::record::{Records, instance_of_dead};
use crate::up;
use host::setting::Tree;
use service::journal::Journal;
use service::namespace::{exists, sees_all_processes};
use std::collections::BTreeMap;
use xdp::Family;

pub const ENVELOPE: &str = "envelope up ";

/// Removes what is left of deleted network namespaces, and says what that was, a sentence each. What cannot be looked at or
/// removed stays, for a later command. To be called when what is known of the interface at hand has been restored or recorded.
pub fn clear(records: &Records) -> Vec<String> {
    let Some(mut deleted) = Deleted::seen_from_here() else { return Vec::new() };
    let cleared = clear_programs_of(records, &mut deleted);
    // Pins may have been removed by others, so plans and entries are looked at by themselves.
    forget_plans(records, &mut deleted);
    strike(records, &mut deleted);
    cleared
}

/// Removes pins alone of deleted network namespaces, and says what that was, a sentence each: of programs whose own records lay
/// elsewhere and were removed.
pub fn clear_programs(records: &Records) -> Vec<String> {
    Deleted::seen_from_here().map_or_else(Vec::new, |mut deleted| clear_programs_of(records, &mut deleted))
}

fn clear_programs_of(records: &Records, deleted: &mut Deleted) -> Vec<String> {
    let mut cleared = Vec::new();
    for (family, what) in [(Family::Steer, "was steered"), (Family::Envelope, "had an envelope")] {
        let dead = xdp::dead(family).unwrap_or_default();
        for dead in dead.iter().filter(|dead| deleted.has(dead.namespace)) {
            let instance = instance_of_dead(dead);
            // A daemon ends by itself, and takes its record along.
            let is_steered = family == Family::Steer;
            if is_steered && records.kept(&instance).is_ok_and(|kept| kept.is_some_and(|kept| kept.alive)) {
                continue;
            }
            let is_cleared = xdp::clear_dead(dead).unwrap_or(false);
            if is_steered {
                let _ = records.forget(&instance).and_then(|()| records.forget_plan(&instance));
            }
            if is_cleared {
                cleared.push(format!(
                    "removed what was left of {}, which {what} in a network namespace that is no more ({})",
                    dead.interface, dead.namespace
                ));
            }
        }
    }
    cleared
}

/// Removes plans of which nobody stays and nothing is steered any more.
fn forget_plans(records: &Records, deleted: &mut Deleted) {
    for instance in records.instances_planned() {
        let is_kept = || records.kept(&instance).is_ok_and(|kept| kept.is_some());
        if deleted.has_all_of(instance.namespace.0) && !is_kept() {
            let _ = records.forget_plan(&instance);
        }
    }
}

/// Strikes what the journal holds of steering and of envelopes.
fn strike(records: &Records, deleted: &mut Deleted) {
    let Ok(mut journal) = Journal::open(records.state(), &Tree::live()) else { return };
    let is_ours = |by: &str| up::is_by(by) || by.starts_with(ENVELOPE);
    let entries = journal.entries().iter().filter(|entry| entry.moved.is_none() && is_ours(&entry.by));
    let of_deleted = entries.filter(|entry| deleted.has_all_of(entry.namespace));
    let numbers: Vec<u64> = of_deleted.map(|entry| entry.number).collect();
    for number in numbers {
        let _ = journal.forget(number);
    }
}

/// Which namespaces were removed. Each is looked for once: that takes all processes.
struct Deleted {
    here: u64,
    seen: BTreeMap<u64, bool>,
}

impl Deleted {
    /// `None` where not all processes are to be seen.
    fn seen_from_here() -> Option<Deleted> {
        let here = named::here().filter(|_| sees_all_processes())?;
        Some(Deleted { here, seen: BTreeMap::new() })
    }

    fn has(&mut self, namespace: u64) -> bool {
        namespace != self.here && *self.seen.entry(namespace).or_insert_with(|| !exists(namespace))
    }

    /// Whether with the namespace all interfaces were removed that got programs in it.
    fn has_all_of(&mut self, namespace: u64) -> bool {
        let is_attached = |family| xdp::is_attached_from(family, namespace);
        self.has(namespace) && !is_attached(Family::Steer) && !is_attached(Family::Envelope)
    }
}
