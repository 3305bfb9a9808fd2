//! The header in front of every packet of a TUN device that was opened with `IFF_VNET_HDR`.

/// `struct virtio_net_hdr` (virtio 1.2 section 5.1.6; `linux/virtio_net.h`), ten bytes.
///
/// The two bytes more of `virtio_net_hdr_v1` (`TUNSETVNETHDRSZ` 12) are a number of buffers, which TUN neither sets nor
/// reads. Numbers are in the byte order of this machine, as TUN has them unless `TUNSETVNETLE` or `TUNSETVNETBE` says
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NetHeader {
    /// [`NetHeader::NEEDS_CHECKSUM`] and others.
    pub flags: u8,
    /// One of the types below, with or without [`NetHeader::ECN`].
    pub gso_type: u8,
    /// Bytes of all headers, or of what lies in one piece: a hint.
    pub header_length: u16,
    /// Bytes of payload of each segment but the last.
    pub gso_size: u16,
    /// Where the checksum starts to sum, bytes from the start of the packet.
    pub checksum_start: u16,
    /// Where the checksum is written, bytes from there.
    pub checksum_offset: u16,
}

impl NetHeader {
    /// Bytes.
    pub const LENGTH: usize = 10;

    /// Flag: the checksum is partial ([`crate::checksum::complete`]).
    pub const NEEDS_CHECKSUM: u8 = 1;

    /// A packet of its own.
    pub const NONE: u8 = 0;
    /// TCP over IPv4.
    pub const TCP_IPV4: u8 = 1;
    /// UDP fragmentation (UFO), which Linux gave up: one datagram in IP fragments.
    pub const UDP_FRAGMENTS: u8 = 3;
    /// TCP over IPv6.
    pub const TCP_IPV6: u8 = 4;
    /// UDP segmentation (USO): datagrams of equal size over either version.
    pub const UDP: u8 = 5;
    /// Bit in the type: the first segment carries CWR.
    pub const ECN: u8 = 0x80;

    /// Of ten bytes.
    pub const fn parse(bytes: &[u8; NetHeader::LENGTH]) -> NetHeader {
        let [flags, gso_type, a, b, c, d, e, f, g, h] = *bytes;
        NetHeader {
            flags,
            gso_type,
            header_length: u16::from_ne_bytes([a, b]),
            gso_size: u16::from_ne_bytes([c, d]),
            checksum_start: u16::from_ne_bytes([e, f]),
            checksum_offset: u16::from_ne_bytes([g, h]),
        }
    }

    /// The ten bytes.
    pub const fn bytes(&self) -> [u8; NetHeader::LENGTH] {
        let [a, b] = self.header_length.to_ne_bytes();
        let [c, d] = self.gso_size.to_ne_bytes();
        let [e, f] = self.checksum_start.to_ne_bytes();
        let [g, h] = self.checksum_offset.to_ne_bytes();
        [self.flags, self.gso_type, a, b, c, d, e, f, g, h]
    }

    /// Whether the packet is to be segmented.
    pub const fn is_super_packet(&self) -> bool {
        self.gso_type & !NetHeader::ECN != NetHeader::NONE
    }

    /// Whether the checksum is partial.
    pub const fn needs_checksum(&self) -> bool {
        self.flags & NetHeader::NEEDS_CHECKSUM != 0
    }
}
