//! What a batch has become, to be handed on.

use super::{Coalescer, Item, NONE, SuperPacket};
use crate::virtio::NetHeader;

/// The deliveries of a batch, in order of their first frames.
#[derive(Debug)]
pub struct Batch<'b, F> {
    pub(super) coalescer: &'b Coalescer,
    pub(super) frames: &'b [F],
    pub(super) next: usize,
}

/// One delivery.
#[derive(Debug)]
pub enum Delivery<'b, F> {
    /// An IP packet, by itself or of several frames.
    Packet(Packet<'b, F>),
    /// The number of a frame without a whole IP packet: control protocols of the link, defects.
    Frame(usize),
}

impl<'b, F: AsRef<[u8]>> Iterator for Batch<'b, F> {
    type Item = Delivery<'b, F>;

    fn next(&mut self) -> Option<Delivery<'b, F>> {
        let item = self.coalescer.items.get(self.next)?;
        self.next += 1;
        Some(match item.place {
            None => Delivery::Frame(item.first as usize),
            Some(_) => Delivery::Packet(Packet {
                coalescer: self.coalescer,
                frames: self.frames,
                item,
                super_packet: self.coalescer.super_packets.get(item.super_packet as usize),
            }),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.coalescer.items.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

impl<F: AsRef<[u8]>> ExactSizeIterator for Batch<'_, F> {}

/// An IP packet without what was in front of it, for a write to TUN: [`Packet::header`], then [`Packet::pieces`].
#[derive(Debug)]
pub struct Packet<'b, F> {
    coalescer: &'b Coalescer,
    frames: &'b [F],
    item: &'b Item,
    super_packet: Option<&'b SuperPacket>,
}

impl<'b, F: AsRef<[u8]>> Packet<'b, F> {
    /// What a virtio header says of it: all zeros for a packet of one frame, whose checksums are what they were.
    pub fn header(&self) -> NetHeader {
        self.super_packet.map_or(NetHeader::default(), |packet| packet.header)
    }

    /// Its bytes, in order: headers, then the payload of each frame; one piece for a packet of one frame.
    pub fn pieces(&self) -> Pieces<'b, F> {
        let (head, length) = match (self.super_packet, self.item.place) {
            (Some(packet), _) => {
                let heads = self.coalescer.heads.get(packet.head..).unwrap_or_default();
                (heads.get(..packet.head_length).unwrap_or_default(), packet.count as usize + 1)
            }
            (None, Some(place)) => {
                let first = self.frames.get(self.item.first as usize).map(AsRef::as_ref);
                (first.and_then(|frame| frame.get(place.network..place.end)).unwrap_or_default(), 1)
            }
            (None, None) => (&[][..], 1),
        };
        let next = if self.super_packet.is_some() { self.item.first } else { NONE };
        Pieces { coalescer: self.coalescer, frames: self.frames, head: Some(head), next, left: length }
    }

    /// Bytes of all pieces.
    pub fn length(&self) -> usize {
        match (self.super_packet, self.item.place) {
            (Some(packet), _) => packet.length,
            (None, place) => place.map_or(0, |place| place.end - place.network),
        }
    }

    /// Packets put together in it, at least 1.
    pub fn segments(&self) -> usize {
        self.super_packet.map_or(1, |packet| packet.count as usize)
    }

    /// The number of its first frame: where it came from.
    pub fn frame(&self) -> usize {
        self.item.first as usize
    }

    /// The numbers of all its frames, in order.
    pub fn frames(&self) -> impl Iterator<Item = usize> + use<'b, F> {
        let coalescer = self.coalescer;
        let first = Some(self.item.first).filter(|first| *first != NONE);
        let next = |frame: &u32| coalescer.parts.get(*frame as usize).map(|part| part.next);
        std::iter::successors(first, move |frame| next(frame).filter(|next| *next != NONE))
            .map(|frame| frame as usize)
    }

    /// Whether the IPv4 identification is the same in all its packets, which a virtio header cannot say: for
    /// [`crate::Segments::with_fixed_identification`].
    pub fn has_fixed_identification(&self) -> bool {
        self.super_packet.is_some_and(|packet| packet.has_fixed_identification)
    }
}

/// The bytes of a packet, piece by piece.
#[derive(Debug)]
pub struct Pieces<'b, F> {
    coalescer: &'b Coalescer,
    frames: &'b [F],
    head: Option<&'b [u8]>,
    /// The frame whose payload is next.
    next: u32,
    left: usize,
}

impl<'b, F: AsRef<[u8]>> Iterator for Pieces<'b, F> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        self.left = self.left.checked_sub(1)?;
        if let Some(head) = self.head.take() {
            return Some(head);
        }
        let part = self.coalescer.parts.get(self.next as usize)?;
        let frame = self.frames.get(self.next as usize)?.as_ref();
        self.next = part.next;
        frame.get(part.start..part.end)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<F: AsRef<[u8]>> ExactSizeIterator for Pieces<'_, F> {}
