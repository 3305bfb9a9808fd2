//! Packets written with crate `wire`, field by field, for the tests of this crate.

pub mod received;

use proptest::prelude::*;
use rxlane_offload::{NetHeader, Prefix, Segments};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::IpProtocol;
use wire::emit::{
    DestinationOptions, Emit, Encapsulation, HopByHop, Ipv4, Ipv6, Tcp, Udp, checksum, headers,
};
use wire::ethernet::MacAddress;

pub const CWR: u8 = 0x80;
pub const ECE: u8 = 0x40;
pub const URG: u8 = 0x20;
pub const MACS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];

/// Everything about a packet but its payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub version_6: bool,
    pub udp: bool,
    /// Last bytes of the addresses.
    pub ends: (u8, u8),
    pub ports: (u16, u16),
    pub traffic_class: u8,
    pub ttl: u8,
    pub flow_label: u32,
    pub identification: u16,
    pub dont_fragment: bool,
    pub ip_options: Vec<u8>,
    /// Hop-by-hop options and destination options, without their first two bytes.
    pub extensions: (Option<Vec<u8>>, Option<Vec<u8>>),
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: u8,
    pub window: u16,
    pub urgent: u16,
    pub tcp_options: Vec<u8>,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            version_6: false,
            udp: false,
            ends: (1, 2),
            ports: (40000, 443),
            traffic_class: 0,
            ttl: 64,
            flow_label: 0,
            identification: 1,
            dont_fragment: true,
            ip_options: Vec::new(),
            extensions: (None, None),
            sequence: 1,
            acknowledgment: 1,
            flags: Tcp::ACK,
            window: 500,
            urgent: 0,
            tcp_options: Vec::new(),
        }
    }
}

impl Spec {
    pub fn source(&self) -> IpAddr {
        self.address(self.ends.0)
    }

    pub fn destination(&self) -> IpAddr {
        self.address(self.ends.1)
    }

    fn address(&self, end: u8) -> IpAddr {
        if self.version_6 {
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, end.into()).into()
        } else {
            Ipv4Addr::new(198, 18, 0, end).into()
        }
    }

    pub fn protocol(&self) -> IpProtocol {
        if self.udp { IpProtocol::UDP } else { IpProtocol::TCP }
    }

    /// Bytes before the transport header.
    pub fn network_length(&self) -> usize {
        let extension = |options: &Option<Vec<u8>>| options.as_ref().map_or(0, |options| 2 + options.len());
        if self.version_6 {
            40 + extension(&self.extensions.0) + extension(&self.extensions.1)
        } else {
            20 + self.ip_options.len()
        }
    }

    pub fn header_length(&self) -> usize {
        self.network_length() + if self.udp { 8 } else { 20 + self.tcp_options.len() }
    }

    /// The packet with this payload, its checksums right.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; self.header_length()];
        packet.extend(payload);
        let (total, at) = (packet.len(), self.network_length());
        let (source_port, destination_port) = self.ports;
        let length = (total - at) as u16;
        let udp = Udp { source_port, destination_port, length, checksum: 0 };
        let tcp = Tcp {
            source_port,
            destination_port,
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            flags: self.flags,
            window: self.window,
            checksum: 0,
            urgent: self.urgent,
            options: &self.tcp_options,
        };
        let transport: &dyn Emit = if self.udp { &udp } else { &tcp };
        let written = match (self.source(), self.destination()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = Ipv4 {
                    traffic_class: self.traffic_class,
                    identification: self.identification,
                    dont_fragment: self.dont_fragment,
                    ttl: self.ttl,
                    options: &self.ip_options,
                    ..Ipv4::new(self.protocol(), source, destination, total as u16)
                };
                headers(&[&header, transport], &mut packet)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let (hop_by_hop, destination_options) = &self.extensions;
                let behind = match destination_options {
                    Some(_) => IpProtocol::DESTINATION_OPTIONS,
                    None => self.protocol(),
                };
                let first = if hop_by_hop.is_some() { IpProtocol::HOP_BY_HOP } else { behind };
                let header = Ipv6 {
                    traffic_class: self.traffic_class,
                    flow_label: self.flow_label,
                    hop_limit: self.ttl,
                    ..Ipv6::new(first, source, destination, (total - 40) as u16)
                };
                let next_header = self.protocol();
                let outer = hop_by_hop.as_ref().map(|options| HopByHop { next_header: behind, options });
                let inner =
                    destination_options.as_ref().map(|options| DestinationOptions { next_header, options });
                let mut all: Vec<&dyn Emit> = vec![&header];
                all.extend(outer.as_ref().map(|header| header as &dyn Emit));
                all.extend(inner.as_ref().map(|header| header as &dyn Emit));
                all.push(transport);
                headers(&all, &mut packet)
            }
            _ => unreachable!("one version"),
        };
        written.expect("room");
        let transport = &mut packet[at..];
        checksum::fill(self.source(), self.destination(), self.protocol(), transport).expect("whole");
        packet
    }

    /// What the kernel hands over for this packet: a virtio header, and the packet with a partial checksum.
    pub fn super_packet(&self, payload: &[u8], size: u16) -> (NetHeader, Vec<u8>) {
        let mut packet = self.packet(payload);
        let at = self.network_length();
        let length = packet.len() - at;
        let pseudo = checksum::Sum::pseudo_header(self.source(), self.destination(), self.protocol(), length);
        let field = at + usize::from(self.checksum_offset());
        packet[field..field + 2].copy_from_slice(&pseudo.expect("one version").folded().to_be_bytes());
        let kind = match (self.udp, self.version_6) {
            (true, _) => NetHeader::UDP,
            (false, false) => NetHeader::TCP_IPV4,
            (false, true) => NetHeader::TCP_IPV6,
        };
        let ecn = if !self.udp && self.flags & CWR != 0 { NetHeader::ECN } else { 0 };
        let header = NetHeader {
            flags: NetHeader::NEEDS_CHECKSUM,
            gso_type: kind | ecn,
            header_length: self.header_length() as u16,
            gso_size: size,
            checksum_start: at as u16,
            checksum_offset: self.checksum_offset(),
        };
        (header, packet)
    }

    fn checksum_offset(&self) -> u16 {
        if self.udp { 6 } else { 16 }
    }
}

