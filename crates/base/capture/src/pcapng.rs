//! pcapng blocks (draft-ietf-opsawg-pcapng, sections named at each).

use std::sync::Arc;

use crate::batch::{Entry, NO_TIMESTAMP};
use crate::bytes::{u16_at, u32_at};
use crate::walk::{MAX_BLOCK, MAX_INTERFACES, Step, Walker, Window};
use crate::{Interface, LinkType, Reason, TimestampUnit, fcs};

/// Block type of a Section Header Block, the same in either byte order (section 4.1).
pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete Packet Block (appendix A).
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// A type outside those that are read, in the range that section 3.1 reserves for local use.
const UNREAD: u32 = 1 << 31;

/// Type, two lengths: the block of section 3.1 with an empty body.
const SMALLEST: u32 = 12;
/// Bytes of a Section Header Block without options.
pub(crate) const SMALLEST_SECTION: u32 = 28;

/// Most bytes kept of an interface's name: four times `IFNAMSIZ` of Linux, and bounded, because a few kilobytes
/// of packed data can name 65,536 interfaces of 64 KiB each.
const MAX_NAME: usize = 64;

/// A block whose two lengths agree, wholly in the buffer.
struct Block<'a> {
    kind: u32,
    /// From the block type to the trailing length.
    bytes: &'a [u8],
    /// Where it lies in the window's buffer.
    at: usize,
    /// Frames indexed in this walk before it.
    ahead: usize,
    offset: u64,
}

/// Outcome of looking for the block at some place.
enum Found<'a> {
    Block(Block<'a>),
    /// A block that is not read and may be longer than a buffer; the next starts at this offset.
    Beyond(u64),
    Stop(Step),
}

impl Walker {
    pub(crate) fn walk_pcapng(&mut self, window: Window<'_>, entries: &mut Vec<Entry>) -> Step {
        let already = entries.len();
        if self.skipped_past_end(window, 0) {
            return Step::End;
        }
        loop {
            if self.offset >= window.limit {
                return Step::Limit;
            }
            let ahead = entries.len() - already;
            let found = if self.big_endian {
                self.block::<true>(window, ahead)
            } else {
                self.block::<false>(window, ahead)
            };
            let block = match found {
                Found::Block(block) => block,
                Found::Beyond(next) => {
                    self.offset = next;
                    if self.skipped_past_end(window, ahead) {
                        return Step::End;
                    }
                    continue;
                }
                Found::Stop(step) => return step,
            };
            let outcome = if self.big_endian {
                self.take::<true>(&block, entries)
            } else {
                self.take::<false>(&block, entries)
            };
            if let Err(reason) = outcome {
                self.note(block.offset, ahead, reason);
                return Step::Broken;
            }
            self.offset += block.bytes.len() as u64;
        }
    }

