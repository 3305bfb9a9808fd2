//! What rxlane changed on this machine, from which everything is put back.
//!
//! # Contract
//!
//! * Before a setting is changed, the journal holds the change and the former value, on the disk (fsync(2));
//!   afterwards, what it became. A process that is killed at any moment leaves a journal from which [`Journal::undo`]
//!   puts back what was changed. A last line that was only half written is left out, with a [`Note`].
//! * [`Journal::undo`] goes backwards, marks what is back, and removes the journal when all is. Undoing again does
//!   nothing.
//! * What somebody else changed since is not overwritten, unless forced: the outcome says what is there.
//! * One process at a time, by flock(2) on a file of its own. The lock is open in the programs that change settings
//!   too, so that nobody reads a value that a program of a killed process is about to change.
//! * Entries are of one boot, since the settings do not outlive it, and of one network namespace, from which alone
//!   they are undone. Those of a namespace that is no more stay until `rxlane steer` strikes
//!   them, or the next boot.
//!
//! # Form
//!
//! `journal` in the state folder, one JSON object a line: `journal` (the version), `intent`,
//! `done`, `moved` (to another network namespace), `dropped` (nothing was changed in the end) and `undone`. Settings stand there as commands, so that a person
//! who has the file and no rxlane can put things back.
//!
//! # Deliberately not here
//!
//! Asking whether a change is intended, and printing: crate `cli`.

mod error;
mod place;
mod record;
mod undo;

pub use error::Error;
pub use record::{Entry, Moved};
pub use undo::{Outcome, Undone};

use crate::state::StateDir;
use host::setting::{Error as SettingError, Former, InterfaceName, Present, Setting, Tree};
use place::{Log, Place};
use record::Record;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Something that was found when the journal was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The last line was half written: the process was killed before it changed what the line would have said, or
    /// before it recorded that it had.
    HalfLine,
    /// Entries of an earlier boot, which took their settings with it, were dropped.
    OtherBoot { entries: usize },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::HalfLine => f.write_str("the last line of the journal was half written and is left out"),
            Note::OtherBoot { entries } => {
                write!(f, "dropped what was changed before the last boot ({entries} settings)")
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The value was so already: nothing was done or recorded.
    Already,
    Changed {
        /// What puts it back.
        former: Former,
        after: Present,
    },
}

/// The journal of this machine, open and locked.
#[derive(Debug)]
pub struct Journal {
    place: Place,
    tree: Tree,
    log: Log,
    entries: Vec<Entry>,
    notes: Vec<Note>,
    boot: String,
    namespace: u64,
    next: u64,
}

impl Journal {
    /// Opens the journal in the state folder, for changes on `tree`. It lives as long as the settings do: until the next boot.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: another rxlane has it. [`Error::Damaged`]: a line in the midst of the file is none of its
    /// records. Otherwise the directory or a file in it cannot be made, read or written; without root the cause
    /// is of the kind [`PermissionDenied`](std::io::ErrorKind::PermissionDenied).
    pub fn open(state: &StateDir, tree: &Tree) -> Result<Journal, Error> {
        let boot = tree.read("/proc/sys/kernel/random/boot_id")?;
        let namespace = place::namespace(tree)?;
        let place = Place::open(state)?;
        let (log, content) = Log::open(&place)?;
        let mut notes = Vec::new();
        if content.half_line {
            notes.push(Note::HalfLine);
        }
        let tree = tree.holding(place.lock()?);
        let next = content.next;
        let mut journal =
            Journal { place, tree, log, entries: content.entries, notes, boot, namespace, next };
        journal.drop_other_boots()?;
        Ok(journal)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Changes a setting. `by` is the command that does so, for the reader of the journal (`doctor --apply`).
    ///
    /// # Errors
    ///
    /// As [`Setting::apply`]: the setting is what it was before, or, where even that failed, the entry remains in the
    /// journal. Or the journal cannot be written: before the change, nothing was changed; after it, the change is
    /// recorded as one that was interrupted, and [`Journal::undo`] takes it back.
    pub fn apply(&mut self, setting: &Setting, by: &str) -> Result<Applied, Error> {
        let before = setting.read(&self.tree)?;
        if before.in_effect {
            return Ok(Applied::Already);
        }
        let Some(former) = before.former.clone() else {
            return Err(Error::Setting(setting.unrestorable()));
        };
        let number = self.intend(setting, &former, by)?;
        match setting.change(&self.tree, &before) {
            Ok(after) => {
                let record = Record::Done { number, after: after.former.clone() };
                self.log.append(&self.place, &record)?;
                if let Some(entry) = self.entries.last_mut() {
                    entry.done(after.former.clone());
                }
                Ok(Applied::Changed { former, after })
            }
            Err(error) => {
                self.take_back(setting, &former, number)?;
                Err(Error::Setting(error))
            }
        }
    }

    /// Writes the intent down and gives its number.
    fn intend(&mut self, setting: &Setting, former: &Former, by: &str) -> Result<u64, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let entry = Entry {
            number: self.next,
            at: now,
            by: by.to_owned(),
            pid: std::process::id(),
            boot: self.boot.clone(),
            namespace: self.namespace,
            index: setting.interface().and_then(|interface| self.tree.interface_index(interface)),
            setting: setting.clone(),
            former: former.clone(),
            moved: None,
            state: record::State::Intended,
        };
        self.log.append(&self.place, &Record::Intent(entry.clone()))?;
        self.next = self.next.saturating_add(1);
        let number = entry.number;
        self.entries.push(entry);
        Ok(number)
    }

