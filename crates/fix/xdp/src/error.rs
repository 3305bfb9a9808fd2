//! What can stand in the way of steering, each with the way out.

use std::io;
use std::path::PathBuf;

use crate::family::Family;
use crate::interface::{Mode, Program};

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
        "{interface} is steered already (attached as {attached}): `rxlane steer status {interface}` shows it, \
         `rxlane steer down {interface}` ends it"
    )]
    Attached {
        interface: String,
        /// Its name when it was attached, which its pins bear.
        attached: String,
    },

    #[error(
        "{interface} has an envelope already (attached as {attached}), and an interface takes one XDP program: \
         `rxlane envelope status {interface}` shows it, `rxlane envelope down {interface}` ends it"
    )]
    Enveloped {
        interface: String,
        /// Its name when it was attached, which its pins bear.
        attached: String,
    },

    #[error("{interface} has an XDP program already: {program}; {}", program.way_out(interface))]
    Foreign { interface: String, program: Box<Program> },

    #[error(
        "the driver of {interface}{} has no native XDP{}: `--mode generic` works with any driver, but only after the \
         kernel has built a socket buffer for each frame",
        Of(driver),
        Said(said)
    )]
    NoNative {
        interface: String,
        /// Its driver, where sysfs knows one.
        driver: Option<String>,
        said: Option<String>,
    },

    /// Driver or kernel refuse the program in this mode and with these settings of the interface.
    #[error(
        "{interface}{} refuses the program in {mode} mode{} ({source}){}",
        Of(driver),
        Said(said),
        Advice(advice)
    )]
    Refused {
        interface: String,
        mode: Mode,
        /// The driver, where sysfs knows one.
        driver: Option<String>,
        said: Option<String>,
        /// What usually causes it, and how to change that.
        advice: Option<String>,
        source: io::Error,
    },

    #[error(
        "no permission to {doing}{}: run it as root, or give it CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN",
        Lacks(missing)
    )]
    NotPermitted { doing: String, missing: Vec<&'static str> },

    /// The kernel charges maps to the limit of locked memory (before Linux 5.11), or forbids them otherwise.
    #[error(
        "the kernel refuses memory for maps although the process has the capabilities: its limit of locked memory is \
         {limit} bytes and cannot be raised ({source}); `ulimit -l unlimited` before the command raises it, in a \
         systemd unit LimitMEMLOCK=infinity"
    )]
    LockedMemory { limit: u64, source: io::Error },

    /// Capabilities are there and locked memory is unlimited, and `bpf(2)` is refused still.
    #[error(
        "the kernel does not let this process {doing} although it has the capabilities: a seccomp filter (containers \
         have one), a security module or lockdown stands in the way"
    )]
    Forbidden { doing: String },

    #[error("this kernel has no {feature}: it takes {needs}")]
    Kernel { feature: &'static str, needs: &'static str },

    #[error(
        "the kernel's verifier refused the program `{program}`; please report it with the kernel's version ({kernel}) \
         and these lines:\n{log}"
    )]
    Verifier {
        program: String,
        /// `uname -r`.
        kernel: String,
        log: String,
    },

    #[error("there is no CPU {cpu}: this machine has {possible}")]
    NoCpu { cpu: u32, possible: String },

    #[error(
        "CPU {cpu} is offline: leave it out, or bring it up with `echo 1 > /sys/devices/system/cpu/cpu{cpu}/online`"
    )]
    CpuOffline { cpu: u32 },

    #[error("the plan cannot be carried out: {0}")]
    Plan(String),

    /// There is no bpffs where pins would survive this process, and none could be mounted.
    #[error("no BPF file system for pins: {problem}; {way_out}")]
    Bpffs { problem: String, way_out: String },

    /// Pins of an attachment whose layout this program does not know.
    #[error(
        "{interface} was attached by another version of rxlane (layout {found}, this one has {known}): end it with that \
         version, or with `rm -r {}`, which detaches it", folder.display()
    )]
    OtherVersion {
        interface: String,
        /// The version of the layout in the pins.
        found: u32,
        known: u32,
        folder: PathBuf,
    },

    /// What is pinned is no complete attachment, and not only the beginning of one.
    #[error(
        "the pins of {interface} are damaged ({problem}): `rxlane {family} down {interface}` removes them"
    )]
    Damaged { family: Family, interface: String, problem: String },

    /// The program is off the interface, but something could not be removed.
    #[error("the program of `rxlane {family}` is off {interface}, but {} could not be removed: {source}", what.display())]
    Remains { family: Family, interface: String, what: PathBuf, source: io::Error },

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
    /// 3). Otherwise the answer is no (exit code 1).
    pub fn lacks(&self) -> bool {
        match self {
            Error::NoNative { .. }
            | Error::Refused { .. }
            | Error::NotPermitted { .. }
            | Error::LockedMemory { .. }
            | Error::Forbidden { .. }
            | Error::Kernel { .. }
            | Error::Verifier { .. }
            | Error::NoCpu { .. }
            | Error::CpuOffline { .. }
            | Error::Bpffs { .. }
            | Error::NoInterface { .. } => true,
            Error::Locked { .. }
            | Error::Attached { .. }
            | Error::Enveloped { .. }
            | Error::Foreign { .. }
            | Error::Plan(_)
            | Error::OtherVersion { .. }
            | Error::Damaged { .. }
            | Error::Remains { .. }
            | Error::System { .. }
            | Error::Object { .. } => false,
        }
    }
}

struct Of<'a>(&'a Option<String>);

impl std::fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |driver| write!(f, " ({driver})"))
    }
}

struct Said<'a>(&'a Option<String>);

impl std::fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |said| write!(f, ", it says \"{said}\""))
    }
}

struct Advice<'a>(&'a Option<String>);

impl std::fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |advice| write!(f, ": {advice}"))
    }
}

struct Lacks<'a>(&'a [&'static str]);

impl std::fmt::Display for Lacks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " (missing: {})", self.0.join(", ")) }
    }
}