    /// Finds the block at `self.offset` and checks its framing. A section header sets the byte order first.
    #[inline(always)]
    fn block<'a, const BIG: bool>(&mut self, window: Window<'a>, ahead: usize) -> Found<'a> {
        let at = usize::try_from(self.offset.saturating_sub(window.base)).unwrap_or(usize::MAX);
        let rest = window.buf.get(at..).unwrap_or_default();
        let (Some(kind), Some(length)) = (u32_at::<BIG>(rest, 0), u32_at::<BIG>(rest, 4)) else {
            return Found::Stop(self.cut_block_header(window, rest.len(), at, 8, ahead));
        };
        if kind == SECTION_HEADER {
            let Some(magic) = u32_at::<BIG>(rest, 8) else {
                return Found::Stop(self.cut_block_header(window, rest.len(), at, 12, ahead));
            };
            if magic == BYTE_ORDER_MAGIC.swap_bytes() {
                self.big_endian = !BIG;
                return Found::Beyond(self.offset);
            }
            if magic != BYTE_ORDER_MAGIC {
                let found = if BIG { magic.swap_bytes() } else { magic };
                self.note(self.offset, ahead, Reason::ByteOrderMagic { found });
                return Found::Stop(Step::Broken);
            }
        }
        if let Some(rule) = length_rule(if self.skip_section { UNREAD } else { kind }, length) {
            self.note(self.offset, ahead, Reason::BlockLength { kind, length, rule });
            return Found::Stop(Step::Broken);
        }
        let Some(bytes) = rest.get(..length as usize) else {
            return self.cut_block(window, rest.len(), at, kind, length, ahead);
        };
        let trailing = u32_at::<BIG>(bytes, length as usize - 4).unwrap_or(0);
        if trailing != length {
            self.note(self.offset, ahead, Reason::BlockTrailer { kind, leading: length, trailing });
            return Found::Stop(Step::Broken);
        }
        Found::Block(Block { kind, bytes, at, ahead, offset: self.offset })
    }

    /// The file ends within a block that is being skipped.
    fn skipped_past_end(&mut self, window: Window<'_>, ahead: usize) -> bool {
        let end = window.base + window.buf.len() as u64;
        let past = window.eof && self.offset > end;
        if past {
            let (start, kind, claimed) = self.skipped;
            let present = end.saturating_sub(start);
            self.note(start, ahead, Reason::BlockCut { kind, claimed, present });
        }
        past
    }

    fn cut_block_header(
        &mut self,
        window: Window<'_>,
        present: usize,
        at: usize,
        needed: u32,
        ahead: usize,
    ) -> Step {
        if !window.eof {
            return Step::Need(at.saturating_add(needed as usize));
        }
        if present > 0 {
            self.note(self.offset, ahead, Reason::HeaderCut { needed, present: present as u64 });
        }
        Step::End
    }

    /// The block is longer than the rest of the buffer.
    fn cut_block<'a>(
        &mut self,
        window: Window<'_>,
        present: usize,
        at: usize,
        kind: u32,
        length: u32,
        ahead: usize,
    ) -> Found<'a> {
        if length > MAX_BLOCK {
            // Its trailing length is not compared: nothing of it is used, and whatever follows is checked.
            self.skipped = (self.offset, kind, length);
            Found::Beyond(self.offset + u64::from(length))
        } else if window.eof {
            let present = present as u64;
            self.note(self.offset, ahead, Reason::BlockCut { kind, claimed: length, present });
            Found::Stop(Step::End)
        } else {
            Found::Stop(Step::Need(at + length as usize))
        }
    }

    /// Takes in one block. Err ends the reading.
    #[inline(always)]
    fn take<const BIG: bool>(&mut self, block: &Block<'_>, entries: &mut Vec<Entry>) -> Result<(), Reason> {
        match block.kind {
            SECTION_HEADER => self.take_section::<BIG>(block),
            _ if self.skip_section => {}
            ENHANCED_PACKET => {
                // Section 4.3: interface, timestamp (2), captured, original, data.
                let interface = u32_at::<BIG>(block.bytes, 8).unwrap_or(0);
                self.take_packet::<BIG>(block, interface, entries);
            }
            PACKET => {
                // Appendix A: interface and drop count share the word; the rest is as above.
                let interface = u16_at::<BIG>(block.bytes, 8).unwrap_or(0);
                self.take_packet::<BIG>(block, interface.into(), entries);
            }
            SIMPLE_PACKET => self.take_simple_packet::<BIG>(block, entries),
            INTERFACE_DESCRIPTION => self.take_interface::<BIG>(block)?,
            // Name resolution, interface statistics, decryption secrets, custom and unknown blocks carry no
            // frames (sections 4.4 to 4.8); section 3.1 has readers skip what they do not know.
            _ => {}
        }
        Ok(())
    }

    #[inline(always)]
    fn take_packet<const BIG: bool>(&mut self, block: &Block<'_>, interface: u32, entries: &mut Vec<Entry>) {
        const DATA: usize = 28;
        let captured = u32_at::<BIG>(block.bytes, 20).unwrap_or(0);
        let original = u32_at::<BIG>(block.bytes, 24).unwrap_or(0);
        let room = (block.bytes.len() - DATA - 4) as u32;
        let described = self.interfaces.len() - self.section_base;
        if interface as usize >= described {
            let reason = Reason::NoInterface { interface, described: described as u32 };
            return self.note(block.offset, block.ahead, reason);
        }
        if captured > room {
            return self.note(block.offset, block.ahead, Reason::PacketTooLong { claimed: captured, room });
        }
        let index = self.section_base + interface as usize;
        let (snaplen, mut fcs) = self
            .interfaces
            .get(index)
            .map_or((0, 0), |interface| (interface.snaplen, interface.fcs_bytes.unwrap_or(0)));
        if original < captured || (snaplen != 0 && captured > snaplen) {
            self.note_lengths(block.offset, block.ahead, captured, original, snaplen);
        }
        // No options, the usual case, end the block behind the padding.
        if room - captured > 3 {
            let options = DATA + (captured as usize).next_multiple_of(4);
            let options = block.bytes.get(options..block.bytes.len() - 4).unwrap_or_default();
            fcs = fcs::of_packet::<BIG>(options).unwrap_or(fcs);
        }
        let entry = Entry {
            offset: (block.at + DATA) as u32,
            captured,
            wire: original.max(captured),
            interface: index as u32,
        };
        entries.push(if fcs == 0 { entry } else { entry.without_fcs(fcs) });
    }

    /// Section 4.4, Simple Packet Block: of the section's first interface, without captured length, which
    /// is the lesser of original length and snapshot length.
    fn take_simple_packet<const BIG: bool>(&mut self, block: &Block<'_>, entries: &mut Vec<Entry>) {
        const DATA: usize = 12;
        let original = u32_at::<BIG>(block.bytes, 8).unwrap_or(0);
        let Some(interface) = self.interfaces.get(self.section_base) else {
            let reason = Reason::NoInterface { interface: 0, described: 0 };
            return self.note(block.offset, block.ahead, reason);
        };
        let captured = if interface.snaplen == 0 { original } else { original.min(interface.snaplen) };
        let room = (block.bytes.len() - DATA - 4) as u32;
        if captured > room {
            return self.note(block.offset, block.ahead, Reason::PacketTooLong { claimed: captured, room });
        }
        let entry = Entry {
            offset: (block.at + DATA) as u32,
            captured,
            wire: original,
            interface: self.section_base as u32 | NO_TIMESTAMP,
        };
        entries.push(entry.without_fcs(interface.fcs_bytes.unwrap_or(0)));
    }

    /// Section 4.1. The section length is for skipping a section unread and of no use here.
    fn take_section<const BIG: bool>(&mut self, block: &Block<'_>) {
        let major = u16_at::<BIG>(block.bytes, 12).unwrap_or(0);
        let minor = u16_at::<BIG>(block.bytes, 14).unwrap_or(0);
        self.sections += 1;
        self.section_base = self.interfaces.len();
        // A later minor version is to be readable by programs that know an earlier one; 1.2 is in use. Section
        // 3.4 wants a section of another version skipped.
        self.skip_section = major != 1;
        if self.skip_section {
            self.note(block.offset, block.ahead, Reason::SectionVersion { major, minor });
        }
    }

    /// Section 4.2.
    fn take_interface<const BIG: bool>(&mut self, block: &Block<'_>) -> Result<(), Reason> {
        if self.interfaces.len() - self.section_base >= MAX_INTERFACES as usize {
            return Err(Reason::TooManyInterfaces { limit: MAX_INTERFACES });
        }
        let link_number = u16_at::<BIG>(block.bytes, 8).unwrap_or(0);
        let mut interface = Interface {
            link_type: LinkType::from_number(link_number),
            link_number,
            snaplen: u32_at::<BIG>(block.bytes, 12).unwrap_or(0),
            fcs_bytes: None,
            name: None,
            section: self.sections.saturating_sub(1),
            unit: TimestampUnit::Decimal(6),
            offset_s: 0,
            big_endian: BIG,
            timestamp_back: 16,
            split_seconds: false,
        };
        let options = block.bytes.get(16..block.bytes.len() - 4).unwrap_or_default();
        if let Err((code, length)) = read_options::<BIG>(options, &mut interface) {
            self.note(block.offset, block.ahead, Reason::OptionLength { code, length });
        }
        Arc::make_mut(&mut self.interfaces).push(interface);
        Ok(())
    }
}

