//! What two processes say to each other when one goes on with the sessions of the other, on a connection of the control socket.
//!
//! # Contract
//!
//! * The successor has everything that it needs before it says the first word. Lines of JSON, or words:
//!
//!   | successor | predecessor | |
//!   | --- | --- | --- |
//!   | `takeover` | | |
//!   | | the sessions | from here on it neither says nor hears anything of them; their packets it goes on moving |
//!   | `busy` | | as often as there is need |
//!   | `serves` | | all of the sessions is in place |
//!   | | what each has transferred | it has ended its data path and deleted its interface |
//!   | `done` | | it ends |
//!
//! * Who has waited for a word of the other for [`SILENCE`], or sees the connection end, is alone. A predecessor to which nobody
//!   has said `serves` goes on as if nothing had been; one whose successor has ended between `serves` and `done` goes on, too, with
//!   a data path made anew, and notifies subscribers only where it cannot. A successor that has not heard what they transferred has
//!   nothing, unless its predecessor has ended.
//! * Instead of either answer the predecessor may refuse: it goes on itself, or notifies subscribers itself.

use kernel::process::wait_for_end;
use pppoe::concentrator::Snapshot;
use pppoe::concentrator::accounting::Traffic;
use serde::de::DeserializeOwned;
use service::Instances;
use service::control::{ControlError, Refused, peer};
use service::event_loop::ready;
use service::process::DYING;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

pub(crate) const BEGINS: &str = "takeover";
const BUSY: &str = "busy";
const SERVES: &str = "serves";
const DONE: &str = "done";

/// How long either waits for the other.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);
/// The longest line, bytes: that of a million sessions.
const LONGEST: usize = 1 << 30;

/// What each session has transferred, by its name in accounting.
pub(crate) type Counted = Vec<(u64, Traffic)>;

/// A connection on which lines are said, either way in bounded time.
#[derive(Debug)]
struct Talk {
    stream: UnixStream,
    /// What was read of the next line.
    read: Vec<u8>,
}

/// What came of waiting for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    Line(String),
    /// The other end has closed it, or its process has ended.
    Ended,
    Late,
    Stopped,
}

