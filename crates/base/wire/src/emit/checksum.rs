//! Checksums of headers that are written: the internet checksum (RFC 1071) and CRC32c (RFC 9260 appendix A).
//!
//! Plain and portable. Crate `offload` owns the fast ones for payloads; they must agree with these.

use super::EmitError;
use crate::error::Layer;
use crate::ip::IpProtocol;
use core::net::IpAddr;

/// A one's complement sum that is being built (RFC 1071 section 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// The sum of the pseudo header of a transport packet of `length` bytes (RFC 9293 section 3.1 for IPv4,
    /// RFC 8200 section 8.1 for IPv6). Addresses of different versions have no pseudo header: `None`.
    pub fn pseudo_header(
        source: IpAddr,
        destination: IpAddr,
        protocol: IpProtocol,
        length: usize,
    ) -> Option<Sum> {
        let addresses = match (source, destination) {
            (IpAddr::V4(from), IpAddr::V4(to)) => Sum::ZERO.bytes(&from.octets()).bytes(&to.octets()),
            (IpAddr::V6(from), IpAddr::V6(to)) => Sum::ZERO.bytes(&from.octets()).bytes(&to.octets()),
            _ => return None,
        };
        let length = length as u32;
        Some(addresses.word(u16::from(protocol.0)).word((length >> 16) as u16).word(length as u16))
    }

    /// Adds a 16-bit word, host order.
    #[inline]
    #[must_use]
    pub const fn word(self, word: u16) -> Sum {
        // 2^48 words are needed to overflow: more bytes than a machine addresses.
        Sum(self.0 + word as u64)
    }

    /// Adds bytes that start at an even place of what is summed; a last odd one counts as if a zero byte
    /// followed.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let sum = pairs.iter().fold(self.0, |sum, pair| sum + u64::from(u16::from_be_bytes(*pair)));
        match *rest {
            [last] => Sum(sum + (u64::from(last) << 8)),
            _ => Sum(sum),
        }
    }

    /// The sum folded to 16 bits, not complemented.
    #[inline]
    pub const fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    /// The checksum: the complement of the folded sum.
    #[inline]
    pub const fn finish(self) -> u16 {
        !self.folded()
    }
}

/// The internet checksum of `bytes` (RFC 1071). Over bytes that contain a right checksum it is zero.
pub fn internet(bytes: &[u8]) -> u16 {
    Sum::ZERO.bytes(bytes).finish()
}

/// Fills in the checksum of a whole transport packet: TCP, UDP, ICMP, ICMPv6 with the internet checksum,
/// SCTP with CRC32c. Other protocols have none to fill in and are left alone.
///
/// A UDP checksum that comes out as zero is sent as all ones (RFC 768). Errors: the packet is shorter than the
/// checksum field reaches. Addresses of different versions leave the packet alone.
pub fn fill(
    source: IpAddr,
    destination: IpAddr,
    protocol: IpProtocol,
    packet: &mut [u8],
) -> Result<(), EmitError> {
    let (layer, at, width) = match protocol {
        IpProtocol::TCP => (Layer::Tcp, 16, 2),
        IpProtocol::UDP => (Layer::Udp, 6, 2),
        IpProtocol::ICMP => (Layer::Icmp, 2, 2),
        IpProtocol::ICMPV6 => (Layer::Icmpv6, 2, 2),
        IpProtocol::SCTP => (Layer::Sctp, 8, 4),
        _ => return Ok(()),
    };
    let start = match protocol {
        IpProtocol::ICMP | IpProtocol::SCTP => Some(Sum::ZERO),
        _ => Sum::pseudo_header(source, destination, protocol, packet.len()),
    };
    let Some(start) = start else { return Ok(()) };
    let available = packet.len();
    let Some(field) = packet.get_mut(at..at + width) else {
        return Err(EmitError::BufferShort { layer, needed: at + width, available });
    };
    field.fill(0);
    if protocol == IpProtocol::SCTP {
        // RFC 9260 appendix A: the CRC goes out least significant byte first.
        let crc = crc32c(packet).to_le_bytes();
        if let Some(field) = packet.get_mut(at..at + width) {
            field.copy_from_slice(&crc);
        }
        return Ok(());
    }
    let checksum = match start.bytes(packet).finish() {
        0 if protocol == IpProtocol::UDP => 0xffff,
        checksum => checksum,
    };
    if let Some(field) = packet.get_mut(at..at + width) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(())
}

/// Whether the checksum of a whole transport packet is right; `true` for protocols without one, and for a UDP
/// checksum of zero over IPv4, which means that there is none (RFC 768).
pub fn is_right(source: IpAddr, destination: IpAddr, protocol: IpProtocol, packet: &[u8]) -> bool {
    match protocol {
        IpProtocol::SCTP => {
            let Some((head, rest)) = packet.split_first_chunk::<12>() else { return false };
            let [a, b, c, d, e, f, g, h, crc @ ..] = *head;
            let state = crc32c_continue(u32::MAX, &[a, b, c, d, e, f, g, h, 0, 0, 0, 0]);
            !crc32c_continue(state, rest) == u32::from_le_bytes(crc)
        }
        IpProtocol::ICMP => internet(packet) == 0,
        IpProtocol::UDP if source.is_ipv4() && packet.get(6..8) == Some(&[0, 0]) => true,
        IpProtocol::TCP | IpProtocol::UDP | IpProtocol::ICMPV6 => {
            Sum::pseudo_header(source, destination, protocol, packet.len())
                .is_some_and(|sum| sum.bytes(packet).finish() == 0)
        }
        _ => true,
    }
}

/// CRC32c (Castagnoli) of `bytes`, as SCTP uses it (RFC 9260 appendix A).
pub fn crc32c(bytes: &[u8]) -> u32 {
    !crc32c_continue(u32::MAX, bytes)
}

fn crc32c_continue(state: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(state, |crc, byte| {
        let index = (crc ^ u32::from(*byte)) & 0xff;
        crc >> 8 ^ CRC32C.get(index as usize).copied().unwrap_or_default()
    })
}

/// What each byte does to the state; the polynomial is 0x1EDC6F41, bits reversed.
static CRC32C: [u32; 256] = crc32c_table();

#[allow(clippy::indexing_slicing)] // evaluated at compile time only
const fn crc32c_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::ZERO.bytes(&bytes).folded(), 0xddf2);
        assert_eq!(internet(&bytes), !0xddf2);
    }

    #[test]
    fn an_odd_byte_counts_as_the_upper_half_of_a_word() {
        assert_eq!(internet(&[0x12]), !0x1200);
        assert_eq!(internet(&[0x12, 0x34, 0x56]), internet(&[0x12, 0x34, 0x56, 0x00]));
    }

    #[test]
    fn crc32c_of_rfc_3720_appendix_b4() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
