//! Taking steering away: the process that stays, the programs, and every setting that `up` changed.
//!
//! Works whatever became of the process that attached, at whatever moment it was killed, and also where the interface
//! is gone: then its pins are removed, and its settings went with it.

use crate::error::Error;
use crate::named::{self, Named};
use crate::record::{Kept, Place, Records};
use crate::up;
use host::journal::Outcome;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use xdp::layout::Reason;
use xdp::{Attachment, Interface};

/// What was taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Down {
    /// The interface, as it was called when it was attached.
    pub interface: String,
    /// Whether programs were on it.
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
    /// The commands that put settings back, and what became of those that were left.
    pub settings: Vec<String>,
    /// Settings that are not back.
    pub kept: usize,
    /// What else is worth saying.
    pub remarks: Vec<String>,
}

impl Down {
    /// Whether there was anything.
    pub fn is_nothing(&self) -> bool {
        !self.steered && self.leftovers.is_empty() && self.ended.is_none() && self.settings.is_empty()
    }
}

/// Time in which a queue falls silent.
const QUIET: Duration = Duration::from_secs(1);
/// Time for a process to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes everything back.
///
/// The name may be the present one or that under which it was attached.
///
/// # Errors
///
/// [`Error`]; [`Error::NoInterface`] where there is neither such an interface nor anything left of one.
pub fn down(name: &str, records: &Records) -> Result<Down, Error> {
    let dead = dead(name);
    let Named { interface, renamed } = named::named(name)?;
    // An error of reading pins tells more than that there is no interface.
    if interface.is_none() && dead.as_ref().is_ok_and(Vec::is_empty) && !is_noted(name, records) {
        return Err(named::nowhere(name, records));
    }
    let mut down = Down { interface: name.to_owned(), ..Down::default() };
    down.remarks = renamed.iter().map(|other| named::remark(name, other)).collect();
    let mut places: Vec<Place> = dead.unwrap_or_default().iter().map(Place::of_dead).collect();
    match interface.as_ref().map(Attachment::open) {
        Some(Ok(Some(attachment))) => {
            attachment.attached_as().clone_into(&mut down.interface);
            places.push(Place::of(&attachment));
        }
        // What stays with a renamed one is not to be ended.
        _ if !renamed.is_empty() => {}
        _ => places.extend(named::here().map(|here| Place::new(here, name))),
    }
    // Before its turn is taken: a process in the foreground takes steering away by itself, and wants its own.
    for place in &places {
        down.ended = end(place, records)?.or(down.ended);
    }
    take_back(interface.as_ref(), &places, down, records)
}

/// Ends what stays with an interface of this name that is gone, before another one of this name is attached.
pub(crate) fn retire(interface: &Interface, records: &Records) -> Result<(), Error> {
    for dead in dead(&interface.name)? {
        end(&Place::of_dead(&dead), records)?;
    }
    Ok(())
}

/// As [`down`], for the process that keeps the attachment itself. Works wherever the interface is by now.
///
/// # Errors
///
/// [`Error`].
pub fn down_own(attachment: Attachment, records: &Records) -> Result<Down, Error> {
    let interface = attachment.interface();
    let mut down = Down { interface: attachment.attached_as().to_owned(), ..Down::default() };
    let places = [Place::of(&attachment)];
    // Another interface may have the name by now; the index is ours.
    let name = present_name(interface);
    let present = name.and_then(|name| Interface::find(&name).ok()).filter(|it| it.index == interface.index);
    if present.is_none() && dead(&down.interface)?.is_empty() {
        // It is in another network namespace: the link is held here, and leads there.
        let detached = attachment.detach(QUIET)?;
        count(&mut down, &detached);
    }
    take_back(present.as_ref(), &places, down, records)
}

