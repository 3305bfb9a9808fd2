//! IPv6 (RFC 8200): the fixed header. Extension headers are in [`crate::extension`].

use crate::error::{Error, Field, Layer, Rule};
use crate::ip::{IpProtocol, MAX_LENGTH};
use core::net::Ipv6Addr;

view! {
    /// The fixed header.
    Header[40] {
        /// Bytes behind this header; zero in a jumbogram.
        payload_length: u16 @ 4,
        /// Protocol of what follows directly.
        next_header: IpProtocol @ 6,
        hop_limit: u8 @ 7,
    }
}

impl<'a> Header<'a> {
    /// Version, 4 bits.
    #[inline(always)]
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// Differentiated services and ECN.
    pub const fn traffic_class(&self) -> u8 {
        self.0[0] << 4 | self.0[1] >> 4
    }

    /// Flow label, 20 bits (RFC 6437).
    pub const fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.0[1] & 0x0f, self.0[2], self.0[3]])
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.addresses().first_chunk::<16>().copied().unwrap_or_default())
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.addresses().last_chunk::<16>().copied().unwrap_or_default())
    }

    /// Source and destination address as they stand in the header.
    #[inline(always)]
    pub const fn addresses(&self) -> &'a [u8; 32] {
        match self.0.last_chunk::<32>() {
            Some(addresses) => addresses,
            None => &[0; 32],
        }
    }

    /// The version, which must be 6.
    #[inline(always)]
    pub const fn check_version(&self) -> Result<(), Error> {
        if self.version() == 6 {
            return Ok(());
        }
        Err(Error::new(Layer::Ipv6, Field::Version, Rule::MustBe, self.version() as usize, 6))
    }

    /// The bytes behind this header, checked against the `available` ones. Bytes behind the length are
    /// padding of the frame.
    ///
    /// Zero is "all that is available" where more than 65,535 bytes follow: a jumbogram (RFC 2675; its
    /// option is then checked with the hop-by-hop header) or a super-packet that Linux built without one.
    #[inline(always)]
    pub const fn check_length(&self, available: usize) -> Result<usize, Error> {
        let length = self.payload_length() as usize;
        if length > available {
            return Err(Error::new(Layer::Ipv6, Field::Length, Rule::Exceeds, length, available));
        }
        if length == 0 && available > MAX_LENGTH { Ok(available) } else { Ok(length) }
    }
}
