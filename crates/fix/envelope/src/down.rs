//! Taking an envelope down: the MTU first, then the program, then what is left of either.
//!
//! Works even if the process that put it up was killed, at any moment, and also where the interface was
//! removed: then its pins and notes are removed, and its MTU went with it.

use crate::{Error, place};
use host::setting::{InterfaceName, Setting, Tree};
use serde::Serialize;
use service::journal::Entry;
use service::record::{forget_interrupted, interrupted};
use service::{Instances, Kind};
use steer::error::with_causes;
use steer::record::Records;
use steer::{named, stale_namespaces, up};
use xdp::envelope::Envelope;
use xdp::{Family, Interface};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Down {
    /// The interface, as it was called when it got the envelope.
    pub interface: String,
    /// Its present name, where that is another.
    pub present: Option<String>,
    pub attached: bool,
    /// Frames that were refused; `None` where they could not be read.
    pub refused: Option<u64>,
    /// What put the MTU back; `None`: nothing was to be put back.
    pub restored: Option<String>,
    /// Why pins were removed whose program was on no interface.
    pub leftovers: Vec<&'static str>,
    /// Why the MTU is not what it was, and what restores it.
    pub left: Vec<String>,
    pub remarks: Vec<String>,
}

impl Down {
    pub fn is_whole(&self) -> bool {
        self.left.is_empty()
    }
}

/// Takes everything back. The name may be the present one or that under which the interface got the envelope.
pub fn down(name: &str, records: &Records) -> Result<Down, Error> {
    // Refused to look, it would find nothing.
    let dead = named::dead(Family::Envelope, name)?;
    let interface = named::named(Family::Envelope, name)?.interface;
    if let Some(interface) = &interface {
        open(interface)?;
    } else if dead.is_empty() && !place::is_recorded(name, records) {
        return Err(named::nowhere(Family::Envelope, name, records).into());
    }
    let lock = |interface| records.wait_for_lock(Kind::Envelope, interface);
    let _alone = interface.as_ref().map(lock).transpose()?;
    let _lock = records.work()?;
    undo(name, records)
}

/// Undoes what processes did that were killed while they brought envelopes up; a sentence each. What cannot be undone remains
/// recorded, for `down`.
pub fn recover(records: &Records) -> Result<Vec<String>, Error> {
    let instances = &Instances::new(Kind::Envelope, records.state().clone())?;
    if interrupted(instances)?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = records.work()?;
    let again = |name: &String| -> Result<String, Error> {
        match undo(name, records) {
            // It was killed before it had done anything.
            Ok(_) | Err(Error::None { .. }) => {}
            Err(error) => return Err(error),
        }
        forget_interrupted(instances, name)?;
        Ok(format!("a process was killed while it brought up an envelope of {name}: what it did is undone"))
    };
    Ok(interrupted(instances)?.iter().filter_map(|name| again(name).ok()).collect())
}

/// The lock is held.
fn undo(name: &str, records: &Records) -> Result<Down, Error> {
    let dead = named::dead(Family::Envelope, name)?;
    let interface = named::named(Family::Envelope, name)?.interface;
    let mut down = Down { interface: name.to_owned(), ..Down::default() };
    let mut found = !dead.is_empty();
    if let Some(interface) = &interface {
        let envelope = open(interface)?;
        if let Opened::Whole(envelope) = &envelope {
            envelope.attached_as().clone_into(&mut down.interface);
        }
        down.present = Some(interface.name.clone()).filter(|present| *present != down.interface);
        found |= restore(&mut down, interface, &envelope, records)?;
        down.attached = !matches!(envelope, Opened::None);
        down.refused = match &envelope {
            Opened::Whole(envelope) => envelope.counts().ok().map(|counted| counted.refused.iter().sum()),
            _ => None,
        };
        found |= Envelope::remove(interface)?;
    }
    for one in &dead {
        if xdp::clear_dead(one)? {
            down.leftovers.push(match one.why {
                xdp::Stale::Removed => "the interface had been removed, or the program was taken off it",
                xdp::Stale::Unfinished => "a process was killed while it attached or detached",
            });
        }
    }
    if let Some(mut journal) = up::existing_journal(records)? {
        for number in place::orphans(&journal, name) {
            journal.forget(number)?;
            found = true;
        }
    }
    let instances = Instances::new(Kind::Envelope, records.state().clone())?;
    if down.is_whole() && interrupted(&instances).is_ok_and(|names| names.iter().any(|other| other == name)) {
        found = true;
        forget_interrupted(&instances, name)?;
    }
    down.remarks.extend(stale_namespaces::clear(records));
    match (found, interface) {
        (true, _) => Ok(down),
        (false, Some(_)) => {
            let renamed = named::named(Family::Envelope, name)?.renamed.into_iter().next();
            Err(Error::None { interface: name.to_owned(), renamed })
        }
        (false, None) => Err(named::nowhere(Family::Envelope, name, records).into()),
    }
}

