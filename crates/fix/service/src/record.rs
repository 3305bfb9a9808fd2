//! Records: what is known of an instance and not to be seen in the kernel, one file of JSON each.
//!
//! # Contract
//!
//! * A record is written as a whole or not at all, also where the disk is full or the process is killed. It begins with its
//!   version; one of another version is refused.
//! * A [live](Live) record is locked (flock(2)) as long as the process lives that holds it. So one without a lock is that of a
//!   process that was killed, whatever its number means now.
//! * Whoever brings something up that outlives the process holds a record of that meanwhile ([`begin`]). One without a lock says
//!   that the process was killed in between: [`interrupted`] finds it, and the next `up` or `down` of that kind undoes what was
//!   done.

use crate::instance::{Instance, Instances};
use crate::state::{StateDir, StateError};
use crate::steps::step;
use kernel::file::{Lock, Regular, replace};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const VERSION: u32 = 1;
/// Bytes of a record that are read.
const LONGEST: u64 = 1 << 20;
/// How long to wait for a live record that somebody else holds or is just writing.
const TURN: Duration = Duration::from_secs(2);
/// How the names of records of what comes up end.
const COMING_UP: &str = ".up";

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("{} is no record of rxlane", path.display())]
    Broken {
        path: PathBuf,
        /// Whether a process holds it.
        held: bool,
    },
    #[error("{} is a record of another version of rxlane: take down with that version", .0.display())]
    Version(PathBuf),
    #[error("another rxlane is at work ({} is locked): try again", .0.display())]
    Busy(PathBuf),
}

impl RecordError {
    /// Whether it requires root.
    pub fn is_denied(&self) -> bool {
        matches!(self, RecordError::State(error) if error.is_denied())
    }
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    record: T,
}

fn text(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Versioned { version: VERSION, record }).unwrap_or_default()
}

pub fn path(state: &StateDir, instance: &Instance, suffix: &str) -> PathBuf {
    state.path().join(format!("{}{suffix}", instance.stem()))
}

/// Writes a record, on the disk when this returns.
///
/// # Errors
///
/// [`StateError`]; a former record is unchanged.
pub fn write(state: &StateDir, path: &Path, record: &impl Serialize) -> Result<(), StateError> {
    state.make()?;
    step();
    expect_record(path).map_err(StateError::file("write", path))?;
    replace(path, &text(record), 0o600).map_err(StateError::file("write", path))?;
    step();
    Ok(())
}

pub fn read<T: DeserializeOwned>(state: &StateDir, path: &Path) -> Result<Option<T>, RecordError> {
    state.check()?;
    let text = match Regular::open(path).and_then(|file| file.read(LONGEST)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => return Err(broken(path, false)),
        Err(error) => return Err(StateError::file("read", path)(error).into()),
    };
    parse(&text, path, false).map(Some)
}

fn broken(path: &Path, held: bool) -> RecordError {
    RecordError::Broken { path: path.to_owned(), held }
}

fn parse<T: DeserializeOwned>(text: &[u8], path: &Path, held: bool) -> Result<T, RecordError> {
    let value: serde_json::Value = serde_json::from_slice(text).map_err(|_| broken(path, held))?;
    if value.is_object() && value.get("version") != Some(&VERSION.into()) {
        return Err(RecordError::Version(path.to_owned()));
    }
    serde_json::from_value(value).map_err(|_| broken(path, held))
}

pub fn remove(path: &Path) -> Result<(), StateError> {
    step();
    let removed = expect_record(path).and_then(|()| fs::remove_file(path));
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StateError::file("remove", path)(error)),
        _ => Ok(()),
    }
}

fn expect_record(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("it is no regular file")),
        _ => Ok(()),
    }
}

/// A record that this process holds as long as it lives. Dropped, it is removed.
#[derive(Debug)]
pub struct Live {
    lock: Lock,
    path: PathBuf,
    text: Vec<u8>,
}

impl Live {
    /// Makes it.
    ///
    /// # Errors
    ///
    /// [`RecordError::Busy`]: another process holds it; [`RecordError::State`].
    pub fn hold(state: &StateDir, path: &Path, record: &impl Serialize) -> Result<Live, RecordError> {
        let lock = lock(state, path, TURN)?;
        let mut live = Live { lock, path: path.to_owned(), text: Vec::new() };
        live.write(record)?;
        Ok(live)
    }

