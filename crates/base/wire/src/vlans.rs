//! The VLANs that a line is in: the tags of its frames without what may change from frame to frame.

use crate::ethernet::EtherType;
use crate::vlan::{Tag, Tci};
use core::fmt;

/// TPID and VID of each tag of a frame, outermost first, at most four: what distinguishes lines on one interface. Priority and
/// drop eligibility are no part of it. Eight bytes, to be compared and hashed at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Vlans(
    /// The outermost tag in the highest 16 bits: TPID number ([`EtherType::tpid_number`]) in three, VID in the lowest twelve;
    /// zero behind the innermost.
    u64,
);

const WIDTH: u32 = 16;

impl Vlans {
    /// No tag.
    pub const NONE: Vlans = Vlans(0);
    /// The most tags.
    pub const MOST: usize = 4;

    /// Those of `tags`, outermost first; `None` where there are more than [`Vlans::MOST`], or a TPID is none of the five.
    pub fn of(tags: impl IntoIterator<Item = Tag>) -> Option<Vlans> {
        tags.into_iter().try_fold(Vlans::NONE, Vlans::with)
    }

    /// With one more tag inside; `None` as for [`Vlans::of`].
    #[inline]
    pub fn with(self, tag: Tag) -> Option<Vlans> {
        let number = tag.tpid.tpid_number();
        let count = self.count() as u32;
        if number == 0 || count >= Vlans::MOST as u32 {
            return None;
        }
        let level = u64::from(number) << 12 | u64::from(tag.tci.vid());
        Some(Vlans(self.0 | level << ((Vlans::MOST as u32 - 1 - count) * WIDTH)))
    }

    /// How many tags.
    #[inline]
    pub const fn count(self) -> usize {
        // Every tag has a bit set, and behind the innermost there is none.
        (64 - self.0.trailing_zeros()).div_ceil(WIDTH) as usize
    }

    /// The tags, outermost first, of priority 0.
    pub fn tags(self) -> impl Iterator<Item = Tag> {
        (0..self.count() as u32).map(move |depth| {
            let level = (self.0 >> ((Vlans::MOST as u32 - 1 - depth) * WIDTH)) as u16;
            Tag { tpid: EtherType::of_tpid_number(u32::from(level >> 12)), tci: Tci::new(0, false, level) }
        })
    }

    /// As a number, different for different lines.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Of such a [number](Vlans::number).
    #[inline]
    pub const fn of_number(number: u64) -> Vlans {
        Vlans(number)
    }
}

impl fmt::Display for Vlans {
    /// `ad:100,q:200`, as an encapsulation is written; `none` without tags.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count() == 0 {
            return f.write_str("none");
        }
        for (depth, tag) in self.tags().enumerate() {
            let comma = if depth > 0 { "," } else { "" };
            match tag.tpid {
                EtherType::VLAN => write!(f, "{comma}q:{}", tag.tci.vid())?,
                EtherType::SERVICE_VLAN => write!(f, "{comma}ad:{}", tag.tci.vid())?,
                EtherType(tpid) => write!(f, "{comma}{tpid:#06x}:{}", tag.tci.vid())?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Vlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Encapsulation;
    use std::string::ToString;

    #[test]
    fn tags_come_back_and_priority_does_not_matter() {
        for text in ["none", "q:0", "q:35", "ad:100,q:200", "0x9100:4094,q:1,q:2,0x9300:3"] {
            let encapsulation: Encapsulation = text.parse().expect("an encapsulation");
            let vlans = Vlans::of(encapsulation.tags().iter().copied()).expect("few enough");
            assert_eq!(vlans.to_string(), text);
            assert!(vlans.tags().eq(encapsulation.tags().iter().copied()), "{text}");
            assert_eq!(vlans.count(), encapsulation.tags().len());
            let urgent = vlans.tags().map(|tag| Tag { tci: Tci::new(7, true, tag.tci.vid()), ..tag });
            assert_eq!(Vlans::of(urgent), Some(vlans));
            assert_eq!(Vlans::of_number(vlans.number()), vlans);
        }
    }

    #[test]
    fn a_fifth_tag_and_an_unknown_tpid_are_none() {
        let tag = Tag { tpid: EtherType::VLAN, tci: Tci(1) };
        assert!(Vlans::of([tag; 4]).is_some() && Vlans::of([tag; 5]).is_none());
        assert_eq!(Vlans::of([Tag { tpid: EtherType::IPV4, ..tag }]), None);
    }

    #[test]
    fn lines_differ_by_depth_vid_and_tpid() {
        let all = ["none", "q:0", "q:0,q:0", "q:1", "ad:1", "q:1,q:0", "q:0,q:1"];
        let numbers = all.map(|text| {
            let encapsulation: Encapsulation = text.parse().expect("an encapsulation");
            Vlans::of(encapsulation.tags().iter().copied()).map(Vlans::number)
        });
        for (place, number) in numbers.iter().enumerate() {
            assert!(number.is_some() && !numbers[..place].contains(number), "{}", all[place]);
        }
    }
}
