//! A whole frame, from its first octet to the transport header, in one pass.
//!
//! [`dissect`] never fails: it says how far it came, what it saw, and what was wrong. Every header's own
//! rules are in that header's module; here is only their order.

use crate::error::{Error, Field, Layer, Rule};
use crate::ethernet::{self, EtherType, Llc};
use crate::extension::{self, Kind};
use crate::flow::{FlowKey, IpVersion};
use crate::ip::{Fragment, IpProtocol};
use crate::ppp::{self, Compression, ControlHeader, PppProtocol};
use crate::stack::{Stack, Word};
use crate::transport::{Icmp, Sctp, Tcp, Udp};
use crate::{cooked, ipv4, ipv6, mpls, pppoe, vlan};

mod common;

/// What the first octet of a frame is. The numbers of capture files are at tcpdump.org/linktypes.html.
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

/// What [`dissect`] saw. 104 octets, plain data; what needs the octets of the frame takes it again.
#[derive(Clone, Copy, Debug)]
pub struct Dissection {
    flow: FlowKey,
    stack: Stack,
    error: Option<Error>,
    tags_at: u32,
    tpids: u32,
    network_at: u32,
    transport_at: u32,
    session: u16,
    ppp_protocol: u16,
    flags: u16,
    code: u8,
    extensions: u8,
}

const HAS_FLOW: u16 = 1;
const HAS_PPPOE: u16 = 2;
const IPV4_OPTIONS: u16 = 4;
const FIRST_FRAGMENT: u16 = 8;
const LATER_FRAGMENT: u16 = 16;
const SNAP: u16 = 32;

/// PPPoE facts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pppoe {
    /// Code: session data or a discovery packet.
    pub code: pppoe::Code,
    /// Session id, host order.
    pub session: u16,
}

/// The extension headers in front of the transport header, as a set; how many of each,
/// [`Dissection::extension_headers`] tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extensions(u8);

impl Extensions {
    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `kind` occurs.
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// The set as bits, for keys.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl core::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use Kind::*;
        let kinds = [HopByHop, Routing, Fragment, DestinationOptions, Authentication];
        f.debug_set().entries(kinds.into_iter().filter(|kind| self.contains(*kind))).finish()
    }
}

impl Dissection {
    const NOTHING: Dissection = Dissection {
        flow: FlowKey::NONE,
        stack: Stack::EMPTY,
        error: None,
        tags_at: 0,
        tpids: 0,
        network_at: 0,
        transport_at: 0,
        session: 0,
        ppp_protocol: 0,
        flags: 0,
        code: 0,
        extensions: 0,
    };

    /// A frame of a link type that nobody here can read: its stack is `other`.
    pub const fn unread() -> Dissection {
        let mut dissection = Dissection::NOTHING;
        dissection.stack.push(Word::Other);
        dissection
    }

    /// The headers, outermost first.
    #[inline(always)]
    pub const fn stack(&self) -> Stack {
        self.stack
    }

