//! How later commands reach a daemon: a Unix socket in the state folder, `KIND-NAMESPACE-NAME.sock`.
//!
//! # Contract
//!
//! * A connection carries one question, a line; every daemon answers `status` and `down`. The answer is a line of JSON, which
//!   may be that it is refused for the time being. After `down` the connection ends when the process has ended; a second line
//!   before says what came of that.
//! * No client waits for another: however many connections are idle, or do not read, a question is answered at once.
//! * Only root and the user of the daemon are answered: the socket has mode 0600, whatever the umask, and the daemon asks the
//!   kernel who is at the other end (`SO_PEERCRED`). NAMESPACE is the number of the network namespace, so that those of the
//!   same name in different ones do not meet.
//! * A killed process leaves its socket; nobody listens at it any more, which is how it is recognised.

mod error;
mod lock;
mod queue;
mod server;

pub use error::ControlError;
pub use kernel::socket::peer;
pub use lock::Lock;
pub use server::{ControlHandler, Server};

use crate::instance::{Instances, PATIENCE};
use crate::process::{DYING, wait_until_removed};
use kernel::process::{is_stopped, wait_for_end};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// The longest answer, bytes: a million sessions, each of which takes 2,645 where user name and line identification are as long
/// as can be and escaped throughout.
const LONGEST: u64 = 1 << 32;

/// An answer that says why there is none.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refused {
    refused: String,
}

impl Refused {
    /// How its line begins, by which it is distinguished from other answers.
    const BEGINNING: &str = "{\"refused\":";

    pub fn line(why: &str) -> String {
        serde_json::to_string(&Refused { refused: why.to_owned() }).unwrap_or_default()
    }

    pub fn read(line: &str) -> Option<String> {
        if !line.starts_with(Refused::BEGINNING) {
            return None;
        }
        serde_json::from_str(line).ok().map(|Refused { refused }| refused)
    }
}

/// Reports to those who wait for the end of this process ([`Server::close`]) what came of it.
pub fn report_end(waiting: Vec<UnixStream>, result: &impl Serialize) {
    let line = serde_json::to_string(result).unwrap_or_default() + "\n";
    // A client that has disconnected does not wait for it.
    waiting.into_iter().for_each(|mut stream| drop(stream.write_all(line.as_bytes())));
}

/// An answer, the connection, and the number of the process.
type Answered = (String, BufReader<io::Take<UnixStream>>, Option<u32>);

