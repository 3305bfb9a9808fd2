//! Frames built from the inside out, with a record of where each header stands.

use rxlane_wire::emit::*;
use rxlane_wire::error::Layer;
use rxlane_wire::ethernet::{EtherType, MacAddress};
use rxlane_wire::ppp::PppProtocol;
use rxlane_wire::pppoe::{Code, TagType};
use rxlane_wire::vlan::Tci;
use rxlane_wire::{Dissection, Fragment as Place, IpProtocol, Link, dissect};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where a header stands.
#[derive(Clone, Debug)]
pub struct Region {
    pub layer: Layer,
    pub start: usize,
    pub end: usize,
    /// Where the header says that its payload ends.
    pub reaches: Option<usize>,
}

/// A frame, or the inner part of one.
#[derive(Clone, Debug)]
pub struct Built {
    pub name: &'static str,
    pub link: Link,
    pub bytes: Vec<u8>,
    pub regions: Vec<Region>,
}

pub const MAC_A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
pub const MAC_B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
pub const V4_A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const V4_B: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
pub const V6_A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub const V6_B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

pub fn bytes(header: &dyn Emit) -> Vec<u8> {
    let mut out = vec![0; header.length()];
    assert_eq!(header.emit(&mut out), Ok(out.len()));
    out
}

impl Built {
    /// `length` bytes that no header accounts for.
    pub fn payload(name: &'static str, length: usize) -> Built {
        Built { name, link: Link::Ethernet, bytes: vec![0xa5; length], regions: Vec::new() }
    }

    pub fn of_bytes(name: &'static str, bytes: &[u8]) -> Built {
        Built { bytes: bytes.to_vec(), ..Built::payload(name, 0) }
    }

    /// The same with a header in front.
    pub fn wrap(mut self, layer: Layer, header: &dyn Emit) -> Built {
        self.bytes.splice(..0, bytes(header));
        let length = header.length();
        for region in &mut self.regions {
            region.start += length;
            region.end += length;
            region.reaches = region.reaches.map(|end| end + length);
        }
        self.regions.insert(0, Region { layer, start: 0, end: length, reaches: None });
        self
    }

    /// The same with a header in front that bounds what follows.
    pub fn bound(self, layer: Layer, header: &dyn Emit) -> Built {
        let mut out = self.wrap(layer, header);
        out.regions[0].reaches = Some(out.bytes.len());
        out
    }

    /// Records a header that the payload stands for.
    fn region_of(mut self, layer: Layer, start: usize, length: usize) -> Built {
        self.regions.push(Region { layer, start, end: start + length, reaches: None });
        self
    }

    pub fn pad(mut self, length: usize) -> Built {
        self.bytes.extend(vec![0; length]);
        self
    }

    pub fn on(mut self, link: Link) -> Built {
        self.link = link;
        self
    }

    pub fn ethernet(self, ethertype: EtherType) -> Built {
        self.wrap(Layer::Ethernet, &Ethernet { destination: MAC_B, source: MAC_A, ethertype })
    }

    pub fn tag(self, vid: u16, ethertype: EtherType) -> Built {
        self.wrap(Layer::Vlan, &VlanTag { tci: Tci::new(0, false, vid), ethertype })
    }

    pub fn label(self, label: u32, bottom: bool) -> Built {
        self.wrap(Layer::Mpls, &Mpls { label, traffic_class: 0, bottom, ttl: 64 })
    }

    pub fn ppp(self, protocol: PppProtocol) -> Built {
        self.wrap(Layer::Ppp, &Ppp { protocol })
    }

    pub fn pppoe(self) -> Built {
        let payload_length = self.bytes.len() as u16;
        self.bound(Layer::Pppoe, &Pppoe { code: Code::SESSION, session: 0x1234, payload_length })
    }

    pub fn tcp(self) -> Built {
        self.wrap(Layer::Tcp, &tcp())
    }

    pub fn udp(self) -> Built {
        let length = (self.bytes.len() + 8) as u16;
        self.bound(Layer::Udp, &Udp { length, ..udp() })
    }

    pub fn ipv4(self, protocol: IpProtocol) -> Built {
        let total_length = (self.bytes.len() + 20) as u16;
        self.bound(Layer::Ipv4, &Ipv4 { total_length, ..ipv4(protocol) })
    }

    pub fn ipv6(self, next_header: IpProtocol) -> Built {
        let payload_length = self.bytes.len() as u16;
        self.bound(Layer::Ipv6, &Ipv6 { payload_length, ..ipv6(next_header) })
    }

    pub fn hop_by_hop(self, next_header: IpProtocol, options: &[u8]) -> Built {
        self.wrap(Layer::HopByHop, &HopByHop { next_header, options })
    }

    pub fn destination_options(self, next_header: IpProtocol, options: &[u8]) -> Built {
        self.wrap(Layer::DestinationOptions, &DestinationOptions { next_header, options })
    }

    pub fn routing(self, next_header: IpProtocol, routing_type: u8, segments_left: u8, data: &[u8]) -> Built {
        self.wrap(Layer::Routing, &Routing { next_header, routing_type, segments_left, data })
    }

