//! The present value of a setting.

use super::{
    ChannelKind, Error, InterfaceName, Program, Setting, SysctlValue, Tree, affinity_file, output, reta,
    rps_file,
};
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
    /// The settings.
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
    fn of(setting: Setting, in_effect: bool) -> Present {
        Present { former: Some(Former(vec![setting])), in_effect }
    }
}

impl Present {
    /// Whether the value is that of `setting`, of whose place it was read. A feature that something else keeps from
    /// being on counts by what the administrator wants of it.
    fn is_back(&self, setting: &Setting) -> bool {
        let same = self.former.as_ref().is_some_and(|former| former.0 == [setting.clone()]);
        same || (self.in_effect && !matches!(setting, Setting::Feature { .. }))
    }

    /// The present value as commands, for a message.
    pub fn shown(&self) -> String {
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
        match self {
            Setting::HashFields { interface, flow, fields } => {
                let line = ["-n", interface.as_str(), "rx-flow-hash", flow.name()];
                let found = output::hash_fields(&tree.run(Program::Ethtool, &line)?);
                let found = found.ok_or_else(|| untold(&line, "the hash fields"))?;
                let (interface, flow) = (interface.clone(), *flow);
                let setting = Setting::HashFields { interface, flow, fields: found };
                Ok(Present::of(setting, found == *fields))
            }
            Setting::RetaEqual { interface, .. }
            | Setting::RetaWeights { interface, .. }
            | Setting::RetaDefault { interface } => self.read_reta(tree, interface),
            Setting::Channels { interface, kind, count } => {
                self.read_channels(tree, interface, *kind, *count)
            }
            Setting::Ring { interface, rx } => {
                let line = ["-g", interface.as_str()];
                let found = output::ring_rx(&tree.run(Program::Ethtool, &line)?);
                let found = found.ok_or_else(|| untold(&line, "the size of the receive ring"))?;
                Ok(Present::of(Setting::Ring { interface: interface.clone(), rx: found }, found == *rx))
            }
            Setting::Coalesce { interface, name, value } => {
                let line = ["-c", interface.as_str()];
                let found = output::coalesce(&tree.run(Program::Ethtool, &line)?, name.as_str());
                let found = found.ok_or_else(|| untold(&line, name.as_str()))?;
                let (interface, name) = (interface.clone(), name.clone());
                Ok(Present::of(Setting::Coalesce { interface, name, value: found }, found == *value))
            }
            Setting::Feature { interface, .. } => self.read_feature(tree, interface),
            Setting::Mtu { interface, mtu } => {
                tree.check_sysfs(interface)?;
                let file = format!("/sys/class/net/{interface}/mtu");
                let found = tree.read(&file)?.parse().map_err(|_| untold_by(&file, "the MTU"))?;
                Ok(Present::of(Setting::Mtu { interface: interface.clone(), mtu: found }, found == *mtu))
            }
            Setting::Rps { interface, queue, cpus } => {
                tree.check_sysfs(interface)?;
                let file = rps_file(interface, *queue);
                let found = CpuSet::parse_mask(&tree.read(&file)?);
                let found = found.map_err(|_| untold_by(&file, "a CPU mask"))?;
                let in_effect = found == *cpus;
                let (interface, queue) = (interface.clone(), *queue);
                Ok(Present::of(Setting::Rps { interface, queue, cpus: found }, in_effect))
            }
            Setting::IrqAffinity { irq, cpus } => {
                let file = affinity_file(*irq);
                let found = CpuSet::parse_list(&tree.read(&file)?).ok().filter(|found| !found.is_empty());
                let found = found.ok_or_else(|| untold_by(&file, "a list of CPUs"))?;
                let in_effect = found == *cpus;
                Ok(Present::of(Setting::IrqAffinity { irq: *irq, cpus: found }, in_effect))
            }
            Setting::Sysctl { name, value } => {
                let file = name.file();
                let found: SysctlValue =
                    tree.read(&file)?.parse().map_err(|_| untold_by(&file, "a value of one line"))?;
                let in_effect = name.is_same(&found, value);
                Ok(Present::of(Setting::Sysctl { name: name.clone(), value: found }, in_effect))
            }
        }
    }

    fn read_reta(&self, tree: &Tree, interface: &InterfaceName) -> Result<Present, Error> {
        let line = ["-x", interface.as_str()];
        let printed = PrintedTable::parse(&tree.run(Program::Ethtool, &line)?);
        let printed = printed.map_err(|_| untold(&line, "an indirection table"))?;
        let former =
            reta::making(interface, printed.rings, &printed.table).map(|setting| Former(vec![setting]));
        Ok(Present { former, in_effect: reta::is_made_by(self, &printed) })
    }

    fn read_channels(
        &self,
        tree: &Tree,
        interface: &InterfaceName,
        kind: ChannelKind,
        count: u32,
    ) -> Result<Present, Error> {
        let line = ["-l", interface.as_str()];
        let found = output::channels(&tree.run(Program::Ethtool, &line)?, kind);
        let found = found.ok_or_else(|| untold(&line, "the number of channels of this kind"))?;
        let channels = Setting::Channels { interface: interface.clone(), kind, count: found };
        // Many devices have no RETA, or do not show it; what cannot be seen cannot be put back.
        let table = match tree.run(Program::Ethtool, &["-x", interface.as_str()]) {
            Ok(text) => PrintedTable::parse(&text).ok(),
            Err(Error::Program { source: None, .. }) => None,
            Err(error) => return Err(error),
        };
        let former = match table {
            None => Some(Former(vec![channels])),
            Some(printed) => reta::making(interface, printed.rings, &printed.table)
                .map(|reta| Former(vec![channels, reta])),
        };
        Ok(Present { former, in_effect: found == count })
    }

    fn read_feature(&self, tree: &Tree, interface: &InterfaceName) -> Result<Present, Error> {
        let Setting::Feature { name, on, .. } = self else {
            return Err(untold_by(&self.command(), "a feature"));
        };
        let line = ["-k", interface.as_str()];
        let text = tree.run(Program::Ethtool, &line)?;
        let (feature, parts) =
            output::feature(&text, name.as_str()).ok_or_else(|| untold(&line, name.as_str()))?;
        let parts: Vec<Setting> = parts
            .iter()
            .filter(|part| !part.fixed)
            .filter_map(|part| {
                let name = part.name.parse().ok()?;
                Some(Setting::Feature { interface: interface.clone(), name, on: part.wanted })
            })
            .collect();
        let whole = || {
            vec![Setting::Feature { interface: interface.clone(), name: name.clone(), on: feature.wanted }]
        };
        let former = if parts.is_empty() { whole() } else { parts };
        Ok(Present { former: Some(Former(former)), in_effect: feature.on == *on })
    }
}

fn untold(ethtool: &[&str], what: &str) -> Error {
    untold_by(&format!("ethtool {}", ethtool.join(" ")), what)
}

fn untold_by(command: &str, what: &str) -> Error {
    Error::Untold { command: command.to_owned(), what: what.to_owned() }
}
