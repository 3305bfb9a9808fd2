//! Interfaces as rtnetlink reports them, and which of them stand on which.

mod kinds;
mod listing;
mod statistics;

use super::bundle::{Unread, printable};
use super::files::{of_this_namespace, text};
use super::{Error, sessions};
use crate::interface::is_plain_name;
use kernel::netlink::{Attributes, Message, Netlink, until_zero};
use linux_raw_sys::if_arp as nl;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub(super) use listing::render;

/// `RTM_GETLINK`, `RTM_NEWLINK` (`include/uapi/linux/rtnetlink.h`).
const GET_LINK: u16 = 18;
/// Bytes of `struct ifinfomsg`.
const HEADER: usize = 16;
/// Virtual functions are listed only on request.
const WITH_FUNCTIONS: u32 = linux_raw_sys::netlink::RTEXT_FILTER_VF;

#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    /// Its index; 0 where only its name is known.
    pub index: u32,
    /// Its name as the kernel has it.
    pub name: Vec<u8>,
    /// `IFF_*`.
    pub flags: u32,
    /// `ARPHRD_*`.
    hardware: u16,
    /// The interface below: its index, 0 where there is none by that relation.
    below: Option<u32>,
    /// Whether the one below is in another network namespace.
    elsewhere: bool,
    /// The bridge, bond, … that it belongs to.
    master: Option<u32>,
    /// `IFLA_INFO_KIND`.
    kind: Vec<u8>,
    /// Attributes as they came.
    attributes: Vec<u8>,
}

impl Link {
    /// The name as it is printed.
    pub(super) fn display_name(&self) -> String {
        printable(&self.name)
    }

    /// Whether it is the loopback.
    pub(super) fn is_loopback(&self) -> bool {
        self.flags & nl_flag(nl::net_device_flags::IFF_LOOPBACK) != 0
    }

    /// Its folder in sysfs, whether or not it is there.
    pub(super) fn folder(&self) -> PathBuf {
        PathBuf::from("/sys/class/net").join(OsStr::from_bytes(&self.name))
    }

