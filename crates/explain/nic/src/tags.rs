//! Tag stacks as a profile spells them: `8100`, `88a8.8100`, `*`, `*.**`.

use crate::Refusal;
use std::fmt;
use std::str::FromStr;

/// A pattern of VLAN tags, by their TPIDs, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagPattern {
    tags: Vec<Tag>,
    more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Tpid(u16),
    Any,
}

impl TagPattern {
    /// Whether a frame with these TPIDs (outermost first) is meant.
    pub fn matches(&self, tpids: &[u16]) -> bool {
        let enough = if self.more { tpids.len() > self.tags.len() } else { tpids.len() == self.tags.len() };
        enough
            && self.tags.iter().zip(tpids).all(|(tag, tpid)| match tag {
                Tag::Any => true,
                Tag::Tpid(expected) => expected == tpid,
            })
    }
}

impl FromStr for TagPattern {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<TagPattern, Refusal> {
        let wrong = || {
            let rule = "write TPIDs of four hex digits joined by dots, `*` for any one tag, `**` at the end for one or \
                        more, or `untagged`";
            Refusal(format!("`{text}` is no tag stack: {rule}"))
        };
        if text == "untagged" {
            return Ok(TagPattern { tags: Vec::new(), more: false });
        }
        let mut pattern = TagPattern { tags: Vec::new(), more: false };
        for part in text.split('.') {
            if pattern.more {
                return Err(wrong());
            }
            match part {
                "*" => pattern.tags.push(Tag::Any),
                "**" => pattern.more = true,
                hex if hex.len() == 4 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                    pattern.tags.push(Tag::Tpid(u16::from_str_radix(hex, 16).map_err(|_| wrong())?));
                }
                _ => return Err(wrong()),
            }
        }
        Ok(pattern)
    }
}

impl fmt::Display for TagPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tags.is_empty() && !self.more {
            return f.write_str("untagged");
        }
        for (at, tag) in self.tags.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            match tag {
                Tag::Any => write!(f, "{dot}*")?,
                Tag::Tpid(tpid) => write!(f, "{dot}{tpid:04x}")?,
            }
        }
        match (self.more, self.tags.is_empty()) {
            (true, true) => f.write_str("**"),
            (true, false) => f.write_str(".**"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_they_say() {
        for (text, matched, others) in [
            ("8100", &[&[0x8100][..]][..], &[&[0x88a8][..], &[0x8100, 0x8100]][..]),
            ("88a8.8100", &[&[0x88a8, 0x8100]], &[&[0x8100, 0x88a8]]),
            ("*", &[&[0x9100]], &[&[]]),
            ("**", &[&[0x9100], &[1, 2, 3, 4]], &[&[]]),
            ("8100.*", &[&[0x8100, 0x9100]], &[&[0x8100]]),
            ("8100.**", &[&[0x8100, 0x8100, 0x8100]], &[&[0x8100]]),
            ("untagged", &[&[]], &[&[0x8100]]),
        ] {
            let pattern: TagPattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), text);
            assert!(matched.iter().all(|tags| pattern.matches(tags)), "{text}");
            assert!(!others.iter().any(|tags| pattern.matches(tags)), "{text}");
        }
    }

    #[test]
    fn other_spellings_are_errors() {
        for text in ["", "0x8100", "81000", "8100.", ".8100", "**.8100", "8100,88a8", "+810", "vlan"] {
            assert!(text.parse::<TagPattern>().is_err(), "{text}");
        }
    }
}
