//! Notifications of changes.

use super::address::read_address;
use super::answers::messages;
use super::link::{BridgePort, Link};
use super::message::u32_at;
use super::neighbour::{BRIDGE, BridgeEntry, Neighbour};
use super::route::{RTMSG, read_tos};
use super::{Attributes, set_receive_buffer, uninterrupted};
use libc::{
    RTA_DST, RTM_DELADDR, RTM_DELLINK, RTM_DELNEIGH, RTM_DELROUTE, RTM_DELRULE, RTM_NEWADDR, RTM_NEWLINK,
    RTM_NEWNEIGH, RTM_NEWROUTE, RTM_NEWRULE, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV4_RULE,
    RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV6_RULE, RTNLGRP_LINK, RTNLGRP_NEIGH,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use wire::IpVersion;

/// `include/uapi/linux/rtnetlink.h`, of which `libc` has these for glibc alone, or not.
const RTM_NEWNETCONF: u16 = 80;
const RTM_DELNETCONF: u16 = 81;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const RTNLGRP_IPV4_NETCONF: u32 = 24;
const RTNLGRP_IPV6_NETCONF: u32 = 25;
const RTNLGRP_NEXTHOP: u32 = 32;

/// Datagrams that a call of [`Events::changes`] takes.
const DATAGRAMS: usize = 256;

/// A socket to which the kernel sends every change of some kind in its network namespace, ready to be polled.
#[derive(Debug)]
pub struct Events(Socket);

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An interface is now so.
    Link(Link),
    /// The interface of this number was deleted, or went to another network namespace.
    LinkRemoved(u32),
    /// A neighbour is now so.
    Neighbour(Neighbour),
    /// The kernel forgot a neighbour.
    NeighbourRemoved(Neighbour),
    /// A port of a bridge forwards, or does so no more.
    BridgePort(BridgePort),
    /// A bridge learned or was given an address, or it moved to another port.
    BridgeEntry(BridgeEntry),
    /// A bridge forgot an address.
    BridgeEntryRemoved(BridgeEntry),
    /// The interface of this number got an address or lost one.
    Address(u32),
    /// A route was added, changed or removed.
    Route {
        /// Of which packets.
        version: IpVersion,
        /// Where to: an address and the bits of it that count; `None`: a default route.
        destination: Option<(IpAddr, u8)>,
        /// The TOS that a packet has to have; `None`: any.
        tos: Option<u8>,
    },
    /// A nexthop object (ip-nexthop(8)) was added, changed or removed: routes lead to it.
    NextHop,
    /// Forwarding, or how the source of a packet is verified, was set otherwise (`net.ipv4.conf`, `net.ipv6.conf`).
    Setting,
    /// A policy rule was added or removed.
    Rule,
    /// Some changes were lost: whoever is interested has to ask.
    Lost,
}

impl Events {
    /// Changes of interfaces from now on.
    pub fn of_links() -> io::Result<Events> {
        Events::subscribe(&[RTNLGRP_LINK])
    }

    /// From now on, changes of everything that says where packets are forwarded to: interfaces, neighbours, bridges' entries,
    /// addresses, routes, nexthop objects, rules, and settings.
    pub fn of_forwarding() -> io::Result<Events> {
        let events = Events::subscribe(&[
            RTNLGRP_LINK,
            RTNLGRP_NEIGH,
            RTNLGRP_IPV4_IFADDR,
            RTNLGRP_IPV6_IFADDR,
            RTNLGRP_IPV4_ROUTE,
            RTNLGRP_IPV6_ROUTE,
            RTNLGRP_IPV4_RULE,
            RTNLGRP_IPV6_RULE,
            RTNLGRP_IPV4_NETCONF,
            RTNLGRP_IPV6_NETCONF,
        ])?;
        // Nexthop objects are there since Linux 5.3; an earlier kernel refuses the group.
        match events.0.add_membership(RTNLGRP_NEXTHOP) {
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
            _ => Ok(events),
        }
    }

    /// `RTNLGRP_*`.
    fn subscribe(groups: &[u32]) -> io::Result<Events> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        for group in groups {
            socket.add_membership(*group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Events(socket))
    }

    /// Lets more changes wait: bytes as the kernel counts them, some 1,000 for a change of a neighbour or route. Without
    /// `CAP_NET_ADMIN` no more than `net.core.rmem_max`.
    pub fn set_buffer(&self, bytes: usize) -> io::Result<()> {
        set_receive_buffer(&self.0, bytes)
    }

