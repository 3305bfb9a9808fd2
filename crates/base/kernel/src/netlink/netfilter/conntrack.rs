//! Connections that the kernel tracks (`include/uapi/linux/netfilter/nfnetlink_conntrack.h`, `ctnetlink_fill_info()` in
//! net/netfilter/nf_conntrack_netlink.c).

mod change;
mod events;
#[cfg(test)]
mod live_tests;

pub use change::{Keep, Key, Update, remove};
pub use events::{ConnectionChange, ConnectionEvents};

use super::{HEADER, request};
use crate::netlink::{Attributes, Message, Netlink, Refusal};
use std::net::IpAddr;

/// `NFNL_SUBSYS_CTNETLINK`, `IPCTNL_MSG_CT_*`.
const SUBSYSTEM: u8 = 1;
const NEW: u8 = 0;
const GET: u8 = 1;
const DELETE: u8 = 2;

/// `CTA_*`.
const TUPLE_ORIG: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const STATUS: u16 = 3;
const PROTOINFO: u16 = 4;
const HELP: u16 = 5;
const TIMEOUT: u16 = 7;
const MARK: u16 = 8;
const ID: u16 = 12;
const ZONE: u16 = 18;

/// `CTA_TUPLE_IP`, `CTA_TUPLE_PROTO`; within them `CTA_IP_*` and `CTA_PROTO_*`.
const IP: u16 = 1;
const V4_SOURCE: u16 = 1;
const V4_DESTINATION: u16 = 2;
const V6_SOURCE: u16 = 3;
const V6_DESTINATION: u16 = 4;
const PROTO: u16 = 2;
const NUM: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;

/// `CTA_PROTOINFO_TCP`, `CTA_PROTOINFO_TCP_*`.
const TCP: u16 = 1;
const STATE: u16 = 1;
const FLAGS_ORIGINAL: u16 = 4;
const FLAGS_REPLY: u16 = 5;

/// `IP_CT_TCP_FLAG_BE_LIBERAL` (`include/uapi/linux/netfilter/nf_conntrack_tcp.h`).
const BE_LIBERAL: u8 = 0x08;

/// `IPS_*` (`include/uapi/linux/netfilter/nf_conntrack_common.h`).
const SEEN_REPLY: u32 = 1 << 1;
const ASSURED: u32 = 1 << 2;
const DYING: u32 = 1 << 9;
const OFFLOAD: u32 = 1 << 14;
const HW_OFFLOAD: u32 = 1 << 15;

/// A connection, as its message has it.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a>(Attributes<'a>);

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// Whether it ended and is being taken out of the table.
    pub fn is_dying(&self) -> bool {
        self.status() & DYING != 0
    }

    fn tcp(&self) -> Option<Attributes<'_>> {
        self.0.nest(PROTOINFO)?.nest(TCP)
    }

    /// The state of TCP as `TCP_CONNTRACK_*` numbers it; 3 is established. A notification has it only where it changed.
    pub fn tcp_state(&self) -> Option<u8> {
        self.tcp()?.u8(STATE)
    }

    /// Whether a sequence number outside the window makes a packet of neither direction invalid
    /// (`IP_CT_TCP_FLAG_BE_LIBERAL`); `None`: it is not TCP, or the message does not have it.
    pub fn is_liberal(&self) -> Option<bool> {
        let tcp = self.tcp()?;
        Some((tcp.u8(FLAGS_ORIGINAL)? & tcp.u8(FLAGS_REPLY)? & BE_LIBERAL) != 0)
    }

    /// Seconds until it ends if no packet comes. The message of an end has none.
    pub fn timeout(&self) -> Option<u32> {
        self.0.be32(TIMEOUT)
    }

    /// Its zone, which is part of its key; 0: the one of all that were given none.
    pub fn zone(&self) -> u16 {
        self.0.be16(ZONE).unwrap_or_default()
    }

    /// A number that another connection of the same key has not, as long as both are remembered.
    pub fn id(&self) -> Option<u32> {
        self.0.be32(ID)
    }

    /// Its mark; 0: none.
    pub fn mark(&self) -> u32 {
        self.0.be32(MARK).unwrap_or_default()
    }

    /// Whether a helper follows what it carries (FTP, SIP). A notification says so only when the helper is attached.
    pub fn has_helper(&self) -> bool {
        self.0.has(HELP)
    }
}

