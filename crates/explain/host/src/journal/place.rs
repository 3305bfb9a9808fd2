//! The journal's directory, its lock, and its file.

use super::record::{Entry, Record};
use super::{Error, record};
use crate::setting::Tree;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The network namespace of the calling thread: the inode of its file, as `readlink /proc/self/ns/net` shows it.
pub(super) fn namespace(tree: &Tree) -> Result<u64, Error> {
    let path = tree.path("/proc/thread-self/ns/net");
    let metadata = fs::metadata(&path).map_err(Error::file("read", path))?;
    Ok(metadata.ino())
}

/// The directory, locked.
#[derive(Debug)]
pub(super) struct Place {
    directory: PathBuf,
    lock: Arc<File>,
}

impl Place {
    pub(super) fn open(directory: &Path) -> Result<Place, Error> {
        match DirBuilder::new().mode(0o700).create(directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::file("make", directory)(error)),
        }
        check(directory)?;
        let path = directory.join("lock");
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut lock = regular(options, &path).map_err(Error::file("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy { pid: holder(&mut lock), path }),
            Err(TryLockError::Error(error)) => return Err(Error::file("lock", path)(error)),
        }
        sign(&mut lock).map_err(Error::file("write", path))?;
        Ok(Place { directory: directory.to_owned(), lock: Arc::new(lock) })
    }

    /// The lock, held as long as this or any program that was given it has it open.
    pub(super) fn lock(&self) -> Arc<File> {
        Arc::clone(&self.lock)
    }

    fn journal(&self) -> PathBuf {
        self.directory.join("journal")
    }

    /// Writes to disk that a file was made or removed.
    fn sync(&self) -> Result<(), Error> {
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(Error::file("write", &self.directory))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Closing would not do: a program that another thread is just starting has the file open until its execve(2).
        let _ = self.lock.unlock();
    }
}

/// Commands in the journal are run with all privileges, so nobody else may be able to write it.
fn check(directory: &Path) -> Result<(), Error> {
    let read = |error| Error::file("read", directory)(error);
    let metadata = fs::symlink_metadata(directory).map_err(read)?;
    let refused = |why| Error::Unsafe { path: directory.to_owned(), why };
    if !metadata.is_dir() {
        return Err(refused("no directory"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("somebody else's directory"));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(refused("a directory that others can write to"));
    }
    if metadata.mode() & 0o077 != 0 {
        let tightened = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
        tightened.map_err(Error::file("change the mode of", directory))?;
    }
    Ok(())
}

/// Opens a regular file and nothing else: a FIFO or a device could keep its reader for ever.
fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

fn holder(lock: &mut File) -> Option<u32> {
    let mut pid = String::new();
    lock.take(32).read_to_string(&mut pid).ok()?;
    pid.trim().parse().ok()
}

fn sign(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.seek(SeekFrom::Start(0))?;
    writeln!(lock, "{}", std::process::id())
}

/// The file, open where there is one.
#[derive(Debug)]
pub(super) struct Log(Option<File>);

/// What the file held.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) entries: Vec<Entry>,
    pub(super) half_line: bool,
    /// The number of the next intent.
    pub(super) next: u64,
}

impl Log {
    /// Octets of a journal that are read: tens of thousands of changes.
    const LONGEST: u64 = 16 << 20;

    /// Opens the file and cuts off a half-written last line.
    pub(super) fn open(place: &Place) -> Result<(Log, Content), Error> {
        let path = place.journal();
        let mut file = match regular(OpenOptions::new().read(true).append(true), &path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Log(None), Content::default()));
            }
            Err(error) => return Err(Error::file("open", path)(error)),
        };
        let mut octets = Vec::new();
        let length = (&mut file).take(Log::LONGEST + 1).read_to_end(&mut octets);
        if length.map_err(Error::file("read", &path))? as u64 > Log::LONGEST {
            return Err(Error::Length { path, limit: Log::LONGEST });
        }
        let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |last| last + 1);
        let half_line = whole < octets.len();
        octets.truncate(whole);
        let content = Content { half_line, ..read(&path, &octets)? };
        if half_line {
            let cut = file.set_len(whole as u64).and_then(|()| file.sync_all());
            cut.map_err(Error::file("write", &path))?;
        }
        if whole == 0 {
            // Not even the first line is there.
            let mut log = Log(Some(file));
            log.remove(place)?;
            return Ok((log, content));
        }
        Ok((Log(Some(file)), content))
    }

    /// Appends a line, on the disk when this returns.
    pub(super) fn append(&mut self, place: &Place, record: &Record) -> Result<(), Error> {
        let path = place.journal();
        if self.0.is_none() {
            let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
            let file = file.map_err(Error::file("make", &path))?;
            self.0 = Some(file);
            self.line(&path, &Record::Journal { version: Record::VERSION })?;
            place.sync()?;
        }
        self.line(&path, record)
    }

    fn line(&mut self, path: &Path, record: &Record) -> Result<(), Error> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        let before = file.metadata().map_err(Error::file("read", path))?.len();
        let written = serde_json::to_vec(record).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            file.write_all(&line)?;
            file.sync_all()
        });
        written.map_err(|error| {
            // A line that a full disk cut short would swallow the next one.
            let _ = file.set_len(before);
            Error::file("write", path)(error)
        })
    }

    /// Removes the file.
    pub(super) fn remove(&mut self, place: &Place) -> Result<(), Error> {
        if self.0.take().is_some() {
            let path = place.journal();
            fs::remove_file(&path).map_err(Error::file("remove", &path))?;
            place.sync()?;
        }
        Ok(())
    }
}

/// The entries that are not struck out, of whole lines.
fn read(path: &Path, octets: &[u8]) -> Result<Content, Error> {
    let mut content = Content::default();
    let lines = octets.split(|octet| *octet == b'\n').filter(|line| !line.is_empty());
    for (line, text) in (1..).zip(lines) {
        let record = serde_json::from_slice(text).map_err(|source| Error::Damaged {
            path: path.to_owned(),
            line,
            source,
        })?;
        let is_first = line == 1;
        match record {
            Record::Journal { version: Record::VERSION } if is_first => {}
            _ if is_first => return Err(Error::Version { path: path.to_owned() }),
            Record::Journal { .. } => return Err(Error::Version { path: path.to_owned() }),
            Record::Intent(entry) => {
                content.next = content.next.max(entry.number.saturating_add(1));
                content.entries.push(entry);
            }
            Record::Done { number, after } => {
                if let Some(entry) = content.entries.iter_mut().find(|entry| entry.number == number) {
                    entry.state = record::State::Done(after);
                }
            }
            Record::Moved { number, to } => {
                if let Some(entry) = content.entries.iter_mut().find(|entry| entry.number == number) {
                    entry.moved = Some(to);
                }
            }
            Record::Dropped { number } | Record::Undone { number } => {
                content.entries.retain(|entry| entry.number != number);
            }
        }
    }
    Ok(content)
}