    /// The first defect; dissection goes on behind a length that is merely too long, and stops elsewhere.
    #[inline(always)]
    pub const fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// The VLAN tags of the frame that was dissected, outermost first.
    pub fn tags<'a>(&self, frame: &'a [u8]) -> impl Iterator<Item = vlan::Tag> + use<'a> {
        // The first TPID may stand elsewhere (Linux cooked, version 2), so it comes from the dissection.
        let mut tpid = tpid_of_number(self.tpids & 15);
        self.tag_octets(frame).chunks(vlan::TAG_LENGTH).map_while(move |chunk| {
            let (tci, next) = chunk.split_first_chunk::<2>()?;
            let tag = vlan::Tag { tpid, tci: vlan::Tci(u16::from_be_bytes(*tci)) };
            tpid = EtherType(next.first_chunk().map_or(0, |next| u16::from_be_bytes(*next)));
            Some(tag)
        })
    }

    /// The octets of the tags behind the first TPID, in network order: TCI, then TPID and TCI of each
    /// further tag, as far as the frame has them. Together with [`Dissection::tpids`] they identify the
    /// tags.
    #[inline(always)]
    pub fn tag_octets<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let length = (usize::from(self.stack.tags()) * vlan::TAG_LENGTH).saturating_sub(2);
        let tags = frame.get(self.tags_at as usize..).unwrap_or_default();
        tags.get(..length).unwrap_or(tags)
    }

    /// The TPIDs of the first eight tags, four bits each, the outermost lowest: 1 is 0x8100, 2 is 0x88a8,
    /// 3 to 5 are 0x9100, 0x9200 and 0x9300. For keys.
    #[inline(always)]
    pub const fn tpids(&self) -> u32 {
        self.tpids
    }

    /// PPPoE code and session, where there is a PPPoE header.
    #[inline(always)]
    pub fn pppoe(&self) -> Option<Pppoe> {
        let present = self.flags & HAS_PPPOE != 0;
        present.then_some(Pppoe { code: pppoe::Code(self.code), session: self.session })
    }

    /// The PPP protocol, where a PPP protocol field was read.
    #[inline(always)]
    pub fn ppp_protocol(&self) -> Option<PppProtocol> {
        (self.ppp_protocol != 0).then_some(PppProtocol(self.ppp_protocol))
    }

    /// The 5-tuple of the first IP header; without ports where the packet has none.
    #[inline(always)]
    pub fn flow(&self) -> Option<&FlowKey> {
        (self.flags & HAS_FLOW != 0).then_some(&self.flow)
    }

    /// The place of the first IP packet among fragments.
    #[inline(always)]
    pub const fn fragment(&self) -> Fragment {
        match self.flags & (FIRST_FRAGMENT | LATER_FRAGMENT) {
            0 => Fragment::None,
            FIRST_FRAGMENT => Fragment::First,
            _ => Fragment::Later,
        }
    }

    /// Whether the first IP header is an IPv4 header with options.
    pub const fn has_ipv4_options(&self) -> bool {
        self.flags & IPV4_OPTIONS != 0
    }

    /// Whether the EtherType was reached through LLC and SNAP.
    pub const fn is_snap(&self) -> bool {
        self.flags & SNAP != 0
    }

    /// The extension headers between the first IP header and its transport.
    #[inline(always)]
    pub const fn extensions(&self) -> Extensions {
        Extensions(self.extensions)
    }

    /// Where the first IP header starts, octets from the start of the frame.
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
            place = (!ends).then(|| (header.next_header(), at + header.octets.len()));
            Some(header)
        })
    }
}

/// Dissects `frame`, the captured octets of a frame that was `wire_length` octets long (without FCS). Where
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
    dissect_any(link, frame, wire_length)
}

/// [`dissect`] without the short cut for common frames, for the tests that hold the two to the same answer.
#[doc(hidden)]
pub fn dissect_general(link: Link, frame: &[u8], wire_length: usize) -> Dissection {
    dissect_any(link, frame, wire_length)
}

/// The same without the short cut for common frames.
#[inline(never)]
fn dissect_any(link: Link, frame: &[u8], wire_length: usize) -> Dissection {
    let mut walk =
        Walk { frame, at: 0, end: wire_length.max(frame.len()), out: Dissection::NOTHING, depth: 0 };
    match link {
        Link::Ethernet => walk.ethernet(),
        Link::LinuxCooked | Link::LinuxCooked2 => walk.cooked(link),
        Link::Ip => walk.ip(),
        Link::Ppp => walk.ppp_framed(),
        Link::PppOverEthernet => walk.pppoe(pppoe::Stage::Session),
    }
    walk.out
}

struct Walk<'a> {
    /// The captured octets, cut to what the enclosing headers say belongs to the packet.
    frame: &'a [u8],
    /// Where the next header starts.
    at: usize,
    /// Where the enclosing header says that the packet ends, captured or not. At least `at`.
    end: usize,
    out: Dissection,
    /// IP headers around this one.
    depth: u32,
}

