//! How later commands reach a process that stays: a Unix socket in the state folder, `link-NAMESPACE-NAME.sock`, or
//! `session-…`, `concentrator-…` (see [`Bearer`]).
//!
//! # Contract
//!
//! * A connection carries one question, a line; `status` and `down` are understood by all. The answer is a line of JSON, which
//!   may be that it is refused for the time being. After `down` the connection ends when what was asked is gone.
//! * Nobody who asks waits for others: however many connections are idle, or do not read, a question is answered at once.
//! * The folder is root's alone (mode 0700), and so are the sockets in it. NAMESPACE is the number of the network
//!   namespace, so that those of the same name in different ones do not meet.
//! * A killed process leaves its socket; nobody listens at it any more, which is how it is recognised.

mod lock;
mod server;
mod sys;

pub use lock::Lock;
pub use server::{Answer, Server};
pub use sys::peer;

use crate::status::Status;
use kernel::netlink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of a session may take: the goodbye, the name servers, and two scripts, each of which has half a minute.
const ENDING: Duration = Duration::from_secs(100);
/// How long the kernel may take to take a process apart.
pub const DYING: Duration = Duration::from_secs(2);
/// The longest answer, octets: a million sessions, each of which takes 2,645 where user name and line identification are as long
/// as can be and escaped throughout.
const LONGEST: u64 = 1 << 32;

/// An answer that says why there is none.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refused {
    refused: String,
}

impl Refused {
    /// How its line begins, by which it is told from other answers.
    const BEGINNING: &str = "{\"refused\":";

    /// The line, without its end.
    pub fn line(why: &str) -> String {
        serde_json::to_string(&Refused { refused: why.to_owned() }).unwrap_or_default()
    }

    /// Why, where a line says so.
    pub fn read(line: &str) -> Option<String> {
        if !line.starts_with(Refused::BEGINNING) {
            return None;
        }
        serde_json::from_str(line).ok().map(|Refused { refused }| refused)
    }
}

/// What a process bears that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// A link; by the name of its interface.
    Link,
    /// The PPPoE session of a client; by the name of its interface.
    Session,
    /// An access concentrator; by the name of the interface that it serves.
    Concentrator,
}

impl Bearer {
    /// How the names of its sockets begin.
    const fn word(self) -> &'static str {
        match self {
            Bearer::Link => "link",
            Bearer::Session => "session",
            Bearer::Concentrator => "concentrator",
        }
    }

    /// How long its end may take.
    const fn ending(self) -> Duration {
        match self {
            Bearer::Session => ENDING,
            Bearer::Link | Bearer::Concentrator => PATIENCE,
        }
    }

    /// Any of them.
    const fn one(self) -> &'static str {
        match self {
            Bearer::Link => "a link",
            Bearer::Session => "a PPPoE session",
            Bearer::Concentrator => "an access concentrator",
        }
    }

    /// The command that lists those that there are.
    const fn list(self) -> &'static str {
        match self {
            Bearer::Link => "rxlane link status",
            Bearer::Session | Bearer::Concentrator => "rxlane pppoe status",
        }
    }

    /// How it comes that one has the socket of a name that was free.
    const fn holds(self) -> &'static str {
        match self {
            Bearer::Link => "a link that came up by this name, and whose interface was renamed since",
            // It has its name also while there is no interface.
            Bearer::Session => "a PPPoE session of this name, open or not (`--ifname` takes another name)",
            Bearer::Concentrator => {
                "an access concentrator of this interface (`--takeover` goes on with its sessions)"
            }
        }
    }

    /// The command that shows one, but for its name.
    const fn show(self) -> &'static str {
        match self {
            Bearer::Link | Bearer::Session => self.list(),
            Bearer::Concentrator => "rxlane pppoe sessions",
        }
    }

    /// The command that ends one, but for its name.
    const fn end(self) -> &'static str {
        match self {
            Bearer::Link => "rxlane link down",
            Bearer::Session => "rxlane pppoe disconnect",
            Bearer::Concentrator => "rxlane pppoe disconnect --concentrator",
        }
    }
}

impl fmt::Display for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bearer::Link => "link",
            Bearer::Session => "PPPoE session",
            Bearer::Concentrator => "access concentrator on",
        })
    }
}

