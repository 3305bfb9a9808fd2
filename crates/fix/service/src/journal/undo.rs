//! Putting back.

use super::record::{Entry, Record, State};
use super::{Error, Journal};
use host::setting::{self, InterfaceName, Present, Tree};
use std::fmt;
use std::io;

#[derive(Debug)]
pub enum Outcome {
    Restored,
    AlreadyBack,
    /// The interface, interrupt or sysctl was removed, and the setting with it. Nothing to put back.
    Removed,
    /// Somebody changed the value since: it was left unchanged, and the entry remains.
    Foreign {
        present: Present,
    },
    /// The interface has another name now: it was left unchanged, and the entry remains.
    Renamed {
        to: InterfaceName,
    },
    /// The interface went to another network namespace: the entry remains.
    Moved,
    /// The change was made in another network namespace: the entry remains.
    OtherNamespace,
    /// It could not be read or put back: the entry remains.
    Failed(setting::Error),
}

impl Outcome {
    /// Whether the entry is still to be put back.
    pub fn is_kept(&self) -> bool {
        match self {
            Outcome::Restored | Outcome::AlreadyBack | Outcome::Removed => false,
            Outcome::Foreign { .. }
            | Outcome::Renamed { .. }
            | Outcome::Moved
            | Outcome::OtherNamespace
            | Outcome::Failed(_) => true,
        }
    }
}

#[derive(Debug)]
pub struct Undone {
    pub entry: Entry,
    pub outcome: Outcome,
}

impl Undone {
    /// Whether this restores what an older change had made.
    fn brings_back(&self, older: &Entry) -> bool {
        let State::Done(Some(made)) = &older.state else { return false };
        let restored = self.entry.former.settings();
        matches!(self.outcome, Outcome::Restored) && made.settings().iter().all(|one| restored.contains(one))
    }

    /// Those that are still to be put back, as one line; `None`: all are back.
    pub fn kept(all: &[Undone]) -> Option<String> {
        let kept: Vec<String> =
            all.iter().filter(|one| one.outcome.is_kept()).map(ToString::to_string).collect();
        (!kept.is_empty()).then(|| kept.join("; "))
    }
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Undone { entry: Entry { setting, former, .. }, outcome } = self;
        match outcome {
            Outcome::Restored => write!(f, "{former}"),
            Outcome::AlreadyBack => write!(f, "already back: {former}"),
            Outcome::Removed => write!(f, "removed, with the interface or device: {setting}"),
            Outcome::Foreign { present } => write!(
                f,
                "left alone, since somebody changed it after rxlane ({setting}): it is now {}; forced, it \
                 becomes {former}",
                present.to_text()
            ),
            Outcome::Renamed { to } => {
                write!(f, "the interface is now called {to}; this restores it: {}", former.of(to))
            }
            Outcome::Moved => write!(
                f,
                "the interface is in another network namespace; this restores it there (`ip netns exec NAMESPACE …`): {former}"
            ),
            Outcome::OtherNamespace => write!(f, "left alone, in another network namespace: {former}"),
            Outcome::Failed(error) => {
                write!(f, "not put back: {former}: {error}")?;
                error.io().map_or(Ok(()), |cause| write!(f, ": {cause}"))
            }
        }
    }
}

impl Journal {
    /// Puts back what the journal holds, newest first, and removes the journal when nothing is left. With `force`
    /// also what somebody else changed since.
    ///
    /// # Errors
    ///
    /// [`Error::Namespace`]: everything in it was changed in other network namespaces. [`Error::File`]: the journal
    /// cannot be written; what was put back before is back. A setting that cannot be put back is no error but an
    /// [`Outcome`], and the others are put back all the same.
    pub fn undo(&mut self, force: bool) -> Result<Vec<Undone>, Error> {
        self.undo_where(force, |_| true)
    }

    /// As [`Journal::undo`], of those entries alone that were made by the command `by`, as [`Journal::apply`] was called.
    pub fn undo_by(&mut self, by: &str, force: bool) -> Result<Vec<Undone>, Error> {
        self.undo_where(force, |entry| entry.by == by)
    }

    /// As [`Journal::undo`], of the entries with these numbers alone.
    pub fn undo_these(&mut self, numbers: &[u64], force: bool) -> Result<Vec<Undone>, Error> {
        self.undo_where(force, |entry| numbers.contains(&entry.number))
    }

