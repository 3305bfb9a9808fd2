//! Default routes.

use super::message::attribute;
use super::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, Refusal, exchange};
use wire::IpVersion;

const RTM_NEWROUTE: u16 = 24;
const RTA_OIF: u16 = 4;
const RTA_PRIORITY: u16 = 6;

/// linux/rtnetlink.h: main table; set up by an administrator; straight through the interface; to a station.
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RTN_UNICAST: u8 = 1;

/// A default route through a point-to-point interface, which goes with the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultRoute {
    /// Of which packets.
    pub version: IpVersion,
    /// Number of the interface.
    pub interface: u32,
    /// Of several default routes the kernel takes that of the least metric.
    pub metric: u32,
}

/// Adds a default route. `EEXIST`: there is one of the same metric.
pub fn add_default_route(route: &DefaultRoute) -> Result<(), Refusal> {
    let (family, scope) = match route.version {
        IpVersion::V4 => (libc::AF_INET, RT_SCOPE_LINK),
        IpVersion::V6 => (libc::AF_INET6, RT_SCOPE_UNIVERSE),
    };
    // `struct rtmsg`: family, bits of destination and source, type of service, table, protocol, scope, type, flags.
    let mut body = vec![family as u8, 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, 0, 0, 0, 0];
    attribute(&mut body, RTA_OIF, &route.interface.to_ne_bytes());
    attribute(&mut body, RTA_PRIORITY, &route.metric.to_ne_bytes());
    let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    exchange(RTM_NEWROUTE, flags, &body).map(drop)
}
