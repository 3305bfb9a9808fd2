//! The name servers that a concentrator named, as the machine's own.
//!
//! # Contract
//!
//! * systemd-resolved and resolvconf(8) are used where they keep `/etc/resolv.conf`; they know how to take it back. Elsewhere
//!   the file is written, and what was in it is on the disk before (`resolv.conf-DEVICE-NUMBER.former` in the state folder), from
//!   which it is put back at the end, or by the next command after a kill.
//! * DEVICE and NUMBER are those of the file: `ip netns exec` gives namespaces files of their own by the same path, and what
//!   was in one is not put into another.
//! * A program that hangs is ended, with all that it started.
//! * What somebody else wrote meanwhile is left alone, and said.
//! * One process at a time has a file.

mod program;

pub use program::ProgramError;

use kernel::process;
use program::run;
use serde::{Deserialize, Serialize};
use service::record::{self, RecordError};
use service::{StateDir, StateError};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file of resolv.conf(5).
pub const PATH: &str = "/etc/resolv.conf";
/// Where systemd-resolved keeps the file that `PATH` then leads to.
const RESOLVED: &str = "/run/systemd/resolve";

/// Why the name servers are not the machine's.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// A living process has written the file.
    #[error(
        "the process {pid} (the PPPoE session of {interface}) has written {PATH}, and only one can: leave --dns out of one of them"
    )]
    Held { pid: u32, interface: String },
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
    /// What was in the file cannot be recorded, or a record of it cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl From<StateError> for ResolverError {
    fn from(error: StateError) -> ResolverError {
        ResolverError::Record(error.into())
    }
}

/// Who keeps the machine's name servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    Resolved,
    Resolvconf,
    File,
}

/// Name servers that are the machine's until this is taken back.
#[derive(Debug)]
pub struct Resolver {
    keeper: Keeper,
    interface: String,
    note: Note,
    /// Where the note is, once there is one.
    note_path: PathBuf,
    place: Place,
}

/// Where the file is, and the folder of the notes about such files.
#[derive(Clone, Debug)]
pub struct Place {
    file: PathBuf,
    folder: PathBuf,
}

/// What is on the disk while the file is not the machine's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    interface: String,
    process: process::Id,
    /// The bytes of the file, of whatever encoding; `None`: there was none.
    former: Option<Vec<u8>>,
    written: String,
}

/// What became of the file at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Back {
    Done,
    /// Somebody else had written it since, and it was left alone.
    Changed,
}

impl Place {
    /// `/etc/resolv.conf` of the calling process, and the notes in the state folder.
    pub fn of_machine(state: &Path) -> Place {
        Place { file: PATH.into(), folder: state.to_owned() }
    }

    #[cfg(test)]
    pub(crate) fn at(file: &Path, folder: &Path) -> Place {
        Place { file: file.to_owned(), folder: folder.to_owned() }
    }

