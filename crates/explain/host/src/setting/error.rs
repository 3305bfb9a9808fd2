//! What can go wrong with a setting.

#![expect(missing_docs, reason = "the messages say what each field is")]

use super::InterfaceName;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A text that is no setting, or a part of one that is not valid: a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ParseError(pub(super) String);

impl ParseError {
    /// That the text is not what it should be.
    pub(super) fn no(found: &str, what: &str) -> ParseError {
        ParseError(format!("{found:?} is no {what}"))
    }
}

impl From<kernel::cpu::ParseError> for ParseError {
    fn from(error: kernel::cpu::ParseError) -> ParseError {
        ParseError(error.to_string())
    }
}

impl From<rss::FieldsError> for ParseError {
    fn from(error: rss::FieldsError) -> ParseError {
        ParseError(format!("hash fields: {error}"))
    }
}

/// Why a setting was not read, not changed, or not put back.
///
/// Where the kernel refused for want of a privilege, the cause is an [`io::Error`] of the kind
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied).
#[derive(Debug, Error)]
pub enum Error {
    /// A program is not installed.
    #[error("{program} is not installed (Debian: apt install {package})")]
    Missing {
        program: &'static str,
        package: &'static str,
        /// `NotFound`.
        #[source]
        source: io::Error,
    },
    /// A program did not run, or said that it failed.
    #[error("{command} failed ({said})")]
    Program {
        command: String,
        /// What it wrote, on one line.
        said: String,
        /// Why, where the words of the program say so: `PermissionDenied` or `NotFound`.
        #[source]
        source: Option<io::Error>,
    },
    /// A file of procfs or sysfs cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file of procfs or sysfs did not take the value.
    #[error("cannot write {value:?} to {}", path.display())]
    Write {
        value: String,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The kernel does not let an interrupt be moved: it is managed (`IRQD_AFFINITY_MANAGED`) or has no
    /// affinity at all.
    #[error(
        "the kernel does not let interrupt {irq} be moved; it spreads the vectors of this driver by itself"
    )]
    Managed {
        irq: u32,
        /// `EIO` or `EPERM` of the write.
        #[source]
        source: io::Error,
    },
    /// `/sys` shows the interfaces of another network namespace than that of this process.
    #[error(
        "/sys shows another network namespace's {interface}, or none; run rxlane with: ip netns exec NAME rxlane ..."
    )]
    OtherSysfs { interface: InterfaceName },
    /// The output of a program, or a file, does not contain the value.
    #[error("{command} does not print {what}")]
    Untold { command: String, what: String },
    /// The present value has no command that puts it back, so it is left alone.
    #[error("{command} is not run: {why}, so it could not be undone")]
    Unrestorable { command: String, why: &'static str },
    /// The kernel took the command and kept another value.
    #[error("{command} had no effect: the value is now that of {present}")]
    NotInEffect { command: String, present: String },
}

impl Error {
    /// The `io::Error` behind it.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Error::Missing { source, .. }
            | Error::Read { source, .. }
            | Error::Write { source, .. }
            | Error::Managed { source, .. } => Some(source),
            Error::Program { source, .. } => source.as_ref(),
            Error::OtherSysfs { .. }
            | Error::Untold { .. }
            | Error::Unrestorable { .. }
            | Error::NotInEffect { .. } => None,
        }
    }
}
