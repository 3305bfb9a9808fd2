//! Where a packet came in: what sessions, cookies and rates are bound to besides a MAC address.

use std::fmt;
use wire::emit::MAX_TAGS;
use wire::ethernet::EtherType;
use wire::vlan::{Tag, Tci};

/// The tags of a frame, outermost first, without priority and drop eligibility, in 18 octets: what tells two lines apart.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vlans {
    /// Number of the TPID in the upper four bits, identifier in the lower twelve; zero behind the last.
    tags: [u16; MAX_TAGS],
    count: u8,
}

impl Vlans {
    /// No tags.
    pub const NONE: Vlans = Vlans { tags: [0; MAX_TAGS], count: 0 };

    /// From the tags of a frame. `None`: there are more than [`MAX_TAGS`], or one of a TPID that is none.
    pub fn new(tags: &[Tag]) -> Option<Vlans> {
        let mut vlans = Vlans::NONE;
        for tag in tags.iter().copied() {
            let number = tag.tpid.tpid_number();
            let place = vlans.tags.get_mut(usize::from(vlans.count)).filter(|_| number != 0)?;
            *place = (number as u16) << 12 | tag.tci.vid();
            vlans.count += 1;
        }
        Some(vlans)
    }

    /// The tags, with priority 0.
    pub fn tags(&self) -> impl Iterator<Item = Tag> + '_ {
        self.tags.iter().take(usize::from(self.count)).map(|tag| Tag {
            tpid: EtherType::of_tpid_number(u32::from(tag >> 12)),
            tci: Tci::new(0, false, tag & 0x0fff),
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Octets that differ where the tags do.
    pub(crate) fn octets(&self) -> [u8; 2 * MAX_TAGS] {
        let mut octets = [0; 2 * MAX_TAGS];
        for (place, tag) in octets.as_chunks_mut::<2>().0.iter_mut().zip(self.tags) {
            *place = tag.to_be_bytes();
        }
        octets
    }
}

impl fmt::Display for Vlans {
    /// `0x88a8/100 0x8100/200`; `untagged`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("untagged");
        }
        for (number, tag) in self.tags().enumerate() {
            let space = if number == 0 { "" } else { " " };
            write!(f, "{space}{tag}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Vlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A port and the tags on it: one line, or one that several subscribers share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The caller's number of the port, that of the interface for example.
    pub port: u32,
    /// Tags.
    pub vlans: Vlans,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(tpid: u16, tci: u16) -> Tag {
        Tag { tpid: EtherType(tpid), tci: Tci(tci) }
    }

    #[test]
    fn tags_count_without_their_priority() {
        let stack = [tag(0x88a8, 100), tag(0x8100, 200)];
        let vlans = Vlans::new(&stack).expect("two tags");
        assert_eq!(vlans.tags().collect::<Vec<_>>(), stack);
        assert_eq!(vlans.to_string(), "0x88a8/100 0x8100/200");
        assert_eq!(Vlans::new(&[tag(0x88a8, 0xf064), tag(0x8100, 200)]), Some(vlans));
        for other in [&[tag(0x8100, 100), tag(0x8100, 200)][..], &stack[..1], &stack[1..], &[]] {
            let other = Vlans::new(other).expect("tags");
            assert!(other != vlans && other.octets() != vlans.octets(), "{other}");
        }
        // A priority tag is a tag.
        assert_ne!(Vlans::new(&[tag(0x8100, 0)]), Some(Vlans::NONE));
        assert_eq!(Vlans::new(&[tag(0x8100, 1); 9]), None);
        assert_eq!(Vlans::new(&[tag(0x0800, 1)]), None);
    }
}
