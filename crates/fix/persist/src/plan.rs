//! Settings as files.

use crate::format::{bsd, dispatcher, link_file, nftables, openwrt, sysctl_conf, udev_rule, unit};
use crate::machine::{Machine, Manager};
use crate::{File, Lasting, Origin};
use host::System as OperatingSystem;
use host::setting::{InterfaceName, Setting};
use std::path::PathBuf;

/// Why no file has a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No program was found that configures the interface at boot.
    NoManager,
    /// The interface is in a network namespace of its own, which the next boot does not make.
    OtherNamespace,
    /// Its name has a sign that means something in a configuration file.
    Name(InterfaceName),
    /// The interrupt has no handler whose name is its own, by which it would be found after the next boot.
    Vector {
        /// The number that it has now.
        irq: u32,
    },
    /// The interrupt has its handler only when the interface is up, and the rule of udev runs before.
    BeforeUp,
    /// Another file sets the sysctl, and is read later.
    SetLater(PathBuf),
    /// No file of the system's configuration has such a command.
    NoFile,
}

/// A command that no file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excluded {
    /// The setting, as a command.
    pub command: String,
    /// Why.
    pub reason: Reason,
}

/// Lines that are added to a file of which the rest is not rxlane's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Absolute.
    pub path: PathBuf,
    /// With a first and a last line that say whose they are.
    pub text: String,
}

/// What makes settings last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Files, in the order in which to write them.
    pub files: Vec<File>,
    /// Lines for files of the person.
    pub lines: Vec<Lines>,
    /// Commands that change the configuration, to be run by the person.
    pub commands: Vec<String>,
    /// Commands that take those back.
    pub undo: Vec<String>,
    /// What no file has.
    pub excluded: Vec<Excluded>,
    /// The initramfs has copies of `.link` files, and has to be made anew for them to count (hooks/udev of initramfs-tools).
    pub initramfs: bool,
}

impl Plan {
    /// Whether there is nothing to write or to run.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.lines.is_empty() && self.commands.is_empty()
    }

    pub(crate) fn exclude(&mut self, setting: &Setting, reason: Reason) {
        self.excluded.push(Excluded { command: setting.command(), reason });
    }
}

/// Whether a name stands for itself in scripts, units, rules and file names.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.starts_with(['-', '.']) && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.:@".contains(&c))
}

/// Files for settings of a Linux machine.
pub fn linux(settings: &[Lasting], machine: &Machine, origin: &Origin) -> Plan {
    let mut plan = Plan::default();
    let mut interfaces: Vec<&InterfaceName> = Vec::new();
    for lasting in settings {
        match lasting.interface() {
            Some(name) if !interfaces.contains(&name) => interfaces.push(name),
            _ => {}
        }
    }
    if let Some(openwrt) = machine.openwrt() {
        openwrt::files(&mut plan, settings, openwrt, origin);
    } else {
        for name in interfaces {
            let own: Vec<&Lasting> = settings.iter().filter(|one| one.interface() == Some(name)).collect();
            of_interface(&mut plan, name, &own, machine, origin);
        }
    }
    for lasting in settings {
        if let Setting::IrqAffinity { irq, .. } = &lasting.setting
            && lasting.vector.is_none()
        {
            plan.exclude(&lasting.setting, Reason::Vector { irq: *irq });
        }
    }
    sysctl_conf::file(&mut plan, settings, machine, origin);
    plan
}

fn of_interface(plan: &mut Plan, name: &InterfaceName, own: &[&Lasting], machine: &Machine, origin: &Origin) {
    let mut refuse = |reason: Reason| own.iter().for_each(|one| plan.exclude(&one.setting, reason.clone()));
    if !is_plain(name.as_str()) {
        return refuse(Reason::Name(name.clone()));
    }
    let Some(interface) = machine.interfaces.iter().find(|interface| interface.name == *name) else {
        return refuse(Reason::NoManager);
    };
    match &interface.manager {
        Manager::None => refuse(Reason::NoManager),
        Manager::OtherNamespace => refuse(Reason::OtherNamespace),
        Manager::NetworkManager => dispatcher::file(plan, name, own, origin),
        Manager::Udev => udev_rule::files(plan, name, own, origin),
        Manager::Systemd { version, link } => {
            let rest = match link {
                Some(base) => {
                    plan.initramfs |= machine.initramfs;
                    link_file::file(plan, interface, own, (*version, base), origin)
                }
                None => own.to_vec(),
            };
            unit::files(plan, name, &rest, origin);
        }
    }
}

/// Adds the commands of nft as lines of `/etc/nftables.conf`, and gives the others back.
pub fn nft_lines(plan: &mut Plan, commands: Vec<String>, origin: &Origin) -> Vec<String> {
    nftables::lines(plan, commands, origin)
}

/// What makes commands of a remedy last on FreeBSD or NetBSD.
pub fn other(system: OperatingSystem, commands: &[String], origin: &Origin) -> Plan {
    bsd::lines(system, commands, origin)
}
