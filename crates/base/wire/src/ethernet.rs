//! Ethernet II and IEEE 802.3 (IEEE 802.3-2022 clause 3), LLC and SNAP behind them (IEEE 802.2, RFC 1042).

use crate::error::{Error, Field, Layer, Rule};
use core::fmt;
use core::str::FromStr;

/// An EtherType, host order (IANA "IEEE 802 Numbers").
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4, RFC 894.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP, RFC 826.
    pub const ARP: EtherType = EtherType(0x0806);
    /// IEEE 802.1Q customer tag.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6, RFC 2464.
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// MPLS, RFC 3032.
    pub const MPLS: EtherType = EtherType(0x8847);
    /// MPLS with an upstream-assigned label, RFC 5332.
    pub const MPLS_UPSTREAM: EtherType = EtherType(0x8848);
    /// PPPoE discovery stage, RFC 2516 section 4.
    pub const PPPOE_DISCOVERY: EtherType = EtherType(0x8863);
    /// PPPoE session stage, RFC 2516 section 4.
    pub const PPPOE_SESSION: EtherType = EtherType(0x8864);
    /// IEEE 802.1ad service tag.
    pub const SERVICE_VLAN: EtherType = EtherType(0x88a8);

    /// Whether this value announces a VLAN tag: 802.1Q, 802.1ad, or one of the three values that vendors
    /// used for outer tags before 802.1ad.
    #[inline(always)]
    pub const fn is_tag(self) -> bool {
        self.tpid_number() != 0
    }

    /// 1 to 5 for the five TPIDs (0x8100, 0x88a8, 0x9100, 0x9200, 0x9300), 0 for anything else: three bits
    /// where sixteen are too many.
    #[inline(always)]
    pub const fn tpid_number(self) -> u32 {
        match self.0 {
            0x8100 => 1,
            0x88a8 => 2,
            0x9100 => 3,
            0x9200 => 4,
            0x9300 => 5,
            _ => 0,
        }
    }

    /// The TPID of a number from 1 to 5; 0 for anything else.
    #[inline(always)]
    pub const fn of_tpid_number(number: u32) -> EtherType {
        EtherType(match number {
            1 => 0x8100,
            2 => 0x88a8,
            3 => 0x9100,
            4 => 0x9200,
            5 => 0x9300,
            _ => 0,
        })
    }

    /// Whether the field is a length (IEEE 802.3-2022 clause 3.2.6: at most 1500).
    #[inline(always)]
    pub const fn is_length(self) -> bool {
        self.0 <= 1500
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// A MAC address, transmission order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);

    /// The group bit.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text is no MAC address of six bytes in hexadecimal digits with colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacAddressError;

impl fmt::Display for MacAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no MAC address such as 02:00:5e:00:00:01")
    }
}

impl core::error::Error for MacAddressError {}

impl FromStr for MacAddress {
    type Err = MacAddressError;

    fn from_str(text: &str) -> Result<MacAddress, MacAddressError> {
        let mut parts = text.split(':').map(|part| {
            let is_byte = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_byte.then(|| u8::from_str_radix(part, 16).ok()).flatten()
        });
        let mut bytes = [0; 6];
        for byte in &mut bytes {
            *byte = parts.next().flatten().ok_or(MacAddressError)?;
        }
        if parts.next().is_some() { Err(MacAddressError) } else { Ok(MacAddress(bytes)) }
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

view! {
    /// A MAC header. The FCS is not part of a frame here.
    Header[14] {
        destination: MacAddress @ 0,
        source: MacAddress @ 6,
        /// EtherType, TPID of a first tag, or length.
        ethertype: EtherType @ 12,
    }
}

/// Checks a type/length field that is not an EtherType against the `available` bytes behind it, and gives
/// the length. IEEE 802.3-2022 clause 3.2.6: up to 1500 it is a length, 1501 to 1535 is undefined.
#[inline]
pub const fn check_length(field: EtherType, available: usize) -> Result<usize, Error> {
    let length = field.0 as usize;
    if !field.is_length() {
        Err(Error::new(Layer::Ethernet, Field::EtherType, Rule::Undefined, length, 0))
    } else if length > available {
        Err(Error::new(Layer::Ethernet, Field::Length, Rule::Exceeds, length, available))
    } else {
        Ok(length)
    }
}

/// What stands behind a MAC header whose type/length field is a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Llc {
    /// SNAP with an OUI under which the protocol is an EtherType: 00-00-00 (RFC 1042) or 00-00-F8
    /// (IEEE 802.1H). `length` bytes of LLC and SNAP precede the payload.
    Ethertype {
        /// The protocol.
        ethertype: EtherType,
        /// Bytes of LLC and SNAP header.
        length: usize,
    },
    /// Any other service access point: spanning tree, IS-IS, CDP …
    Other,
}

/// Reads the LLC header. Error: fewer than three bytes, or a SNAP header that is not whole.
pub fn llc(bytes: &[u8]) -> Result<Llc, Error> {
    let cut = |needs| Error::new(Layer::Llc, Field::Header, Rule::Cut, bytes.len(), needs);
    let Some(&[dsap, ssap, control]) = bytes.first_chunk::<3>() else { return Err(cut(3)) };
    if (dsap, ssap, control) != (0xaa, 0xaa, 0x03) {
        return Ok(Llc::Other);
    }
    let Some(&[_, _, _, oui_a, oui_b, oui_c, high, low]) = bytes.first_chunk::<8>() else {
        return Err(cut(8));
    };
    match [oui_a, oui_b, oui_c] {
        [0, 0, 0] | [0, 0, 0xf8] => {
            Ok(Llc::Ethertype { ethertype: EtherType(u16::from_be_bytes([high, low])), length: 8 })
        }
        _ => Ok(Llc::Other),
    }
}