    /// Whether sysfs shows this interface and not a stranger by the same name: it belongs to the network namespace
    /// in which it was mounted, which need not be this process'.
    pub(super) fn is_in_sysfs(&self) -> Result<(), Unread> {
        let ifindex = text(&self.folder().join("ifindex"))?;
        match ifindex.trim().parse::<u32>() {
            Ok(index) if self.index > 0 && self.index != index => {
                Err(Unread("sysfs shows another network namespace".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Whether an XDP program is attached.
    fn has_program(&self) -> bool {
        let xdp = self.attributes().nest(nl::IFLA_XDP as u16);
        let attached = xdp.and_then(|xdp| xdp.u8(nl::IFLA_XDP_ATTACHED as u16));
        attached.is_some_and(|mode| mode != 0)
    }

    /// Counters of lost packets, by their names in `/sys/class/net/…/statistics`.
    pub(super) fn losses(&self) -> Vec<(&'static str, u64)> {
        statistics::losses(self.attributes())
    }

    fn attributes(&self) -> Attributes<'_> {
        Attributes::new(&self.attributes)
    }
}

fn nl_flag(flag: nl::net_device_flags) -> u32 {
    flag as u32
}

/// Interfaces, and what could be found out about how they relate.
pub(super) struct Links {
    /// In the kernel's order.
    pub links: Vec<Link>,
    /// Why there is nothing but names.
    pub names_only: Option<Unread>,
    /// An interface's name and that of one it stands on.
    stands_on: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl Links {
    /// Asks rtnetlink; where that is denied, `/proc/net/dev` has the names and sysfs the relations.
    pub(super) fn read() -> Links {
        match dump() {
            Ok(links) => {
                let stands_on = relations(&links);
                Links { links, names_only: None, stands_on }
            }
            Err(why) => {
                let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).ok();
                let index =
                    |name: &[u8]| name_to_index(socket.as_ref()?, std::str::from_utf8(name).ok()?).ok();
                let named =
                    |name: Vec<u8>| Link { index: index(&name).unwrap_or(0), name, ..Link::default() };
                let links: Vec<Link> = names().into_iter().map(named).collect();
                let stands_on = sysfs_relations(&links);
                Links { links, names_only: Some(why), stands_on }
            }
        }
    }

    /// The same, and which interfaces PPPoE sessions use.
    pub(super) fn with_sessions() -> Links {
        let mut links = Links::read();
        links.add_sessions(&sessions::interfaces());
        links
    }

    /// Whether the interface of that name has an XDP program; `false` where nothing but names is known.
    pub(super) fn has_program(&self, name: &[u8]) -> bool {
        self.links.iter().any(|link| link.name == name && link.has_program())
    }

    /// Adds the Ethernet interfaces that PPPoE sessions use: every PPP interface stands on them, since the kernel
    /// does not say which session carries which.
    fn add_sessions(&mut self, below: &[Vec<u8>]) {
        let ppp: Vec<Vec<u8>> = self
            .links
            .iter()
            .filter(|link| link.kind == b"ppp" || u32::from(link.hardware) == nl::ARPHRD_PPP)
            .map(|link| link.name.clone())
            .collect();
        for upper in ppp {
            self.stands_on.extend(below.iter().map(|lower| (upper.clone(), lower.clone())));
        }
    }

    /// Reads one interface again, by its name.
    ///
    /// # Errors
    ///
    /// What the kernel says: there is none of that name any more.
    pub(super) fn refresh(&mut self, name: &[u8]) -> Result<(), Unread> {
        let named = Message::new(GET_LINK, &[0; HEADER]).with_text(nl::IFLA_IFNAME as u16, name);
        let read = Netlink::route()?.get(&named)?;
        let read = link(&read).ok_or_else(|| Unread("the kernel's answer is too short".to_owned()))?;
        match self.links.iter_mut().find(|link| link.name == name) {
            Some(known) => *known = read,
            None => self.links.push(read),
        }
        Ok(())
    }

    /// The interfaces of these names, those they stand on, and those that stand on them, at any distance.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownInterface`], of the first name that no interface has; [`Error::OddName`].
    pub(super) fn around(&self, names: &[String]) -> Result<BTreeSet<Vec<u8>>, Error> {
        let mut chosen = BTreeSet::new();
        for name in names {
            let unknown = || Error::UnknownInterface {
                name: name.clone(),
                known: self.links.iter().map(Link::display_name).collect(),
            };
            let link = self.links.iter().find(|link| link.display_name() == *name).ok_or_else(unknown)?;
            if !str::from_utf8(&link.name).is_ok_and(is_plain_name) {
                return Err(Error::OddName { name: name.clone() });
            }
            chosen.insert(link.name.clone());
        }
        let below = self.closure(&chosen, |(upper, lower)| (upper, lower));
        let above = self.closure(&chosen, |(upper, lower)| (lower, upper));
        Ok(below.union(&above).cloned().collect())
    }

    fn closure<'a>(
        &'a self,
        start: &BTreeSet<Vec<u8>>,
        direction: impl Fn(&'a (Vec<u8>, Vec<u8>)) -> (&'a Vec<u8>, &'a Vec<u8>),
    ) -> BTreeSet<Vec<u8>> {
        let mut reached = start.clone();
        let mut edge: Vec<Vec<u8>> = start.iter().cloned().collect();
        while let Some(name) = edge.pop() {
            for (_, to) in self.stands_on.iter().map(&direction).filter(|&(from, _)| *from == name) {
                if reached.insert(to.clone()) {
                    edge.push(to.clone());
                }
            }
        }
        reached
    }
}

fn dump() -> Result<Vec<Link>, Unread> {
    // struct ifinfomsg of any family and index, then IFLA_EXT_MASK.
    let request = Message::new(GET_LINK, &[0; HEADER]);
    let request = request.with(nl::IFLA_EXT_MASK as u16, &WITH_FUNCTIONS.to_ne_bytes());
    let objects = Netlink::route()?.dump(&request)?;
    Ok(objects.iter().filter_map(|object| link(object)).collect())
}

/// A link from a message: family, padding, type (16 bits), index, flags, change mask, then attributes.
fn link(object: &[u8]) -> Option<Link> {
    let number = |at: usize| Some(u32::from_ne_bytes(*object.get(at..)?.first_chunk()?));
    let attributes = Attributes::new(object.get(HEADER..)?);
    let kind =
        attributes.nest(nl::IFLA_LINKINFO as u16).and_then(|info| info.string(nl::IFLA_INFO_KIND as u16));
    Some(Link {
        index: number(4)?,
        name: until_zero(attributes.get(nl::IFLA_IFNAME as u16)?).to_vec(),
        flags: number(8)?,
        hardware: u16::from_ne_bytes(*object.get(2..)?.first_chunk()?),
        below: attributes.u32(nl::IFLA_LINK as u16),
        elsewhere: attributes.has(nl::IFLA_LINK_NETNSID as u16),
        master: attributes.u32(nl::IFLA_MASTER as u16),
        kind: kind.unwrap_or_default().to_vec(),
        attributes: object.get(HEADER..)?.to_vec(),
    })
}

/// Who stands on whom: the interface below (of a pair's two ends neither is), and what belongs to a bridge or bond.
fn relations(links: &[Link]) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    let names: BTreeMap<u32, &Vec<u8>> = links.iter().map(|link| (link.index, &link.name)).collect();
    let mut pairs = BTreeSet::new();
    for link in links {
        let is_pair = [&b"veth"[..], b"netkit", b"vxcan"].contains(&link.kind.as_slice());
        let below = link.below.filter(|&below| !is_pair && !link.elsewhere && below != link.index);
        if let Some(&below) = below.and_then(|below| names.get(&below)) {
            pairs.insert((link.name.clone(), below.clone()));
        }
        if let Some(&master) = link.master.and_then(|master| names.get(&master)) {
            pairs.insert((master.clone(), link.name.clone()));
        }
    }
    pairs
}

/// Names from `/proc/net/dev`, which shows this thread's network namespace whatever sysfs shows.
fn names() -> Vec<Vec<u8>> {
    let table = std::fs::read(of_this_namespace("dev")).unwrap_or_default();
    let name = |line: &[u8]| Some(line.get(..line.iter().position(|&c| c == b':')?)?.trim_ascii().to_vec());
    table.split(|&c| c == b'\n').skip(2).filter_map(name).filter(|name| !name.is_empty()).collect()
}

/// `lower_NAME` in an interface's folder of sysfs.
fn sysfs_relations(links: &[Link]) -> BTreeSet<(Vec<u8>, Vec<u8>)> {
    let mut pairs = BTreeSet::new();
    for link in links {
        for entry in std::fs::read_dir(link.folder()).into_iter().flatten().flatten() {
            if let Some(lower) = entry.file_name().as_bytes().strip_prefix(b"lower_") {
                pairs.insert((link.name.clone(), lower.to_vec()));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(index: u32, name: &str, kind: &str, below: Option<u32>, master: Option<u32>) -> Link {
        let (name, kind) = (name.into(), kind.into());
        Link { index, name, kind, below, master, ..Link::default() }
    }

    fn router() -> Links {
        let links = vec![
            named(1, "lo", "", None, None),
            named(2, "eth0", "", None, None),
            named(3, "eth1", "", None, Some(6)),
            named(4, "eth2", "", None, Some(6)),
            named(5, "eth0.35", "vlan", Some(2), None),
            named(6, "br0", "bridge", None, None),
            named(7, "br0.9", "vlan", Some(6), None),
            named(8, "v0", "veth", Some(9), None),
            named(9, "v1", "veth", Some(8), None),
            named(10, "ppp0", "ppp", None, None),
        ];
        let stands_on = relations(&links);
        let mut links = Links { links, names_only: None, stands_on };
        links.add_sessions(&[b"eth0.35".to_vec()]);
        links
    }

    fn around(names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let found = router().around(&names).expect("they exist");
        found.iter().map(|name| printable(name)).collect()
    }

    #[test]
    fn an_interface_brings_what_it_stands_on_and_what_stands_on_it() {
        assert_eq!(around(&["eth0"]), ["eth0", "eth0.35", "ppp0"]);
        assert_eq!(around(&["ppp0"]), ["eth0", "eth0.35", "ppp0"]);
        // Not its sibling in the bridge.
        assert_eq!(around(&["eth1"]), ["br0", "br0.9", "eth1"]);
        assert_eq!(around(&["br0.9"]), ["br0", "br0.9", "eth1", "eth2"]);
        assert_eq!(around(&["v0"]), ["v0"]);
    }

    #[test]
    fn an_unknown_name_is_returned() {
        let error = router().around(&["eth0".to_owned(), "eth7".to_owned()]).expect_err("there is no eth7");
        assert!(matches!(error, Error::UnknownInterface { name, .. } if name == "eth7"));
    }

    #[test]
    fn no_link_message_panics() {
        let name = Message::new(0, &[]).with_text(nl::IFLA_IFNAME as u16, b"eth0");
        let object = [&[0xff; HEADER][..], name.attributes(), &[0xff; 7]].concat();
        for end in 0..=object.len() {
            let _ = link(object.get(..end).expect("within"));
        }
        assert_eq!(link(&object).map(|link| link.name), Some(b"eth0".to_vec()));
    }
}
