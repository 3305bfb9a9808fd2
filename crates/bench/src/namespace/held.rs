//! Who made a thing lives: a lock (flock(2)) on the thing itself, a namespace or a folder, says so.
//!
//! Numbers of processes do not: another PID namespace has others, and may share `/run`. The lock of a namespace is on its inode, which
//! whoever sees the mount has in common. It ends with its process, however that ends, and leaves no file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The lock. Dropped, it is free.
#[derive(Debug)]
pub struct Held {
    _file: File,
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
    Ok(if is_there { Taken::Own(Held { _file: file }) } else { Taken::Gone })
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
