//! What `ethtool` prints of an interface, from ethtool netlink where the kernel has the call, else from the
//! ioctl. The forms are those of ethtool 6.1 and later.
//!
//! Statistics, driver information, the indirection table and the hash fields are read by ioctl alone: it answers
//! on every kernel, netlink only lately (6.3, 6.17) or never.

mod coalesce;
mod driver;
mod features;
mod limits;
mod link_modes;
mod receive_hash;
mod settings;

use super::bundle::{Output, Unread, printable};
use kernel::ethtool::{Generic, Ioctl};

/// The two ways to ask.
pub(super) struct Ethtool {
    generic: Result<Generic, Unread>,
    ioctl: Result<Ioctl, Unread>,
}

impl Ethtool {
    /// Opens both ways, as far as they can be.
    pub(super) fn open() -> Ethtool {
        Ethtool { generic: Generic::open().map_err(Unread::from), ioctl: Ioctl::open().map_err(Unread::from) }
    }

    /// Commands that show settings, with their outputs, one after the other.
    pub(super) fn settings(&mut self, name: &[u8], with_hash_key: bool) -> Vec<(String, Output)> {
        let display_name = printable(name);
        let mut outputs = vec![
            (format!("ethtool {display_name}"), self.link_settings(name, &display_name)),
            (format!("ethtool -i {display_name}"), self.driver(name)),
            (format!("ethtool -l {display_name}"), self.channels(name, &display_name)),
            (format!("ethtool -g {display_name}"), self.rings(name, &display_name)),
            (format!("ethtool -c {display_name}"), self.coalesce(name, &display_name)),
            (format!("ethtool -k {display_name}"), self.features(name, &display_name)),
            (
                format!("ethtool -x {display_name}"),
                self.indirection_table(name, &display_name, with_hash_key),
            ),
        ];
        for (word, number, flow) in receive_hash::FLOWS {
            let command = format!("ethtool -n {display_name} rx-flow-hash {word}");
            outputs.push((command, self.hash_fields(name, number, flow)));
        }
        outputs
    }

    /// Asks by netlink, else by ioctl. Where both fail, netlink's reason is reported: it is the more exact one.
    fn either<T>(
        &mut self,
        by_netlink: impl FnOnce(&mut Generic) -> Result<T, Unread>,
        by_ioctl: impl FnOnce(&mut Ioctl) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        let refused = match &mut self.generic {
            Ok(generic) => match by_netlink(generic) {
                Ok(answer) => return Ok(answer),
                Err(refused) => Some(refused),
            },
            Err(_) => None,
        };
        self.by_ioctl(by_ioctl).map_err(|why| refused.unwrap_or(why))
    }

    fn by_ioctl<T>(&mut self, ask: impl FnOnce(&mut Ioctl) -> Result<T, Unread>) -> Result<T, Unread> {
        match &mut self.ioctl {
            Ok(ioctl) => ask(ioctl),
            Err(why) => Err(why.clone()),
        }
    }
}

/// A number, or `n/a`.
fn number(value: Option<u32>) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| value.to_string())
}

/// `on` or `off`.
fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
