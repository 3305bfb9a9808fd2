//! A setting that is to last.

use host::setting::{InterfaceName, Setting};
use serde::{Deserialize, Serialize};

/// The handler of an interrupt. Its number may be another one after the next boot; the name of its handler, a folder in
/// `/proc/irq/NUMBER` (`register_handler_proc()` in kernel/irq/proc.c), stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vector {
    /// `eth0-rx-0`; no other interrupt has it.
    pub name: String,
    /// The interface that it serves.
    pub interface: InterfaceName,
}

/// A setting, and for the affinity of an interrupt which one that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lasting {
    /// The setting.
    pub setting: Setting,
    /// `None`: it is not about an interrupt, or about one that cannot be found again by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vector>,
}

impl Lasting {
    /// The interface that it is about; `None` for a sysctl.
    pub fn interface(&self) -> Option<&InterfaceName> {
        self.setting.interface().or_else(|| self.vector.as_ref().map(|vector| &vector.interface))
    }

    /// Whether both set the same value, so that the later one takes the place of the other.
    pub fn replaces(&self, other: &Lasting) -> bool {
        match (&self.vector, &other.vector) {
            (Some(vector), Some(of)) => vector == of,
            _ => self.setting.replaces(&other.setting),
        }
    }

    /// The former ones that none of the new ones replaces, then the new ones.
    pub fn merged(former: &[Lasting], new: &[Lasting]) -> Vec<Lasting> {
        let kept = former.iter().filter(|old| !new.iter().any(|one| one.replaces(old)));
        kept.chain(new).cloned().collect()
    }
}
