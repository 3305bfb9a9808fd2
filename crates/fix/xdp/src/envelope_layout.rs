//! What the program that keeps an envelope and its loader share. `bpf/envelope.h` says the same in C; a test compares
//! both from the object's BTF.

/// What a frame is, by the headers for which it gets room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Kind {
    /// Neither tags nor PPPoE: 14 bytes of headers.
    Untagged = 0,
    /// Tags of any TPID: 4 bytes more for each of at most [`TAGS_MOST`].
    Tagged = 1,
    /// A PPPoE session packet under whatever tags: 8 bytes more, PPPoE and the PPP protocol.
    Pppoe = 2,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Untagged, Kind::Tagged, Kind::Pppoe];

    /// The word of output.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Untagged => "untagged",
            Kind::Tagged => "tagged",
            Kind::Pppoe => "pppoe",
        }
    }

    /// The word for a frame of this kind that was refused.
    pub const fn refusal(self) -> &'static str {
        match self {
            Kind::Untagged => "untagged-long",
            Kind::Tagged => "tagged-long",
            Kind::Pppoe => "pppoe-long",
        }
    }
}

/// Tags that are headers; what follows is payload.
pub const TAGS_MOST: usize = 8;

/// Places for kinds in [`Counts`]; the one behind [`Kind::ALL`] is spare.
pub const PLACES: usize = 4;

/// The one entry of the per-CPU array [`COUNTS`], of the CPU that receives. Host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Frames that went on to the stack, by [`Kind`].
    pub passed: [u64; PLACES],
    /// Frames that were dropped, by [`Kind`].
    pub refused: [u64; PLACES],
}

/// Name of the map with the counters, in C and under bpffs.
pub const COUNTS: &str = "ENVELOPE";

/// Read-only data: bytes of payload that a frame may have, 32 bits in host byte order.
pub const LIMIT: &str = "LIMIT";
