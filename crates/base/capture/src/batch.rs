//! Many whole records in one reusable buffer.

use std::sync::Arc;

use crate::{Interface, LinkType};

/// Where a record lies in its batch. Written by the walkers, which have checked that `offset..offset +
/// captured` lies within the buffer and that `interface` exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) offset: u32,
    pub(crate) captured: u32,
    pub(crate) wire: u32,
    /// Index into the batch's interfaces; [`NO_TIMESTAMP`] is added for a Simple Packet Block.
    pub(crate) interface: u32,
}

pub(crate) const NO_TIMESTAMP: u32 = 1 << 31;

/// A run of consecutive whole records. Reusing one batch reuses its memory.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) buf: Vec<u8>,
    /// Bytes of `buf` that hold file content; the rest is kept so that it need not be cleared again.
    pub(crate) filled: usize,
    pub(crate) entries: Vec<Entry>,
    pub(crate) interfaces: Arc<Vec<Interface>>,
    pub(crate) first_frame: u64,
}

impl Batch {
    /// An empty batch; memory comes with the first use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records in the batch.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Holds no record.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number, from 1, of the batch's first frame within the capture.
    pub fn first_frame(&self) -> u64 {
        self.first_frame
    }

    /// The link type that all frames of the batch share, if it is certain without looking at each.
    pub fn link_type(&self) -> Option<LinkType> {
        let first = self.interfaces.first()?.link_type;
        self.interfaces.iter().all(|interface| interface.link_type == first).then_some(first)
    }

    /// The records in file order.
    #[inline]
    pub fn frames(&self) -> Frames<'_> {
        Frames { batch: self, at: 0 }
    }

    /// The record at `at` (from 0) within the batch.
    #[inline]
    pub fn get(&self, at: usize) -> Option<Frame<'_>> {
        let entry = *self.entries.get(at)?;
        let from = entry.offset as usize;
        let data = self.buf.get(from..from + entry.captured as usize)?;
        Some(Frame { data, wire_len: entry.wire, number: self.first_frame + at as u64, batch: self, entry })
    }

    /// The least and the greatest [`Frame::timestamp_ns`] of the batch, whatever the order of its frames. Frames
    /// without time do not count; `None` if no frame has one.
    pub fn time_span(&self) -> Option<(i64, i64)> {
        let mut span: Option<(i64, i64)> = None;
        for run in self.entries.chunk_by(|one, next| one.interface == next.interface) {
            let timed = run.first().filter(|entry| entry.interface & NO_TIMESTAMP == 0);
            let Some(interface) = timed.and_then(|entry| self.interfaces.get(entry.interface as usize))
            else {
                continue;
            };
            let offsets = run.iter().map(|entry| entry.offset as usize);
            if let Some((least, greatest)) = interface.time_span(&self.buf, offsets) {
                let (low, high) = span.unwrap_or((least, greatest));
                span = Some((low.min(least), high.max(greatest)));
            }
        }
        span
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.filled = 0;
    }

    /// Makes the buffer at least `size` bytes long, zeroing only what it never had.
    pub(crate) fn reserve(&mut self, size: usize) {
        if self.buf.len() < size {
            self.buf.resize(size, 0);
        }
    }
}

/// Iterator over the records of a [`Batch`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    batch: &'a Batch,
    at: usize,
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        let frame = self.batch.get(self.at)?;
        self.at += 1;
        Some(frame)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.batch.len().saturating_sub(self.at);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Frames<'_> {}

/// One record of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The captured bytes, without a frame check sequence that the file declares.
    pub data: &'a [u8],
    /// Length of the frame on the wire in bytes, without a frame check sequence that the file declares; never
    /// less than `data.len()`.
    pub wire_len: u32,
    /// Number within the capture, from 1.
    pub number: u64,
    batch: &'a Batch,
    entry: Entry,
}

impl<'a> Frame<'a> {
    /// The interface it was captured on.
    #[inline]
    pub fn interface(&self) -> &'a Interface {
        &self.batch.interfaces[(self.entry.interface & !NO_TIMESTAMP) as usize]
    }

    /// Link type of its interface.
    #[inline]
    pub fn link_type(&self) -> LinkType {
        self.interface().link_type
    }

    /// Nanoseconds since 1970-01-01 00:00 UTC; finer resolutions are rounded down. `None` for a Simple
    /// Packet Block, which carries no time, and for a time outside 1677 to 2262.
    pub fn timestamp_ns(&self) -> Option<i64> {
        if self.entry.interface & NO_TIMESTAMP != 0 {
            return None;
        }
        self.interface().timestamp_ns(&self.batch.buf, self.entry.offset as usize)
    }
}
