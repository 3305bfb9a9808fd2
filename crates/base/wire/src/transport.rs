//! TCP (RFC 9293) and UDP (RFC 768): the fixed headers.

use crate::error::{Error, Field, Layer, Rule};

view! {
    /// A TCP header without options (RFC 9293 section 3.1).
    Tcp[20] {
        source_port: u16 @ 0,
        destination_port: u16 @ 2,
        sequence: u32 @ 4,
        acknowledgment: u32 @ 8,
        /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit down.
        flags: u8 @ 13,
        window: u16 @ 14,
        checksum: u16 @ 16,
        urgent: u16 @ 18,
    }
}

impl Tcp<'_> {
    /// Bytes of the header, options included.
    #[inline(always)]
    pub const fn header_length(&self) -> usize {
        (self.0[12] >> 4) as usize * 4
    }

    /// The data offset: at least five words, at most the `available` bytes of the segment.
    #[inline(always)]
    pub const fn check(&self, available: usize) -> Result<(), Error> {
        let length = self.header_length();
        if length >= Tcp::LENGTH && length <= available {
            return Ok(());
        }
        let (rule, limit) =
            if length < Tcp::LENGTH { (Rule::Below, Tcp::LENGTH) } else { (Rule::Exceeds, available) };
        Err(Error::new(Layer::Tcp, Field::HeaderLength, rule, length, limit))
    }
}

view! {
    /// A UDP header (RFC 768).
    Udp[8] {
        source_port: u16 @ 0,
        destination_port: u16 @ 2,
        /// Bytes of header and data; zero in a jumbogram.
        length: u16 @ 4,
        checksum: u16 @ 6,
    }
}

impl Udp<'_> {
    /// The length: at least eight, at most the `available` bytes of the datagram. Zero is legal in a
    /// jumbogram (RFC 2675 section 4), where more than 65,535 bytes are available.
    #[inline(always)]
    pub const fn check(&self, available: usize) -> Result<(), Error> {
        let length = self.length() as usize;
        if length >= Udp::LENGTH && length <= available || length == 0 && available > crate::ip::MAX_LENGTH {
            return Ok(());
        }
        let (rule, limit) =
            if length < Udp::LENGTH { (Rule::Below, Udp::LENGTH) } else { (Rule::Exceeds, available) };
        Err(Error::new(Layer::Udp, Field::Length, rule, length, limit))
    }
}
