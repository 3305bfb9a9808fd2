//! From the interface to the parent: super-packets are read, segmented, encapsulated, and sent in batches. No payload is
//! copied: a frame is a head, written here, and a part of what was read.

mod too_long;

use super::frames::Frames;
use super::transmit_path::TransmitPath;
use crate::datapath::{Line, PathError};
use crate::dropped::Dropped;
use crate::frame_size::longest_mtu;
use crate::framing::{Form, Framing, Head};
use crate::inbound::{HEADERS, behind, complete, lower_mss};
use crate::lines::Lines;
use crate::mss::Checksum;
use crate::path_mtu::Allowance;
use crate::simple::unread;
use kernel::tun::Tun;
use offload::segment::SegmentError;
use offload::{NetHeader, Prefix, Segments};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;
use wire::error::Layer;
use wire::ethernet::{self, EtherType};
use wire::transport::Udp;

/// The longest packet or frame that is read, with its virtio header, in whole cache lines.
const LONGEST: usize = (65_535 + ethernet::Header::LENGTH + NetHeader::LENGTH).next_multiple_of(64);
/// Bytes for what is read before it is sent.
const ROOM: usize = 4 * LONGEST;
/// Packets that are read before they are sent, so that small ones share a system call, too.
const PACKETS: usize = super::frames::BATCH;
/// Batches that one way may take before the other has its turn.
const TURN: usize = 4;
/// Bytes of both MAC addresses.
const ADDRESSES: usize = 12;

/// The way from the interface to the parent.
#[derive(Debug)]
pub(crate) struct Outgoing<O = ()> {
    read: Box<[u8]>,
    packets: Vec<Range<usize>>,
    frames: Frames<O>,
    head: Head,
    /// For what goes in front of packets, where it is looked up.
    space: Option<Box<Prefix>>,
    way: TransmitPath,
    /// Of messages to senders whose packets are too long.
    allowance: Allowance,
}

impl<O: Copy + Default> Outgoing<O> {
    pub(crate) fn new(way: TransmitPath) -> Outgoing<O> {
        Outgoing {
            read: vec![0; ROOM].into_boxed_slice(),
            packets: Vec::with_capacity(PACKETS),
            frames: Frames::new(),
            head: Head::new(),
            space: Some(Box::new(Prefix::NONE)),
            way,
            allowance: Allowance::new(Instant::now()),
        }
    }