    /// Where the note about the file is; `None`: there is no file, and no note about it.
    fn note_path(&self) -> Result<Option<PathBuf>, ResolverError> {
        match fs::metadata(&self.file) {
            Ok(file) => {
                let name = format!("resolv.conf-{:x}-{}.former", file.st_dev(), file.st_ino());
                Ok(Some(self.folder.join(name)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("look at", &self.file)(error)),
        }
    }

    /// Puts back what a process wrote that was killed before it could; what became of that, where there was anything.
    pub fn recover(&self) -> Result<Option<Back>, ResolverError> {
        let Some(note_path) = self.note_path()? else { return Ok(None) };
        match self.note(&note_path)? {
            Some(note) if !note.is_alive() => self.put_back(&note, &note_path).map(Some),
            _ => Ok(None),
        }
    }

    fn note(&self, note_path: &Path) -> Result<Option<Note>, ResolverError> {
        Ok(record::read(&StateDir::at(&self.folder), note_path)?)
    }

    fn put_back(&self, note: &Note, note_path: &Path) -> Result<Back, ResolverError> {
        let now = self.read(&self.file)?;
        let back = if note.is_own(now.as_deref()) {
            match (&note.former, now) {
                (Some(former), _) => self.write(former)?,
                (None, Some(_)) => {
                    // A link that led nowhere does so again.
                    let made = fs::canonicalize(&self.file).map_err(self.failed("look at", &self.file))?;
                    fs::remove_file(&made).map_err(self.failed("remove", &made))?;
                }
                (None, None) => {}
            }
            Back::Done
        } else {
            Back::Changed
        };
        record::remove(note_path)?;
        Ok(back)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ResolverError> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", path)(error)),
        }
    }

    /// In place: it may be mounted by itself, as in containers, and then no other file can take its place.
    fn write(&self, bytes: &[u8]) -> Result<(), ResolverError> {
        fs::write(&self.file, bytes).map_err(self.failed("write", &self.file))
    }

    fn failed(&self, what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ResolverError + use<> {
        let path = path.to_owned();
        move |source| ResolverError::File { what, path, source }
    }
}

impl Note {
    /// Whether the file has what this note's process put there, or what putting it back did: all of either, or the beginning, since
    /// it is written in place, and a kill or a full disk may come in between.
    fn is_own(&self, now: Option<&[u8]>) -> bool {
        let begins = |whole: &[u8]| whole.starts_with(now.unwrap_or_default());
        begins(self.written.as_bytes()) || self.former.as_deref().is_some_and(begins)
    }

    fn is_alive(&self) -> bool {
        self.process.is_alive()
    }
}

impl Resolver {
    /// Makes `servers` the machine's, as the session of `interface` announced them.
    ///
    /// # Errors
    ///
    /// See [`ResolverError`]; the file is then as it was.
    pub fn set(interface: &str, servers: &[IpAddr], place: Place) -> Result<Resolver, ResolverError> {
        let keeper = keeper(&place.file);
        let note = Note {
            interface: interface.to_owned(),
            process: process::Id::own().map_err(place.failed("read", Path::new("/proc/self/stat")))?,
            former: None,
            written: text(interface, servers),
        };
        let note_path = PathBuf::new();
        let mut resolver = Resolver { keeper, interface: interface.to_owned(), note, note_path, place };
        match keeper {
            Keeper::Resolved => {
                let servers = servers.iter().map(IpAddr::to_string);
                run("resolvectl", ["dns".to_owned(), interface.to_owned()].into_iter().chain(servers), "")?;
                let domain = ["domain", interface, "~."].map(str::to_owned);
                run("resolvectl", domain.into_iter(), "")?;
            }
            Keeper::Resolvconf => {
                let arguments = ["-a".to_owned(), resolver.label()];
                run("resolvconf", arguments.into_iter(), &resolver.note.written).inspect_err(|_| {
                    // How far it came nobody knows. The first error is the one to report.
                    let _ = run("resolvconf", ["-d".to_owned(), resolver.label()].into_iter(), "");
                })?;
            }
            Keeper::File => resolver.write()?,
        }
        Ok(resolver)
    }

    /// Who took them, for people.
    pub const fn taken_by(&self) -> &'static str {
        match self.keeper {
            Keeper::Resolved => "systemd-resolved",
            Keeper::Resolvconf => "resolvconf",
            Keeper::File => PATH,
        }
    }

    fn label(&self) -> String {
        format!("{}.rxlane", self.interface)
    }

    fn write(&mut self) -> Result<(), ResolverError> {
        let place = &self.place;
        place.recover()?;
        let former = place.read(&place.file)?;
        // A file is known by its number, and one of an overlay has the lasting one once it was opened for writing.
        let opened = fs::File::options().write(true).create(true).truncate(false).open(&place.file);
        opened.map_err(place.failed("write", &place.file))?;
        let note_path = place.note_path()?.ok_or(io::ErrorKind::NotFound.into());
        let note_path = note_path.map_err(place.failed("look at", &place.file))?;
        // What this process itself could not put back when its last session ended.
        let is_ours =
            |note: &Note| (note.process, &note.interface) == (self.note.process, &self.note.interface);
        let was_ours = match place.note(&note_path)? {
            Some(note) if is_ours(&note) => {
                place.put_back(&note, &note_path)?;
                true
            }
            Some(note) => {
                return Err(ResolverError::Held { pid: note.process.pid, interface: note.interface });
            }
            None => false,
        };
        if was_ours {
            return self.write();
        }
        self.note.former = former;
        self.note_path = note_path;
        record::write(&StateDir::at(&place.folder), &self.note_path, &self.note).inspect_err(|_| {
            // The file has what it had.
            let _ = place.put_back(&self.note, &self.note_path);
        })?;
        service::step();
        place.write(self.note.written.as_bytes()).inspect_err(|_| {
            // What cannot be put back stays in the note, for the next one who tries.
            let _ = place.put_back(&self.note, &self.note_path);
        })?;
        service::step();
        Ok(())
    }

    /// Takes them back.
    pub fn take_back(self) -> Result<Back, ResolverError> {
        match self.keeper {
            // It forgets what belongs to an interface that is no more.
            Keeper::Resolved => Ok(Back::Done),
            Keeper::Resolvconf => {
                run("resolvconf", ["-d".to_owned(), self.label()].into_iter(), "")?;
                Ok(Back::Done)
            }
            Keeper::File => self.place.put_back(&self.note, &self.note_path),
        }
    }
}

fn keeper(file: &Path) -> Keeper {
    let target = fs::canonicalize(file).unwrap_or_default();
    let has = |program: &str| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    };
    if target.starts_with(RESOLVED) {
        Keeper::Resolved
    } else if file == Path::new(PATH) && has("resolvconf") {
        Keeper::Resolvconf
    } else {
        Keeper::File
    }
}

