//! How a concentrator behaves.

use crate::pppoe_peers::by_hand::discovery::{
    AC_COOKIE, AC_NAME, END_OF_LIST, GENERIC_ERROR, HOST_UNIQ, SERVICE_NAME, Tags, VENDOR_SPECIFIC, find,
};
use crate::pppoe_peers::by_hand::ppp::{self, Options};
use std::net::Ipv4Addr;

pub const SESSION_NUMBER: u16 = 0x0b0b;
/// Addresses: its own, the client's, name servers; its interface identifier.
pub const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub const NAME_SERVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 53), Ipv4Addr::new(10, 77, 1, 53)];
pub const IDENTIFIER: u64 = 0x77;

/// Protocols of which a client knows nothing: CCP, ECP, and one that is nobody's.
pub const PROTOCOLS: [u16; 3] = [ppp::CCP, 0x8053, 0x8013];
pub const ECHO: &[u8] = b"data behind the magic number";

/// What becomes of magic numbers (RFC 1661 section 6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magic {
    /// It has one, as usual.
    Own,
    /// It names zero, which is none.
    Zero,
    /// It names none.
    None,
    /// Nor does it want to hear of the client's.
    Rejected,
}

impl Magic {
    pub const fn number(self) -> u32 {
        match self {
            Magic::Own => 0x0102_0304,
            Magic::Zero | Magic::None | Magic::Rejected => 0,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Manner {
    /// `false`: whoever comes is let in.
    pub demands_pap: bool,
    /// It names an MRU.
    pub mru: Option<u16>,
    pub magic: Magic,
    /// Asks for options that have no place on PPPoE, and for VJ compression.
    pub asks_for_more: bool,
    pub has_ipv6: bool,
    /// Services besides any.
    pub services: &'static [&'static str],
    /// Tags in another order, with some that nobody knows.
    pub has_other_tags: bool,
    /// Octets behind each frame that are none of PPPoE's.
    pub has_trailers: bool,
    /// Sends echoes, words, and protocols that nobody knows.
    pub is_odd: bool,
}

impl Manner {
    /// Nothing that need not be.
    pub const PLAIN: Manner = Manner {
        demands_pap: false,
        mru: None,
        magic: Magic::None,
        asks_for_more: false,
        has_ipv6: false,
        services: &[],
        has_other_tags: false,
        has_trailers: false,
        is_odd: false,
    };

    /// Tags of PADO and PADS: never a cookie.
    pub fn answer(&self, asked: &Tags, is_confirmation: bool) -> Tags {
        let name = (AC_NAME, b"permissive".to_vec());
        let uniq = find(asked, HOST_UNIQ).map(|uniq| (HOST_UNIQ, uniq.to_vec()));
        let service = find(asked, SERVICE_NAME).unwrap_or_default().to_vec();
        let mut services = vec![(SERVICE_NAME, service)];
        if !is_confirmation {
            services.extend(self.services.iter().map(|name| (SERVICE_NAME, name.as_bytes().to_vec())));
        }
        if !self.has_other_tags {
            return [vec![name], services, uniq.into_iter().collect()].concat();
        }
        let vendor = (VENDOR_SPECIFIC, vec![0, 0, 0, 9, 1, 2, 3]);
        let unknown = (0x0fed, b"nobody knows".to_vec());
        let behind = vec![vendor, unknown, name, (END_OF_LIST, Vec::new())];
        [uniq.into_iter().collect(), services, behind].concat()
    }

    /// Tags of its PADT.
    pub fn last_tags(&self) -> Tags {
        vec![
            (HOST_UNIQ, b"of somebody".to_vec()),
            (VENDOR_SPECIFIC, vec![0, 0, 0, 9]),
            (GENERIC_ERROR, b"closed for the night".to_vec()),
            (AC_COOKIE, b"stale".to_vec()),
        ]
    }

    /// Those of [`Manner::lcp_options`] that have to be rejected, in their order.
    pub fn useless(&self) -> Options {
        if !self.asks_for_more {
            return Vec::new();
        }
        vec![
            (ppp::ACCM, vec![0, 0x0a, 0, 0]),
            (ppp::PFC, vec![]),
            (ppp::ACFC, vec![]),
            (ppp::CALLBACK, vec![6]),
            (ppp::MRRU, vec![0x05, 0xdc]),
            (ppp::SHORT_SEQUENCE, vec![]),
            (ppp::ENDPOINT, vec![3, 2, 0xac, 0, 0, 0, 1]),
        ]
    }

    pub fn lcp_options(&self) -> Options {
        let mut options = Options::new();
        options.extend(self.mru.map(|mru| (ppp::MRU, mru.to_be_bytes().to_vec())));
        if self.demands_pap {
            options.push((ppp::AUTHENTICATION, ppp::BY_PAP.to_vec()));
        }
        options.extend(self.useless());
        if matches!(self.magic, Magic::Own | Magic::Zero) {
            options.push((ppp::MAGIC, self.magic.number().to_be_bytes().to_vec()));
        }
        options
    }

    pub fn ipcp_options(&self) -> Options {
        let mut options = vec![(ppp::IP_ADDRESS, OWN.octets().to_vec())];
        if self.asks_for_more {
            options.insert(0, (ppp::IP_COMPRESSION, ppp::VJ.to_vec()));
        }
        options
    }

    /// The client gets its address and name servers by a Nak (RFC 1332 section 3.3, RFC 1877 section 1).
    pub fn judge_ipcp(&self, asked: &Options) -> (u8, Options) {
        let given = |kind: u8| match kind {
            ppp::IP_ADDRESS => Some(CLIENT),
            ppp::PRIMARY_DNS => Some(NAME_SERVERS[0]),
            ppp::SECONDARY_DNS => Some(NAME_SERVERS[1]),
            _ => None,
        };
        let unknown: Options = asked.iter().filter(|(kind, _)| given(*kind).is_none()).cloned().collect();
        if !unknown.is_empty() {
            return (ppp::CONFIGURE_REJECT, unknown);
        }
        let right = asked.iter().filter_map(|(kind, _)| Some((*kind, given(*kind)?.octets().to_vec())));
        let right: Options = right.collect();
        if right == *asked {
            return (ppp::CONFIGURE_ACK, right);
        }
        let wrong = right.into_iter().filter(|option| !asked.contains(option)).collect();
        (ppp::CONFIGURE_NAK, wrong)
    }

    /// Packets of an open session that a client has to answer, to reject, or to leave alone.
    pub fn oddities(&self, magic: [u8; 4]) -> Vec<Vec<u8>> {
        let lcp =
            |code: u8, data: &[u8]| ppp::control(ppp::LCP, code, 0x40 + code, &[&magic[..], data].concat());
        let mut packets = vec![
            lcp(ppp::ECHO_REQUEST, ECHO),
            lcp(ppp::ECHO_REQUEST, &[0x5a; 1000]),
            lcp(ppp::DISCARD_REQUEST, &[1; 100]),
            lcp(ppp::IDENTIFICATION, b"Permissive 1.0"),
            lcp(ppp::TIME_REMAINING, b"\x00\x00\x0e\x10an hour"),
        ];
        let request = |protocol: &u16| {
            ppp::control(*protocol, ppp::CONFIGURE_REQUEST, 1, &ppp::put(&[(18, vec![0, 0, 0, 0x40])]))
        };
        packets.extend(PROTOCOLS.iter().map(request));
        // Not a protocol of control, which a client does not know either: bridged frames (RFC 3518).
        packets.push([&[0x00, 0x31][..], &[0; 20]].concat());
        packets
    }
}
