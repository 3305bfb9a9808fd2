//! Routes through interfaces without a next station.

use super::message::{attribute, attributes, word};
use super::{HEADER, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, RTM_NEWROUTE, Refusal, exchange};
use std::net::IpAddr;
use wire::IpVersion;

const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const NLM_F_APPEND: u16 = 0x800;
/// Asks for the route itself, and not for what it makes of a packet (Linux 4.13).
const RTM_F_FIB_MATCH: u32 = 0x2000;
/// `struct rtmsg`.
const RTMSG: usize = 12;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PRIORITY: u16 = 6;

/// linux/rtnetlink.h: main table; set up by an administrator; straight through the interface; anywhere; to a station.
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RTN_UNICAST: u8 = 1;

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

/// Adds a route. `EEXIST`: there is one of the same destination and metric.
pub fn add_route(route: &Route) -> Result<(), Refusal> {
    let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    exchange(RTM_NEWROUTE, flags, &rtmsg(route)).map(drop)
}

/// Adds a route beside one of the same destination and metric, which counts for as long as it is there. `EEXIST`: there is this
/// very one.
pub fn add_route_beside(route: &Route) -> Result<(), Refusal> {
    let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND;
    exchange(RTM_NEWROUTE, flags, &rtmsg(route)).map(drop)
}

/// The interface that packets to an address leave by, and how many bits of it the route counts; a kernel before 4.13 says that
/// all count.
///
/// # Errors
///
/// `ENETUNREACH`: there is no route; others of rtnetlink.
pub fn route_of(address: IpAddr) -> Result<(u8, u32), Refusal> {
    let (family, bits) = if address.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
    let mut body = vec![family as u8, bits, 0, 0, 0, 0, 0, 0];
    body.extend(RTM_F_FIB_MATCH.to_ne_bytes());
    destination(&mut body, address);
    let answer = exchange(RTM_GETROUTE, NLM_F_REQUEST, &body)?;
    let found = answer.get(HEADER..).unwrap_or_default();
    let mut all = attributes(found.get(RTMSG..).unwrap_or_default());
    let interface = all.find(|(kind, _)| *kind == RTA_OIF).and_then(|(_, value)| word(value, 0));
    Ok((found.get(1).copied().unwrap_or_default(), interface.unwrap_or_default()))
}

/// Removes a route. `ESRCH`: there is none such.
pub fn remove_route(route: &Route) -> Result<(), Refusal> {
    exchange(RTM_DELROUTE, NLM_F_REQUEST | NLM_F_ACK, &rtmsg(route)).map(drop)
}

fn rtmsg(route: &Route) -> Vec<u8> {
    let (family, scope) = match route.version {
        IpVersion::V4 => (libc::AF_INET, RT_SCOPE_LINK),
        IpVersion::V6 => (libc::AF_INET6, RT_SCOPE_UNIVERSE),
    };
    let bits = route.destination.map_or(0, |(_, bits)| bits);
    // `struct rtmsg`: family, bits of destination and source, type of service, table, protocol, scope, type, flags.
    let mut body =
        vec![family as u8, bits, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, 0, 0, 0, 0];
    if let Some((address, _)) = route.destination {
        destination(&mut body, address);
    }
    attribute(&mut body, RTA_OIF, &route.interface.to_ne_bytes());
    attribute(&mut body, RTA_PRIORITY, &route.metric.to_ne_bytes());
    body
}

fn destination(body: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => attribute(body, RTA_DST, &address.octets()),
        IpAddr::V6(address) => attribute(body, RTA_DST, &address.octets()),
    }
}
