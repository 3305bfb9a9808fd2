//! Every encapsulation and every odd case: a frame, and what becomes of it.

use crate::programs::packet::{Packet, Place, TCP, UDP, eth};
use rxlane_xdp::layout::Class::{self, Mpls, Plain, Pppoe, Qinq, Vlan};
use rxlane_xdp::layout::Reason::{
    self, Malformed, NotIp, PppControl, PppOther, PppoeDiscovery, TooDeep, Truncated,
};

pub struct Fixture {
    pub name: &'static str,
    pub frame: Vec<u8>,
    /// The flow as its key is printed, of a steered frame.
    pub expected: Result<(Class, &'static str), Reason>,
}

const PORTS4: &str = "192.0.2.1:49152 > 198.51.100.7:443";
const ADDRESSES4: &str = "192.0.2.1 > 198.51.100.7";
const PORTS6: &str = "[2001:db8::1]:49152 > [2001:db8::2]:443";
const ADDRESSES6: &str = "2001:db8::1 > 2001:db8::2";

const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const AH: u8 = 51;
const ICMPV6: u8 = 58;
const NO_NEXT: u8 = 59;
const OPTIONS: u8 = 60;
const SCTP: u8 = 132;

fn steered(name: &'static str, class: Class, flow: &'static str, frame: impl Into<Vec<u8>>) -> Fixture {
    Fixture { name, frame: frame.into(), expected: Ok((class, flow)) }
}

fn left(name: &'static str, reason: Reason, frame: impl Into<Vec<u8>>) -> Fixture {
    Fixture { name, frame: frame.into(), expected: Err(reason) }
}

fn tcp4(under: Packet) -> Packet {
    under.ipv4(TCP).tcp().payload(24)
}

fn tcp6(under: Packet) -> Packet {
    under.ipv6(TCP).tcp().payload(24)
}

fn tags(count: u16) -> Packet {
    (0..count).fold(eth(), |packet, tag| {
        packet.tag([0x88a8, 0x8100, 0x9100, 0x9200, 0x9300][usize::from(tag) % 5], tag)
    })
}

fn labels(count: u32, under: Packet) -> Packet {
    (1..=count).fold(under, |packet, label| packet.mpls(label, label == count))
}

pub fn all() -> Vec<Fixture> {
    [encapsulations(), ethernet(), pppoe(), mpls(), ipv4(), ipv6(), extensions(), buffers()]
        .into_iter()
        .flatten()
        .collect()
}

fn encapsulations() -> Vec<Fixture> {
    vec![
        steered("IPv4", Plain, PORTS4, tcp4(eth())),
        steered("IPv6", Plain, PORTS6, tcp6(eth())),
        steered("one tag, IPv4", Vlan, PORTS4, tcp4(eth().tag(0x8100, 0xe023))),
        steered("one tag, IPv6", Vlan, PORTS6, tcp6(eth().tag(0x88a8, 35))),
        steered("two tags, IPv4", Qinq, PORTS4, tcp4(tags(2))),
        steered("two tags of one TPID, IPv6", Qinq, PORTS6, tcp6(eth().tag(0x8100, 1).tag(0x8100, 2))),
        steered("five tags, each of another TPID", Qinq, PORTS4, tcp4(tags(5))),
        steered("eight tags", Qinq, PORTS6, tcp6(tags(8))),
        steered("PPPoE, IPv4", Pppoe, PORTS4, tcp4(eth().pppoe())),
        steered("PPPoE, IPv6", Pppoe, PORTS6, tcp6(eth().pppoe())),
        steered("one tag, PPPoE, IPv4", Pppoe, PORTS4, tcp4(eth().tag(0x8100, 35).pppoe())),
        steered("two tags, PPPoE, IPv6", Pppoe, PORTS6, tcp6(tags(2).pppoe())),
        steered("eight tags, PPPoE, IPv4", Pppoe, PORTS4, tcp4(tags(8).pppoe())),
        steered("MPLS, IPv4", Mpls, PORTS4, tcp4(eth().mpls(16, true))),
        steered("tag, three labels, IPv6", Mpls, PORTS6, tcp6(labels(3, eth().tag(0x8100, 1)))),
        steered("PPPoE, MPLS, IPv4", Pppoe, PORTS4, tcp4(labels(2, eth().pppoe()))),
    ]
}

fn ethernet() -> Vec<Fixture> {
    vec![
        left("ARP", NotIp, eth().ethertype(0x0806).payload(28)),
        left("an EtherType that nobody knows", NotIp, eth().ethertype(0x9999).payload(46)),
        left("tag, ARP", NotIp, eth().tag(0x8100, 5).ethertype(0x0806).payload(28)),
        left("802.3 with LLC", NotIp, eth().ethertype(38).payload(38)),
        left("802.3, a length beyond the frame", NotIp, eth().ethertype(1400).payload(46)),
        left("a type field that is undefined", NotIp, eth().ethertype(1520).payload(46)),
        left("SNAP with IPv4", NotIp, {
            let snap = eth().ethertype(60).payload(8).set(Place::Frame, 14, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
            snap.ipv4(TCP).tcp()
        }),
        left("nine tags", TooDeep, tcp4(tags(9))),
        left("nine tags, cut in the ninth", TooDeep, tcp4(tags(9)).cut(14 + 8 * 4 + 2)),
        left("no whole MAC header", Truncated, tcp4(eth()).cut(13)),
        left("nothing at all", Truncated, Vec::new()),
        left("a MAC header alone", Truncated, tcp4(eth()).cut(14)),
        left("cut in the tag", Truncated, tcp4(eth().tag(0x8100, 1)).cut(17)),
        left("cut in the second tag", Truncated, tcp4(tags(2)).cut(21)),
    ]
}

fn pppoe() -> Vec<Fixture> {
    let session = || tcp4(eth().tag(0x8100, 35).pppoe());
    let control = |protocol| eth().pppoe().ppp(protocol).payload(8);
    vec![
        left("PPPoE discovery", PppoeDiscovery, eth().ethertype(0x8863).payload(20)),
        left("tags, PPPoE discovery, cut", PppoeDiscovery, tags(2).ethertype(0x8863).payload(3).bare()),
        left("LCP", PppControl, control(0xc021)),
        left("PAP", PppControl, control(0xc023)),
        left("CHAP", PppControl, control(0xc223)),
        left("EAP", PppControl, control(0xc227)),
        left("IPCP", PppControl, control(0x8021)),
        left("IPV6CP", PppControl, control(0x8057)),
        left("LCP with a length beyond the packet", PppControl, {
            eth().pppoe().ppp(0xc021).payload(4).set_pppoe(8, &[9, 1, 1, 0])
        }),
        left("a PPP protocol that is not IP", PppOther, control(0x0031)),
        left("compressed datagram", PppOther, control(0x00fd)),
        left("compressed protocol field", Malformed, eth().pppoe().ppp(0x2145).payload(40)),
        left("even protocol field", Malformed, control(0x0020)),
        left("version 2", Malformed, session().set_pppoe(0, &[0x21])),
        left("type 2", Malformed, session().set_pppoe(0, &[0x12])),
        left("a discovery code in a session", Malformed, session().set_pppoe(1, &[0x09])),
        left("PPPoE length one beyond the frame", Truncated, {
            session().set_pppoe(4, &67_u16.to_be_bytes()).bare()
        }),
        left("PPPoE length one short of the IP packet", Truncated, {
            session().set_pppoe(4, &65_u16.to_be_bytes()).bare()
        }),
        steered("PPPoE length longer than the IP packet", Pppoe, PORTS4, {
            session().trailer(9).set_pppoe(4, &70_u16.to_be_bytes()).bare()
        }),
        left("PPPoE length of 1", Truncated, session().set_pppoe(4, &[0, 1])),
        left("PPPoE length of 0", Truncated, session().set_pppoe(4, &[0, 0])),
        left("PPPoE length of 65,535", Truncated, session().set_pppoe(4, &[255, 255])),
        left("cut in the PPPoE header", Truncated, session().cut(18 + 5)),
        left("cut in the PPP protocol field", Truncated, session().cut(18 + 7)),
        left("PPPoE length ends in the IP header, padded", Truncated, {
            session().set_pppoe(4, &[0, 21]).set_ip(0, &[0x55])
        }),
        left("PPPoE length ends in the IP header, whose total length is 1", Truncated, {
            session().set_pppoe(4, &[0, 8]).set_ip(2, &[0, 1])
        }),
        left("PPPoE length ends in the IPv6 header, whose version is 5", Truncated, {
            tcp6(eth().pppoe()).set_pppoe(4, &[0, 41]).set_ip(0, &[0x50])
        }),
        left("IPv6 under the protocol of IPv4", Malformed, {
            eth().pppoe().ppp(0x0021).ipv6(TCP).tcp().payload(24)
        }),
        steered("a short packet, padded", Pppoe, PORTS4, eth().pppoe().ipv4(UDP).ports().payload(4)),
        steered("padding behind a PPPoE packet of 60 bytes", Pppoe, PORTS6, tcp6(eth().pppoe()).trailer(200)),
        steered("session 0xffff", Pppoe, PORTS4, session().set_pppoe(2, &[255, 255])),
    ]
}

fn mpls() -> Vec<Fixture> {
    vec![
        steered("upstream-assigned label", Mpls, PORTS4, {
            tcp4(eth().mpls(16, true)).set(Place::Frame, 12, &[0x88, 0x48])
        }),
        steered("eight labels", Mpls, PORTS4, tcp4(labels(8, eth()))),
        left("nine labels", TooDeep, tcp4(labels(9, eth()))),
        left("no bottom of stack", Truncated, eth().mpls(1, false).mpls(2, false).bare()),
        left("cut in a label", Truncated, tcp4(labels(2, eth())).cut(14 + 6)),
        left("a pseudowire with a control word", NotIp, eth().mpls(16, true).payload(0).payload(46)),
        left("nothing behind the bottom", NotIp, eth().mpls(16, true).bare()),
        left("PPPoE ends in the labels", Truncated, tcp4(labels(2, eth().pppoe())).set_pppoe(4, &[0, 9])),
        left("PPPoE ends behind the labels", NotIp, tcp4(labels(2, eth().pppoe())).set_pppoe(4, &[0, 10])),
    ]
}

fn ipv4() -> Vec<Fixture> {
    let vlan = || eth().tag(0x8100, 35);
    let whole = || tcp4(vlan());
    let fragment = |field: [u8; 2]| whole().set_ip(6, &field);
    vec![
        steered("UDP", Vlan, PORTS4, vlan().ipv4(UDP).ports().payload(4)),
        steered("SCTP", Vlan, PORTS4, vlan().ipv4(SCTP).ports().payload(28)),
        steered("ICMP", Vlan, ADDRESSES4, vlan().ipv4(ICMP).payload(28)),
        steered("ESP", Vlan, ADDRESSES4, vlan().ipv4(ESP).payload(28)),
        steered("no payload", Vlan, ADDRESSES4, vlan().ipv4(ICMP)),
        steered("options of four bytes", Vlan, PORTS4, vlan().ipv4_options(TCP, 1).tcp()),
        steered("options of 40 bytes", Vlan, PORTS4, vlan().ipv4_options(UDP, 10).ports().payload(4)),
        steered("do not fragment", Vlan, PORTS4, fragment([0x40, 0])),
        steered("the reserved flag", Vlan, PORTS4, fragment([0x80, 0])),
        steered("first fragment", Vlan, ADDRESSES4, fragment([0x20, 0])),
        steered("middle fragment", Vlan, ADDRESSES4, fragment([0x20, 1])),
        steered("last fragment", Vlan, ADDRESSES4, fragment([0, 0xb9])),
        steered("last fragment with the largest offset", Vlan, ADDRESSES4, fragment([0x1f, 0xff])),
        steered("first fragment without ports", Vlan, ADDRESSES4, vlan().ipv4(UDP).set_ip(6, &[0x20, 0])),
        left("version 5", Malformed, whole().set_ip(0, &[0x55])),
        left("header of 16 bytes", Malformed, whole().set_ip(0, &[0x44])),
        left("header longer than the packet", Malformed, {
            vlan().ipv4(UDP).ports().payload(4).set_ip(0, &[0x4f])
        }),
        left("total length of 0", Malformed, whole().set_ip(2, &[0, 0])),
        left("total length of 19", Malformed, whole().set_ip(2, &[0, 19])),
        left("total length one beyond the frame", Truncated, whole().set_ip(2, &[0, 65]).bare()),
        left("cut in the header", Truncated, whole().cut(18 + 19)),
        left("TCP without room for ports", Truncated, whole().set_ip(2, &[0, 23])),
        steered("TCP of four bytes", Vlan, PORTS4, whole().set_ip(2, &[0, 24])),
        steered("TCP with a data offset of 0", Vlan, PORTS4, whole().set(Place::Transport, 12, &[0])),
        steered("AH, then TCP", Vlan, PORTS4, vlan().ipv4(AH).authentication(TCP, 6).tcp()),
        steered("first fragment with AH", Vlan, ADDRESSES4, {
            vlan().ipv4(AH).authentication(TCP, 6).tcp().set_ip(6, &[0x20, 0])
        }),
        left("AH of two words", Malformed, vlan().ipv4(AH).authentication(TCP, 2).payload(12).tcp()),
        steered("padding behind", Vlan, PORTS4, whole().trailer(500)),
        steered("a super-packet of 66,000 bytes with length 0", Vlan, PORTS4, {
            whole().trailer(66_000).set_ip(2, &[0, 0])
        }),
    ]
}

fn ipv6() -> Vec<Fixture> {
    let whole = || tcp6(tags(2));
    vec![
        steered("UDP over IPv6", Qinq, PORTS6, tags(2).ipv6(UDP).ports().payload(4)),
        steered("ICMPv6", Qinq, ADDRESSES6, tags(2).ipv6(ICMPV6).payload(8)),
        steered("no next header", Qinq, ADDRESSES6, tags(2).ipv6(NO_NEXT)),
        steered("no next header, padded", Qinq, ADDRESSES6, tags(2).ipv6(NO_NEXT).trailer(20)),
        left("IPv6 of version 4", Malformed, whole().set_ip(0, &[0x45])),
        left("payload length one beyond the frame", Truncated, {
            whole().set_ip(4, &45_u16.to_be_bytes()).bare()
        }),
        left("payload length one beyond PPPoE", Truncated, {
            tcp6(eth().pppoe()).trailer(8).set_ip(4, &45_u16.to_be_bytes()).bare()
        }),
        left("payload length of 0 with TCP", Truncated, whole().set_ip(4, &[0, 0])),
        left("payload without room for ports", Truncated, whole().set_ip(4, &[0, 3])),
        left("cut in the IPv6 header", Truncated, whole().cut(22 + 39)),
        left("payload length of 0 with hop-by-hop options", Malformed, {
            tags(2).ipv6(HOP_BY_HOP).extension(TCP, 1).tcp().set_ip(4, &[0, 0])
        }),
        left("a jumbogram of 65,536 bytes in a small frame", Malformed, {
            let jumbo = [0xc2, 4, 0, 1, 0, 0];
            let packet = tags(2).ipv6(HOP_BY_HOP).extension(TCP, 1).tcp();
            packet.set_ip(4, &[0, 0]).set_ip(42, &jumbo)
        }),
        steered("a jumbo option with a length", Qinq, PORTS6, {
            let packet = tags(2).ipv6(HOP_BY_HOP).extension(TCP, 1).tcp();
            packet.set_ip(42, &[0xc2, 4, 0, 1, 0, 0])
        }),
        steered("a super-packet of 66,000 bytes with payload length 0", Qinq, PORTS6, {
            whole().trailer(66_000).set_ip(4, &[0, 0])
        }),
    ]
}

fn extensions() -> Vec<Fixture> {
    let under = || eth().pppoe();
    let chain = |count: usize| {
        let start = under().ipv6(OPTIONS);
        let last = (1..=count)
            .fold(start, |packet, header| packet.extension(if header == count { TCP } else { OPTIONS }, 1));
        last.tcp()
    };
    vec![
        steered("hop-by-hop options", Pppoe, PORTS6, under().ipv6(HOP_BY_HOP).extension(TCP, 1).tcp()),
        steered("every header in its order", Pppoe, PORTS6, {
            let options = under().ipv6(HOP_BY_HOP).extension(OPTIONS, 2).extension(ROUTING, 1);
            options
                .extension(FRAGMENT, 3)
                .fragment(AH, 0, false)
                .authentication(OPTIONS, 4)
                .extension(UDP, 1)
                .ports()
                .payload(4)
        }),
        steered("atomic fragment", Pppoe, PORTS6, under().ipv6(FRAGMENT).fragment(TCP, 0, false).tcp()),
        steered("reserved bits of a fragment header", Pppoe, PORTS6, {
            under().ipv6(FRAGMENT).fragment(TCP, 0, false).tcp().set_ip(43, &[6])
        }),
        steered("first fragment over IPv6", Pppoe, ADDRESSES6, {
            under().ipv6(FRAGMENT).fragment(TCP, 0, true).tcp()
        }),
        steered("later fragment over IPv6", Pppoe, ADDRESSES6, {
            under().ipv6(FRAGMENT).fragment(TCP, 181, false).tcp()
        }),
        steered("first fragment, options behind", Pppoe, ADDRESSES6, {
            under().ipv6(FRAGMENT).fragment(OPTIONS, 0, true).extension(TCP, 1).tcp()
        }),
        steered("first fragment that ends in its options", Pppoe, ADDRESSES6, {
            under().ipv6(FRAGMENT).fragment(OPTIONS, 0, true).payload(3)
        }),
        steered("eight extension headers", Pppoe, PORTS6, chain(8)),
        left("nine extension headers", TooDeep, chain(9)),
        steered("eight headers, then ESP", Pppoe, ADDRESSES6, {
            let start = under().ipv6(OPTIONS);
            (1..=8)
                .fold(start, |packet, header| packet.extension(if header == 8 { ESP } else { OPTIONS }, 1))
                .payload(8)
        }),
        left("hop-by-hop options behind another header", Malformed, {
            under().ipv6(OPTIONS).extension(HOP_BY_HOP, 1).extension(TCP, 1).tcp()
        }),
        left("an extension header longer than the packet", Truncated, {
            under().ipv6(ROUTING).extension(TCP, 1).tcp().set_ip(41, &[4])
        }),
        left("a packet that ends in the extension header", Truncated, {
            under().ipv6(ROUTING).payload(7).set_ip(40, &[TCP])
        }),
        left("no room for ports behind options", Truncated, {
            under().ipv6(OPTIONS).extension(UDP, 1).payload(3)
        }),
        steered("options whose last one does not fit", Pppoe, PORTS6, {
            under().ipv6(OPTIONS).extension(TCP, 1).tcp().set_ip(42, &[5, 200])
        }),
        steered("a routing header with more segments left than it has", Pppoe, PORTS6, {
            under().ipv6(ROUTING).extension(TCP, 1).tcp().set_ip(42, &[0, 9])
        }),
        left("options that do not fit, then a header that does not", Truncated, {
            let packet = under().ipv6(OPTIONS).extension(ROUTING, 1).extension(TCP, 1).tcp();
            packet.set_ip(42, &[5, 200]).set_ip(49, &[200])
        }),
    ]
}

/// Headers far from the start of the frame.
fn buffers() -> Vec<Fixture> {
    vec![
        steered("a frame of 9,000 bytes", Pppoe, PORTS4, eth().pppoe().ipv4(TCP).tcp().payload(8938)),
        steered("2,048 bytes of options", Pppoe, PORTS6, {
            eth().pppoe().ipv6(OPTIONS).extension(TCP, 256).tcp().payload(100)
        }),
        steered("6,144 bytes of options", Plain, PORTS6, {
            let options =
                eth().ipv6(OPTIONS).extension(OPTIONS, 256).extension(OPTIONS, 256).extension(TCP, 256);
            options.tcp().payload(100)
        }),
    ]
}
