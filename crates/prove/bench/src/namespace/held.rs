//! Who made a thing lives: a lock (flock(2)) on the thing itself, a folder or the file on which a namespace is mounted, says so.
//!
//! Numbers of processes do not: another PID namespace has others, and may share `/run`. Both are root's alone, since whoever can
//! open a thing can hold its lock; a namespace itself everybody can open (nsfs, mode 0444). The file below it is seen by whoever shares
//! `/run`, with its mounts or without. The lock ends with its process, however that ends, and leaves no file.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{OpenTreeFlags, open_tree};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The lock. Dropped, it is free.
#[derive(Debug)]
pub struct Held {
    file: File,
    /// Keeps the namespace, so that no other gets its number.
    _namespace: Option<File>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // A program that another thread has just forked off has the file open, too, until it is another program.
        let _ = self.file.unlock();
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

/// Takes the lock of a folder, and does not wait for it.
pub fn take(path: &Path) -> io::Result<Taken> {
    is_there(take_file(|| File::open(path), None))
}

/// Takes the lock of a namespace by its name in the folder of names, and does not wait for it.
pub fn take_namespace(folder: &Path, name: &str) -> io::Result<Taken> {
    let open = || File::open(folder.join(name));
    let take = |namespace| match Below::of(folder) {
        Some(below) => take_file(|| below.open(name), Some(namespace)),
        None => take_file(open, Some(namespace)),
    };
    is_there(open().and_then(take))
}

/// A folder without what is mounted in it: a copy of its mount.
struct Below(OwnedFd);

impl Below {
    /// `None`: this kernel makes none (before 5.2), so that the lock is on the namespace itself.
    fn of(folder: &Path) -> Option<Below> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        open_tree(CWD, folder, flags).ok().map(Below)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
    }
}

fn take_file(open: impl Fn() -> io::Result<File>, namespace: Option<File>) -> io::Result<Taken> {
    let file = open()?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Taken::Others),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Whoever had it may have removed the thing between the two steps.
    let [own, there] = [file.metadata()?, open()?.metadata()?].map(|file| (file.dev(), file.ino()));
    Ok(if own == there { Taken::Own(Held { file, _namespace: namespace }) } else { Taken::Gone })
}

fn is_there(taken: io::Result<Taken>) -> io::Result<Taken> {
    match taken {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Taken::Gone),
        taken => taken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env::temp_dir;
    use std::fs;

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
