//! The lines of the journal.

use host::setting::{Former, Setting};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub(super) enum Record {
    /// The first line.
    Journal {
        version: u32,
    },
    /// A setting is about to be changed.
    Intent(Entry),
    Done {
        number: u64,
        /// What puts the new value back.
        after: Option<Former>,
    },
    /// Its interface is in another network namespace.
    Moved {
        number: u64,
        to: Moved,
    },
    /// Nothing was changed in the end, or what was changed went by itself.
    Dropped {
        number: u64,
    },
    Undone {
        number: u64,
    },
}

impl Record {
    pub(super) const VERSION: u32 = 1;
}

/// How far a change came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// It was about to be made.
    #[default]
    Intended,
    /// It was made, and this was there afterwards.
    Done(Option<Former>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The inode of its network namespace; `None`: not known.
    pub namespace: Option<u64>,
    pub index: u32,
    /// Its name there; `None`: not known.
    pub name: Option<String>,
}

/// A setting that was changed, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, ascending.
    pub number: u64,
    /// When, seconds since 1970-01-01 UTC.
    pub at: u64,
    /// The command of rxlane (`doctor --apply`).
    pub by: String,
    pub pid: u32,
    /// `/proc/sys/kernel/random/boot_id` of then.
    pub boot: String,
    /// The network namespace: inode of `/proc/thread-self/ns/net`.
    pub namespace: u64,
    /// The number of the setting's interface; a new one of the same name has another.
    pub index: Option<u32>,
    pub setting: Setting,
    /// What puts the value back that was there before.
    pub former: Former,
    /// Where the interface went, if somebody recorded it ([`Journal::note_moved`](super::Journal::note_moved)).
    #[serde(skip)]
    pub moved: Option<Moved>,
    #[serde(skip)]
    pub(super) state: State,
}

impl Entry {
    /// Whether the process ended between noting the change and noting that it was made.
    pub fn is_interrupted(&self) -> bool {
        self.state == State::Intended
    }

    pub(super) fn done(&mut self, after: Option<Former>) {
        self.state = State::Done(after);
    }
}
