//! A whole frame, from its first byte to the transport header, in one pass.
//!
//! [`dissect`] never fails: it says how far it came, what it saw, and what was wrong. Every header's own
//! rules are in that header's module; here is only their order.

use crate::error::Error;
use crate::ethernet::EtherType;
use crate::extension::{self, Kind};
use crate::flow::{FlowKey, IpVersion};
use crate::ip::Fragment;
use crate::ppp::PppProtocol;
use crate::shape::{Extensions, Shape};
use crate::stack::{Stack, Word};
use crate::{ipv4, ipv6, pppoe, vlan};

mod common;
mod network;
mod walk;

/// What the first byte of a frame is. The numbers of capture files are at tcpdump.org/linktypes.html.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// MAC header, LINKTYPE_ETHERNET.
    Ethernet,
    /// LINKTYPE_LINUX_SLL.
    LinuxCooked,
    /// LINKTYPE_LINUX_SLL2.
    LinuxCooked2,
    /// An IP packet of either version, LINKTYPE_RAW.
    Ip,
    /// PPP, with or without address and control field, LINKTYPE_PPP and LINKTYPE_PPP_HDLC.
    Ppp,
    /// The PPPoE header of a session packet, LINKTYPE_PPP_ETHER.
    PppOverEthernet,
}

/// IP headers inside one another that a stack follows. The flow is that of the first; deeper ones only add
/// words.
const NESTED_IP: u32 = 3;

/// What [`dissect`] saw. 104 bytes, plain data; what needs the bytes of the frame takes it again.
#[derive(Clone, Copy, Debug)]
pub struct Dissection {
    flow: FlowKey,
    shape: Shape,
    error: Option<Error>,
    tags_at: u32,
    network_at: u32,
    transport_at: u32,
    session: u16,
}

/// PPPoE facts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pppoe {
    /// Code: session data or a discovery packet.
    pub code: pppoe::Code,
    /// Session id, host order.
    pub session: u16,
}

impl Dissection {
    const NOTHING: Dissection = Dissection {
        flow: FlowKey::NONE,
        shape: Shape::NOTHING,
        error: None,
        tags_at: 0,
        network_at: 0,
        transport_at: 0,
        session: 0,
    };

    /// A frame of a link type that nobody here can read: its stack is `other`.
    pub const fn unread() -> Dissection {
        let mut dissection = Dissection::NOTHING;
        dissection.shape.stack.push(Word::Other);
        dissection
    }

    /// Everything but addresses, ports, tag values, session and sizes.
    #[inline(always)]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The headers, outermost first.
    #[inline(always)]
    pub const fn stack(&self) -> Stack {
        self.shape.stack
    }

