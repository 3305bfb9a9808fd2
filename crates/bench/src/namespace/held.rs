//! Who made a thing lives: a lock (flock(2)) on the thing itself, a namespace or a folder, says so.
//!
//! Numbers of processes do not: another PID namespace has others, and may share `/run`. The lock of a namespace is on its inode, which
//! whoever sees the mount has in common; whoever shares `/run` and not the mounts sees the empty file below, which is locked, too. It ends
//! with its process, however that ends, and leaves no file.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{OpenTreeFlags, open_tree};
use std::fs::{self, File, TryLockError};
use std::io;
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The lock. Dropped, it is free.
#[derive(Debug)]
pub struct Held {
    file: File,
    /// What the thing is mounted on.
    below: Option<File>,
}

impl Held {
    /// Locks the file on which a namespace is mounted, too: by a copy of the folder's mount without those on it. A kernel that makes
    /// none (before 5.2) leaves the file to its age.
    pub fn below(mut self, folder: &Path, name: &str) -> Held {
        self.below = file_below(folder, name).filter(|file| file.try_lock().is_ok());
        self
    }
}

fn file_below(folder: &Path, name: &str) -> Option<File> {
    let folder = open_tree(CWD, folder, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Some(File::from(openat(folder.ok()?, name, flags, Mode::empty()).ok()?))
}

impl Drop for Held {
    fn drop(&mut self) {
        // A program that another thread has just forked off has the file open, too, until it is another program.
        for file in iter::once(&self.file).chain(&self.below) {
            let _ = file.unlock();
        }
    }
}

/// What became of an attempt to get the lock.
#[derive(Debug)]
pub enum Taken {
    /// It is this process's, and what it is of is still there.
    Own(Held),
    /// Another process has it.
    Others,
    /// There is nothing of this name any more.
    Gone,
}

/// Takes the lock of a namespace or a folder, and does not wait for it.
///
/// # Errors
///
/// It cannot be opened or locked.
pub fn take(path: &Path) -> io::Result<Taken> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Taken::Others),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Whoever had it may have removed the thing between the two steps.
    let own = file.metadata()?;
    let is_there = fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()));
    Ok(if is_there { Taken::Own(Held { file, below: None }) } else { Taken::Gone })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env::temp_dir;

    #[test]
    fn one_has_it_until_it_drops_it() {
        let folder = temp_dir().join(format!("rxlane-held-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let Taken::Own(held) = take(&folder).expect("a lock") else { panic!("it is nobody's") };
        assert!(matches!(take(&folder), Ok(Taken::Others)));
        drop(held);
        assert!(matches!(take(&folder), Ok(Taken::Own(_))));
        fs::remove_dir(&folder).expect("removed");
        assert!(matches!(take(&folder), Ok(Taken::Gone)));
    }
}
