//! The general walk from the IP header on: IPv4, IPv6, extension headers, transport, packets inside packets.

use super::walk::Walk;
use super::{Dissection, NESTED_IP};
use crate::error::{Error, Field, Layer, Rule};
use crate::extension::{self, Kind};
use crate::flow::FlowKey;
use crate::ip::{Fragment, IpProtocol};
use crate::shape::{FIRST_FRAGMENT, HAS_FLOW, HAS_PORTS, IPV4_OPTIONS, LATER_FRAGMENT};
use crate::stack::Word;
use crate::transport::{Tcp, Udp};
use crate::{ipv4, ipv6};

impl Walk<'_> {
    pub(super) fn ip(&mut self) {
        match self.rest().first().map(|byte| byte >> 4) {
            Some(4) => self.ipv4(),
            Some(6) => self.ipv6(),
            Some(version) => {
                self.out.shape.stack.push(Word::Other);
                self.note(Error::new(Layer::Ip, Field::Version, Rule::Undefined, usize::from(version), 0));
            }
            None => self.cut(Layer::Ip, 1),
        }
    }

    pub(super) fn ipv4(&mut self) {
        self.out.shape.stack.push(Word::Ipv4);
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
        self.out.shape.flags |= HAS_FLOW;
        let mut protocol = header.protocol();
        let mut fragment = header.fragment();
        if header.header_length() != ipv4::Header::LENGTH {
            self.out.shape.flags |= IPV4_OPTIONS;
        }
        if fragment != Fragment::None {
            self.out.shape.flags |= fragment_flag(fragment);
        }
        let mut reached = self.at <= self.frame.len();
        if !reached {
            self.at = self.out.network_at as usize;
            self.cut(Layer::Ipv4, header.header_length());
        } else if protocol == IpProtocol::AH && fragment != Fragment::Later {
            (reached, protocol, fragment) = self.extension_chain(protocol, fragment);
        }
        let ports = if reached { self.transport(protocol, fragment) } else { None };
        if ports.is_some() {
            self.out.shape.flags |= HAS_PORTS;
        }
        self.out.flow = FlowKey::from_ipv4(header.addresses(), ports, protocol.0);
    }

    pub(super) fn ipv6(&mut self) {
        self.out.shape.stack.push(Word::Ipv6);
        let Some(header) = self.take().map(ipv6::Header::of) else {
            return self.cut(Layer::Ipv6, ipv6::Header::LENGTH);
        };
        if let Err(error) = header.check_version() {
            return self.note(error);
        }
        let mut protocol = header.next_header();
        let behind = self.available().saturating_sub(ipv6::Header::LENGTH);
        match header.check_length(behind) {
            // Only the hop-by-hop header can say whether a length of zero is a jumbogram's.
            Ok(0) if protocol == IpProtocol::HOP_BY_HOP => {}
            Ok(length) => self.end_at(self.at + ipv6::Header::LENGTH + length),
            Err(error) => self.note(error),
        }
        self.out.network_at = self.at as u32;
        self.at += ipv6::Header::LENGTH;
        self.out.shape.flags |= HAS_FLOW;
        let mut fragment = Fragment::None;
        let mut reached = true;
        if Kind::of(protocol).is_some() {
            if protocol == IpProtocol::HOP_BY_HOP {
                self.jumbogram(usize::from(header.payload_length()));
            }
            (reached, protocol, fragment) = self.extension_chain(protocol, fragment);
        }
        let ports = if reached { self.transport(protocol, fragment) } else { None };
        if ports.is_some() {
            self.out.shape.flags |= HAS_PORTS;
        }
        self.out.flow = FlowKey::from_ipv6(header.addresses(), ports, protocol.0);
    }

    /// A payload length of zero with a hop-by-hop header is legal with a jumbo payload option only, and the
    /// option with such a length only (RFC 2675 section 3).
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
                let error = Error::new(Layer::Ipv6, Field::Length, Rule::Below, 0, header.bytes.len());
                self.note_at(network, error);
                self.end_at(self.at);
            }
            Err(error) => self.note(error),
        }
    }

    /// Extension headers from `at` on. Gives whether the transport header was reached, its protocol, and
    /// the place among fragments. Each header is at least eight bytes, so the packet bounds the walk.
    fn extension_chain(&mut self, mut next: IpProtocol, mut place: Fragment) -> (bool, IpProtocol, Fragment) {
        let start = self.at;
        let mut jumbogram = false;
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
            jumbogram |= matches!(header.jumbo_payload(), Ok(Some(_)));
            if jumbogram && kind == Kind::Fragment {
                // RFC 2675 section 3: a jumbogram has no fragment header.
                self.note(Error::new(Layer::Fragment, Field::Header, Rule::OutOfPlace, 0, 0));
            }
            next = header.next_header();
            self.at += header.bytes.len();
            if kind == Kind::Fragment {
                let found = header.fragment();
                if found != Fragment::None {
                    place = found;
                    self.out.shape.flags |= fragment_flag(found);
                }
                if found == Fragment::Later {
                    return (true, next, place);
                }
            }
        }
        (true, next, place)
    }

    fn extension(&mut self, header: &extension::Header<'_>) {
        self.out.shape.extensions |= 1 << header.kind as u8;
        let checked = match header.kind {
            Kind::HopByHop | Kind::DestinationOptions => header.check_options(),
            Kind::Routing => header.check_routing(),
            Kind::Fragment => Ok(()),
            Kind::Authentication => {
                self.out.shape.stack.push(Word::Ah);
                Ok(())
            }
        };
        if let Err(error) = checked {
            self.note(error);
        }
    }

    /// The transport header: its word, its checks, and its ports where it has any.
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
    fn push_transport(&mut self, word: Word) {
        if self.at < self.frame.len() {
            self.out.shape.stack.push(word);
        }
    }

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

    fn rare_transport(&mut self, protocol: IpProtocol) -> Option<[u8; 4]> {
        let (word, layer, needs) = match protocol {
            IpProtocol::SCTP => (Word::Sctp, Layer::Sctp, 12),
            IpProtocol::ICMP => (Word::Icmp, Layer::Icmp, 4),
            IpProtocol::ICMPV6 => (Word::Icmpv6, Layer::Icmpv6, 4),
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
        inner.out.shape.stack.distinct_words().for_each(|word| self.out.shape.stack.push(word));
    }
}

const fn fragment_flag(fragment: Fragment) -> u16 {
    match fragment {
        Fragment::None => 0,
        Fragment::First => FIRST_FRAGMENT,
        Fragment::Later => LATER_FRAGMENT,
    }
}
