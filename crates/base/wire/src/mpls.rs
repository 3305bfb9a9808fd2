//! MPLS label stacks (RFC 3032 section 2.1).

/// Bytes of one label stack entry.
pub const ENTRY_LENGTH: usize = 4;

/// One label stack entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry(pub u32);

impl Entry {
    /// From its four parts; bits that do not fit their field are cut off.
    pub const fn new(label: u32, traffic_class: u8, bottom: bool, ttl: u8) -> Entry {
        Entry(
            (label & 0xf_ffff) << 12 | ((traffic_class & 7) as u32) << 9 | (bottom as u32) << 8 | ttl as u32,
        )
    }

    /// From the four bytes of the wire.
    #[inline(always)]
    pub const fn of(bytes: [u8; ENTRY_LENGTH]) -> Entry {
        Entry(u32::from_be_bytes(bytes))
    }

    /// Label value, 20 bits.
    pub const fn label(self) -> u32 {
        self.0 >> 12
    }

    /// Traffic class (RFC 5462), 3 bits.
    pub const fn traffic_class(self) -> u8 {
        (self.0 >> 9 & 7) as u8
    }

    /// Bottom of stack.
    #[inline(always)]
    pub const fn is_bottom(self) -> bool {
        self.0 & 0x100 != 0
    }

    /// Time to live.
    pub const fn ttl(self) -> u8 {
        self.0 as u8
    }
}

/// What a label stack carries, guessed from the first nibble as routers do (RFC 4928 section 3): an IP
/// version, or something that only the label's owner knows (a pseudowire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// IPv4 packet.
    Ipv4,
    /// IPv6 packet.
    Ipv6,
    /// Not given by the frame.
    Unknown,
}

impl Payload {
    /// From the first byte behind the bottom of the stack.
    #[inline]
    pub const fn of(first: u8) -> Payload {
        match first >> 4 {
            4 => Payload::Ipv4,
            6 => Payload::Ipv6,
            _ => Payload::Unknown,
        }
    }
}
