//! IPv4 (RFC 791 section 3.1).

use crate::error::{Error, Field, Layer, Rule};
use crate::ip::{Fragment, IpProtocol, MAX_LENGTH};
use core::net::Ipv4Addr;

view! {
    /// The fixed part of a header. Options follow it up to [`Header::header_length`].
    ///
    /// The header checksum is not verified here: captures taken on the sending host hold unfinished checksums,
    /// and a flow is the same flow either way.
    Header[20] {
        /// Differentiated services and ECN (RFC 2474, RFC 3168).
        traffic_class: u8 @ 1,
        /// Bytes of the packet, header included; zero in a super-packet of more than 65,535 bytes.
        total_length: u16 @ 2,
        /// Which fragments of one packet share.
        identification: u16 @ 4,
        /// Flags in the upper three bits, then the offset in units of eight bytes.
        flags_and_offset: u16 @ 6,
        ttl: u8 @ 8,
        protocol: IpProtocol @ 9,
        checksum: u16 @ 10,
        source: Ipv4Addr @ 12,
        destination: Ipv4Addr @ 16,
    }
}

impl<'a> Header<'a> {
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
