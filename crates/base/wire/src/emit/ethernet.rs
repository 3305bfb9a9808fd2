//! Representations of what stands before the network header: MAC header, tags, LLC, SNAP, MPLS, cooked
//! headers; and ARP.

use super::{Emit, EmitError, fits, place};
use crate::error::{Error, Field, Layer, Rule};
use crate::ethernet::{EtherType, Header, MacAddress};
use crate::mpls;
use crate::vlan::{TAG_LENGTH, Tci};
use core::net::Ipv4Addr;

fn cut<const N: usize>(layer: Layer, octets: &[u8]) -> Result<&[u8; N], Error> {
    octets.first_chunk().ok_or(Error::new(layer, Field::Header, Rule::Cut, octets.len(), N))
}

/// MAC header (IEEE 802.3-2022 clause 3.1). View: [`crate::ethernet::Header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// EtherType, TPID of a first tag, or 802.3 length.
    pub ethertype: EtherType,
}

impl Ethernet {
    /// Reads the header at the start of `octets`. Error: not whole.
    pub fn parse(octets: &[u8]) -> Result<Ethernet, Error> {
        let header = Header::of(cut(Layer::Ethernet, octets)?);
        Ok(Ethernet {
            destination: header.destination(),
            source: header.source(),
            ethertype: header.ethertype(),
        })
    }
}

impl Emit for Ethernet {
    fn length(&self) -> usize {
        Header::LENGTH
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let octets = place(Layer::Ethernet, self.length(), buffer)?;
        Ok(octets.put(&self.destination.0).put(&self.source.0).u16(self.ethertype.0).length())
    }
}

/// A tag as it stands behind the TPID that announced it: TCI, then the next EtherType
/// (IEEE 802.1Q-2022 clause 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Priority, drop eligibility, identifier.
    pub tci: Tci,
    /// What follows: an EtherType, or the TPID of another tag.
    pub ethertype: EtherType,
}

impl VlanTag {
    /// Reads the tag whose TCI starts `octets`. Error: not whole.
    pub fn parse(octets: &[u8]) -> Result<VlanTag, Error> {
        let [a, b, c, d] = *cut::<TAG_LENGTH>(Layer::Vlan, octets)?;
        let tci = Tci(u16::from_be_bytes([a, b]));
        Ok(VlanTag { tci, ethertype: EtherType(u16::from_be_bytes([c, d])) })
    }
}

impl Emit for VlanTag {
    fn length(&self) -> usize {
        TAG_LENGTH
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let octets = place(Layer::Vlan, self.length(), buffer)?;
        Ok(octets.u16(self.tci.0).u16(self.ethertype.0).length())
    }
}

/// LLC header with a one-byte control field (IEEE 802.2 clause 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Llc {
    /// Destination service access point.
    pub dsap: u8,
    /// Source service access point.
    pub ssap: u8,
    /// Control.
    pub control: u8,
}

impl Llc {
    /// Reads the header at the start of `octets`. Error: not whole.
    pub fn parse(octets: &[u8]) -> Result<Llc, Error> {
        let [dsap, ssap, control] = *cut::<3>(Layer::Llc, octets)?;
        Ok(Llc { dsap, ssap, control })
    }
}

impl Emit for Llc {
    fn length(&self) -> usize {
        3
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        Ok(place(Layer::Llc, 3, buffer)?.put(&[self.dsap, self.ssap, self.control]).length())
    }
}

/// LLC AA AA 03 with the SNAP header behind it (RFC 1042).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snap {
    /// Organisation; 00-00-00 means that an EtherType follows.
    pub oui: [u8; 3],
    /// Protocol under that organisation.
    pub protocol: EtherType,
}

impl Snap {
    const LLC: [u8; 3] = [0xaa, 0xaa, 0x03];

    /// Reads LLC and SNAP at the start of `octets`. Errors: not whole, or another LLC header.
    pub fn parse(octets: &[u8]) -> Result<Snap, Error> {
        let [dsap, ssap, control, a, b, c, high, low] = *cut::<8>(Layer::Llc, octets)?;
        let llc = [dsap, ssap, control];
        if llc != Snap::LLC {
            let number = |[a, b, c]: [u8; 3]| u32::from_be_bytes([0, a, b, c]) as usize;
            return Err(Error::new(Layer::Llc, Field::Header, Rule::MustBe, number(llc), number(Snap::LLC)));
        }
        Ok(Snap { oui: [a, b, c], protocol: EtherType(u16::from_be_bytes([high, low])) })
    }
}

impl Emit for Snap {
    fn length(&self) -> usize {
        8
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        Ok(place(Layer::Llc, 8, buffer)?.put(&Snap::LLC).put(&self.oui).u16(self.protocol.0).length())
    }
}

/// One MPLS label stack entry (RFC 3032 section 2.1), its fields apart. View: [`crate::mpls::Entry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpls {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits.
    pub traffic_class: u8,
    /// Bottom of stack.
    pub bottom: bool,
    /// Time to live.
    pub ttl: u8,
}

impl Mpls {
    /// Reads the entry at the start of `octets`. Error: not whole.
    pub fn parse(octets: &[u8]) -> Result<Mpls, Error> {
        let entry = mpls::Entry::of(*cut(Layer::Mpls, octets)?);
        Ok(Mpls {
            label: entry.label(),
            traffic_class: entry.traffic_class(),
            bottom: entry.is_bottom(),
            ttl: entry.ttl(),
        })
    }
}

