//! Representations of what stands before the network header: MAC header, tags, LLC, SNAP, MPLS, cooked
//! headers; and ARP.

use super::{Emit, EmitError, fits, place};
use crate::error::{Field, Layer};
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

fields! {
    /// LLC AA AA 03 with the SNAP header behind it (RFC 1042).
    Snap: Layer::Llc, 8, behind [0xaa, 0xaa, 0x03] {
        /// Organisation; 00-00-00 means that an EtherType follows.
        oui: [u8; 3],
        /// Protocol under that organisation.
        protocol: EtherType,
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

fields! {
    /// ARP for IPv4 over Ethernet (RFC 826): hardware type 1, protocol type 0x0800, address lengths 6 and 4.
    Arp: Layer::Ethernet, 28, behind [0, 1, 8, 0, 6, 4] {
        /// 1 request, 2 reply.
        operation: u16,
        sender: MacAddress,
        sender_ip: Ipv4Addr,
        /// Zero in a request.
        target: MacAddress,
        target_ip: Ipv4Addr,
    }
}
