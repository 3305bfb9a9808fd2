//! The general walk: from the first byte to the IP header, in the order in which headers can stand.
//!
//! It goes on behind a length that is merely too long, since what is inside is still worth showing, and stops
//! at anything else. IP and what follows it are in `network`.

use super::{Dissection, Link};
use crate::error::{Error, Field, Layer, Rule};
use crate::ethernet::{self, EtherType, Llc};
use crate::ppp::{self, Compression, ControlHeader, PppProtocol};
use crate::shape::{ABOVE_LINK, HAS_PPPOE, OUTGOING, SNAP};
use crate::stack::{Stack, Word};
use crate::{cooked, mpls, pppoe, vlan};

/// [`super::dissect`] without the short cut for common frames.
#[inline(never)]
pub(super) fn dissect(link: Link, frame: &[u8], wire_length: usize) -> Dissection {
    let mut walk =
        Walk { frame, at: 0, end: wire_length.max(frame.len()), out: Dissection::NOTHING, depth: 0 };
    if !matches!(link, Link::Ethernet | Link::LinuxCooked | Link::LinuxCooked2) {
        walk.out.shape.flags |= ABOVE_LINK;
    }
    match link {
        Link::Ethernet => walk.ethernet(),
        Link::LinuxCooked | Link::LinuxCooked2 => walk.cooked(link),
        Link::Ip => walk.ip(),
        Link::Ppp => walk.ppp_framed(),
        Link::PppOverEthernet => walk.pppoe(pppoe::Stage::Session),
    }
    if walk.out.shape.stack == Stack::EMPTY {
        walk.out.shape.stack.push(Word::Other);
    }
    walk.out
}

pub(super) struct Walk<'a> {
    /// The captured bytes, cut to what the enclosing headers say belongs to the packet.
    pub(super) frame: &'a [u8],
    /// Where the next header starts.
    pub(super) at: usize,
    /// Where the enclosing header says that the packet ends, captured or not. At least `at`.
    pub(super) end: usize,
    pub(super) out: Dissection,
    /// IP headers around this one.
    pub(super) depth: u32,
}

