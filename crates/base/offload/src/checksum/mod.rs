//! The internet checksum (RFC 1071): sums of bytes, whole, partial and updated.
//!
//! ```
//! use rxlane_offload::checksum::Sum;
//!
//! // RFC 1071 section 3.
//! let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
//! assert_eq!(Sum::of(&bytes).folded(), 0xddf2);
//! assert_eq!(Sum::of(&bytes[..4]).plus(Sum::of(&bytes[4..])).checksum(), !0xddf2);
//! ```
//!
//! A sum has two zeros, 0x0000 and 0xffff. A sum of bytes is 0x0000 only if every byte is zero; what is left where one
//! sum is taken from another that is equal is 0xffff. A receiver takes both for the same, so what differs is only what is
//! written.

mod partial;
mod path;
pub(crate) mod portable;
mod update;
mod verify;

pub use partial::{PartialError, complete};
pub use path::{Path, PathUnavailable};
pub use update::update;
pub use verify::{Verdict, Verified, verify, verify_ipv4_header, verify_transport};

use wire::IpProtocol;

/// A one's complement sum of 16-bit words, not yet folded to 16 bits.
///
/// It is kept as the words lie in memory: addition with end-around carry gives the same bytes in either order
/// (RFC 1071 section 2 (B)), so only the result is swapped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// The sum of bytes that start at an even place of what is summed; a last odd one counts as if a zero byte
    /// followed (RFC 1071 section 1).
    #[inline]
    pub fn of(bytes: &[u8]) -> Sum {
        Sum(path::sum(bytes))
    }

    /// The same by a path of one's own choice, for tests and comparisons. Error: this processor lacks what the path
    /// needs.
    pub fn by_path(path: Path, bytes: &[u8]) -> Result<Sum, PathUnavailable> {
        path.sum(bytes).map(Sum)
    }

    /// The sum of one 16-bit word, host order.
    #[inline(always)]
    pub const fn word(word: u16) -> Sum {
        Sum(word.to_be() as u64)
    }

    /// The pseudo header of a transport packet of `length` bytes over IPv4 (RFC 9293 section 3.1, RFC 768):
    /// `addresses` is source, then destination, as they stand in the IP header.
    #[inline]
    pub fn pseudo_ipv4(addresses: &[u8; 8], protocol: IpProtocol, length: u16) -> Sum {
        let [a, b, c, d, e, f, g, h] = *addresses;
        let source = u32::from_ne_bytes([a, b, c, d]);
        let destination = u32::from_ne_bytes([e, f, g, h]);
        let words = Sum::word(protocol.0 as u16).0 + Sum::word(length).0;
        Sum(u64::from(source) + u64::from(destination) + words)
    }

    /// The same over IPv6 (RFC 8200 section 8.1). With a routing header the destination is the final one; with a
    /// home address option the source is the home address (RFC 6275 section 11.3.1).
    #[inline]
    pub fn pseudo_ipv6(addresses: &[u8; 32], protocol: IpProtocol, length: u32) -> Sum {
        let length = Sum::word((length >> 16) as u16).0 + Sum::word(length as u16).0;
        Sum(portable::sum(addresses)).plus(Sum(Sum::word(protocol.0 as u16).0 + length))
    }

    /// Both sums together. `other` starts at an even place.
    #[inline(always)]
    #[must_use]
    pub const fn plus(self, other: Sum) -> Sum {
        let (sum, carry) = self.0.overflowing_add(other.0);
        Sum(sum + carry as u64)
    }

    /// This sum without the words of `other`, which are in it.
    #[inline(always)]
    #[must_use]
    pub const fn minus(self, other: Sum) -> Sum {
        self.plus(Sum(!other.0))
    }

    /// The sum folded to 16 bits, host order, not complemented.
    #[inline(always)]
    pub const fn folded(self) -> u16 {
        // The upper half of a number plus its halves exchanged is the sum of the halves with end-around carry.
        let sum = (self.0.wrapping_add(self.0.rotate_left(32)) >> 32) as u32;
        let sum = (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16;
        u16::from_be(sum)
    }

    /// The checksum, host order: the complement of the folded sum. Zero over bytes with a right checksum in them.
    #[inline(always)]
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }

    /// The checksum as UDP writes it: all ones in place of zero, which would mean that there is none (RFC 768,
    /// RFC 8200 section 8.1).
    #[inline(always)]
    pub const fn udp_checksum(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            checksum => checksum,
        }
    }
}

/// The internet checksum of `bytes`, host order. Zero if they contain a right one.
#[inline]
pub fn internet(bytes: &[u8]) -> u16 {
    Sum::of(bytes).checksum()
}
