//! Why a packet cannot be segmented.

use crate::checksum::PartialError;

/// What is wrong with a packet or with what its virtio header says about it. Numbers are bytes.
///
/// The virtio header comes from a kernel, and so does the packet; a hostile one must not bring anything down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum SegmentError {
    /// A header of the packet has a defect.
    #[error(transparent)]
    Header(#[from] wire::Error),
    #[error("virtio header: {0}")]
    Partial(#[from] PartialError),
    #[error("an IP packet of {bytes} bytes, where the encapsulation can count {most}")]
    TooLong { bytes: usize, most: usize },
    #[error("virtio header: type {found:#04x} is not segmented here")]
    GsoType { found: u8 },
    #[error("virtio header: a super-packet with segments of 0 bytes")]
    NoSize,
    /// A super-packet whose checksum is not partial (virtio 1.2 section 5.1.6.2 demands the flag).
    #[error("virtio header: a super-packet without the flag for a partial checksum")]
    NoChecksum,
    #[error("virtio header: {found} bytes of headers in a packet of {packet}")]
    HeaderLength { found: u16, packet: usize },
    #[error("virtio header: type {gso_type:#04x}, but the packet is IPv{version} with protocol {protocol}")]
    OtherProtocol { gso_type: u8, version: u8, protocol: u8 },
    #[error("virtio header: the checksum starts at byte {found}, the transport header at {transport}")]
    ChecksumStart { found: u16, transport: usize },
    #[error(
        "virtio header: the checksum is {found} bytes behind its start, where the protocol has it at {expected}"
    )]
    ChecksumOffset { found: u16, expected: u16 },
    #[error("an IP packet of {found} bytes by its header, {packet} in fact")]
    Length { found: usize, packet: usize },
    #[error("a UDP length of {found} where {available} bytes follow the IP header")]
    UdpLength { found: u16, available: usize },
    #[error("a super-packet that is an IP fragment")]
    Fragment,
}

/// The buffer for the headers of a segment is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the headers of a segment take {needed} bytes, the buffer has {available}")]
pub struct RoomError {
    /// Bytes that the headers take.
    pub needed: usize,
    /// Bytes of the buffer.
    pub available: usize,
}