    pub(crate) fn send_some<F: Lines<Owner = O>>(
        &mut self,
        tun: &Tun,
        line: &Line<F>,
    ) -> Result<(), PathError> {
        for _ in 0..TURN {
            let is_empty = self.fill(tun)?;
            for number in 0..self.packets.len() {
                let Some(range) = self.packets.get(number).cloned() else { break };
                if let Err(why) = self.prepare(tun, line, range) {
                    line.counters.dropped(why, 1);
                }
            }
            flush(line, &mut self.way, &mut self.frames, &self.read);
            if is_empty {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads packets until there is none, or no room; whether there is none.
    fn fill(&mut self, tun: &Tun) -> Result<bool, PathError> {
        self.packets.clear();
        let mut at = 0;
        while self.packets.len() < PACKETS {
            let Some(room) = self.read.get_mut(at..at + LONGEST) else { return Ok(false) };
            match tun.read(room) {
                Ok(length) => {
                    self.packets.push(at..at + length);
                    at = (at + length).next_multiple_of(64);
                }
                Err(error) => return unread(error).map(|()| true),
            }
        }
        Ok(false)
    }

    /// Makes frames of a packet, or of a frame of the interface.
    fn prepare<F: Lines<Owner = O>>(
        &mut self,
        tun: &Tun,
        line: &Line<F>,
        range: Range<usize>,
    ) -> Result<(), Dropped> {
        let header = self.read.get(range.clone()).and_then(|read| read.first_chunk());
        let header = NetHeader::parse(header.ok_or(Dropped::Short)?);
        let range = range.start + NetHeader::LENGTH..range.end;
        if header.is_super_packet() {
            line.counters.super_packets.add(1);
        }
        match line.framing.single().filter(|framing| framing.form() == Form::Frames) {
            None => {
                let mut space = self.space.take().ok_or(Dropped::TooLong)?;
                let done = self.packet(tun, line, &mut space, &header, range);
                self.space = Some(space);
                done
            }
            Some(framing) => {
                self.lower(line, O::default(), &header, range.clone());
                if self.way.has_header() && self.fits(line, framing, &header, range.clone()) {
                    self.whole(line, framing, &header, range)
                } else if header.is_super_packet() {
                    self.segment_frame(line, framing, &header, range)
                } else {
                    self.frame(line, framing, &header, range)
                }
            }
        }
    }

    #[inline]
    fn lower<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        owner: O,
        header: &NetHeader,
        range: Range<usize>,
    ) {
        let checksum = if header.needs_checksum() { Checksum::Partial } else { Checksum::Whole };
        lower_mss(line, owner, self.read.get_mut(range).unwrap_or_default(), checksum);
    }

    /// Makes frames of an IP packet, or reports to its sender that it is too long.
    fn packet<F: Lines<Owner = O>>(
        &mut self,
        tun: &Tun,
        line: &Line<F>,
        space: &mut Prefix,
        header: &NetHeader,
        range: Range<usize>,
    ) -> Result<(), Dropped> {
        let packet = self.read.get(range.clone()).unwrap_or_default();
        let (prefix, owner) = line.framing.outward(packet, space)?;
        let done = match line.framing.exceeded(owner, header, packet) {
            None => {
                self.lower(line, owner, header, range.clone());
                self.segment(line, prefix, owner, header, range)
            }
            Some(_) if !line.framing.admits(owner, packet.len() as u64) => Err(Dropped::OverRate),
            Some(most) => self.too_long(tun, line, prefix, owner, header, range, most),
        };
        done.inspect_err(|_| line.framing.dropped(owner, false, 1))
    }

    /// Makes frames of an IP packet, each behind the prefix.
    fn segment<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        prefix: &Prefix,
        owner: O,
        header: &NetHeader,
        range: Range<usize>,
    ) -> Result<(), Dropped> {
        if !header.is_super_packet() {
            complete(header, self.read.get_mut(range.clone()).unwrap_or_default())?;
        }
        // A virtio header of zeros says that there is nothing to be done.
        let lead = if self.way.has_header() { NetHeader::LENGTH } else { 0 };
        let packet = self.read.get(range.clone()).unwrap_or_default();
        let mut segments = Segments::of(prefix, header, packet).map_err(unsegmented)?;
        loop {
            if self.frames.is_full() {
                flush(line, &mut self.way, &mut self.frames, &self.read);
            }
            let room = self.frames.room().get_mut(..lead + HEADERS).unwrap_or_default();
            let (front, room) = room.split_at_mut_checked(lead).unwrap_or_default();
            front.fill(0);
            // Headers longer than any in use find no room.
            let segment = segments.emit(room).map_err(|_| Dropped::SuperPacket)?;
            let Some(segment) = segment else { return Ok(()) };
            let start = range.start + segment.start;
            let rest = start..start + segment.payload.len();
            let bytes = segment.header_length + segment.payload.len();
            if !line.framing.admits(owner, bytes.saturating_sub(prefix.length()) as u64) {
                line.framing.dropped(owner, false, 1);
                line.counters.dropped(Dropped::OverRate, 1);
                continue;
            }
            self.frames.push(lead + segment.header_length, rest, 1, bytes as u32, owner);
        }
    }

    /// The same of a frame of the interface that is a super-packet.
    fn segment_frame<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        framing: &Framing,
        header: &NetHeader,
        range: Range<usize>,
    ) -> Result<(), Dropped> {
        let frame = self.read.get(range.clone()).unwrap_or_default();
        let addresses = frame.first_chunk().ok_or(Dropped::Short).map(ethernet::Header::of)?;
        match addresses.ethertype() {
            EtherType::IPV4 | EtherType::IPV6 => {}
            ethertype if ethertype.is_tag() => return Err(Dropped::MoreTags),
            _ => return Err(Dropped::SuperPacket),
        }
        let prefix = Prefix::new(framing.encapsulation(), addresses.destination(), addresses.source())
            .map_err(|_| Dropped::SuperPacket)?;
        let before = ethernet::Header::LENGTH as u16;
        let checksum_start = header.checksum_start.checked_sub(before).ok_or(Dropped::SuperPacket)?;
        let header = NetHeader { checksum_start, header_length: 0, ..*header };
        self.segment(line, &prefix, O::default(), &header, range.start + ethernet::Header::LENGTH..range.end)
    }

