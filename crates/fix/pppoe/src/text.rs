//! What a peer said, for people, logs and scripts: tags, names and messages are octets of a stranger's choice.

use std::fmt::{self, Write};

/// The most characters that are shown of one such string.
pub const MOST: usize = 200;

/// Shows octets as text: printable characters as they are, everything else (control characters, what is no UTF-8, characters
/// that change direction or have no width) as `\xNN` or `\u{N}`, quotes and backslashes behind a backslash; cut at [`MOST`]
/// characters, with `…`. What comes out is one line, can be put between quotes, and moves no terminal's cursor.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = MOST;
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if left == 0 {
                    return f.write_char('…');
                }
                left -= 1;
                show(character, f)?;
            }
            for octet in chunk.invalid() {
                if left == 0 {
                    return f.write_char('…');
                }
                left -= 1;
                write!(f, "\\x{octet:02x}")?;
            }
        }
        Ok(())
    }
}

fn show(character: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match character {
        '"' | '\'' | '\\' | '`' | '$' => write!(f, "\\{character}"),
        ' '..='~' => f.write_char(character),
        character if character.is_control() || is_unseen(character) => {
            write!(f, "\\u{{{:x}}}", u32::from(character))
        }
        character => f.write_char(character),
    }
}

/// Characters without a shape of their own, by which text can be made to look like other text: format controls of Unicode
/// (soft hyphen, zero width, direction, tags), line and paragraph separators, private use.
const fn is_unseen(character: char) -> bool {
    matches!(character as u32,
        0xad | 0x061c | 0x115f | 0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f | 0x2028..=0x202e
        | 0x2060..=0x206f | 0x3164 | 0xe000..=0xf8ff | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
        | 0xe0000..=0xe0fff | 0xf0000..)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack 21: strings of a peer that reach logs, terminals and scripts.
    #[test]
    fn hostile_strings_become_one_harmless_line() {
        let shown = |octets: &[u8]| Shown(octets).to_string();
        assert_eq!(shown(b"Access 1"), "Access 1");
        assert_eq!(shown("Zürich".as_bytes()), "Zürich");
        assert_eq!(shown(b"a\n\x1b[2Jb\x00"), "a\\u{a}\\u{1b}[2Jb\\u{0}");
        assert_eq!(shown(b"$(reboot) `id` \"x' \\"), "\\$(reboot) \\`id\\` \\\"x\\' \\\\");
        assert_eq!(shown(b"\xff\xc3"), "\\xff\\xc3");
        assert_eq!(shown("\u{202e}gpj\u{200b}".as_bytes()), "\\u{202e}gpj\\u{200b}");
        let long = shown(&[b'x'; 65_535]);
        assert_eq!(long.chars().count(), MOST + 1);
        assert!(long.ends_with('…'));
        for octet in 0..=u8::MAX {
            assert!(!shown(&[octet, octet]).chars().any(char::is_control));
        }
    }
}
