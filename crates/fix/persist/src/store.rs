//! Writes files, records what was written, and removes exactly that.

use crate::{Content, File, Lasting, MARKER};
use kernel::file::{Lock, Regular, Replacement, TrustError, expect_trusted};
use serde::{Deserialize, Serialize};
use service::record::{self, RecordError};
use service::{StateDir, StateError, step};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Bytes of a file that are read.
const LONGEST: u64 = 1 << 20;

/// Why nothing was written or removed, or not all of it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message says what its values are")]
pub enum Error {
    #[error(
        "{path} is there already and rxlane did not write it (it has no line \"{MARKER}\"), so it is not overwritten; move it away, \
         or add to it what --dry-run shows",
        path = .0.display()
    )]
    Foreign(PathBuf),
    #[error(
        "{path} was changed since rxlane wrote it, so it is not overwritten; move it away to have it written anew",
        path = .0.display()
    )]
    Changed(PathBuf),
    #[error("another rxlane writes configuration ({} is locked); try again", .0.display())]
    Busy(PathBuf),
    #[error("a configuration that others can change is none: {0}")]
    Untrusted(#[from] TrustError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot {what} {}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = path.to_owned();
        move |source| Error::File { what, path, source }
    }

    /// Whether it is not a failure but a negative result: a file that is somebody else's.
    pub fn is_negative(&self) -> bool {
        matches!(self, Error::Foreign(_) | Error::Changed(_))
    }
}

/// What is in the place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    New,
    /// What rxlane wrote before, which is another text.
    Former,
    /// The same.
    Same,
}

/// A file, and what is in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The file.
    pub file: File,
    /// What is in its place.
    pub state: State,
}

/// What happened to a file that was to be removed.
#[derive(Debug)]
pub enum Outcome {
    /// It is removed.
    Removed,
    /// It was removed before.
    Missing,
    /// Another record has it, too (the unit for all interfaces): it was left as it is, for that one to remove.
    Shared,
    /// Somebody changed it since: it was left as it is.
    Changed,
    /// It cannot be removed.
    Failed(io::Error),
}

/// A file that was to be removed.
#[derive(Debug)]
pub struct Removed {
    /// The file.
    pub path: PathBuf,
    /// What happened.
    pub outcome: Outcome,
}

