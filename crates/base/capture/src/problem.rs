//! What is wrong with a capture, and where.

use std::fmt;
use std::sync::Arc;

/// Something wrong inside a capture. Every whole record before it has been delivered.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Name of the file as given when it was opened.
    pub file: Arc<str>,
    /// Number, from 1, of the frame concerned: the next one that would have been delivered.
    pub frame: u64,
    /// Byte offset of the record or block concerned; in a compressed file, of the unpacked data.
    pub offset: u64,
    /// `offset` counts unpacked bytes.
    pub unpacked: bool,
    /// What is wrong.
    pub reason: Reason,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.unpacked { " of the unpacked data" } else { "" };
        write!(f, "{}: frame {} at byte {}{of}: {}", self.file, self.frame, self.offset, self.reason)
    }
}

impl Problem {
    /// Whether something of the capture could not be read. The others are remarks on frames that were
    /// delivered.
    pub fn is_loss(&self) -> bool {
        !matches!(self.reason, Reason::AboveSnaplen { .. } | Reason::AboveOriginal { .. })
    }
}

/// What is wrong with a record or block.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The file ends inside a record's or block's header.
    #[error("a header of {needed} bytes, file ends after {present}")]
    HeaderCut {
        /// Bytes of the header.
        needed: u32,
        /// Bytes of it that are there.
        present: u64,
    },
    /// The file ends inside a record's captured bytes.
    #[error("record claims {claimed} captured bytes, file ends after {present}")]
    RecordCut {
        /// Captured bytes according to the record's header.
        claimed: u32,
        /// Bytes of them that are there.
        present: u64,
    },
    /// The file ends inside a block.
    #[error("block of type {kind:#010x} claims {claimed} bytes, file ends after {present}")]
    BlockCut {
        /// Block type.
        kind: u32,
        /// Block Total Length.
        claimed: u32,
        /// Bytes of the block that are there.
        present: u64,
    },
    /// A length that no capture program writes: the rest of the file cannot be read.
    #[error("record claims {claimed} captured bytes, more than {limit}: the rest cannot be read")]
    RecordTooLong {
        /// Captured bytes according to the record's header.
        claimed: u32,
        /// [`crate::MAX_CAPTURED`].
        limit: u32,
    },
    /// More bytes captured than the snapshot length allows. The frame was delivered. Reported once.
    #[error("record has {captured} captured bytes, the snapshot length is {snaplen} (frame is counted)")]
    AboveSnaplen {
        /// Captured bytes.
        captured: u32,
        /// Snapshot length of the interface.
        snaplen: u32,
    },
    /// More bytes captured than the frame had. The frame was delivered. Reported once.
    #[error("record has {captured} captured bytes of a frame of {original} (frame is counted)")]
    AboveOriginal {
        /// Captured bytes.
        captured: u32,
        /// Original length.
        original: u32,
    },
    /// Block Total Length is impossible: the rest of the file cannot be read.
    #[error("block of type {kind:#010x} has length {length}, {rule}: the rest cannot be read")]
    BlockLength {
        /// Block type.
        kind: u32,
        /// Block Total Length.
        length: u32,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// The two copies of Block Total Length differ: the rest of the file cannot be read.
    #[error(
        "block of type {kind:#010x} has length {leading} in front, {trailing} at its end: the rest cannot be read"
    )]
    BlockTrailer {
        /// Block type.
        kind: u32,
        /// Length before the body.
        leading: u32,
        /// Length after the body.
        trailing: u32,
    },
    /// A section header without a valid byte-order magic: the rest of the file cannot be read.
    #[error(
        "section header with byte-order magic {found:#010x} instead of 0x1a2b3c4d: the rest cannot be read"
    )]
    ByteOrderMagic {
        /// The magic, read as little endian.
        found: u32,
    },
    /// A section of a pcapng version that is not 1.x. It was left out.
    #[error("section of pcapng version {major}.{minor}, only 1.x is known (section left out)")]
    SectionVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// An option of an interface has a length that it cannot have. It was ignored.
    #[error("interface description with option {code} of {length} bytes (option ignored)")]
    OptionLength {
        /// Option Type.
        code: u16,
        /// Option Length.
        length: u16,
    },
    /// A packet block claims more captured bytes than it holds. It was left out.
    #[error("packet block claims {claimed} captured bytes but holds {room} (left out)")]
    PacketTooLong {
        /// Captured bytes according to the block.
        claimed: u32,
        /// Bytes between the block's fixed part and its end.
        room: u32,
    },
    /// A packet block names an interface that the section did not describe. It was left out.
    #[error("packet block of interface {interface}, but the section describes {described} so far (left out)")]
    NoInterface {
        /// Interface ID.
        interface: u32,
        /// Interface Description Blocks in the section so far.
        described: u32,
    },
    /// More interfaces than this reader keeps: the rest of the file is not read.
    #[error("section describes more than {limit} interfaces: the rest is not read")]
    TooManyInterfaces {
        /// [`crate::MAX_INTERFACES`].
        limit: u32,
    },
    /// The file became shorter while it was read.
    #[error("file has shrunk from {from} to {to} bytes while it was read")]
    Shrunk {
        /// Size when opened.
        from: u64,
        /// Bytes that could be read.
        to: u64,
    },
    /// Reading failed.
    #[error("cannot read on: {0}")]
    Read(Arc<std::io::Error>),
    /// The rest cannot be unpacked: it is damaged, cut off, or needs more memory than is given.
    #[error("the rest of the {format} data cannot be unpacked: {error}")]
    Decompress {
        /// `gzip` or `zstd`.
        format: &'static str,
        /// What the decoder says.
        error: Arc<std::io::Error>,
    },
}