prop_compose! {
    /// Any packet that a stack would segment.
    pub fn any_spec()(
        (version_6, udp, ends, ports) in any::<(bool, bool, (u8, u8), (u16, u16))>(),
        (traffic_class, ttl, flow_label) in (any::<u8>(), 1..=255_u8, 0..=0xf_ffff_u32),
        (identification, dont_fragment, sequence) in any::<(u16, bool, u32)>(),
        (acknowledgment, window, urgent, ack) in any::<(u32, u16, u16, bool)>(),
        ecn in prop_oneof![3 => Just(0), 1 => Just(CWR), 1 => Just(ECE)],
        end in prop_oneof![3 => Just(0), 1 => Just(Tcp::PSH), 1 => Just(Tcp::FIN | Tcp::PSH)],
        (ip_options, extensions, tcp_options) in (words(0..=10), (extension(), extension()), words(0..=10)),
    ) -> Spec {
        let flags = ecn | end | if ack { Tcp::ACK } else { 0 };
        Spec {
            version_6, udp, ends, ports, traffic_class, ttl, flow_label, identification, dont_fragment, ip_options,
            extensions, sequence, acknowledgment, flags, window, urgent, tcp_options,
        }
    }
}

/// Any number of 32-bit words; none half of the time.
fn words(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<u8>> {
    let some = proptest::collection::vec(any::<[u8; 4]>(), count).prop_map(|words| words.concat());
    prop_oneof![Just(Vec::new()), some]
}

/// An extension header's options: one unknown option that fills it.
fn extension() -> impl Strategy<Value = Option<Vec<u8>>> {
    let some = (0..4_usize, any::<u8>()).prop_map(|(units, value)| {
        let length = units * 8 + 4;
        let mut options = vec![0x1e, length as u8];
        options.extend(std::iter::repeat_n(value, length));
        Some(options)
    });
    prop_oneof![2 => Just(None), 1 => some]
}

/// Encapsulations of every kind.
pub fn any_encapsulation() -> impl Strategy<Value = Encapsulation> {
    let texts = [
        "none",
        "q:35",
        "ad:100,q:200",
        "pppoe:77@02:00:00:00:00:01",
        "ad:4094,q:1,pppoe:65534",
        "0x9100:1,0x9200:2,0x9300:3,q:4,q:5,q:6,q:7,q:8,pppoe:1",
        "q:9,mpls:16,mpls:1048575",
    ];
    proptest::sample::select(texts.to_vec()).prop_map(|text| text.parse().expect("an encapsulation"))
}

/// Computes the IPv4 header checksum of a packet without options anew.
pub fn complete_header(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let checksum = checksum::internet(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// A frame: the packet behind the encapsulation.
pub fn frame(encapsulation: &Encapsulation, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; encapsulation.length()];
    let version = if packet[0] >> 4 == 4 { wire::IpVersion::V4 } else { wire::IpVersion::V6 };
    encapsulation.emit(MACS[0], MACS[1], version, packet.len(), &mut frame).expect("room");
    frame.extend(packet);
    frame
}

/// All frames of a packet, put together.
pub fn segments(prefix: &Prefix, header: &NetHeader, packet: &[u8], fixed: bool) -> Vec<Vec<u8>> {
    let mut packet = packet.to_vec();
    let mut segments = Segments::new(prefix, header, &mut packet).expect("a good packet");
    if fixed {
        segments = segments.with_fixed_identification();
    }
    let (left, length) = (segments.left(), segments.header_length());
    let mut buffer = vec![0xee; 400];
    let mut frames = Vec::new();
    while let Some(segment) = segments.emit(&mut buffer).expect("room") {
        assert_eq!(segment.header_length, length);
        frames.push([&buffer[..length], segment.payload].concat());
        assert_eq!(segments.left() + frames.len(), left);
    }
    assert_eq!(frames.len(), left);
    frames
}
