//! What the steering program decides, in Rust: the answer that the program is held to.
//!
//! Headers up to the IP header are judged by [`wire::dissect()`]. Where a dissection says more than steering needs (what
//! is wrong behind the ports, or with options) it is not consulted; where the program follows fewer headers, that is said
//! here.

use crate::hash;
use crate::layout::{Class, Reason, Settings};
use wire::error::{Field, Layer, Rule};
use wire::ethernet::EtherType;
use wire::extension::Kind;
use wire::ppp::PppProtocol;
use wire::{Dissection, FlowKey, IpProtocol, IpVersion, Link, dissect, ipv6, mpls, pppoe, vlan};

/// Tags that are followed.
pub const TAGS: usize = 8;
/// MPLS labels that are followed.
pub const LABELS: usize = 8;
/// Extension headers that are followed.
pub const EXTENSIONS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// [`Reason::Steered`] or why not. Never [`Reason::NoCpu`], which depends on the maps.
    pub reason: Reason,
    /// What it is wrapped in; `None` where the frame did not say.
    pub class: Option<Class>,
    /// The flow and its bucket, of a steered frame. A flow that goes by its addresses has neither ports nor protocol
    /// (which is then 0).
    pub flow: Option<(FlowKey, u8)>,
}

impl Decision {
    pub fn bucket(&self) -> Option<u8> {
        self.flow.map(|(_, bucket)| bucket)
    }
}

/// Decides about `frame`, from the destination address on and without FCS.
pub fn decide(frame: &[u8], settings: &Settings) -> Decision {
    decide_in_buffers(frame, frame.len(), settings)
}

/// Decides about a frame of `length` bytes in several buffers, of which `first` is the first one.
pub fn decide_in_buffers(first: &[u8], length: usize, settings: &Settings) -> Decision {
    let walk = Walk { first, length: length.max(first.len()) };
    let (class, flow) = match walk.link() {
        Ok((class, ethertype, at)) if settings.classes & class.bit() != 0 => {
            (Some(class), walk.flow(class, ethertype, at))
        }
        Ok((class, ..)) => (Some(class), Err(Reason::ClassLeft)),
        Err(reason) => (None, Err(reason)),
    };
    match flow {
        Ok(flow) => {
            let bucket = hash::bucket(&flow, settings);
            Decision { reason: Reason::Steered, class, flow: Some((flow, bucket)) }
        }
        Err(reason) => Decision { reason, class, flow: None },
    }
}

/// Where the IP header is and what encloses it: bytes from the start of the frame.
struct Network {
    at: usize,
    end: usize,
}

struct Walk<'a> {
    first: &'a [u8],
    length: usize,
}