    pub fn fragment(self, next_header: IpProtocol, offset: u16, more: bool) -> Built {
        self.wrap(Layer::Fragment, &Fragment { next_header, offset, more, identification: 3 })
    }

    pub fn authentication(self, next_header: IpProtocol) -> Built {
        self.wrap(Layer::Authentication, &Authentication { next_header, spi: 1, sequence: 2, icv: &[0; 12] })
    }
}

pub fn tcp() -> Tcp<'static> {
    Tcp { source_port: 49152, destination_port: 443, sequence: 1, flags: Tcp::ACK, ..Tcp::default() }
}

pub fn udp() -> Udp {
    Udp { source_port: 49152, destination_port: 53, length: 8, checksum: 0 }
}

pub fn ipv4(protocol: IpProtocol) -> Ipv4<'static> {
    Ipv4 { identification: 7, dont_fragment: false, ..Ipv4::new(protocol, V4_A, V4_B, 20) }
}

pub fn ipv6(next_header: IpProtocol) -> Ipv6 {
    Ipv6::new(next_header, V6_A, V6_B, 0)
}

pub const COOKED: LinuxCooked =
    LinuxCooked { packet_type: 0, hardware: 1, address_length: 6, address: [0; 8], protocol: 0x0800 };
pub const COOKED_2: LinuxCooked2 = LinuxCooked2 {
    protocol: 0x8100,
    reserved: 0,
    interface: 2,
    hardware: 1,
    packet_type: 0,
    address_length: 6,
    address: [0; 8],
};

/// Six bytes of padding: the rest of an options header without options.
pub const PADDING: [u8; 6] = [1, 4, 0, 0, 0, 0];

/// Frames without a defect, of every kind of header.
pub fn corpus() -> Vec<Built> {
    use IpProtocol as Ip;
    let data = |name| Built::payload(name, 24);
    let tcp4 = |name| data(name).tcp().ipv4(Ip::TCP);
    let tcp6 = |name| data(name).tcp().ipv6(Ip::TCP);
    let home_address = home_address_option(V6_A);
    let router_alert = [5, 2, 0, 0, 1, 0];
    // Of a type 4 routing header with one segment: last entry 0, no flags, no tag, one address.
    let segments = [&[0; 4][..], &V6_B.octets()].concat();
    let echo = [9, 1, 0, 8, 0, 0, 0, 0];
    let mut lcp = Built::of_bytes("lcp", &echo).region_of(Layer::PppControl, 0, 4);
    lcp.regions[0].reaches = Some(echo.len());
    vec![
        tcp4("tcp4").ethernet(EtherType::IPV4),
        tcp6("tcp6").ethernet(EtherType::IPV6),
        Built::payload("udp4 padded", 3).udp().ipv4(Ip::UDP).pad(15).ethernet(EtherType::IPV4),
        data("udp6").udp().ipv6(Ip::UDP).ethernet(EtherType::IPV6),
        data("sctp").wrap(Layer::Sctp, &Sctp::default()).ipv4(Ip::SCTP).ethernet(EtherType::IPV4),
        data("icmp").ipv4(Ip::ICMP).ethernet(EtherType::IPV4).region_of(Layer::Icmp, 34, 4),
        data("icmpv6").ipv6(Ip::ICMPV6).ethernet(EtherType::IPV6).region_of(Layer::Icmpv6, 54, 4),
        data("esp").ipv6(Ip::ESP).ethernet(EtherType::IPV6).region_of(Layer::Esp, 54, 8),
        tcp4("vlan").tag(35, EtherType::IPV4).ethernet(EtherType::VLAN),
        tcp6("five tags")
            .tag(5, EtherType::IPV6)
            .tag(4, EtherType(0x9300))
            .tag(3, EtherType(0x9200))
            .tag(2, EtherType(0x9100))
            .tag(1, EtherType::VLAN)
            .ethernet(EtherType::SERVICE_VLAN),
        tcp4("pppoe").ppp(PppProtocol::IPV4).pppoe().ethernet(EtherType::PPPOE_SESSION),
        tcp6("qinq pppoe")
            .ppp(PppProtocol::IPV6)
            .pppoe()
            .pad(9)
            .tag(200, EtherType::PPPOE_SESSION)
            .tag(100, EtherType::VLAN)
            .ethernet(EtherType::SERVICE_VLAN),
        lcp.ppp(PppProtocol::LCP).pppoe().pad(30).ethernet(EtherType::PPPOE_SESSION),
        discovery(),
        tcp4("mpls").label(17, true).label(16, false).ethernet(EtherType::MPLS),
        data("ipv4 options")
            .udp()
            .bound(Layer::Ipv4, &Ipv4 { total_length: 56, options: &[1, 1, 1, 0], ..ipv4(Ip::UDP) })
            .ethernet(EtherType::IPV4),
        data("all extension headers")
            .tcp()
            .destination_options(Ip::TCP, &home_address)
            .authentication(Ip::DESTINATION_OPTIONS)
            .fragment(Ip::AH, 0, false)
            .routing(Ip::FRAGMENT, 4, 0, &segments)
            .hop_by_hop(Ip::ROUTING, &router_alert)
            .ipv6(Ip::HOP_BY_HOP)
            .ethernet(EtherType::IPV6),
        data("ah over ipv4").udp().authentication(Ip::UDP).ipv4(Ip::AH).ethernet(EtherType::IPV4),
        snap(),
        tcp4("cooked").wrap(Layer::LinuxCooked, &COOKED).on(Link::LinuxCooked),
        tcp6("cooked 2 with a tag")
            .tag(7, EtherType::IPV6)
            .wrap(Layer::LinuxCooked, &COOKED_2)
            .on(Link::LinuxCooked2),
        tcp4("raw ip").on(Link::Ip),
        tcp6("ppp").ppp(PppProtocol::IPV6).on(Link::Ppp),
        tcp4("ppp over ethernet").ppp(PppProtocol::IPV4).pppoe().on(Link::PppOverEthernet),
    ]
}