/// An answer, the connection, and the number of the process.
type Asked = (String, BufReader<io::Take<UnixStream>>, Option<u32>);

/// The sockets of what processes of one kind bear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sockets {
    bearer: Bearer,
    folder: PathBuf,
    namespace: u64,
}

/// Why nobody answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// There is none such.
    #[error(
        "there is no {bearer} {name} in this network namespace; `{}` lists those that there are", bearer.list()
    )]
    None {
        /// What was asked.
        bearer: Bearer,
        /// Its name.
        name: String,
    },
    /// Its process was killed; its socket was removed.
    #[error(
        "the process of the {bearer} {name} was killed, and its interface went with it; what it left is removed"
    )]
    Killed {
        /// What was asked.
        bearer: Bearer,
        /// Its name.
        name: String,
    },
    /// Its process was killed, and its socket cannot be removed.
    #[error(
        "the process of the {bearer} {name} was killed, and its interface went with it; what it left cannot be removed: {}: \
         {source}{}",
        path.display(), read_only(source)
    )]
    Leftover {
        /// What was asked.
        bearer: Bearer,
        /// Its name.
        name: String,
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something else has the place of the socket.
    #[error("{} is no socket: remove it, it is none of rxlane's", .0.display())]
    NoSocket(PathBuf),
    /// One that lives has it.
    #[error(
        "{}, holds {}: `{} {name}` shows it, `{} {name}` ends it",
        bearer.holds(), path.display(), bearer.show(), bearer.end()
    )]
    Held {
        /// What holds it.
        bearer: Bearer,
        /// Its name.
        name: String,
        /// The socket.
        path: PathBuf,
    },
    /// The process may not ask.
    #[error("asking {} takes root ({})", bearer.one(), path.display())]
    Privilege {
        /// What was asked.
        bearer: Bearer,
        /// The socket, or its folder.
        path: PathBuf,
    },
    /// Its process is stopped (SIGSTOP).
    #[error(
        "the process {pid} of the {bearer} {name} is stopped and moves no packets: `kill -CONT {pid}` lets it go on; nothing was \
         changed"
    )]
    Stopped {
        /// What was asked.
        bearer: Bearer,
        /// Its name.
        name: String,
        /// Number of the process.
        pid: u32,
    },
    /// It says nothing.
    #[error(
        "the process {pid} of the {bearer} {name} does not answer within {} s; nothing was changed: ask again, or `kill -KILL {pid}` \
         ends it, and its interface with it",
        PATIENCE.as_secs()
    )]
    Silent {
        /// What was asked.
        bearer: Bearer,
        /// Its name.
        name: String,
        /// Number of the process.
        pid: u32,
    },
    /// It was asked to end and is there still.
    #[error(
        "the process {pid} of the {bearer} {name} was asked to end, and has not within {} s: ask again, or `kill -KILL {pid}` ends it",
        bearer.ending().as_secs()
    )]
    Unfinished {
        /// What was asked.
        bearer: Bearer,
        /// Its name.
        name: String,
        /// Number of the process.
        pid: u32,
    },
    /// It does not do so for the time being.
    #[error("the {bearer} {name}: {why}")]
    Refused {
        /// What was asked.
        bearer: Bearer,
        /// Its name.
        name: String,
        /// Why, and what to do.
        why: String,
    },
    /// It did not answer.
    #[error("the {bearer} {name} did not answer: {source}")]
    NoAnswer {
        /// What was asked.
        bearer: Bearer,
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be made, read or removed.
    #[error("cannot {what} {}: {source}{}", path.display(), read_only(source))]
    File {
        /// What was tried.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ControlError {
    /// Whether it is an answer, and no failure: there is none such.
    pub const fn is_an_answer(&self) -> bool {
        matches!(
            self,
            ControlError::None { .. }
                | ControlError::Killed { .. }
                | ControlError::Leftover { .. }
                | ControlError::NoAnswer { .. }
                | ControlError::Stopped { .. }
                | ControlError::Silent { .. }
                | ControlError::Unfinished { .. }
                | ControlError::Refused { .. }
                | ControlError::Held { .. }
        )
    }
}

impl Sockets {
    /// Those in `folder` of this kind in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// There is no procfs.
    pub fn new(bearer: Bearer, folder: impl Into<PathBuf>) -> Result<Sockets, ControlError> {
        let own = Path::new("/proc/thread-self/ns/net");
        let failed = |source| ControlError::File { what: "read", path: own.to_owned(), source };
        let namespace = fs::metadata(own).map_err(failed)?.st_ino();
        Ok(Sockets { bearer, folder: folder.into(), namespace })
    }

    /// What is asked there.
    pub const fn bearer(&self) -> Bearer {
        self.bearer
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How the names of the files of what is called so begin.
    fn beginning(&self, name: &str) -> String {
        format!("{}-{}-{name}", self.bearer.word(), self.namespace)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}.sock", self.beginning(name)))
    }

    /// The names of those of this namespace that have a socket, dead ones among them.
    ///
    /// # Errors
    ///
    /// [`ControlError::Privilege`], [`ControlError::File`].
    pub fn names(&self) -> Result<Vec<String>, ControlError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(ControlError::Privilege { bearer: self.bearer, path: self.folder.clone() });
            }
            Err(source) => {
                return Err(ControlError::File { what: "read", path: self.folder.clone(), source });
            }
        };
        server::remove_left(self);
        let prefix = self.beginning("");
        let name = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            Some(name.strip_prefix(&prefix)?.strip_suffix(".sock")?.to_owned())
        };
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// How a link stands.
    ///
    /// # Errors
    ///
    /// [`ControlError::None`], [`ControlError::Killed`] and others.
    pub fn status(&self, name: &str) -> Result<Status, ControlError> {
        self.answer(name, "status")
    }

    /// The answer to a question, which is one line.
    ///
    /// # Errors
    ///
    /// As [`Sockets::status`].
    pub fn answer<T: DeserializeOwned>(&self, name: &str, question: &str) -> Result<T, ControlError> {
        let (answer, _, _) = self.ask(name, question)?;
        self.read(name, &answer)
    }

    fn read<T: DeserializeOwned>(&self, name: &str, answer: &str) -> Result<T, ControlError> {
        if let Some(why) = Refused::read(answer) {
            return Err(ControlError::Refused { bearer: self.bearer, name: name.to_owned(), why });
        }
        if answer.is_empty() {
            let silent = "it closed the connection; it has just ended, or is another version of rxlane";
            return Err(self.unanswered(name, io::Error::new(io::ErrorKind::UnexpectedEof, silent)));
        }
        serde_json::from_str(answer).map_err(|error| self.unanswered(name, error.into()))
    }

    /// Ends a link and waits until its interface is gone; how it stood at last.
    ///
    /// # Errors
    ///
    /// As [`Sockets::status`].
    pub fn down(&self, name: &str) -> Result<Status, ControlError> {
        self.end(name)
    }

    /// Ends one and waits until its process has; how it stood at last.
    ///
    /// # Errors
    ///
    /// As [`Sockets::status`].
    pub fn end<T: DeserializeOwned>(&self, name: &str) -> Result<T, ControlError> {
        let (answer, mut rest, pid) = self.ask(name, "down").inspect_err(|error| {
            if matches!(error, ControlError::Killed { .. }) {
                wait_until_gone(name);
            }
        })?;
        let waits = rest.get_ref().get_ref().set_read_timeout(Some(self.bearer.ending()));
        waits.and_then(|()| rest.read_to_end(&mut Vec::new())).map_err(|source| match pid {
            Some(pid) if is_late(&source) => {
                ControlError::Unfinished { bearer: self.bearer, name: name.to_owned(), pid }
            }
            _ => self.unanswered(name, source),
        })?;
        // The parent is promiscuous until the last socket is closed.
        if let Some(pid) = pid.filter(|pid| *pid != std::process::id()) {
            has_ended(pid);
        }
        self.read(name, &answer)
    }

    /// Why one of this name did not answer.
    pub fn unanswered(&self, name: &str, source: io::Error) -> ControlError {
        ControlError::NoAnswer { bearer: self.bearer, name: name.to_owned(), source }
    }

    /// Whether there is the socket of one whose process was killed.
    pub fn is_killed(&self, name: &str) -> bool {
        UnixStream::connect(self.path(name))
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// A connection, on which nothing was said yet, and the number of the process at the other end.
    ///
    /// # Errors
    ///
    /// As [`Sockets::status`].
    pub fn reach(&self, name: &str) -> Result<(UnixStream, Option<u32>), ControlError> {
        let stream = self.connect(name)?;
        let pid = sys::peer(&stream);
        // It would read the question when it goes on, and find nobody to answer.
        match self.stopped(name, pid) {
            Some(stopped) => Err(stopped),
            None => Ok((stream, pid)),
        }
    }

    fn stopped(&self, name: &str, pid: Option<u32>) -> Option<ControlError> {
        let pid = pid.filter(|pid| is_stopped(*pid))?;
        Some(ControlError::Stopped { bearer: self.bearer, name: name.to_owned(), pid })
    }

    /// Asks a question; the answer, the connection, and the number of the process.
    fn ask(&self, name: &str, question: &str) -> Result<Asked, ControlError> {
        server::remove_left(self);
        let until = Instant::now() + DYING;
        loop {
            match self.ask_once(name, question) {
                // A killed process takes connections, and answers none, until the kernel has come to its socket.
                Err(ControlError::NoAnswer { source, .. })
                    if source.kind() == io::ErrorKind::ConnectionReset && Instant::now() < until =>
                {
                    thread::sleep(Duration::from_millis(10));
                }
                asked => return asked,
            }
        }
    }

    fn ask_once(&self, name: &str, question: &str) -> Result<Asked, ControlError> {
        let (mut stream, pid) = self.reach(name)?;
        let mut answer = String::new();
        let asked = || -> io::Result<_> {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(format!("{question}\n").as_bytes())?;
            let mut reader = BufReader::new(stream.take(LONGEST));
            reader.read_line(&mut answer)?;
            Ok(reader)
        };
        let reader = asked().map_err(|source| match (pid, self.stopped(name, pid)) {
            (_, Some(stopped)) => stopped,
            (Some(pid), None) if is_late(&source) => {
                ControlError::Silent { bearer: self.bearer, name: name.to_owned(), pid }
            }
            _ => self.unanswered(name, source),
        })?;
        Ok((answer, reader, pid))
    }

    fn connect(&self, name: &str) -> Result<UnixStream, ControlError> {
        let path = self.path(name);
        match UnixStream::connect(&path) {
            Ok(stream) => Ok(stream),
            Err(error) => Err(match error.kind() {
                io::ErrorKind::NotFound => ControlError::None { bearer: self.bearer, name: name.to_owned() },
                io::ErrorKind::PermissionDenied => ControlError::Privilege { bearer: self.bearer, path },
                io::ErrorKind::ConnectionRefused => {
                    let (bearer, name) = (self.bearer, name.to_owned());
                    match server::remove_dead(bearer, &name, &path) {
                        Ok(()) => ControlError::Killed { bearer, name },
                        Err(ControlError::File { path, source, .. }) => {
                            ControlError::Leftover { bearer, name, path, source }
                        }
                        Err(error) => error,
                    }
                }
                _ => self.unanswered(name, error),
            }),
        }
    }
}

/// What to do where a folder takes no changes.
fn read_only(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "; rxlane has sockets there by which a running process is asked: the folder has to be writable"
        }
        _ => "",
    }
}

/// The kernel takes a killed process apart, and its interface with it, after whoever waits for it knows of its end. An
/// interface of somebody else has the name for longer.
pub fn wait_until_gone(name: &str) {
    let until = Instant::now() + DYING;
    while netlink::link_by_name(name).is_ok() && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process has ended, or does so within [`DYING`].
pub fn has_ended(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => {
            let timeout = Timespec { tv_sec: DYING.as_secs() as i64, tv_nsec: 0 };
            poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)).is_ok_and(|count| count > 0)
        }
        Err(error) => error == Errno::SRCH,
    }
}

/// Whether a read or write took longer than [`PATIENCE`].
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Whether a process is stopped by a signal (proc(5): the state stands behind the name).
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state == Some('T')
}
