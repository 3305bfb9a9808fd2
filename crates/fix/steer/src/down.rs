//! Taking steering away: the daemon, the programs, and every setting that `up` changed.
//!
//! Works even if the process that attached was killed, at any moment, and also where the interface
//! was removed: then its pins are removed, and its settings went with it. What records say may be wrong or unreadable:
//! steering is taken away all the same, and what could not be read or undone is reported.

mod restore;

use crate::error::Error;
use crate::named::{self, Named};
use crate::record::{self, Kept, Records, instance, instance_of, instance_of_dead};
use crate::stale_namespaces;
use format::quoted;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use service::Instance;
use service::record::{ChangeLock, RecordError, forget_interrupted, interrupted};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use xdp::layout::Reason;
use xdp::{Attachment, Family, Interface};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Down {
    /// The interface, as it was called when it was attached.
    pub interface: String,
    /// Its present name, where that is another.
    pub present: Option<String>,
    pub steered: bool,
    /// How the program was run; `None` where that was not to be found out any more.
    pub mode: Option<&'static str>,
    /// Frames that were steered; `None` where they could not be read.
    pub frames: Option<u64>,
    /// Frames that were sent to a CPU and not seen to arrive; `None` where they could not be read.
    pub unseen: Option<u64>,
    /// Why pins were removed that steered nothing.
    pub leftovers: Vec<&'static str>,
    /// The process that stayed with it, and that was ended.
    pub ended: Option<u32>,
    /// Settings that are back: the commands that put them back.
    pub settings: Vec<String>,
    /// Why others are not back, and what restores them.
    pub left: Vec<String>,
    /// Settings that are not back.
    pub kept: usize,
    /// What could not be read, ended or removed, and what to do.
    pub failures: Vec<String>,
    pub remarks: Vec<String>,
}

impl Down {
    /// Whether nothing was found to take back, whatever could not be looked at.
    pub fn found_nothing(&self) -> bool {
        !self.steered
            && self.leftovers.is_empty()
            && self.ended.is_none()
            && self.settings.is_empty()
            && self.left.is_empty()
    }

    /// Whether there was nothing, as far as that could be looked at, and everything could be.
    pub fn is_nothing(&self) -> bool {
        self.found_nothing() && self.failures.is_empty()
    }

    pub fn is_whole(&self) -> bool {
        self.kept == 0 && self.failures.is_empty()
    }

    fn failure(&mut self, what: String) {
        if !self.failures.contains(&what) {
            self.failures.push(what);
        }
    }
}

/// Time in which a queue falls silent.
const QUIET: Duration = Duration::from_secs(1);
/// Time for a process to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a process may have come to stay while this waited for the lock.
const ROUNDS: u32 = 5;

struct Found {
    interface: Option<Interface>,
    renamed: Vec<String>,
    instances: Vec<Instance>,
    attached_as: Option<String>,
    has_dead: bool,
}

fn find(name: &str) -> Result<Found, Error> {
    let dead = dead(name).unwrap_or_default();
    let Named { interface, renamed } = named::named(Family::Steer, name)?;
    let mut instances: Vec<Instance> = dead.iter().map(instance_of_dead).collect();
    let mut attached_as = None;
    match interface.as_ref().map(Attachment::open) {
        Some(Ok(Some(attachment))) => {
            attached_as = Some(attachment.attached_as().to_owned());
            instances.push(instance_of(&attachment));
        }
        // What stays with a renamed one, or one that went away, is not to be ended.
        _ if !renamed.is_empty() => {}
        _ => {
            let here = named::here().filter(|here| xdp::away(Family::Steer, name, *here).is_none());
            instances.extend(here.map(|here| instance(here, name)));
        }
    }
    Ok(Found { interface, renamed, instances, attached_as, has_dead: !dead.is_empty() })
}

/// Takes everything back.
///
/// The name may be the present one or that under which it was attached.
pub fn down(name: &str, records: &Records) -> Result<Down, Error> {
    let mut found = find(name)?;
    if found.interface.is_none() && !found.has_dead {
        let is_away = named::here().is_some_and(|here| xdp::away(Family::Steer, name, here).is_some());
        if is_away || !restore::is_recorded(name, records) {
            return Err(named::nowhere(Family::Steer, name, records));
        }
    }
    // What would be refused below is refused before the daemon has ended.
    may_be_taken(found.interface.as_ref())?;
    let mut down = Down::default();
    let lock = |interface| records.wait_for_lock(service::Kind::Steer, interface);
    let _alone = match &found.interface {
        Some(interface) => waited(lock(interface), &mut down)?,
        None => None,
    };
    let mut rounds = 0..ROUNDS;
    let working = loop {
        // Without the lock: a process in the foreground takes steering away by itself, and needs it.
        for instance in &found.instances {
            end(instance, records, &mut down);
        }
        let working = waited(records.work(), &mut down)?;
        // Whoever had the lock until now may have attached, and left a daemon.
        found = find(name)?;
        if rounds.next().is_none() || !found.instances.iter().any(|instance| is_kept(instance, records)) {
            break working;
        }
        drop(working);
    };
    for instance in &found.instances {
        end(instance, records, &mut down);
    }
    down.interface = found.attached_as.unwrap_or_else(|| name.to_owned());
    let present = found.interface.as_ref().map(|interface| interface.name.clone());
    down.present = present.filter(|present| *present != down.interface);
    down.remarks.extend(found.renamed.iter().map(|other| named::rename_notice(name, other)));
    take_back(working.as_ref(), found.interface.as_ref(), &found.instances, down, records)
}