/// The rule of section 3.1, or of the block's own section, that this Block Total Length breaks.
#[inline(always)]
fn length_rule(kind: u32, length: u32) -> Option<&'static str> {
    let (smallest, rule) = match kind {
        ENHANCED_PACKET => (32, "less than the 32 of an empty packet block"),
        PACKET => (32, "less than the 32 of an empty packet block"),
        SIMPLE_PACKET => (16, "less than the 16 of an empty simple packet block"),
        INTERFACE_DESCRIPTION => (20, "less than the 20 of an interface description"),
        SECTION_HEADER => (SMALLEST_SECTION, "less than the 28 of a section header"),
        _ => (SMALLEST, "less than the 12 of an empty block"),
    };
    let read =
        matches!(kind, ENHANCED_PACKET | PACKET | SIMPLE_PACKET | INTERFACE_DESCRIPTION | SECTION_HEADER);
    if length < smallest {
        Some(rule)
    } else if !length.is_multiple_of(4) {
        Some("not a multiple of 4")
    } else if read && length > MAX_BLOCK {
        Some("more than 16 MiB")
    } else {
        None
    }
}

/// Options of an Interface Description Block (sections 3.5 and 4.2). Err names the first one of wrong length;
/// the interface keeps the others, as section 3.5 allows.
fn read_options<const BIG: bool>(mut options: &[u8], interface: &mut Interface) -> Result<(), (u16, u16)> {
    const END: u16 = 0;
    const IF_NAME: u16 = 2;
    const IF_TSRESOL: u16 = 9;
    const IF_FCSLEN: u16 = 13;
    const IF_TSOFFSET: u16 = 14;
    let mut wrong = Ok(());
    while let (Some(code), Some(length)) = (u16_at::<BIG>(options, 0), u16_at::<BIG>(options, 2)) {
        if code == END {
            break;
        }
        let Some(value) = options.get(4..4 + usize::from(length)) else {
            return wrong.and(Err((code, length)));
        };
        match (code, value) {
            (IF_NAME, name) => {
                // A zero ends a string.
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                // Some bytes more, so that a character cut in two lies beyond what is kept.
                let name = String::from_utf8_lossy(name.get(..MAX_NAME + 4).unwrap_or(name));
                interface.name = Some(name[..name.floor_char_boundary(MAX_NAME)].into());
            }
            (IF_TSRESOL, &[resolution]) => {
                let exponent = resolution & 0x7f;
                interface.unit = if resolution & 0x80 == 0 {
                    TimestampUnit::Decimal(exponent)
                } else {
                    TimestampUnit::Binary(exponent)
                };
            }
            (IF_FCSLEN, &[value]) => interface.fcs_bytes = fcs::stated_length(value),
            (IF_TSOFFSET, &[a, b, c, d, e, f, g, h]) => {
                let raw = [a, b, c, d, e, f, g, h];
                interface.offset_s = if BIG { i64::from_be_bytes(raw) } else { i64::from_le_bytes(raw) };
            }
            (IF_TSRESOL | IF_FCSLEN | IF_TSOFFSET, _) => wrong = wrong.and(Err((code, length))),
            _ => {}
        }
        options = options.get(4 + value.len().next_multiple_of(4)..).unwrap_or_default();
    }
    wrong
}

/// Byte order of the section header in `head`, if that is what it is.
pub(crate) fn section_order(head: &[u8]) -> Option<bool> {
    if u32_at::<true>(head, 0)? != SECTION_HEADER {
        return None;
    }
    match u32_at::<true>(head, 8)? {
        BYTE_ORDER_MAGIC => Some(true),
        magic if magic == BYTE_ORDER_MAGIC.swap_bytes() => Some(false),
        _ => None,
    }
}
