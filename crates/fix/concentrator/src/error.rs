//! Why a concentrator cannot begin, or cannot go on.

use crate::subscribers::Unforwarded;
use link::error::Kind;
use service::control::ControlError;
use service::memory::MemoryError;
use std::io;

/// Why not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Link(#[from] link::Error),
    /// What it has to do makes no sense.
    #[error("{0}")]
    Options(String),
    /// Another process begins to serve the same lines.
    #[error(
        "another `rxlane pppoe serve` of {parent} is just beginning: wait until it serves, or has failed (`rxlane pppoe status` \
         shows it), and try again"
    )]
    Begun { parent: String },
    /// XDP was requested, and cannot forward.
    #[error(transparent)]
    Unforwarded(Box<Unforwarded>),
}

impl Error {
    /// What it means for the exit code.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Link(error) => error.kind(),
            Error::Options(_) => Kind::Usage,
            Error::Begun { .. } => Kind::No,
            Error::Unforwarded(why) => match &**why {
                Unforwarded::Lines(_) | Unforwarded::Uplinks(_) => Kind::Usage,
                Unforwarded::Uplink { why, .. } => why.kind(),
                Unforwarded::Program(error) if error.lacks() => Kind::Lacks,
                Unforwarded::Obstacle(_) | Unforwarded::Program(_) => Kind::No,
            },
        }
    }

    /// What the kernel said, where it is that no more files may be opened, whatever was tried.
    pub(crate) fn or_descriptors(self, needed: u64) -> Error {
        match self {
            Error::Link(error) => Error::Link(error.or_descriptors(needed)),
            error => error,
        }
    }

    /// A failed system call.
    pub(crate) fn kernel(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let failed = link::Error::kernel(what);
        move |source| failed(source).into()
    }
}

impl From<Unforwarded> for Error {
    fn from(why: Unforwarded) -> Error {
        Error::Unforwarded(Box::new(why))
    }
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Error {
        Error::Link(error.into())
    }
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Error {
        Error::Link(error.into())
    }
}