/// Undoes what processes did that were killed while they brought steering up; a sentence each. What cannot be undone remains
/// recorded, for `down`.
pub fn recover(records: &Records) -> Result<Vec<String>, Error> {
    let instances = &records.instances()?;
    if interrupted(instances)?.is_empty() {
        return Ok(Vec::new());
    }
    let lock = &records.work()?;
    let undo = |name: &String| -> Result<String, Error> {
        let found = find(name)?;
        let mut down = Down { interface: name.clone(), ..Down::default() };
        found.instances.iter().for_each(|instance| end(instance, records, &mut down));
        let down = take_back(Some(lock), found.interface.as_ref(), &found.instances, down, records)?;
        if !down.is_whole() {
            return Ok(format!(
                "`rxlane steer down {}` undoes the rest of what a killed process did",
                quoted(name)
            ));
        }
        forget_interrupted(instances, name)?;
        Ok(format!("a process was killed while it brought up steering of {name}: what it did is undone"))
    };
    Ok(interrupted(instances)?.iter().filter_map(|name| undo(name).ok()).collect())
}

fn may_be_taken(interface: Option<&Interface>) -> Result<(), Error> {
    xdp::dead(Family::Steer)?;
    match interface.map(Attachment::open) {
        // What cannot be read can be removed all the same.
        None | Some(Ok(_) | Err(xdp::Error::OtherVersion { .. } | xdp::Error::Damaged { .. })) => Ok(()),
        Some(Err(other)) => Err(other.into()),
    }
}

fn is_kept(instance: &Instance, records: &Records) -> bool {
    records.kept(instance).is_ok_and(|kept| kept.is_some_and(|kept| kept.alive))
}

/// A lock that was waited for; `None` where locks cannot be used.
fn waited<T>(lock: Result<T, record::Error>, down: &mut Down) -> Result<Option<T>, Error> {
    match lock {
        Ok(lock) => Ok(Some(lock)),
        Err(busy @ (record::Error::Record(RecordError::Busy(_)) | record::Error::Changing { .. })) => {
            Err(busy.into())
        }
        // Without root nothing can be attached from here either; the loader says what is missing.
        Err(error) if error.is_denied() => Ok(None),
        Err(other) => {
            down.failure(format!("{other}: others that change steering now are not waited for"));
            Ok(None)
        }
    }
}

fn by_hand(error: &record::Error) -> String {
    format!("{error}; remove it by hand")
}

/// Ends what stays with an interface of this name that was removed, before another one of this name is attached.
pub(crate) fn retire(interface: &Interface, records: &Records) -> Result<(), Error> {
    for dead in dead(&interface.name)? {
        // A record that cannot be used is reported when the next keeper wants it.
        end(&instance_of_dead(&dead), records, &mut Down::default());
    }
    Ok(())
}

/// As [`down`], for the process that keeps the attachment itself. Works wherever the interface is by now.
pub fn down_own(attachment: Attachment, records: &Records) -> Result<Down, Error> {
    let interface = attachment.interface();
    let mut down = Down { interface: attachment.attached_as().to_owned(), ..Down::default() };
    let instances = [instance_of(&attachment)];
    // Another interface may have the name by now; the index is ours.
    let present = named::name_of(interface.index).and_then(|name| Interface::find(&name).ok());
    let working = waited(records.work(), &mut down)?;
    let away = restore::away(&down.interface);
    if present.is_none() && dead(&down.interface)?.is_empty() {
        // It is in another network namespace: the link is held here, and leads there.
        let detached = attachment.detach(QUIET)?;
        count(&mut down, &detached);
    } else {
        // What it has open would keep the BPF file system mounted.
        drop(attachment);
    }
    down.present =
        present.as_ref().map(|present| present.name.clone()).filter(|name| *name != down.interface);
    if let (None, Some(index)) = (&present, away)
        && let Err(error) = restore::note_away(&down.interface, index, records)
    {
        down.failure(error.to_string());
    }
    take_back(working.as_ref(), present.as_ref(), &instances, down, records)
}

