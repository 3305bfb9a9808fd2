//! Every encapsulation and every odd case: a frame, and what becomes of it.

use crate::programs::packet::{Packet, Place, TCP, UDP, eth};
use rxlane_xdp::layout::{Class, Reason};

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

fn steered(name: &'static str, class: Class, flow: &'static str, frame: Vec<u8>) -> Fixture {
    Fixture { name, frame, expected: Ok((class, flow)) }
}

fn left(name: &'static str, reason: Reason, frame: Vec<u8>) -> Fixture {
    Fixture { name, frame, expected: Err(reason) }
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
    let mut all = Vec::new();
    all.extend(encapsulations());
    all.extend(ethernet());
    all.extend(pppoe());
    all.extend(mpls());
    all.extend(ipv4());
    all.extend(ipv6());
    all.extend(extensions());
    all.extend(buffers());
    all
}

fn encapsulations() -> Vec<Fixture> {
    vec![
        steered("IPv4", Class::Plain, PORTS4, tcp4(eth()).frame()),
        steered("IPv6", Class::Plain, PORTS6, tcp6(eth()).frame()),
        steered("one tag, IPv4", Class::Vlan, PORTS4, tcp4(eth().tag(0x8100, 0xe023)).frame()),
        steered("one tag, IPv6", Class::Vlan, PORTS6, tcp6(eth().tag(0x88a8, 35)).frame()),
        steered("two tags, IPv4", Class::Qinq, PORTS4, tcp4(tags(2)).frame()),
        steered(
            "two tags of one TPID, IPv6",
            Class::Qinq,
            PORTS6,
            tcp6(eth().tag(0x8100, 1).tag(0x8100, 2)).frame(),
        ),
        steered("five tags, each of another TPID", Class::Qinq, PORTS4, tcp4(tags(5)).frame()),
        steered("eight tags", Class::Qinq, PORTS6, tcp6(tags(8)).frame()),
        steered("PPPoE, IPv4", Class::Pppoe, PORTS4, tcp4(eth().pppoe()).frame()),
        steered("PPPoE, IPv6", Class::Pppoe, PORTS6, tcp6(eth().pppoe()).frame()),
        steered("one tag, PPPoE, IPv4", Class::Pppoe, PORTS4, tcp4(eth().tag(0x8100, 35).pppoe()).frame()),
        steered("two tags, PPPoE, IPv6", Class::Pppoe, PORTS6, tcp6(tags(2).pppoe()).frame()),
        steered("eight tags, PPPoE, IPv4", Class::Pppoe, PORTS4, tcp4(tags(8).pppoe()).frame()),
        steered("MPLS, IPv4", Class::Mpls, PORTS4, tcp4(eth().mpls(16, true)).frame()),
        steered(
            "tag, three labels, IPv6",
            Class::Mpls,
            PORTS6,
            tcp6(labels(3, eth().tag(0x8100, 1))).frame(),
        ),
        steered("PPPoE, MPLS, IPv4", Class::Pppoe, PORTS4, tcp4(labels(2, eth().pppoe())).frame()),
    ]
}