impl Walk<'_> {
    /// Why bytes up to `end` cannot be read, where `packet_end` encloses them.
    fn unreadable(&self, end: usize, packet_end: usize) -> Reason {
        if end > packet_end { Reason::Truncated } else { Reason::NotLinear }
    }

    fn bytes<const N: usize>(&self, at: usize) -> Option<&[u8; N]> {
        self.first.get(at..)?.first_chunk()
    }

    /// MAC header and tags: the class, the EtherType under the tags, and where its payload starts.
    fn link(&self) -> Result<(Class, EtherType, usize), Reason> {
        let protocol = vlan::protocol(self.first).map_err(|error| {
            let tags = (error.offset as usize).saturating_sub(14) / vlan::TAG_LENGTH;
            let end = (error.offset + error.limit) as usize;
            if tags >= TAGS { Reason::TooDeep } else { self.unreadable(end, self.length) }
        })?;
        if protocol.tags > TAGS {
            return Err(Reason::TooDeep);
        }
        let class = match protocol.ethertype {
            EtherType::PPPOE_SESSION => Class::Pppoe,
            EtherType::MPLS | EtherType::MPLS_UPSTREAM => Class::Mpls,
            EtherType::IPV4 | EtherType::IPV6 => match protocol.tags {
                0 => Class::Plain,
                1 => Class::Vlan,
                _ => Class::Qinq,
            },
            EtherType::PPPOE_DISCOVERY => return Err(Reason::PppoeDiscovery),
            _ => return Err(Reason::NotIp),
        };
        Ok((class, protocol.ethertype, protocol.payload))
    }

    fn flow(&self, class: Class, ethertype: EtherType, at: usize) -> Result<FlowKey, Reason> {
        let seen = dissect(Link::Ethernet, self.first, self.length);
        let mut network = Network { at, end: self.length };
        let mut labelled = class == Class::Mpls;
        if ethertype == EtherType::PPPOE_SESSION {
            (network, labelled) = self.session(&seen, at)?;
        }
        if labelled {
            network.at = self.bottom(&network)?;
        }
        self.ip(&seen, &network)
    }

    /// PPPoE and PPP: what is inside, and whether it is MPLS.
    fn session(&self, seen: &Dissection, at: usize) -> Result<(Network, bool), Reason> {
        let inside = at + pppoe::Header::LENGTH + 2;
        if inside > self.first.len() {
            return Err(self.unreadable(inside, self.length));
        }
        let error = seen.error();
        if let Some(error) = error.filter(|error| error.layer == Layer::Pppoe) {
            return Err(reason_of(error));
        }
        let length = self.bytes(at).map_or(0, |header| pppoe::Header::of(header).length());
        if length < 2 {
            return Err(Reason::Truncated);
        }
        if error.is_some_and(|error| error.layer == Layer::Ppp) {
            return Err(Reason::Malformed);
        }
        let network = Network { at: inside, end: at + pppoe::Header::LENGTH + usize::from(length) };
        match seen.ppp_protocol() {
            Some(PppProtocol::IPV4 | PppProtocol::IPV6) => Ok((network, false)),
            Some(PppProtocol::MPLS | PppProtocol::MPLS_MULTICAST) => Ok((network, true)),
            // RFC 1661 section 2: network and link control protocols.
            Some(PppProtocol(0x8000..)) => Err(Reason::PppControl),
            _ => Err(Reason::PppOther),
        }
    }

    /// Where the label stack ends.
    fn bottom(&self, network: &Network) -> Result<usize, Reason> {
        for label in 0..LABELS {
            let at = network.at + label * mpls::ENTRY_LENGTH;
            let behind = at + mpls::ENTRY_LENGTH;
            let entry = self.bytes(at).filter(|_| behind <= network.end);
            let entry = entry.ok_or_else(|| self.unreadable(behind, network.end))?;
            if !mpls::Entry::of(*entry).is_bottom() {
                continue;
            }
            if behind == network.end {
                return Err(Reason::NotIp);
            }
            return match mpls::Payload::of(*self.first.get(behind).ok_or(Reason::NotLinear)?) {
                mpls::Payload::Unknown => Err(Reason::NotIp),
                _ => Ok(behind),
            };
        }
        Err(Reason::TooDeep)
    }

    fn ip(&self, seen: &Dissection, network: &Network) -> Result<FlowKey, Reason> {
        if let Some(error) = seen.error()
            && matches!(error.layer, Layer::Ipv4 | Layer::Ipv6)
        {
            // The jumbo payload option is not looked for, and bytes of IPv4 options are not read.
            let is_option =
                error.layer == Layer::Ipv6 && error.field == Field::Length && error.rule == Rule::MustBe;
            let is_unread = error.rule == Rule::CaptureCut && seen.flow().is_some();
            if !is_option && !is_unread {
                return Err(reason_of(error));
            }
        }
        let flow = seen.flow().ok_or(Reason::Malformed)?;
        let (fragmented, mut next, at, end) = match flow.version() {
            IpVersion::V4 => {
                let header = self.bytes(network.at).map(wire::ipv4::Header::of).ok_or(Reason::NotLinear)?;
                let length = match header.total_length() {
                    0 => network.end.saturating_sub(network.at),
                    length => usize::from(length),
                };
                let fragmented = header.fragment() != wire::Fragment::None;
                (fragmented, header.protocol(), network.at + header.header_length(), network.at + length)
            }
            IpVersion::V6 => {
                let header = self.bytes(network.at).map(ipv6::Header::of).ok_or(Reason::NotLinear)?;
                let at = network.at + ipv6::Header::LENGTH;
                let end = match header.payload_length() {
                    0 if network.end.saturating_sub(at) > wire::ip::MAX_LENGTH => network.end,
                    // A jumbogram that is none, whatever its option says.
                    0 if header.next_header() == IpProtocol::HOP_BY_HOP => return Err(Reason::Malformed),
                    length => at + usize::from(length),
                };
                (false, header.next_header(), at, end)
            }
        };
        let (source, destination) = (flow.source(), flow.destination());
        let without_ports = || FlowKey::without_ports(source, destination, 0).ok_or(Reason::Malformed);
        if fragmented {
            return without_ports();
        }
        let mut at = at;
        if flow.version() == IpVersion::V6 || next == IpProtocol::AH {
            match self.extensions(&mut next, at, end)? {
                Some(behind) => at = behind,
                None => return without_ports(),
            }
        }
        if !matches!(next, IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP) {
            return without_ports();
        }
        if end.saturating_sub(at) < 4 {
            return Err(Reason::Truncated);
        }
        let [a, b, c, d] = *self.bytes(at).ok_or(Reason::NotLinear)?;
        let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        FlowKey::with_ports(source, ports.0, destination, ports.1, next.0).ok_or(Reason::Malformed)
    }

    /// Walks extension headers from `at` on: where the transport header is, of the protocol that is then in `next`.
    /// `None` for a fragment.
    fn extensions(&self, next: &mut IpProtocol, mut at: usize, end: usize) -> Result<Option<usize>, Reason> {
        let mut count = 0;
        while let Some(kind) = Kind::of(*next) {
            if count == EXTENSIONS {
                return Err(Reason::TooDeep);
            }
            if kind == Kind::HopByHop && count != 0 {
                return Err(Reason::Malformed);
            }
            if end.saturating_sub(at) < 8 {
                return Err(Reason::Truncated);
            }
            let [following, length, third, fourth, ..] = *self.bytes::<8>(at).ok_or(Reason::NotLinear)?;
            let length = match kind {
                Kind::Fragment if u16::from_be_bytes([third, fourth]) & 0xfff9 != 0 => return Ok(None),
                Kind::Fragment => 8,
                Kind::Authentication if length < 1 => return Err(Reason::Malformed),
                Kind::Authentication => (usize::from(length) + 2) * 4,
                _ => (usize::from(length) + 1) * 8,
            };
            if length > end.saturating_sub(at) {
                return Err(Reason::Truncated);
            }
            *next = IpProtocol(following);
            at += length;
            count += 1;
        }
        Ok(Some(at))
    }
}

/// A header that the frame has and its first buffer has not is not its sender's fault.
fn reason_of(error: &wire::Error) -> Reason {
    match (error.rule, error.class()) {
        (Rule::CaptureCut, _) => Reason::NotLinear,
        (_, wire::Class::Truncated) => Reason::Truncated,
        (_, wire::Class::Malformed) => Reason::Malformed,
    }
}
