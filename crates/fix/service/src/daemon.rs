//! `--daemon`: the program starts itself again, and what came up lives on in that process, the daemon.
//!
//! The caller waits at a socket pair, whose other end is standard input of the daemon. The daemon has standard output and standard
//! error of its caller until it is ready, so that it reports itself what came up, or why nothing did. Then it leaves the
//! terminal, and says so through the pair.

use crate::lines::LineWriter;
use crate::log::{Log, Prepared};
use crate::namespace::Names;
use kernel::file::expect_trusted;
use rustix::fs::Mode;
use rustix::process::umask;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The hidden option that makes the process the daemon.
pub const OPTION: &str = "daemon-process";
/// The variable in which a caller may have its secret.
pub const SECRET_VARIABLE: &str = "RXLANE_PPPOE_PASSWORD";
/// The longest secret, bytes.
const LONGEST_SECRET: usize = 1024;

/// How a daemon begins its life in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// With what was requested.
    Up,
    /// Without it as yet, after a try that failed.
    Trying,
}

impl Ready {
    const fn word(self) -> u8 {
        match self {
            Ready::Up => 1,
            Ready::Trying => 2,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It is in the background.
    Ready(Ready),
    /// It ended before; it has said why.
    Ended(ExitStatus),
}

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("cannot start the daemon: {0}")]
    Start(io::Error),
    #[error("cannot write to {}: {source}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("cannot go to the background: {0}")]
    Leave(io::Error),
}

/// Starts the daemon, with the arguments of this process, and waits until what was requested is up or is known not to come.
/// `secret` is handed over through the pair, where nobody else sees it ([`secret`]).
pub fn start(secret: &[u8]) -> Result<Started, DaemonError> {
    let (mut own, other) = UnixStream::pair().map_err(DaemonError::Start)?;
    let mut command = Command::new(std::env::current_exe().map_err(DaemonError::Start)?);
    command.args(arguments(std::env::args_os().skip(1))).stdin(OwnedFd::from(other));
    // It is not the process that a service manager waits for.
    command.env_remove("NOTIFY_SOCKET");
    // It gets that through the pair, and its environment lasts as long as it does.
    command.env_remove(SECRET_VARIABLE);
    let mut child = command.spawn().map_err(DaemonError::Start)?;
    // The other end is the child's alone from here on: its end can be seen.
    drop(command);
    // What it does not take it does not want; why, it says itself.
    let _ = own.write_all(&(secret.len() as u32).to_be_bytes()).and_then(|()| own.write_all(secret));
    let mut word = [0];
    match own.read_exact(&mut word) {
        Ok(()) if word == [Ready::Trying.word()] => Ok(Started::Ready(Ready::Trying)),
        Ok(()) => Ok(Started::Ready(Ready::Up)),
        Err(_) => child.wait().map(Started::Ended).map_err(DaemonError::Start),
    }
}

/// The arguments of the daemon. No option stands behind `--`.
fn arguments(own: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = own.collect();
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    arguments.insert(end, format!("--{OPTION}").into());
    arguments
}

/// The secret that the caller handed over to this daemon.
pub fn secret() -> io::Result<Vec<u8>> {
    let mut caller = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut length = [0; 4];
    caller.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST_SECRET {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut secret = vec![0; length];
    caller.read_exact(&mut secret)?;
    Ok(secret)
}

/// What the daemon needs for leaving its caller, acquired before anything is changed on the machine.
#[derive(Debug)]
pub struct Leaving {
    caller: UnixStream,
    nothing: File,
    log: Option<Prepared>,
    lines: LineWriter,
}

impl Leaving {
    /// `log` takes what is said from then on; without one nobody hears it. `ask` is written to when the network namespace, in
    /// which `name` is, is deleted: this process would keep it alive, where nobody finds it.
    pub fn prepare(log: Option<&Path>, name: &str, ask: UnixStream) -> Result<Leaving, DaemonError> {
        let nothing = open(Path::new("/dev/null"))?;
        let file = log.map(open).transpose()?;
        let prepared = || -> io::Result<Leaving> {
            let log = file.map(|file| Prepared::new(file, nothing.try_clone()?)).transpose()?;
            let lines = LineWriter::on(match &log {
                Some(log) => log.writer()?,
                None => nothing.try_clone()?,
            })?;
            let caller = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
            end_with_namespace(name.to_owned(), ask)?;
            Ok(Leaving { caller, nothing, log, lines })
        };
        prepared().map_err(DaemonError::Leave)
    }

    /// Leaves session, folder and streams of the caller, and reports that to it. What `lines` was given until here is for the
    /// caller; from now on it goes to the log, and so does what is written to standard output. The log is to live as long as
    /// either.
    ///
    /// # Errors
    ///
    /// The caller has ended, and nobody knows of this process.
    pub fn leave(self, ready: Ready, lines: &mut LineWriter) -> Result<Option<Log>, DaemonError> {
        let Leaving { mut caller, nothing, log, lines: next } = self;
        std::mem::replace(lines, next).finish();
        let left = || -> io::Result<Option<Log>> {
            // A leader of a session already, where somebody else started it: nothing to leave.
            let _ = rustix::process::setsid();
            // What it and its scripts make from now on is nobody else's to write to, whatever its caller thought of that.
            let mask = umask(Mode::all());
            umask(mask | Mode::WGRP | Mode::WOTH);
            // A file system that is in use cannot be unmounted.
            std::env::set_current_dir("/")?;
            dup2_stdin(&nothing)?;
            dup2_stdout(&nothing)?;
            dup2_stderr(&nothing)?;
            let log = log.map(Prepared::start).transpose()?;
            caller.write_all(&[ready.word()])?;
            Ok(log)
        };
        left().map_err(DaemonError::Leave)
    }
}

fn open(path: &Path) -> Result<File, DaemonError> {
    let trusted = expect_trusted(path).map_err(io::Error::from);
    let opened =
        trusted.and_then(|()| File::options().read(true).append(true).create(true).mode(0o640).open(path));
    opened.map_err(|source| DaemonError::Log { path: path.to_owned(), source })
}

/// Asks for the end of `name` when its network namespace is deleted.
fn end_with_namespace(name: String, mut ask: UnixStream) -> io::Result<()> {
    Names::here().on_removal(move || {
        let _ = writeln!(io::stderr(), "rxlane: the network namespace was deleted: {name} ends", name = name);
        // It ends already, where nobody listens.
        let _ = ask.write_all(&[0]);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_before_what_ends_them() {
        let all = |line: &str| {
            let arguments = arguments(line.split(' ').map(OsString::from));
            arguments.join(std::ffi::OsStr::new(" ")).into_string().expect("text")
        };
        assert_eq!(all("pppoe connect --daemon -- c0"), "pppoe connect --daemon --daemon-process -- c0");
        assert_eq!(all("pppoe connect c0 --daemon"), "pppoe connect c0 --daemon --daemon-process");
    }
}