fn ethernet() -> Vec<Fixture> {
    vec![
        left("ARP", Reason::NotIp, eth().ethertype(0x0806).payload(28).frame()),
        left("an EtherType that nobody knows", Reason::NotIp, eth().ethertype(0x9999).payload(46).frame()),
        left("tag, ARP", Reason::NotIp, eth().tag(0x8100, 5).ethertype(0x0806).payload(28).frame()),
        left("802.3 with LLC", Reason::NotIp, eth().ethertype(38).payload(38).frame()),
        left("802.3, a length beyond the frame", Reason::NotIp, eth().ethertype(1400).payload(46).frame()),
        left("a type field that is undefined", Reason::NotIp, eth().ethertype(1520).payload(46).frame()),
        left("SNAP with IPv4", Reason::NotIp, {
            let snap = eth().ethertype(60).payload(8).set(Place::Frame, 14, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
            snap.ipv4(TCP).tcp().frame()
        }),
        left("nine tags", Reason::TooDeep, tcp4(tags(9)).frame()),
        left("nine tags, cut in the ninth", Reason::TooDeep, tcp4(tags(9)).cut(14 + 8 * 4 + 2)),
        left("no whole MAC header", Reason::Truncated, tcp4(eth()).cut(13)),
        left("nothing at all", Reason::Truncated, Vec::new()),
        left("a MAC header alone", Reason::Truncated, tcp4(eth()).cut(14)),
        left("cut in the tag", Reason::Truncated, tcp4(eth().tag(0x8100, 1)).cut(17)),
        left("cut in the second tag", Reason::Truncated, tcp4(tags(2)).cut(21)),
    ]
}

fn pppoe() -> Vec<Fixture> {
    let session = || tcp4(eth().tag(0x8100, 35).pppoe());
    let control = |protocol| eth().pppoe().ppp(protocol).payload(8).frame();
    vec![
        left("PPPoE discovery", Reason::PppoeDiscovery, eth().ethertype(0x8863).payload(20).frame()),
        left(
            "tags, PPPoE discovery, cut",
            Reason::PppoeDiscovery,
            tags(2).ethertype(0x8863).payload(3).bare(),
        ),
        left("LCP", Reason::PppControl, control(0xc021)),
        left("PAP", Reason::PppControl, control(0xc023)),
        left("CHAP", Reason::PppControl, control(0xc223)),
        left("EAP", Reason::PppControl, control(0xc227)),
        left("IPCP", Reason::PppControl, control(0x8021)),
        left("IPV6CP", Reason::PppControl, control(0x8057)),
        left("LCP with a length beyond the packet", Reason::PppControl, {
            eth().pppoe().ppp(0xc021).payload(4).set(Place::Pppoe, 8, &[9, 1, 1, 0]).frame()
        }),
        left("a PPP protocol that is not IP", Reason::PppOther, control(0x0031)),
        left("compressed datagram", Reason::PppOther, control(0x00fd)),
        left("compressed protocol field", Reason::Malformed, eth().pppoe().ppp(0x2145).payload(40).frame()),
        left("even protocol field", Reason::Malformed, control(0x0020)),
        left("version 2", Reason::Malformed, session().set(Place::Pppoe, 0, &[0x21]).frame()),
        left("type 2", Reason::Malformed, session().set(Place::Pppoe, 0, &[0x12]).frame()),
        left(
            "a discovery code in a session",
            Reason::Malformed,
            session().set(Place::Pppoe, 1, &[0x09]).frame(),
        ),
        left("PPPoE length one beyond the frame", Reason::Truncated, {
            session().set(Place::Pppoe, 4, &67_u16.to_be_bytes()).bare()
        }),
        left("PPPoE length one short of the IP packet", Reason::Truncated, {
            session().set(Place::Pppoe, 4, &65_u16.to_be_bytes()).bare()
        }),
        steered("PPPoE length longer than the IP packet", Class::Pppoe, PORTS4, {
            session().trailer(9).set(Place::Pppoe, 4, &70_u16.to_be_bytes()).bare()
        }),
        left("PPPoE length of 1", Reason::Truncated, session().set(Place::Pppoe, 4, &[0, 1]).frame()),
        left("PPPoE length of 0", Reason::Truncated, session().set(Place::Pppoe, 4, &[0, 0]).frame()),
        left(
            "PPPoE length of 65,535",
            Reason::Truncated,
            session().set(Place::Pppoe, 4, &[255, 255]).frame(),
        ),
        left("cut in the PPPoE header", Reason::Truncated, session().cut(18 + 5)),
        left("cut in the PPP protocol field", Reason::Truncated, session().cut(18 + 7)),
        left("PPPoE length ends in the IP header, padded", Reason::Truncated, {
            session().set(Place::Pppoe, 4, &[0, 21]).set(Place::Ip, 0, &[0x55]).frame()
        }),
        left("PPPoE length ends in the IP header, whose total length is 1", Reason::Truncated, {
            session().set(Place::Pppoe, 4, &[0, 8]).set(Place::Ip, 2, &[0, 1]).frame()
        }),
        left("PPPoE length ends in the IPv6 header, whose version is 5", Reason::Truncated, {
            tcp6(eth().pppoe()).set(Place::Pppoe, 4, &[0, 41]).set(Place::Ip, 0, &[0x50]).frame()
        }),
        left("IPv6 under the protocol of IPv4", Reason::Malformed, {
            eth().pppoe().ppp(0x0021).ipv6(TCP).tcp().payload(24).frame()
        }),
        steered(
            "a short packet, padded",
            Class::Pppoe,
            PORTS4,
            eth().pppoe().ipv4(UDP).ports().payload(4).frame(),
        ),
        steered("padding behind a PPPoE packet of 60 bytes", Class::Pppoe, PORTS6, {
            tcp6(eth().pppoe()).trailer(200).frame()
        }),
        steered("session 0xffff", Class::Pppoe, PORTS4, session().set(Place::Pppoe, 2, &[255, 255]).frame()),
    ]
}

fn mpls() -> Vec<Fixture> {
    vec![
        steered("upstream-assigned label", Class::Mpls, PORTS4, {
            tcp4(eth().mpls(16, true)).set(Place::Frame, 12, &[0x88, 0x48]).frame()
        }),
        steered("eight labels", Class::Mpls, PORTS4, tcp4(labels(8, eth())).frame()),
        left("nine labels", Reason::TooDeep, tcp4(labels(9, eth())).frame()),
        left("no bottom of stack", Reason::Truncated, eth().mpls(1, false).mpls(2, false).bare()),
        left("cut in a label", Reason::Truncated, tcp4(labels(2, eth())).cut(14 + 6)),
        left(
            "a pseudowire with a control word",
            Reason::NotIp,
            eth().mpls(16, true).payload(0).payload(46).frame(),
        ),
        left("nothing behind the bottom", Reason::NotIp, eth().mpls(16, true).bare()),
        left("PPPoE ends in the labels", Reason::Truncated, {
            tcp4(labels(2, eth().pppoe())).set(Place::Pppoe, 4, &[0, 9]).frame()
        }),
        left("PPPoE ends behind the labels", Reason::NotIp, {
            tcp4(labels(2, eth().pppoe())).set(Place::Pppoe, 4, &[0, 10]).frame()
        }),
    ]
}

fn ipv4() -> Vec<Fixture> {
    let vlan = || eth().tag(0x8100, 35);
    let whole = || tcp4(vlan());
    let fragment = |field: [u8; 2]| whole().set(Place::Ip, 6, &field).frame();
    vec![
        steered("UDP", Class::Vlan, PORTS4, vlan().ipv4(UDP).ports().payload(4).frame()),
        steered("SCTP", Class::Vlan, PORTS4, vlan().ipv4(SCTP).ports().payload(28).frame()),
        steered("ICMP", Class::Vlan, ADDRESSES4, vlan().ipv4(ICMP).payload(28).frame()),
        steered("ESP", Class::Vlan, ADDRESSES4, vlan().ipv4(ESP).payload(28).frame()),
        steered("no payload", Class::Vlan, ADDRESSES4, vlan().ipv4(ICMP).frame()),
        steered("options of four bytes", Class::Vlan, PORTS4, vlan().ipv4_options(TCP, 1).tcp().frame()),
        steered(
            "options of 40 bytes",
            Class::Vlan,
            PORTS4,
            vlan().ipv4_options(UDP, 10).ports().payload(4).frame(),
        ),
        steered("do not fragment", Class::Vlan, PORTS4, fragment([0x40, 0])),
        steered("the reserved flag", Class::Vlan, PORTS4, fragment([0x80, 0])),
        steered("first fragment", Class::Vlan, ADDRESSES4, fragment([0x20, 0])),
        steered("middle fragment", Class::Vlan, ADDRESSES4, fragment([0x20, 1])),
        steered("last fragment", Class::Vlan, ADDRESSES4, fragment([0, 0xb9])),
        steered("last fragment with the largest offset", Class::Vlan, ADDRESSES4, fragment([0x1f, 0xff])),
        steered("first fragment without ports", Class::Vlan, ADDRESSES4, {
            vlan().ipv4(UDP).set(Place::Ip, 6, &[0x20, 0]).frame()
        }),
        left("version 5", Reason::Malformed, whole().set(Place::Ip, 0, &[0x55]).frame()),
        left("header of 16 bytes", Reason::Malformed, whole().set(Place::Ip, 0, &[0x44]).frame()),
        left("header longer than the packet", Reason::Malformed, {
            vlan().ipv4(UDP).ports().payload(4).set(Place::Ip, 0, &[0x4f]).frame()
        }),
        left("total length of 0", Reason::Malformed, whole().set(Place::Ip, 2, &[0, 0]).frame()),
        left("total length of 19", Reason::Malformed, whole().set(Place::Ip, 2, &[0, 19]).frame()),
        left(
            "total length one beyond the frame",
            Reason::Truncated,
            whole().set(Place::Ip, 2, &[0, 65]).bare(),
        ),
        left("cut in the header", Reason::Truncated, whole().cut(18 + 19)),
        left("TCP without room for ports", Reason::Truncated, whole().set(Place::Ip, 2, &[0, 23]).frame()),
        steered("TCP of four bytes", Class::Vlan, PORTS4, whole().set(Place::Ip, 2, &[0, 24]).frame()),
        steered(
            "TCP with a data offset of 0",
            Class::Vlan,
            PORTS4,
            whole().set(Place::Transport, 12, &[0]).frame(),
        ),
        steered("AH, then TCP", Class::Vlan, PORTS4, vlan().ipv4(AH).authentication(TCP, 6).tcp().frame()),
        steered("first fragment with AH", Class::Vlan, ADDRESSES4, {
            vlan().ipv4(AH).authentication(TCP, 6).tcp().set(Place::Ip, 6, &[0x20, 0]).frame()
        }),
        left("AH of two words", Reason::Malformed, {
            vlan().ipv4(AH).authentication(TCP, 2).payload(12).tcp().frame()
        }),
        steered("padding behind", Class::Vlan, PORTS4, whole().trailer(500).frame()),
        steered("a super-packet of 66,000 bytes with length 0", Class::Vlan, PORTS4, {
            whole().trailer(66_000).set(Place::Ip, 2, &[0, 0]).frame()
        }),
    ]
}

fn ipv6() -> Vec<Fixture> {
    let whole = || tcp6(tags(2));
    vec![
        steered("UDP over IPv6", Class::Qinq, PORTS6, tags(2).ipv6(UDP).ports().payload(4).frame()),
        steered("ICMPv6", Class::Qinq, ADDRESSES6, tags(2).ipv6(ICMPV6).payload(8).frame()),
        steered("no next header", Class::Qinq, ADDRESSES6, tags(2).ipv6(NO_NEXT).frame()),
        steered("no next header, padded", Class::Qinq, ADDRESSES6, tags(2).ipv6(NO_NEXT).trailer(20).frame()),
        left("IPv6 of version 4", Reason::Malformed, whole().set(Place::Ip, 0, &[0x45]).frame()),
        left("payload length one beyond the frame", Reason::Truncated, {
            whole().set(Place::Ip, 4, &45_u16.to_be_bytes()).bare()
        }),
        left("payload length one beyond PPPoE", Reason::Truncated, {
            tcp6(eth().pppoe()).trailer(8).set(Place::Ip, 4, &45_u16.to_be_bytes()).bare()
        }),
        left("payload length of 0 with TCP", Reason::Truncated, whole().set(Place::Ip, 4, &[0, 0]).frame()),
        left("payload without room for ports", Reason::Truncated, whole().set(Place::Ip, 4, &[0, 3]).frame()),
        left("cut in the IPv6 header", Reason::Truncated, whole().cut(22 + 39)),
        left("payload length of 0 with hop-by-hop options", Reason::Malformed, {
            tags(2).ipv6(HOP_BY_HOP).extension(TCP, 1).tcp().set(Place::Ip, 4, &[0, 0]).frame()
        }),
        left("a jumbogram of 65,536 bytes in a small frame", Reason::Malformed, {
            let jumbo = [0xc2, 4, 0, 1, 0, 0];
            let packet = tags(2).ipv6(HOP_BY_HOP).extension(TCP, 1).tcp();
            packet.set(Place::Ip, 4, &[0, 0]).set(Place::Ip, 42, &jumbo).frame()
        }),
        steered("a jumbo option beside a length", Class::Qinq, PORTS6, {
            let packet = tags(2).ipv6(HOP_BY_HOP).extension(TCP, 1).tcp();
            packet.set(Place::Ip, 42, &[0xc2, 4, 0, 1, 0, 0]).frame()
        }),
        steered("a super-packet of 66,000 bytes with payload length 0", Class::Qinq, PORTS6, {
            whole().trailer(66_000).set(Place::Ip, 4, &[0, 0]).frame()
        }),
    ]
}

fn extensions() -> Vec<Fixture> {
    let under = || eth().pppoe();
    let chain = |count: usize| {
        let start = under().ipv6(OPTIONS);
        let last = (1..=count)
            .fold(start, |packet, header| packet.extension(if header == count { TCP } else { OPTIONS }, 1));
        last.tcp().frame()
    };
    vec![
        steered(
            "hop-by-hop options",
            Class::Pppoe,
            PORTS6,
            under().ipv6(HOP_BY_HOP).extension(TCP, 1).tcp().frame(),
        ),
        steered("every header in its order", Class::Pppoe, PORTS6, {
            let options = under().ipv6(HOP_BY_HOP).extension(OPTIONS, 2).extension(ROUTING, 1);
            options
                .extension(FRAGMENT, 3)
                .fragment(AH, 0, false)
                .authentication(OPTIONS, 4)
                .extension(UDP, 1)
                .ports()
                .payload(4)
                .frame()
        }),
        steered(
            "atomic fragment",
            Class::Pppoe,
            PORTS6,
            under().ipv6(FRAGMENT).fragment(TCP, 0, false).tcp().frame(),
        ),
        steered("reserved bits of a fragment header", Class::Pppoe, PORTS6, {
            under().ipv6(FRAGMENT).fragment(TCP, 0, false).tcp().set(Place::Ip, 43, &[6]).frame()
        }),
        steered(
            "first fragment over IPv6",
            Class::Pppoe,
            ADDRESSES6,
            under().ipv6(FRAGMENT).fragment(TCP, 0, true).tcp().frame(),
        ),
        steered(
            "later fragment over IPv6",
            Class::Pppoe,
            ADDRESSES6,
            under().ipv6(FRAGMENT).fragment(TCP, 181, false).tcp().frame(),
        ),
        steered("first fragment, options behind", Class::Pppoe, ADDRESSES6, {
            under().ipv6(FRAGMENT).fragment(OPTIONS, 0, true).extension(TCP, 1).tcp().frame()
        }),
        steered("first fragment that ends in its options", Class::Pppoe, ADDRESSES6, {
            under().ipv6(FRAGMENT).fragment(OPTIONS, 0, true).payload(3).frame()
        }),
        steered("eight extension headers", Class::Pppoe, PORTS6, chain(8)),
        left("nine extension headers", Reason::TooDeep, chain(9)),
        steered("eight headers, then ESP", Class::Pppoe, ADDRESSES6, {
            let start = under().ipv6(OPTIONS);
            (1..=8)
                .fold(start, |packet, header| packet.extension(if header == 8 { ESP } else { OPTIONS }, 1))
                .payload(8)
                .frame()
        }),
        left("hop-by-hop options behind another header", Reason::Malformed, {
            under().ipv6(OPTIONS).extension(HOP_BY_HOP, 1).extension(TCP, 1).tcp().frame()
        }),
        left("an extension header longer than the packet", Reason::Truncated, {
            under().ipv6(ROUTING).extension(TCP, 1).tcp().set(Place::Ip, 41, &[4]).frame()
        }),
        left("a packet that ends in the extension header", Reason::Truncated, {
            under().ipv6(ROUTING).payload(7).set(Place::Ip, 40, &[TCP]).frame()
        }),
        left("no room for ports behind options", Reason::Truncated, {
            under().ipv6(OPTIONS).extension(UDP, 1).payload(3).frame()
        }),
        steered("options whose last one does not fit", Class::Pppoe, PORTS6, {
            under().ipv6(OPTIONS).extension(TCP, 1).tcp().set(Place::Ip, 42, &[5, 200]).frame()
        }),
        steered("a routing header with more segments left than it has", Class::Pppoe, PORTS6, {
            under().ipv6(ROUTING).extension(TCP, 1).tcp().set(Place::Ip, 42, &[0, 9]).frame()
        }),
        left("options that do not fit, then a header that does not", Reason::Truncated, {
            let packet = under().ipv6(OPTIONS).extension(ROUTING, 1).extension(TCP, 1).tcp();
            packet.set(Place::Ip, 42, &[5, 200]).set(Place::Ip, 49, &[200]).frame()
        }),
    ]
}

/// Headers far from the start of the frame.
fn buffers() -> Vec<Fixture> {
    vec![
        steered(
            "a frame of 9,000 bytes",
            Class::Pppoe,
            PORTS4,
            eth().pppoe().ipv4(TCP).tcp().payload(8938).frame(),
        ),
        steered("2,048 bytes of options", Class::Pppoe, PORTS6, {
            eth().pppoe().ipv6(OPTIONS).extension(TCP, 256).tcp().payload(100).frame()
        }),
        steered("6,144 bytes of options", Class::Plain, PORTS6, {
            let options =
                eth().ipv6(OPTIONS).extension(OPTIONS, 256).extension(OPTIONS, 256).extension(TCP, 256);
            options.tcp().payload(100).frame()
        }),
    ]
}