    /// The first defect; dissection goes on behind a length that is merely too long, and stops elsewhere.
    #[inline(always)]
    pub const fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// The VLAN tags of the frame that was dissected, outermost first.
    pub fn tags<'a>(&self, frame: &'a [u8]) -> impl Iterator<Item = vlan::Tag> + use<'a> {
        // The first TPID may stand elsewhere (Linux cooked, version 2), so it comes from the dissection.
        let mut tpid = EtherType::of_tpid_number(self.shape.tpids & 15);
        self.tag_bytes(frame).chunks(vlan::TAG_LENGTH).map_while(move |chunk| {
            let (tci, next) = chunk.split_first_chunk::<2>()?;
            let tag = vlan::Tag { tpid, tci: vlan::Tci(u16::from_be_bytes(*tci)) };
            tpid = EtherType(next.first_chunk().map_or(0, |next| u16::from_be_bytes(*next)));
            Some(tag)
        })
    }

    /// The bytes of the tags behind the first TPID, in network order: TCI, then TPID and TCI of each
    /// further tag, as far as the frame has them. Together with [`Dissection::tpids`] they identify the
    /// tags.
    #[inline(always)]
    pub fn tag_bytes<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let length = (usize::from(self.shape.stack.tags()) * vlan::TAG_LENGTH).saturating_sub(2);
        let tags = frame.get(self.tags_at as usize..).unwrap_or_default();
        tags.get(..length).unwrap_or(tags)
    }

    /// The TPIDs of the first eight tags, four bits each, the outermost lowest: 1 is 0x8100, 2 is 0x88a8,
    /// 3 to 5 are 0x9100, 0x9200 and 0x9300. For keys.
    #[inline(always)]
    pub const fn tpids(&self) -> u32 {
        self.shape.tpids
    }

    /// PPPoE code and session, where there is a PPPoE header.
    #[inline(always)]
    pub fn pppoe(&self) -> Option<Pppoe> {
        self.shape.pppoe_code().map(|code| Pppoe { code, session: self.session })
    }

    /// The PPP protocol, where a PPP protocol field was read.
    #[inline(always)]
    pub fn ppp_protocol(&self) -> Option<PppProtocol> {
        self.shape.ppp_protocol()
    }

    /// The 5-tuple of the first IP header; without ports where the packet has none.
    #[inline(always)]
    pub fn flow(&self) -> Option<&FlowKey> {
        self.shape.has_flow().then_some(&self.flow)
    }

    /// The place of the first IP packet among fragments.
    #[inline(always)]
    pub const fn fragment(&self) -> Fragment {
        self.shape.fragment()
    }

    /// Whether the first IP header is an IPv4 header with options.
    pub const fn has_ipv4_options(&self) -> bool {
        self.shape.has_ipv4_options()
    }

    /// Whether the EtherType was reached through LLC and SNAP.
    pub const fn is_snap(&self) -> bool {
        self.shape.is_snap()
    }

    /// The extension headers between the first IP header and its transport.
    #[inline(always)]
    pub const fn extensions(&self) -> Extensions {
        self.shape.extensions()
    }

    /// Where the first IP header starts, bytes from the start of the frame.
    pub fn network_offset(&self) -> Option<usize> {
        self.flow().map(|_| self.network_at as usize)
    }

    /// Where the transport header of the first IP packet starts: behind all extension headers.
    pub fn transport_offset(&self) -> Option<usize> {
        (self.transport_at != 0).then_some(self.transport_at as usize)
    }

    /// The home address option (RFC 6275 section 6.3): the source that the packet wants to be known by.
    pub fn home_address(&self, frame: &[u8]) -> Option<[u8; 16]> {
        let present = self.extensions().contains(Kind::DestinationOptions);
        present.then(|| self.extension_headers(frame).find_map(|header| header.home_address())).flatten()
    }

    /// The final destination in a type 2 routing header (RFC 6275 section 6.4).
    pub fn routing2_destination(&self, frame: &[u8]) -> Option<[u8; 16]> {
        let present = self.extensions().contains(Kind::Routing);
        present
            .then(|| self.extension_headers(frame).find_map(|header| header.routing2_destination()))
            .flatten()
    }

    /// The extension headers of the frame that was dissected, in order, as far as they are whole.
    pub fn extension_headers<'a>(&self, frame: &'a [u8]) -> impl Iterator<Item = extension::Header<'a>> {
        let start = match self.flow() {
            Some(flow) if !self.extensions().is_empty() => {
                let network = frame.get(self.network_at as usize..).unwrap_or_default();
                match flow.version() {
                    IpVersion::V4 => network.first_chunk().map(|header| {
                        let header = ipv4::Header::of(header);
                        (header.protocol(), self.network_at as usize + header.header_length())
                    }),
                    IpVersion::V6 => network.first_chunk().map(|header| {
                        (ipv6::Header::of(header).next_header(), self.network_at as usize + 40)
                    }),
                }
            }
            _ => None,
        };
        let mut place = start;
        core::iter::from_fn(move || {
            let (next, at) = place?;
            place = None;
            let header = extension::Header::parse(Kind::of(next)?, frame.get(at..)?, frame.len()).ok()?;
            let ends = header.kind == Kind::Fragment && header.fragment() == Fragment::Later;
            place = (!ends).then(|| (header.next_header(), at + header.bytes.len()));
            Some(header)
        })
    }
}

/// Dissects `frame`, the captured bytes of a frame that was `wire_length` bytes long (without FCS). Where
/// the two differ, lengths are checked against the frame and not against what was captured of it.
///
/// Allocates nothing and cannot panic: every access is checked, every walk moves forward.
#[inline]
pub fn dissect(link: Link, frame: &[u8], wire_length: usize) -> Dissection {
    if link == Link::Ethernet
        && let Some(dissection) = common::dissect(frame, wire_length)
    {
        return dissection;
    }
    walk::dissect(link, frame, wire_length)
}

/// The flow key of a frame and nothing else, validated as [`dissect`] does: what a hash or a table of flows
/// needs, at two thirds of the cost. `None` where there is no IP header. Error: the first defect.
#[inline]
pub fn flow_key(link: Link, frame: &[u8], wire_length: usize) -> Result<Option<FlowKey>, Error> {
    if link == Link::Ethernet
        && let Some(dissection) = common::dissect(frame, wire_length)
    {
        return Ok(Some(dissection.flow));
    }
    let dissection = walk::dissect(link, frame, wire_length);
    match dissection.error() {
        Some(error) => Err(*error),
        None => Ok(dissection.flow().copied()),
    }
}

/// [`dissect`] without the short cut for common frames, for the tests that hold the two to the same answer.
#[doc(hidden)]
pub fn dissect_general(link: Link, frame: &[u8], wire_length: usize) -> Dissection {
    walk::dissect(link, frame, wire_length)
}
