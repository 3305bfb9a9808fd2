//! What a received frame is to coalescing.

use crate::checksum::{Sum, verify_ipv4_header};
use crate::segment::{CWR, TCP_CHECKSUM, Transport, UDP_CHECKSUM, bytes_at, word};
use wire::emit::Tcp;
use wire::error::Layer;
use wire::extension::Kind;
use wire::transport::Udp;
use wire::{Dissection, FlowKey, Fragment, IpProtocol, IpVersion, ipv4, ipv6};

/// Segments with these flags stand alone. CWR: with accurate ECN it is a bit of a counter, in which segments of one packet
/// must not differ (RFC 9768, the ACE field), and segmentation leaves it to the first.
const ALONE: u8 = CWR | URG | Tcp::RST | Tcp::SYN;
const URG: u8 = 0x20;
/// Segments that end a super-packet.
pub(super) const LAST: u8 = Tcp::FIN | Tcp::PSH;
/// The most bytes of IP and transport header of a super-packet: more than extension headers in use need.
const MOST_HEADERS: usize = 256;

/// An IP packet in a frame; offsets are bytes from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Where the IP header starts.
    pub(super) network: usize,
    /// Where the packet ends; what follows is padding.
    pub(super) end: usize,
}

impl Place {
    /// The first IP packet of a frame, if there is one that is whole. A defect behind the IP header is for the stack to
    /// judge.
    pub(super) fn of(seen: &Dissection, frame: &[u8]) -> Option<Place> {
        let (flow, network) = (seen.flow()?, seen.network_offset()?);
        let is_sound = seen.error().is_none_or(|error| error.layer > Layer::Ipv6);
        let packet = frame.get(network..).filter(|_| is_sound)?;
        let length = match flow.version() {
            IpVersion::V4 => ipv4::Header::of(packet.first_chunk()?).check_length(packet.len()).ok()?,
            IpVersion::V6 => {
                let header = ipv6::Header::of(packet.first_chunk()?);
                // A jumbogram's length is elsewhere, and no frame holds one.
                let is_jumbogram =
                    header.payload_length() == 0 && header.next_header() == IpProtocol::HOP_BY_HOP;
                (!is_jumbogram).then_some(ipv6::Header::LENGTH + usize::from(header.payload_length()))?
            }
        };
        (length <= packet.len()).then_some(Place { network, end: network + length })
    }
}

/// A TCP segment or a UDP datagram that may be a part of a super-packet, as far as its headers say; its checksums are
/// not verified yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'f> {
    pub(super) place: Place,
    pub(super) version: IpVersion,
    pub(super) transport: Transport,
    /// IP header with extension headers.
    pub(super) network_header: &'f [u8],
    pub(super) transport_header: &'f [u8],
    /// At least one byte.
    pub(super) payload: &'f [u8],
    pub(super) sequence: u32,
    /// Of TCP: data offset, reserved bits, flags.
    pub(super) flags: u16,
}

