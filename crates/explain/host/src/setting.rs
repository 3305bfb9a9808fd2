//! Settings of a Linux machine that a remedy changes: read, changed and put back, one by one.
//!
//! # Contract
//!
//! * A [`Setting`] is a command that a person can paste into a shell ([`Setting::command`]), and such a command is
//!   a setting ([`Setting::from_str`](std::str::FromStr)), in exactly one form. Both stand for the same change.
//! * Nothing goes through a shell. `echo … > FILE` and `sysctl -w` are written to the file of sysfs or procfs;
//!   `ethtool` and `ip` are run with the words of the command as their arguments.
//! * [`Setting::apply`] reads the value back. A value that the kernel silently kept is an error.
//! * [`Present::former`] holds settings that put the present value back, whatever it is; where no command could, the
//!   present value is not changed at all ([`Error::Unrestorable`]).
//!
//! # What else a change does
//!
//! * Channels ([`Setting::Channels`], `ethtool -L`): many drivers take the link down for seconds, allocate the
//!   queues anew, and set the RETA to their default (igb, ixgbe, mlx5 with an unset table). The former state of
//!   channels therefore has the RETA in it, and putting channels back puts the RETA back.
//! * Ring sizes ([`Setting::Ring`], `ethtool -G`): many drivers reset the link; frames are lost meanwhile.
//! * Features ([`Setting::Feature`], `ethtool -K`): others that depend on it follow, and return with it. A name
//!   that stands for several (`tso`) is put back one by one.
//! * MTU ([`Setting::Mtu`]): some drivers reset the link. VLAN devices whose MTU is above the new one are lowered by
//!   the kernel and not raised again.
//!
//! # Sources
//!
//! ethtool(8), ip-link(8), sysctl(8); Documentation/networking/scaling.rst and
//! Documentation/core-api/irq/irq-affinity.rst of the kernel. The forms of ethtool's output are those of its
//! source, version 6.1.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

mod error;
pub(crate) mod output;
mod parameter;
mod parse;
mod present;
mod reta;
mod tree;
mod words;

pub use error::{Error, ParseError};
pub use parameter::{Amount, InterfaceName, Parameter, SysctlName, SysctlValue};
pub use present::{Former, Present};
pub use tree::{Program, Tree};
pub use words::quoted;

use kernel::cpu::CpuSet;
use rss::{FlowType, HashFields, IndirectionTable};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which channels `ethtool -L` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    Combined,
    Rx,
    Tx,
}

impl ChannelKind {
    pub const ALL: [ChannelKind; 3] = [ChannelKind::Combined, ChannelKind::Rx, ChannelKind::Tx];

    /// The word of `ethtool -L`.
    pub const fn name(self) -> &'static str {
        match self {
            ChannelKind::Combined => "combined",
            ChannelKind::Rx => "rx",
            ChannelKind::Tx => "tx",
        }
    }
}

/// A setting and the value that it should have.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Setting {
    /// `ethtool -N eth0 rx-flow-hash udp4 sdfn`: hash fields of a flow type.
    HashFields {
        interface: InterfaceName,
        flow: FlowType,
        /// The fields; `None` (written `''`) hashes none.
        fields: Option<HashFields>,
    },
    /// `ethtool -X eth0 equal 2`: the RETA names the queues in turn.
    RetaEqual {
        interface: InterfaceName,
        start: u32,
        /// Number of queues, at least 1.
        queues: u32,
    },
    /// `ethtool -X eth0 weight 1 1 2`: the RETA has a block of entries for each queue.
    RetaWeights {
        interface: InterfaceName,
        start: u32,
        /// Weight of each queue; their sum is at least 1 and at most the number of entries.
        weights: Vec<u32>,
    },
    /// `ethtool -X eth0 default`: the RETA names all receive rings in turn (`ethtool_rxfh_indir_default()`), and
    /// the kernel forgets that somebody set it.
    RetaDefault { interface: InterfaceName },
    /// `ethtool -L eth0 combined 4`: number of channels.
    Channels { interface: InterfaceName, kind: ChannelKind, count: u32 },
    /// `ethtool -G eth0 rx 4096`: entries of each receive ring.
    Ring { interface: InterfaceName, rx: u32 },
    /// `ethtool -C eth0 rx-usecs 30`, `ethtool -C eth0 adaptive-rx off`: interrupt coalescing.
    Coalesce {
        interface: InterfaceName,
        name: Parameter,
        /// Its value, in the unit of its name, or on and off.
        value: Amount,
    },
    /// `ethtool -K eth0 gro on`: a feature, by the short name, the long one, or that of the kernel.
    Feature {
        interface: InterfaceName,
        name: Parameter,
        /// Whether it is on.
        on: bool,
    },
    /// `ip link set dev eth0 mtu 1508`: MTU.
    Mtu {
        interface: InterfaceName,
        /// Bytes.
        mtu: u32,
    },
    /// `echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus`: RPS of a receive queue.
    Rps {
        interface: InterfaceName,
        queue: u32,
        /// The CPUs that it spreads to; none turns it off.
        cpus: CpuSet,
    },
    /// `echo 0-3 > /proc/irq/128/smp_affinity_list`: CPUs that an interrupt may go to.
    IrqAffinity { irq: u32, cpus: CpuSet },
    /// `sysctl -w net.core.netdev_budget=600`.
    Sysctl { name: SysctlName, value: SysctlValue },
}

