//! Representations of what stands before the network header: MAC header, tags, LLC, SNAP, MPLS, cooked
//! headers; and ARP.

use super::{Emit, EmitError, cut, fits, place};
use crate::error::{Error, Field, Layer, Rule};
use crate::ethernet::{EtherType, MacAddress};
use crate::mpls;
use crate::vlan::Tci;
use core::net::Ipv4Addr;

fields! {
    /// MAC header (IEEE 802.3-2022 clause 3.1). View: [`crate::ethernet::Header`].
    Ethernet: Layer::Ethernet, 14 {
        destination: MacAddress,
        source: MacAddress,
        /// EtherType, TPID of a first tag, or 802.3 length.
        ethertype: EtherType,
    }
}

fields! {
    /// A tag as it stands behind the TPID that announced it (IEEE 802.1Q-2022 clause 9.6).
    VlanTag: Layer::Vlan, 4 {
        tci: Tci,
        /// What follows: an EtherType, or the TPID of another tag.
        ethertype: EtherType,
    }
}

fields! {
    /// LLC header with a one-byte control field (IEEE 802.2 clause 3.2).
    Llc: Layer::Llc, 3 {
        dsap: u8,
        ssap: u8,
        control: u8,
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
        let [dsap, ssap, control, a, b, c, high, low] =
            *octets.first_chunk().ok_or(cut(Layer::Llc, octets, 8))?;
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
    pub bottom: bool,
    pub ttl: u8,
}

impl Mpls {
    /// Reads the entry at the start of `octets`. Error: not whole.
    pub fn parse(octets: &[u8]) -> Result<Mpls, Error> {
        let entry =
            mpls::Entry::of(*octets.first_chunk().ok_or(cut(Layer::Mpls, octets, mpls::ENTRY_LENGTH))?);
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

fields! {
    /// LINKTYPE_LINUX_SLL header (tcpdump.org). View: [`crate::cooked::Header`].
    LinuxCooked: Layer::LinuxCooked, 16 {
        /// 0 to us, 1 broadcast, 2 multicast, 3 to someone else, 4 sent by us.
        packet_type: u16,
        /// ARPHRD type of the device.
        hardware: u16,
        /// Bytes of `address` that are meant.
        address_length: u16,
        /// Link-layer address of the sender, padded.
        address: [u8; 8],
        /// EtherType, or one of the small numbers that Linux gives to other framings.
        protocol: u16,
    }
}

fields! {
    /// LINKTYPE_LINUX_SLL2 header (tcpdump.org), with the fields of [`LinuxCooked`].
    LinuxCooked2: Layer::LinuxCooked, 20 {
        protocol: u16,
        reserved: u16,
        /// Index of the interface.
        interface: u32,
        hardware: u16,
        packet_type: u8,
        address_length: u8,
        address: [u8; 8],
    }
}

/// ARP for IPv4 over Ethernet (RFC 826).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// 1 request, 2 reply.
    pub operation: u16,
    pub sender: MacAddress,
    pub sender_ip: Ipv4Addr,
    /// Zero in a request.
    pub target: MacAddress,
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
