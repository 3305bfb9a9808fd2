//! Which way the kernel sends a packet: its own decision, with policy rules (`inet_rtm_getroute()` in net/ipv4/route.c,
//! `inet6_rtm_getroute()` in net/ipv6/route.c).

use super::address::{address_bytes, family, read_address};
use super::batch::Batches;
use super::route::RTMSG;
use super::{Attributes, Message, Netlink, Refusal};
use libc::{RTA_DST, RTA_GATEWAY, RTA_IIF, RTA_MARK, RTA_METRICS, RTA_OIF, RTA_SRC, RTM_GETROUTE};
use std::io;
use std::net::IpAddr;

/// `include/uapi/linux/rtnetlink.h`, of which `libc` has these for glibc alone.
const RTA_VIA: u16 = 18;
const RTA_ENCAP: u16 = 22;
/// The same; ports are in network byte order. Linux 4.18.
const RTA_IP_PROTO: u16 = 27;
const RTA_SPORT: u16 = 28;
const RTA_DPORT: u16 = 29;
/// In `RTA_METRICS`.
const RTAX_MTU: u16 = 2;
/// `rtm_type` in `struct rtmsg`.
const TYPE: usize = 7;

/// A packet whose way is in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Where it goes to.
    pub destination: IpAddr,
    /// Where it comes from. The kernel refuses an IPv4 packet from an interface without it.
    pub source: Option<IpAddr>,
    /// Number of the interface it arrives on; `None`: this machine sends it.
    pub input: Option<u32>,
    /// Its mark; 0: none.
    pub mark: u32,
    /// Its TOS or traffic class, without the two bits of ECN.
    pub tos: u8,
    /// IP protocol number, for rules that match it: TCP, UDP or ICMP, others are refused. Linux 4.18; earlier kernels have no
    /// such rules.
    pub protocol: Option<u8>,
    /// Ports, source and destination; only with a protocol.
    pub ports: Option<(u16, u16)>,
}

impl Lookup {
    /// A packet that this machine sends.
    pub const fn to(destination: IpAddr) -> Lookup {
        Lookup { destination, source: None, input: None, mark: 0, tos: 0, protocol: None, ports: None }
    }

    fn message(&self) -> Message {
        let bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
        let mut structure = [0; RTMSG];
        // `struct rtmsg`: family, bits of destination and source.
        [structure[0], structure[1]] = [family(self.destination), bits(self.destination)];
        // Bits of the source, type of service.
        [structure[2], structure[3]] = [self.source.map_or(0, bits), self.tos];
        let mut message =
            Message::new(RTM_GETROUTE, &structure).with(RTA_DST, &address_bytes(self.destination));
        if let Some(source) = self.source {
            message = message.with(RTA_SRC, &address_bytes(source));
        }
        if let Some(input) = self.input {
            message = message.with(RTA_IIF, &input.to_ne_bytes());
        }
        if self.mark != 0 {
            message = message.with(RTA_MARK, &self.mark.to_ne_bytes());
        }
        if let Some(protocol) = self.protocol {
            message = message.with(RTA_IP_PROTO, &[protocol]);
        }
        if let Some((source, destination)) = self.ports {
            message =
                message.with(RTA_SPORT, &source.to_be_bytes()).with(RTA_DPORT, &destination.to_be_bytes());
        }
        message
    }
}

/// The way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// `RTN_*`: 1 is unicast, 2 for this machine itself.
    pub kind: u8,
    /// Number of the interface that it leaves by; 0: none.
    pub interface: u32,
    /// The next hop, of an IPv4 packet also an IPv6 address (`RTA_VIA`); `None`: the destination itself.
    pub gateway: Option<IpAddr>,
    /// The MTU that counts for this route, bytes, by its configuration or by path MTU discovery; `None`: that of the interface.
    pub mtu: Option<u32>,
    /// Whether a header is put in front of it (`RTA_ENCAP`: MPLS, SRv6, tunnels by route).
    pub is_encapsulated: bool,
}