/// How a setting is changed.
enum Action {
    Run(Program, Vec<String>),
    Write { path: String, value: String },
}

/// The interface in a setting that is borrowed, shared or mutable as the setting is.
macro_rules! interface_in {
    ($setting:expr) => {
        match $setting {
            Setting::HashFields { interface, .. }
            | Setting::RetaEqual { interface, .. }
            | Setting::RetaWeights { interface, .. }
            | Setting::RetaDefault { interface }
            | Setting::Channels { interface, .. }
            | Setting::Ring { interface, .. }
            | Setting::Coalesce { interface, .. }
            | Setting::Feature { interface, .. }
            | Setting::Mtu { interface, .. }
            | Setting::Rps { interface, .. } => Some(interface),
            Setting::IrqAffinity { .. } | Setting::Sysctl { .. } => None,
        }
    };
}

impl Setting {
    /// The one that has a NIC leave VLAN tags in frames, where it takes them off.
    pub fn that_keeps_tags(name: &str, tree: &Tree) -> Option<Setting> {
        let _: InterfaceName = name.parse().ok()?;
        let setting: Setting = format!("ethtool -K {} rxvlan off", quoted(name)).parse().ok()?;
        let present = setting.read(tree).ok()?;
        (!present.in_effect).then_some(setting)
    }

    /// The interface whose setting it is; `None` for an interrupt or a sysctl.
    pub fn interface(&self) -> Option<&InterfaceName> {
        interface_in!(self)
    }

    /// The same setting of an interface of another name; itself where it is of none.
    pub fn of(&self, name: &InterfaceName) -> Setting {
        let mut setting = self.clone();
        if let Some(interface) = interface_in!(&mut setting) {
            interface.clone_from(name);
        }
        setting
    }

    /// Whether both set the same value, so that the later one takes the place of the other.
    pub fn replaces(&self, other: &Setting) -> bool {
        use Setting::{
            Channels, Coalesce, Feature, HashFields, IrqAffinity, Mtu, RetaDefault, RetaEqual, RetaWeights,
            Ring, Rps, Sysctl,
        };
        let is_reta =
            |setting: &Setting| matches!(setting, RetaEqual { .. } | RetaWeights { .. } | RetaDefault { .. });
        if self.interface() != other.interface() {
            return false;
        }
        match (self, other) {
            (HashFields { flow, .. }, HashFields { flow: of, .. }) => flow == of,
            (Channels { kind, .. }, Channels { kind: of, .. }) => kind == of,
            (Ring { .. }, Ring { .. }) | (Mtu { .. }, Mtu { .. }) => true,
            (Coalesce { name, .. }, Coalesce { name: of, .. })
            | (Feature { name, .. }, Feature { name: of, .. }) => name == of,
            (Rps { queue, .. }, Rps { queue: of, .. }) => queue == of,
            (Sysctl { name, .. }, Sysctl { name: of, .. }) => name == of,
            (IrqAffinity { irq, .. }, IrqAffinity { irq: of, .. }) => irq == of,
            (one, other) => is_reta(one) && is_reta(other),
        }
    }

    /// The setting that makes a RETA as it is, for a device with so many receive rings. `None` where no `ethtool -X`
    /// command does: it writes queues in turn, or in blocks of ascending queues.
    pub fn reta(interface: &InterfaceName, rings: u32, table: &IndirectionTable) -> Option<Setting> {
        reta::making(interface, rings, table)
    }

    /// The command for a POSIX shell of a privileged user, quoted where a word needs it.
    pub fn command(&self) -> String {
        match self {
            Setting::Sysctl { name, value } => {
                let value = value.as_str();
                let quoted = if value.is_empty() { String::new() } else { words::quoted(value) };
                format!("sysctl -w {name}={quoted}")
            }
            _ => match self.action() {
                Action::Write { path, value } => {
                    format!("echo {} > {}", words::quoted(&value), words::quoted(&path))
                }
                Action::Run(program, arguments) => words::command(program, &arguments),
            },
        }
    }

