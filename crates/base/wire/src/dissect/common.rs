//! The short cut for the frames that a router sees most: Ethernet, any tags, PPPoE or not, IPv4 without
//! options or IPv6 without extension headers, unfragmented, TCP or UDP, nothing wrong.
//!
//! The general walk reports defects and therefore keeps what it found in memory; this one gives up at the
//! first surprise and so keeps everything in registers, which is three times as fast. The rules are the same
//! functions; `tests` and a fuzz target hold the two to the same answer.

use super::Dissection;
use crate::ethernet::{self, EtherType};
use crate::flow::FlowKey;
use crate::ip::{Fragment, IpProtocol};
use crate::ppp::{self, Compression, PppProtocol};
use crate::shape::{HAS_FLOW, HAS_PORTS, HAS_PPPOE, Shape};
use crate::stack::{Stack, Word};
use crate::transport::{Tcp, Udp};
use crate::{ipv4, ipv6, pppoe, vlan};

/// Bytes of an uncompressed PPP protocol field.
const PPP_LENGTH: usize = 2;

#[inline(always)]
pub(super) fn dissect(frame: &[u8], wire_length: usize) -> Option<Dissection> {
    // Bytes of the frame that the capture left out, after `rest`.
    let missing = wire_length.saturating_sub(frame.len());
    let mut stack = Stack::EMPTY;
    stack.push(Word::Eth);
    let (header, rest) = frame.split_first_chunk()?;
    let (mut tpids, mut shift) = (0, 0);
    let (mut ethertype, mut rest) = vlan::untag(ethernet::Header::of(header).ethertype(), rest, |tpid| {
        tpids |= tpid.tpid_number() << (shift & 31);
        shift += 4;
    })
    .ok()?;
    // Beyond eight tags the TPIDs no longer fit; nobody sends such frames.
    if shift > 32 {
        return None;
    }
    stack.push_tags(shift as u16 / 4);
    let mut available = rest.len() + missing;
    let (mut flags, mut session, mut ppp_protocol) = (HAS_FLOW | HAS_PORTS, 0, 0);
    if ethertype == EtherType::PPPOE_SESSION {
        stack.push(Word::Pppoe);
        let (header, behind) =
            rest.split_first_chunk().map(|(header, rest)| (pppoe::Header::of(header), rest))?;
        header.check_version().ok()?;
        header.check_code(pppoe::Stage::Session).ok()?;
        header.check_length(behind.len() + missing).ok()?;
        let (protocol, behind) = behind.split_first_chunk::<PPP_LENGTH>()?;
        let (protocol, _) = ppp::protocol(protocol, Compression::Forbidden).ok()?;
        ethertype = match protocol {
            PppProtocol::IPV4 => EtherType::IPV4,
            PppProtocol::IPV6 => EtherType::IPV6,
            _ => return None,
        };
        rest = behind;
        available = usize::from(header.length()).checked_sub(PPP_LENGTH)?;
        (flags, session, ppp_protocol) = (HAS_FLOW | HAS_PORTS | HAS_PPPOE, header.session(), protocol.0);
    }
    let network_at = frame.len() - rest.len();
    let flow = match ethertype {
        EtherType::IPV4 => {
            stack.push(Word::Ipv4);
            let (header, behind) = rest.split_first_chunk()?;
            let header = ipv4::Header::of(header);
            header.check_header().ok()?;
            let length = header.check_length(available).ok()?;
            if header.header_length() != ipv4::Header::LENGTH || header.fragment() != Fragment::None {
                return None;
            }
            rest = behind;
            let ports = ports(rest, length - ipv4::Header::LENGTH, header.protocol(), &mut stack)?;
            FlowKey::from_ipv4(header.addresses(), Some(ports), header.protocol().0)
        }
        EtherType::IPV6 => {
            stack.push(Word::Ipv6);
            let (header, behind) = rest.split_first_chunk()?;
            let header = ipv6::Header::of(header);
            header.check_version().ok()?;
            let length = header.check_length(available.checked_sub(ipv6::Header::LENGTH)?).ok()?;
            rest = behind;
            let ports = ports(rest, length, header.next_header(), &mut stack)?;
            FlowKey::from_ipv6(header.addresses(), Some(ports), header.next_header().0)
        }
        _ => return None,
    };
    Some(Dissection {
        flow,
        shape: Shape { stack, tpids, ppp_protocol, flags, code: 0, extensions: 0 },
        error: None,
        tags_at: ethernet::Header::LENGTH as u32,
        network_at: network_at as u32,
        transport_at: (frame.len() - rest.len()) as u32,
        session,
    })
}

/// The ports of a whole and valid TCP or UDP header at the start of `rest`, in a packet of which
/// `available` bytes are left.
#[inline(always)]
fn ports(rest: &[u8], available: usize, protocol: IpProtocol, stack: &mut Stack) -> Option<[u8; 4]> {
    match protocol {
        IpProtocol::TCP => {
            stack.push(Word::Tcp);
            Tcp::of(rest.first_chunk()?).check(available).ok()?;
        }
        IpProtocol::UDP => {
            stack.push(Word::Udp);
            Udp::of(rest.first_chunk()?).check(available).ok()?;
        }
        _ => return None,
    }
    rest.first_chunk().copied()
}
