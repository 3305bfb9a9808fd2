//! How a host learns of its IPv6 prefixes: by Router Advertisements (RFC 4861) and DHCPv6 (RFC 8415), over its session.

use super::network::Network;
use super::sessions::Entry;
use super::{Concentrator, Step};
use crate::dhcpv6::{self, HOST_PORT, SERVER_PORT};
use crate::neighbor_discovery::{
    self, AT_FIRST, FIRST_INTERVAL, HOP_LIMIT, LONGEST_INTERVAL, SHORTEST_INTERVAL,
};
use crate::{Random, Time, draw};
use std::net::{IpAddr, Ipv6Addr};
use wire::emit::{Emit, Ipv6, Udp, checksum};
use wire::ethernet::MacAddress;
use wire::ip::IpProtocol;
use wire::ppp::PppProtocol;
use wire::{ipv6, transport};

/// All hosts of a link (RFC 4291 section 2.7.1).
const ALL_HOSTS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Answers of a session that may follow each other at once; one more each second.
const BURST: u8 = 8;

/// When a host is notified of its prefix, and how many answers it may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advertisements {
    next: Time,
    /// Of those at the beginning.
    left: u8,
    answers: u8,
    /// Seconds, when answers were counted last.
    counted: u32,
}

impl Advertisements {
    fn new(now: Time) -> Advertisements {
        Advertisements { next: now, left: AT_FIRST, answers: BURST, counted: now.as_secs() as u32 }
    }

    /// Those of a session of another process, whose host has had the first.
    pub(super) fn resumed(now: Time, random: &mut dyn Random) -> Advertisements {
        let mut resumed = Advertisements { left: 0, ..Advertisements::new(now) };
        // As many sessions as there may be are spread over the time that the longest of them waits.
        let part = u32::from_be_bytes(draw(random)) % LONGEST_INTERVAL.as_secs() as u32;
        resumed.next = now + Time::from_secs(part.into());
        resumed
    }

    pub(super) const fn next(&self) -> Time {
        self.next
    }

    fn advance(&mut self, now: Time, random: &mut dyn Random) {
        self.left = self.left.saturating_sub(1);
        self.next = now
            + match self.left {
                0 => {
                    let spread = (LONGEST_INTERVAL - SHORTEST_INTERVAL).as_millis() as u32;
                    let part = u32::from_be_bytes(draw(random)) % spread;
                    SHORTEST_INTERVAL + Time::from_millis(part.into())
                }
                _ => FIRST_INTERVAL,
            };
    }

    fn may_answer(&mut self, now: Time) -> bool {
        let seconds = now.as_secs() as u32;
        let since = seconds.saturating_sub(self.counted).min(BURST.into()) as u8;
        self.counted = seconds;
        self.answers = self.answers.saturating_add(since).min(BURST);
        self.answers.checked_sub(1).inspect(|left| self.answers = *left).is_some()
    }
}

/// What a host requests of this router.
enum Requested<'p> {
    Advertisement,
    /// A message of DHCPv6, and who sent it.
    Dhcp(&'p [u8], Ipv6Addr),
}

/// Reads an IPv6 packet; `None`: it is neither, or contradicts itself.
fn requested(packet: &[u8]) -> Option<Requested<'_>> {
    let (header, rest) = packet.split_first_chunk()?;
    let header = ipv6::Header::of(header);
    header.check_version().ok()?;
    let payload = rest.get(..header.check_length(rest.len()).ok()?)?;
    let (source, destination) = (header.source(), header.destination());
    let protocol = header.next_header();
    if !checksum::is_right(source.into(), destination.into(), protocol, payload) {
        return None;
    }
    match protocol {
        IpProtocol::ICMPV6 => neighbor_discovery::is_solicitation(payload, source, header.hop_limit())
            .then_some(Requested::Advertisement),
        IpProtocol::UDP if source.is_unicast_link_local() && destination.is_multicast() => {
            let (header, message) = payload.split_first_chunk()?;
            let header = transport::Udp::of(header);
            let length = usize::from(header.length()).checked_sub(transport::Udp::LENGTH)?;
            (header.destination_port() == SERVER_PORT)
                .then_some(Requested::Dhcp(message.get(..length)?, source))
        }
        _ => None,
    }
}

