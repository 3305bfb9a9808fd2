//! The state folder: records, journal, control sockets and locks of everything that is up.
//!
//! # Contract
//!
//! * Who can write there decides what commands run as root and whom a question reaches. So a folder that belongs to somebody
//!   else, or that others can write to, is refused, to those who read as to those who write; and so are such folders above it.
//! * It is made with mode 0700, and one that others can read is closed to them when something is written.
//! * It lasts as long as what it describes: `/run` is emptied by the next boot.

use kernel::file::{FolderError, TrustError, expect_trusted, is_trusted_folder, private_folder};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The folder, by its absolute path. Nothing is made or checked before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir(PathBuf);

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Somebody else can write there, or it is no folder.
    #[error("rxlane keeps no state where others could write it: {0}")]
    Unsafe(FolderError),
    /// The same of a folder above it.
    #[error("rxlane keeps no state where others could write it: {0}")]
    Untrusted(TrustError),
    #[error("cannot {what} {}: {source}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
}

impl From<FolderError> for StateError {
    fn from(error: FolderError) -> StateError {
        match error {
            FolderError::Io { doing, path, source } => StateError::File { what: doing, path, source },
            other => StateError::Unsafe(other),
        }
    }
}

impl StateError {
    /// For `map_err`: what was tried, and on which file.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StateError + use<> {
        let path = path.to_owned();
        move |source| StateError::File { what, path, source }
    }

    /// Whether it requires root.
    pub fn is_denied(&self) -> bool {
        matches!(self, StateError::File { source, .. } if source.kind() == ErrorKind::PermissionDenied)
    }
}

impl StateDir {
    /// Where the state of a machine is.
    pub const DEFAULT: &str = "/run/rxlane";

    /// That folder; a relative path is taken from the present folder, which a daemon leaves.
    pub fn at(path: impl Into<PathBuf>) -> StateDir {
        let path = path.into();
        StateDir(std::path::absolute(&path).unwrap_or(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder where it is not there, and sees that nobody else can write to it.
    pub fn make(&self) -> Result<(), StateError> {
        self.expect_trusted_above()?;
        Ok(private_folder(&self.0)?)
    }

    /// Sees that nobody but this user and root can write to the folder, before something is read there.
    pub fn check(&self) -> Result<(), StateError> {
        self.expect_trusted_above()?;
        Ok(is_trusted_folder(&self.0).map(drop)?)
    }

    fn expect_trusted_above(&self) -> Result<(), StateError> {
        let above = self.0.parent().unwrap_or(&self.0);
        expect_trusted(above).map_err(|error| match error {
            TrustError::Io { path, source } => StateError::File { what: "look at", path, source },
            other => StateError::Untrusted(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    /// Attack: who can write to a folder above puts another one in its place.
    #[test]
    fn a_folder_below_one_of_others_is_refused() {
        let above = tempfile::tempdir().expect("a folder");
        let open = above.path().join("open");
        create_dir(&open).expect("a folder");
        let state = StateDir::at(open.join("state"));
        state.make().expect("made");
        set_permissions(&open, Permissions::from_mode(0o777)).expect("a mode");
        for refused in [state.make(), state.check()] {
            let error = refused.expect_err("others can write above").to_string();
            assert!(error.contains(&format!("{} (mode 0777)", open.display())), "{error}");
        }
    }
}