impl Talk {
    fn new(stream: UnixStream) -> io::Result<Talk> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(SILENCE))?;
        Ok(Talk { stream, read: Vec::new() })
    }

    fn say(&self, text: &str) -> io::Result<()> {
        (&self.stream).write_all(format!("{text}\n").as_bytes()).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
            _ => error,
        })
    }

    /// The next line. Ends early where `stop` is readable.
    fn hear(&mut self, until: Instant, stop: Option<BorrowedFd<'_>>) -> io::Result<Heard> {
        let mut piece = vec![0; 1 << 16];
        let mut searched = 0;
        loop {
            let fresh = self.read.get(searched..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(searched + end + 1);
                let mut line = std::mem::replace(&mut self.read, rest);
                line.pop();
                return String::from_utf8(line).map(Heard::Line).map_err(|_| ErrorKind::InvalidData.into());
            }
            searched = self.read.len();
            if searched > LONGEST {
                return Err(ErrorKind::InvalidData.into());
            }
            let left = until.saturating_duration_since(Instant::now());
            let [is_ready, is_stopped] = ready([Some(self.stream.as_fd()), stop], Some(left))?;
            match (is_ready, is_stopped) {
                (_, true) => return Ok(Heard::Stopped),
                (false, false) if left.is_zero() => return Ok(Heard::Late),
                (false, false) => continue,
                (true, false) => {}
            }
            match (&self.stream).read(&mut piece) {
                Ok(0) => return Ok(Heard::Ended),
                Ok(count) => self.read.extend(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Heard::Ended),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Why a successor does not get the sessions, for who began it and for the log.
#[derive(Debug, thiserror::Error)]
pub enum Withheld {
    #[error("it ended before it served")]
    Ended,
    #[error("it said nothing for {} s", SILENCE.as_secs())]
    Silent,
    /// Somebody requested the end of this process.
    #[error("this process is ending")]
    Stopping,
    #[error("it speaks another version of the takeover")]
    Word,
    #[error("{0}")]
    Failed(#[from] io::Error),
}

impl Withheld {
    fn of(heard: Heard) -> Withheld {
        match heard {
            Heard::Line(_) => Withheld::Word,
            Heard::Ended => Withheld::Ended,
            Heard::Late => Withheld::Silent,
            Heard::Stopped => Withheld::Stopping,
        }
    }

    /// The same of one that had said that it serves.
    pub fn at_the_end(&self) -> String {
        match self {
            Withheld::Ended => "it ended before all was in its place".to_owned(),
            other => other.to_string(),
        }
    }

    fn unsaid(error: io::Error) -> Withheld {
        match error.kind() {
            ErrorKind::TimedOut => Withheld::Silent,
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Withheld::Ended,
            _ => Withheld::Failed(error),
        }
    }
}

/// Who wants to go on with the sessions of this process.
#[derive(Debug)]
pub(crate) struct Successor {
    talk: Talk,
    pid: Option<u32>,
}

impl Successor {
    /// At the other end of a connection.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Successor> {
        let pid = peer(&stream).and_then(|peer| peer.pid);
        Ok(Successor { talk: Talk::new(stream)?, pid })
    }

    /// Its number; `None`: it has none in this PID namespace.
    pub(crate) const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Gives it the sessions, and waits until it serves them. Ends early where `stop` is readable.
    ///
    /// # Errors
    ///
    /// [`Withheld`]: the successor knows, and this process goes on.
    pub(crate) fn offer(&mut self, snapshot: &Snapshot, stop: BorrowedFd<'_>) -> Result<(), Withheld> {
        self.offered(snapshot, stop).inspect_err(|why| {
            let why = match why {
                Withheld::Silent => {
                    "its process has waited for too long and goes on with the sessions itself"
                }
                Withheld::Stopping => "its process is ending, and notifies the subscribers",
                _ => "its process goes on with the sessions itself",
            };
            refuse(&self.talk.stream, why);
        })
    }

    fn offered(&mut self, snapshot: &Snapshot, stop: BorrowedFd<'_>) -> Result<(), Withheld> {
        let text = serde_json::to_string(snapshot).map_err(|error| Withheld::Failed(error.into()))?;
        self.talk.say(&text).map_err(Withheld::unsaid)?;
        drop(text);
        loop {
            match self.talk.hear(Instant::now() + SILENCE, Some(stop))? {
                Heard::Line(word) if word == BUSY => {}
                Heard::Line(word) if word == SERVES => return Ok(()),
                other => return Err(Withheld::of(other)),
            }
        }
    }

    /// Informs it that it is alone with them, and waits until it has all in its place.
    ///
    /// # Errors
    ///
    /// It is removed, or about to be, and nobody has them.
    pub(crate) fn release(&mut self, counted: &Counted) -> Result<(), Withheld> {
        let text = serde_json::to_string(counted).map_err(|error| Withheld::Failed(error.into()))?;
        match self.talk.say(&text).map_err(Withheld::unsaid) {
            // It lives, and has them.
            Ok(()) | Err(Withheld::Silent) => {}
            Err(why) => return Err(why),
        }
        match self.talk.hear(Instant::now() + SILENCE, None)? {
            Heard::Line(_) | Heard::Late => Ok(()),
            other => Err(Withheld::of(other)),
        }
    }
}

/// Refuses whoever wants to take the sessions over.
pub(crate) fn refuse(mut stream: &UnixStream, why: &str) {
    // A line has room in any socket, and a process that has ended needs no answer.
    let _ = stream.write_all(format!("{}\n", Refused::line(why)).as_bytes());
}

/// Whose sessions this process goes on with.
#[derive(Debug)]
pub(crate) struct Predecessor<'s> {
    sockets: &'s Instances,
    name: &'s str,
    pid: Option<u32>,
    talk: Talk,
}

impl<'s> Predecessor<'s> {
    /// Asks whoever serves the interface `name` for its sessions.
    ///
    /// # Errors
    ///
    /// Nobody does, or it refuses, or does not answer.
    pub(crate) fn ask(
        sockets: &'s Instances,
        name: &'s str,
    ) -> Result<(Predecessor<'s>, Snapshot), ControlError> {
        let (stream, pid) = sockets.connect(name)?;
        let talk = Talk::new(stream).map_err(|error| sockets.no_answer(name, error))?;
        let mut predecessor = Predecessor { sockets, name, pid, talk };
        let said = predecessor.talk.say(BEGINS);
        said.map_err(|error| sockets.no_answer(name, error))?;
        match predecessor.answer()? {
            Some(snapshot) => Ok((predecessor, snapshot)),
            None => {
                let ended = "it ended just now, or is another version of rxlane";
                Err(sockets.no_answer(name, io::Error::new(ErrorKind::UnexpectedEof, ended)))
            }
        }
    }

    /// Says that there is still something to be done.
    pub(crate) fn is_waited_for(&self) {
        // Who is not there any more is found out by the next word.
        let _ = self.talk.say(BUSY);
    }

    /// Says that all is in place; what the sessions have transferred in the end. `None`: the predecessor was killed, and what
    /// it said first counts.
    ///
    /// # Errors
    ///
    /// The predecessor goes on with the sessions, or nobody knows.
    pub(crate) fn serves(&mut self) -> Result<Option<Counted>, ControlError> {
        match self.talk.say(SERVES) {
            Ok(()) => {}
            // What it said before it closed the connection can still be read.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            Err(error) => return Err(self.sockets.no_answer(self.name, error)),
        }
        let answer = self.answer()?;
        if answer.is_none() && !self.pid.is_some_and(|pid| wait_for_end(pid, DYING)) {
            let closed = "it closed the connection, and may go on with the sessions";
            return Err(self.sockets.no_answer(self.name, io::Error::new(ErrorKind::UnexpectedEof, closed)));
        }
        Ok(answer)
    }

    /// Says that all is in its place.
    pub(crate) fn done(self) {
        // Where nobody hears it, it has ended.
        let _ = self.talk.say(DONE);
    }

    /// An answer; `None`: there is nobody any more.
    fn answer<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ControlError> {
        let (kind, name) = (self.sockets.kind(), self.name.to_owned());
        let failed = |error| self.sockets.no_answer(self.name, error);
        match self.talk.hear(Instant::now() + SILENCE, None).map_err(failed)? {
            Heard::Line(line) => match Refused::read(&line) {
                Some(why) => Err(ControlError::Refused { kind, name, why }),
                None => serde_json::from_str(&line).map(Some).map_err(|error| failed(error.into())),
            },
            Heard::Ended => Ok(None),
            Heard::Late | Heard::Stopped => Err(match self.pid {
                Some(pid) => ControlError::Silent { kind, name, pid },
                None => failed(ErrorKind::TimedOut.into()),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
