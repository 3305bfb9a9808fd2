//! What can go wrong with a setting.

use super::InterfaceName;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A text that is no setting, or a part of one that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// No interface can have this name.
    #[error("{name:?} is no name of an interface: {why}")]
    Interface {
        /// The name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// No CPU, or no set of CPUs.
    #[error(transparent)]
    Cpu(#[from] kernel::cpu::ParseError),
    /// A name of a feature, a coalescing parameter or a sysctl that cannot be one.
    #[error("{found:?} is no name of {what}")]
    Name {
        /// What it should name.
        what: &'static str,
        /// What was found.
        found: String,
    },
    /// A value that cannot be one.
    #[error("{found:?} is no {what}")]
    Value {
        /// What it should be.
        what: &'static str,
        /// What was found.
        found: String,
    },
    /// Hash fields or flow types that ethtool does not know.
    #[error("hash fields")]
    Fields(#[from] rss::FieldsError),
    /// A quote that is not closed.
    #[error("a quote is not closed in: {command}")]
    Quote {
        /// The command.
        command: String,
    },
    /// Not one of the commands that a setting can be.
    #[error("no command that rxlane applies: {command}")]
    Command {
        /// The command.
        command: String,
    },
    /// A setting, but not in the one form in which it is applied.
    #[error("rxlane applies this only when it is written {canonical:?}, not {command:?}")]
    Form {
        /// The command as it was given.
        command: String,
        /// The form that it takes.
        canonical: String,
    },
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
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
        /// `NotFound`.
        #[source]
        source: io::Error,
    },
    /// A program did not run, or said that it failed.
    #[error("{command} failed ({said})")]
    Program {
        /// The command.
        command: String,
        /// What it wrote, on one line.
        said: String,
        /// Why, where the words of the program tell: `PermissionDenied` or `NotFound`.
        #[source]
        source: Option<io::Error>,
    },
    /// A file of procfs or sysfs cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of procfs or sysfs did not take the value.
    #[error("cannot write {value:?} to {}", path.display())]
    Write {
        /// The value.
        value: String,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel does not let an interrupt be moved: it is managed (`IRQD_AFFINITY_MANAGED`) or has no
    /// affinity at all.
    #[error(
        "the kernel does not let interrupt {irq} be moved; it spreads the vectors of this driver by itself"
    )]
    Managed {
        /// The interrupt.
        irq: u32,
        /// `EIO` or `EPERM` of the write.
        #[source]
        source: io::Error,
    },
    /// `/sys` shows the interfaces of another network namespace than that of this process.
    #[error(
        "/sys shows another network namespace's {interface}, or none; run rxlane with: ip netns exec NAME rxlane ..."
    )]
    OtherSysfs {
        /// The interface.
        interface: InterfaceName,
    },
    /// The output of a program, or a file, does not tell the value.
    #[error("{command} does not tell {what}")]
    Untold {
        /// The command or file.
        command: String,
        /// What was looked for.
        what: String,
    },
    /// The present value has no command that puts it back, so it is left alone.
    #[error("{command} is not run: {why}, so it could not be undone")]
    Unrestorable {
        /// The command.
        command: String,
        /// What stands in the way.
        why: &'static str,
    },
    /// The kernel took the command and kept another value.
    #[error("{command} had no effect: the value is now that of {present}")]
    NotInEffect {
        /// The command.
        command: String,
        /// The commands that would set what is there now.
        present: String,
    },
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
