//! Why the journal cannot be used.

use crate::state::StateError;
use host::setting;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a setting was not changed or not put back, or the journal not read or written.
#[derive(Debug, Error)]
pub enum Error {
    /// The directory or a file in it cannot be made, read, written or removed.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried (`make`, `read`, `write`).
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The state folder cannot be used: somebody else could have written the journal.
    #[error(transparent)]
    State(StateError),
    #[error("another rxlane{} is changing settings (it holds {}); wait until it has ended",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), path.display())]
    Busy {
        /// That process; `None` where it has not written its number yet.
        pid: Option<u32>,
        path: PathBuf,
    },
    #[error("line {line} of {} is no record of a journal; the former values stand there as commands under \
        \"former\": put them back by hand, then remove the file", path.display())]
    Damaged {
        path: PathBuf,
        line: u64,
        #[source]
        source: serde_json::Error,
    },
    #[error("{} is a journal of another version of rxlane; undo with that version", path.display())]
    Version { path: PathBuf },
    #[error(
        "the changes were made in another network namespace (net:[{theirs}], this one is net:[{ours}]); \
        run rxlane there, for example with: ip netns exec NAME rxlane ..."
    )]
    Namespace {
        /// Inode of the namespace of the newest change.
        theirs: u64,
        ours: u64,
    },
    #[error(transparent)]
    Setting(#[from] setting::Error),
}

impl From<StateError> for Error {
    fn from(error: StateError) -> Error {
        match error {
            StateError::File { what, path, source } => Error::File { what, path, source },
            other => Error::State(other),
        }
    }
}

impl Error {
    pub(super) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { what, path, source }
    }
}
