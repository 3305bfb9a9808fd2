//! The leftover of a process that was killed while programs in XDP forwarded: they forward on, and the interface of its subscribers,
//! which the kernel has routes to, is there, without anybody behind it.
//!
//! The next process restores the sessions while it is there, as at a takeover, and takes its place then. Packets that the programs
//! pass to the kernel are lost meanwhile.

use super::carried::{Around, ip_traffic};
use crate::subscribers::Key;
use kernel::netlink::{self, Link};
use link::Traffic as Frames;
use pppoe::concentrator::Saved;
use pppoe::concentrator::accounting::Traffic;
use std::collections::HashMap;
use wire::ethernet::MacAddress;
use xdp::Interface;

/// It. See the module.
#[derive(Debug)]
pub(crate) struct Leftover {
    programs: xdp::subscribers::Leftover,
    interface: Option<Link>,
}

/// A session of the process, by what its programs know of it.
#[derive(Debug)]
pub(super) struct Account {
    /// Its name in accounting.
    number: u64,
    /// As the memory of the programs has VLANs and station.
    key: [u64; 2],
    around: Around,
    /// What it had transferred when that process began to count.
    before: Traffic,
}

impl Account {
    pub(super) fn of(session: &Saved) -> Option<Account> {
        let (vlans, MacAddress(station), id) = session.peer()?;
        let key = Key::of(vlans, MacAddress(station), id);
        Some(Account {
            number: session.accounting(),
            key: [key.vlans.number(), key.station],
            around: Around::of(vlans),
            before: session.before(),
        })
    }
}

impl Leftover {
    /// That of the process which served an interface; `None`: there is nothing.
    pub(crate) fn by(parent: &str) -> Option<Leftover> {
        let programs = xdp::subscribers::Leftover::by(&Interface::find(parent).ok()?)?;
        let interface = netlink::link_by_index(programs.interface()).ok();
        let interface = interface.filter(|link| link.kind.as_deref() == Some("tun"));
        Some(Leftover { programs, interface })
    }

    /// It forwards on for as long as it would after a kill now. Only for who is about to take its place: what began and failed, again and
    /// again, would keep it from its end, and rules that were added since from their packets.
    pub(super) fn wait_for_this(&self) {
        self.programs.beat();
    }

    /// The interface of its subscribers, if it is there.
    pub(super) const fn interface(&self) -> Option<&Link> {
        self.interface.as_ref()
    }

    /// What sessions have transferred, by their names in accounting.
    pub(super) fn counted(&self, accounts: &[Account]) -> Vec<(u64, Traffic)> {
        let counts: HashMap<[u64; 2], [u64; 4]> = self.programs.counted().collect();
        let transferred = |account: &Account| {
            let [in_frames, in_bytes, out_frames, out_bytes] = *counts.get(&account.key)?;
            let received = Frames { frames: in_frames, bytes: in_bytes };
            let sent = Frames { frames: out_frames, bytes: out_bytes };
            Some((account.number, account.before + ip_traffic(account.around, received, sent)))
        };
        accounts.iter().filter_map(transferred).collect()
    }

    /// Frees the name of its interface, and its addresses and routes.
    pub(super) fn remove_interface(&self) {
        // Whoever has removed it meanwhile has done what is requested.
        let _ = self.interface.as_ref().map(|link| netlink::remove_link(link.index));
    }

    /// Removes it, but for programs in whose place others are.
    pub(crate) fn clear(self) {
        self.remove_interface();
        self.programs.clear();
    }
}

/// Removes the leftover of a killed process that served an interface; whether there was anything.
pub fn clear_leftover(parent: &str) -> bool {
    Leftover::by(parent).map(Leftover::clear).is_some()
}
