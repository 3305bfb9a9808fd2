//! Locks (flock(2)).

use super::{Regular, is_same};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A locked file or folder. The lock ends when this is dropped, and with the process, however that ends. A program that the
/// process starts with the file open has the lock, too.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Locks the file at `path` for this process alone, and makes it (mode 0600) where there is none; `None`: another process has
    /// the lock.
    ///
    /// The file can be removed while it is locked: whoever opened it before and locks it after that takes the new one. Error:
    /// the file cannot be made or opened, or is no regular one: a symbolic link is none either.
    pub fn at(path: &Path) -> io::Result<Option<Lock>> {
        loop {
            if fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink()) {
                return Err(io::Error::other("it is a symbolic link: expected a regular file"));
            }
            let mut options = File::options();
            let file = Regular::open_with(
                path,
                options.read(true).write(true).create(true).truncate(false).mode(0o600),
            )?;
            let Some(lock) = Lock::exclusive(file.into_file())? else { return Ok(None) };
            if lock.is_at(path)? {
                return Ok(Some(lock));
            }
        }
    }

    /// Locks an open file for this process alone; `None`: another process has it.
    pub fn exclusive(file: File) -> io::Result<Option<Lock>> {
        Lock::tried(file.try_lock(), file)
    }

    /// Locks an open file together with others that only read; `None`: another process has it alone.
    pub fn shared(file: File) -> io::Result<Option<Lock>> {
        Lock::tried(file.try_lock_shared(), file)
    }

    /// Locks an open file for this process alone, as soon as others let it. For what takes moments: a process that is stopped
    /// (SIGSTOP) keeps its lock.
    pub fn wait(file: File) -> io::Result<Lock> {
        loop {
            match file.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                locked => return locked.map(|()| Lock { file }),
            }
        }
    }

    fn tried(tried: Result<(), TryLockError>, file: File) -> io::Result<Option<Lock>> {
        match tried {
            Ok(()) => Ok(Some(Lock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether the locked file is (still) the one at `path`. Error: `path` cannot be looked at; that nothing is there is no
    /// error.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(there) => Ok(is_same(&self.file.metadata()?, &there)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a program that another thread is just starting has the file open until its execve(2).
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn one_has_it_at_a_time_and_a_file_that_is_left_keeps_nobody_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let take = || Lock::at(&path).expect("a file");
        let one = take().expect("free");
        assert!(take().is_none());
        assert!(Lock::shared(File::open(&path).expect("a file")).expect("tried").is_none());
        fs::remove_file(&path).expect("removed");
        assert!(!one.is_at(&path).expect("looked at"));
        let two = take().expect("a new file");
        drop(one);
        assert!(take().is_none());
        drop(two);
        assert!(take().is_some());
    }

    #[test]
    fn shares_go_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || File::open(folder.path()).expect("a folder");
        let shares = [(); 2].map(|()| Lock::shared(open()).expect("tried").expect("a share"));
        assert!(Lock::exclusive(open()).expect("tried").is_none());
        drop(shares);
        assert!(Lock::exclusive(open()).expect("tried").is_some());
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        assert!(Lock::at(folder.path()).is_err());
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        symlink(&file, &path).expect("a link");
        assert!(Lock::at(&path).expect_err("a link").to_string().contains("symbolic link"));
    }
}