    /// Notes that the interface of an entry is in another network namespace, so that it is not taken for one that is
    /// removed.
    pub fn note_moved(&mut self, number: u64, to: Moved) -> Result<(), Error> {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) else { return Ok(()) };
        if entry.moved.as_ref() != Some(&to) {
            entry.moved = Some(to.clone());
            self.log.append(&self.place, &Record::Moved { number, to })?;
        }
        Ok(())
    }

    /// Strikes an entry of another network namespace if the interface, called `name` in this one, has its former value.
    ///
    /// # Errors
    ///
    /// [`Error::File`]; [`Error::Setting`]: the value cannot be read.
    pub fn settle(&mut self, number: u64, name: &InterfaceName) -> Result<bool, Error> {
        let Some(entry) = self.entries.iter().find(|entry| entry.number == number) else { return Ok(true) };
        let is_back = entry.is_back_on(name, &self.tree)?;
        if is_back {
            self.strike(&Record::Undone { number }, number)?;
            self.remove_when_empty()?;
        }
        Ok(is_back)
    }

    /// Strikes an entry whose interface was removed for good.
    pub fn forget(&mut self, number: u64) -> Result<(), Error> {
        self.strike(&Record::Dropped { number }, number)?;
        self.remove_when_empty()
    }

    /// After a change that failed: it may have had a part of its effect (a feature that is now requested and cannot
    /// be on).
    fn take_back(&mut self, setting: &Setting, former: &Former, number: u64) -> Result<(), Error> {
        let unchanged = |present: Result<Present, SettingError>| {
            present.is_ok_and(|present| present.former.as_ref() == Some(former))
        };
        if unchanged(setting.read(&self.tree)) || former.restore(&self.tree).is_ok() {
            self.strike(&Record::Dropped { number }, number)?;
            self.remove_when_empty()?;
        }
        Ok(())
    }

    /// Notes that an entry needs no putting back any more.
    fn strike(&mut self, record: &Record, number: u64) -> Result<(), Error> {
        self.log.append(&self.place, record)?;
        self.entries.retain(|entry| entry.number != number);
        Ok(())
    }

    fn drop_other_boots(&mut self) -> Result<(), Error> {
        let others: Vec<u64> =
            self.entries.iter().filter(|entry| entry.boot != self.boot).map(|entry| entry.number).collect();
        for number in &others {
            self.strike(&Record::Dropped { number: *number }, *number)?;
        }
        if !others.is_empty() {
            self.notes.push(Note::OtherBoot { entries: others.len() });
        }
        self.remove_when_empty()
    }

    fn remove_when_empty(&mut self) -> Result<(), Error> {
        if self.entries.is_empty() { self.log.remove(&self.place) } else { Ok(()) }
    }
}
