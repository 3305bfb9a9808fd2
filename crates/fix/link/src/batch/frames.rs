//! Frames that are ready to be sent: what stands in front of each, and where the rest of it lies.

use crate::inbound::HEADERS;
use offload::NetHeader;
use std::ops::Range;

/// Frames that go out together; what one call of sendmmsg(2) takes here.
pub(crate) const BATCH: usize = kernel::socket::BATCH;
/// Bytes for what stands in front of frames: MAC addresses, encapsulation, IP and TCP headers, a virtio header.
const HEADS: usize = 64 * 1024;
/// The most of them that one frame takes: [`HEADERS`], and a virtio header.
const LONGEST_HEAD: usize = HEADERS + NetHeader::LENGTH;

/// A frame in two pieces.
#[derive(Clone, Debug)]
pub(crate) struct Frame<O = ()> {
    pub(crate) head: Range<usize>,
    /// In what was read from the interface: it is not copied.
    pub(crate) rest: Range<usize>,
    /// Frames on the line, more than one of a super-packet that the kernel or the card takes apart.
    pub(crate) count: u32,
    /// Bytes on the line of all of them, without FCS.
    pub(crate) bytes: u32,
    pub(crate) owner: O,
}

/// Up to [`BATCH`] frames. Nothing is allocated after [`Frames::new`].
#[derive(Debug)]
pub(crate) struct Frames<O = ()> {
    heads: Box<[u8]>,
    used: usize,
    list: Vec<Frame<O>>,
}

impl<O: Copy> Frames<O> {
    pub(crate) fn new() -> Frames<O> {
        Frames { heads: vec![0; HEADS].into_boxed_slice(), used: 0, list: Vec::with_capacity(BATCH) }
    }

    pub(crate) fn list(&self) -> &[Frame<O>] {
        &self.list
    }

    /// A frame in pieces, where `read` is what was read from the interface.
    #[inline]
    pub(crate) fn pieces<'f>(&'f self, frame: &Frame<O>, read: &'f [u8]) -> [&'f [u8]; 2] {
        [
            self.heads.get(frame.head.clone()).unwrap_or_default(),
            read.get(frame.rest.clone()).unwrap_or_default(),
        ]
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= BATCH || self.used + LONGEST_HEAD > HEADS
    }

    /// Room for the head of the next frame; at least [`HEADERS`] bytes and a virtio header unless it is full.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.heads.get_mut(self.used..).unwrap_or_default()
    }

    /// Adds a frame whose head has been written into [`Frames::room`].
    #[inline]
    pub(crate) fn push(&mut self, head: usize, rest: Range<usize>, count: u32, bytes: u32, owner: O) {
        let start = self.used;
        self.used += head;
        self.list.push(Frame { head: start..self.used, rest, count, bytes, owner });
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.used = 0;
    }
}