/// A packet of PPP around one of IPv6.
fn packet(
    from: Ipv6Addr,
    to: Ipv6Addr,
    hop_limit: u8,
    protocol: IpProtocol,
    mut payload: Vec<u8>,
) -> Vec<u8> {
    // It has its checksum field, and both addresses are of one version.
    let _ = checksum::fill(IpAddr::V6(from), IpAddr::V6(to), protocol, &mut payload);
    let header = Ipv6 { hop_limit, ..Ipv6::new(protocol, from, to, payload.len() as u16) };
    let mut bytes = PppProtocol::IPV6.0.to_be_bytes().to_vec();
    let start = bytes.len();
    bytes.resize(start + ipv6::Header::LENGTH, 0);
    // There is room for it.
    let _ = bytes.get_mut(start..).map(|place| header.emit(place));
    bytes.extend(payload);
    bytes
}

fn datagram(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; transport::Udp::LENGTH];
    let length = (bytes.len() + message.len()) as u16;
    // There is room for it.
    let _ =
        Udp { source_port: SERVER_PORT, destination_port: HOST_PORT, length, checksum: 0 }.emit(&mut bytes);
    bytes.extend(message);
    bytes
}

/// The address that DHCPv6 assigns: the first of the link's prefix, whose host chooses others by itself.
fn assigned(link: Option<Network>) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from_bits(link?.ipv6()?.to_bits() | 1))
}

fn link_local(identifier: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(identifier))
}

impl Entry {
    /// Whether its host has anything of IPv6 but its link-local address.
    pub(super) fn has_networks(&self) -> bool {
        self.lease
            .prefixes
            .iter()
            .chain(self.lease.routes.iter().copied())
            .any(|network| network.ipv6().is_some())
    }
}

impl Concentrator {
    /// Notifies the host of its prefix at once when IPv6 has come up, and from time to time from then on.
    pub(super) fn begin_advertising(&mut self, step: &mut Step<'_>, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        if entry.session.ipv6().is_none() {
            entry.advertisements = None;
        } else if entry.advertisements.is_none() && entry.has_networks() {
            entry.advertisements = Some(Advertisements::new(step.now));
            self.advertise(step, slot);
        }
    }

    /// Sends an advertisement; the next one follows in its time.
    pub(super) fn advertise(&mut self, step: &mut Step<'_>, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let (Some(up), Some(advertisements)) = (entry.session.ipv6(), &mut entry.advertisements) else {
            return;
        };
        advertisements.advance(step.now, step.random);
        let message = neighbor_discovery::advertisement(entry.lease.prefixes.link, &self.config.dns6);
        let bytes = packet(link_local(up.local), ALL_HOSTS, HOP_LIMIT, IpProtocol::ICMPV6, message);
        self.counters.advertisements += 1;
        self.send(step, slot, &bytes);
    }

    /// Answers a packet of IPv6 that a host sends to this router itself. Whether it is of IPv6. `own`: MAC address of this end.
    pub(super) fn host_configuration(
        &mut self,
        step: &mut Step<'_>,
        slot: u32,
        own: MacAddress,
        payload: &[u8],
    ) -> bool {
        let protocol = PppProtocol::IPV6.0.to_be_bytes();
        let Some(bytes) = payload.strip_prefix(&protocol) else { return false };
        let Some(entry) = self.table.get_mut(slot) else { return true };
        let up = entry.session.ipv6();
        let may = entry.advertisements.as_mut().is_some_and(|answers| answers.may_answer(step.now));
        match (up.filter(|_| may), requested(bytes)) {
            (Some(_), Some(Requested::Advertisement)) => {
                self.advertise(step, slot);
                self.arm(slot);
            }
            (Some(up), Some(Requested::Dhcp(message, source))) => {
                let server = dhcpv6::Server {
                    mac: own,
                    address: assigned(entry.lease.prefixes.link),
                    delegated: entry.lease.prefixes.delegated,
                    name_servers: &self.config.dns6,
                };
                let Some(answer) = server.answer(message) else {
                    self.counters.configuration_ignored += 1;
                    return true;
                };
                let from = link_local(up.local);
                let bytes = packet(from, source, HOP_LIMIT, IpProtocol::UDP, datagram(&answer));
                self.counters.dhcpv6_answers += 1;
                self.send(step, slot, &bytes);
            }
            _ => self.counters.configuration_ignored += 1,
        }
        true
    }
}
