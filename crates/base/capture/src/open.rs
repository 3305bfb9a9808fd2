//! Opening a capture: what kind of file is it?

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use crate::batch::{Batch, Frame};
use crate::decompress::{recognise, unpack};
use crate::pcap::{FILE_HEADER, file_header, magic};
use crate::pcapng::{SMALLEST_SECTION, section_order};
use crate::progress::Progress;
use crate::stream::{Counted, Positioned, Stream};
use crate::walk::{Kind, Walker};
use crate::{Interface, Problem};

/// Default of [`Capture::set_chunk_size`]: two such buffers and the caller's tables fit a level-2 cache of
/// 1 MiB.
pub(crate) const CHUNK: usize = 256 << 10;

/// The format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap.
    Pcap,
    /// pcapng.
    Pcapng,
}

/// How a capture file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, RFC 1952.
    Gzip,
    /// Zstandard, RFC 8878.
    Zstd,
}

/// Why something is not read as a capture at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum OpenError {
    #[error("{file}: cannot read: {error}")]
    Read { file: Arc<str>, error: io::Error },
    #[error("{file}: no capture: empty")]
    Empty { file: Arc<str> },
    #[error("{file}: no capture: starts with {first}, neither pcap nor pcapng")]
    NotACapture { file: Arc<str>, first: String },
    #[error("{file}: {what} is not supported; convert it to pcap or pcapng first")]
    Unsupported { file: Arc<str>, what: String },
    #[error("{file}: no capture: ends within the {needed}-byte {format} file header, after {present} bytes")]
    HeaderCut { file: Arc<str>, format: &'static str, needed: usize, present: usize },
    #[error("{file}: cannot unpack {format}: {error}")]
    Decompress { file: Arc<str>, format: &'static str, error: io::Error },
}

/// What reading a capture has brought so far, or in all.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whole records delivered.
    pub frames: u64,
    /// What was wrong, in file order; at most 100.
    pub problems: Vec<Problem>,
    /// Further problems beyond those kept.
    pub problems_omitted: u64,
}

/// A capture being read.
pub struct Capture {
    pub(crate) walker: Walker,
    pub(crate) stream: Stream,
    /// The file, if threads may read it at any place.
    pub(crate) file: Option<(Arc<File>, u64)>,
    pub(crate) chunk: usize,
    batch: Batch,
    cursor: usize,
}

impl Capture {
    /// Opens the capture file at `path`. A name of `-` is not special, see [`Capture::stdin`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let name: Arc<str> = path.as_ref().display().to_string().into();
        let file = File::open(path).map_err(|error| OpenError::Read { file: Arc::clone(&name), error })?;
        Self::from_file(file, &name)
    }

    /// Reads the capture on standard input, called "standard input" in messages.
    pub fn stdin() -> Result<Self, OpenError> {
        let name = "standard input";
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input = input.map_err(|error| OpenError::Read { file: name.into(), error })?;
        Self::from_file(File::from(input), name)
    }

    /// Reads an open file, which `name` stands for in messages: a regular one from its beginning at any place by several
    /// threads, anything else in order.
    pub fn from_file(mut file: File, name: &str) -> Result<Self, OpenError> {
        let metadata = file.metadata().map_err(|error| OpenError::Read { file: name.into(), error })?;
        if !metadata.is_file() || file.stream_position().ok() != Some(0) {
            return Self::from_reader(file, name);
        }
        let size = metadata.len();
        let progress = Progress::new(Some(size));
        let file = Arc::new(file);
        let reader = Positioned { file: Arc::clone(&file), at: 0, size };
        let mut capture = Self::recognise(reader, name, progress)?;
        if capture.compression() == Compression::None {
            capture.file = Some((file, size));
            capture.stream.expected = Some(size);
        }
        Ok(capture)
    }

    /// Reads a capture from `reader`, in order; `name` stands for it in messages.
    pub fn from_reader(reader: impl Read + Send + 'static, name: &str) -> Result<Self, OpenError> {
        Self::recognise(reader, name, Progress::new(None))
    }

    fn recognise(
        reader: impl Read + Send + 'static,
        name: &str,
        progress: Progress,
    ) -> Result<Self, OpenError> {
        let file: Arc<str> = name.into();
        let mut reader = Counted { reader, progress: progress.clone() };
        let (head, failure) = read_head(&mut reader);
        let read_error = |error| OpenError::Read { file: Arc::clone(&file), error };
        if head.is_empty() {
            return Err(failure.map_or_else(|| OpenError::Empty { file: Arc::clone(&file) }, read_error));
        }
        let compression = recognise(&head);
        let (mut head, mut failure, mut reader) = match compression {
            Compression::None => (head, failure, Box::new(reader) as Box<dyn Read + Send>),
            _ => (Vec::new(), None, unpack(compression, io::Cursor::new(head).chain(reader))),
        };
        if let Some(format) = compression.name() {
            (head, failure) = read_head(&mut reader);
            if head.is_empty() {
                return Err(match failure {
                    Some(error) => OpenError::Decompress { file, format, error },
                    None => OpenError::Empty { file },
                });
            }
        }
        let (kind, interface, big_endian) = match file_format(&head, &file) {
            Ok(found) => found,
            // A header that could not be read whole says nothing about the format.
            Err(error) => {
                return Err(match (failure, compression.name()) {
                    (Some(error), Some(format)) => OpenError::Decompress { file, format, error },
                    (Some(error), None) => read_error(error),
                    (None, _) => error,
                });
            }
        };
        let eof = failure.is_some();
        Ok(Self {
            walker: Walker {
                file,
                compression,
                kind,
                offset: if matches!(kind, Kind::Pcap(_)) { FILE_HEADER as u64 } else { 0 },
                frames: 0,
                ended: false,
                interfaces: Arc::new(interface.into_iter().collect()),
                section_base: 0,
                sections: 0,
                skip_section: false,
                skipped: (0, 0, 0),
                big_endian,
                problems: Vec::new(),
                problems_omitted: 0,
                reported_snaplen: false,
                reported_original: false,
                progress,
            },
            stream: Stream { reader, carry: head, base: 0, eof, failure, expected: None },
            file: None,
            chunk: CHUNK,
            batch: Batch::new(),
            cursor: 0,
        })
    }

    /// Sets how many bytes of the file make a batch (default 256 KiB, at most 64 MiB). Longer records grow
    /// a batch for as long as needed.
    pub fn set_chunk_size(&mut self, bytes: usize) {
        self.chunk = bytes.clamp(1, 64 << 20);
    }

    /// Format of the file.
    pub fn format(&self) -> Format {
        match self.walker.kind {
            Kind::Pcap(_) => Format::Pcap,
            Kind::Pcapng => Format::Pcapng,
        }
    }

    /// How the file is packed.
    pub fn compression(&self) -> Compression {
        self.walker.compression
    }

    /// Name used in messages.
    pub fn name(&self) -> &str {
        &self.walker.file
    }

    /// A handle that shows how far reading has got.
    pub fn progress(&self) -> Progress {
        self.walker.progress.clone()
    }

    /// Fills `batch` with the next records in file order; false when there are none left.
    pub fn next_batch(&mut self, batch: &mut Batch) -> bool {
        self.stream.fill(&mut self.walker, batch, self.chunk)
    }

    /// The next record in file order. Do not mix with [`Capture::next_batch`]: this one reads ahead.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        if self.cursor >= self.batch.len() {
            self.cursor = 0;
            if !self.stream.fill(&mut self.walker, &mut self.batch, self.chunk) {
                return None;
            }
        }
        self.cursor += 1;
        self.batch.get(self.cursor - 1)
    }

    /// Frames and problems so far.
    pub fn report(&self) -> Report {
        self.walker.report()
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("walker", &self.walker).finish_non_exhaustive()
    }
}

