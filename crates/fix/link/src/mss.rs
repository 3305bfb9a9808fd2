//! The maximum segment size of TCP, lowered to what fits the link (RFC 9293 section 3.7.1, RFC 2516 appendix).
//!
//! Path MTU discovery often fails behind PPPoE, since ICMP is filtered somewhere; both ends then agree on segments that
//! do not fit. A router in between lowers the number that each end names in its SYN.
//!
//! # Contract
//!
//! * SYN and SYN-ACK segments over IPv4 and IPv6 whose TCP header is whole in this packet; never a later fragment.
//! * The option is only ever lowered. A segment without it is left: both ends then take 536 or 1220 bytes.
//! * Options whose lengths do not add up leave the packet as it is. The walk ends after at most 40 bytes, whatever is in
//!   them.
//! * The checksum is updated (RFC 1624), unless it is partial: then it covers only the pseudo header so far.

#[cfg(test)]
mod tests;

use crate::framing::{put_word, word};
use offload::checksum;
use wire::emit::Tcp as TcpFlags;
use wire::extension::{self, Kind};
use wire::transport::Tcp;
use wire::{Fragment, IpProtocol, IpVersion, ipv4, ipv6};

/// What the checksum of a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// Whole: it covers all bytes.
    Whole,
    /// Partial: to be completed by a card, or by [`checksum::complete`].
    Partial,
}

/// The largest segments that fit a link, bytes of TCP payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp {
    ipv4: u16,
    ipv6: u16,
}

/// Extension headers that are looked through; more are nowhere in use.
const MOST_EXTENSIONS: usize = 8;
/// Option kinds (RFC 9293 section 3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
/// Bytes of the maximum segment size option.
const OPTION_LENGTH: usize = 4;
const CHECKSUM: usize = 16;

impl Clamp {
    /// For an MTU, in bytes of IP packet.
    pub const fn for_mtu(mtu: u32) -> Clamp {
        const fn segment(mtu: u32, headers: u32) -> u16 {
            let size = mtu.saturating_sub(headers);
            if size > u16::MAX as u32 { u16::MAX } else { size as u16 }
        }
        Clamp {
            ipv4: segment(mtu, (ipv4::Header::LENGTH + Tcp::LENGTH) as u32),
            ipv6: segment(mtu, (ipv6::Header::LENGTH + Tcp::LENGTH) as u32),
        }
    }

    /// Lowers the maximum segment size in an IP packet; whether there was anything to lower.
    #[inline]
    pub fn lower(&self, packet: &mut [u8], checksum: Checksum) -> bool {
        let Some((at, version)) = tcp_of(packet) else { return false };
        let most = match version {
            IpVersion::V4 => self.ipv4,
            IpVersion::V6 => self.ipv6,
        };
        let Some(header) = packet.get_mut(at..).and_then(syn_header) else { return false };
        // Nothing is changed unless all options add up.
        if Options::of(header).any(|option| option.is_none()) {
            return false;
        }
        let mut lowered = false;
        let places: [Option<usize>; TcpFlags::MAX_OPTIONS / OPTION_LENGTH] = {
            let mut found = Options::of(header).flatten();
            std::array::from_fn(|_| found.next())
        };
        for place in places.into_iter().flatten() {
            lowered |= lower_at(header, place, most, checksum);
        }
        lowered
    }
}

/// Where the TCP header of a packet starts.
fn tcp_of(packet: &[u8]) -> Option<(usize, IpVersion)> {
    let version = crate::framing::version(packet)?;
    let at = match version {
        IpVersion::V4 => {
            let header = ipv4::Header::of(packet.first_chunk()?);
            header.check_header().ok()?;
            let is_ours = header.protocol() == IpProtocol::TCP && header.fragment() != Fragment::Later;
            is_ours.then(|| header.header_length())?
        }
        IpVersion::V6 => tcp_of_ipv6(packet)?,
    };
    Some((at, version))
}

fn tcp_of_ipv6(packet: &[u8]) -> Option<usize> {
    let mut next = ipv6::Header::of(packet.first_chunk()?).next_header();
    let mut at = ipv6::Header::LENGTH;
    for _ in 0..MOST_EXTENSIONS {
        let Some(kind) = Kind::of(next) else { break };
        let rest = packet.get(at..)?;
        let header = extension::Header::parse(kind, rest, rest.len()).ok()?;
        if kind == Kind::Fragment && header.fragment() == Fragment::Later {
            return None;
        }
        next = header.next_header();
        at += header.bytes.len();
    }
    (next == IpProtocol::TCP).then_some(at)
}

/// The TCP header at the start of `segment`, with its options, of a SYN.
fn syn_header(segment: &mut [u8]) -> Option<&mut [u8]> {
    let header = Tcp::of(segment.first_chunk()?);
    header.check(segment.len()).ok()?;
    let length = header.header_length();
    if header.flags() & TcpFlags::SYN == 0 {
        return None;
    }
    segment.get_mut(..length)
}

/// Lowers the value of an option at `place` in a TCP header.
fn lower_at(header: &mut [u8], place: usize, most: u16, checksum: Checksum) -> bool {
    let value_at = place + 2;
    if word(header, value_at).is_none_or(|value| value <= most) {
        return false;
    }
    // Options may start at odd places; a checksum counts words from the start of the header.
    let words = value_at & !1..(value_at + 3) & !1;
    let mut old = [0; 4];
    let Some(old) = old.get_mut(..words.len()) else { return false };
    let Some(now) = header.get(words.clone()) else { return false };
    old.copy_from_slice(now);
    put_word(header, value_at, most);
    if checksum == Checksum::Whole {
        let new = header.get(words).unwrap_or_default();
        let updated = checksum::update(word(header, CHECKSUM).unwrap_or_default(), old, new);
        put_word(header, CHECKSUM, updated);
    }
    true
}

/// The places of maximum segment size options in a TCP header; an item without a place is a length that does not add
/// up, and the last.
#[derive(Clone, Debug)]
struct Options<'h> {
    header: &'h [u8],
    at: usize,
}

impl<'h> Options<'h> {
    fn of(header: &'h [u8]) -> Options<'h> {
        Options { header, at: Tcp::LENGTH }
    }
}

impl Iterator for Options<'_> {
    type Item = Option<usize>;

    fn next(&mut self) -> Option<Option<usize>> {
        loop {
            let at = self.at;
            let kind = *self.header.get(at)?;
            if kind == END {
                self.at = self.header.len();
                return None;
            }
            if kind == NO_OPERATION {
                self.at = at + 1;
                continue;
            }
            let length = self.header.get(at + 1).map_or(0, |length| usize::from(*length));
            let is_whole = length >= 2 && at + length <= self.header.len();
            let is_right = kind != MAXIMUM_SEGMENT_SIZE || length == OPTION_LENGTH;
            if !is_whole || !is_right {
                self.at = self.header.len();
                return Some(None);
            }
            self.at = at + length;
            if kind == MAXIMUM_SEGMENT_SIZE {
                return Some(Some(at));
            }
        }
    }
}