    /// What changed since the last call, in order; nothing, if nothing did. Of very many changes some wait for the next call.
    pub fn changes(&self) -> io::Result<Vec<Change>> {
        let mut changes = Vec::new();
        for _ in 0..DATAGRAMS {
            match uninterrupted(|| self.0.recv_from_full()) {
                // Only the kernel has port 0.
                Ok((_, from)) if from.port_number() != 0 => {}
                Ok((datagram, _)) => {
                    changes.extend(messages(&datagram).filter_map(|(kind, _, _, body)| change(kind, body)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => changes.push(Change::Lost),
                Err(error) => return Err(error),
            }
        }
        Ok(changes)
    }
}

fn change(kind: u16, body: &[u8]) -> Option<Change> {
    let is_bridge = body.first() == Some(&BRIDGE);
    match kind {
        RTM_NEWLINK if is_bridge => BridgePort::read(body).map(Change::BridgePort),
        // An interface that is a port no more is not deleted.
        RTM_DELLINK if is_bridge => None,
        RTM_NEWLINK => Some(Change::Link(Link::read(body))),
        RTM_DELLINK => Some(Change::LinkRemoved(Link::read(body).index)),
        RTM_NEWNEIGH if is_bridge => BridgeEntry::read(body).map(Change::BridgeEntry),
        RTM_DELNEIGH if is_bridge => BridgeEntry::read(body).map(Change::BridgeEntryRemoved),
        RTM_NEWNEIGH => Neighbour::read(body).map(Change::Neighbour),
        RTM_DELNEIGH => Neighbour::read(body).map(Change::NeighbourRemoved),
        // `struct ifaddrmsg`: family, prefix length, flags, scope, index.
        RTM_NEWADDR | RTM_DELADDR => u32_at(body, 4).map(Change::Address),
        RTM_NEWROUTE | RTM_DELROUTE => route(body),
        RTM_NEWRULE | RTM_DELRULE => Some(Change::Rule),
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => Some(Change::NextHop),
        RTM_NEWNETCONF | RTM_DELNETCONF => Some(Change::Setting),
        _ => None,
    }
}

fn route(body: &[u8]) -> Option<Change> {
    let (head, rest) = body.split_at_checked(RTMSG)?;
    // `struct rtmsg`: family, bits of the destination.
    let [family, bits, ..] = *head else { return None };
    let version = match i32::from(family) {
        libc::AF_INET => IpVersion::V4,
        libc::AF_INET6 => IpVersion::V6,
        _ => return None,
    };
    let destination = Attributes::new(rest).get(RTA_DST).and_then(read_address);
    // A destination that is there and cannot be read is as one of any address.
    let destination = destination.filter(|_| bits != 0).map(|to| (to, bits));
    let tos = read_tos(body).filter(|_| version == IpVersion::V4);
    Some(Change::Route { version, destination, tos })
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::*;
    use crate::netlink::link_by_name;
    use testkit::netns::{Namespace, Veth, probe};
    use testkit::{require, wait_for};
    use wire::ethernet::MacAddress;

    #[test]
    fn no_piece_of_a_message_panics() {
        let message = Message::new(0, &[2, 24, 0, 0x10, 7, 0, 0, 0, 2, 0, 0, 0])
            .with(1, &[192, 0, 2, 0])
            .with(2, &[2, 0, 0, 0, 0, 1]);
        let body = message.bytes(0, 0).expect("short").split_off(16);
        let destination = Some(([192, 0, 2, 0].into(), 24));
        let expected = Change::Route { version: IpVersion::V4, destination, tos: Some(0x10) };
        assert_eq!(change(RTM_DELROUTE, &body), Some(expected));
        for kind in 16..64 {
            for end in 0..=body.len() {
                let _ = change(kind, body.get(..end).expect("within"));
            }
        }
    }

    #[test]
    fn what_forwarding_depends_on_is_notified() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        let events = namespace.inside(|| Events::of_forwarding().expect("a socket"));
        events.set_buffer(1 << 20).expect("a buffer");
        namespace.veth(&Veth::pair("lan0", "wan0")).expect("a pair");
        let [interface, other] =
            namespace.inside(|| ["lan0", "wan0"].map(|name| link_by_name(name).expect("there").index));
        for arguments in [
            "address add 10.7.0.1/24 dev lan0",
            "route add default via 10.7.0.2",
            "route add 10.66.0.0/16 via 10.7.0.2",
            "neighbour add 10.7.0.2 lladdr 02:00:00:00:00:02 dev lan0 nud permanent",
            "neighbour delete 10.7.0.2 dev lan0",
            "rule add fwmark 5 table 77",
            "link add br0 type bridge",
            "link set wan0 master br0",
            "nexthop add id 7 via 10.7.0.3 dev lan0",
            "link delete lan0",
        ] {
            namespace.run("ip", &arguments.split(' ').collect::<Vec<_>>()).expect(arguments);
        }
        let mut all = Vec::new();
        wait_for("the end of the interface", || {
            all.extend(events.changes().expect("changes"));
            all.contains(&Change::LinkRemoved(interface)).then_some(())
        });
        let version = IpVersion::V4;
        let address = IpAddr::from([10, 7, 0, 2]);
        let mac = Some(MacAddress([2, 0, 0, 0, 0, 2]));
        let permanent = Neighbour { interface, address, mac, state: libc::NUD_PERMANENT };
        let expected = [
            Change::Address(interface),
            Change::Route { version, destination: None, tos: None },
            Change::Route { version, destination: Some(([10, 66, 0, 0].into(), 16)), tos: None },
            Change::BridgePort(BridgePort { interface: other, forwards: false }),
            Change::NextHop,
            Change::Setting,
            Change::Neighbour(permanent),
            Change::Rule,
        ];
        for change in expected {
            assert!(all.contains(&change), "{change:?} not in {all:?}");
        }
        let is_removal =
            |change: &Change| matches!(change, Change::NeighbourRemoved(one) if one.address == address);
        assert!(all.iter().any(is_removal) && !all.contains(&Change::Lost), "{all:?}");
    }

    #[test]
    fn what_does_not_fit_into_the_buffer_is_lost_and_said_to_be() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        let events = namespace.inside(|| Events::of_forwarding().expect("a socket"));
        events.set_buffer(1).expect("the least that there is");
        for priority in 0..40 {
            let table = format!("rule add fwmark 5 table 77 priority {}", 100 + priority);
            namespace.run("ip", &table.split(' ').collect::<Vec<_>>()).expect("a rule");
        }
        let changes = events.changes().expect("changes");
        assert!(changes.contains(&Change::Lost) && changes.contains(&Change::Rule), "{changes:?}");
        assert_eq!(events.changes().expect("none"), []);
    }
}