impl Compression {
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

/// Reads the bytes that distinguish formats, fewer if the input ends or fails before.
fn read_head(reader: &mut impl Read) -> (Vec<u8>, Option<io::Error>) {
    let mut head = Vec::with_capacity(SMALLEST_SECTION as usize);
    let failure = reader.take(SMALLEST_SECTION.into()).read_to_end(&mut head).err();
    (head, failure)
}

/// The format, the only interface if it is classic pcap, and whether numbers are big endian.
fn file_format(head: &[u8], file: &Arc<str>) -> Result<(Kind, Option<Interface>, bool), OpenError> {
    let cut =
        |format, needed| OpenError::HeaderCut { file: Arc::clone(file), format, needed, present: head.len() };
    if let Some(variant) = head.first_chunk().and_then(|&first| magic(first)) {
        return match file_header(variant, head) {
            Ok(Some((kind, interface))) => Ok((kind, Some(interface), variant.big_endian)),
            Ok(None) => Err(cut("pcap", FILE_HEADER)),
            Err(what) => Err(OpenError::Unsupported { file: Arc::clone(file), what }),
        };
    }
    if head.starts_with(&crate::pcapng::SECTION_HEADER.to_be_bytes()) {
        let needed = SMALLEST_SECTION as usize;
        if head.len() < needed {
            return Err(cut("pcapng", needed));
        }
        if let Some(big_endian) = section_order(head) {
            return Ok((Kind::Pcapng, None, big_endian));
        }
    }
    if let Some(what) = foreign_format(head) {
        return Err(OpenError::Unsupported { file: Arc::clone(file), what: what.to_owned() });
    }
    let first = head.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    Err(OpenError::NotACapture { file: Arc::clone(file), first })
}

/// The name of a format that people may try, by its magic number.
fn foreign_format(head: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 10] = [
        (b"snoop\0\0\0", "a snoop capture (RFC 1761)"),
        (b"GMBU", "a Microsoft Network Monitor 2 capture"),
        (b"RTSS", "a Microsoft Network Monitor 1 capture"),
        (b"XCP\0", "a NetXRay capture"),
        (b"TRSNIFF data", "a Sniffer capture"),
        (b"\xfd7zXZ\0", "xz compression"),
        (b"BZh", "bzip2 compression"),
        (b"\x04\x22\x4d\x18", "LZ4 compression"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    ];
    KNOWN.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, name)| name)
}
