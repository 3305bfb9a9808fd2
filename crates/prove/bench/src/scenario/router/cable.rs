//! Adapters of this machine that are joined by cables, in place of veth pairs.

use super::super::Error;
use crate::namespace::{Lent, Namespace};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long two adapters have to agree on a speed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two adapters with a cable between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// The one that sends and receives.
    pub line: String,
    /// The one that is the router's.
    pub router: String,
}

impl Cable {
    /// Looks whether both are adapters that nobody uses.
    ///
    /// # Errors
    ///
    /// Which is not, and what to do.
    pub fn check(&self) -> Result<(), Error> {
        for adapter in [&self.line, &self.router] {
            let folder = Path::new("/sys/class/net").join(adapter);
            if !folder.exists() {
                return Err(Error::Wrong(format!(
                    "there is no interface {adapter} here (ip link shows them)"
                )));
            }
            if !folder.join("device").exists() {
                return Err(Error::Wrong(format!(
                    "{adapter} is no adapter with a cable: nothing is below it"
                )));
            }
            let flags = fs::read_to_string(folder.join("flags")).unwrap_or_default();
            let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(0);
            // IFF_UP (include/uapi/linux/if.h).
            if flags & 1 != 0 {
                return Err(Error::Wrong(format!(
                    "{adapter} is up, and this would take it away from whoever uses it: ip link set dev {adapter} down"
                )));
            }
        }
        Ok(())
    }

    /// Puts each into its namespace, up.
    ///
    /// # Errors
    ///
    /// What `ip` said, or that there is no carrier.
    pub fn plug(&self, line: &Namespace, router: &Namespace) -> Result<[Lent; 2], Error> {
        let lent = [line.borrow(&self.line)?, router.borrow(&self.router)?];
        // What is forwarded goes to a station that is not there, and has to be counted.
        line.ip(&["link", "set", "dev", &self.line, "promisc", "on", "up"])?;
        router.ip(&["link", "set", "dev", &self.router, "up"])?;
        await_carrier(line, &self.line)?;
        await_carrier(router, &self.router)?;
        Ok(lent)
    }
}

/// Waits until an interface that is up has a carrier.
pub fn await_carrier(namespace: &Namespace, interface: &str) -> Result<(), Error> {
    let start = Instant::now();
    while !namespace.works(interface)? {
        if start.elapsed() > PATIENCE {
            return Err(Error::Failed(format!(
                "{interface} has no carrier after {} s: is the cable between the two adapters that were named?",
                PATIENCE.as_secs()
            )));
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}
