//! What a datagram takes on an Ethernet line.

/// Preamble and start delimiter (8 bytes) and the gap between frames (12), which no capture shows (IEEE 802.3-2022
/// clauses 3.1.1 and 4.4.2).
pub const AROUND: u64 = 20;
pub const FCS: u64 = 4;
pub const LEAST: u64 = 60;
const MAC_HEADER: u64 = 14;
const UDP_HEADER: u64 = 8;
/// RFC 8200 section 4.5.
const FRAGMENT_HEADER: u64 = 8;

/// Bytes of a frame with what is around it, from its bytes without FCS.
pub const fn of_frame(bytes: u64) -> u64 {
    let padded = if bytes < LEAST { LEAST } else { bytes };
    padded + FCS + AROUND
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// MTU of the line; longer packets are sent in fragments.
    pub mtu: u64,
    /// Bytes of tags and other encapsulation in each frame, beyond the MAC header.
    pub overhead: u64,
}

impl Framing {
    /// Bytes on the wire of a datagram with so much payload, over IPv6 or IPv4 without options.
    pub const fn of_datagram(self, payload: u64, is_ipv6: bool) -> u64 {
        let header = if is_ipv6 { 40 } else { 20 };
        let content = UDP_HEADER + payload;
        let around = MAC_HEADER + self.overhead;
        if header + content <= self.mtu {
            return of_frame(around + header + content);
        }
        // Fragments but the last are of multiples of eight bytes (RFC 791 section 3.1, RFC 8200 section 4.5).
        let each_header = if is_ipv6 { header + FRAGMENT_HEADER } else { header };
        let room = self.mtu.saturating_sub(each_header) / 8 * 8;
        if room == 0 {
            return of_frame(around + header + content);
        }
        let whole = (content - 1) / room;
        let last = content - whole * room;
        whole * of_frame(around + each_header + room) + of_frame(around + each_header + last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Framing = Framing { mtu: 1500, overhead: 0 };

    #[test]
    fn small_datagrams_take_84_bytes() {
        // 10^9 / (8 x 84) is 1.488 million a second.
        assert_eq!([0, 18].map(|payload| LINE.of_datagram(payload, false)), [84, 84]);
        assert_eq!(LINE.of_datagram(19, false), 85);
        assert_eq!(LINE.of_datagram(0, true), 86);
        // A tag fits into the padding.
        let tagged = Framing { overhead: 4, ..LINE };
        assert_eq!([14, 15].map(|payload| tagged.of_datagram(payload, false)), [84, 85]);
    }

    #[test]
    fn what_is_longer_than_the_mtu_is_in_fragments() {
        assert_eq!(LINE.of_datagram(1472, false), 1538);
        // 1480 bytes and one, behind a header each; the second is padded.
        assert_eq!(LINE.of_datagram(1473, false), 1538 + 84);
        assert_eq!(LINE.of_datagram(1452, true), 1538);
        // 1448 and 13 bytes behind 48 of headers.
        assert_eq!(LINE.of_datagram(1453, true), (14 + 48 + 1448 + 24) + (14 + 48 + 13 + 24));
        assert_eq!(LINE.of_datagram(65_507, false), 44 * 1538 + (14 + 20 + 395 + 24));
        assert_eq!(Framing { mtu: 20, overhead: 0 }.of_datagram(100, false), 166);
    }
}