fn take_back(
    interface: Option<&Interface>,
    places: &[Place],
    mut down: Down,
    records: &Records,
) -> Result<Down, Error> {
    let _working = match records.work() {
        Ok(working) => Some(working),
        // Without root nothing can be attached from here either; the loader says what is missing.
        Err(crate::record::Error::File { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            None
        }
        Err(other) => return Err(other.into()),
    };
    if let Some(interface) = interface {
        detach(interface, &mut down)?;
    }
    for dead in dead(&down.interface)? {
        if xdp::clear_dead(&dead)? {
            down.leftovers.push(match dead.why {
                xdp::Death::Removed => "the interface had been removed",
                xdp::Death::Unfinished => "a process was killed while it attached or detached",
            });
        }
    }
    for place in places {
        records.forget_plan(place)?;
    }
    restore(&mut down, places, records)?;
    Ok(down)
}

/// Puts settings back.
fn restore(down: &mut Down, places: &[Place], records: &Records) -> Result<(), Error> {
    if !records.folder().join("journal").exists() {
        return Ok(());
    }
    let mut journal = up::journal(records)?;
    let (by, here) = (up::by(&down.interface), named::here());
    let theirs: Vec<_> = journal.entries().iter().filter(|entry| entry.by == by).collect();
    let is_here = theirs.iter().any(|entry| here.is_none_or(|here| entry.namespace == here));
    // Interfaces of this name in other namespaces are others, unless this one came from there.
    let came_with = |entry: &&&host::journal::Entry| {
        Some(entry.namespace) != here && places.iter().any(|place| place.namespace == entry.namespace)
    };
    for entry in theirs.iter().filter(came_with) {
        down.kept += 1;
        let text = format!(
            "left alone, since the interface was in another network namespace then: {}",
            entry.former
        );
        down.settings.push(text);
    }
    if !is_here {
        return Ok(());
    }
    for one in journal.undo_by(&by, false)? {
        if matches!(one.outcome, Outcome::OtherNamespace) {
            continue;
        }
        down.kept += usize::from(one.outcome.is_kept());
        match &one.outcome {
            // Of an interface that is gone there is nothing to tell.
            Outcome::Gone => {}
            Outcome::Renamed { to } => {
                let former = one.entry.former.to_string().replace(&down.interface, to.as_str());
                let text =
                    format!("left alone, since the interface is now called {to}; this restores it: {former}");
                down.settings.push(text);
            }
            _ => down.settings.push(one.to_string()),
        }
    }
    Ok(())
}

/// The present name of an interface, by its index.
fn present_name(interface: &Interface) -> Option<String> {
    up::interfaces()
        .into_iter()
        .find(|name| Interface::find(name).is_ok_and(|found| found.index == interface.index))
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

/// Dead pins of that name in this network namespace.
fn dead(name: &str) -> Result<Vec<xdp::Dead>, Error> {
    let here = named::here();
    let all = xdp::dead()?;
    Ok(all
        .into_iter()
        .filter(|dead| dead.interface == name && here.is_none_or(|here| here == dead.namespace))
        .collect())
}

/// Whether a setting of an interface of that name in this network namespace is noted.
fn is_noted(name: &str, records: &Records) -> bool {
    if !records.folder().join("journal").exists() {
        return false;
    }
    let (by, here) = (up::by(name), named::here());
    up::journal(records).is_ok_and(|journal| {
        journal
            .entries()
            .iter()
            .any(|entry| entry.by == by && here.is_none_or(|here| entry.namespace == here))
    })
}

/// Ends the process that stays, and waits until it has.
fn end(place: &Place, records: &Records) -> Result<Option<u32>, Error> {
    let kept = match records.kept(place) {
        Ok(kept) => kept,
        Err(crate::record::Error::File { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            None
        }
        Err(other) => return Err(other.into()),
    };
    let Some(Kept { keeper, alive }) = kept else { return Ok(None) };
    let pid = i32::try_from(keeper.pid).ok().and_then(Pid::from_raw);
    if let (true, Some(pid)) = (alive, pid) {
        for signal in [Signal::TERM, Signal::KILL] {
            // It may end in this moment, which is what is wanted.
            let _ = kill_process(pid, signal);
            let begin = Instant::now();
            while begin.elapsed() < PATIENCE {
                if !records.kept(place)?.is_some_and(|kept| kept.alive) {
                    records.forget(place)?;
                    return Ok(Some(keeper.pid));
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    records.forget(place)?;
    Ok(alive.then_some(keeper.pid))
}
