//! `--daemon`: the program starts itself again, and the link or session lives on in that process.
//!
//! The one that was called waits at a socket pair, whose other end is standard input of the one that stays. That one has
//! standard output and standard error of its caller until the link is up, so that it says itself what came up, or why
//! nothing did. Then it leaves the terminal, and says so through the pair.

use super::log::{Log, Prepared};
use super::teller::Teller;
use crate::output::{CommandResult, Lacks, Outcome, Output, complain};
use anyhow::Context;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;
use steer::gone::Names;

/// The option that tells the process that stays from the one that was called.
pub const STAYS: &str = "stays";
/// How often it is looked whether the network namespace was deleted.
const LOOK: Duration = Duration::from_secs(2);

/// The longest secret, octets.
const SECRET: usize = 1024;

/// Starts the process that stays, with the arguments of this one, and waits until what was asked for is up or is known not to
/// come. `secret` is handed over through the pair, where nobody else sees it ([`handed_over`]).
pub fn start(secret: &[u8]) -> CommandResult {
    let failed = |error: io::Error| Lacks(format!("cannot start the process that stays: {error}"));
    let (mut own, other) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(staying(std::env::args_os().skip(1))).stdin(OwnedFd::from(other));
    // It is not the process that a service manager waits for.
    command.env_remove("NOTIFY_SOCKET");
    let mut child = command.spawn().map_err(failed)?;
    // The other end is the child's alone from here on: its end can be seen.
    drop(command);
    // What it does not take it does not want; why, it says itself.
    let _ = own.write_all(&(secret.len() as u32).to_be_bytes()).and_then(|()| own.write_all(secret));
    let mut word = [0];
    match own.read_exact(&mut word) {
        Ok(()) if word == [Stays::Trying.word()] => Ok(Outcome::Negative),
        Ok(()) => Ok(Outcome::Success),
        Err(_) => ended(child.wait().map_err(failed)?),
    }
}

/// The arguments of the process that stays. Behind `--` stands no option.
fn staying(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    arguments.insert(end, format!("--{STAYS}").into());
    arguments
}

/// How a process stays in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// With what was asked for.
    Up,
    /// Without it as yet, after a try that failed.
    Trying,
}

impl Stays {
    const fn word(self) -> u8 {
        match self {
            Stays::Up => 1,
            Stays::Trying => 2,
        }
    }
}

/// The secret that the one who was called handed over to this process, which stays.
///
/// # Errors
///
/// Nobody did.
pub fn handed_over() -> io::Result<Vec<u8>> {
    let mut caller = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut length = [0; 4];
    caller.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > SECRET {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut secret = vec![0; length];
    caller.read_exact(&mut secret)?;
    Ok(secret)
}

/// What became of a process that ended before what it has was up.
fn ended(status: ExitStatus) -> CommandResult {
    match (status.code(), status.signal()) {
        // Somebody asked for the end while it came up. It has said so.
        (Some(0), _) => Ok(Outcome::Success),
        (Some(1), _) => Ok(Outcome::Negative),
        // It has said why on the same standard error: one sentence is enough.
        (Some(code), _) => std::process::exit(code),
        (_, Some(signal)) => {
            Err(Lacks(format!("signal {signal} ended the process that stays before anything was up")).into())
        }
        _ => Err(Lacks("the process that stays ended before anything was up".to_owned()).into()),
    }
}

/// What the process that stays needs for leaving its caller, had before anything is changed on the machine.
#[derive(Debug)]
pub struct Leaving {
    caller: UnixStream,
    nothing: File,
    log: Option<Prepared>,
    teller: Teller,
}

impl Leaving {
    /// `log` takes what is said from then on; without one nobody hears it. `ask` is written to when the network namespace, in
    /// which `name` is, is deleted: this process would keep it alive, where nobody finds it.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or there are no more descriptors or threads.
    pub fn prepare(log: Option<&Path>, name: &str, ask: UnixStream) -> anyhow::Result<Leaving> {
        let nothing = open(Path::new("/dev/null"))?;
        let file = log.map(open).transpose()?;
        let prepared = || -> io::Result<Leaving> {
            let log = file.map(|file| Prepared::new(file, nothing.try_clone()?)).transpose()?;
            let teller = Teller::on(match &log {
                Some(log) => log.writer()?,
                None => nothing.try_clone()?,
            })?;
            let caller = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
            end_with_namespace(name.to_owned(), Names::here(), ask)?;
            Ok(Leaving { caller, nothing, log, teller })
        };
        Ok(prepared().map_err(cannot_leave)?)
    }

    /// Leaves session, folder and streams of the caller, and tells it. What was told by `teller` until here is for the caller;
    /// from now on it goes to the log, and so does what is written to `out`. `log` is to live as long as either.
    ///
    /// # Errors
    ///
    /// The caller is gone, and nobody knows of this process.
    pub fn leave(
        self,
        stays: Stays,
        teller: &mut Teller,
        out: &mut Output,
        log: &mut Option<Log>,
    ) -> anyhow::Result<()> {
        let Leaving { mut caller, nothing, log: prepared, teller: next } = self;
        std::mem::replace(teller, next).finish();
        let left = || -> io::Result<()> {
            // A leader of a session already, where somebody else started it: nothing to leave.
            let _ = rustix::process::setsid();
            // A file system that is in use cannot be unmounted.
            std::env::set_current_dir("/")?;
            dup2_stdin(&nothing)?;
            dup2_stdout(&nothing)?;
            dup2_stderr(&nothing)?;
            *log = prepared.map(Prepared::start).transpose()?;
            caller.write_all(&[stays.word()])
        };
        left().map_err(cannot_leave)?;
        // Colour and width are those of the log now.
        *out = Output::standard();
        Ok(())
    }
}

fn cannot_leave(error: io::Error) -> Lacks {
    Lacks(format!("cannot go to the background: {error}"))
}

fn open(path: &Path) -> anyhow::Result<File> {
    let opened = File::options().read(true).append(true).create(true).mode(0o640).open(path);
    opened.with_context(|| format!("cannot write to {}", path.display()))
}

/// Asks for the end of `name` when its network namespace is deleted.
fn end_with_namespace(name: String, names: Names, mut ask: UnixStream) -> io::Result<()> {
    let watch = move || {
        while !names.are_gone() {
            thread::sleep(LOOK);
        }
        complain(&format!("the network namespace was deleted: {name} is over"));
        // It ends already, where nobody listens.
        let _ = ask.write_all(&[0]);
    };
    thread::Builder::new().name("namespace".to_owned()).spawn(watch).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_before_what_ends_them() {
        let all = |line: &str| {
            let arguments = staying(line.split(' ').map(OsString::from));
            arguments.join(std::ffi::OsStr::new(" ")).into_string().expect("text")
        };
        assert_eq!(all("pppoe connect --daemon -- c0"), "pppoe connect --daemon --stays -- c0");
        assert_eq!(all("pppoe connect c0 --daemon"), "pppoe connect c0 --daemon --stays");
    }
}
