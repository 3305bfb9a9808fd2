//! The walk from record to record: the one serial part of reading, so it looks at headers alone.
//!
//! A [`Walker`] carries everything that one chunk of a file must know from those before it. Whoever holds it
//! may walk the next chunk; readers hand it on.

use std::sync::Arc;

use crate::batch::Entry;
use crate::pcap::Layout;
use crate::progress::Progress;
use crate::{Compression, Interface, Problem, Reason, Report};

/// Most captured bytes of one classic pcap record, 262,144: `MAXIMUM_SNAPLEN` of libpcap and
/// `WTAP_MAX_PACKET_SIZE_STANDARD` of Wireshark. A larger claim is taken for damage.
pub const MAX_CAPTURED: u32 = 262_144;

/// Longest pcapng block that is read, 16 MiB: `INITIAL_MAX_BLOCKSIZE` of libpcap. Blocks that are skipped may
/// be longer.
pub const MAX_BLOCK: u32 = 16 << 20;

/// Most interfaces of one pcapng section, so that memory is bounded.
pub const MAX_INTERFACES: u32 = 65_536;

/// Problems kept in full; further ones are only counted.
const MAX_PROBLEMS: usize = 100;

/// What a [`Walker`] needs to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next record starts at or after the limit.
    Limit,
    /// The record at the walker's offset needs the buffer to hold this many bytes.
    Need(usize),
    /// The input has ended here, within a record or between two.
    End,
    /// The rest makes no sense.
    Broken,
}

/// The bytes to walk through.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    pub(crate) buf: &'a [u8],
    /// Offset of `buf[0]` in the file.
    pub(crate) base: u64,
    /// Records starting at or after this offset are somebody else's.
    pub(crate) limit: u64,
    /// The file ends where `buf` ends.
    pub(crate) eof: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Pcap(Layout),
    Pcapng,
}

#[derive(Debug)]
pub(crate) struct Walker {
    pub(crate) file: Arc<str>,
    pub(crate) compression: Compression,
    pub(crate) kind: Kind,
    /// Offset of the next record or block.
    pub(crate) offset: u64,
    pub(crate) frames: u64,
    pub(crate) ended: bool,
    pub(crate) interfaces: Arc<Vec<Interface>>,
    /// Index of the current section's first interface.
    pub(crate) section_base: usize,
    pub(crate) sections: u32,
    /// The current section is of an unknown version.
    pub(crate) skip_section: bool,
    pub(crate) big_endian: bool,
    /// Offset, type and length of the last block that was skipped without being read whole.
    pub(crate) skipped: (u64, u32, u32),
    pub(crate) problems: Vec<Problem>,
    pub(crate) problems_omitted: u64,
    pub(crate) reported_snaplen: bool,
    pub(crate) reported_original: bool,
    pub(crate) progress: Progress,
}

impl Walker {
    /// Indexes the whole records of `window` from `self.offset` on.
    pub(crate) fn walk(&mut self, window: Window<'_>, entries: &mut Vec<Entry>) -> Step {
        if self.ended {
            return Step::End;
        }
        let before = entries.len();
        let step = match self.kind {
            Kind::Pcap(layout) if self.big_endian => self.walk_pcap::<true>(layout, window, entries),
            Kind::Pcap(layout) => self.walk_pcap::<false>(layout, window, entries),
            Kind::Pcapng => self.walk_pcapng(window, entries),
        };
        self.frames += (entries.len() - before) as u64;
        self.ended = matches!(step, Step::End | Step::Broken);
        step
    }

    /// Prepares for a batch of its own: interfaces of earlier sections are no longer referred to.
    pub(crate) fn begin_batch(&mut self) {
        if self.section_base > 0 {
            let current = self.interfaces.get(self.section_base..).unwrap_or_default().to_vec();
            self.interfaces = Arc::new(current);
            self.section_base = 0;
        }
    }

    /// Notes a problem with the record at `offset`, `ahead` frames after those already counted.
    pub(crate) fn note(&mut self, offset: u64, ahead: usize, reason: Reason) {
        if self.problems.len() >= MAX_PROBLEMS {
            self.problems_omitted += 1;
            return;
        }
        self.problems.push(Problem {
            file: Arc::clone(&self.file),
            frame: self.frames + ahead as u64 + 1,
            offset,
            unpacked: self.compression != Compression::None,
            reason,
        });
    }

    /// Frames and problems so far.
    pub(crate) fn report(&self) -> Report {
        Report {
            frames: self.frames,
            problems: self.problems.clone(),
            problems_omitted: self.problems_omitted,
        }
    }
}
