//! What goes in front of the IP header of every frame of a link.

use wire::IpVersion;
use wire::emit::{EmitError, Encapsulation, MAX_LABELS, MAX_TAGS};
use wire::ethernet::{Header, MacAddress};
use wire::{mpls, pppoe, vlan};

/// Octets of a PPP protocol field on PPPoE (RFC 2516 section 7).
const PPP_LENGTH: usize = 2;
/// Octets from the PPPoE length field to the IP header.
const BEHIND_LENGTH: usize = PPP_LENGTH + 2;
/// The longest prefix of any [`Encapsulation`].
const LONGEST: usize = Header::LENGTH
    + MAX_TAGS * vlan::TAG_LENGTH
    + MAX_LABELS * mpls::ENTRY_LENGTH
    + pppoe::Header::LENGTH
    + PPP_LENGTH;

/// The octets in front of the IP header of a frame: MAC addresses, tags, labels, PPPoE. Written once for a link and
/// copied in front of every packet; the PPPoE length is then the packet's own.
#[derive(Clone, Debug)]
pub struct Prefix {
    ipv4: [u8; LONGEST],
    ipv6: [u8; LONGEST],
    length: usize,
    has_pppoe: bool,
}

impl Prefix {
    /// No octets at all, for IP packets without a frame.
    pub const NONE: Prefix = Prefix { ipv4: [0; LONGEST], ipv6: [0; LONGEST], length: 0, has_pppoe: false };

    /// The octets of an encapsulation between two stations. A PPPoE session that is not fixed is written as 0.
    /// Errors: those of [`Encapsulation::emit`], none of which its values can cause.
    pub fn new(
        encapsulation: &Encapsulation,
        destination: MacAddress,
        source: MacAddress,
    ) -> Result<Prefix, EmitError> {
        let has_pppoe = encapsulation.pppoe().is_some();
        let mut prefix = Prefix { length: encapsulation.length(), has_pppoe, ..Prefix::NONE };
        encapsulation.emit(destination, source, IpVersion::V4, 0, &mut prefix.ipv4)?;
        encapsulation.emit(destination, source, IpVersion::V6, 0, &mut prefix.ipv6)?;
        Ok(prefix)
    }

    /// Octets.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// The most octets that an IP packet behind this prefix can have: PPPoE counts them and two more in 16 bits
    /// (RFC 2516 section 4).
    pub const fn longest_packet(&self) -> usize {
        let most = u16::MAX as usize;
        if self.has_pppoe { most - PPP_LENGTH } else { most }
    }

    /// Writes the prefix of a packet of `packet_length` octets into a buffer of its own length; into any other
    /// nothing.
    #[inline]
    pub(crate) fn write(&self, version: IpVersion, packet_length: usize, buffer: &mut [u8]) {
        let octets = match version {
            IpVersion::V4 => &self.ipv4,
            IpVersion::V6 => &self.ipv6,
        };
        let Some(octets) = octets.get(..self.length).filter(|octets| octets.len() == buffer.len()) else {
            return;
        };
        buffer.copy_from_slice(octets);
        if self.has_pppoe
            && let Some((_, [high, low, _, _])) = buffer.split_last_chunk_mut::<BEHIND_LENGTH>()
        {
            [*high, *low] = ((packet_length + PPP_LENGTH) as u16).to_be_bytes();
        }
    }
}