impl Removed {
    /// Whether it is still there.
    pub fn is_kept(&self) -> bool {
        matches!(self.outcome, Outcome::Changed | Outcome::Failed(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Saved {
    Text(String),
    Link(PathBuf),
}

impl From<&Content> for Saved {
    fn from(content: &Content) -> Saved {
        match content {
            Content::Text(text) => Saved::Text(text.clone()),
            Content::Link(target) => Saved::Link(target.clone()),
        }
    }
}

/// A file in the record. While it is written the former content counts, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    path: PathBuf,
    contents: Vec<Saved>,
}

impl Written {
    fn of(file: &File) -> Written {
        Written { path: file.path.clone(), contents: vec![Saved::from(&file.content)] }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Record {
    /// The command that wrote.
    by: String,
    settings: Vec<Lasting>,
    files: Vec<Written>,
    /// Folders that were made for files, those above first.
    folders: Vec<PathBuf>,
}

impl Record {
    fn of(&self, path: &Path) -> Option<&Written> {
        self.files.iter().find(|written| written.path == path)
    }
}

/// What is in a place.
enum Found {
    Nothing,
    Saved(Saved),
    /// Something else: a folder, a device, a file that is too long or no text.
    Other,
}

fn found(path: &Path) -> Result<Found, Error> {
    let failed = |error| Error::file("read", path)(error);
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        metadata => metadata.map_err(failed)?,
    };
    if metadata.is_symlink() {
        return Ok(Found::Saved(Saved::Link(fs::read_link(path).map_err(failed)?)));
    }
    if !metadata.is_file() {
        return Ok(Found::Other);
    }
    match Regular::open(path).and_then(|file| file.read(LONGEST)) {
        Ok(bytes) => {
            Ok(String::from_utf8(bytes).map_or(Found::Other, |text| Found::Saved(Saved::Text(text))))
        }
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Ok(Found::Other),
        Err(error) => Err(failed(error)),
    }
}

/// The records of what was written, which last as long as it does.
#[derive(Clone, Debug)]
pub struct Store(StateDir);

impl Store {
    /// Where they are: next to the files, since the state of what runs (`/run`) is lost at the next boot, and `/var` is in memory
    /// on OpenWrt.
    pub const DEFAULT: &str = "/etc/rxlane/persist";

    /// Records in a folder.
    pub fn at(folder: StateDir) -> Store {
        Store(folder)
    }

    fn path(&self, owner: &str) -> PathBuf {
        self.0.path().join(format!("{owner}.json"))
    }

    fn lock(&self) -> Result<Lock, Error> {
        let folder = self.0.path();
        let failed = |error| Error::file("lock", folder)(error);
        let opened = fs::File::open(folder).map_err(failed)?;
        Lock::exclusive(opened).map_err(failed)?.ok_or_else(|| Error::Busy(folder.to_owned()))
    }

    fn record(&self, owner: &str) -> Result<Option<Record>, Error> {
        if !self.0.path().exists() {
            return Ok(None);
        }
        Ok(record::read(&self.0, &self.path(owner))?)
    }

    /// The settings that the files of an owner (`doctor`, `steer-eth0`) have; none where nothing was written.
    ///
    /// # Errors
    ///
    /// [`Error::Record`].
    pub fn settings(&self, owner: &str) -> Result<Vec<Lasting>, Error> {
        Ok(self.record(owner)?.unwrap_or_default().settings)
    }

    /// The owners of what is written, and those of what a killed process left.
    ///
    /// # Errors
    ///
    /// [`Error::File`]: the folder cannot be read.
    pub fn owners(&self) -> Result<Vec<String>, Error> {
        let folder = self.0.path();
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(Error::file("read", folder))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect())
    }

    /// What is in the places of these files.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`], [`Error::Changed`]: something that is not to be overwritten. [`Error::Untrusted`].
    pub fn check(&self, owner: &str, files: &[File]) -> Result<Vec<Checked>, Error> {
        let record = self.record(owner)?.unwrap_or_default();
        let others = self.others(owner)?;
        files.iter().map(|file| check(file, &contents(&record, &others, &file.path))).collect()
    }

    /// The records of the other owners, as far as they can be read.
    fn others(&self, owner: &str) -> Result<Vec<(String, Record)>, Error> {
        let owners = self.owners()?.into_iter().filter(|other| other != owner);
        Ok(owners.filter_map(|other| Some((other.clone(), self.record(&other).ok().flatten()?))).collect())
    }

    /// Writes the files of an owner, and removes those that it had written before and that are not among them.
    ///
    /// `revise` gets the settings of its present files and gives the new settings and files; meanwhile nobody else writes.
    ///
    /// # Errors
    ///
    /// As [`Store::check`], before anything is written. [`Error::Busy`]. [`Error::File`]: one cannot be written; those before it are,
    /// and [`Store::remove`] removes them.
    pub fn write(
        &self,
        owner: &str,
        by: &str,
        revise: impl FnOnce(&[Lasting]) -> (Vec<Lasting>, Vec<File>),
    ) -> Result<Vec<Checked>, Error> {
        if let Some(above) = self.0.path().parent() {
            make_folder(above)?;
        }
        self.0.make()?;
        let lock = self.lock()?;
        let written = self.write_locked(owner, by, revise);
        if written.is_err() {
            self.tidy(owner, lock);
        }
        written
    }

    fn write_locked(
        &self,
        owner: &str,
        by: &str,
        revise: impl FnOnce(&[Lasting]) -> (Vec<Lasting>, Vec<File>),
    ) -> Result<Vec<Checked>, Error> {
        let former = self.record(owner)?.unwrap_or_default();
        let others = self.others(owner)?;
        let (settings, files) = revise(&former.settings);
        let checked = self.check(owner, &files)?;
        // A link that is there already without a record is somebody's own.
        let is_own = |one: &&Checked| {
            let is_link = matches!(one.file.content, Content::Link(_));
            !(is_link && one.state == State::Same && former.of(&one.file.path).is_none())
        };
        let own: Vec<&Checked> = checked.iter().filter(is_own).collect();
        let mut next = Record { by: by.to_owned(), settings, ..Record::default() };
        next.files = own.iter().map(|one| Written::of(&one.file)).collect();
        next.folders = former.folders.clone();
        for folder in own.iter().filter_map(|one| one.file.path.parent()).flat_map(missing) {
            if !next.folders.contains(&folder) {
                next.folders.push(folder);
            }
        }
        let obsolete = former.files.iter().filter(|written| next.of(&written.path).is_none());
        let obsolete: Vec<&Written> = obsolete.filter(|written| !is_shared(&others, &written.path)).collect();
        // All of it, before the first file: whatever a killed process wrote is in the record.
        record::write(&self.0, &self.path(owner), &between(&former, &next))?;
        // A file that others have written, too, gets a new text in their records as well.
        let changed = |other: &Record| Record { files: renewed(&other.files, &next.files), ..other.clone() };
        let others: Vec<(String, Record, Record)> =
            others.into_iter().map(|(name, other)| (name, changed(&other), other)).collect();
        let others = others.iter().filter(|(_, next, former)| next.files != former.files);
        for (name, next, former) in others.clone() {
            record::write(&self.0, &self.path(name), &between(former, next))?;
        }
        for one in own.iter().filter(|one| one.state != State::Same) {
            write(&one.file)?;
            step();
        }
        for written in obsolete {
            let removed = remove(written);
            if let Outcome::Failed(error) = removed.outcome {
                return Err(Error::file("remove", &written.path)(error));
            }
            step();
        }
        for (name, next, _) in others {
            record::write(&self.0, &self.path(name), next)?;
        }
        record::write(&self.0, &self.path(owner), &next)?;
        Ok(checked)
    }

    /// Removes what an owner has written. What somebody changed since is left, and stays in the record.
    ///
    /// # Errors
    ///
    /// [`Error::Record`]: the record cannot be read, written or removed. A file that cannot be removed is an [`Outcome`].
    pub fn remove(&self, owner: &str) -> Result<Vec<Removed>, Error> {
        if !self.0.path().exists() {
            return Ok(Vec::new());
        }
        let lock = self.lock()?;
        let Some(mut record) = self.record(owner)? else {
            self.tidy(owner, lock);
            return Ok(Vec::new());
        };
        let others = self.others(owner)?;
        let mut all = Vec::new();
        for written in record.files.iter().rev() {
            all.push(match is_shared(&others, &written.path) {
                true => Removed { path: written.path.clone(), outcome: Outcome::Shared },
                false => remove(written),
            });
            step();
        }
        // Those that others use stay.
        record.folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
        record.files.retain(|written| all.iter().any(|one| one.path == written.path && one.is_kept()));
        if record.files.is_empty() {
            record::remove(&self.path(owner))?;
        } else {
            record::write(&self.0, &self.path(owner), &record)?;
        }
        self.tidy(owner, lock);
        Ok(all)
    }

    /// What [`Store::remove`] would come to, which changes nothing: [`Outcome::Removed`] is what it would remove.
    ///
    /// # Errors
    ///
    /// [`Error::Record`].
    pub fn removal_preview(&self, owner: &str) -> Result<Vec<Removed>, Error> {
        let record = self.record(owner)?.unwrap_or_default();
        let others = self.others(owner)?;
        let removed = |written: &Written| {
            let is_shared = is_shared(&others, &written.path);
            let outcome = if is_shared { Outcome::Shared } else { removal(written) };
            Removed { path: written.path.clone(), outcome }
        };
        Ok(record.files.iter().rev().map(removed).collect())
    }

    /// Removes what a killed process left of a record, and the folders where nothing is recorded any more.
    fn tidy(&self, owner: &str, lock: Lock) {
        drop(Replacement::create(&self.path(owner), 0o600));
        drop(lock);
        if fs::remove_dir(self.0.path()).is_ok()
            && let Some(above) = self.0.path().parent()
        {
            let _ = fs::remove_dir(above);
        }
    }
}

fn is_shared(others: &[(String, Record)], path: &Path) -> bool {
    others.iter().any(|(_, other)| other.of(path).is_some())
}

/// What rxlane has written in a place, by the records of all owners.
fn contents<'r>(own: &'r Record, others: &'r [(String, Record)], path: &Path) -> Vec<&'r Saved> {
    let all = [own].into_iter().chain(others.iter().map(|(_, other)| other));
    all.filter_map(|record| record.of(path)).flat_map(|written| &written.contents).collect()
}

/// The files of one record, with the contents that another one gives them.
fn renewed(files: &[Written], by: &[Written]) -> Vec<Written> {
    let renew = |file: &Written| by.iter().find(|new| new.path == file.path).unwrap_or(file).clone();
    files.iter().map(renew).collect()
}

fn check(file: &File, written: &[&Saved]) -> Result<Checked, Error> {
    expect_trusted(&file.path)?;
    let requested = Saved::from(&file.content);
    let state = match found(&file.path)? {
        Found::Nothing => State::New,
        Found::Saved(present) if present == requested => State::Same,
        Found::Saved(present) if written.contains(&&present) => State::Former,
        Found::Saved(Saved::Text(text)) if written.is_empty() && text.contains(MARKER) => State::Former,
        Found::Saved(_) if !written.is_empty() => return Err(Error::Changed(file.path.clone())),
        Found::Saved(_) | Found::Other => return Err(Error::Foreign(file.path.clone())),
    };
    Ok(Checked { file: file.clone(), state })
}

/// A record that is true at every moment between two others.
fn between(former: &Record, next: &Record) -> Record {
    let mut both = next.clone();
    for old in &former.files {
        match both.files.iter_mut().find(|written| written.path == old.path) {
            Some(written) => written.contents.extend(old.contents.iter().cloned()),
            None => both.files.push(old.clone()),
        }
    }
    both
}

/// The folders to be made for this one, those above first.
fn missing(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    all.reverse();
    all
}

/// A folder of the system's, which everybody may read whatever the umask of the one who calls.
fn make_folder(folder: &Path) -> Result<(), Error> {
    for folder in missing(folder) {
        let made = fs::create_dir(&folder)
            .and_then(|()| fs::set_permissions(&folder, Permissions::from_mode(0o755)));
        match made {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::file("make the folder", &folder)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn write(file: &File) -> Result<(), Error> {
    let path = &file.path;
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let written = match &file.content {
        Content::Text(text) => Replacement::create(path, file.mode).and_then(|mut replacement| {
            replacement.file().set_permissions(Permissions::from_mode(file.mode))?;
            replacement.file().write_all(text.as_bytes())?;
            replacement.commit()
        }),
        Content::Link(target) => match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => symlink(target, path),
        },
    };
    written.map_err(Error::file("write", path))
}

/// What removing a file comes to, if it can be removed where it is to be.
fn removal(Written { path, contents }: &Written) -> Outcome {
    match found(path) {
        Ok(Found::Saved(present)) if !contents.contains(&present) => Outcome::Changed,
        Ok(Found::Other) => Outcome::Changed,
        Ok(Found::Nothing) => Outcome::Missing,
        Ok(Found::Saved(_)) => Outcome::Removed,
        Err(Error::File { source, .. }) => Outcome::Failed(source),
        Err(error) => Outcome::Failed(io::Error::other(error)),
    }
}

fn remove(written: &Written) -> Removed {
    let path = &written.path;
    let outcome = match removal(written) {
        Outcome::Removed => match fs::remove_file(path) {
            Ok(()) => Outcome::Removed,
            Err(error) => Outcome::Failed(error),
        },
        kept => kept,
    };
    if path.parent().is_some_and(Path::exists) {
        // A process that was killed while it wrote has left a part, which the next replacement removes.
        drop(Replacement::create(path, 0o600));
    }
    Removed { path: path.clone(), outcome }
}
