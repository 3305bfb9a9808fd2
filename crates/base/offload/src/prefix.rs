//! What goes in front of the IP header of every frame of a link.

use wire::IpVersion;
use wire::emit::{EmitError, Encapsulation, MAX_LABELS, MAX_TAGS};
use wire::ethernet::{Header, MacAddress};
use wire::ppp::PppProtocol;
use wire::{mpls, pppoe, vlan};

/// Bytes of a PPP protocol field on PPPoE (RFC 2516 section 7).
const PPP_LENGTH: usize = 2;
/// Bytes from the PPPoE length field to the IP header.
const BEHIND_LENGTH: usize = PPP_LENGTH + 2;
/// The longest prefix of any [`Encapsulation`].
const LONGEST: usize = Header::LENGTH
    + MAX_TAGS * vlan::TAG_LENGTH
    + MAX_LABELS * mpls::ENTRY_LENGTH
    + pppoe::Header::LENGTH
    + PPP_LENGTH;

/// The bytes in front of the IP header of a frame: MAC addresses, tags, labels, PPPoE. Written once for a link and
/// copied in front of every packet; the PPPoE length is then the packet's own.
#[derive(Clone, Debug)]
pub struct Prefix {
    ipv4: [u8; LONGEST],
    ipv6: [u8; LONGEST],
    length: usize,
    has_pppoe: bool,
}

impl Prefix {
    /// No bytes at all, for IP packets without a frame.
    pub const NONE: Prefix = Prefix { ipv4: [0; LONGEST], ipv6: [0; LONGEST], length: 0, has_pppoe: false };

    /// The bytes of an encapsulation between two stations. A PPPoE session that is not fixed is written as 0.
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

    /// Bytes.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// The most bytes that an IP packet behind this prefix can have: PPPoE counts them and two more in 16 bits
    /// (RFC 2516 section 4).
    pub const fn longest_packet(&self) -> usize {
        let most = u16::MAX as usize;
        if self.has_pppoe { most - PPP_LENGTH } else { most }
    }

    /// Makes it that of a PPPoE session: `front` is everything up to the PPPoE length, which is not part of it. Cheaper than
    /// [`Prefix::new`], for who has sessions by the thousand and keeps no prefix of each. `false`: `front` is longer than that of
    /// any encapsulation, and nothing was changed.
    #[inline]
    pub fn set_session(&mut self, front: &[u8]) -> bool {
        let length = front.len() + BEHIND_LENGTH;
        for (bytes, protocol) in [(&mut self.ipv4, PppProtocol::IPV4), (&mut self.ipv6, PppProtocol::IPV6)] {
            let Some((place, [_, _, high, low])) =
                bytes.get_mut(..length).and_then(|bytes| bytes.split_last_chunk_mut::<BEHIND_LENGTH>())
            else {
                return false;
            };
            place.copy_from_slice(front);
            [*high, *low] = protocol.0.to_be_bytes();
        }
        self.length = length;
        self.has_pppoe = true;
        true
    }

    /// Writes the prefix of a packet of `packet_length` bytes into a buffer of its own length; into any other
    /// nothing.
    #[inline]
    pub fn write(&self, version: IpVersion, packet_length: usize, buffer: &mut [u8]) {
        let bytes = match version {
            IpVersion::V4 => &self.ipv4,
            IpVersion::V6 => &self.ipv6,
        };
        let Some(bytes) = bytes.get(..self.length).filter(|bytes| bytes.len() == buffer.len()) else {
            return;
        };
        buffer.copy_from_slice(bytes);
        if self.has_pppoe
            && let Some((_, [high, low, _, _])) = buffer.split_last_chunk_mut::<BEHIND_LENGTH>()
        {
            [*high, *low] = ((packet_length + PPP_LENGTH) as u16).to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_set_is_a_session_made() {
        let (near, far) = (MacAddress([2; 6]), MacAddress([4; 6]));
        let mut set = Prefix::NONE;
        for text in ["pppoe:7", "ad:1,q:2,q:3,q:4,pppoe:65534", "q:9,pppoe:1"] {
            let encapsulation: Encapsulation = text.parse().expect("an encapsulation");
            let made = Prefix::new(&encapsulation, far, near).expect("a prefix");
            let front = made.ipv4.get(..made.length - BEHIND_LENGTH).expect("its front");
            assert!(set.set_session(front));
            assert_eq!((set.length(), set.longest_packet()), (made.length(), made.longest_packet()));
            for (version, length) in [(IpVersion::V4, 20), (IpVersion::V6, 65_533)] {
                let written = [&set, &made].map(|prefix| {
                    let mut bytes = vec![0; prefix.length()];
                    prefix.write(version, length, &mut bytes);
                    bytes
                });
                assert_eq!(written[0], written[1], "{text}");
            }
        }
        assert!(!set.set_session(&[0; 67]));
    }
}