impl Direction {
    fn read(tuple: Attributes<'_>) -> Option<Direction> {
        let (ip, proto) = (tuple.nest(IP)?, tuple.nest(PROTO));
        let address = |four: u16, six: u16| {
            let of_four = || Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(four)?).ok()?));
            of_four().or_else(|| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(six)?).ok()?)))
        };
        let ports = proto.and_then(|proto| Some((proto.be16(SOURCE_PORT)?, proto.be16(DESTINATION_PORT)?)));
        Some(Direction {
            source: address(V4_SOURCE, V6_SOURCE)?,
            destination: address(V4_DESTINATION, V6_DESTINATION)?,
            ports,
        })
    }

    /// The tuple of this direction as attribute `kind`.
    fn write(&self, message: Message, kind: u16, protocol: u8) -> Message {
        let address = |ip: Message, address: IpAddr, four: u16, six: u16| match address {
            IpAddr::V4(address) => ip.with(four, &address.octets()),
            IpAddr::V6(address) => ip.with(six, &address.octets()),
        };
        let addresses = |ip| {
            let ip = address(ip, self.source, V4_SOURCE, V6_SOURCE);
            address(ip, self.destination, V4_DESTINATION, V6_DESTINATION)
        };
        let proto = |proto: Message| match (proto.with(NUM, &[protocol]), self.ports) {
            (proto, Some((source, destination))) => proto
                .with(SOURCE_PORT, &source.to_be_bytes())
                .with(DESTINATION_PORT, &destination.to_be_bytes()),
            (proto, None) => proto,
        };
        message.with_nest(kind, |tuple| tuple.with_nest(IP, addresses).with_nest(PROTO, proto))
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
            .with_nest(PROTOINFO, |info| {
                info.with_nest(1, |tcp| tcp.with(1, &[3]).with(4, &[0x0a, 0]).with(5, &[0x08, 0]))
            })
            .with(TIMEOUT, &432_000_u32.to_be_bytes())
            .with(MARK, &7_u32.to_be_bytes())
            .with(ID, &9_u32.to_be_bytes())
            .with(ZONE, &5_u16.to_be_bytes())
    }

    #[test]
    fn a_connection_is_read_and_no_piece_of_one_panics() {
        let whole = message(SEEN_REPLY | OFFLOAD);
        let read = Connection(Attributes::new(whole.attributes()));
        assert_eq!((read.protocol(), read.tcp_state(), read.mark()), (Some(6), Some(3), 7));
        assert!(read.is_replied() && read.is_offloaded() && !read.is_in_hardware());
        assert!(!read.has_helper() && !read.is_assured());
        assert_eq!((read.zone(), read.timeout(), read.id()), (5, Some(432_000), Some(9)));
        assert!(read.is_liberal() == Some(true) && !read.is_dying());
        let original = read.original().expect("a direction");
        assert_eq!((original.source, original.ports), ([192, 0, 2, 1].into(), Some((5000, 443))));
        assert_eq!(read.reply().expect("a direction").destination, IpAddr::from([203, 0, 113, 1]));
        for end in 0..whole.attributes().len() {
            let cut = Connection(Attributes::new(whole.attributes().get(..end).expect("within")));
            let _ = (cut.original(), cut.reply(), cut.tcp_state(), cut.is_offloaded());
            let _ = (cut.zone(), cut.timeout(), cut.id(), cut.is_liberal());
        }
        let written = Message::new(0, &[]);
        let written = original.write(written, TUPLE_ORIG, 6);
        let again = Connection(Attributes::new(written.attributes()));
        assert_eq!((again.original(), again.protocol()), (Some(original), Some(6)));
        let in_hardware = message(HW_OFFLOAD);
        assert!(Connection(Attributes::new(in_hardware.attributes())).is_in_hardware());
    }
}
