//! What the sender of a packet receives that is too long to go on: ICMP "fragmentation needed" (RFC 1191 section 4) and ICMPv6
//! "packet too big" (RFC 4443 section 3.2).
//!
//! # Contract
//!
//! * The message comes from the address that the packet was going to, as if its owner had sent it: an address of this
//!   machine would be refused by its own kernel, which takes nothing from its own addresses.
//! * No message about ICMP errors, later fragments, groups, broadcasts, or packets whose sender is no single station
//!   (RFC 1122 section 3.2.2, RFC 4443 section 2.4); nor about a packet whose header is not whole.
//! * It quotes as much as fits 576 bytes of IPv4 (RFC 1812 section 4.3.2.3) and 1280 of IPv6.

use crate::framing::put_word;
use offload::checksum::Sum;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};
use wire::emit::{Emit, Icmp, Icmpv6, Ipv4, Ipv6};
use wire::{Fragment, IpProtocol, IpVersion, ipv4, ipv6};

/// The longest messages, bytes.
const MOST_IPV4: usize = 576;
pub(crate) const MOST: usize = 1280;
/// The least MTU of IPv6, below which nothing may be reported to a sender (RFC 8200 section 5).
const LEAST_IPV6: usize = 1280;
const HOP_LIMIT: u8 = 64;
/// Internetwork control, as Linux marks ICMP errors.
const CONTROL: u8 = 0xc0;

/// Writes the message about a packet that is longer than `mtu` bytes into `room`, of at least [`MOST`] bytes, and gives
/// its length; `None`: its sender must not get one.
pub(crate) fn message(packet: &[u8], mtu: usize, room: &mut [u8]) -> Option<usize> {
    match crate::framing::version(packet)? {
        IpVersion::V4 => fragmentation_needed(packet, mtu, room),
        IpVersion::V6 => packet_too_big(packet, mtu, room),
    }
}

fn fragmentation_needed(packet: &[u8], mtu: usize, room: &mut [u8]) -> Option<usize> {
    const HEADERS: usize = ipv4::Header::LENGTH + Icmp::LENGTH;
    let header = ipv4::Header::of(packet.first_chunk()?);
    header.check_header().ok()?;
    let (source, destination) = (header.source(), header.destination());
    let transport = packet.get(header.header_length()..)?;
    let is_error = header.protocol() == IpProtocol::ICMP
        && transport.first().is_none_or(|kind| matches!(kind, 3 | 4 | 5 | 11 | 12));
    let is_later = header.fragment() == Fragment::Later;
    if is_error || is_later || !is_single(source) || !is_single(destination) {
        return None;
    }
    let quoted = packet.get(..packet.len().min(MOST_IPV4 - HEADERS))?;
    let length = HEADERS + quoted.len();
    let ip = Ipv4 {
        traffic_class: CONTROL,
        dont_fragment: false,
        ..Ipv4::new(IpProtocol::ICMP, destination, source, length as u16)
    };
    let [high, low] = u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes();
    let icmp = Icmp { kind: 3, code: 4, checksum: 0, rest: [0, 0, high, low] };
    let at = ip.emit(room).ok()?;
    quote(&icmp, quoted, Sum::default(), room.get_mut(at..length)?)?;
    Some(length)
}

/// Whether an address is that of one station.
fn is_single(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}

fn packet_too_big(packet: &[u8], mtu: usize, room: &mut [u8]) -> Option<usize> {
    const HEADERS: usize = ipv6::Header::LENGTH + Icmpv6::LENGTH;
    let header = ipv6::Header::of(packet.first_chunk()?);
    let addresses: &[u8; 32] = packet.get(8..)?.first_chunk()?;
    let (source, rest) = addresses.split_first_chunk::<16>()?;
    let (source, destination) = (Ipv6Addr::from(*source), Ipv6Addr::from(*rest.first_chunk()?));
    let transport = packet.get(ipv6::Header::LENGTH..)?;
    let is_error =
        header.next_header() == IpProtocol::ICMPV6 && transport.first().is_none_or(|kind| *kind < 128);
    if is_error || source.is_unspecified() || source.is_multicast() || destination.is_multicast() {
        return None;
    }
    let quoted = packet.get(..packet.len().min(MOST - HEADERS))?;
    let length = HEADERS + quoted.len();
    let ip = Ipv6 {
        traffic_class: CONTROL,
        flow_label: 0,
        payload_length: (length - ipv6::Header::LENGTH) as u16,
        next_header: IpProtocol::ICMPV6,
        hop_limit: HOP_LIMIT,
        source: destination,
        destination: source,
    };
    let reported = (mtu.max(LEAST_IPV6) as u32).to_be_bytes();
    let icmp = Icmpv6 { kind: 2, code: 0, checksum: 0, rest: reported };
    let at = ip.emit(room).ok()?;
    let pseudo = {
        let addresses = room.get(8..)?.first_chunk()?;
        Sum::pseudo_ipv6(addresses, IpProtocol::ICMPV6, (length - at) as u32)
    };
    quote(&icmp, quoted, pseudo, room.get_mut(at..length)?)?;
    Some(length)
}

