//! Frame check sequences at the end of captured frames, which are no part of what this crate delivers.

use crate::batch::Entry;
use crate::bytes::{u16_at, u32_at};

impl Entry {
    /// Leaves out `bytes` of frame check sequence: they end the frame on the wire, and were captured as far as
    /// the captured bytes reach into them.
    #[inline]
    pub(crate) fn without_fcs(mut self, bytes: u8) -> Self {
        self.wire = self.wire.saturating_sub(bytes.into());
        self.captured = self.captured.min(self.wire);
        self
    }
}

/// Bytes of frame check sequence that `if_fcslen` states (draft-ietf-opsawg-pcapng section 4.2). The text says
/// bits, its example ("4") can only be bytes: what is less than one byte of bits is taken for bytes, and other
/// numbers of bits that are no whole bytes for unknown.
pub(crate) fn stated_length(value: u8) -> Option<u8> {
    match value {
        1..8 => Some(value),
        bits => bits.is_multiple_of(8).then_some(bits / 8),
    }
}

/// The length in bytes that the flags of a packet block state, which overrides that of its interface
/// (draft-ietf-opsawg-pcapng section 4.3.1, bits 5 to 8; 0 is not stated).
pub(crate) fn of_packet<const BIG: bool>(mut options: &[u8]) -> Option<u8> {
    const END: u16 = 0;
    const FLAGS: u16 = 2;
    while let (Some(code), Some(length)) = (u16_at::<BIG>(options, 0), u16_at::<BIG>(options, 2)) {
        if code == FLAGS && length == 4 {
            let stated = (u32_at::<BIG>(options, 4)? >> 5 & 0xf) as u8;
            return (stated > 0).then_some(stated);
        }
        if code == END {
            return None;
        }
        options = options.get(4 + usize::from(length).next_multiple_of(4)..)?;
    }
    None
}
