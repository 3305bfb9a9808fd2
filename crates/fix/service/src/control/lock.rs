//! What one process at a time does: a locked file in the state folder.

use super::ControlError;
use crate::instance::Instances;
use kernel::file;
use std::fs;
use std::path::PathBuf;

/// A lock in the state folder, by a name. Dropped, it is free and its file is removed; that of a killed process is free, too.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _lock: file::Lock,
}

impl Lock {
    /// The lock of this name, of a kind and of this network namespace; `None`: another process has it.
    pub fn take(instances: &Instances, name: &str) -> Result<Option<Lock>, ControlError> {
        instances.state().make()?;
        let path = instances.file(name, ".lock");
        match file::Lock::at(&path) {
            Ok(lock) => Ok(lock.map(|lock| Lock { path, _lock: lock })),
            Err(source) => Err(ControlError::File { what: "lock", path, source }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked, so that it is no other process's.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, StateDir};

    #[test]
    fn its_file_is_removed_and_one_that_is_left_keeps_nobody_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDir::at(folder.path().join("state"));
        let instances = Instances::new(Kind::Concentrator, state).expect("a namespace");
        let take = |name| Lock::take(&instances, name).expect("a file");
        let one = take("7").expect("free");
        assert!(take("7").is_none());
        let other = take("8").expect("another");
        drop((one, other));
        assert_eq!(fs::read_dir(instances.state().path()).expect("a folder").count(), 0);
        fs::write(instances.file("7", ".lock"), "").expect("as a killed process leaves it");
        assert!(take("7").is_some());
    }
}
