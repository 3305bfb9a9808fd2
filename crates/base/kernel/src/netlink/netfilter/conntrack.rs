//! Connections that the kernel tracks (`include/uapi/linux/netfilter/nfnetlink_conntrack.h`, `ctnetlink_fill_info()` in
//! net/netfilter/nf_conntrack_netlink.c).

use super::{HEADER, request};
use crate::netlink::{Attributes, Netlink, Refusal};
use std::net::IpAddr;

/// `NFNL_SUBSYS_CTNETLINK`, `IPCTNL_MSG_CT_GET`.
const SUBSYSTEM: u8 = 1;
const GET: u8 = 1;

/// `CTA_*`.
const TUPLE_ORIG: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const STATUS: u16 = 3;
const PROTOINFO: u16 = 4;
const HELP: u16 = 5;
const MARK: u16 = 8;

/// `IPS_*` (`include/uapi/linux/netfilter/nf_conntrack_common.h`).
const SEEN_REPLY: u32 = 1 << 1;
const ASSURED: u32 = 1 << 2;
const OFFLOAD: u32 = 1 << 14;
const HW_OFFLOAD: u32 = 1 << 15;

/// A connection, as its message has it.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a>(Attributes<'a>);

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// Where its packets come from.
    pub source: IpAddr,
    /// Where they go to.
    pub destination: IpAddr,
    /// Ports of TCP, UDP and their like: source, destination.
    pub ports: Option<(u16, u16)>,
}

impl Connection<'_> {
    fn status(&self) -> u32 {
        self.0.be32(STATUS).unwrap_or_default()
    }

    /// IP protocol number.
    pub fn protocol(&self) -> Option<u8> {
        /// `CTA_TUPLE_PROTO`, `CTA_PROTO_NUM`.
        const PROTO: u16 = 2;
        const NUM: u16 = 1;
        self.0.nest(TUPLE_ORIG)?.nest(PROTO)?.u8(NUM)
    }

    /// The direction of its first packet.
    pub fn original(&self) -> Option<Direction> {
        Direction::read(self.0.nest(TUPLE_ORIG)?)
    }

    /// The other direction, as it is before addresses are translated back.
    pub fn reply(&self) -> Option<Direction> {
        Direction::read(self.0.nest(TUPLE_REPLY)?)
    }

    /// Whether packets of both directions were seen.
    pub fn is_replied(&self) -> bool {
        self.status() & SEEN_REPLY != 0
    }

    /// Whether it stays where the table is full.
    pub fn is_assured(&self) -> bool {
        self.status() & ASSURED != 0
    }

    /// Whether it is in a flowtable.
    pub fn is_offloaded(&self) -> bool {
        self.status() & (OFFLOAD | HW_OFFLOAD) != 0
    }

    /// Whether a device forwards it.
    pub fn is_in_hardware(&self) -> bool {
        self.status() & HW_OFFLOAD != 0
    }

    /// The state of TCP as `TCP_CONNTRACK_*` numbers it; 3 is established.
    pub fn tcp_state(&self) -> Option<u8> {
        /// `CTA_PROTOINFO_TCP`, `CTA_PROTOINFO_TCP_STATE`.
        const TCP: u16 = 1;
        const STATE: u16 = 1;
        self.0.nest(PROTOINFO)?.nest(TCP)?.u8(STATE)
    }

    /// Its mark; 0: none.
    pub fn mark(&self) -> u32 {
        self.0.be32(MARK).unwrap_or_default()
    }

    /// Whether a helper follows what it carries (FTP, SIP).
    pub fn has_helper(&self) -> bool {
        self.0.has(HELP)
    }
}

impl Direction {
    fn read(tuple: Attributes<'_>) -> Option<Direction> {
        /// `CTA_TUPLE_IP`, `CTA_TUPLE_PROTO`; within them `CTA_IP_*` and `CTA_PROTO_SRC_PORT`, `CTA_PROTO_DST_PORT`.
        const IP: u16 = 1;
        const PROTO: u16 = 2;
        let (ip, proto) = (tuple.nest(IP)?, tuple.nest(PROTO));
        let address = |four: u16, six: u16| {
            let of_four = || Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(four)?).ok()?));
            of_four().or_else(|| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(six)?).ok()?)))
        };
        let ports = proto.and_then(|proto| Some((proto.be16(2)?, proto.be16(3)?)));
        Some(Direction { source: address(1, 3)?, destination: address(2, 4)?, ports })
    }
}

/// Hands every connection of this network namespace to `take`, one after the other, without keeping any. The table goes on changing
/// meanwhile: one may be missed or come twice.
///
/// Errors: `EPERM`: this process may not; others: this kernel tracks no connections.
pub fn each(mut take: impl FnMut(Connection<'_>)) -> Result<(), Refusal> {
    Netlink::netfilter()?.each(&request(SUBSYSTEM, GET, 0), |body| {
        take(Connection(Attributes::behind(HEADER, body)));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Message;

    fn message(status: u32) -> Message {
        let direction = |from: [u8; 4], to: [u8; 4], ports: [u16; 2]| {
            move |tuple: Message| {
                let ports = ports.map(u16::to_be_bytes);
                tuple
                    .with_nest(1, |ip| ip.with(1, &from).with(2, &to))
                    .with_nest(2, |proto| proto.with(1, &[6]).with(2, &ports[0]).with(3, &ports[1]))
            }
        };
        Message::new(0, &[])
            .with_nest(TUPLE_ORIG, direction([192, 0, 2, 1], [198, 51, 100, 1], [5000, 443]))
            .with_nest(TUPLE_REPLY, direction([198, 51, 100, 1], [203, 0, 113, 1], [443, 6000]))
            .with(STATUS, &status.to_be_bytes())
            .with_nest(PROTOINFO, |info| info.with_nest(1, |tcp| tcp.with(1, &[3])))
            .with(MARK, &7_u32.to_be_bytes())
    }

    #[test]
    fn a_connection_is_read_and_no_piece_of_one_panics() {
        let whole = message(SEEN_REPLY | OFFLOAD);
        let read = Connection(Attributes::new(whole.attributes()));
        assert_eq!((read.protocol(), read.tcp_state(), read.mark()), (Some(6), Some(3), 7));
        assert!(read.is_replied() && read.is_offloaded() && !read.is_in_hardware());
        assert!(!read.has_helper() && !read.is_assured());
        let original = read.original().expect("a direction");
        assert_eq!((original.source, original.ports), ([192, 0, 2, 1].into(), Some((5000, 443))));
        assert_eq!(read.reply().expect("a direction").destination, IpAddr::from([203, 0, 113, 1]));
        for end in 0..whole.attributes().len() {
            let cut = Connection(Attributes::new(whole.attributes().get(..end).expect("within")));
            let _ = (cut.original(), cut.reply(), cut.tcp_state(), cut.is_offloaded());
        }
        let in_hardware = message(HW_OFFLOAD);
        assert!(Connection(Attributes::new(in_hardware.attributes())).is_in_hardware());
    }
}