/// The lock is held, where it can be had.
fn take_back(
    _working: Option<&ChangeLock>,
    interface: Option<&Interface>,
    instances: &[Instance],
    mut down: Down,
    records: &Records,
) -> Result<Down, Error> {
    if let Some(interface) = interface {
        detach(interface, &mut down)?;
    }
    for dead in dead(&down.interface)? {
        if xdp::clear_dead(&dead)? {
            down.leftovers.push(match dead.why {
                xdp::Stale::Removed => "the interface had been removed",
                xdp::Stale::Unfinished => "a process was killed while it attached or detached",
            });
        }
    }
    for instance in instances {
        outlast(instance, records, &mut down);
        match records.forget_plan(instance) {
            Err(error) if !error.is_denied() => down.failure(by_hand(&error)),
            _ => {}
        }
    }
    if let Err(error) = restore::restore(&mut down, interface, instances, records) {
        down.failure(format!(
            "whether a setting was changed could not be read, or it is not restored: {error}"
        ));
    }
    if down.is_whole()
        && let Ok(all) = records.instances()
        && interrupted(&all).is_ok_and(|names| names.contains(&down.interface))
        && let Err(error) = forget_interrupted(&all, &down.interface)
    {
        down.failure(error.to_string());
    }
    down.remarks.extend(stale_namespaces::clear(records));
    Ok(down)
}

fn detach(interface: &Interface, down: &mut Down) -> Result<(), Error> {
    match Attachment::open(interface) {
        Ok(Some(attachment)) => {
            attachment.attached_as().clone_into(&mut down.interface);
            down.mode = attachment.mode().ok().map(xdp::Mode::name);
            let detached = attachment.detach(QUIET)?;
            count(down, &detached);
        }
        Ok(None) => down.steered = Attachment::remove(interface)?,
        // What cannot be read can be removed all the same.
        Err(xdp::Error::OtherVersion { .. } | xdp::Error::Damaged { .. }) => {
            down.steered = Attachment::remove(interface)?;
        }
        Err(other) => return Err(other.into()),
    }
    Ok(())
}

fn count(down: &mut Down, detached: &xdp::Detached) {
    down.frames = Some(detached.counters.reason(Reason::Steered));
    down.unseen = Some(detached.unseen);
    down.steered = true;
}

/// Whether an interface that is not steered has pins or settings of an `up` that came to no end.
pub(crate) fn is_left(name: &str, records: &Records) -> bool {
    dead(name).is_ok_and(|dead| !dead.is_empty()) || restore::is_recorded(name, records)
}

fn dead(name: &str) -> Result<Vec<xdp::Dead>, Error> {
    named::dead(Family::Steer, name)
}

fn end(instance: &Instance, records: &Records, down: &mut Down) {
    let kept = match records.kept(instance) {
        Ok(Some(kept)) => kept,
        // A process that holds an unreadable record ends when the program is off; see `outlast`.
        Ok(None) | Err(record::Error::Record(RecordError::Broken { .. })) => return,
        Err(error) if error.is_denied() => return,
        Err(other) => return down.failure(by_hand(&other)),
    };
    let Kept { keeper, alive } = kept;
    let pid = i32::try_from(keeper.pid).ok().and_then(Pid::from_raw);
    if let (true, Some(pid)) = (alive, pid) {
        down.ended = Some(keeper.pid);
        'signals: for signal in [Signal::TERM, Signal::KILL] {
            // It may end in this moment, which is intended.
            let _ = kill_process(pid, signal);
            let begin = Instant::now();
            while begin.elapsed() < PATIENCE {
                if !is_kept(instance, records) {
                    break 'signals;
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    match records.forget(instance) {
        Err(error) if !error.is_denied() => down.failure(by_hand(&error)),
        _ => {}
    }
}

/// Removes a record that cannot be read, once no process holds it: who stayed with the attachment ends by itself when the
/// program is off.
fn outlast(instance: &Instance, records: &Records, down: &mut Down) {
    let broken = || -> Option<(PathBuf, bool)> {
        match records.kept(instance) {
            Err(record::Error::Record(RecordError::Broken { path, held })) => Some((path, held)),
            _ => None,
        }
    };
    let begin = Instant::now();
    while broken().is_some_and(|(_, held)| held) && begin.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(100));
    }
    match broken() {
        None => {}
        Some((path, true)) => down.failure(format!(
            "a process is left that {} should name and does not: `fuser {}` finds it",
            path.display(),
            path.display()
        )),
        Some((path, false)) => match records.forget(instance) {
            Ok(()) => {
                down.remarks.push(format!("removed {}, which was no record of a daemon", path.display()))
            }
            Err(error) => down.failure(by_hand(&error)),
        },
    }
}
