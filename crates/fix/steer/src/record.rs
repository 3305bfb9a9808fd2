//! What pins cannot tell: which process stays with an attachment, and which shares its CPUs should have; and that one
//! `up` or `down` works at a time.
//!
//! # Contract
//!
//! * Files lie in the folder of the journal ([`Records::DIRECTORY`], mode 0700), which the next boot empties, as it
//!   empties the BPF file system.
//! * A keeper holds a lock (flock(2)) on its record as long as it lives, so a record without one is that of a process
//!   that died, whatever its number means now.
//! * What `up` planned is written once it is attached, and names the program: another attachment under the same name
//!   does not take it for its own. An attachment without such a note works all the same.
//! * Records bear the name of the pins ([`Place`]), which stays when the interface is renamed or goes to another
//!   network namespace.
//! * `steer.lock` is held while something is attached or taken back.

mod file;
mod place;

pub use place::Place;

use file::{existing, octets, regular, remove};
use serde::{Deserialize, Serialize};
use service::{StateDir, StateError};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The folder of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    state: StateDir,
}

/// What `up` planned and the pins do not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Planned {
    /// The kernel's number of the program on the interface.
    pub program: u32,
    /// The target CPUs, and the part of the steered frames that each should have.
    pub shares: Vec<(u32, f64)>,
}

/// A process that stays with an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// Its number.
    pub pid: u32,
    /// Whether it is `up --foreground` itself, which takes steering away when it ends.
    pub foreground: bool,
    /// Whether it rebalances.
    pub rebalance: bool,
    /// Where it serves metrics.
    pub metrics: Option<String>,
    /// Buckets that it moved so far.
    #[serde(default)]
    pub moves: u64,
    /// How things stand, in its own words; `None`: it says nothing.
    #[serde(default)]
    pub state: Option<String>,
}

/// A record and whether its process lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The record.
    pub keeper: Keeper,
    /// Whether the process lives.
    pub alive: bool,
}

/// Why records cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or the folder cannot be made, read, written or removed.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The state folder cannot be used.
    #[error(transparent)]
    State(StateError),
    /// Somebody else works at this moment.
    #[error("another rxlane is attaching or taking back steering at this moment ({} is locked): try again", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// The record of a keeper says nothing that can be read.
    #[error("{} is no record of a process that stays", path.display())]
    Broken {
        /// The record.
        path: PathBuf,
        /// Whether a process holds it.
        held: bool,
    },
    /// There is a keeper already.
    #[error("process {pid} keeps {interface} already")]
    Kept {
        /// Its number.
        pid: u32,
        /// The interface.
        interface: String,
    },
}

impl From<StateError> for Error {
    fn from(error: StateError) -> Error {
        match error {
            StateError::File { what, path, source } => Error::File { what, path, source },
            other => Error::State(other),
        }
    }
}

/// The lock on `steer.lock`, until dropped.
#[derive(Debug)]
pub struct Working {
    _file: File,
}

/// The lock on a keeper's own record; the record goes with it.
#[derive(Debug)]
pub struct Keeping {
    file: File,
    path: PathBuf,
}

/// How long an `up` or `down` waits for another one, which may have a slow driver to wait for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for a record that somebody else holds.
const TURN: Duration = Duration::from_secs(2);
/// Readings of a record that is being written.
const ATTEMPTS: u32 = 5;

impl Records {
    /// The folder of a machine; that of the journal.
    pub const DIRECTORY: &str = StateDir::DEFAULT;

