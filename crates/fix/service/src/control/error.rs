//! Why nobody answers.

use crate::instance::{Kind, PATIENCE};
use crate::state::StateError;
use format::quoted;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    #[error(
        "there is no {named} in this network namespace; {}", kind.others(), named = kind.named(name))]
    None { kind: Kind, name: String },
    #[error(
        "the process of the {named} was killed{}", kind.aftermath(name), named = kind.named(name))]
    Killed { kind: Kind, name: String },
    #[error(
        "the process of the {named} was killed, and {part} went with it; what it left cannot be removed: {}: \
         {source}{}",
        path.display(), read_only(source), named = kind.named(name), part = kind.part())]
    Leftover { kind: Kind, name: String, path: PathBuf, source: io::Error },
    #[error("{} is no socket: remove it, it is none of rxlane's", .0.display())]
    NoSocket(PathBuf),
    /// One that lives has it.
    #[error(
        "{}, holds {}: `{} {}` shows it, `{} {}` ends it",
        kind.holder(), path.display(), kind.show_command(), quoted(name), kind.end_command(), quoted(name)
    )]
    Held { kind: Kind, name: String, path: PathBuf },
    #[error("asking {} requires root ({})", kind.noun(), path.display())]
    Privilege { kind: Kind, path: PathBuf },
    /// Its process is stopped (SIGSTOP).
    #[error(
        "the process {pid} of the {named} is stopped and moves no packets: `kill -CONT {pid}` lets it go on; nothing was \
         changed", named = kind.named(name))]
    Stopped { kind: Kind, name: String, pid: u32 },
    /// It says nothing.
    #[error(
        "the process {pid} of the {named} does not answer within {} s; nothing was changed: ask again, or `kill -KILL {pid}` \
         ends it, and {part} with it",
        PATIENCE.as_secs(), named = kind.named(name), part = kind.part())]
    Silent { kind: Kind, name: String, pid: u32 },
    #[error(
        "the process {pid} of the {named} was requested to end, and has not within {} s: ask again, or `kill -KILL {pid}` ends it",
        kind.end_timeout().as_secs(), named = kind.named(name))]
    Unfinished { kind: Kind, name: String, pid: u32 },
    #[error("the {named}: {why}", named = kind.named(name))]
    Refused {
        kind: Kind,
        name: String,
        /// Why, and what to do.
        why: String,
    },
    #[error("the {named} did not answer: {source}", named = kind.named(name))]
    NoAnswer { kind: Kind, name: String, source: io::Error },
    #[error("cannot {what} {}: {source}{}", path.display(), read_only(source))]
    File { what: &'static str, path: PathBuf, source: io::Error },
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
            "; rxlane has sockets there by which a running process is reached: the folder has to be writable"
        }
        _ => "",
    }
}