impl<'a> Walk<'a> {
    pub(super) fn rest(&self) -> &'a [u8] {
        self.frame.get(self.at..).unwrap_or_default()
    }

    pub(super) fn take<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.rest().first_chunk()
    }

    /// Bytes from `at` to the end of the enclosing packet.
    pub(super) fn available(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    pub(super) fn end_at(&mut self, end: usize) {
        self.end = end;
        if let Some(frame) = self.frame.get(..end) {
            self.frame = frame;
        }
    }

    /// Notes a defect of the header at `at`; the first one stays.
    #[cold]
    pub(super) fn note(&mut self, error: Error) {
        if self.out.error.is_none() {
            let offset = self.at + error.offset as usize;
            self.out.error = Some(self.blame_capture(error).at(offset));
        }
    }

    /// Notes a defect of a header before the one at `at`.
    #[cold]
    pub(super) fn note_at(&mut self, header: usize, error: Error) {
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
    pub(super) fn cut(&mut self, layer: Layer, needs: usize) {
        self.note(Error::new(layer, Field::Header, Rule::Cut, self.rest().len(), needs));
    }

    fn ethernet(&mut self) {
        self.out.shape.stack.push(Word::Eth);
        let Some(header) = self.take() else {
            return self.cut(Layer::Ethernet, ethernet::Header::LENGTH);
        };
        self.at = ethernet::Header::LENGTH;
        self.tagged(ethernet::Header::of(header).ethertype());
    }

    /// Tags, if `ethertype` announces any, then what is under them.
    fn tagged(&mut self, ethertype: EtherType) {
        if !ethertype.is_tag() {
            return self.ethertype(ethertype);
        }
        let (mut count, mut tpids) = (0u16, 0u32);
        let protocol = vlan::untag(ethertype, self.rest(), |tpid| {
            if count < 8 {
                tpids |= tpid.tpid_number() << (4 * u32::from(count));
            }
            count = count.saturating_add(1);
        });
        self.out.tags_at = self.at as u32;
        self.out.shape.tpids = tpids;
        self.out.shape.stack.push_tags(count);
        match protocol {
            Ok((ethertype, rest)) => {
                self.at = self.frame.len() - rest.len();
                self.ethertype(ethertype);
            }
            Err(error) => self.note(error),
        }
    }

    fn ethertype(&mut self, ethertype: EtherType) {
        match ethertype {
            EtherType::IPV4 => self.ipv4(),
            EtherType::IPV6 => self.ipv6(),
            EtherType::PPPOE_SESSION => self.pppoe(pppoe::Stage::Session),
            _ => self.rare_ethertype(ethertype),
        }
    }

    fn rare_ethertype(&mut self, ethertype: EtherType) {
        match ethertype {
            EtherType::PPPOE_DISCOVERY => self.pppoe(pppoe::Stage::Discovery),
            EtherType::ARP => self.out.shape.stack.push(Word::Arp),
            EtherType::MPLS | EtherType::MPLS_UPSTREAM => self.mpls(),
            // 802.3 as far as a length can say, and the values above it that mean nothing.
            EtherType(0..=1535) if !self.out.shape.stack.contains(Word::Llc) => self.ieee802_3(ethertype),
            _ => self.out.shape.stack.push(Word::Other),
        }
    }

    fn ieee802_3(&mut self, field: EtherType) {
        match ethernet::check_length(field, self.available()) {
            Ok(length) => self.end_at(self.at + length),
            Err(error) if error.rule == Rule::Exceeds => self.note_at(0, error),
            Err(error) => {
                self.out.shape.stack.push(Word::Other);
                return self.note_at(0, error);
            }
        }
        self.llc();
    }

    fn llc(&mut self) {
        self.out.shape.stack.push(Word::Llc);
        match ethernet::llc(self.rest()) {
            Ok(Llc::Ethertype { ethertype, length }) => {
                self.out.shape.flags |= SNAP;
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

    fn cooked(&mut self, link: Link) {
        let version = if link == Link::LinuxCooked { cooked::Version::One } else { cooked::Version::Two };
        match cooked::Header::parse(version, self.rest()) {
            Ok(header) => {
                self.at += header.length;
                if header.outgoing {
                    self.out.shape.flags |= OUTGOING;
                }
                match header.protocol {
                    cooked::Protocol::Ethertype(ethertype) => self.tagged(ethertype),
                    cooked::Protocol::Llc => self.llc(),
                    cooked::Protocol::Other => self.out.shape.stack.push(Word::Other),
                }
            }
            Err(error) => self.note(error),
        }
    }

    fn mpls(&mut self) {
        self.out.shape.stack.push(Word::Mpls);
        loop {
            let Some(entry) = self.take().map(|bytes| mpls::Entry::of(*bytes)) else {
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
            _ => self.out.shape.stack.push(Word::Other),
        }
    }

    fn pppoe(&mut self, stage: pppoe::Stage) {
        self.out.shape.stack.push(match stage {
            pppoe::Stage::Session => Word::Pppoe,
            pppoe::Stage::Discovery => Word::PppoeDiscovery,
        });
        let Some(header) = self.take().map(pppoe::Header::of) else {
            return self.cut(Layer::Pppoe, pppoe::Header::LENGTH);
        };
        if let Err(error) = header.check_version() {
            return self.note(error);
        }
        self.out.shape.flags |= HAS_PPPOE;
        self.out.shape.code = header.code().0;
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
                self.out.shape.ppp_protocol = protocol.0;
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

    fn rare_ppp(&mut self, protocol: PppProtocol) {
        let word = match protocol {
            PppProtocol::LCP => Word::Lcp,
            PppProtocol::PAP => Word::Pap,
            PppProtocol::CHAP => Word::Chap,
            PppProtocol::IPCP => Word::Ipcp,
            PppProtocol::IPV6CP => Word::Ipv6cp,
            PppProtocol::CCP => Word::Ccp,
            PppProtocol::MPLS | PppProtocol::MPLS_MULTICAST => return self.mpls(),
            _ => return self.out.shape.stack.push(Word::Other),
        };
        self.out.shape.stack.push(word);
        match self.take().map(ControlHeader::of) {
            Some(header) => {
                if let Err(error) = header.check(self.available()) {
                    self.note(error);
                }
            }
            None => self.cut(Layer::PppControl, ControlHeader::LENGTH),
        }
    }
}
