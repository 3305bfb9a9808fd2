//! The interface with the line, while a client runs: its carrier, MTU and MAC address, and its end.

use super::preparation::framed;
use super::{Connection, Event, Over, Report};
use crate::error::Error;
use format::quoted;
use kernel::netlink::{self, Change, Link};
use link::frame_size::needed_mtu;
use link::pppoe::kernel::random;
use wire::emit::PppoeSession;

impl Connection {
    /// Looks what became of the parent.
    pub(super) fn changed(&mut self, report: Report<'_>) -> Result<(), Error> {
        let failed = |source| Error::kernel("read changes of interfaces")(source);
        for change in self.monitor.changes().map_err(failed)? {
            let now = match change {
                Change::Link(link) if link.index == self.parent.index => link,
                Change::LinkRemoved(index) if index == self.parent.index => {
                    self.over = Some(Over::ParentRemoved);
                    return Ok(());
                }
                Change::Lost => match netlink::link_by_index(self.parent.index) {
                    Ok(link) => link,
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                        self.over = Some(Over::ParentRemoved);
                        return Ok(());
                    }
                    Err(error) => return Err(failed(error)),
                },
                _ => continue,
            };
            let before = std::mem::replace(&mut self.parent, now);
            self.compare(&before, report)?;
        }
        Ok(())
    }

    fn compare(&mut self, before: &Link, report: Report<'_>) -> Result<(), Error> {
        let works = self.parent.works();
        if before.works() != works {
            self.act(report, |client, now, actions| client.line(now, works, &mut random, actions))?;
        }
        let framed = framed(&self.start.tags, PppoeSession { session: None, peer: None });
        let needed = needed_mtu(self.start.config.discovery.max_payload.into(), &framed);
        if before.mtu >= needed && self.parent.mtu < needed {
            let Link { name, mtu, .. } = &self.parent;
            report(&Event::Notice(format!(
                "the MTU of {name} is {mtu} now; the longest packets need {needed}: `ip link set {quoted_name} mtu {needed}`",
                quoted_name = quoted(name)
            )));
        }
        let own = self.parent.mac.unwrap_or_default();
        if own != self.socket.local() {
            self.socket.set_local(own).map_err(Error::kernel("receive frames of the line"))?;
            self.act(report, |client, now, actions| client.set_own(now, own, &mut random, actions))?;
        }
        Ok(())
    }
}
