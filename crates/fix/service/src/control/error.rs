//! Why nobody answers.

use crate::instance::{Kind, PATIENCE};
use crate::state::StateError;
use format::quoted;
use std::io;
use std::path::PathBuf;

/// Why nobody answers, or nobody can be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// There is none such.
    #[error(
        "there is no {kind} {name} in this network namespace; `{}` lists those that there are", kind.list_command()
    )]
    None {
        /// What was asked.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// Its process was killed; its socket was removed.
    #[error(
        "the process of the {kind} {name} was killed, and its interface went with it; what it left is removed"
    )]
    Killed {
        /// What was asked.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// Its process was killed, and its socket cannot be removed.
    #[error(
        "the process of the {kind} {name} was killed, and its interface went with it; what it left cannot be removed: {}: \
         {source}{}",
        path.display(), read_only(source)
    )]
    Leftover {
        /// What was asked.
        kind: Kind,
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
        "{}, holds {}: `{} {}` shows it, `{} {}` ends it",
        kind.holder(), path.display(), kind.show_command(), quoted(name), kind.end_command(), quoted(name)
    )]
    Held {
        /// What holds it.
        kind: Kind,
        /// Its name.
        name: String,
        /// The socket.
        path: PathBuf,
    },
    /// The caller may not ask.
    #[error("asking {} requires root ({})", kind.noun(), path.display())]
    Privilege {
        /// What was asked.
        kind: Kind,
        /// The socket, or its folder.
        path: PathBuf,
    },
    /// Its process is stopped (SIGSTOP).
    #[error(
        "the process {pid} of the {kind} {name} is stopped and moves no packets: `kill -CONT {pid}` lets it go on; nothing was \
         changed"
    )]
    Stopped {
        /// What was asked.
        kind: Kind,
        /// Its name.
        name: String,
        /// Number of the process.
        pid: u32,
    },
    /// It says nothing.
    #[error(
        "the process {pid} of the {kind} {name} does not answer within {} s; nothing was changed: ask again, or `kill -KILL {pid}` \
         ends it, and its interface with it",
        PATIENCE.as_secs()
    )]
    Silent {
        /// What was asked.
        kind: Kind,
        /// Its name.
        name: String,
        /// Number of the process.
        pid: u32,
    },
    /// It was asked to end and is still there.
    #[error(
        "the process {pid} of the {kind} {name} was asked to end, and has not within {} s: ask again, or `kill -KILL {pid}` ends it",
        kind.end_timeout().as_secs()
    )]
    Unfinished {
        /// What was asked.
        kind: Kind,
        /// Its name.
        name: String,
        /// Number of the process.
        pid: u32,
    },
    /// It does not do so for the time being.
    #[error("the {kind} {name}: {why}")]
    Refused {
        /// What was asked.
        kind: Kind,
        /// Its name.
        name: String,
        /// Why, and what to do.
        why: String,
    },
    /// It did not answer.
    #[error("the {kind} {name} did not answer: {source}")]
    NoAnswer {
        /// What was asked.
        kind: Kind,
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A socket cannot be made, moved or removed.
    #[error("cannot {what} {}: {source}{}", path.display(), read_only(source))]
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
}

impl From<StateError> for ControlError {
    fn from(error: StateError) -> ControlError {
        match error {
            StateError::File { what, path, source } => ControlError::File { what, path, source },
            other => ControlError::State(other),
        }
    }
}

impl ControlError {
    /// Whether it is a negative result, and no failure: there is none such.
    pub const fn is_negative(&self) -> bool {
        !matches!(
            self,
            ControlError::NoSocket(_)
                | ControlError::Privilege { .. }
                | ControlError::File { .. }
                | ControlError::State(_)
        )
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
