//! What every data path does with a received frame before the kernel gets it.

use crate::datapath::Line;
use crate::dropped::Dropped;
use crate::framing::{Form, version};
use crate::lines::Lines;
use crate::mss::Checksum;
use kernel::tun::Tun;
use offload::{NetHeader, Prefix, Segments, checksum};
use rustix::io::Errno;
use std::io::IoSlice;
use std::ops::Range;
use wire::IpVersion;
use wire::emit::Encapsulation;
use wire::ethernet::{self, EtherType};

/// Headers of a segment: addresses, IP with extension headers, TCP.
pub(crate) const HEADERS: usize = 1024;

/// The most segments of a super-packet: 64 KiB of the shortest that Linux sends, whose 8 bytes of payload are what the longest
/// options leave of the least segment size (`TCP_MIN_SND_MSS`, `MAX_TCP_OPTION_SPACE` of include/net/tcp.h). Whoever is at the
/// other end of a virtual parent can ask for segments of one byte, and a single frame would be 65,000 writes.
const MOST_SEGMENTS: usize = 65_536 / 8;

/// Why a received frame did not get to the interface.
pub(crate) enum Undelivered {
    Dropped(Dropped),
    InterfaceRemoved,
}

impl From<Dropped> for Undelivered {
    fn from(why: Dropped) -> Undelivered {
        Undelivered::Dropped(why)
    }
}

/// The virtio header of a frame as it is for the IP packet in it.
pub(crate) fn inside<F: Lines>(
    header: NetHeader,
    range: &Range<usize>,
    line: &Line<F>,
) -> Result<NetHeader, Dropped> {
    if !header.needs_checksum() {
        return Ok(header);
    }
    let before = range.start + line.framing.network_offset();
    let start = usize::from(header.checksum_start).checked_sub(before).ok_or(Dropped::SuperPacket)?;
    Ok(NetHeader { checksum_start: start as u16, header_length: 0, ..header })
}

/// The virtio header of an IP packet as it is behind `before` more bytes.
pub(crate) fn behind(header: NetHeader, before: usize) -> NetHeader {
    if !header.needs_checksum() {
        return header;
    }
    let before = before as u16;
    NetHeader {
        checksum_start: header.checksum_start.saturating_add(before),
        header_length: header.header_length.saturating_add(before),
        ..header
    }
}

/// Completes the checksum of what `header` is about, where it is partial.
#[inline]
pub(crate) fn complete(header: &NetHeader, packet: &mut [u8]) -> Result<(), Dropped> {
    if !header.needs_checksum() {
        return Ok(());
    }
    let done = checksum::complete(packet, header.checksum_start.into(), header.checksum_offset.into());
    done.map(drop).map_err(|_| Dropped::SuperPacket)
}

/// Writes the segments of what the kernel had put together (GRO), each behind `lead`, bytes that the interface wants in front
/// of every packet; how many there were. What a card puts together itself (LRO) comes without the partial checksum that segments
/// are made from, and is refused; so is what has more than [`MOST_SEGMENTS`].
pub(crate) fn take_apart<F: Lines>(
    line: &Line<F>,
    tun: &Tun,
    lead: &[u8],
    header: &NetHeader,
    packet: &mut [u8],
    headers: &mut [u8],
) -> Result<usize, Undelivered> {
    let (front, network) =
        packet.split_at_mut_checked(line.framing.network_offset()).ok_or(Dropped::Short)?;
    let prefix = match line.framing.form() {
        Form::Packets => Prefix::NONE,
        Form::Frames => {
            let addresses = front.first_chunk().ok_or(Dropped::Short).map(ethernet::Header::of)?;
            Prefix::new(&Encapsulation::NONE, addresses.destination(), addresses.source())
                .map_err(|_| Dropped::SuperPacket)?
        }
    };
    let mut segments = Segments::new(&prefix, header, network).map_err(|_| Dropped::SuperPacket)?;
    let count = segments.left();
    if count > MOST_SEGMENTS {
        return Err(Dropped::SuperPacket.into());
    }
    line.counters.segments.add(count as u64);
    while let Some(segment) = segments.emit(headers).map_err(|_| Dropped::SuperPacket)? {
        let head = headers.get(..segment.header_length).unwrap_or_default();
        write(tun, &[IoSlice::new(lead), IoSlice::new(head), IoSlice::new(segment.payload)])?;
    }
    Ok(count)
}

/// Lowers the maximum segment size in a packet or frame of the interface, if the link does so.
#[inline]
pub(crate) fn lower_mss<F: Lines>(line: &Line<F>, owner: F::Owner, packet: &mut [u8], checksum: Checksum) {
    let Some(clamp) = line.framing.clamp(line.clamp, owner) else { return };
    let network = match line.framing.form() {
        Form::Packets => Some(packet),
        Form::Frames if is_ip(packet) => packet.get_mut(ethernet::Header::LENGTH..),
        Form::Frames => None,
    };
    if network.is_some_and(|network| clamp.lower(network, checksum)) {
        line.counters.clamped.add(1);
    }
}

/// Whether an untagged frame has an IP packet of the version that it announces.
pub(crate) fn is_ip(frame: &[u8]) -> bool {
    let Some((header, network)) = frame.split_first_chunk() else { return false };
    match ethernet::Header::of(header).ethertype() {
        EtherType::IPV4 => version(network) == Some(IpVersion::V4),
        EtherType::IPV6 => version(network) == Some(IpVersion::V6),
        _ => false,
    }
}

/// Hands pieces of a packet to the kernel.
pub(crate) fn write(tun: &Tun, pieces: &[IoSlice<'_>]) -> Result<(), Undelivered> {
    tun.write(pieces).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::BADFD) => Undelivered::InterfaceRemoved,
        _ => Dropped::InterfaceRefused.into(),
    })
}
