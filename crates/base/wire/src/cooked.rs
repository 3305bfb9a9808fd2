//! Linux cooked captures: what libpcap puts in place of a link-layer header when it captures on "any"
//! (tcpdump.org, LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2).

use crate::error::{Error, Field, Layer, Rule};
use crate::ethernet::EtherType;

/// Which of the two headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// LINKTYPE_LINUX_SLL: 16 bytes, the protocol last.
    One,
    /// LINKTYPE_LINUX_SLL2: 20 bytes, the protocol first.
    Two,
}

/// What follows a cooked header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// An EtherType.
    Ethertype(EtherType),
    /// An LLC header (protocol 0x0004).
    Llc,
    /// A frame without any of these: Novell raw 802.3 (0x0001), CAN, netlink, 802.11 …
    Other,
}

/// The part of a cooked header that says what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the header.
    pub length: usize,
    /// What follows.
    pub protocol: Protocol,
    /// Packet type 4: sent by the capturing machine.
    pub outgoing: bool,
}

/// Packet type of frames that the capturing machine sent (`PACKET_OUTGOING` in linux/if_packet.h).
const OUTGOING: u16 = 4;

/// ARPHRD types below this one carry an EtherType in the protocol field; netlink (824), radiotap (803) and
/// the like give the field another meaning.
const ARPHRD_ETHERNET_LIKE: [u16; 12] = [1, 6, 512, 768, 769, 772, 776, 777, 778, 801, 823, 65534];

impl Header {
    /// Reads the header. Error: not whole.
    pub fn parse(version: Version, bytes: &[u8]) -> Result<Header, Error> {
        let cut = |needs| Error::new(Layer::LinuxCooked, Field::Header, Rule::Cut, bytes.len(), needs);
        let (length, packet_type, hardware, protocol) = match version {
            Version::One => {
                let [t0, t1, h0, h1, .., p0, p1] = *bytes.first_chunk::<16>().ok_or(cut(16))?;
                (16, u16::from_be_bytes([t0, t1]), [h0, h1], [p0, p1])
            }
            Version::Two => {
                let [p0, p1, _, _, _, _, _, _, h0, h1, packet_type, ..] =
                    *bytes.first_chunk::<20>().ok_or(cut(20))?;
                (20, u16::from(packet_type), [h0, h1], [p0, p1])
            }
        };
        let value = u16::from_be_bytes(protocol);
        let protocol = match value {
            0x0004 => Protocol::Llc,
            0x0600.. if ARPHRD_ETHERNET_LIKE.contains(&u16::from_be_bytes(hardware)) => {
                Protocol::Ethertype(EtherType(value))
            }
            _ => Protocol::Other,
        };
        Ok(Header { length, protocol, outgoing: packet_type == OUTGOING })
    }
}
