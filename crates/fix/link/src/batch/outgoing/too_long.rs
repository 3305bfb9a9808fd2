//! Packets that are longer than their owner takes: fragmented where that is allowed, reported to their sender where it is not.

use super::{Outgoing, flush};
use crate::datapath::Line;
use crate::dropped::Dropped;
use crate::fragments::{Fragments, Piece};
use crate::inbound::{HEADERS, complete, write};
use crate::lines::Lines;
use crate::path_mtu;
use kernel::tun::Tun;
use offload::{NetHeader, Prefix, Segments};
use std::io::IoSlice;
use std::ops::Range;
use std::time::Instant;
use wire::{IpVersion, ipv4};

/// The longest header of TCP.
const TRANSPORT: usize = 60;

/// A packet whose headers are here and whose payload is in what was read.
struct Apart<'h> {
    network: &'h [u8],
    /// What of the headers behind it is not in front of the payload.
    transport: &'h [u8],
    payload: Range<usize>,
}

impl<O: Copy + Default> Outgoing<O> {
    /// Makes fragments of at most `most` bytes of a packet or of each of its segments, or sends its sender an ICMP message.
    #[expect(clippy::too_many_arguments, reason = "those of `segment`, and where to send the message")]
    pub(super) fn too_long<F: Lines<Owner = O>>(
        &mut self,
        tun: &Tun,
        line: &Line<F>,
        prefix: &Prefix,
        owner: O,
        header: &NetHeader,
        range: Range<usize>,
        most: usize,
    ) -> Result<(), Dropped> {
        let packet = self.read.get(range.clone()).unwrap_or_default();
        let may_be_fragmented = crate::framing::version(packet) == Some(IpVersion::V4)
            && packet.first_chunk().is_some_and(|bytes| !ipv4::Header::of(bytes).dont_fragment());
        if may_be_fragmented {
            return self.fragment(line, prefix, owner, header, range, most);
        }
        if self.allowance.take(Instant::now()) {
            let mut room = [0; path_mtu::MOST];
            if let Some(length) = path_mtu::message(packet, most, &mut room) {
                let message = room.get(..length).unwrap_or_default();
                let front = NetHeader::default().bytes();
                let pieces = [&front[..], message].map(IoSlice::new);
                if write(tun, &pieces).is_ok() {
                    line.counters.too_big.add(1);
                }
            }
        }
        Err(Dropped::PathMtu)
    }

    fn fragment<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        prefix: &Prefix,
        owner: O,
        header: &NetHeader,
        range: Range<usize>,
        most: usize,
    ) -> Result<(), Dropped> {
        if !header.is_super_packet() {
            complete(header, self.read.get_mut(range.clone()).unwrap_or_default())?;
        }
        // Lent by this value as long as that is used for nothing but frames.
        let read = std::mem::take(&mut self.read);
        let packet = read.get(range.clone()).unwrap_or_default();
        let done = self.fragment_all(line, prefix, owner, header, (&read, packet), range.start, most);
        self.read = read;
        done
    }

    /// `start`: where the packet is in what was read.
    #[expect(clippy::too_many_arguments, reason = "those of `fragment`")]
    fn fragment_all<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        prefix: &Prefix,
        owner: O,
        header: &NetHeader,
        (read, packet): (&[u8], &[u8]),
        start: usize,
        most: usize,
    ) -> Result<(), Dropped> {
        let mut segments = Segments::of(&Prefix::NONE, header, packet).map_err(super::unsegmented)?;
        let mut headers = [0; HEADERS];
        while let Some(segment) = segments.emit(&mut headers).map_err(|_| Dropped::SuperPacket)? {
            let payload = start + segment.start;
            let payload = payload..payload + segment.payload.len();
            // The headers of a segment were written; of a packet by itself they are where it is.
            let (written, payload) = match headers.get(..segment.header_length) {
                Some(written) if !written.is_empty() => (written, payload),
                _ => {
                    let length = usize::from(packet.first().copied().unwrap_or_default() & 0x0f) * 4;
                    (packet.get(..length).unwrap_or_default(), payload.start + length..payload.end)
                }
            };
            let length = usize::from(written.first().copied().unwrap_or_default() & 0x0f) * 4;
            let (network, transport) = written.split_at_checked(length).ok_or(Dropped::IpLength)?;
            self.fragment_one(line, prefix, owner, read, &Apart { network, transport, payload }, most)?;
        }
        Ok(())
    }

    fn fragment_one<F: Lines<Owner = O>>(
        &mut self,
        line: &Line<F>,
        prefix: &Prefix,
        owner: O,
        read: &[u8],
        packet: &Apart<'_>,
        most: usize,
    ) -> Result<(), Dropped> {
        let before = packet.transport.len();
        let fragments = Fragments::of(packet.network, before + packet.payload.len(), most)
            .filter(|fragments| fragments.room() >= before && before <= TRANSPORT)
            .ok_or(Dropped::PathMtu)?;
        for piece in fragments {
            if self.frames.is_full() {
                flush(line, &mut self.way, &mut self.frames, read);
            }
            let head =
                put_head(self.frames.room(), prefix, packet.transport, &piece).ok_or(Dropped::TooLong)?;
            let data = piece.data.start.max(before) - before..piece.data.end.saturating_sub(before);
            let rest = packet.payload.start + data.start..packet.payload.start + data.end;
            let bytes = head + rest.len();
            self.frames.push(head, rest, 1, bytes as u32, owner);
        }
        Ok(())
    }
}

/// Writes what stands in front of the payload of a fragment; its length.
fn put_head(room: &mut [u8], prefix: &Prefix, transport: &[u8], piece: &Piece) -> Option<usize> {
    let transport = if piece.data.start == 0 { transport } else { &[] };
    let length = prefix.length() + piece.length + transport.len();
    let (front, back) = room.get_mut(..length)?.split_at_mut_checked(prefix.length())?;
    let (network, place) = back.split_at_mut_checked(piece.length)?;
    prefix.write(IpVersion::V4, piece.length + piece.data.len(), front);
    network.copy_from_slice(piece.header.get(..piece.length)?);
    place.copy_from_slice(transport);
    Some(length)
}