/// Writes a message of ICMP into `room`, of just its length, with its checksum over that and `pseudo`.
fn quote(icmp: &impl Emit, quoted: &[u8], pseudo: Sum, room: &mut [u8]) -> Option<()> {
    let at = icmp.emit(room).ok()?;
    room.get_mut(at..)?.copy_from_slice(quoted);
    put_word(room, 2, pseudo.plus(Sum::of(room)).checksum());
    Some(())
}

/// How many messages may go out: 1000 a second, and 50 at once, as Linux does by default (`icmp_msgs_per_sec`,
/// `icmp_msgs_burst`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    left: u32,
    since: Instant,
}

impl Allowance {
    const BURST: u32 = 50;
    const EACH: Duration = Duration::from_millis(1);

    /// The whole burst.
    pub(crate) fn new(now: Instant) -> Allowance {
        Allowance { left: Allowance::BURST, since: now }
    }

    /// Whether one more may go; it counts then.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since).as_millis() as u32;
        if passed > 0 {
            self.left = self.left.saturating_add(passed).min(Allowance::BURST);
            self.since += Allowance::EACH * passed;
        }
        let is_any = self.left > 0;
        self.left -= u32::from(is_any);
        is_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::ipv6;
    use offload::checksum;

    fn packet4(protocol: IpProtocol, source: [u8; 4], offset: u16) -> Vec<u8> {
        let ip = Ipv4::new(protocol, source.into(), [198, 51, 100, 2].into(), 1500);
        let ip = Ipv4 { identification: 7, fragment_offset: offset, ttl: 9, ..ip };
        let mut packet = vec![0x11; 1500];
        ip.emit(&mut packet).expect("room");
        packet
    }

    #[test]
    fn the_sender_gets_the_mtu_and_what_the_packet_was() {
        let packet = packet4(IpProtocol::UDP, [192, 0, 2, 1], 0);
        let mut room = [0; MOST];
        let length = message(&packet, 1492, &mut room).expect("a message");
        assert_eq!(length, 576);
        let ip = ipv4::Header::of(room.first_chunk().expect("a header"));
        assert_eq!(ip.check_length(length), Ok(576));
        assert!(checksum::internet(&room[..20]) == 0 && checksum::internet(&room[20..length]) == 0);
        assert_eq!((ip.source().octets(), ip.destination().octets()), ([198, 51, 100, 2], [192, 0, 2, 1]));
        assert_eq!(room[20..28], [3, 4, room[22], room[23], 0, 0, 5, 212]);
        assert_eq!(room[28..length], packet[..548]);
    }

    #[test]
    fn of_ipv6_too_and_never_less_than_1280() {
        let ip = ipv6(IpProtocol::UDP, 1460);
        let mut packet = vec![0x22; 1500];
        ip.emit(&mut packet).expect("room");
        let mut room = [0; MOST];
        for (mtu, reported) in [(1492, 1492_u32), (1000, 1280)] {
            let length = message(&packet, mtu, &mut room).expect("a message");
            assert_eq!(length, 1280);
            assert_eq!(room[8..24], packet[24..40]);
            assert_eq!(room[24..40], packet[8..24]);
            let addresses = room[8..].first_chunk().expect("two");
            let sum = Sum::pseudo_ipv6(addresses, IpProtocol::ICMPV6, 1240).plus(Sum::of(&room[40..1280]));
            assert_eq!(sum.checksum(), 0);
            assert_eq!((room[40], room[41], &room[44..48]), (2, 0, &reported.to_be_bytes()[..]));
            assert_eq!(room[48..1280], packet[..1232]);
        }
        packet[6] = IpProtocol::ICMPV6.0;
        packet[40] = 1;
        assert_eq!(message(&packet, 1492, &mut room), None);
        packet[40] = 128;
        assert!(message(&packet, 1492, &mut room).is_some());
        packet[24] = 0xff;
        assert_eq!(message(&packet, 1492, &mut room), None);
    }

    #[test]
    fn nobody_gets_a_message_about_errors_groups_and_later_fragments() {
        let mut room = [0; MOST];
        let mut icmp = packet4(IpProtocol::ICMP, [192, 0, 2, 1], 0);
        for (kind, answered) in [(3, false), (11, false), (8, true), (0, true)] {
            icmp[20] = kind;
            assert_eq!(message(&icmp, 1492, &mut room).is_some(), answered, "{kind}");
        }
        for source in [[0; 4], [255; 4], [224, 0, 0, 1]] {
            assert_eq!(message(&packet4(IpProtocol::UDP, source, 0), 1492, &mut room), None);
        }
        assert_eq!(message(&packet4(IpProtocol::UDP, [192, 0, 2, 1], 9), 1492, &mut room), None);
        let packet = packet4(IpProtocol::UDP, [192, 0, 2, 1], 0);
        for length in 0..20 {
            assert_eq!(message(&packet[..length], 1492, &mut room), None);
        }
    }

    #[test]
    fn a_burst_and_then_one_a_millisecond() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        let taken = |allowance: &mut Allowance, now| (0..1000).filter(|_| allowance.take(now)).count();
        assert_eq!(taken(&mut allowance, start), 50);
        assert_eq!(taken(&mut allowance, start + Duration::from_micros(10_500)), 10);
        assert_eq!(taken(&mut allowance, start + Duration::from_millis(11)), 1);
        assert_eq!(taken(&mut allowance, start + Duration::from_secs(9)), 50);
    }
}
