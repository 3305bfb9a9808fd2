//! What can stand in the way of steering or an envelope, each with the way out.

use std::io;
use std::path::PathBuf;

use crate::family::Family;
use crate::interface::Program;

/// Why nothing was changed, or what could not be undone.
///
/// Unless a variant says otherwise, nothing was left behind: no program on the interface, no pin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no interface of this name in the network namespace of the calling thread.
    #[error(
        "there is no interface `{name}` in this network namespace: `ip link` names those that are there, \
         `ip netns exec NAMESPACE rxlane …` works in another"
    )]
    NoInterface { name: String },
    /// Another process attaches to or detaches from the interface at this moment.
    #[error(
        "another process is attaching to or detaching from {interface} at this moment: try again when it has finished"
    )]
    Locked { interface: String },
    #[error(
        "{interface} {}: `{}` shows it, `{}` ends it",
        family.present(attached), family.status_command(interface), family.end_command(interface))]
    Attached {
        family: Family,
        interface: String,
        /// Its name when it was attached, which its pins bear.
        attached: String,
    },
    #[error("{interface} has an XDP program already: {program}; {}", program.way_out(interface))]
    Foreign { interface: String, program: Box<Program> },
    #[error(
        "no permission to {doing}{}: run it as root, or give it CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN",
        in_brackets(missing)
    )]
    NotPermitted {
        doing: String,
        /// Capabilities that the process does not have.
        missing: Vec<&'static str>,
    },
    /// The machine lacks something: a feature of the kernel or driver, memory, a CPU that is up, a place for pins.
    #[error("{0}")]
    Lacks(String),
    #[error("the plan cannot be carried out: {0}")]
    Plan(String),
    /// Pins of an attachment whose layout this program does not know.
    #[error(
        "{interface} was attached by another version of rxlane (layout {found}, this one has {known}): end it with that \
         version, or with `rm -r {}`, which detaches it", folder.display()
    )]
    OtherVersion { interface: String, found: u32, known: u32, folder: PathBuf },
    /// What is pinned is no complete attachment, and not only the beginning of one.
    #[error(
        "the pins of {interface} are damaged ({problem}): `{}` removes them", family.end_command(interface))]
    Damaged { family: Family, interface: String, problem: String },
    /// The program is off the interface, but something could not be removed.
    #[error("the program of `rxlane {family}` is off {interface}, but {} could not be removed: {source}", what.display())]
    Remains { family: Family, interface: String, what: PathBuf, source: io::Error },
    /// As many flows are installed as may be; nothing was changed.
    #[error("no space: more flows than {flows}")]
    NoSpace {
        /// Most flows of either IP version.
        flows: u32,
    },
    /// The kernel refused something that nothing above explains.
    #[error("cannot {doing}: {source}")]
    System { doing: String, source: io::Error },
    /// The object with the programs cannot be read; a defect of this program.
    #[error(
        "the object of the program `{program}` cannot be loaded: {problem}; this is a defect, please report it"
    )]
    Object { program: &'static str, problem: String },
}

impl Error {
    /// Whether the environment lacks something: a privilege, a kernel or driver feature, a CPU that is up (exit code
    /// 3). Otherwise it is a negative result (exit code 1).
    pub fn lacks(&self) -> bool {
        matches!(self, Error::NoInterface { .. } | Error::NotPermitted { .. } | Error::Lacks(_))
    }

    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::System { doing, source }
    }
}

/// ` (missing: CAP_BPF)`.
pub(crate) fn in_brackets(missing: &[&str]) -> String {
    if missing.is_empty() { String::new() } else { format!(" (missing: {})", missing.join(", ")) }
}
