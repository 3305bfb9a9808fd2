//! What tests of several modules have in common: a pair of interfaces, a line, packets.

use crate::counters::Counters;
use crate::datapath::Line;
use crate::framing::{Form, Framing};
use kernel::netlink::{self, Link, link_by_name};
use offload::NetHeader;
use offload::checksum::{Sum, complete};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use testkit::allocations::Counting;
use testkit::netns::{Namespace, Veth, probe};
use testkit::require;
use wire::emit::{Emit, Encapsulation, Ipv4, Ipv6, Tcp};
use wire::ethernet::{EtherType, MacAddress};
use wire::{IpProtocol, IpVersion, Vlans};

/// For the tests that nothing is allocated.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

pub(crate) const PEER: MacAddress = MacAddress([2, 0, 0x5e, 0, 0, 2]);

/// Runs `test` in a namespace of its own, with a pair of interfaces, `near0` and `far0`, and their MAC addresses.
pub(crate) fn with_pair(mtu: u32, test: impl FnOnce([Link; 2], [MacAddress; 2]) + Send) {
    let Some(()) = require("netns", probe()) else { return };
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { mtu, ..Veth::pair("near0", "far0") }).expect("a pair");
    namespace.inside(|| {
        let links = ["near0", "far0"].map(|name| link_by_name(name).expect("there"));
        let macs = links.each_ref().map(|link| link.mac.expect("an address"));
        test(links, macs);
    });
}

pub(crate) fn vlans(text: &str) -> Vlans {
    let encapsulation: Encapsulation = text.parse().expect("an encapsulation");
    Vlans::of(encapsulation.tags().iter().copied()).expect("few enough")
}

/// A frame of [`PEER`], with what stands behind its EtherType.
pub(crate) fn frame(to: MacAddress, tags: &str, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let encapsulation: Encapsulation = tags.parse().expect("an encapsulation");
    let mut head = [0; 64];
    let length = encapsulation.emit_tagged(to, PEER, EtherType(ethertype), &mut head).expect("room");
    [&head[..length], payload].concat()
}

pub(crate) fn framing(link: &str, local: MacAddress) -> Framing {
    Framing::new(&link.parse().expect("an encapsulation"), local).expect("a link")
}

/// Those of both ends of a link, in which `PEER` is the address of the other end.
pub(crate) fn framings(link: &str, [near, far]: [MacAddress; 2]) -> [Framing; 2] {
    [(near, far), (far, near)].map(|(local, peer)| framing(&link.replace("PEER", &peer.to_string()), local))
}

pub(crate) fn line(framing: Framing, parent_mtu: u32) -> Line {
    let parent_mtu = Arc::new(AtomicU32::new(parent_mtu));
    Line { framing, clamp: None, counters: Arc::new(Counters::default()), parent_mtu }
}

/// Sets the interface `sub0` of a link up; its number.
pub(crate) fn set_up(framing: &Framing) -> u32 {
    let index = link_by_name("sub0").expect("there").index;
    let mac = (framing.form() == Form::Frames).then_some(framing.local());
    netlink::configure(index, 1500, mac).expect("configured");
    netlink::set_up(index).expect("up");
    index
}

pub(crate) fn emitted(header: &dyn Emit) -> Vec<u8> {
    let mut bytes = vec![0; header.length()];
    header.emit(&mut bytes).expect("room");
    bytes
}

/// The header of IP in front of so many bytes.
pub(crate) fn ip(version: IpVersion, protocol: IpProtocol, length: usize) -> Vec<u8> {
    match version {
        IpVersion::V4 => emitted(&ipv4(protocol, length)),
        IpVersion::V6 => emitted(&ipv6(protocol, length)),
    }
}

pub(crate) fn ipv4(protocol: IpProtocol, length: usize) -> Ipv4<'static> {
    let [source, destination] = [2, 1].map(|last| [10, 9, 0, last].into());
    Ipv4 { identification: 1, ..Ipv4::new(protocol, source, destination, (20 + length) as u16) }
}

pub(crate) fn ipv6(protocol: IpProtocol, length: usize) -> Ipv6 {
    Ipv6 {
        traffic_class: 0,
        flow_label: 5,
        payload_length: length as u16,
        next_header: protocol,
        hop_limit: 64,
        source: "2001:db8::1".parse().expect("an address"),
        destination: "2001:db8::2".parse().expect("an address"),
    }
}

pub(crate) fn tcp(sequence: u32, flags: u8, options: &[u8]) -> Tcp<'_> {
    Tcp {
        source_port: 80,
        destination_port: 4000,
        sequence,
        acknowledgment: 77,
        flags,
        window: 500,
        checksum: 0,
        urgent: 0,
        options,
    }
}

fn protocol(packet: &[u8]) -> IpProtocol {
    IpProtocol(if packet[0] >> 4 == 4 { packet[9] } else { packet[6] })
}

/// The sum of the pseudo header of what is in an IP packet from `start` on.
pub(crate) fn pseudo(packet: &[u8], start: usize) -> Sum {
    let (protocol, length) = (protocol(packet), packet.len() - start);
    match packet[0] >> 4 {
        4 => Sum::pseudo_ipv4(packet[12..].first_chunk().expect("two"), protocol, length as u16),
        _ => Sum::pseudo_ipv6(packet[8..].first_chunk().expect("two"), protocol, length as u32),
    }
}

/// A packet of TCP or UDP whose checksum covers the pseudo header only.
#[derive(Clone)]
pub(crate) struct Unfinished {
    pub(crate) bytes: Vec<u8>,
    /// Where the header of TCP or UDP starts, and where its checksum is from there.
    pub(crate) start: usize,
    offset: usize,
}

impl Unfinished {
    /// `ip` makes the header in front of so many bytes.
    pub(crate) fn new(ip: impl FnOnce(usize) -> Vec<u8>, transport: &dyn Emit, payload: &[u8]) -> Unfinished {
        let transport = [emitted(transport), payload.to_vec()].concat();
        let mut bytes = ip(transport.len());
        let start = bytes.len();
        bytes.extend(transport);
        let offset = if protocol(&bytes) == IpProtocol::TCP { 16 } else { 6 };
        let sum = pseudo(&bytes, start).folded().to_be_bytes();
        bytes[start + offset..start + offset + 2].copy_from_slice(&sum);
        Unfinished { bytes, start, offset }
    }

    pub(crate) fn finished(mut self) -> Vec<u8> {
        complete(&mut self.bytes, self.start, self.offset).expect("a checksum");
        self.bytes
    }

    /// The virtio header, behind so many bytes; of a super-packet with segments of this size and kind.
    pub(crate) fn header(&self, before: usize, size: Option<usize>, kind: u8) -> NetHeader {
        NetHeader {
            flags: NetHeader::NEEDS_CHECKSUM,
            gso_type: if size.is_some() { kind } else { NetHeader::NONE },
            header_length: 0,
            gso_size: size.unwrap_or(0) as u16,
            checksum_start: (before + self.start) as u16,
            checksum_offset: self.offset as u16,
        }
    }
}

/// A packet as an interface has it: where that has frames, behind an Ethernet header.
pub(crate) fn of_interface(form: Form, to: MacAddress, from: MacAddress, packet: &[u8]) -> Vec<u8> {
    let ethertype: [u8; 2] = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    match form {
        Form::Packets => packet.to_vec(),
        Form::Frames => [&to.0[..], &from.0, &ethertype, packet].concat(),
    }
}

pub(crate) fn set_down(interface: &str) {
    let set = std::process::Command::new("ip").args(["link", "set", interface, "down"]).status();
    assert!(set.expect("ip").success());
}
