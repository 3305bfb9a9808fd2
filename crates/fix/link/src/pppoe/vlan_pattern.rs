//! Which VLANs of an interface are served.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use wire::Vlans;
use wire::emit::{Encapsulation, PppoeSession};
use wire::ethernet::EtherType;
use wire::vlan::{Tag, Tci};

/// One stack of VLAN tags, or many.
///
/// It is written as VIDs from the outermost to the innermost with dots between, `*` for any: `35`, `100.200`, `100.*`, `*.*`;
/// `none` is no tag, `any` no tag or any [`Vlans::MOST`] at most. Written so, the TPID of a tag may be any of the five; made of
/// [`Vlans`], each is the one that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VlanPattern {
    Any,
    /// Exactly so many tags, outermost first.
    Stack(Vec<Level>),
}

/// What a tag has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its TPID; `None`: any of the five.
    pub tpid: Option<EtherType>,
    /// Its VLAN identifier; `None`: any.
    pub vid: Option<u16>,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VlanPatternError {
    /// A part is no number and no `*`.
    #[error(
        "`{0}` is no VLAN: a number from 0 to 4094 is, or `*` for any of them, with dots from the outermost to the innermost \
         (`100.*`); `none` and `any` stand alone"
    )]
    Vid(String),
    #[error("more than {} VLAN tags are served nowhere", Vlans::MOST)]
    TooMany,
}

impl VlanPattern {
    /// Whether a line is one of those.
    pub fn has(&self, vlans: Vlans) -> bool {
        match self {
            VlanPattern::Any => true,
            VlanPattern::Stack(levels) => {
                levels.len() == vlans.count()
                    && levels.iter().zip(vlans.tags()).all(|(level, tag)| level.has(tag))
            }
        }
    }

    /// What packets of sessions are in on its lines, to see how long frames are; for [`VlanPattern::Any`] without tags, because
    /// nobody says how many there are: each line is a pattern of its own then. Where any TPID will do, the outermost of several tags has that of a service VLAN, which
    /// takes the most room (`frame_size`).
    pub fn encapsulation(&self) -> Encapsulation {
        let levels = if let VlanPattern::Stack(levels) = self { levels.as_slice() } else { &[] };
        let usual = |depth| {
            if depth == 0 && levels.len() > 1 { EtherType::SERVICE_VLAN } else { EtherType::VLAN }
        };
        let tagged = levels.iter().enumerate().try_fold(Encapsulation::NONE, |made, (depth, level)| {
            let tci = Tci::new(0, false, level.vid.unwrap_or_default());
            made.with_tag(Tag { tpid: level.tpid.unwrap_or_else(|| usual(depth)), tci })
        });
        let tagged = tagged.unwrap_or(Encapsulation::NONE);
        tagged.with_pppoe(PppoeSession { session: None, peer: None }).unwrap_or(tagged)
    }

    /// Whether any of its lines has tags.
    pub fn has_tags(&self) -> bool {
        match self {
            VlanPattern::Any => true,
            VlanPattern::Stack(levels) => !levels.is_empty(),
        }
    }
}

impl Level {
    fn has(self, tag: Tag) -> bool {
        self.tpid.is_none_or(|tpid| tpid == tag.tpid) && self.vid.is_none_or(|vid| vid == tag.tci.vid())
    }
}

impl From<Vlans> for VlanPattern {
    fn from(vlans: Vlans) -> VlanPattern {
        let level = |tag: Tag| Level { tpid: Some(tag.tpid), vid: Some(tag.tci.vid()) };
        VlanPattern::Stack(vlans.tags().map(level).collect())
    }
}

impl FromStr for VlanPattern {
    type Err = VlanPatternError;

    fn from_str(text: &str) -> Result<VlanPattern, VlanPatternError> {
        let level = |part: &str| {
            let wrong = || VlanPatternError::Vid(part.to_owned());
            let vid = match part {
                "*" => None,
                _ if part.starts_with('+') => return Err(wrong()),
                _ => Some(part.parse().ok().filter(|vid| *vid <= 4094).ok_or_else(wrong)?),
            };
            Ok(Level { tpid: None, vid })
        };
        match text {
            "any" => Ok(VlanPattern::Any),
            "none" => Ok(VlanPattern::Stack(Vec::new())),
            _ if text.split('.').count() > Vlans::MOST => Err(VlanPatternError::TooMany),
            _ => text.split('.').map(level).collect::<Result<_, _>>().map(VlanPattern::Stack),
        }
    }
}

impl fmt::Display for VlanPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = match self {
            VlanPattern::Any => return f.write_str("any"),
            VlanPattern::Stack(levels) if levels.is_empty() => return f.write_str("none"),
            VlanPattern::Stack(levels) => levels,
        };
        for (depth, level) in levels.iter().enumerate() {
            f.write_str(if depth > 0 { "." } else { "" })?;
            match level.vid {
                Some(vid) => write!(f, "{vid}")?,
                None => f.write_str("*")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::vlans;

    #[test]
    fn patterns_have_the_lines_that_they_say() {
        for (pattern, with, without) in [
            ("any", &["none", "q:1", "ad:1,q:2,q:3,q:4"][..], &[][..]),
            ("none", &["none"], &["q:0"]),
            ("35", &["q:35", "ad:35"], &["none", "q:36", "q:35,q:1"]),
            ("100.*", &["ad:100,q:1", "q:100,q:4094"], &["ad:101,q:1", "ad:100", "ad:100,q:1,q:1"]),
            ("*.*", &["ad:100,q:1"], &["q:1"]),
        ] {
            let parsed: VlanPattern = pattern.parse().expect("a pattern");
            assert_eq!(parsed.to_string(), pattern);
            assert!(with.iter().all(|line| parsed.has(vlans(line))), "{pattern}");
            assert!(!without.iter().any(|line| parsed.has(vlans(line))), "{pattern}");
        }
        let exact = VlanPattern::from(vlans("ad:100,q:1"));
        assert!(exact.has(vlans("ad:100,q:1")) && !exact.has(vlans("q:100,q:1")));
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        for text in ["", "x", "4095", "1.", "-1", "+1", "any.1", "1.2.3.4.5"] {
            let error = text.parse::<VlanPattern>().expect_err(text).to_string();
            assert!(error.contains("VLAN"), "{error}");
        }
    }
}