/// A PADO with every kind of tag, behind one VLAN tag.
pub fn discovery() -> Built {
    let line = LineIdentification { circuit: b"node eth 1/1:100", remote: b"line 7" };
    let payload = {
        let mut payload = bytes(&PppoeTags(&[
            PppoeTag { kind: TagType::SERVICE_NAME, value: b"" },
            PppoeTag { kind: TagType::AC_NAME, value: b"concentrator" },
            PppoeTag { kind: TagType::HOST_UNIQ, value: &[1, 2, 3, 4] },
            PppoeTag { kind: TagType::AC_COOKIE, value: &[5; 16] },
            PppoeTag { kind: TagType::PPP_MAX_PAYLOAD, value: &1500u16.to_be_bytes() },
        ]));
        payload.extend(bytes(&line));
        payload
    };
    let mut regions = Vec::new();
    let mut at = 0;
    for tag in rxlane_wire::pppoe::tags(&payload).map(Result::unwrap) {
        let end = at + tag.length();
        regions.push(Region { layer: Layer::PppoeTag, start: at, end, reaches: None });
        at = end;
    }
    let payload_length = payload.len() as u16;
    Built { name: "discovery", link: Link::Ethernet, bytes: payload, regions }
        .bound(Layer::Pppoe, &Pppoe { code: Code::PADO, session: 0, payload_length })
        .tag(35, EtherType::PPPOE_DISCOVERY)
        .ethernet(EtherType::VLAN)
}

/// An 802.3 frame with LLC, SNAP and IPv4, and padding behind the 802.3 length.
fn snap() -> Built {
    let inside = Built::payload("snap", 24)
        .udp()
        .ipv4(IpProtocol::UDP)
        .wrap(Layer::Llc, &Snap { oui: [0; 3], protocol: EtherType::IPV4 });
    let ethertype = EtherType(inside.bytes.len() as u16);
    let header = Ethernet { destination: MAC_B, source: MAC_A, ethertype };
    inside.bound(Layer::Ethernet, &header).pad(5)
}

pub fn seen(bytes: &[u8]) -> Dissection {
    dissect(Link::Ethernet, bytes, bytes.len())
}

/// What a frame is read as: its stack, whether its flow has ports, its place among fragments, and after a colon layer,
/// field and rule of its defect.
pub fn answer(bytes: &[u8]) -> String {
    let seen = seen(bytes);
    let ports = if seen.flow().is_some_and(|flow| flow.has_ports()) { " ports" } else { "" };
    let place = match seen.fragment() {
        Place::None => "",
        Place::First => " first",
        Place::Later => " later",
    };
    let defect = seen.error().map(|error| format!(": {:?} {:?} {:?}", error.layer, error.field, error.rule));
    format!("{}{ports}{place}{}", seen.stack(), defect.unwrap_or_default())
}

/// Holds frames, each with its name, to their [`answer`].
pub fn check<const N: usize>(cases: [(&str, Vec<u8>, &str); N]) {
    for (name, frame, expected) in cases {
        assert_eq!(answer(&frame), expected, "{name}");
    }
}

/// Puts a value into a frame.
pub fn with(mut frame: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    frame[at] = value;
    frame
}

pub fn data(length: usize) -> Built {
    Built::payload("", length)
}

/// An Ethernet frame of IPv4.
pub fn v4(inner: Built, protocol: IpProtocol) -> Vec<u8> {
    inner.ipv4(protocol).ethernet(EtherType::IPV4).bytes
}

/// An Ethernet frame of IPv6.
pub fn v6(inner: Built, next_header: IpProtocol) -> Vec<u8> {
    inner.ipv6(next_header).ethernet(EtherType::IPV6).bytes
}

pub fn tcp4() -> Vec<u8> {
    v4(data(24).tcp(), IpProtocol::TCP)
}

pub fn udp4(length: u16) -> Vec<u8> {
    v4(data(16).wrap(Layer::Udp, &Udp { length, ..udp() }), IpProtocol::UDP)
}
