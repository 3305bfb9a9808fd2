//! Why a packet cannot be segmented.

use crate::checksum::PartialError;

/// What is wrong with a packet or with what its virtio header says about it. Numbers are bytes.
///
/// The virtio header comes from a kernel, and so does the packet; a hostile one must not bring anything down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// A header of the packet has a defect.
    #[error(transparent)]
    Header(#[from] wire::Error),
    /// The partial checksum of a packet of its own lies outside the packet.
    #[error("virtio header: {0}")]
    Partial(#[from] PartialError),
    /// A packet longer than the encapsulation, or the length field of IP, can count.
    #[error("an IP packet of {octets} bytes, where the encapsulation can count {most}")]
    TooLong {
        /// Bytes of the packet.
        octets: usize,
        /// The most that can be counted.
        most: usize,
    },
    /// A type that is not segmented here: UDP fragments, tunnels, or an unknown one; or ECN on what is not TCP.
    #[error("virtio header: type {found:#04x} is not segmented here")]
    GsoType {
        /// The type as found.
        found: u8,
    },
    /// Segments of no bytes.
    #[error("virtio header: a super-packet with segments of 0 bytes")]
    NoSize,
    /// A super-packet whose checksum is not partial (virtio 1.2 section 5.1.6.2 demands the flag).
    #[error("virtio header: a super-packet without the flag for a partial checksum")]
    NoChecksum,
    /// More header bytes than the packet has.
    #[error("virtio header: {found} bytes of headers in a packet of {packet}")]
    HeaderLength {
        /// What the virtio header says.
        found: u16,
        /// Bytes of the packet.
        packet: usize,
    },
    /// The type wants another IP version, or another transport protocol.
    #[error("virtio header: type {gso_type:#04x}, but the packet is IPv{version} with protocol {protocol}")]
    OtherProtocol {
        /// The type.
        gso_type: u8,
        /// IP version of the packet.
        version: u8,
        /// Protocol behind the IP header and its extension headers.
        protocol: u8,
    },
    /// The checksum does not start at the transport header.
    #[error("virtio header: the checksum starts at byte {found}, the transport header at {transport}")]
    ChecksumStart {
        /// What the virtio header says.
        found: u16,
        /// Where the transport header is.
        transport: usize,
    },
    /// The checksum is not where the transport protocol has it.
    #[error(
        "virtio header: the checksum is {found} bytes behind its start, where the protocol has it at {expected}"
    )]
    ChecksumOffset {
        /// What the virtio header says.
        found: u16,
        /// Where the protocol has it.
        expected: u16,
    },
    /// An IP packet whose length is not that of what was handed over.
    #[error("an IP packet of {found} bytes by its header, {packet} in fact")]
    Length {
        /// What the IP header says, header included.
        found: usize,
        /// Bytes of the packet.
        packet: usize,
    },
    /// A UDP length that is not that of the rest of the packet.
    #[error("a UDP length of {found} where {available} bytes follow the IP header")]
    UdpLength {
        /// What the UDP header says.
        found: u16,
        /// Bytes from the UDP header on.
        available: usize,
    },
    /// A fragment: it cannot be segmented again.
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