impl<'f> Candidate<'f> {
    /// `None` for what is never coalesced: a packet with a defect, a fragment, IPv4 options, extension headers that a
    /// segment may not share; SYN, RST, URG, CWR; no payload; no UDP checksum; a checksum of 0xffff that no sum gives, which
    /// segmentation would not give back.
    pub(super) fn of(seen: &Dissection, frame: &'f [u8], place: Place) -> Option<Candidate<'f>> {
        let flow = seen.flow().filter(|flow| flow.has_ports() && seen.error().is_none())?;
        let extensions = seen.extensions();
        let stands_apart = seen.fragment() != Fragment::None
            || extensions.contains(Kind::Fragment)
            || extensions.contains(Kind::Authentication)
            || seen.has_ipv4_options()
            || seen.is_snap();
        if stands_apart {
            return None;
        }
        let transport = match IpProtocol(flow.protocol()) {
            IpProtocol::TCP => Transport::Tcp,
            IpProtocol::UDP => Transport::Udp,
            _ => return None,
        };
        let packet = frame.get(place.network..place.end)?;
        let (network_header, rest) =
            packet.split_at_checked(seen.transport_offset()?.checked_sub(place.network)?)?;
        let header_length = match transport {
            Transport::Tcp => usize::from(rest.get(12)? >> 4) * 4,
            Transport::Udp => Udp::LENGTH,
        };
        let (transport_header, payload) = rest.split_at_checked(header_length)?;
        if payload.is_empty() || network_header.len() + header_length > MOST_HEADERS {
            return None;
        }
        let candidate = Candidate {
            place,
            version: flow.version(),
            transport,
            network_header,
            transport_header,
            payload,
            sequence: u32::from_be_bytes(bytes_at(transport_header, 4)),
            flags: if transport == Transport::Tcp { word(transport_header, 12) } else { 0 },
        };
        candidate.is_sound().then_some(candidate)
    }

    /// Whether the fields allow it.
    fn is_sound(&self) -> bool {
        let network = match self.version {
            // The reserved bit, which nothing sets.
            IpVersion::V4 => {
                word(self.network_header, 6) & 0x8000 == 0 && word(self.network_header, 10) != 0xffff
            }
            IpVersion::V6 => true,
        };
        let transport = match self.transport {
            Transport::Tcp => {
                self.flags & u16::from(ALONE) == 0 && word(self.transport_header, TCP_CHECKSUM) != 0xffff
            }
            Transport::Udp => {
                let length = self.transport_header.len() + self.payload.len();
                usize::from(word(self.transport_header, 4)) == length
                    && word(self.transport_header, UDP_CHECKSUM) != 0
            }
        };
        network && transport
    }

    /// Whether it ends the super-packet that it is in, and can therefore begin none.
    pub(super) fn is_last(&self) -> bool {
        self.flags & u16::from(LAST) != 0
    }

    /// Identification and whether DF is set; of IPv4.
    pub(super) fn identification(&self) -> (u16, bool) {
        (word(self.network_header, 4), word(self.network_header, 6) & 0x4000 != 0)
    }

    /// Whether its checksums are right: one pass over the payload.
    pub(super) fn verify(&self) -> bool {
        let length = self.transport_header.len() + self.payload.len();
        let header_is_right = match self.version {
            IpVersion::V4 => verify_ipv4_header(self.network_header),
            IpVersion::V6 => true,
        };
        let Some(pseudo) = pseudo_header(self.version, self.transport, self.network_header, length) else {
            return false;
        };
        let sum = pseudo.plus(Sum::of(self.transport_header)).plus(Sum::of(self.payload));
        header_is_right && sum.checksum() == 0
    }
}

/// The sum of the pseudo header of a packet with this IP header, whose transport part has `length` bytes. With a
/// routing header that has a way to go it is not what the sender took, so that the packet does not verify and stands
/// alone.
pub(super) fn pseudo_header(
    version: IpVersion,
    transport: Transport,
    header: &[u8],
    length: usize,
) -> Option<Sum> {
    let protocol = match transport {
        Transport::Tcp => IpProtocol::TCP,
        Transport::Udp => IpProtocol::UDP,
    };
    Some(match version {
        IpVersion::V4 => {
            let header = ipv4::Header::of(header.first_chunk()?);
            Sum::pseudo_ipv4(header.addresses(), protocol, length as u16)
        }
        IpVersion::V6 => {
            let header = ipv6::Header::of(header.first_chunk()?);
            Sum::pseudo_ipv6(header.addresses(), protocol, length as u32)
        }
    })
}

/// What the table knows a flow by: the words of its key, and what distinguishes its link from others.
pub(super) fn flow_words(flow: &FlowKey, seen: &Dissection, frame: &[u8]) -> [u64; 6] {
    let [a, b, c, d, e] = flow.words();
    let tags = seen.tag_bytes(frame).chunks(4);
    let tags = tags.fold(0_u64, |all, tag| all << 12 ^ u64::from(word(tag, 0) & 0x0fff));
    let session = seen.pppoe().map_or(0, |pppoe| u64::from(pppoe.session) << 1 | 1);
    [a, b, c, d, e, tags << 17 ^ session]
}

/// The addresses alone, which fragments have, too.
pub(super) fn address_words(flow: &FlowKey) -> [u64; 4] {
    let length = flow.addresses().len();
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(flow.addresses().as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes) ^ length as u64;
    }
    words
}