    /// What [`Journal::undo_by`] would come to, which changes nothing: [`Outcome::Restored`] is what it would restore.
    ///
    /// # Errors
    ///
    /// [`Error::Namespace`].
    pub fn undo_preview(&self, by: &str, force: bool) -> Result<Vec<Undone>, Error> {
        let mut all: Vec<Undone> = Vec::new();
        for entry in self.selected(|entry| entry.by == by)? {
            // What a newer change has covered is there again when that one is undone, which comes first.
            let is_uncovered = all.iter().any(|newer| newer.brings_back(&entry));
            let outcome = if is_uncovered { Outcome::Restored } else { self.outcome(&entry, force) };
            all.push(Undone { entry, outcome });
        }
        Ok(all)
    }

    /// The entries to be undone, the newest first.
    fn selected(&self, is_selected: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>, Error> {
        let entries: Vec<Entry> =
            self.entries.iter().rev().filter(|entry| is_selected(entry)).cloned().collect();
        let is_ours = |entry: &Entry| entry.namespace == self.namespace;
        if let Some(newest) = entries.first().filter(|_| !entries.iter().any(is_ours)) {
            return Err(Error::Namespace { theirs: newest.namespace, ours: self.namespace });
        }
        Ok(entries)
    }

    fn undo_where(
        &mut self,
        force: bool,
        is_selected: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<Undone>, Error> {
        let mut all = Vec::new();
        for entry in self.selected(is_selected)? {
            let outcome = match self.outcome(&entry, force) {
                Outcome::Restored => match entry.former.restore(&self.tree) {
                    Ok(()) => Outcome::Restored,
                    Err(error) => Outcome::Failed(error),
                },
                kept => kept,
            };
            let number = entry.number;
            match outcome {
                Outcome::Restored | Outcome::AlreadyBack => {
                    self.strike(&Record::Undone { number }, number)?
                }
                Outcome::Removed => self.strike(&Record::Dropped { number }, number)?,
                _ => {}
            }
            all.push(Undone { entry, outcome });
        }
        self.remove_when_empty()?;
        Ok(all)
    }

    /// What undoing an entry comes to, if it can be restored where it is to be.
    fn outcome(&self, entry: &Entry, force: bool) -> Outcome {
        if entry.namespace != self.namespace {
            return Outcome::OtherNamespace;
        }
        if let Some(outcome) = self.missing(entry) {
            return outcome;
        }
        let present = match entry.setting.read(&self.tree) {
            Ok(present) => present,
            Err(error) if is_removed(entry, &error) => return Outcome::Removed,
            Err(error) => return Outcome::Failed(error),
        };
        if present.former.as_ref() == Some(&entry.former) {
            return Outcome::AlreadyBack;
        }
        if !force && !is_ours(entry, &present) {
            return Outcome::Foreign { present };
        }
        Outcome::Restored
    }

    /// What to do where the interface is not there any more under its name.
    fn missing(&self, entry: &Entry) -> Option<Outcome> {
        let (interface, index) = (entry.setting.interface()?, entry.index?);
        // One that went to another network namespace keeps the number that it got there when it comes back.
        let is_its =
            |present| present == index || entry.moved.as_ref().is_some_and(|moved| moved.index == present);
        match self.tree.interface_index(interface) {
            Some(present) if is_its(present) => None,
            // Another interface has the name, or none.
            _ => Some(match self.tree.interface_with(index) {
                Some(to) if entry.is_back_on(&to, &self.tree).is_ok_and(|is_back| is_back) => {
                    Outcome::AlreadyBack
                }
                Some(to) => Outcome::Renamed { to },
                None if entry.moved.is_some() => Outcome::Moved,
                None => Outcome::Removed,
            }),
        }
    }
}

impl Entry {
    /// Whether the value of its interface, which is called `name` now, is what it was.
    pub(super) fn is_back_on(&self, name: &InterfaceName, tree: &Tree) -> Result<bool, setting::Error> {
        let present = self.setting.of(name).read(tree)?;
        Ok(present.former == Some(self.former.of(name)))
    }
}

/// Whether the present value is what the entry's change left.
fn is_ours(entry: &Entry, present: &Present) -> bool {
    match &entry.state {
        State::Done(after) => present.former == *after,
        // The process was killed before it recorded what the change left. The requested value is its work; so is, most
        // likely, another one of a setting that drivers round.
        State::Intended => present.in_effect || entry.setting.is_rounded_by_drivers(),
    }
}

/// Whether an interrupt or a sysctl is not there any more.
fn is_removed(entry: &Entry, error: &setting::Error) -> bool {
    let no_file =
        matches!(error, setting::Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound);
    no_file && entry.setting.interface().is_none()
}
