//! Which VLANs of an interface are meant.

use crate::Vlans;
use crate::emit::{Encapsulation, PppoeSession};
use crate::ethernet::EtherType;
use crate::vlan::{Tag, Tci};
use core::fmt;
use core::str::FromStr;

/// One stack of VLAN tags, or many.
///
/// It is written as VIDs from the outermost to the innermost with dots between, `*` for any, `100-199` for one of these: `35`,
/// `100.200`, `100-199.*`, `*.*`; `none` is no tag, `any` no tag or any [`Vlans::MOST`] at most. Written so, the TPID of a tag may be any
/// of the five; made of [`Vlans`], each is the one that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanPattern {
    /// Whatever tags there are, or none.
    Any,
    /// Exactly so many tags, outermost first; `None` behind the innermost.
    Stack([Option<Level>; Vlans::MOST]),
}

/// What a tag has to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Its TPID; `None`: any of the five.
    pub tpid: Option<EtherType>,
    /// The first and the last VLAN identifier that it may have; `None`: any.
    pub vids: Option<(u16, u16)>,
}

/// Why a text is no pattern. Places of VLANs in it count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanPatternError {
    /// What stands there is none of the notation's.
    Vlan(usize),
    /// The first one of a range is behind the last.
    Backwards(usize),
    /// More than [`Vlans::MOST`].
    TooMany,
}

impl VlanPattern {
    /// No tag.
    pub const NONE: VlanPattern = VlanPattern::Stack([None; Vlans::MOST]);

    /// What each tag has to be, outermost first; none for [`VlanPattern::Any`].
    pub fn levels(&self) -> impl Iterator<Item = Level> + use<> {
        let levels = if let VlanPattern::Stack(levels) = self { *levels } else { Default::default() };
        levels.into_iter().flatten()
    }

    /// Whether a line is one of those.
    pub fn has(&self, vlans: Vlans) -> bool {
        *self == VlanPattern::Any
            || self.levels().count() == vlans.count()
                && self.levels().zip(vlans.tags()).all(|(level, tag)| level.has(tag))
    }

    /// What packets of sessions are in on its lines, to see how long frames are; for [`VlanPattern::Any`] without tags, because
    /// nobody says how many there are: each line is a pattern of its own then. Where any TPID will do, the outermost of several tags has that of a service VLAN, which
    /// takes the most room (`frame_size`).
    pub fn encapsulation(&self) -> Encapsulation {
        let count = self.levels().count();
        let usual = |depth| if depth == 0 && count > 1 { EtherType::SERVICE_VLAN } else { EtherType::VLAN };
        let tagged = self.levels().enumerate().try_fold(Encapsulation::NONE, |made, (depth, level)| {
            let tci = Tci::new(0, false, level.vids.map_or(0, |(first, _)| first));
            made.with_tag(Tag { tpid: level.tpid.unwrap_or_else(|| usual(depth)), tci })
        });
        let tagged = tagged.unwrap_or(Encapsulation::NONE);
        tagged.with_pppoe(PppoeSession { session: None, peer: None }).unwrap_or(tagged)
    }

    /// Whether any of its lines has tags.
    pub fn has_tags(&self) -> bool {
        *self != VlanPattern::NONE
    }
}

impl Level {
    fn has(self, tag: Tag) -> bool {
        self.tpid.is_none_or(|tpid| tpid == tag.tpid)
            && self.vids.is_none_or(|(first, last)| (first..=last).contains(&tag.tci.vid()))
    }
}

impl From<Tag> for Level {
    fn from(tag: Tag) -> Level {
        Level { tpid: Some(tag.tpid), vids: Some((tag.tci.vid(), tag.tci.vid())) }
    }
}

impl From<Vlans> for VlanPattern {
    fn from(vlans: Vlans) -> VlanPattern {
        let mut levels = [None; Vlans::MOST];
        levels.iter_mut().zip(vlans.tags()).for_each(|(level, tag)| *level = Some(tag.into()));
        VlanPattern::Stack(levels)
    }
}

impl FromStr for VlanPattern {
    type Err = VlanPatternError;