    fn frame<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        framing: &Framing,
        header: &NetHeader,
        range: Range<usize>,
    ) -> Result<(), Dropped> {
        complete(header, self.read.get_mut(range.clone()).unwrap_or_default())?;
        self.put(line, framing, &NetHeader::default(), range, 1, 0)
    }

    /// A frame of the interface as it is, which the kernel or the card completes.
    fn whole<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        framing: &Framing,
        header: &NetHeader,
        range: Range<usize>,
    ) -> Result<(), Dropped> {
        let frame = self.read.get(range.clone()).unwrap_or_default();
        let (count, repeated) = if header.is_super_packet() {
            let headers = headers_of(header, frame).ok_or(Dropped::SuperPacket)?;
            let payload = frame.len().saturating_sub(headers);
            let count = payload.div_ceil(usize::from(header.gso_size).max(1)).max(1);
            (count, headers + framing.encapsulation().tags().len() * wire::vlan::TAG_LENGTH)
        } else {
            (1, 0)
        };
        self.put(line, framing, header, range, count, repeated)
    }

    /// Puts a frame of the interface behind its tags. `repeated` bytes of it stand in each of `count` frames on the line.
    fn put<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        framing: &Framing,
        header: &NetHeader,
        range: Range<usize>,
        count: usize,
        repeated: usize,
    ) -> Result<(), Dropped> {
        if self.frames.is_full() {
            flush(line, &mut self.way, &mut self.frames, &self.read);
        }
        let frame = self.read.get(range.clone()).unwrap_or_default();
        framing.encapsulate(frame, &mut self.head)?;
        let head = self.head.bytes();
        let room = self.frames.room();
        let mut length = 0;
        if self.way.has_header()
            && let Some(place) = room.first_chunk_mut()
        {
            *place = behind(*header, head.len() - ADDRESSES).bytes();
            length = NetHeader::LENGTH;
        }
        if let Some(place) = room.get_mut(length..length + head.len()) {
            place.copy_from_slice(head);
        }
        let bytes = head.len() + frame.len() - ADDRESSES + (count - 1) * repeated;
        self.frames.push(
            length + head.len(),
            range.start + ADDRESSES..range.end,
            count as u32,
            bytes as u32,
            O::default(),
        );
        Ok(())
    }

    /// Whether a frame may go as it is: of a super-packet, whether its frames fit the parent, which a packet socket does not
    /// look at.
    fn fits<F: Lines<Owner = O>>(
        &self,
        line: &Line<F>,
        framing: &Framing,
        header: &NetHeader,
        range: Range<usize>,
    ) -> bool {
        if !header.is_super_packet() {
            return true;
        }
        if !self.way.takes_super_packets() {
            return false;
        }
        let frame = self.read.get(range).unwrap_or_default();
        headers_of(header, frame).is_some_and(|headers| {
            let packet = headers + usize::from(header.gso_size) - ethernet::Header::LENGTH;
            longest_mtu(line.parent_mtu.load(Ordering::Relaxed), framing.encapsulation()) >= packet as u32
        })
    }
}