impl Emit for Mpls {
    fn length(&self) -> usize {
        mpls::ENTRY_LENGTH
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        fits(Layer::Mpls, Field::Count, self.label as usize, 0xf_ffff)?;
        fits(Layer::Mpls, Field::Type, usize::from(self.traffic_class), 7)?;
        let entry = mpls::Entry::new(self.label, self.traffic_class, self.bottom, self.ttl);
        Ok(place(Layer::Mpls, self.length(), buffer)?.u32(entry.0).length())
    }
}

/// LINKTYPE_LINUX_SLL header (tcpdump.org). View: [`crate::cooked::Header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxCooked {
    /// 0 to us, 1 broadcast, 2 multicast, 3 to someone else, 4 sent by us.
    pub packet_type: u16,
    /// ARPHRD type of the device.
    pub hardware: u16,
    /// Bytes of `address` that are meant.
    pub address_length: u16,
    /// Link-layer address of the sender, padded.
    pub address: [u8; 8],
    /// EtherType, or one of the small numbers that Linux gives to other framings.
    pub protocol: u16,
}

impl LinuxCooked {
    /// Reads the header at the start of `octets`. Error: not whole.
    pub fn parse(octets: &[u8]) -> Result<LinuxCooked, Error> {
        let [t0, t1, h0, h1, l0, l1, address @ .., p0, p1] = *cut::<16>(Layer::LinuxCooked, octets)?;
        Ok(LinuxCooked {
            packet_type: u16::from_be_bytes([t0, t1]),
            hardware: u16::from_be_bytes([h0, h1]),
            address_length: u16::from_be_bytes([l0, l1]),
            address,
            protocol: u16::from_be_bytes([p0, p1]),
        })
    }
}

impl Emit for LinuxCooked {
    fn length(&self) -> usize {
        16
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let octets = place(Layer::LinuxCooked, 16, buffer)?;
        let octets = octets.u16(self.packet_type).u16(self.hardware).u16(self.address_length);
        Ok(octets.put(&self.address).u16(self.protocol).length())
    }
}

/// LINKTYPE_LINUX_SLL2 header (tcpdump.org). View: [`crate::cooked::Header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxCooked2 {
    /// As [`LinuxCooked::protocol`].
    pub protocol: u16,
    /// Index of the interface.
    pub interface: u32,
    /// ARPHRD type of the device.
    pub hardware: u16,
    /// As [`LinuxCooked::packet_type`].
    pub packet_type: u8,
    /// Bytes of `address` that are meant.
    pub address_length: u8,
    /// Link-layer address of the sender, padded.
    pub address: [u8; 8],
}

impl LinuxCooked2 {
    /// Reads the header at the start of `octets`. Error: not whole. The two reserved bytes are not kept.
    pub fn parse(octets: &[u8]) -> Result<LinuxCooked2, Error> {
        let [p0, p1, _, _, i0, i1, i2, i3, h0, h1, packet_type, address_length, address @ ..] =
            *cut::<20>(Layer::LinuxCooked, octets)?;
        Ok(LinuxCooked2 {
            protocol: u16::from_be_bytes([p0, p1]),
            interface: u32::from_be_bytes([i0, i1, i2, i3]),
            hardware: u16::from_be_bytes([h0, h1]),
            packet_type,
            address_length,
            address,
        })
    }
}

impl Emit for LinuxCooked2 {
    fn length(&self) -> usize {
        20
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let octets = place(Layer::LinuxCooked, 20, buffer)?.u16(self.protocol).u16(0).u32(self.interface);
        let octets = octets.u16(self.hardware).u8(self.packet_type).u8(self.address_length);
        Ok(octets.put(&self.address).length())
    }
}

/// ARP for IPv4 over Ethernet (RFC 826).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// 1 request, 2 reply.
    pub operation: u16,
    /// Sender's MAC address.
    pub sender: MacAddress,
    /// Sender's IPv4 address.
    pub sender_ip: Ipv4Addr,
    /// Target's MAC address; zero in a request.
    pub target: MacAddress,
    /// Target's IPv4 address.
    pub target_ip: Ipv4Addr,
}

impl Arp {
    /// Bytes.
    pub const LENGTH: usize = 28;

    /// Hardware type 1, protocol type 0x0800, address lengths 6 and 4.
    const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

    /// Reads the packet at the start of `octets`; `None` where it is not whole or not about IPv4 over
    /// Ethernet.
    pub fn parse(octets: &[u8]) -> Option<Arp> {
        let (kind, rest) = octets.split_first_chunk::<6>()?;
        let &[o0, o1, a, b, c, d, e, f, s0, s1, s2, s3, g, h, i, j, k, l, t0, t1, t2, t3] =
            rest.first_chunk::<22>()?;
        (*kind == Arp::ETHERNET_IPV4).then_some(Arp {
            operation: u16::from_be_bytes([o0, o1]),
            sender: MacAddress([a, b, c, d, e, f]),
            sender_ip: Ipv4Addr::new(s0, s1, s2, s3),
            target: MacAddress([g, h, i, j, k, l]),
            target_ip: Ipv4Addr::new(t0, t1, t2, t3),
        })
    }
}

impl Emit for Arp {
    fn length(&self) -> usize {
        Arp::LENGTH
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let octets =
            place(Layer::Ethernet, Arp::LENGTH, buffer)?.put(&Arp::ETHERNET_IPV4).u16(self.operation);
        let octets = octets.put(&self.sender.0).put(&self.sender_ip.octets());
        Ok(octets.put(&self.target.0).put(&self.target_ip.octets()).length())
    }
}
