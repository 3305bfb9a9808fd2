//! Routes through interfaces without a next station.

use super::message::{attribute, attributes, messages, word};
use super::{
    HEADER, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, RTM_NEWROUTE, Refusal, exchange, request,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::net::IpAddr;
use wire::IpVersion;

const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const NLM_F_APPEND: u16 = 0x800;
const NLM_F_DUMP: u16 = 0x300;
/// Answers that are read of a list of routes. The kernel names default routes early.
const MOST_DATAGRAMS: usize = 64;
/// Asks for the route itself, and not for what it makes of a packet (Linux 4.13).
const RTM_F_FIB_MATCH: u32 = 0x2000;
/// `struct rtmsg`.
const RTMSG: usize = 12;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
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
    pub version: IpVersion,
    /// Where to: an address and the bits of it that count; `None`: anywhere.
    pub destination: Option<(IpAddr, u8)>,
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

/// A route of somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The next station; `None`: straight through the interface.
    pub gateway: Option<IpAddr>,
    /// Number of the interface; 0: it has several, or none.
    pub interface: u32,
}

/// The default route of the main table that has this metric; `None`: there is none, or it stands behind very many others.
pub fn default_route(version: IpVersion, metric: u32) -> Result<Option<Other>, Refusal> {
    let family = if version == IpVersion::V4 { libc::AF_INET } else { libc::AF_INET6 };
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut body = vec![family as u8];
    body.resize(RTMSG, 0);
    socket.send(&request(RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, &body), 0)?;
    for _ in 0..MOST_DATAGRAMS {
        let (answer, _) = socket.recv_from_full()?;
        for (kind, body) in messages(&answer) {
            match kind {
                RTM_NEWROUTE => {
                    if let Some((_, other)) = read_default(body).filter(|(of, _)| *of == metric) {
                        return Ok(Some(other));
                    }
                }
                _ => return Ok(None),
            }
        }
    }
    Ok(None)
}

/// Metric and way of a default route of the main table.
fn read_default(body: &[u8]) -> Option<(u32, Other)> {
    let (head, rest) = body.split_at_checked(RTMSG)?;
    // `struct rtmsg`: bits of the destination, table, type.
    let is_default = matches!(*head, [_, 0, _, _, RT_TABLE_MAIN, _, _, RTN_UNICAST, ..]);
    let (mut metric, mut other) = (0, Other { gateway: None, interface: 0 });
    for (kind, value) in attributes(rest) {
        match kind {
            RTA_OIF => other.interface = word(value, 0).unwrap_or_default(),
            RTA_PRIORITY => metric = word(value, 0).unwrap_or_default(),
            RTA_GATEWAY => {
                let four = <[u8; 4]>::try_from(value).map(IpAddr::from);
                other.gateway = four.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok();
            }
            _ => {}
        }
    }
    is_default.then_some((metric, other))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_route_is_told_from_others_and_cut_short_nothing_panics() {
        let route = |bits, metric: u32| {
            let mut body =
                vec![libc::AF_INET as u8, bits, 0, 0, RT_TABLE_MAIN, 3, 0, RTN_UNICAST, 0, 0, 0, 0];
            attribute(&mut body, RTA_GATEWAY, &[192, 0, 2, 1]);
            attribute(&mut body, RTA_OIF, &7_u32.to_ne_bytes());
            attribute(&mut body, RTA_PRIORITY, &metric.to_ne_bytes());
            body
        };
        let whole = route(0, 100);
        let other = Other { gateway: Some([192, 0, 2, 1].into()), interface: 7 };
        assert_eq!(read_default(&whole), Some((100, other)));
        assert_eq!(read_default(&route(24, 100)), None);
        (0..whole.len()).for_each(|end| {
            let _ = read_default(&whole[..end]);
        });
    }
}