fn flush<F: Lines>(line: &Line<F>, way: &mut TransmitPath, frames: &mut Frames<F::Owner>, read: &[u8]) {
    if !frames.list().is_empty() {
        way.send(line, frames, read);
        frames.clear();
    }
}

/// Bytes of a frame with a partial checksum in front of the payload; `None` where they are not all there.
fn headers_of(header: &NetHeader, frame: &[u8]) -> Option<usize> {
    let transport = usize::from(header.checksum_start);
    let length = match header.gso_type & !NetHeader::ECN {
        NetHeader::UDP => Udp::LENGTH,
        _ => usize::from(frame.get(transport + 12)? >> 4) * 4,
    };
    let headers = transport + length;
    (headers <= frame.len() && headers >= ethernet::Header::LENGTH).then_some(headers)
}

fn unsegmented(error: SegmentError) -> Dropped {
    match error {
        SegmentError::Header(error) if error.layer == Layer::Ip => Dropped::IpVersion,
        SegmentError::TooLong { .. } => Dropped::TooLong,
        _ => Dropped::SuperPacket,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Unfinished, framing, ip, line, tcp};
    use testkit::netns::{Namespace, probe};
    use testkit::require;
    use wire::ethernet::MacAddress;
    use wire::{IpProtocol, IpVersion};

    /// Bytes of the payload of a super-packet, and of a segment.
    const PAYLOAD: usize = 60_000;
    const SIZE: usize = 1440;

    /// A super-packet with its virtio header, behind so many bytes of MAC addresses and EtherType.
    fn super_packet(before: usize) -> Vec<u8> {
        let ip = |length| ip(IpVersion::V4, IpProtocol::TCP, length);
        let packet = Unfinished::new(ip, &tcp(3, 0x10, &[]), &[7; PAYLOAD]);
        let header = packet.header(before, Some(SIZE), NetHeader::TCP_IPV4);
        let mut front = vec![0; before];
        if let Some([.., high, low]) = front.get_mut(..) {
            (*high, *low) = (8, 0);
        }
        [&header.bytes()[..], &front, &packet.bytes].concat()
    }

    #[test]
    fn no_byte_of_a_payload_is_copied() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.inside(|| {
            // One for all: what another test forks off may hold it for a moment after it was dropped, and with it its name.
            let tun = Tun::new("sub0", Form::Packets).expect("an interface");
            for (link, head, frames) in [
                ("ad:100,q:200,pppoe:7@02:00:5e:00:00:02", 14 + 8 + 8 + 40, PAYLOAD.div_ceil(SIZE)),
                // A TPID that the kernel does not segment behind.
                ("0x9100:5", 14 + 4 + 40, PAYLOAD.div_ceil(SIZE)),
                // A virtio header, MAC addresses and tags; the kernel segments.
                ("ad:100,q:200", 10 + 12 + 8, 1),
            ] {
                let framing = framing(link, MacAddress([2; 6]));
                let loopback = 1;
                let way = TransmitPath::packet(loopback, Some(&framing)).expect("a socket");
                let mut outgoing = Outgoing::new(way);
                let read = super_packet(framing.network_offset());
                outgoing.read[64..64 + read.len()].copy_from_slice(&read);
                let line = line(framing, 1600);
                outgoing.prepare(&tun, &line, 64..64 + read.len()).expect("frames");
                let list = outgoing.frames.list();
                assert_eq!(list.len(), frames, "{link}");
                assert!(list.iter().all(|frame| frame.head.len() == head), "{link}: {:?}", list[0]);
                // Each part of the payload is in one frame, where it was read.
                let end = 64 + read.len();
                let covered = list
                    .iter()
                    .rev()
                    .try_fold(end, |end, frame| (frame.rest.end == end).then_some(frame.rest.start));
                let front = if frames == 1 { 2 + 40 } else { 0 };
                assert_eq!(covered, Some(end - PAYLOAD - front), "{link}");
            }
        });
    }
}
