//! Classic pcap records (draft-ietf-opsawg-pcap sections 4 and 5).

use crate::batch::Entry;
use crate::bytes::{u16_at, u32_at};
use crate::walk::{Kind, MAX_CAPTURED, Step, Walker, Window};
use crate::{Interface, LinkType, Reason, TimestampUnit};

/// Bytes of the file header.
pub(crate) const FILE_HEADER: usize = 24;

/// How the two lengths of a record stand, which changed before version 2.4 (libpcap, `sf-pcap.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// Captured, then original: version 2.4.
    InOrder,
    /// Original, then captured: before version 2.3.
    Swapped,
    /// Version 2.3, written both ways: the smaller one is the captured length.
    Either,
}

/// What of the record header depends on the variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Bytes of a record header: 16, or 24 in Kuznetzov's variant, which appends interface index, protocol
    /// and packet type.
    pub(crate) header: u8,
    pub(crate) lengths: Lengths,
    pub(crate) snaplen: u32,
}

/// A variant of the format by its magic number.
#[derive(Clone, Copy)]
pub(crate) struct Magic {
    pub(crate) big_endian: bool,
    unit: TimestampUnit,
    header: u8,
}

/// The variant whose file starts with these bytes.
pub(crate) fn magic(first: [u8; 4]) -> Option<Magic> {
    let (unit, header, big_endian) = match u32::from_be_bytes(first) {
        0xa1b2_c3d4 => (TimestampUnit::Decimal(6), 16, true),
        0xd4c3_b2a1 => (TimestampUnit::Decimal(6), 16, false),
        0xa1b2_3c4d => (TimestampUnit::Decimal(9), 16, true),
        0x4d3c_b2a1 => (TimestampUnit::Decimal(9), 16, false),
        0xa1b2_cd34 => (TimestampUnit::Decimal(6), 24, true),
        0x34cd_b2a1 => (TimestampUnit::Decimal(6), 24, false),
        _ => return None,
    };
    Some(Magic { big_endian, unit, header })
}

/// Reads the file header behind the magic. Err names what is not supported; `None` inside means the header is
/// cut off.
pub(crate) fn file_header(magic: Magic, head: &[u8]) -> Result<Option<(Kind, Interface)>, String> {
    let fields = if magic.big_endian { fields::<true>(head) } else { fields::<false>(head) };
    let Some((major, minor, snaplen, link)) = fields else { return Ok(None) };
    let lengths = match (major, minor) {
        (2, 0..=2) => Lengths::Swapped,
        (2, 3) => Lengths::Either,
        // 543.0 is how a DG/UX tcpdump wrote 2.4.
        (2, 4) | (543, 0) => Lengths::InOrder,
        _ => return Err(format!("pcap version {major}.{minor}")),
    };
    // Section 4: R and Reserved3, which a reader should treat as an error if set.
    if link & 0x0bff_0000 != 0 {
        return Err(format!("a pcap header with reserved bits in its link type ({link:#010x})"));
    }
    let link_number = link as u16;
    let interface = Interface {
        link_type: LinkType::from_number(link_number),
        link_number,
        snaplen,
        // Section 4, LinkType and additional information: bit P says that the uppermost four bits hold the
        // length of the frame check sequence, in units of two bytes.
        fcs_bytes: (link & 0x0400_0000 != 0).then_some((link >> 28) as u8 * 2),
        name: None,
        section: 0,
        unit: magic.unit,
        offset_s: 0,
        big_endian: magic.big_endian,
        timestamp_back: magic.header,
        split_seconds: true,
    };
    Ok(Some((Kind::Pcap(Layout { header: magic.header, lengths, snaplen }), interface)))
}

fn fields<const BIG: bool>(head: &[u8]) -> Option<(u16, u16, u32, u32)> {
    // Bytes 8 to 15 are the obsolete time zone and accuracy, which section 4 has readers ignore.
    Some((
        u16_at::<BIG>(head, 4)?,
        u16_at::<BIG>(head, 6)?,
        u32_at::<BIG>(head, 16)?,
        u32_at::<BIG>(head, 20)?,
    ))
}

impl Walker {
    pub(crate) fn walk_pcap<const BIG: bool>(
        &mut self,
        layout: Layout,
        window: Window<'_>,
        entries: &mut Vec<Entry>,
    ) -> Step {
        let already = entries.len();
        let Window { buf, base, .. } = window;
        let header = usize::from(layout.header);
        // One comparison covers both the limit that ends the walk and the one worth a note.
        let usual = if layout.snaplen == 0 { MAX_CAPTURED } else { layout.snaplen.min(MAX_CAPTURED) };
        let limit = usize::try_from(window.limit.saturating_sub(base)).unwrap_or(usize::MAX);
        let mut at = usize::try_from(self.offset.saturating_sub(base)).unwrap_or(usize::MAX);
        let step = loop {
            if at >= limit {
                break Step::Limit;
            }
            let data = at + header;
            let (Some(first), Some(second)) = (u32_at::<BIG>(buf, at + 8), u32_at::<BIG>(buf, at + 12))
            else {
                break self.cut_header(window, at, header, entries.len() - already);
            };
            let (captured, wire) = match layout.lengths {
                Lengths::InOrder => (first, second),
                Lengths::Swapped => (second, first),
                Lengths::Either => (first.min(second), first.max(second)),
            };
            if captured > usual || wire < captured {
                let here = base + at as u64;
                if captured > MAX_CAPTURED {
                    let reason = Reason::RecordTooLong { claimed: captured, limit: MAX_CAPTURED };
                    self.note(here, entries.len() - already, reason);
                    break Step::Broken;
                }
                if data + captured as usize <= buf.len() {
                    self.note_lengths(here, entries.len() - already, captured, wire, layout.snaplen);
                }
            }
            let end = data + captured as usize;
            if end > buf.len() {
                if !window.eof {
                    break Step::Need(end);
                }
                if data > buf.len() {
                    break self.cut_header(window, at, header, entries.len() - already);
                }
                let present = (buf.len() - data) as u64;
                let here = base + at as u64;
                self.note(here, entries.len() - already, Reason::RecordCut { claimed: captured, present });
                break Step::End;
            }
            entries.push(Entry { offset: data as u32, captured, wire: wire.max(captured), interface: 0 });
            at = end;
        };
        self.offset = base + at as u64;
        let fcs = self.interfaces.first().and_then(|interface| interface.fcs_bytes).unwrap_or(0);
        if fcs > 0 {
            for entry in entries.iter_mut().skip(already) {
                *entry = entry.without_fcs(fcs);
            }
        }
        step
    }

    /// The buffer ends within the header at `at`.
    fn cut_header(&mut self, window: Window<'_>, at: usize, header: usize, ahead: usize) -> Step {
        if !window.eof {
            return Step::Need(at + header);
        }
        let present = window.buf.len().saturating_sub(at) as u64;
        if present > 0 {
            let reason = Reason::HeaderCut { needed: header as u32, present };
            self.note(window.base + at as u64, ahead, reason);
        }
        Step::End
    }

    /// Notes lengths that contradict each other, once per file and kind.
    pub(crate) fn note_lengths(&mut self, at: u64, ahead: usize, captured: u32, original: u32, snaplen: u32) {
        if snaplen != 0 && captured > snaplen && !self.reported_snaplen {
            self.reported_snaplen = true;
            self.note(at, ahead, Reason::AboveSnaplen { captured, snaplen });
        }
        if captured > original && !self.reported_original {
            self.reported_original = true;
            self.note(at, ahead, Reason::AboveOriginal { captured, original });
        }
    }
}
