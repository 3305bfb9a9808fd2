//! Taking steering away: the process that stays, the programs, and every setting that `up` changed.
//!
//! Works whatever became of the process that attached, at whatever moment it was killed, and also where the interface
//! is gone: then its pins are removed, and its settings went with it.

use crate::error::{self, Error};
use crate::record::{Kept, Records};
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
/// # Errors
///
/// [`Error`]; [`Error::NoInterface`] where there is neither such an interface nor anything left of one.
pub fn down(name: &str, records: &Records) -> Result<Down, Error> {
    let dead = dead(name);
    let interface = match Interface::find(name) {
        Ok(interface) => Some(interface),
        // An error of reading pins tells more than that there is no interface.
        Err(xdp::Error::NoInterface { .. })
            if dead.as_ref().is_ok_and(Vec::is_empty) && !is_noted(name, records) =>
        {
            return Err(error::unknown(name.to_owned(), up::interfaces()));
        }
        Err(xdp::Error::NoInterface { .. }) => None,
        Err(other) => return Err(other.into()),
    };
    let mut down = Down { interface: name.to_owned(), ..Down::default() };
    if let Some(interface) = &interface
        && let Ok(Some(attachment)) = Attachment::open(interface)
    {
        attachment.attached_as().clone_into(&mut down.interface);
    }
    // Before its turn is taken: a process in the foreground takes steering away by itself, and wants its own.
    let namespace = namespace(interface.as_ref(), dead.as_deref().unwrap_or_default());
    if let Some(namespace) = namespace {
        down.ended = end(namespace, &down.interface, records)?;
    }
    take_back(interface.as_ref(), down, records)
}

/// As [`down`], for the process that keeps the attachment itself.
///
/// # Errors
///
/// [`Error`].
pub fn down_own(interface: &Interface, attached_as: &str, records: &Records) -> Result<Down, Error> {
    let down = Down { interface: attached_as.to_owned(), ..Down::default() };
    // Another interface may have the name by now; the index is ours.
    let present = Interface::find(&interface.name).ok().filter(|present| present.index == interface.index);
    take_back(present.as_ref(), down, records)
}

fn take_back(interface: Option<&Interface>, mut down: Down, records: &Records) -> Result<Down, Error> {
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
    if records.folder().join("journal").exists() {
        for one in up::journal(records)?.undo_by(&up::by(&down.interface), false)? {
            down.kept += usize::from(one.outcome.is_kept());
            // Of an interface that is gone there is nothing to tell.
            if !matches!(one.outcome, Outcome::Gone) {
                down.settings.push(one.to_string());
            }
        }
    }
    Ok(down)
}

fn detach(interface: &Interface, down: &mut Down) -> Result<(), Error> {
    match Attachment::open(interface) {
        Ok(Some(attachment)) => {
            attachment.attached_as().clone_into(&mut down.interface);
            down.mode = attachment.mode().ok().map(xdp::Mode::name);
            let detached = attachment.detach(QUIET)?;
            down.frames = Some(detached.counters.reason(Reason::Steered));
            down.unseen = Some(detached.unseen);
            down.steered = true;
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

/// Dead pins of that name in this network namespace.
fn dead(name: &str) -> Result<Vec<xdp::Dead>, Error> {
    let here = Interface::find("lo").map(|lo| lo.namespace).ok();
    let all = xdp::dead()?;
    Ok(all
        .into_iter()
        .filter(|dead| dead.interface == name && here.is_none_or(|here| here == dead.namespace))
        .collect())
}

/// Whether a setting of an interface of that name is noted, or a process that stays with it.
fn is_noted(name: &str, records: &Records) -> bool {
    if !records.folder().join("journal").exists() {
        return false;
    }
    up::journal(records).is_ok_and(|journal| journal.entries().iter().any(|entry| entry.by == up::by(name)))
}

fn namespace(interface: Option<&Interface>, dead: &[xdp::Dead]) -> Option<u64> {
    let of_dead = || dead.first().map(|dead| dead.namespace);
    interface
        .map(|interface| interface.namespace)
        .or_else(of_dead)
        .or_else(|| Some(Interface::find("lo").ok()?.namespace))
}

/// Ends the process that stays, and waits until it has.
fn end(namespace: u64, interface: &str, records: &Records) -> Result<Option<u32>, Error> {
    let kept = match records.kept(namespace, interface) {
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
                if !records.kept(namespace, interface)?.is_some_and(|kept| kept.alive) {
                    records.forget(namespace, interface)?;
                    return Ok(Some(keeper.pid));
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    records.forget(namespace, interface)?;
    Ok(alive.then_some(keeper.pid))
}