impl Instances {
    /// The names of those of this namespace that have a socket, dead ones among them.
    pub fn names(&self) -> Result<Vec<String>, ControlError> {
        self.state().check()?;
        let folder = self.state().path();
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(ControlError::Privilege { kind: self.kind(), path: folder.to_owned() });
            }
            Err(source) => return Err(ControlError::File { what: "read", path: folder.to_owned(), source }),
        };
        server::remove_abandoned(self);
        let prefix = self.named("").stem();
        let name = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            Some(name.strip_prefix(&prefix)?.strip_suffix(".sock")?.to_owned())
        };
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The answer to a question, which is one line.
    pub fn ask<T: DeserializeOwned>(&self, name: &str, question: &str) -> Result<T, ControlError> {
        let (answer, _, _) = self.exchange(name, question)?;
        self.read(name, &answer)
    }

    fn read<T: DeserializeOwned>(&self, name: &str, answer: &str) -> Result<T, ControlError> {
        if let Some(why) = Refused::read(answer) {
            return Err(ControlError::Refused { kind: self.kind(), name: name.to_owned(), why });
        }
        if answer.is_empty() {
            let silent = "it closed the connection; it has just ended, or is another version of rxlane";
            return Err(self.no_answer(name, io::Error::new(io::ErrorKind::UnexpectedEof, silent)));
        }
        serde_json::from_str(answer).map_err(|error| self.no_answer(name, error.into()))
    }

    /// Ends one and waits until its process has; its last status.
    pub fn end<T: DeserializeOwned>(&self, name: &str) -> Result<T, ControlError> {
        Ok(self.end_with_result::<T, serde::de::IgnoredAny>(name)?.0)
    }

    /// The same, with what came of the end ([`report_end`]); `None`: it did not say.
    pub fn end_with_result<T: DeserializeOwned, R: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<(T, Option<R>), ControlError> {
        let (answer, mut rest, pid) = self.exchange(name, "down").inspect_err(|error| {
            if matches!(error, ControlError::Killed { .. }) {
                // Nobody goes on with it.
                let _ = server::remove_if_dead(self.kind(), name, &self.file(name, ".sock"));
                wait_until_removed(name);
            }
        })?;
        let waits = rest.get_ref().get_ref().set_read_timeout(Some(self.kind().end_timeout()));
        let mut result = Vec::new();
        waits.and_then(|()| rest.read_to_end(&mut result)).map_err(|source| match pid {
            Some(pid) if is_late(&source) => {
                ControlError::Unfinished { kind: self.kind(), name: name.to_owned(), pid }
            }
            _ => self.no_answer(name, source),
        })?;
        // The parent is promiscuous until the last socket is closed.
        if let Some(pid) = pid.filter(|pid| *pid != std::process::id()) {
            wait_for_end(pid, DYING);
        }
        Ok((self.read(name, &answer)?, serde_json::from_slice(&result).ok()))
    }

    /// For `map_err`: it did not answer.
    pub fn no_answer(&self, name: &str, source: io::Error) -> ControlError {
        ControlError::NoAnswer { kind: self.kind(), name: name.to_owned(), source }
    }

    /// Whether there is the socket of one whose process was killed.
    pub fn is_killed(&self, name: &str) -> bool {
        server::is_dead(&self.file(name, ".sock"))
    }

    /// A connection, on which nothing was said yet, and the number of the process at the other end.
    pub fn connect(&self, name: &str) -> Result<(UnixStream, Option<u32>), ControlError> {
        self.state().check()?;
        let path = self.file(name, ".sock");
        let (kind, instance) = (self.kind(), || name.to_owned());
        let stream = loop {
            let source = match UnixStream::connect(&path) {
                Ok(stream) => break stream,
                Err(error) => error,
            };
            return Err(match source.kind() {
                // A path that is too long for a socket is that of none.
                io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => {
                    ControlError::None { kind, name: instance() }
                }
                io::ErrorKind::PermissionDenied => ControlError::Privilege { kind, path },
                io::ErrorKind::ConnectionRefused => {
                    let killed = match kind.is_continued() {
                        true => server::is_killed(&path),
                        false => server::remove_if_dead(kind, name, &path),
                    };
                    match killed {
                        Ok(true) => ControlError::Killed { kind, name: instance() },
                        Ok(false) => continue,
                        Err(ControlError::File { path, source, .. }) => {
                            ControlError::Leftover { kind, name: instance(), path, source }
                        }
                        Err(error) => error,
                    }
                }
                _ => ControlError::NoAnswer { kind, name: instance(), source },
            });
        };
        let pid = peer(&stream).and_then(|peer| peer.pid);
        // It would read the question when it goes on, and find nobody to answer.
        match self.stopped(name, pid) {
            Some(stopped) => Err(stopped),
            None => Ok((stream, pid)),
        }
    }

    fn stopped(&self, name: &str, pid: Option<u32>) -> Option<ControlError> {
        let pid = pid.filter(|pid| is_stopped(*pid))?;
        Some(ControlError::Stopped { kind: self.kind(), name: name.to_owned(), pid })
    }

    /// Asks a question; the answer, the connection, and the number of the process.
    fn exchange(&self, name: &str, question: &str) -> Result<Answered, ControlError> {
        server::remove_abandoned(self);
        let until = Instant::now() + DYING;
        let mut ending = None;
        loop {
            let (stream, pid) = self.connect(name).inspect_err(|error| {
                // Its process is still removing the interface.
                if let (ControlError::None { .. }, Some(pid)) = (error, ending) {
                    wait_for_end(pid, DYING);
                }
            })?;
            match self.exchange_once(stream, pid, name, question) {
                // One that ends, or was killed, takes connections, and answers none, until its socket is closed.
                Err(ControlError::NoAnswer { source, .. })
                    if is_disconnected(&source) && Instant::now() < until =>
                {
                    ending = pid.filter(|pid| *pid != std::process::id());
                    thread::sleep(Duration::from_millis(10));
                }
                answered => return answered,
            }
        }
    }

    fn exchange_once(
        &self,
        mut stream: UnixStream,
        pid: Option<u32>,
        name: &str,
        question: &str,
    ) -> Result<Answered, ControlError> {
        let mut answer = String::new();
        let exchange = || -> io::Result<_> {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(format!("{question}\n").as_bytes())?;
            let mut reader = BufReader::new(stream.take(LONGEST));
            reader.read_line(&mut answer)?;
            Ok(reader)
        };
        let reader = exchange().map_err(|source| match (pid, self.stopped(name, pid)) {
            (_, Some(stopped)) => stopped,
            (Some(pid), None) if is_late(&source) => {
                ControlError::Silent { kind: self.kind(), name: name.to_owned(), pid }
            }
            _ => self.no_answer(name, source),
        })?;
        Ok((answer, reader, pid))
    }
}

/// Whether the other end closed the connection without an answer.
fn is_disconnected(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

/// Whether a read or write took longer than [`PATIENCE`].
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
