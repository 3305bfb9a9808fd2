//! Where the words of sessions are, by their numbers: in this process, or in a map that it shares with programs.
//!
//! Memory of this process is taken in pieces of [`PIECE`] sessions as numbers are used for the first time, and kept. That of a map is there
//! from the start, all of it.

use kernel::bpf::SharedWords;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use xdp::subscribers_layout::SESSION_WORDS;

/// Sessions whose memory is taken together.
pub(crate) const PIECE: usize = 1024;
/// Words of a session in a line, those of its buckets, from it and to it, and those of its drops.
const LINE: usize = 8;
const BUCKETS: usize = 4;

/// A cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Aligned([AtomicU64; LINE]);

#[derive(Debug, Default)]
pub(super) struct Piece {
    lines: Vec<Aligned>,
    /// Frames that were refused, from each subscriber and to each.
    drops: Vec<[AtomicU64; 2]>,
    /// From each subscriber and to each, once one has a rate.
    buckets: OnceLock<Box<[[AtomicU64; BUCKETS]]>>,
}

/// All of it.
#[derive(Debug)]
pub(crate) enum Memory {
    Own(Box<[OnceLock<Piece>]>),
    Shared(Arc<SharedWords>),
}

impl Memory {
    /// Of this process, with room for so many sessions.
    pub(crate) fn own(most: usize) -> Memory {
        Memory::Own((0..most.div_ceil(PIECE)).map(|_| OnceLock::new()).collect())
    }

    /// Bytes that it takes now.
    pub(super) fn bytes(&self) -> usize {
        let pieces = match self {
            Memory::Own(pieces) => pieces,
            Memory::Shared(shared) => return size_of_val(shared.words()),
        };
        let used: Vec<&Piece> = pieces.iter().filter_map(OnceLock::get).collect();
        let limited = used.iter().filter(|piece| piece.buckets.get().is_some()).count();
        used.len() * PIECE * (size_of::<Aligned>() + size_of::<[AtomicU64; 2]>())
            + limited * PIECE * size_of::<[AtomicU64; BUCKETS]>()
            + pieces.len() * size_of::<OnceLock<Piece>>()
    }

    #[inline]
    fn shared(words: &SharedWords, number: u32) -> Option<&[AtomicU64; SESSION_WORDS]> {
        words.words().as_chunks::<SESSION_WORDS>().0.get(number as usize)
    }

    #[inline]
    fn piece(pieces: &[OnceLock<Piece>], number: u32) -> Option<&Piece> {
        pieces.get(number as usize / PIECE)?.get()
    }

    /// State, VLANs, station, identifier; frames and bytes from the subscriber, then to it.
    #[inline]
    pub(super) fn line(&self, number: u32) -> Option<&[AtomicU64; LINE]> {
        match self {
            Memory::Own(pieces) => {
                Memory::piece(pieces, number)?.lines.get(number as usize % PIECE).map(|line| &line.0)
            }
            Memory::Shared(words) => Memory::shared(words, number)?.first_chunk(),
        }
    }

    /// The buckets from the subscriber and to it; `None`: none there has a rate.
    #[inline]
    pub(super) fn buckets(&self, number: u32) -> Option<&[[AtomicU64; 2]; 2]> {
        let words = match self {
            Memory::Own(pieces) => {
                let buckets = Memory::piece(pieces, number)?.buckets.get()?;
                buckets.get(number as usize % PIECE)?.as_slice()
            }
            Memory::Shared(words) => Memory::shared(words, number)?.get(LINE..LINE + BUCKETS)?,
        };
        words.as_chunks::<2>().0.first_chunk()
    }

    /// Frames that were refused, from the subscriber and to it.
    pub(super) fn drops(&self, number: u32) -> Option<&[AtomicU64; 2]> {
        match self {
            Memory::Own(pieces) => Memory::piece(pieces, number)?.drops.get(number as usize % PIECE),
            Memory::Shared(words) => Memory::shared(words, number)?.get(LINE + BUCKETS..)?.first_chunk(),
        }
    }

    /// Takes memory for a session of this number; `None`: there is no such.
    pub(super) fn reserve(&self, number: u32, is_limited: bool) -> Option<()> {
        let Memory::Own(pieces) = self else { return self.line(number).map(drop) };
        let piece = pieces.get(number as usize / PIECE)?.get_or_init(|| Piece {
            lines: (0..PIECE).map(|_| Aligned::default()).collect(),
            drops: (0..PIECE).map(|_| Default::default()).collect(),
            buckets: OnceLock::new(),
        });
        if is_limited {
            piece.buckets.get_or_init(|| (0..PIECE).map(|_| Default::default()).collect());
        }
        Some(())
    }
}