fn text(interface: &str, servers: &[IpAddr]) -> String {
    let mut text = format!(
        "# Written by rxlane for the PPPoE session of {interface}; the former file comes back with its end.\n"
    );
    servers.iter().for_each(|server| text.push_str(&format!("nameserver {server}\n")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 53))];

    fn place(folder: &Path) -> Place {
        Place::at(&folder.join("resolv.conf"), folder)
    }

    fn notes(folder: &Path) -> Vec<PathBuf> {
        let paths = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "former")).collect()
    }

    /// As `ip netns exec` has them: the same path, and other files.
    #[test]
    fn what_was_in_one_file_is_not_put_into_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| Place::at(&folder.path().join(name), folder.path());
        let (one, other) = (place("one"), place("other"));
        fs::write(&one.file, "nameserver 198.51.100.1\n").expect("written");
        fs::write(&other.file, "").expect("written");
        let mut killed = Resolver::set("ppp0", &SERVERS, one.clone()).expect("set");
        let living = Resolver::set("ppp0", &SERVERS, other.clone()).expect("each has a file of its own");
        assert_eq!(living.take_back().expect("taken back"), Back::Done);
        killed.note.process.start += 1;
        record::write(&StateDir::at(folder.path()), &killed.note_path, &killed.note).expect("written");
        assert_eq!(other.recover().expect("nothing of its own"), None);
        assert_eq!(fs::read_to_string(&other.file).expect("there"), "");
        assert_eq!(one.recover().expect("put back"), Some(Back::Done));
        assert_eq!(fs::read_to_string(&one.file).expect("there"), "nameserver 198.51.100.1\n");
        assert!(notes(folder.path()).is_empty());
    }

    #[test]
    fn a_link_that_led_nowhere_does_so_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, target) = (place(folder.path()), folder.path().join("target"));
        std::os::unix::fs::symlink("target", &place.file).expect("a link");
        let resolver = Resolver::set("ppp0", &SERVERS, place.clone()).expect("set");
        assert!(target.exists());
        assert_eq!(resolver.take_back().expect("taken back"), Back::Done);
        assert!(!target.exists());
        assert_eq!(fs::read_link(&place.file).expect("a link"), Path::new("target"));
    }

    #[test]
    fn the_former_file_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        for former in [None, Some("search example\nnameserver 198.51.100.1\n")] {
            former.map_or(Ok(()), |former| fs::write(&place.file, former)).expect("written");
            let resolver = Resolver::set("ppp0", &SERVERS, place.clone()).expect("set");
            assert!(fs::read_to_string(&place.file).expect("there").ends_with("\nnameserver 192.0.2.53\n"));
            let error = Resolver::set("ppp1", &SERVERS, place.clone()).expect_err("held").to_string();
            assert!(error.contains("(the PPPoE session of ppp0)"), "{error}");
            assert_eq!(resolver.take_back().expect("taken back"), Back::Done);
            assert_eq!(place.read(&place.file).expect("read").as_deref(), former.map(str::as_bytes));
            assert!(notes(folder.path()).is_empty());
        }
    }

    /// As a kill or a full disk leaves it, and in whatever encoding the former file is.
    #[test]
    fn a_file_that_was_half_written_comes_back() {
        let former = &b"# caf\xe9\nnameserver 198.51.100.1\n"[..];
        for half in [&b""[..], b"# Written by rxl", &former[..7]] {
            let folder = tempfile::tempdir().expect("a folder");
            let place = place(folder.path());
            fs::write(&place.file, former).expect("written");
            let resolver = Resolver::set("ppp0", &SERVERS, place.clone()).expect("set");
            fs::write(&place.file, half).expect("written");
            assert_eq!(resolver.take_back().expect("taken back"), Back::Done);
            assert_eq!(fs::read(&place.file).expect("there"), former);
        }
        // The process that could not put it back does so when it has the next session.
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        fs::write(&place.file, former).expect("written");
        drop(Resolver::set("ppp0", &SERVERS, place.clone()).expect("set"));
        let resolver = Resolver::set("ppp0", &SERVERS, place.clone()).expect("set");
        assert_eq!(resolver.take_back().expect("taken back"), Back::Done);
        assert_eq!(fs::read(&place.file).expect("there"), former);
    }

    #[test]
    fn what_somebody_else_wrote_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        let resolver = Resolver::set("ppp0", &SERVERS, place.clone()).expect("set");
        fs::write(&place.file, "nameserver 203.0.113.1\n").expect("written");
        assert_eq!(resolver.take_back().expect("taken back"), Back::Changed);
        assert_eq!(fs::read_to_string(&place.file).expect("there"), "nameserver 203.0.113.1\n");
    }

    #[test]
    fn after_a_kill_the_next_one_puts_it_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        fs::write(&place.file, "nameserver 198.51.100.1\n").expect("written");
        let mut killed = Resolver::set("ppp0", &SERVERS, place.clone()).expect("set");
        assert_eq!(place.recover().expect("looked"), None, "the process lives");
        // Another process had this number.
        killed.note.process.start += 1;
        record::write(&StateDir::at(folder.path()), &killed.note_path, &killed.note).expect("written");
        assert_eq!(place.recover().expect("put back"), Some(Back::Done));
        assert_eq!(fs::read_to_string(&place.file).expect("there"), "nameserver 198.51.100.1\n");
        assert_eq!(place.recover().expect("nothing left"), None);
    }
}
