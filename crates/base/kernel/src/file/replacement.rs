//! Files replaced as a whole.

use super::Lock;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file written next to its place, which takes the place when it is whole: readers find the old one or the new one, also
/// when the process is killed or the disk is full.
///
/// Dropped before [`commit`](Replacement::commit) it is removed. What a killed process left is locked by nobody and is removed
/// by the next replacement of the same file.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    /// `None` once it is in its place.
    temporary: Option<PathBuf>,
    /// Without a lock where the file system has none.
    file: File,
}

const ENDING: &str = ".part";

impl Replacement {
    /// Begins to replace the file at `path`, or the one that a symbolic link there leads to. The new file has the permissions
    /// of the old one, or `mode` where there is none. Errors: the folder cannot be written to; what stands there is no regular file.
    pub fn create(path: &Path, mode: u32) -> io::Result<Replacement> {
        let (replacement, old) = Replacement::temporary(path, mode)?;
        if let Some(old) = old {
            replacement.file.set_permissions(old.permissions())?;
        }
        Ok(replacement)
    }

    /// The same, of a file that its owner alone may read, whoever could read the old one. Errors: as of [`create`](Replacement::create).
    pub fn create_private(path: &Path) -> io::Result<Replacement> {
        Replacement::temporary(path, 0o600).map(|(replacement, _)| replacement)
    }

    /// With the old file, where there is one.
    fn temporary(path: &Path, mode: u32) -> io::Result<(Replacement, Option<Metadata>)> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let old = fs::metadata(&path).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        remove_left(&path, name);
        let mut own = name.to_owned();
        own.push(format!(".{}{ENDING}", std::process::id()));
        let temporary = path.with_file_name(own);
        let file = File::options().write(true).create_new(true).mode(mode).open(&temporary)?;
        // Where there are no locks, nothing is removed that may be somebody's.
        let _ = file.try_lock();
        Ok((Replacement { path, temporary: Some(temporary), file }, old))
    }

    /// The new file, to be written.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts it in its place, on the disk when this returns. Error: it cannot be written; the old file is then unchanged.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path)?;
            self.temporary = None;
        }
        match File::open(folder(&self.path)).and_then(|folder| folder.sync_all()) {
            // Some file systems cannot sync a folder (EINVAL), and a folder may be closed to readers.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
        let _ = self.file.unlock();
    }
}

/// Replaces the file at `path` as a whole; see [`Replacement`]. Error: it cannot be written; the old file is then unchanged.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut replacement = Replacement::create(path, mode)?;
    replacement.file().write_all(content)?;
    replacement.commit()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what processes left that were killed while they replaced `path`: a live one holds a lock.
fn remove_left(path: &Path, name: &OsStr) {
    for entry in fs::read_dir(folder(path)).into_iter().flatten().flatten() {
        let other = entry.file_name();
        let number = other.as_bytes().strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"."));
        let number = number.and_then(|rest| rest.strip_suffix(ENDING.as_bytes()));
        let is_part =
            number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit));
        if is_part
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && File::open(entry.path()).is_ok_and(|file| matches!(Lock::exclusive(file), Ok(Some(_))))
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        let mode = || fs::metadata(&path).expect("a file").mode() & 0o777;
        replace(&path, b"one", 0o600).expect("written");
        assert_eq!((fs::read(&path).expect("text"), mode()), (b"one".to_vec(), 0o600));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
        symlink(&path, &link).expect("a link");
        replace(&link, b"two", 0o600).expect("written");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!((fs::read(&path).expect("text"), mode()), (b"two".to_vec(), 0o640));
        let mut half = Replacement::create(&path, 0o600).expect("a file");
        half.file().write_all(b"thr").expect("written");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3);
        drop(half);
        assert_eq!(fs::read(&path).expect("text"), b"two");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
        Replacement::create_private(&path).and_then(Replacement::commit).expect("written");
        assert_eq!((fs::read(&path).expect("text"), mode()), (Vec::new(), 0o600));
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_a_live_one_writes_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["file.1.part", "file.2.part", "file.x.part", "other.1.part"] {
            fs::write(path(name), "half").expect("written");
        }
        let _live =
            Lock::exclusive(File::open(path("file.2.part")).expect("a file")).expect("tried").expect("free");
        replace(&path("file"), b"whole", 0o600).expect("written");
        let exist = ["file.1.part", "file.2.part", "file.x.part", "other.1.part", "file"]
            .map(|name| path(name).exists());
        assert_eq!(exist, [false, true, true, true, true]);
    }
}