    /// Records in `folder`, which is made when something is written.
    pub fn new(folder: impl Into<PathBuf>) -> Records {
        Records { state: StateDir::at(folder) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.state.path()
    }

    /// The folder, as the life cycle of all kinds has it.
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// Waits for its turn to attach or take back.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] after a minute; [`Error::File`].
    pub fn work(&self) -> Result<Working, Error> {
        let path = self.folder().join("steer.lock");
        let file = self.open(&path)?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Working { _file: file }),
                Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_millis(50));
                }
                Err(TryLockError::WouldBlock) => return Err(Error::Busy { path }),
                Err(TryLockError::Error(source)) => return Err(Error::File { what: "lock", path, source }),
            }
        }
    }

    /// Notes that this process keeps the attachment.
    ///
    /// # Errors
    ///
    /// [`Error::Kept`]: another one does; [`Error::File`].
    pub fn keep(&self, place: &Place, keeper: &Keeper) -> Result<Keeping, Error> {
        let path = self.path("keeper", place);
        let file = self.open(&path)?;
        let begin = Instant::now();
        let mut lock = file.try_lock();
        // Who reads a record holds it for a moment, and who kept an interface of this name that was removed until its next
        // reading.
        while matches!(lock, Err(TryLockError::WouldBlock)) && begin.elapsed() < TURN {
            thread::sleep(Duration::from_millis(5));
            lock = file.try_lock();
        }
        match lock {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = self.kept(place)?.map_or(0, |kept| kept.keeper.pid);
                return Err(Error::Kept { pid, interface: place.name.clone() });
            }
            Err(TryLockError::Error(source)) => return Err(Error::File { what: "lock", path, source }),
        }
        let mut keeping = Keeping { file, path };
        keeping.write(keeper)?;
        Ok(keeping)
    }

    /// The keeper of an attachment, alive or dead.
    ///
    /// # Errors
    ///
    /// [`Error::Broken`]; [`Error::File`], of the kind [`PermissionDenied`](io::ErrorKind::PermissionDenied) without
    /// root.
    pub fn kept(&self, place: &Place) -> Result<Option<Kept>, Error> {
        let path = self.path("keeper", place);
        let Some(mut file) = existing(&path)? else { return Ok(None) };
        let alive = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let mut is_empty = true;
        for _ in 0..ATTEMPTS {
            let text = file.rewind().and_then(|()| octets(&file));
            let text = text.map_err(|source| Error::File { what: "read", path: path.clone(), source })?;
            if let Ok(keeper) = serde_json::from_slice(&text) {
                return Ok(Some(Kept { keeper, alive }));
            }
            is_empty = text.is_empty();
            // It may be writing; or it was killed before it had written a word.
            thread::sleep(Duration::from_millis(5));
        }
        if is_empty { Ok(None) } else { Err(Error::Broken { path, held: alive }) }
    }

    /// Notes what `up` planned.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn plan(&self, place: &Place, planned: &Planned) -> Result<(), Error> {
        let path = self.path("plan", place);
        let mut file = self.open(&path)?;
        let text = serde_json::to_string(planned).unwrap_or_default();
        // Who is killed in between leaves what cannot be read, which is as good as nothing.
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|source| Error::File { what: "write", path, source })
    }

    /// What `up` planned; `None` where nothing is noted, or nothing that can be read.
    ///
    /// # Errors
    ///
    /// [`Error::File`]; of the kind [`PermissionDenied`](io::ErrorKind::PermissionDenied) without root.
    pub fn planned(&self, place: &Place) -> Result<Option<Planned>, Error> {
        let path = self.path("plan", place);
        let Some(file) = existing(&path)? else { return Ok(None) };
        let text = octets(&file).map_err(|source| Error::File { what: "read", path, source })?;
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Removes the record of a keeper that is dead.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn forget(&self, place: &Place) -> Result<(), Error> {
        remove(self.path("keeper", place))
    }

    /// Removes what `up` planned.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn forget_plan(&self, place: &Place) -> Result<(), Error> {
        remove(self.path("plan", place))
    }

    /// Where something was planned; empty where the folder cannot be read.
    pub fn places(&self) -> Vec<Place> {
        let place = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let (namespace, name) = name.strip_prefix("plan-")?.split_once('-')?;
            Some(Place::new(namespace.parse().ok()?, name))
        };
        fs::read_dir(self.folder()).into_iter().flatten().flatten().filter_map(place).collect()
    }

    fn path(&self, what: &str, Place { namespace, name }: &Place) -> PathBuf {
        self.folder().join(format!("{what}-{namespace}-{name}"))
    }

    fn open(&self, path: &Path) -> Result<File, Error> {
        self.state.make()?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        regular(options, path).map_err(|source| Error::File { what: "open", path: path.to_owned(), source })
    }
}

