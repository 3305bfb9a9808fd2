//! Reading in order, from anything: the file's bytes pass through one buffer per batch, and what is left of
//! the last, incomplete record moves on to the next.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::Reason;
use crate::batch::Batch;
use crate::progress::Progress;
use crate::walk::{Step, Walker, Window};

/// Counts what is read towards the progress.
pub(crate) struct Counted<R> {
    pub(crate) reader: R,
    pub(crate) progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf)?;
        self.progress.add(read as u64);
        Ok(read)
    }
}

/// A regular file from `at` up to the size that it had when opened.
pub(crate) struct Positioned {
    pub(crate) file: Arc<File>,
    pub(crate) at: u64,
    pub(crate) size: u64,
}

impl Read for Positioned {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = buf.len().min(left);
        let read = self.file.read_at(&mut buf[..room], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The unread rest of a capture.
pub(crate) struct Stream {
    pub(crate) reader: Box<dyn Read + Send>,
    /// Bytes read but not yet delivered.
    pub(crate) carry: Vec<u8>,
    /// Offset of the carry's first byte.
    pub(crate) base: u64,
    pub(crate) eof: bool,
    /// Why reading ended early; reported after what was read before it.
    pub(crate) failure: Option<io::Error>,
    /// Size that the file should have, if that is known and it is not packed.
    pub(crate) expected: Option<u64>,
}

impl Stream {
    /// Fills `batch` with the next whole records. False when there are none left.
    pub(crate) fn fill(&mut self, walker: &mut Walker, batch: &mut Batch, chunk: usize) -> bool {
        batch.clear();
        if walker.ended {
            return false;
        }
        walker.begin_batch();
        batch.first_frame = walker.frames + 1;
        let mut target = chunk.max(self.carry.len() + 1);
        batch.reserve(target);
        batch.buf[..self.carry.len()].copy_from_slice(&self.carry);
        batch.filled = self.carry.len();
        self.carry.clear();
        loop {
            self.read_up_to(batch, target);
            let buf = &batch.buf[..batch.filled];
            let window = Window { buf, base: self.base, limit: u64::MAX, eof: self.eof };
            let step = walker.walk(window, &mut batch.entries);
            match step {
                Step::End => {
                    self.end(walker, batch.filled);
                    break;
                }
                Step::Broken => break,
                Step::Limit | Step::Need(_) => {}
            }
            let used = usize::try_from(walker.offset - self.base).unwrap_or(usize::MAX);
            if !batch.is_empty() {
                self.carry.extend_from_slice(batch.buf.get(used..batch.filled).unwrap_or_default());
                self.base += used.min(batch.filled) as u64;
                self.skip_to(walker.offset);
                break;
            }
            if used > 0 {
                // Blocks without frames only, possibly reaching beyond what was read.
                let kept = used.min(batch.filled);
                batch.buf.copy_within(kept..batch.filled, 0);
                batch.filled -= kept;
                self.base += kept as u64;
                walker.begin_batch();
                if batch.filled == 0 {
                    self.skip_to(walker.offset);
                }
                target = chunk;
            } else if let Step::Need(needed) = step {
                target = needed.max(batch.filled + 1);
            }
            batch.reserve(target);
        }
        batch.interfaces = Arc::clone(&walker.interfaces);
        !batch.is_empty()
    }

    fn read_up_to(&mut self, batch: &mut Batch, target: usize) {
        while batch.filled < target && !self.eof {
            batch.filled += self.read(&mut batch.buf[batch.filled..target]);
        }
    }

    /// Reads once; how many bytes. Notes the end of the input, and why it ended early.
    fn read(&mut self, place: &mut [u8]) -> usize {
        let read = match self.reader.read(place) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return 0,
            read => read.map_err(|error| self.failure = Some(error)).unwrap_or(0),
        };
        self.eof = read == 0;
        read
    }

    /// Reads and drops up to `offset`, where a skipped block ends. Nothing is carried when this is needed.
    fn skip_to(&mut self, offset: u64) {
        let mut dropped = [0; 16 << 10];
        while self.base < offset && !self.eof {
            let left = usize::try_from(offset - self.base).unwrap_or(usize::MAX).min(dropped.len());
            self.base += self.read(&mut dropped[..left]) as u64;
        }
    }

    /// Adds why the input ended here, if it ended early.
    fn end(&mut self, walker: &mut Walker, filled: usize) {
        let end = self.base + filled as u64;
        if let Some(error) = self.failure.take() {
            let error = Arc::new(error);
            let reason = match walker.compression.name() {
                None => Reason::Read(error),
                Some(format) => Reason::Decompress { format, error },
            };
            walker.note(end, 0, reason);
        } else if let Some(from) = self.expected.take().filter(|&size| self.eof && end < size) {
            walker.note(end, 0, Reason::Shrunk { from, to: end });
        }
    }
}
