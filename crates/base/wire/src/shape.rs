//! The shape of a frame: everything about it but addresses, ports, tag values, session and sizes.
//!
//! What a device makes of a frame follows from its shape, so it need be decided only once for all frames of
//! one shape.

use crate::ethernet::EtherType;
use crate::extension::Kind;
use crate::ip::Fragment;
use crate::ppp::PppProtocol;
use crate::pppoe::Code;
use crate::stack::{Stack, Word};

/// The shape of a frame, 28 bytes of plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub(crate) stack: Stack,
    pub(crate) tpids: u32,
    pub(crate) ppp_protocol: u16,
    pub(crate) flags: u16,
    pub(crate) code: u8,
    pub(crate) extensions: u8,
}

pub(crate) const HAS_FLOW: u16 = 1;
pub(crate) const HAS_PPPOE: u16 = 2;
pub(crate) const IPV4_OPTIONS: u16 = 4;
pub(crate) const FIRST_FRAGMENT: u16 = 8;
pub(crate) const LATER_FRAGMENT: u16 = 16;
pub(crate) const SNAP: u16 = 32;
pub(crate) const HAS_PORTS: u16 = 64;
pub(crate) const OUTGOING: u16 = 128;
pub(crate) const ABOVE_LINK: u16 = 256;

/// The extension headers in front of the transport header, as a set; how many of each,
/// [`crate::Dissection::extension_headers`] counts.
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
}

impl core::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use Kind::*;
        let kinds = [HopByHop, Routing, Fragment, DestinationOptions, Authentication];
        f.debug_set().entries(kinds.into_iter().filter(|kind| self.contains(*kind))).finish()
    }
}

impl Shape {
    pub(crate) const NOTHING: Shape =
        Shape { stack: Stack::EMPTY, tpids: 0, ppp_protocol: 0, flags: 0, code: 0, extensions: 0 };

    /// The headers, outermost first.
    #[inline(always)]
    pub const fn stack(&self) -> Stack {
        self.stack
    }

    /// Whether the frame starts with a MAC header.
    #[inline(always)]
    pub const fn starts_with_ethernet(&self) -> bool {
        self.stack.starts_with(Word::Eth)
    }

    /// Whether the capture says that the capturing machine sent the frame (Linux cooked, packet type 4).
    #[inline(always)]
    pub const fn is_outgoing(&self) -> bool {
        self.flags & OUTGOING != 0
    }

    /// Whether the frame was captured above the link layer, where a network card never sees it so: bare IP,
    /// PPP without its PPPoE.
    #[inline(always)]
    pub const fn is_above_link(&self) -> bool {
        self.flags & ABOVE_LINK != 0
    }

    /// The TPIDs, outermost first; beyond the eighth tag the last one repeats.
    pub fn tpids(&self) -> impl ExactSizeIterator<Item = EtherType> + use<> {
        let tpids = self.tpids;
        (0..self.stack.tags()).map(move |tag| EtherType::of_tpid_number(tpids >> (4 * tag.min(7)) & 15))
    }

    /// The PPPoE code, where there is a PPPoE header.
    #[inline(always)]
    pub fn pppoe_code(&self) -> Option<Code> {
        (self.flags & HAS_PPPOE != 0).then_some(Code(self.code))
    }

    /// The PPP protocol, where a PPP protocol field was read.
    #[inline(always)]
    pub fn ppp_protocol(&self) -> Option<PppProtocol> {
        (self.ppp_protocol != 0).then_some(PppProtocol(self.ppp_protocol))
    }

    /// Whether the EtherType was reached through LLC and SNAP.
    pub const fn is_snap(&self) -> bool {
        self.flags & SNAP != 0
    }

    /// Whether there is an IP header.
    #[inline(always)]
    pub const fn has_flow(&self) -> bool {
        self.flags & HAS_FLOW != 0
    }

    /// Whether the first IP packet's ports are there.
    #[inline(always)]
    pub const fn has_ports(&self) -> bool {
        self.flags & HAS_PORTS != 0
    }

    /// Whether the first IP header is an IPv6 header.
    pub fn is_ipv6(&self) -> bool {
        self.stack.distinct_words().find(|word| matches!(word, Word::Ipv4 | Word::Ipv6)) == Some(Word::Ipv6)
    }

    /// Whether the first IP header is an IPv4 header with options.
    pub const fn has_ipv4_options(&self) -> bool {
        self.flags & IPV4_OPTIONS != 0
    }

    /// The extension headers between the first IP header and its transport.
    #[inline(always)]
    pub const fn extensions(&self) -> Extensions {
        Extensions(self.extensions)
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

    /// Some bits that mostly differ between shapes: a hash that is cheap rather than good.
    #[inline(always)]
    pub const fn mix(&self) -> u32 {
        self.stack.mix() ^ (self.flags as u32) << 3 ^ self.extensions as u32
    }
}
