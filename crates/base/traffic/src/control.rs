//! Control frames: what a line carries besides IP packets.

use std::net::{IpAddr, Ipv6Addr};
use wire::IpProtocol;
use wire::emit::{
    Arp, ControlPacket, Emit, EmitError, Encapsulation, Icmpv6, Ipv6, LineIdentification, Ppp, Pppoe,
    PppoeTag, PppoeTags, checksum, headers,
};
use wire::ethernet::{EtherType, MacAddress};
use wire::ppp::PppProtocol;
use wire::pppoe::{Code, TagType};

use crate::flow::{GATEWAY_V4, subscriber_v4};

/// The two ends of a subscriber's line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) encapsulation: Encapsulation,
    pub(crate) subscriber: u32,
    pub(crate) subscriber_mac: MacAddress,
    pub(crate) gateway_mac: MacAddress,
}

/// The least captured length of a frame: 64 without FCS (IEEE 802.3-2022 clause 3.2.8).
const LEAST: usize = 60;

impl Line {
    /// Writes the control frame of number `turn`, padded to the least length, and gives its length. The numbers
    /// go through all kinds that the encapsulation has.
    pub(crate) fn write(&self, turn: u32, buffer: &mut [u8]) -> Result<usize, EmitError> {
        buffer.fill(0);
        let length = if self.encapsulation.pppoe().is_some() {
            match turn % 6 {
                0 => self.discovery(Code::PADI, buffer),
                1 => self.discovery(Code::PADO, buffer),
                2 => self.discovery(Code::PADR, buffer),
                3 => self.discovery(Code::PADS, buffer),
                4 => self.echo(ECHO_REQUEST, turn, buffer),
                _ => self.echo(ECHO_REPLY, turn, buffer),
            }
        } else {
            match turn % 3 {
                0 => self.arp(1, buffer),
                1 => self.arp(2, buffer),
                _ => self.router_solicitation(buffer),
            }
        }?;
        Ok(length.max(LEAST))
    }

    fn session(&self) -> u16 {
        self.encapsulation.pppoe().and_then(|pppoe| pppoe.session).unwrap_or_default()
    }

    /// A discovery packet (RFC 2516 section 5), with the tags that its kind carries; an access node adds the
    /// line identification of TR-101 to what goes up a stacked line.
    fn discovery(&self, code: Code, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let unique = self.subscriber.to_be_bytes();
        let cookie = (u64::from(self.subscriber) << 32 | 0x5258_4c4e).to_be_bytes();
        let upwards = matches!(code, Code::PADI | Code::PADR);
        let tag = |kind, value| PppoeTag { kind, value };
        let all = [
            tag(TagType::SERVICE_NAME, b""),
            tag(TagType::HOST_UNIQ, unique.as_slice()),
            tag(TagType::AC_NAME, b"rxlane"),
            tag(TagType::AC_COOKIE, cookie.as_slice()),
        ];
        let tags = PppoeTags(match code {
            Code::PADI => &all[..2],
            Code::PADO => &all,
            Code::PADR => &[all[0], all[1], all[3]],
            _ => &all[..2],
        });
        let circuit = format_circuit(self.subscriber);
        let line = LineIdentification { circuit: &circuit, remote: b"" };
        let stacked = upwards && self.encapsulation.tags().len() > 1;
        let payload_length = tags.length() + if stacked { line.length() } else { 0 };
        let session = if code == Code::PADS { self.session() } else { 0 };
        let header = Pppoe { code, session, payload_length: payload_length as u16 };
        let (destination, source) = match code {
            Code::PADI => (MacAddress::BROADCAST, self.subscriber_mac),
            Code::PADR => (self.gateway_mac, self.subscriber_mac),
            _ => (self.subscriber_mac, self.gateway_mac),
        };
        let under = EtherType::PPPOE_DISCOVERY;
        let at = self.encapsulation.emit_tagged(destination, source, under, buffer)?;
        let length = at + headers(&[&header, &tags], &mut buffer[at..])?;
        if !stacked {
            return Ok(length);
        }
        Ok(length + line.emit(&mut buffer[length..])?)
    }

    /// An LCP echo (RFC 1661 section 5.8) with a magic number.
    fn echo(&self, code: u8, turn: u32, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let magic = (self.subscriber ^ 0x5258_4c4e).to_be_bytes();
        let packet = ControlPacket { code, identifier: turn as u8, data: &magic };
        let protocol = Ppp { protocol: PppProtocol::LCP };
        let payload_length = (protocol.length() + packet.length()) as u16;
        let header = Pppoe { code: Code::SESSION, session: self.session(), payload_length };
        let (destination, source) = match code {
            ECHO_REQUEST => (self.subscriber_mac, self.gateway_mac),
            _ => (self.gateway_mac, self.subscriber_mac),
        };
        let at = self.encapsulation.emit_tagged(destination, source, EtherType::PPPOE_SESSION, buffer)?;
        Ok(at + headers(&[&header, &protocol, &packet], &mut buffer[at..])?)
    }

    /// The gateway asks for the subscriber's MAC address (1), which answers (2).
    fn arp(&self, operation: u16, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let subscriber = subscriber_v4(self.subscriber);
        let request = Arp {
            operation,
            sender: self.gateway_mac,
            sender_ip: GATEWAY_V4,
            target: MacAddress([0; 6]),
            target_ip: subscriber,
        };
        let (destination, packet) = match operation {
            1 => (MacAddress::BROADCAST, request),
            _ => (
                self.gateway_mac,
                Arp {
                    sender: self.subscriber_mac,
                    sender_ip: subscriber,
                    target: self.gateway_mac,
                    target_ip: GATEWAY_V4,
                    ..request
                },
            ),
        };
        let at = self.encapsulation.emit_tagged(destination, packet.sender, EtherType::ARP, buffer)?;
        Ok(at + packet.emit(&mut buffer[at..])?)
    }

    /// A router solicitation (RFC 4861 section 4.1) with the sender's link-layer address.
    fn router_solicitation(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let [a, b, c, d, e, f] = self.subscriber_mac.0;
        // The interface identifier of RFC 4291 appendix A.
        let identifier = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
        let source = Ipv6Addr::from(0xfe80u128 << 112 | u128::from(identifier));
        let destination = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
        let header = Ipv6 { hop_limit: 255, ..Ipv6::new(IpProtocol::ICMPV6, source, destination, 16) };
        let message = Icmpv6 { kind: 133, ..Icmpv6::default() };
        let routers = MacAddress([0x33, 0x33, 0, 0, 0, 2]); // RFC 2464 section 7
        let (source_mac, under) = (self.subscriber_mac, EtherType::IPV6);
        let at = self.encapsulation.emit_tagged(routers, source_mac, under, buffer)?;
        let icmp = at + header.emit(&mut buffer[at..])?;
        let option = icmp + message.emit(&mut buffer[icmp..])?;
        buffer[option..option + 8].copy_from_slice(&[1, 1, a, b, c, d, e, f]);
        let (source, destination) = (IpAddr::V6(source), IpAddr::V6(destination));
        checksum::fill(source, destination, IpProtocol::ICMPV6, &mut buffer[icmp..option + 8])?;
        Ok(option + 8)
    }
}

const ECHO_REQUEST: u8 = 9;
const ECHO_REPLY: u8 = 10;

/// A circuit id in the syntax of TR-101 section 3.9.3, for a subscriber: node, slot, port.
fn format_circuit(subscriber: u32) -> [u8; 19] {
    let mut text = *b"rxlane eth 1/000000";
    let mut rest = subscriber;
    for digit in text[13..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}