impl Found {
    fn read(body: &[u8]) -> Found {
        let attributes = Attributes::behind(RTMSG, body);
        // `struct rtvia`: family, address.
        let via = || read_address(attributes.get(RTA_VIA)?.get(2..)?);
        Found {
            kind: body.get(TYPE).copied().unwrap_or_default(),
            interface: attributes.u32(RTA_OIF).unwrap_or_default(),
            gateway: attributes.get(RTA_GATEWAY).and_then(read_address).or_else(via),
            mtu: attributes.nest(RTA_METRICS).and_then(|metrics| metrics.u32(RTAX_MTU)),
            is_encapsulated: attributes.has(RTA_ENCAP),
        }
    }
}

/// A socket for questions about routes.
#[derive(Debug)]
pub struct Routes(Batches);

impl Routes {
    /// In the network namespace of the calling thread. Error: those of socket(2).
    pub fn open() -> io::Result<Routes> {
        Netlink::route().and_then(Batches::new).map(Routes)
    }

    /// The way of one packet. Errors are those of the route: `ENETUNREACH`: there is none; `EHOSTUNREACH`: it says so, or the
    /// interface does not forward; `EACCES`: it is prohibited; `EINVAL`: it discards, or source and destination are none of a
    /// forwarded packet; `EXDEV`: the source has another way (`rp_filter`); `ENODEV`: there is no such interface.
    pub fn find(&mut self, lookup: &Lookup) -> Result<Found, Refusal> {
        self.find_all(std::slice::from_ref(lookup)).pop().unwrap_or_else(|| Err(unanswered(&Ok(()))))
    }

    /// The ways of many packets in their order, 64 in a system call. Errors: those of [`Routes::find`], each for itself; an error
    /// of the socket for all that were not answered.
    pub fn find_all(&mut self, lookups: &[Lookup]) -> Vec<Result<Found, Refusal>> {
        let mut found: Vec<Option<Result<Found, Refusal>>> = lookups.iter().map(|_| None).collect();
        let result = self.0.exchange(lookups, Lookup::message, |position, answer| {
            if let Some(place) = found.get_mut(position) {
                place.get_or_insert_with(|| answer.map(Found::read));
            }
        });
        found.into_iter().map(|found| found.unwrap_or_else(|| Err(unanswered(&result)))).collect()
    }
}