    pub fn write(&mut self, record: &impl Serialize) -> Result<(), StateError> {
        let text = text(record);
        self.overwrite(&text).map_err(|error| {
            // On a full disk there is space for what was there before.
            let _ = self.overwrite(&self.text);
            StateError::file("write", &self.path)(error)
        })?;
        self.text = text;
        Ok(())
    }

    /// In place, since the file is the lock.
    fn overwrite(&self, text: &[u8]) -> io::Result<()> {
        let mut file = self.lock.file();
        file.rewind()?;
        file.write_all(text)?;
        file.set_len(text.len() as u64)
    }

    /// Reads one, and whether the process that made it still lives; `None`: there is none.
    pub fn read<T: DeserializeOwned>(
        state: &StateDir,
        path: &Path,
    ) -> Result<Option<(T, bool)>, RecordError> {
        state.check()?;
        let failed = |error| RecordError::State(StateError::file("read", path)(error));
        let open = || match Regular::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        };
        let Some(file) = open()? else { return Ok(None) };
        let held = Lock::shared(file.into_file()).map_err(failed)?.is_none();
        // It may be writing, or was killed before it had written a word.
        let until = Instant::now() + if held { TURN } else { Duration::ZERO };
        loop {
            let Some(file) = open()? else { return Ok(None) };
            let text = match file.read(LONGEST) {
                Err(error) if error.kind() == ErrorKind::FileTooLarge => return Err(broken(path, held)),
                text => text.map_err(failed)?,
            };
            match parse(&text, path, held) {
                Ok(record) => return Ok(Some((record, held))),
                Err(_) if text.is_empty() && !held => return Ok(None),
                Err(_) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Somebody may have removed it, and another process have made its own.
        if self.lock.is_at(&self.path).is_ok_and(|is_own| is_own) {
            // One that stays is that of a dead process.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Locks a file in the state folder, and waits for it.
fn lock(state: &StateDir, path: &Path, patience: Duration) -> Result<Lock, RecordError> {
    state.make()?;
    let until = Instant::now() + patience;
    loop {
        match Lock::at(path).map_err(StateError::file("lock", path))? {
            Some(lock) => return Ok(lock),
            None if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
            None => return Err(RecordError::Busy(path.to_owned())),
        }
    }
}

/// The lock to bring something up or take it down, which one process has at a time.
#[derive(Debug)]
pub struct ChangeLock {
    _lock: Lock,
}

impl ChangeLock {
    /// Waits for it, for as long as a slow driver takes.
    pub fn wait(state: &StateDir) -> Result<ChangeLock, RecordError> {
        const PATIENCE: Duration = Duration::from_secs(60);
        Ok(ChangeLock { _lock: lock(state, &state.path().join("turn"), PATIENCE)? })
    }
}

/// Records that an instance comes up, until this is dropped.
///
/// # Errors
///
/// [`RecordError::Busy`]: another process brings it up; [`RecordError::State`].
pub fn begin(instances: &Instances, name: &str) -> Result<Live, RecordError> {
    let path = instances.file(name, COMING_UP);
    let live = Live::hold(instances.state(), &path, &serde_json::json!({ "pid": std::process::id() }))?;
    step();
    Ok(live)
}

/// The names of instances of this kind in this network namespace whose process was killed while it brought them up.
pub fn interrupted(instances: &Instances) -> Result<Vec<String>, StateError> {
    instances.state().check()?;
    let folder = instances.state().path();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StateError::file("read", folder))?,
    };
    let prefix = instances.named("").stem();
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let name = name.strip_prefix(&prefix)?.strip_suffix(COMING_UP)?;
        // Never made here, where who has just finished removed it; and one without text is just being made, before anything changed.
        let path = entry.path();
        let lock = Lock::exclusive(Regular::open(&path).ok()?.into_file()).ok()??;
        let is_left = lock.is_at(&path).ok()? && lock.file().metadata().ok()?.len() > 0;
        is_left.then(|| name.to_owned())
    };
    Ok(entries.flatten().filter_map(name).collect())
}

/// Forgets that an instance was interrupted: everything is undone.
pub fn forget_interrupted(instances: &Instances, name: &str) -> Result<(), StateError> {
    remove(&instances.file(name, COMING_UP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use serde_json::{Value, json};

    fn place() -> (tempfile::TempDir, Instances) {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDir::at(folder.path().join("state"));
        let instances = Instances::new(Kind::Steer, state).expect("a namespace");
        (folder, instances)
    }

    #[test]
    fn a_record_is_read_until_it_is_removed_and_another_version_is_refused() {
        let (_folder, instances) = place();
        let state = instances.state();
        let file = path(state, &instances.named("wan0"), ".plan");
        let read = || read::<Value>(state, &file);
        assert_eq!(read().expect("none"), None);
        for number in 1..3 {
            write(state, &file, &json!({"number": number})).expect("written");
            assert_eq!(read().expect("read").expect("there")["number"], number);
        }
        for (text, said) in [
            ("{\"number\":1}", "another version"),
            ("{\"version\":2}", "another version"),
            ("", "no record"),
            ("{\"vers", "no record"),
            ("\u{0}", "no record"),
        ] {
            fs::write(&file, text).expect("written");
            let error = read().expect_err("refused").to_string();
            assert!(error.contains(said) && error.contains("wan0.plan"), "{text}: {error}");
        }
        remove(&file).expect("removed");
        remove(&file).expect("nothing left to remove");
        fs::create_dir(&file).expect("a folder");
        assert!(read().is_err() && write(state, &file, &json!({})).is_err() && remove(&file).is_err());
    }

    /// Who comes and goes meanwhile is not taken for one that was killed.
    #[test]
    fn only_what_a_killed_process_left_is_interrupted() {
        let (_folder, instances) = place();
        let comes = |name: &str| drop(begin(&instances, name).expect("its own"));
        thread::scope(|scope| {
            let coming = scope.spawn(|| (0..3000).for_each(|_| comes("wan0")));
            while !coming.is_finished() {
                assert_eq!(interrupted(&instances).expect("a folder"), [""; 0]);
            }
        });
        fs::write(instances.file("wan1", COMING_UP), "{}").expect("as a killed process leaves it");
        assert_eq!(interrupted(&instances).expect("a folder"), ["wan1"]);
    }

    #[test]
    fn a_live_record_lives_as_long_as_its_process() {
        let (_folder, instances) = place();
        let state = instances.state();
        let file = path(state, &instances.named("wan0"), ".daemon");
        let read = || Live::read::<Value>(state, &file);
        let mut live = Live::hold(state, &file, &json!({"moves": 100})).expect("held");
        live.write(&json!({"moves": 3})).expect("written");
        let (record, lives) = read().expect("read").expect("there");
        assert_eq!((&record["moves"], lives), (&json!(3), true));
        // As a killed process leaves it.
        let text = fs::read(&file).expect("text");
        drop(live);
        assert_eq!(read().expect("none"), None);
        fs::write(&file, text).expect("left");
        assert!(!read().expect("read").expect("there").1);
        let first = Live::hold(state, &file, &json!({})).expect("held");
        fs::remove_file(&file).expect("removed");
        let second = Live::hold(state, &file, &json!({})).expect("held by another");
        drop(first);
        assert!(file.exists(), "the first leaves the record of the second");
        drop(second);
        fs::write(&file, "{\"pid\":12").expect("half of it");
        assert!(matches!(read(), Err(RecordError::Broken { held: false, .. })));
    }

    #[test]
    fn what_was_interrupted_is_found_and_what_comes_up_is_not() {
        let (_folder, instances) = place();
        let found = || interrupted(&instances).expect("read");
        assert!(found().is_empty());
        let live = begin(&instances, "wan0").expect("begun");
        assert!(found().is_empty());
        let file = instances.file("wan0", COMING_UP);
        let text = fs::read(&file).expect("text");
        drop(live);
        assert!(!file.exists());
        fs::write(&file, text).expect("left");
        assert_eq!(found(), ["wan0"]);
        forget_interrupted(&instances, "wan0").expect("forgotten");
        assert!(found().is_empty());
    }

    #[test]
    fn one_has_the_lock_at_a_time() {
        let (_folder, instances) = place();
        let state = instances.state();
        let first = ChangeLock::wait(state).expect("free");
        assert!(matches!(lock(state, &state.path().join("turn"), Duration::ZERO), Err(RecordError::Busy(_))));
        thread::scope(|scope| {
            let second = scope.spawn(|| ChangeLock::wait(state).map(drop));
            drop(first);
            second.join().expect("no panic").expect("free");
        });
    }
}
