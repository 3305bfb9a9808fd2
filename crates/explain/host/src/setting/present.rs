//! The present value of a setting.

use super::{Error, InterfaceName, Parameter, Program, Setting, Tree, affinity_file, output, reta, rps_file};
use kernel::cpu::CpuSet;
use rss::PrintedTable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A value as it was: the settings that put it back, in this order.
///
/// Most values are one setting. A feature that stands for several is one of each part; channels are their number and
/// the RETA, which drivers reset when the number changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Former(Vec<Setting>);

impl Former {
    pub fn settings(&self) -> &[Setting] {
        &self.0
    }

    /// The same value of an interface of another name.
    pub fn of(&self, name: &InterfaceName) -> Former {
        Former(self.0.iter().map(|setting| setting.of(name)).collect())
    }

    /// Puts the value back: every one of its settings that is not back already, in order.
    ///
    /// # Errors
    ///
    /// As those of [`Setting::apply`]; what stands before the setting that failed is back.
    pub fn restore(&self, tree: &Tree) -> Result<(), Error> {
        for setting in &self.0 {
            let before = setting.read(tree)?;
            if before.is_back(setting) {
                continue;
            }
            setting.perform(tree)?;
            let after = setting.read(tree)?;
            if !after.is_back(setting) {
                return Err(setting.without_effect(&after));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Former {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands: Vec<String> = self.0.iter().map(Setting::command).collect();
        f.pad(&commands.join("; "))
    }
}

/// What was read of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// What puts the present value back; `None` where no command does (a RETA whose queues stand neither in turn nor
    /// in blocks of ascending queues).
    pub former: Option<Former>,
    /// Whether the present value is the one that the setting asks for.
    pub in_effect: bool,
}

impl Present {
    /// What `requested` is now.
    fn of(found: Setting, requested: &Setting) -> Present {
        let in_effect = match (&found, requested) {
            (Setting::Sysctl { name, value }, Setting::Sysctl { value: requested, .. }) => {
                name.is_same(value, requested)
            }
            _ => found == *requested,
        };
        Present { in_effect, former: Some(Former(vec![found])) }
    }

    /// Whether the value is that of `setting`, of whose place it was read. A feature that something else keeps from
    /// being on counts by what the administrator wants of it.
    fn is_back(&self, setting: &Setting) -> bool {
        let same = self.former.as_ref().is_some_and(|former| former.0 == [setting.clone()]);
        same || (self.in_effect && !matches!(setting, Setting::Feature { .. }))
    }

    /// The present value as commands, for a message.
    pub fn to_text(&self) -> String {
        match &self.former {
            Some(former) => former.to_string(),
            None => "a value that no command makes".to_owned(),
        }
    }
}

impl Setting {
    /// The present value.
    ///
    /// # Errors
    ///
    /// It cannot be read: [`Error::Read`], [`Error::Program`], [`Error::Missing`], [`Error::Untold`],
    /// [`Error::OtherSysfs`].
    pub fn read(&self, tree: &Tree) -> Result<Present, Error> {
        let mut found = self.clone();
        match &mut found {
            Setting::HashFields { interface, flow, fields } => {
                let line = ["-n", interface.as_str(), "rx-flow-hash", flow.name()];
                *fields = ethtool(tree, &line, "the hash fields", output::hash_fields)?;
            }
            Setting::RetaEqual { interface, .. }
            | Setting::RetaWeights { interface, .. }
            | Setting::RetaDefault { interface } => {
                let printed = read_reta(tree, interface)?;
                let former = reta::making(interface, printed.rings, &printed.table);
                let former = former.map(|setting| Former(vec![setting]));
                return Ok(Present { former, in_effect: reta::is_made_by(self, &printed) });
            }
            Setting::Channels { interface, kind, count } => {
                let line = ["-l", interface.as_str()];
                let of_kind = |text: &str| output::channels(text, *kind);
                *count = ethtool(tree, &line, "the number of channels of this kind", of_kind)?;
                // Many devices have no RETA, or do not show it; what cannot be seen cannot be put back.
                let printed = match read_reta(tree, interface) {
                    Ok(printed) => printed,
                    Err(Error::Program { source: None, .. } | Error::Untold { .. }) => {
                        return Ok(Present::of(found, self));
                    }
                    Err(error) => return Err(error),
                };
                let reta = reta::making(interface, printed.rings, &printed.table);
                let in_effect = found == *self;
                return Ok(Present { former: reta.map(|reta| Former(vec![found, reta])), in_effect });
            }
            Setting::Ring { interface, rx } => {
                let line = ["-g", interface.as_str()];
                *rx = ethtool(tree, &line, "the size of the receive ring", output::ring_rx)?;
            }
            Setting::Coalesce { interface, name, value } => {
                let line = ["-c", interface.as_str()];
                *value = ethtool(tree, &line, name.as_str(), |text| output::coalesce(text, name.as_str()))?;
            }
            Setting::Feature { interface, name, on } => return read_feature(tree, interface, name, *on),
            Setting::Mtu { interface, mtu } => {
                tree.check_sysfs(interface)?;
                let file = format!("/sys/class/net/{interface}/mtu");
                *mtu = tree.read(&file)?.parse().map_err(|_| untold(&file, "the MTU"))?;
            }
            Setting::Rps { interface, queue, cpus } => {
                tree.check_sysfs(interface)?;
                let file = rps_file(interface, *queue);
                *cpus = CpuSet::parse_mask(&tree.read(&file)?).map_err(|_| untold(&file, "a CPU mask"))?;
            }
            Setting::IrqAffinity { irq, cpus } => {
                let file = affinity_file(*irq);
                let list = CpuSet::parse_list(&tree.read(&file)?).ok().filter(|list| !list.is_empty());
                *cpus = list.ok_or_else(|| untold(&file, "a list of CPUs"))?;
            }
            Setting::Sysctl { name, value } => {
                let file = name.file();
                *value = tree.read(&file)?.parse().map_err(|_| untold(&file, "a value of one line"))?;
            }
        }
        Ok(Present::of(found, self))
    }
}

fn read_reta(tree: &Tree, interface: &InterfaceName) -> Result<PrintedTable, Error> {
    let line = ["-x", interface.as_str()];
    ethtool(tree, &line, "an indirection table", |text| PrintedTable::parse(text).ok())
}

fn read_feature(
    tree: &Tree,
    interface: &InterfaceName,
    name: &Parameter,
    on: bool,
) -> Result<Present, Error> {
    let setting = |name, on| Setting::Feature { interface: interface.clone(), name, on };
    ethtool(tree, &["-k", interface.as_str()], name.as_str(), |text| {
        let (feature, parts) = output::feature(text, name.as_str())?;
        let parts = parts.iter().filter(|part| !part.fixed);
        let parts = parts.filter_map(|part| Some(setting(part.name.parse().ok()?, part.requested)));
        let parts: Vec<Setting> = parts.collect();
        let former = if parts.is_empty() { vec![setting(name.clone(), feature.requested)] } else { parts };
        Some(Present { former: Some(Former(former)), in_effect: feature.on == on })
    })
}

/// What `read` finds in the output of ethtool.
fn ethtool<T>(
    tree: &Tree,
    arguments: &[&str],
    what: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Error> {
    let found = read(&tree.run(Program::Ethtool, arguments)?);
    found.ok_or_else(|| untold(&format!("ethtool {}", arguments.join(" ")), what))
}

fn untold(command: &str, what: &str) -> Error {
    Error::Untold { command: command.to_owned(), what: what.to_owned() }
}