/// Why a question has no answer.
fn unanswered(result: &io::Result<()>) -> Refusal {
    let error = match result {
        Err(error) => error.raw_os_error().map_or(error.kind().into(), io::Error::from_raw_os_error),
        Ok(()) => io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel answered without data"),
    };
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::RTN_UNICAST;
    use testkit::netns::{Namespace, Veth, probe};
    use testkit::require;

    #[test]
    fn an_answer_is_read_and_no_piece_of_one_panics() {
        let mut structure = [0; RTMSG];
        structure[TYPE] = RTN_UNICAST;
        let via = [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &[0xfe, 0x80], &[0; 13], &[1]].concat();
        let message = Message::new(24, &structure)
            .with(RTA_OIF, &7_u32.to_ne_bytes())
            .with(RTA_VIA, &via)
            .with_nest(RTA_METRICS, |metrics| metrics.with(RTAX_MTU, &1400_u32.to_ne_bytes()));
        let body = message.bytes(0, 0).expect("short").split_off(16);
        let gateway = Some("fe80::1".parse().expect("an address"));
        let whole =
            Found { kind: RTN_UNICAST, interface: 7, gateway, mtu: Some(1400), is_encapsulated: false };
        assert_eq!(Found::read(&body), whole);
        for end in 0..body.len() {
            Found::read(body.get(..end).expect("within"));
        }
    }

    #[test]
    fn the_kernel_names_the_way_of_each_packet_in_order() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth::pair("lan0", "wan0")).expect("a pair");
        let ip = |arguments: &str| {
            let arguments: Vec<&str> = arguments.split(' ').collect();
            namespace.run("ip", &arguments).expect("done");
        };
        ip("address add 10.7.0.1/24 dev lan0");
        ip("address add 10.8.0.1/24 dev wan0");
        ip("route add default via 10.8.0.2 mtu 1492");
        ip("route add 10.66.0.0/16 via 10.7.0.9");
        ip("route add prohibit 10.9.0.0/16");
        ip("route add 10.66.0.0/16 via 10.8.0.3 table 77");
        ip("rule add fwmark 5 table 77");
        namespace.run("sysctl", &["-qw", "net.ipv4.ip_forward=1"]).expect("forwarding");
        let [lan, wan] = namespace
            .inside(|| ["lan0", "wan0"].map(|name| super::super::link_by_name(name).expect("there").index));
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let plain = Lookup::to(address("10.66.1.1"));
        let forwarded = Lookup { source: Some(address("10.7.0.44")), input: Some(lan), ..plain };
        let lookups = [
            Lookup::to(address("198.51.100.7")),
            plain,
            Lookup { mark: 5, ..plain },
            Lookup { mark: 5, ..forwarded },
            Lookup::to(address("10.9.1.1")),
            Lookup::to(address("10.7.0.1")),
            Lookup { input: Some(9999), ..forwarded },
        ];
        // More than go into a datagram.
        let many: Vec<Lookup> = lookups.iter().copied().cycle().take(7 * 40).collect();
        let found = namespace.inside(|| Routes::open().expect("a socket").find_all(&many));
        let way = |interface, gateway: &str, mtu| {
            let gateway = Some(address(gateway));
            Ok(Found { kind: RTN_UNICAST, interface, gateway, mtu, is_encapsulated: false })
        };
        assert_eq!(found.len(), many.len());
        for round in found.chunks(7) {
            let read = |place: usize| {
                let found = round.get(place).expect("seven");
                found.as_ref().copied().map_err(|refusal| refusal.error.raw_os_error())
            };
            assert_eq!(read(0), way(wan, "10.8.0.2", Some(1492)));
            assert_eq!(read(1), way(lan, "10.7.0.9", None));
            assert_eq!(read(2), way(wan, "10.8.0.3", None));
            assert_eq!(read(3), way(wan, "10.8.0.3", None));
            assert_eq!(read(4), Err(Some(libc::EACCES)));
            assert_eq!(read(5).map(|found| found.kind), Ok(libc::RTN_LOCAL));
            assert_eq!(read(6), Err(Some(libc::ENODEV)));
        }
    }

    #[test]
    fn the_way_of_ipv6_and_of_ipv4_over_ipv6_is_named() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        let has_ipv6 = namespace.inside(|| {
            let switch = |scope| format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
            ["all", "default"].iter().try_for_each(|scope| std::fs::write(switch(scope), "0"))
        });
        let missing = |error| testkit::Missing(format!("IPv6: {error}"));
        let Some(()) = require("ipv6", has_ipv6.map_err(missing)) else { return };
        namespace.veth(&Veth::pair("lan0", "wan0")).expect("a pair");
        for arguments in [
            "address add 2001:db8:7::1/64 dev lan0 nodad",
            "address add 2001:db8:8::1/64 dev wan0 nodad",
            "route add default via 2001:db8:8::2",
            "route add 2001:db8:66::/48 via fe80::66 dev wan0 mtu 1480",
            "address add 10.7.0.1/24 dev lan0",
            "route add 10.66.0.0/16 via inet6 fe80::66 dev wan0",
        ] {
            namespace.run("ip", &arguments.split(' ').collect::<Vec<_>>()).expect(arguments);
        }
        namespace.run("sysctl", &["-qw", "net.ipv6.conf.all.forwarding=1"]).expect("forwarding");
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let found = namespace.inside(|| {
            let [lan, wan] =
                ["lan0", "wan0"].map(|name| super::super::link_by_name(name).expect("there").index);
            let forwarded = |to| Lookup {
                source: Some(address("2001:db8:7::44")),
                input: Some(lan),
                ..Lookup::to(address(to))
            };
            let lookups =
                [forwarded("2001:db8:99::1"), forwarded("2001:db8:66::1"), Lookup::to(address("10.66.0.1"))];
            let mut routes = Routes::open().expect("a socket");
            let found = routes.find_all(&lookups).into_iter().map(|found| found.expect("a way"));
            found.inspect(|found| assert_eq!(found.interface, wan)).collect::<Vec<_>>()
        });
        let ways: Vec<_> = found.iter().map(|found| (found.gateway, found.mtu)).collect();
        let expected = [("2001:db8:8::2", None), ("fe80::66", Some(1480)), ("fe80::66", None)];
        assert_eq!(ways, expected.map(|(gateway, mtu)| (Some(address(gateway)), mtu)));
    }
}