enum Opened {
    None,
    Whole(Box<Envelope>),
    /// What cannot be read can be removed all the same.
    Unreadable,
}

fn open(interface: &Interface) -> Result<Opened, Error> {
    match Envelope::open(interface) {
        Ok(Some(envelope)) => Ok(Opened::Whole(Box::new(envelope))),
        Ok(None) => Ok(Opened::None),
        Err(xdp::Error::OtherVersion { .. } | xdp::Error::Damaged { .. }) => Ok(Opened::Unreadable),
        Err(other) => Err(other.into()),
    }
}

/// Puts the MTU back, by the journal or, where that has nothing of it, by the pins. Gives whether it was recorded.
fn restore(
    down: &mut Down,
    interface: &Interface,
    envelope: &Opened,
    records: &Records,
) -> Result<bool, Error> {
    let name: InterfaceName = interface.name.parse()?;
    let envelope = match envelope {
        Opened::Whole(envelope) => Some(&**envelope),
        Opened::None | Opened::Unreadable => None,
    };
    let mut journal = up::existing_journal(records)?;
    let recorded: Vec<Entry> =
        journal.iter().flat_map(|journal| place::entries(journal, interface, envelope)).collect();
    let by_pins = envelope.map(|envelope| {
        let former = envelope.payload();
        Change { former, raised: former.saturating_add(envelope.header()) }
    });
    let change = recorded.iter().find_map(change_of).or(by_pins);
    if let Some(change) = change {
        put_back(down, interface, &name, change)?;
    }
    if let Some(journal) = &mut journal {
        for entry in &recorded {
            // Somebody else's value has taken its place, which has been reported.
            if !journal.settle(entry.number, &name)? {
                journal.forget(entry.number)?;
            }
        }
    }
    Ok(!recorded.is_empty())
}

#[derive(Clone, Copy)]
struct Change {
    former: u32,
    raised: u32,
}

fn change_of(entry: &Entry) -> Option<Change> {
    match (&entry.setting, entry.former.settings()) {
        (Setting::Mtu { mtu: raised, .. }, [Setting::Mtu { mtu: former, .. }]) => {
            Some(Change { former: *former, raised: *raised })
        }
        _ => None,
    }
}

fn put_back(
    down: &mut Down,
    interface: &Interface,
    name: &InterfaceName,
    change: Change,
) -> Result<(), Error> {
    let setting = Setting::Mtu { interface: name.clone(), mtu: change.former };
    match interface.described()?.mtu {
        Some(mtu) if mtu == change.former => {}
        Some(mtu) if mtu == change.raised => match setting.apply(&Tree::live()) {
            Ok(_) => down.restored = Some(setting.command()),
            Err(error) => {
                return Err(Error::Restore { interface: interface.name.clone(), why: with_causes(&error) });
            }
        },
        mtu => down.left.push(format!(
            "somebody changed the MTU since: it is {} and stays so; `{setting}` makes it what it was",
            mtu.unwrap_or_default()
        )),
    }
    Ok(())
}