impl<'a> Walk<'a> {
    #[inline(always)]
    fn rest(&self) -> &'a [u8] {
        self.frame.get(self.at..).unwrap_or_default()
    }

    #[inline(always)]
    fn take<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.rest().first_chunk()
    }

    /// Octets from `at` to the end of the enclosing packet.
    #[inline(always)]
    fn available(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    #[inline(always)]
    fn end_at(&mut self, end: usize) {
        self.end = end;
        if let Some(frame) = self.frame.get(..end) {
            self.frame = frame;
        }
    }

    /// Notes a defect of the header at `at`; the first one stays.
    #[cold]
    #[inline(never)]
    fn note(&mut self, error: Error) {
        if self.out.error.is_none() {
            let offset = self.at + error.offset as usize;
            self.out.error = Some(self.blame_capture(error).at(offset));
        }
    }

    /// Notes a defect of a header before the one at `at`.
    #[cold]
    #[inline(never)]
    fn note_at(&mut self, header: usize, error: Error) {
        let at = core::mem::replace(&mut self.at, header);
        self.note(error);
        self.at = at;
    }

    /// A header that is cut short only because the capture is, is the capture's fault.
    fn blame_capture(&self, error: Error) -> Error {
        let needed = self.at + error.offset as usize + error.limit as usize;
        if error.rule == Rule::Cut && self.frame.len() < self.end && needed <= self.end {
            Error { rule: Rule::CaptureCut, ..error }
        } else {
            error
        }
    }

    #[cold]
    #[inline(never)]
    fn cut(&mut self, layer: Layer, needs: usize) {
        self.note(Error::new(layer, Field::Header, Rule::Cut, self.rest().len(), needs));
    }

    #[inline(always)]
    fn ethernet(&mut self) {
        self.out.stack.push(Word::Eth);
        let Some(header) = self.take() else {
            return self.cut(Layer::Ethernet, ethernet::Header::LENGTH);
        };
        self.at = ethernet::Header::LENGTH;
        self.tagged(ethernet::Header::of(header).ethertype());
    }

    /// Tags, if `ethertype` announces any, then what is under them.
    #[inline(always)]
    fn tagged(&mut self, ethertype: EtherType) {
        if !ethertype.is_tag() {
            return self.ethertype(ethertype);
        }
        let (mut count, mut tpids) = (0u16, 0u32);
        let protocol = vlan::untag(ethertype, self.rest(), |tpid| {
            if count < 8 {
                tpids |= tpid_number(tpid) << (4 * u32::from(count));
            }
            count = count.saturating_add(1);
        });
        self.out.tags_at = self.at as u32;
        self.out.tpids = tpids;
        self.out.stack.push_tags(count);
        match protocol {
            Ok((ethertype, rest)) => {
                self.at = self.frame.len() - rest.len();
                self.ethertype(ethertype);
            }
            Err(error) => self.note(error),
        }
    }

    #[inline(always)]
    fn ethertype(&mut self, ethertype: EtherType) {
        match ethertype {
            EtherType::IPV4 => self.ipv4(),
            EtherType::IPV6 => self.ipv6(),
            EtherType::PPPOE_SESSION => self.pppoe(pppoe::Stage::Session),
            _ => self.rare_ethertype(ethertype),
        }
    }

    #[inline(never)]
    fn rare_ethertype(&mut self, ethertype: EtherType) {
        match ethertype {
            EtherType::PPPOE_DISCOVERY => self.pppoe(pppoe::Stage::Discovery),
            EtherType::ARP => self.out.stack.push(Word::Arp),
            EtherType::MPLS | EtherType::MPLS_UPSTREAM => self.mpls(),
            // 802.3 as far as a length can say, and the values above it that mean nothing.
            EtherType(0..=1535) if !self.out.stack.contains(Word::Llc) => self.ieee802_3(ethertype),
            _ => self.out.stack.push(Word::Other),
        }
    }

    fn ieee802_3(&mut self, field: EtherType) {
        match ethernet::check_length(field, self.available()) {
            Ok(length) => self.end_at(self.at + length),
            Err(error) if error.rule == Rule::Exceeds => self.note_at(0, error),
            Err(error) => {
                self.out.stack.push(Word::Other);
                return self.note_at(0, error);
            }
        }
        self.llc();
    }

    fn llc(&mut self) {
        self.out.stack.push(Word::Llc);
        match ethernet::llc(self.rest()) {
            Ok(Llc::Ethertype { ethertype, length }) => {
                self.out.flags |= SNAP;
                self.at += length;
                match ethertype {
                    EtherType::IPV4 => self.ipv4(),
                    EtherType::IPV6 => self.ipv6(),
                    _ => self.rare_ethertype(ethertype),
                }
            }
            Ok(Llc::Other) => {}
            Err(error) => self.note(error),
        }
    }

    #[inline(never)]
    fn cooked(&mut self, link: Link) {
        let version = if link == Link::LinuxCooked { cooked::Version::One } else { cooked::Version::Two };
        match cooked::Header::parse(version, self.rest()) {
            Ok(header) => {
                self.at += header.length;
                match header.protocol {
                    cooked::Protocol::Ethertype(ethertype) => self.tagged(ethertype),
                    cooked::Protocol::Llc => self.llc(),
                    cooked::Protocol::Other => self.out.stack.push(Word::Other),
                }
            }
            Err(error) => self.note(error),
        }
    }

    #[inline(never)]
    fn ip(&mut self) {
        match self.rest().first().map(|octet| octet >> 4) {
            Some(4) => self.ipv4(),
            Some(6) => self.ipv6(),
            Some(version) => {
                self.out.stack.push(Word::Other);
                self.note(Error::new(Layer::Ip, Field::Version, Rule::Undefined, usize::from(version), 0));
            }
            None => self.cut(Layer::Ip, 1),
        }
    }

    fn mpls(&mut self) {
        self.out.stack.push(Word::Mpls);
        loop {
            let Some(entry) = self.take().map(|octets| mpls::Entry::of(*octets)) else {
                return self.cut(Layer::Mpls, mpls::ENTRY_LENGTH);
            };
            self.at += mpls::ENTRY_LENGTH;
            if entry.is_bottom() {
                break;
            }
        }
        match self.rest().first().map(|first| mpls::Payload::of(*first)) {
            Some(mpls::Payload::Ipv4) => self.ipv4(),
            Some(mpls::Payload::Ipv6) => self.ipv6(),
            _ => self.out.stack.push(Word::Other),
        }
    }

    #[inline(always)]
    fn pppoe(&mut self, stage: pppoe::Stage) {
        self.out.stack.push(match stage {
            pppoe::Stage::Session => Word::Pppoe,
            pppoe::Stage::Discovery => Word::PppoeDiscovery,
        });
        let Some(header) = self.take().map(pppoe::Header::of) else {
            return self.cut(Layer::Pppoe, pppoe::Header::LENGTH);
        };
        if let Err(error) = header.check_version() {
            return self.note(error);
        }
        self.out.flags |= HAS_PPPOE;
        self.out.code = header.code().0;
        self.out.session = header.session();
        if let Err(error) = header.check_code(stage) {
            return self.note(error);
        }
        match header.check_length(self.available().saturating_sub(pppoe::Header::LENGTH)) {
            Ok(()) => self.end_at(self.at + pppoe::Header::LENGTH + usize::from(header.length())),
            // A receiver drops the packet; the headers inside are still worth showing.
            Err(error) => self.note(error),
        }
        self.at += pppoe::Header::LENGTH;
        match stage {
            pppoe::Stage::Session => self.ppp(Compression::Forbidden),
            pppoe::Stage::Discovery => self.pppoe_tags(),
        }
    }

    #[inline(never)]
    fn pppoe_tags(&mut self) {
        let Some(mut error) = pppoe::tags(self.rest()).find_map(Result::err) else { return };
        if error.rule == Rule::Exceeds {
            let value_at = self.at + error.offset as usize + pppoe::Tag::HEADER_LENGTH;
            let (length, kept) = (error.found, error.limit);
            error.limit = self.end.saturating_sub(value_at) as u32;
            if length <= error.limit {
                error = Error { rule: Rule::CaptureCut, found: kept, limit: length, ..error };
            }
        }
        self.note(error);
    }

    /// PPP in HDLC-like framing (RFC 1662 section 3.1): FF 03 in front, unless compressed away.
    #[inline(never)]
    fn ppp_framed(&mut self) {
        if let Some([0xff, 0x03]) = self.take() {
            self.at += 2;
        }
        self.ppp(Compression::Allowed);
    }

    fn ppp(&mut self, compression: Compression) {
        let mut protocol = ppp::protocol(self.rest(), compression);
        if let Err(error) = protocol
            && error.rule == Rule::Compressed
        {
            // A receiver may refuse the packet; what is inside is still worth showing.
            self.note(error);
            protocol = ppp::protocol(self.rest(), Compression::Allowed);
        }
        match protocol {
            Ok((protocol, length)) => {
                self.out.ppp_protocol = protocol.0;
                self.at += length;
                match protocol {
                    PppProtocol::IPV4 => self.ipv4(),
                    PppProtocol::IPV6 => self.ipv6(),
                    _ => self.rare_ppp(protocol),
                }
            }
            Err(error) => self.note(error),
        }
    }

    #[inline(never)]
    fn rare_ppp(&mut self, protocol: PppProtocol) {
        let word = match protocol {
            PppProtocol::LCP => Word::Lcp,
            PppProtocol::PAP => Word::Pap,
            PppProtocol::CHAP => Word::Chap,
            PppProtocol::IPCP => Word::Ipcp,
            PppProtocol::IPV6CP => Word::Ipv6cp,
            PppProtocol::CCP => Word::Ccp,
            PppProtocol::MPLS | PppProtocol::MPLS_MULTICAST => return self.mpls(),
            _ => return self.out.stack.push(Word::Other),
        };
        self.out.stack.push(word);
        match self.take().map(ControlHeader::of) {
            Some(header) => {
                if let Err(error) = header.check(self.available()) {
                    self.note(error);
                }
            }
            None => self.cut(Layer::PppControl, ControlHeader::LENGTH),
        }
    }

    #[inline(always)]
    fn ipv4(&mut self) {
        self.out.stack.push(Word::Ipv4);
        let Some(header) = self.take().map(ipv4::Header::of) else {
            return self.cut(Layer::Ipv4, ipv4::Header::LENGTH);
        };
        if let Err(error) = header.check_header() {
            return self.note(error);
        }
        match header.check_length(self.available()) {
            Ok(length) => self.end_at(self.at + length),
            Err(error) => {
                self.note(error);
                // A length of zero is what some drivers leave for the hardware to fill in.
                if error.rule != Rule::Exceeds && header.total_length() != 0 {
                    return;
                }
            }
        }
        self.out.network_at = self.at as u32;
        self.at += header.header_length();
        self.out.flags |= HAS_FLOW;
        let mut protocol = header.protocol();
        let mut fragment = header.fragment();
        if header.header_length() != ipv4::Header::LENGTH {
            self.out.flags |= IPV4_OPTIONS;
        }
        if fragment != Fragment::None {
            self.out.flags |= fragment_flag(fragment);
        }
        let mut reached = self.at <= self.frame.len();
        if !reached {
            self.at = self.out.network_at as usize;
            self.cut(Layer::Ipv4, header.header_length());
        } else if protocol == IpProtocol::AH && fragment != Fragment::Later {
            (reached, protocol, fragment) = self.extension_chain(protocol, fragment);
        }
        let ports = if reached { self.transport(protocol, fragment) } else { None };
        self.out.flow = FlowKey::from_ipv4(header.addresses(), ports, protocol.0);
    }

    #[inline(always)]
    fn ipv6(&mut self) {
        self.out.stack.push(Word::Ipv6);
        let Some(header) = self.take().map(ipv6::Header::of) else {
            return self.cut(Layer::Ipv6, ipv6::Header::LENGTH);
        };
        if let Err(error) = header.check_version() {
            return self.note(error);
        }
        let mut protocol = header.next_header();
        let behind = self.available().saturating_sub(ipv6::Header::LENGTH);
        match header.check_length(behind) {
            // Only the hop-by-hop header can tell whether a length of zero is a jumbogram's.
            Ok(0) if protocol == IpProtocol::HOP_BY_HOP => {}
            Ok(length) => self.end_at(self.at + ipv6::Header::LENGTH + length),
            Err(error) => self.note(error),
        }
        self.out.network_at = self.at as u32;
        self.at += ipv6::Header::LENGTH;
        self.out.flags |= HAS_FLOW;
        let mut fragment = Fragment::None;
        let mut reached = true;
        if Kind::of(protocol).is_some() {
            if protocol == IpProtocol::HOP_BY_HOP {
                self.jumbogram(usize::from(header.payload_length()));
            }
            (reached, protocol, fragment) = self.extension_chain(protocol, fragment);
        }
        let ports = if reached { self.transport(protocol, fragment) } else { None };
        self.out.flow = FlowKey::from_ipv6(header.addresses(), ports, protocol.0);
    }

    /// A payload length of zero with a hop-by-hop header is legal with a jumbo payload option only, and the
    /// option with such a length only (RFC 2675 section 3).
    #[inline(never)]
    fn jumbogram(&mut self, payload_length: usize) {
        let Ok(header) = extension::Header::parse(Kind::HopByHop, self.rest(), self.available()) else {
            return;
        };
        let network = self.out.network_at as usize;
        if payload_length != 0 {
            if header.options().filter_map(Result::ok).any(|option| option.kind == extension::JUMBO_PAYLOAD) {
                let error = Error::new(Layer::Ipv6, Field::Length, Rule::MustBe, payload_length, 0);
                self.note_at(network, error);
            }
            return;
        }
        let available = self.available();
        match header.jumbo_payload() {
            Ok(Some(length)) if length as usize <= available => self.end_at(self.at + length as usize),
            Ok(Some(length)) => self.note(Error::new(
                Layer::HopByHop,
                Field::JumboPayload,
                Rule::Exceeds,
                length as usize,
                available,
            )),
            Ok(None) => {
                let error = Error::new(Layer::Ipv6, Field::Length, Rule::Below, 0, header.octets.len());
                self.note_at(network, error);
                self.end_at(self.at);
            }
            Err(error) => self.note(error),
        }
    }

    /// Extension headers from `at` on. Gives whether the transport header was reached, its protocol, and
    /// the place among fragments. Each header is at least eight octets, so the packet bounds the walk.
    #[inline(never)]
    fn extension_chain(&mut self, mut next: IpProtocol, mut place: Fragment) -> (bool, IpProtocol, Fragment) {
        let start = self.at;
        while let Some(kind) = Kind::of(next) {
            if kind == Kind::HopByHop && self.at != start {
                self.note(Error::new(Layer::HopByHop, Field::Header, Rule::OutOfPlace, 0, 0));
                return (false, next, place);
            }
            let header = match extension::Header::parse(kind, self.rest(), self.available()) {
                Ok(header) => header,
                Err(error) => {
                    self.note(error);
                    return (false, next, place);
                }
            };
            self.extension(&header);
            next = header.next_header();
            self.at += header.octets.len();
            if kind == Kind::Fragment {
                let found = header.fragment();
                if found != Fragment::None {
                    place = found;
                    self.out.flags |= fragment_flag(found);
                }
                if found == Fragment::Later {
                    return (true, next, place);
                }
            }
        }
        (true, next, place)
    }

    fn extension(&mut self, header: &extension::Header<'_>) {
        self.out.extensions |= 1 << header.kind as u8;
        let checked = match header.kind {
            Kind::HopByHop | Kind::DestinationOptions => header.check_options(),
            Kind::Routing => header.check_routing(),
            Kind::Fragment => Ok(()),
            Kind::Authentication => {
                self.out.stack.push(Word::Ah);
                Ok(())
            }
        };
        if let Err(error) = checked {
            self.note(error);
        }
    }

    /// The transport header: its word, its checks, and its ports where it has any.
    #[inline(always)]
    fn transport(&mut self, protocol: IpProtocol, fragment: Fragment) -> Option<[u8; 4]> {
        if fragment == Fragment::Later {
            return None;
        }
        self.out.transport_at = self.at as u32;
        match protocol {
            IpProtocol::TCP => self.tcp(),
            IpProtocol::UDP => self.udp(fragment),
            _ => self.rare_transport(protocol),
        }
    }

    /// An IP packet without payload has no transport header, whatever its protocol field says.
    #[inline(always)]
    fn push_transport(&mut self, word: Word) {
        if self.at < self.frame.len() {
            self.out.stack.push(word);
        }
    }

    #[inline(always)]
    fn tcp(&mut self) -> Option<[u8; 4]> {
        self.push_transport(Word::Tcp);
        match self.take().map(Tcp::of) {
            Some(header) => {
                if let Err(error) = header.check(self.available()) {
                    self.note(error);
                }
            }
            None => self.cut(Layer::Tcp, Tcp::LENGTH),
        }
        self.take().copied()
    }

    #[inline(always)]
    fn udp(&mut self, fragment: Fragment) -> Option<[u8; 4]> {
        self.push_transport(Word::Udp);
        match self.take().map(Udp::of) {
            Some(header) => {
                // The length of a fragmented datagram reaches past its first fragment.
                if let Err(error) = header.check(self.available())
                    && !(fragment == Fragment::First && error.rule == Rule::Exceeds)
                {
                    self.note(error);
                }
            }
            None => self.cut(Layer::Udp, Udp::LENGTH),
        }
        self.take().copied()
    }

    #[inline(never)]
    fn rare_transport(&mut self, protocol: IpProtocol) -> Option<[u8; 4]> {
        let (word, layer, needs) = match protocol {
            IpProtocol::SCTP => (Word::Sctp, Layer::Sctp, Sctp::LENGTH),
            IpProtocol::ICMP => (Word::Icmp, Layer::Icmp, Icmp::LENGTH),
            IpProtocol::ICMPV6 => (Word::Icmpv6, Layer::Icmpv6, Icmp::LENGTH),
            IpProtocol::ESP => (Word::Esp, Layer::Esp, 8),
            IpProtocol::IGMP => (Word::Igmp, Layer::Ip, 0),
            IpProtocol::GRE => (Word::Gre, Layer::Ip, 0),
            IpProtocol::NO_NEXT_HEADER => return None,
            IpProtocol::IPV4 | IpProtocol::IPV6 => {
                self.nested(protocol);
                return None;
            }
            _ => {
                self.push_transport(Word::Other);
                return None;
            }
        };
        self.push_transport(word);
        if self.rest().len() < needs {
            self.cut(layer, needs);
        }
        if protocol == IpProtocol::SCTP { self.take().copied() } else { None }
    }

    /// Adds the words of an IP packet inside this one. It is payload: what is wrong with it is not wrong
    /// with the frame, and its addresses are not the frame's flow.
    fn nested(&mut self, protocol: IpProtocol) {
        let mut inner = Walk {
            frame: self.rest(),
            at: 0,
            end: self.available(),
            out: Dissection::NOTHING,
            depth: self.depth + 1,
        };
        if inner.depth > NESTED_IP {
            return self.push_transport(Word::Other);
        }
        match protocol {
            IpProtocol::IPV4 => inner.ipv4(),
            _ => inner.ipv6(),
        }
        inner.out.stack.distinct_words().for_each(|word| self.out.stack.push(word));
    }
}

#[inline(always)]
const fn fragment_flag(fragment: Fragment) -> u16 {
    match fragment {
        Fragment::None => 0,
        Fragment::First => FIRST_FRAGMENT,
        Fragment::Later => LATER_FRAGMENT,
    }
}

#[inline(always)]
const fn tpid_number(tpid: EtherType) -> u32 {
    match tpid.0 {
        0x8100 => 1,
        0x88a8 => 2,
        0x9100 => 3,
        0x9200 => 4,
        _ => 5,
    }
}

/// The TPID of a number in [`Dissection::tpids`].
#[inline(always)]
pub const fn tpid_of_number(number: u32) -> EtherType {
    EtherType(match number {
        1 => 0x8100,
        2 => 0x88a8,
        3 => 0x9100,
        4 => 0x9200,
        _ => 0x9300,
    })
}