impl Keeping {
    /// Writes down how things stand now.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn write(&mut self, keeper: &Keeper) -> Result<(), Error> {
        let text = serde_json::to_string(keeper).unwrap_or_default();
        let written = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(text.as_bytes()));
        written.map_err(|source| Error::File { what: "write", path: self.path.clone(), source })
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let inode = |metadata: io::Result<fs::Metadata>| metadata.map(|metadata| metadata.ino()).ok();
        // Another keeper's may have its place, where somebody removed this one.
        if inode(self.file.metadata()) == inode(fs::symlink_metadata(&self.path)) {
            // What stays is a record without a lock: that of a dead keeper, which `down` removes.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wan0() -> Place {
        Place::new(7, "wan0")
    }

    fn keeper(pid: u32) -> Keeper {
        let metrics = Some("127.0.0.1:9100".to_owned());
        Keeper { pid, foreground: false, rebalance: true, metrics, moves: 0, state: None }
    }

    #[test]
    fn a_keeper_lives_as_long_as_its_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::new(folder.path().join("rxlane"));
        assert_eq!(records.kept(&wan0()).expect("none"), None);
        let mut keeping = records.keep(&wan0(), &keeper(42)).expect("kept");
        let kept = records.kept(&wan0()).expect("read").expect("there");
        assert_eq!(kept, Kept { keeper: keeper(42), alive: true });
        keeping.write(&Keeper { moves: 3, ..keeper(42) }).expect("written");
        assert_eq!(records.kept(&wan0()).expect("read").map(|kept| kept.keeper.moves), Some(3));
        let second = records.keep(&wan0(), &keeper(43)).expect_err("one at a time");
        assert_eq!(second.to_string(), "process 42 keeps wan0 already");
        assert_eq!(records.kept(&Place::new(8, "wan0")).expect("read"), None);
        drop(keeping);
        assert_eq!(records.kept(&wan0()).expect("read"), None);
    }

    #[test]
    fn the_record_of_a_killed_keeper_says_that_it_is_dead() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::new(folder.path());
        let keeping = records.keep(&wan0(), &keeper(42)).expect("kept");
        // A killed process drops nothing; its lock goes with its files.
        let copy = folder.path().join("copy");
        fs::copy(folder.path().join("keeper-7-wan0"), &copy).expect("a copy");
        drop(keeping);
        fs::rename(copy, folder.path().join("keeper-7-wan0")).expect("back");
        assert!(records.kept(&wan0()).expect("read").is_some_and(|kept| !kept.alive));
        records.forget(&wan0()).expect("removed");
        records.forget(&wan0()).expect("nothing left to remove");
        assert_eq!(records.kept(&wan0()).expect("read"), None);
    }

    #[test]
    fn what_is_no_record_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::new(folder.path());
        let path = folder.path().join("keeper-7-wan0");
        for text in [&b"{\"pid\":12"[..], b"\xff\xfe\n\x00", &[b'7'; 30_000]] {
            fs::write(&path, text).expect("written");
            let error = records.kept(&wan0()).expect_err("no record");
            assert!(matches!(error, Error::Broken { held: false, .. }), "{error}");
            records.forget(&wan0()).expect("removed");
        }
        let plan = folder.path().join("plan-7-wan0");
        for path in [&path, &plan] {
            let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
            assert!(made.success());
        }
        assert!(records.kept(&wan0()).expect_err("a FIFO").to_string().ends_with("it is no regular file"));
        assert!(records.keep(&wan0(), &keeper(42)).is_err());
        assert!(records.planned(&wan0()).is_err());
        assert!(records.plan(&wan0(), &Planned::default()).is_err());
        assert!(records.forget(&wan0()).is_err() && path.exists());
    }

    #[test]
    fn a_keeper_leaves_the_record_of_the_next_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::new(folder.path());
        let first = records.keep(&wan0(), &keeper(42)).expect("kept");
        records.forget(&wan0()).expect("removed");
        let _second = records.keep(&wan0(), &keeper(43)).expect("kept");
        drop(first);
        assert_eq!(records.kept(&wan0()).expect("read").map(|kept| kept.keeper.pid), Some(43));
    }

    #[test]
    fn one_works_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::new(folder.path());
        let working = records.work().expect("free");
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let records = records.clone();
            scope.spawn(move || {
                let _second = records.work().expect("after the first");
                sender.send(()).expect("heard");
            });
            assert!(receiver.recv_timeout(Duration::from_millis(300)).is_err());
            drop(working);
            receiver.recv_timeout(Duration::from_secs(5)).expect("its turn");
        });
    }

    #[test]
    fn what_was_planned_is_told_until_it_is_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::new(folder.path().join("rxlane"));
        assert_eq!(records.planned(&wan0()).expect("none"), None);
        let planned = Planned { program: 17, shares: vec![(0, 0.125), (3, 0.875)] };
        records.plan(&wan0(), &planned).expect("written");
        records.plan(&wan0(), &planned).expect("written again");
        assert_eq!(records.planned(&wan0()).expect("read"), Some(planned));
        // A keeper comes and goes without it.
        drop(records.keep(&wan0(), &keeper(42)).expect("kept"));
        assert!(records.planned(&wan0()).expect("read").is_some());
        let path = folder.path().join("rxlane/plan-7-wan0");
        for (text, known) in [("", false), ("{\"program\":", false), ("{\"program\":17,\"later\":[]}", true)]
        {
            fs::write(&path, text).expect("written");
            assert_eq!(records.planned(&wan0()).expect("read").is_some(), known, "{text}");
        }
        records.forget_plan(&wan0()).expect("removed");
        records.forget_plan(&wan0()).expect("nothing left to remove");
        assert_eq!(records.planned(&wan0()).expect("read"), None);
    }
}