    fn action(&self) -> Action {
        macro_rules! run {
            ($program:ident $($word:expr),*) => { (Program::$program, vec![$($word.to_string()),*]) };
        }
        let (program, mut words) = match self {
            Setting::Rps { interface, queue, cpus } => {
                return Action::Write { path: rps_file(interface, *queue), value: cpus.mask() };
            }
            Setting::IrqAffinity { irq, cpus } => {
                return Action::Write { path: affinity_file(*irq), value: cpus.list() };
            }
            Setting::Sysctl { name, value } => {
                return Action::Write { path: name.file(), value: value.to_string() };
            }
            Setting::Mtu { interface, mtu } => run!(Ip "link", "set", "dev", interface, "mtu", mtu),
            Setting::HashFields { interface, flow, fields } => {
                let fields = fields.map(|fields| fields.to_string()).unwrap_or_default();
                run!(Ethtool "-N", interface, "rx-flow-hash", flow.name(), fields)
            }
            Setting::RetaEqual { interface, start: 0, queues } => {
                run!(Ethtool "-X", interface, "equal", queues)
            }
            Setting::RetaEqual { interface, start, queues } => {
                run!(Ethtool "-X", interface, "start", start, "equal", queues)
            }
            Setting::RetaWeights { interface, start: 0, .. } => run!(Ethtool "-X", interface, "weight"),
            Setting::RetaWeights { interface, start, .. } => {
                run!(Ethtool "-X", interface, "start", start, "weight")
            }
            Setting::RetaDefault { interface } => run!(Ethtool "-X", interface, "default"),
            Setting::Channels { interface, kind, count } => run!(Ethtool "-L", interface, kind.name(), count),
            Setting::Ring { interface, rx } => run!(Ethtool "-G", interface, "rx", rx),
            Setting::Coalesce { interface, name, value } => run!(Ethtool "-C", interface, name, value),
            Setting::Feature { interface, name, on } => {
                run!(Ethtool "-K", interface, name, if *on { "on" } else { "off" })
            }
        };
        if let Setting::RetaWeights { weights, .. } = self {
            words.extend(weights.iter().map(u32::to_string));
        }
        Action::Run(program, words)
    }

    /// Changes the setting, where it is not in effect already, and reads it back.
    ///
    /// # Errors
    ///
    /// [`Error`]: the present value cannot be read, or could not be put back, or the command fails, or it has no
    /// effect. A driver may round the size of a ring or a coalescing time; that is no error, and
    /// [`Present::in_effect`] of the result says it.
    pub fn apply(&self, tree: &Tree) -> Result<Present, Error> {
        let before = self.read(tree)?;
        if before.in_effect {
            return Ok(before);
        }
        before.former.as_ref().ok_or_else(|| self.unrestorable())?;
        self.change(tree, &before)
    }

    /// Changes the setting whose present value is `before`, and reads it back.
    ///
    /// # Errors
    ///
    /// As [`Setting::apply`].
    pub fn change(&self, tree: &Tree, before: &Present) -> Result<Present, Error> {
        self.perform(tree)?;
        let after = self.read(tree)?;
        let rounded = self.is_rounded_by_drivers() && after.former != before.former;
        if after.in_effect || rounded { Ok(after) } else { Err(self.without_effect(&after)) }
    }

    /// Runs the command or writes the file, and looks no further.
    fn perform(&self, tree: &Tree) -> Result<(), Error> {
        match self.action() {
            Action::Write { path, value } => {
                tree.write(&path, &value).map_err(|error| self.written_in_vain(error))
            }
            Action::Run(program, arguments) => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                tree.run(program, &arguments).map(drop)
            }
        }
    }

    /// That its present value cannot be restored.
    pub fn unrestorable(&self) -> Error {
        let why = match self {
            Setting::RetaEqual { .. } | Setting::RetaWeights { .. } | Setting::RetaDefault { .. } => {
                "no ethtool command makes the present RETA, whose queues stand neither in turn nor in blocks"
            }
            _ => "no command makes its present value",
        };
        Error::Unrestorable { command: self.command(), why }
    }

    fn without_effect(&self, present: &Present) -> Error {
        Error::NotInEffect { command: self.command(), present: present.to_text() }
    }

    /// An interrupt that the kernel keeps to itself refuses the write (`write_irq_affinity()` in kernel/irq/proc.c:
    /// `!irq_can_set_affinity_usr()`) with EIO, newer kernels with EPERM. Want of privilege fails before that, with
    /// EACCES, when the file is opened.
    fn written_in_vain(&self, error: Error) -> Error {
        const EPERM: i32 = 1;
        const EIO: i32 = 5;
        match (self, error) {
            (Setting::IrqAffinity { irq, .. }, Error::Write { source, .. })
                if matches!(source.raw_os_error(), Some(EPERM | EIO)) =>
            {
                Error::Managed { irq: *irq, source }
            }
            (_, error) => error,
        }
    }

    /// Whether drivers take the value only as a request: ring sizes go to a multiple or a power of two, coalescing
    /// times to the device's clock.
    pub fn is_rounded_by_drivers(&self) -> bool {
        matches!(self, Setting::Ring { .. } | Setting::Coalesce { .. })
    }
}

fn rps_file(interface: &InterfaceName, queue: u32) -> String {
    format!("/sys/class/net/{interface}/queues/rx-{queue}/rps_cpus")
}

fn affinity_file(irq: u32) -> String {
    format!("/proc/irq/{irq}/smp_affinity_list")
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.command())
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> String {
        setting.command()
    }
}

impl TryFrom<String> for Setting {
    type Error = ParseError;

    fn try_from(command: String) -> Result<Setting, ParseError> {
        command.parse()
    }
}