    fn from_str(text: &str) -> Result<VlanPattern, VlanPatternError> {
        match text {
            "any" => return Ok(VlanPattern::Any),
            "none" => return Ok(VlanPattern::NONE),
            _ => {}
        }
        let mut levels = [None; Vlans::MOST];
        for (depth, part) in text.split('.').enumerate() {
            let level = levels.get_mut(depth).ok_or(VlanPatternError::TooMany)?;
            let vids = match part {
                "*" => None,
                _ => Some(vids(part).ok_or(VlanPatternError::Vlan(depth + 1))?),
            };
            if vids.is_some_and(|(first, last)| first > last) {
                return Err(VlanPatternError::Backwards(depth + 1));
            }
            *level = Some(Level { tpid: None, vids });
        }
        Ok(VlanPattern::Stack(levels))
    }
}

fn vids(text: &str) -> Option<(u16, u16)> {
    let number = |text: &str| text.parse().ok().filter(|number| *number <= 4094 && !text.starts_with('+'));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((number(first)?, number(last)?))
}

impl fmt::Display for VlanPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            VlanPattern::Any => return f.write_str("any"),
            VlanPattern::NONE => return f.write_str("none"),
            VlanPattern::Stack(_) => {}
        }
        for (depth, level) in self.levels().enumerate() {
            f.write_str(if depth > 0 { "." } else { "" })?;
            match level.vids {
                Some((first, last)) if first == last => write!(f, "{first}")?,
                Some((first, last)) => write!(f, "{first}-{last}")?,
                None => f.write_str("*")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for VlanPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VlanPatternError::Vlan(place) => write!(
                f,
                "what stands for VLAN {place} is no number of one: expected a number from 0 to 4094, two with `-` between for all from the one to the other, or `*` \
                 for any, with dots from the outermost to the innermost (`100-199.*`); `none` and `any` stand alone"
            ),
            VlanPatternError::Backwards(place) => {
                write!(f, "VLAN {place} of it ends before it begins: expected the lower number first")
            }
            VlanPatternError::TooMany => write!(f, "more than {} VLAN tags are served nowhere", Vlans::MOST),
        }
    }
}

impl core::error::Error for VlanPatternError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn vlans(text: &str) -> Vlans {
        let encapsulation: Encapsulation = text.parse().expect("an encapsulation");
        Vlans::of(encapsulation.tags().iter().copied()).expect("few enough")
    }

    #[test]
    fn patterns_have_the_lines_that_they_say() {
        for (pattern, with, without) in [
            ("any", &["none", "q:1", "ad:1,q:2,q:3,q:4"][..], &[][..]),
            ("none", &["none"], &["q:0"]),
            ("35", &["q:35", "ad:35"], &["none", "q:36", "q:35,q:1"]),
            ("100.*", &["ad:100,q:1", "q:100,q:4094"], &["ad:101,q:1", "ad:100", "ad:100,q:1,q:1"]),
            ("*.*", &["ad:100,q:1"], &["q:1"]),
            ("100-199.7", &["ad:100,q:7", "ad:199,q:7"], &["ad:99,q:7", "ad:200,q:7", "ad:150,q:8"]),
        ] {
            let parsed: VlanPattern = pattern.parse().expect("a pattern");
            assert_eq!(parsed.to_string(), pattern);
            assert!(with.iter().all(|line| parsed.has(vlans(line))), "{pattern}");
            assert!(!without.iter().any(|line| parsed.has(vlans(line))), "{pattern}");
        }
        let exact = VlanPattern::from(vlans("ad:100,q:1"));
        assert!(exact.has(vlans("ad:100,q:1")) && !exact.has(vlans("q:100,q:1")));
        assert_eq!("7-7".parse(), "7".parse::<VlanPattern>());
    }

    #[test]
    fn what_is_no_pattern_is_said() {
        for text in
            ["", "x", "4095", "1.", "-1", "+1", "any.1", "1.2.3.4.5", "1-", "1-4095", "9-1", "1-2-3", "*-3"]
        {
            let error = text.parse::<VlanPattern>().expect_err(text).to_string();
            assert!(error.contains("VLAN"), "{error}");
        }
    }
}
