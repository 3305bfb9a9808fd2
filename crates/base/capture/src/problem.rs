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
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum Reason {
    #[error("a header of {needed} bytes, file ends after {present}")]
    HeaderCut { needed: u32, present: u64 },
    #[error("record claims {claimed} captured bytes, file ends after {present}")]
    RecordCut { claimed: u32, present: u64 },
    #[error("block of type {kind:#010x} claims {claimed} bytes, file ends after {present}")]
    BlockCut { kind: u32, claimed: u32, present: u64 },
    #[error("record claims {claimed} captured bytes, more than {limit}: the rest cannot be read")]
    RecordTooLong { claimed: u32, limit: u32 },
    /// More bytes captured than the snapshot length allows. The frame was delivered. Reported once.
    #[error("record has {captured} captured bytes, the snapshot length is {snaplen} (frame is counted)")]
    AboveSnaplen { captured: u32, snaplen: u32 },
    /// More bytes captured than the frame had. The frame was delivered. Reported once.
    #[error("record has {captured} captured bytes of a frame of {original} (frame is counted)")]
    AboveOriginal { captured: u32, original: u32 },
    #[error("block of type {kind:#010x} has length {length}, {rule}: the rest cannot be read")]
    BlockLength { kind: u32, length: u32, rule: &'static str },
    #[error(
        "block of type {kind:#010x} has length {leading} in front, {trailing} at its end: the rest cannot be read"
    )]
    BlockTrailer { kind: u32, leading: u32, trailing: u32 },
    /// A section header without a valid byte-order magic: the rest of the file cannot be read.
    #[error(
        "section header with byte-order magic {found:#010x} instead of 0x1a2b3c4d: the rest cannot be read"
    )]
    ByteOrderMagic { found: u32 },
    /// A section of a pcapng version that is not 1.x. It was left out.
    #[error("section of pcapng version {major}.{minor}, only 1.x is known (section left out)")]
    SectionVersion { major: u16, minor: u16 },
    #[error("interface description with option {code} of {length} bytes (option ignored)")]
    OptionLength { code: u16, length: u16 },
    #[error("packet block claims {claimed} captured bytes but holds {room} (left out)")]
    PacketTooLong { claimed: u32, room: u32 },
    /// A packet block names an interface that the section did not describe. It was left out.
    #[error("packet block of interface {interface}, but the section describes {described} so far (left out)")]
    NoInterface { interface: u32, described: u32 },
    #[error("section describes more than {limit} interfaces: the rest is not read")]
    TooManyInterfaces { limit: u32 },
    #[error("file has shrunk from {from} to {to} bytes while it was read")]
    Shrunk { from: u64, to: u64 },
    #[error("cannot read on: {0}")]
    Read(Arc<std::io::Error>),
    #[error("the rest of the {format} data cannot be unpacked: {error}")]
    Decompress { format: &'static str, error: Arc<std::io::Error> },
}
