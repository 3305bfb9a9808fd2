//! Physical NICs of this machine that are joined by cables, in place of veth pairs.

use super::super::{Error, Tools};
use crate::namespace::{BorrowedNic, Namespace};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long two NICs have to agree on a speed.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    pub line: String,
    pub router: String,
}

impl Cable {
    /// Checks that both are physical NICs that nobody uses; else which is not, and what to do.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for nic in [&self.line, &self.router] {
            let folder = Path::new("/sys/class/net").join(nic);
            let flags = fs::read_to_string(folder.join("flags")).unwrap_or_default();
            let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(0);
            let problem = if !folder.exists() {
                format!("there is no interface {nic} here (ip link shows them)")
            } else if !folder.join("device").exists() {
                format!("{nic} is no physical NIC: nothing is below it")
            // IFF_UP (include/uapi/linux/if.h).
            } else if flags & 1 != 0 {
                format!(
                    "{nic} is up, and this would take it away from whoever uses it: ip link set dev {nic} down"
                )
            } else {
                continue;
            };
            return Err(Error::Wrong(problem));
        }
        Ok(())
    }

    pub(crate) fn plug(
        &self,
        line: &Namespace,
        router: &Namespace,
        tools: &Tools<'_>,
    ) -> Result<[BorrowedNic; 2], Error> {
        let borrowed = [line.borrow(&self.line)?, router.borrow(&self.router)?];
        // What is forwarded goes to a station that is not there, and has to be counted.
        line.ip(&["link", "set", "dev", &self.line, "promisc", "on", "up"])?;
        router.ip(&["link", "set", "dev", &self.router, "up"])?;
        await_carrier(line, &self.line, tools)?;
        await_carrier(router, &self.router, tools)?;
        Ok(borrowed)
    }
}

/// Waits until an interface that is up has a carrier.
pub(super) fn await_carrier(namespace: &Namespace, interface: &str, tools: &Tools<'_>) -> Result<(), Error> {
    let seconds = PATIENCE.as_secs();
    let found = tools.wait_for(PATIENCE, || Ok(namespace.works(interface)?.then_some(())))?;
    found.ok_or_else(|| {
        Error::Failed(format!(
            "{interface} has no carrier after {seconds} s: is the cable between the two NICs that were named?"
        ))
    })
}
