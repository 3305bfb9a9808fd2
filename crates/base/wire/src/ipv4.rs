//! IPv4 (RFC 791 section 3.1).

use crate::error::{Error, Field, Layer, Rule};
use crate::ip::{Fragment, IpProtocol, MAX_LENGTH};
use core::net::Ipv4Addr;

/// View of the fixed part of a header, 20 bytes. Options follow it up to [`Header::header_length`].
///
/// The header checksum is not verified here: captures taken on the sending host hold unfinished checksums,
/// and a flow is the same flow either way.
#[derive(Clone, Copy)]
pub struct Header<'a>(&'a [u8; Header::LENGTH]);

impl<'a> Header<'a> {
    /// Bytes of the fixed part.
    pub const LENGTH: usize = 20;

    /// View over the 20 bytes.
    #[inline(always)]
    pub const fn of(octets: &'a [u8; Header::LENGTH]) -> Header<'a> {
        Header(octets)
    }

    /// Version, 4 bits.
    #[inline(always)]
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// Bytes of the header, options included.
    #[inline(always)]
    pub const fn header_length(&self) -> usize {
        (self.0[0] & 0x0f) as usize * 4
    }

    /// Differentiated services and ECN (RFC 2474, RFC 3168).
    pub const fn traffic_class(&self) -> u8 {
        self.0[1]
    }

    /// Bytes of the packet, header included; zero in a super-packet of more than 65,535 bytes.
    #[inline(always)]
    pub const fn total_length(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Identification, which fragments of one packet share.
    pub const fn identification(&self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    #[inline(always)]
    const fn flags_and_offset(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// Do not fragment.
    pub const fn dont_fragment(&self) -> bool {
        self.flags_and_offset() & 0x4000 != 0
    }

    /// More fragments follow.
    pub const fn more_fragments(&self) -> bool {
        self.flags_and_offset() & 0x2000 != 0
    }

    /// Fragment offset in units of eight bytes.
    pub const fn fragment_offset(&self) -> u16 {
        self.flags_and_offset() & 0x1fff
    }

    /// Place among fragments.
    #[inline(always)]
    pub const fn fragment(&self) -> Fragment {
        Fragment::of(self.fragment_offset(), self.more_fragments())
    }

    /// Time to live.
    pub const fn ttl(&self) -> u8 {
        self.0[8]
    }

    /// Protocol of the payload.
    #[inline(always)]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol(self.0[9])
    }

    /// Header checksum, host order, as found.
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.0[10], self.0[11]])
    }

    /// Source address.
    pub const fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[12], self.0[13], self.0[14], self.0[15])
    }

    /// Destination address.
    pub const fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[16], self.0[17], self.0[18], self.0[19])
    }

    /// Source and destination address as they stand in the header.
    #[inline(always)]
    pub const fn addresses(&self) -> &'a [u8; 8] {
        match self.0.last_chunk::<8>() {
            Some(addresses) => addresses,
            None => &[0; 8],
        }
    }

    /// Version and header length: version 4, and at least five words (RFC 791: "minimum value is 5").
    #[inline(always)]
    pub const fn check_header(&self) -> Result<(), Error> {
        if self.version() != 4 {
            return Err(Error::new(Layer::Ipv4, Field::Version, Rule::MustBe, self.version() as usize, 4));
        }
        let length = self.header_length();
        if length < Header::LENGTH {
            return Err(Error::new(Layer::Ipv4, Field::HeaderLength, Rule::Below, length, Header::LENGTH));
        }
        Ok(())
    }

    /// The length of the packet, checked against the `available` bytes from the start of the header.
    /// Bytes behind the length are padding of the frame.
    ///
    /// Zero means "all that is available" for a packet of more than 65,535 bytes, which Linux builds when
    /// it coalesces or segments (BIG TCP, `net/ipv4/ip_input.c`, `iph_totlen`); otherwise it is an error.
    #[inline(always)]
    pub const fn check_length(&self, available: usize) -> Result<usize, Error> {
        let length = self.total_length() as usize;
        if length >= self.header_length() && length <= available {
            return Ok(length);
        }
        if length == 0 && available > MAX_LENGTH {
            return Ok(available);
        }
        let (rule, limit) =
            if length > available { (Rule::Exceeds, available) } else { (Rule::Below, self.header_length()) };
        Err(Error::new(Layer::Ipv4, Field::Length, rule, length, limit))
    }
}
