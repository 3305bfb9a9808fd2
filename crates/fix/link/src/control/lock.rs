//! What one process at a time does: a locked file beside the sockets, where none but root can lock one. The lock ends with its
//! process, however that ends; a killed one leaves the file, which the next one takes.

use super::{ControlError, Sockets, server};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How the names of the files end.
const ENDING: &str = ".lock";

/// See the [module](self). Dropped, it is free and its file is gone.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// That of this network namespace, and of what is called so; `None`: another process has it.
    ///
    /// # Errors
    ///
    /// The folder or the file cannot be made.
    pub fn take(sockets: &Sockets, what: &str) -> Result<Option<Lock>, ControlError> {
        server::make_folder(sockets)?;
        let path = sockets.folder.join(format!("{}{ENDING}", sockets.beginning(what)));
        Lock::at(&path).map_err(|source| ControlError::File { what: "lock", path, source })
    }

    fn at(path: &Path) -> io::Result<Option<Lock>> {
        let number = |file: &Metadata| (file.st_dev(), file.st_ino());
        loop {
            let flags = OFlags::NOFOLLOW.bits().cast_signed();
            let mut options = File::options();
            let options = options.read(true).write(true).create(true).mode(0o600).custom_flags(flags);
            let file = options.open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // Whoever had it may have removed it between the two steps, and another one may have made it anew.
            let there = fs::symlink_metadata(path).ok();
            if there.is_some_and(|there| file.metadata().is_ok_and(|own| number(&own) == number(&there))) {
                return Ok(Some(Lock { path: path.to_owned(), _file: file }));
            }
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
    use super::super::Bearer;
    use super::*;

    #[test]
    fn one_has_it_at_a_time_and_a_file_that_is_left_keeps_nobody_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let sockets = Sockets::new(Bearer::Concentrator, folder.path().join("state")).expect("a namespace");
        let take = |what| Lock::take(&sockets, what).expect("a file");
        let one = take("7").expect("free");
        assert!(take("7").is_none());
        let other = take("8").expect("another");
        drop((one, other));
        assert_eq!(fs::read_dir(sockets.folder()).expect("a folder").count(), 0);
        // As a process leaves it that was killed.
        fs::write(sockets.folder().join(format!("{}.lock", sockets.beginning("7"))), "").expect("written");
        assert!(take("7").is_some());
    }
}
