//! Routes through interfaces without a next hop.

use super::address::{address_bytes, family, read_address};
use super::{Attributes, Message, Netlink, Refusal, get};
use libc::{
    RT_SCOPE_LINK, RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTA_DST, RTA_GATEWAY, RTA_OIF, RTA_PRIORITY,
    RTM_DELROUTE, RTM_GETROUTE, RTM_NEWROUTE, RTN_UNICAST, RTPROT_STATIC,
};
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use std::collections::BTreeSet;
use std::net::IpAddr;
use wire::IpVersion;

/// Answers that are read of a list of routes. The kernel names default routes early.
const MOST_DATAGRAMS: usize = 64;
/// `include/uapi/linux/rtnetlink.h`, which `libc` has for glibc alone.
const RTM_F_FIB_MATCH: u32 = 0x2000;
/// Bytes of `struct rtmsg`.
pub(super) const RTMSG: usize = 12;
const TOS: usize = 3;

/// A route through an interface, which goes with the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Of which packets.
    pub version: IpVersion,
    /// Where to: an address and the bits of it that count; `None`: anywhere.
    pub destination: Option<(IpAddr, u8)>,
    /// Number of the interface.
    pub interface: u32,
    /// Of several routes the kernel takes that of the least metric.
    pub metric: u32,
}

impl Netlink {
    /// Adds a route. `EEXIST`: there is one of the same destination and metric.
    pub fn add_route(&mut self, route: &Route) -> Result<(), Refusal> {
        self.set(&rtmsg(RTM_NEWROUTE, route), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a route next to one of the same destination and metric, which counts for as long as it is there. `EEXIST`: there is this
    /// very one.
    pub fn append_route(&mut self, route: &Route) -> Result<(), Refusal> {
        self.set(&rtmsg(RTM_NEWROUTE, route), NLM_F_CREATE | NLM_F_APPEND)
    }

    /// Removes a route. `ESRCH`: there is none such.
    pub fn remove_route(&mut self, route: &Route) -> Result<(), Refusal> {
        self.set(&rtmsg(RTM_DELROUTE, route), 0)
    }
}

/// How many bits of an address its route counts, and the interface that packets to it leave by; a kernel before 4.13 says that
/// all bits count. Error: `ENETUNREACH`: there is no route; others of rtnetlink.
pub fn route_of(address: IpAddr) -> Result<(u8, u32), Refusal> {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let flags = RTM_F_FIB_MATCH.to_ne_bytes();
    let structure = [&[family(address), bits, 0, 0, 0, 0, 0, 0][..], &flags].concat();
    let found = get(&Message::new(RTM_GETROUTE, &structure).with(RTA_DST, &address_bytes(address)))?;
    let interface = Attributes::behind(RTMSG, &found).u32(RTA_OIF);
    Ok((found.get(1).copied().unwrap_or_default(), interface.unwrap_or_default()))
}

/// Where a route of somebody else leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The next hop; `None`: straight through the interface.
    pub address: Option<IpAddr>,
    /// Number of the interface; 0: it has several, or none.
    pub interface: u32,
}

/// The default route of the main table that has this metric; `None`: there is none, or it stands behind very many others.
pub fn default_route(version: IpVersion, metric: u32) -> Result<Option<Gateway>, Refusal> {
    Netlink::route()?.find(&every(version), MOST_DATAGRAMS, |route| {
        read_default(route).filter(|(of, _)| *of == metric).map(|(_, gateway)| gateway)
    })
}

/// The default routes of the main table, as far as they do not stand behind very many others.
pub fn default_routes(version: IpVersion) -> Result<Vec<Gateway>, Refusal> {
    let mut found = Vec::new();
    let collect = |route: &[u8]| -> Option<()> {
        found.extend(read_default(route).map(|(_, gateway)| gateway));
        None
    };
    Netlink::route()?.find(&every(version), MOST_DATAGRAMS, collect)?;
    Ok(found)
}

/// TOS values that IPv4 routes of any table name, each once, without 0. With very many routes this takes seconds.
pub fn route_tos() -> Result<BTreeSet<u8>, Refusal> {
    let mut found = BTreeSet::new();
    Netlink::route()?.each(&every(IpVersion::V4), |route| found.extend(read_tos(route)))?;
    Ok(found)
}

/// The TOS that a route is for; `None`: any.
pub(super) fn read_tos(body: &[u8]) -> Option<u8> {
    body.get(TOS).copied().filter(|&tos| tos != 0)
}

/// Asks for the routes of a version.
fn every(version: IpVersion) -> Message {
    let family = if version == IpVersion::V4 { libc::AF_INET } else { libc::AF_INET6 };
    let mut structure = [0; RTMSG];
    structure[0] = family as u8;
    Message::new(RTM_GETROUTE, &structure)
}

/// Metric and way of a default route of the main table.
fn read_default(body: &[u8]) -> Option<(u32, Gateway)> {
    let (head, rest) = body.split_at_checked(RTMSG)?;
    // `struct rtmsg`: bits of the destination, table, type.
    if !matches!(*head, [_, 0, _, _, RT_TABLE_MAIN, _, _, RTN_UNICAST, ..]) {
        return None;
    }
    let attributes = Attributes::new(rest);
    let address = attributes.get(RTA_GATEWAY).and_then(read_address);
    let interface = attributes.u32(RTA_OIF).unwrap_or_default();
    Some((attributes.u32(RTA_PRIORITY).unwrap_or_default(), Gateway { address, interface }))
}

fn rtmsg(kind: u16, route: &Route) -> Message {
    let (family, scope) = match route.version {
        IpVersion::V4 => (libc::AF_INET as u8, RT_SCOPE_LINK),
        IpVersion::V6 => (libc::AF_INET6 as u8, RT_SCOPE_UNIVERSE),
    };
    let bits = route.destination.map_or(0, |(_, bits)| bits);
    // `struct rtmsg`: family, bits of destination and source, type of service, table, protocol, scope, type, flags.
    let structure = [family, bits, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, 0, 0, 0, 0];
    let message = Message::new(kind, &structure);
    let message = match route.destination {
        Some((address, _)) => message.with(RTA_DST, &address_bytes(address)),
        None => message,
    };
    message.with(RTA_OIF, &route.interface.to_ne_bytes()).with(RTA_PRIORITY, &route.metric.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_route_is_known_among_others_and_cut_short_nothing_panics() {
        let route = |bits, metric: u32| {
            let structure = [libc::AF_INET as u8, bits, 0, 0, RT_TABLE_MAIN, 3, 0, RTN_UNICAST, 0, 0, 0, 0];
            let message = Message::new(RTM_NEWROUTE, &structure)
                .with(RTA_GATEWAY, &[192, 0, 2, 1])
                .with(RTA_OIF, &7_u32.to_ne_bytes())
                .with(RTA_PRIORITY, &metric.to_ne_bytes());
            message.bytes(0, 0).expect("short").split_off(16)
        };
        let whole = route(0, 100);
        let gateway = Gateway { address: Some([192, 0, 2, 1].into()), interface: 7 };
        assert_eq!(read_default(&whole), Some((100, gateway)));
        assert_eq!(read_default(&route(24, 100)), None);
        (0..whole.len()).for_each(|end| {
            let _ = read_default(whole.get(..end).expect("within"));
        });
    }
}
