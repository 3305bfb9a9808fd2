//! The journal's directory, its lock, and its file.

use super::record::{Entry, Record};
use super::{Error, record};
use crate::state::StateDir;
use crate::steps::step;
use host::setting::Tree;
use kernel::file::{Lock, Regular};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The network namespace of the calling thread: the inode of its file, as `readlink /proc/self/ns/net` shows it.
pub(super) fn namespace(tree: &Tree) -> Result<u64, Error> {
    let path = tree.path("/proc/thread-self/ns/net");
    let metadata = fs::metadata(&path).map_err(Error::file("read", path))?;
    Ok(metadata.ino())
}

/// The state folder, whose journal this process alone uses.
#[derive(Debug)]
pub(super) struct Place {
    state: StateDir,
    lock: Lock,
}

impl Place {
    pub(super) fn open(state: &StateDir) -> Result<Place, Error> {
        // Commands in the journal are run with all privileges.
        state.make()?;
        let path = state.path().join("lock");
        let lock = match Lock::at(&path).map_err(Error::file("lock", &path))? {
            Some(lock) => lock,
            None => return Err(Error::Busy { pid: holder(&path), path }),
        };
        sign(lock.file()).map_err(Error::file("write", path))?;
        Ok(Place { state: state.clone(), lock })
    }

    /// The lock's file: the lock lasts as long as any program that was given it has it open.
    pub(super) fn lock(&self) -> Result<Arc<File>, Error> {
        let copy = self.lock.file().try_clone();
        copy.map(Arc::new).map_err(Error::file("lock", self.state.path().join("lock")))
    }

    fn journal(&self) -> PathBuf {
        self.state.path().join("journal")
    }

    /// Writes to disk that a file was made or removed.
    fn sync(&self) -> Result<(), Error> {
        let synced = File::open(self.state.path()).and_then(|directory| directory.sync_all());
        synced.map_err(Error::file("write", self.state.path()))
    }
}

fn holder(path: &Path) -> Option<u32> {
    let text = Regular::open(path).and_then(|lock| lock.read(32)).ok()?;
    String::from_utf8(text).ok()?.trim().parse().ok()
}

fn sign(mut lock: &File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

/// The file, open where there is one.
#[derive(Debug)]
pub(super) struct Log(Option<File>);

#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) entries: Vec<Entry>,
    pub(super) half_line: bool,
    /// The number of the next intent.
    pub(super) next: u64,
}

impl Log {
    /// Bytes of a journal that are read: tens of thousands of changes.
    const LONGEST: u64 = 16 << 20;

    /// Opens the file and cuts off a half-written last line.
    pub(super) fn open(place: &Place) -> Result<(Log, Content), Error> {
        let path = place.journal();
        let file = match Regular::open_with(&path, OpenOptions::new().read(true).append(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Log(None), Content::default())),
            Err(error) => return Err(Error::file("open", path)(error)),
        };
        let mut bytes = file.read(Log::LONGEST).map_err(Error::file("read", &path))?;
        let file = file.into_file();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let half_line = whole < bytes.len();
        bytes.truncate(whole);
        let content = Content { half_line, ..read(&path, &bytes)? };
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
        step();
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
        })?;
        step();
        Ok(())
    }

    pub(super) fn remove(&mut self, place: &Place) -> Result<(), Error> {
        if self.0.take().is_some() {
            let path = place.journal();
            step();
            fs::remove_file(&path).map_err(Error::file("remove", &path))?;
            place.sync()?;
        }
        Ok(())
    }
}

/// The entries that are not struck out, of whole lines.
fn read(path: &Path, bytes: &[u8]) -> Result<Content, Error> {
    let mut content = Content::default();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
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
