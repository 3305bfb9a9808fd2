//! Network namespaces that are no more, and what steering and envelopes left of them.
//!
//! A namespace that is deleted takes its interfaces with it, and their steering. Pins stay, with maps and their idle
//! threads, and so do records and the journal's entries, which a new namespace of the same number would inherit. They are
//! removed where two things are certain: the interface is gone, and nothing that could be seen keeps the namespace. An
//! interface that had left it, or went back to the first namespace as devices of metal do, is steered on, and is left alone
//! with all that is noted of it.

use crate::envelope;
use crate::named;
use crate::record::{Place, Records};
use crate::up;
use host::journal::Journal;
use host::setting::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use xdp::Family;

/// Removes what is left of deleted network namespaces, and says what that was, a sentence each. What cannot be looked at or
/// removed stays, for a later command. To be called when what is known of the interface at hand has been restored or noted.
pub fn clear(records: &Records) -> Vec<String> {
    let Some(mut gone) = Gone::seen_from_here() else { return Vec::new() };
    let cleared = clear_programs_of(records, &mut gone);
    // Pins may have been removed by others, so plans and entries are looked at by themselves.
    forget_plans(records, &mut gone);
    strike(records, &mut gone);
    cleared
}

/// Removes pins alone of deleted network namespaces, and says what that was, a sentence each: of programs whose own records lay
/// elsewhere and are gone.
pub fn clear_programs(records: &Records) -> Vec<String> {
    Gone::seen_from_here().map_or_else(Vec::new, |mut gone| clear_programs_of(records, &mut gone))
}

fn clear_programs_of(records: &Records, gone: &mut Gone) -> Vec<String> {
    let mut cleared = clear_pins(records, gone);
    cleared.extend(clear_envelopes(gone));
    cleared
}

fn clear_pins(records: &Records, gone: &mut Gone) -> Vec<String> {
    let dead = xdp::dead(Family::Steer).unwrap_or_default();
    let of_gone = dead.iter().filter(|dead| gone.has(dead.namespace));
    let cleared = of_gone.filter_map(|dead| {
        let place = Place::of_dead(dead);
        // A process that stays ends by itself, and takes its record along.
        if records.kept(&place).is_ok_and(|kept| kept.is_some_and(|kept| kept.alive)) {
            return None;
        }
        let is_cleared = xdp::clear_dead(dead).unwrap_or(false);
        let _ = records.forget(&place).and_then(|()| records.forget_plan(&place));
        is_cleared.then(|| {
            format!(
                "removed what was left of {}, which was steered in a network namespace that is no more ({})",
                dead.interface, dead.namespace
            )
        })
    });
    cleared.collect()
}

fn clear_envelopes(gone: &mut Gone) -> Vec<String> {
    let dead = xdp::dead(Family::Envelope).unwrap_or_default();
    let of_gone = dead.iter().filter(|dead| gone.has(dead.namespace));
    let cleared = of_gone.filter(|dead| xdp::clear_dead(dead).unwrap_or(false)).map(|dead| {
        format!(
            "removed what was left of {}, which had an envelope in a network namespace that is no more ({})",
            dead.interface, dead.namespace
        )
    });
    cleared.collect()
}

/// Removes plans of which nobody stays and nothing is steered any more.
fn forget_plans(records: &Records, gone: &mut Gone) {
    for place in records.places() {
        let is_kept = || records.kept(&place).is_ok_and(|kept| kept.is_some());
        if gone.has_all_of(place.namespace) && !is_kept() {
            let _ = records.forget_plan(&place);
        }
    }
}

/// Strikes what the journal holds of steering and of envelopes.
fn strike(records: &Records, gone: &mut Gone) {
    let Ok(mut journal) = Journal::open(records.folder(), &Tree::live()) else { return };
    let is_ours = |by: &str| up::is_by(by) || envelope::is_by(by);
    let entries = journal.entries().iter().filter(|entry| entry.moved.is_none() && is_ours(&entry.by));
    let of_gone = entries.filter(|entry| gone.has_all_of(entry.namespace));
    let numbers: Vec<u64> = of_gone.map(|entry| entry.number).collect();
    for number in numbers {
        let _ = journal.forget(number);
    }
}

/// Which namespaces are gone. Each is looked for once: that takes all processes.
struct Gone {
    here: u64,
    seen: BTreeMap<u64, bool>,
}

impl Gone {
    /// `None` where not all processes are to be seen.
    fn seen_from_here() -> Option<Gone> {
        let here = named::here().filter(|_| sees_all_processes())?;
        Some(Gone { here, seen: BTreeMap::new() })
    }

    fn has(&mut self, namespace: u64) -> bool {
        namespace != self.here && *self.seen.entry(namespace).or_insert_with(|| !exists(namespace))
    }

    /// Whether with the namespace all interfaces are gone that got programs in it.
    fn has_all_of(&mut self, namespace: u64) -> bool {
        let is_attached = |family| xdp::is_attached_from(family, namespace);
        self.has(namespace) && !is_attached(Family::Steer) && !is_attached(Family::Envelope)
    }
}

/// The names of a network namespace (ip-netns(8)).
#[derive(Clone, Debug, Default)]
pub struct Names {
    namespace: u64,
    paths: Vec<PathBuf>,
}

impl Names {
    /// Those of the namespace of the calling thread.
    pub fn here() -> Names {
        let namespace = named::here().unwrap_or_default();
        let names = fs::read_dir("/run/netns").into_iter().flatten().flatten().map(|entry| entry.path());
        let mut names = Names { namespace, paths: names.collect() };
        names.paths = names.paths.iter().filter(|path| names.has(path)).cloned().collect();
        names
    }

    fn has(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| found.ino() == self.namespace)
    }

    /// Whether it had names and has lost them all: somebody deleted it, and it lives on only by who is in it.
    pub fn are_gone(&self) -> bool {
        !self.paths.is_empty() && !self.paths.iter().any(|path| self.has(path))
    }
}

/// Whether `/proc` has the processes of the whole machine: this one is in the first PID namespace, which has a number of its
/// own (`PROC_PID_INIT_INO` in include/linux/proc_ns.h).
fn sees_all_processes() -> bool {
    const FIRST: u64 = 0xEFFF_FFFC;
    fs::metadata("/proc/self/ns/pid").is_ok_and(|found| found.ino() == FIRST)
}

/// Whether a network namespace has a name, or a thread, an open file or a mount that keeps it; true where that cannot be
/// seen.
pub(crate) fn exists(namespace: u64) -> bool {
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let mut names = named.map(|entry| entry.path());
    if names.any(|path| fs::metadata(path).is_ok_and(|found| found.ino() == namespace)) {
        return true;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let link = format!("net:[{namespace}]");
    let mut mounts = BTreeSet::new();
    processes.flatten().map(|entry| entry.path()).filter(|path| is_number(path)).any(|process| {
        let mounts_here = fs::metadata(process.join("ns/mnt")).map_or(0, |found| found.ino());
        let keeps_mount = || {
            let table = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
            table.lines().any(|line| line.split(' ').nth(3) == Some(&link))
        };
        let leads_there = |path: PathBuf| fs::read_link(path).is_ok_and(|to| to.as_os_str() == link.as_str());
        mounts.insert(mounts_here) && keeps_mount()
            || within(&process.join("task")).any(|thread| leads_there(thread.join("ns/net")))
            || within(&process.join("fd")).any(leads_there)
    })
}

fn is_number(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// What is in a folder; nothing of one that has gone meanwhile.
fn within(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
