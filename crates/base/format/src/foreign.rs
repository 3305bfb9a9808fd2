//! Text that somebody else chose: names of files and interfaces, tags of a peer, lines of a paste. Only through here does
//! it reach a terminal, a log, a page or a command to paste. Escaping for HTML is the template's job besides.

use std::fmt::{self, Write};

/// Characters that act on a terminal or have no shape of their own, by which a text can pass for another one: controls,
/// format controls of Unicode (soft hyphen, zero width, direction of writing, tags), separators of lines and paragraphs,
/// private use.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character as u32,
            0xad | 0x061c | 0x115f | 0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f | 0x2028..=0x202e
            | 0x2060..=0x206f | 0x3164 | 0xe000..=0xf8ff | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
            | 0xe0000..=0xe0fff | 0xf0000..)
}

fn show(character: char, text: &mut impl Write) -> fmt::Result {
    match is_hidden(character) {
        true => write!(text, "\\u{{{:x}}}", u32::from(character)),
        false => text.write_char(character),
    }
}

/// The text with its hidden characters spelled out: `a\u{1b}[2J`.
pub fn printable(text: &str) -> String {
    printable_up_to(text, usize::MAX)
}

/// The same of so many characters, and `…` for the rest.
pub fn printable_up_to(text: &str, most: usize) -> String {
    let mut printed = String::with_capacity(text.len().min(most));
    let mut characters = text.chars();
    for character in characters.by_ref().take(most) {
        let _ = show(character, &mut printed);
    }
    if characters.next().is_some() {
        printed.push('…');
    }
    printed
}

/// Text of a JSON document with the hidden characters of its strings spelled out, which means the same (RFC 8259, section 7).
pub fn in_json(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(spelled, "\\u{unit:04x}");
            }
        } else {
            spelled.push(character);
        }
    }
    spelled
}

/// A message of bounded length in one line.
pub fn one_line(message: &str) -> String {
    const LONGEST: usize = 2000;
    printable_up_to(&message.trim().replace(['\n', '\t'], " "), LONGEST)
}

/// The word as a POSIX shell takes it for one word, literally (POSIX.1-2024, XCU 2.2). One with hidden characters is written
/// as `$'a\033[2J'`, so that it is safe to look at as well.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.chars().any(is_hidden) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = String::from("$'");
    for character in word.chars() {
        match character {
            '\'' | '\\' => quoted.extend(['\\', character]),
            character if is_hidden(character) => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            character => quoted.push(character),
        }
    }
    quoted + "'"
}

/// Bytes of a peer as text that can stand between quotes of any kind, also in a script: hidden characters and what is not
/// UTF-8 as `\u{N}` or `\xNN`, quotes, backslashes, `` ` `` and `$` behind a backslash; cut at [`Quotable::MOST`]
/// characters, with `…`.
#[derive(Clone, Copy, Debug)]
pub struct Quotable<'a>(pub &'a [u8]);

impl Quotable<'_> {
    /// The most characters of it.
    pub const MOST: usize = 200;
}

impl fmt::Display for Quotable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = Quotable::MOST;
        let mut is_cut = || {
            let is_cut = left == 0;
            left = left.saturating_sub(1);
            is_cut
        };
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    _ if is_cut() => return f.write_char('…'),
                    '"' | '\'' | '\\' | '`' | '$' => write!(f, "\\{character}")?,
                    character => show(character, f)?,
                }
            }
            for byte in chunk.invalid() {
                match is_cut() {
                    true => return f.write_char('…'),
                    false => write!(f, "\\x{byte:02x}")?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_spelled_out() {
        assert_eq!(printable("wan\u{1b}[2J\u{7}0"), r"wan\u{1b}[2J\u{7}0");
        assert_eq!(printable("a\u{202e}b\u{200e}\u{2066}"), r"a\u{202e}b\u{200e}\u{2066}");
        assert_eq!((printable("größe"), printable("a\nb")), ("größe".to_owned(), r"a\u{a}b".to_owned()));
        assert_eq!((printable_up_to("äöü€", 3), printable_up_to("äöü", 3)), ("äöü…".into(), "äöü".into()));
        assert_eq!(one_line("a\x1b[31m\nb\tc\n"), r"a\u{1b}[31m b c");
        assert_eq!(one_line(&"x".repeat(5000)).chars().count(), 2001);
    }

    #[test]
    fn json_means_the_same_with_its_hidden_characters_spelled_out() {
        assert_eq!(in_json("grö\u{9b}31m\u{202e}\u{e0041}"), r"grö\u009b31m\u202e\udb40\udc41");
    }

    #[test]
    fn a_word_of_a_shell_is_one_word() {
        for (word, text) in [
            ("net.core.rmem_max=4", "net.core.rmem_max=4"),
            ("a b", "'a b'"),
            ("it's; rm -rf ~", r"'it'\''s; rm -rf ~'"),
            ("", "''"),
            ("$(id)", "'$(id)'"),
            ("a\n'\u{202e}", r"$'a\012\'\342\200\256'"),
        ] {
            assert_eq!(quoted(word), text);
        }
    }

    #[test]
    fn bytes_of_a_stranger_become_one_harmless_line() {
        let text = |bytes: &[u8]| Quotable(bytes).to_string();
        assert_eq!((text(b"Access 1"), text("Zürich".as_bytes())), ("Access 1".into(), "Zürich".into()));
        assert_eq!(text(b"a\n\x1b[2Jb\x00"), r"a\u{a}\u{1b}[2Jb\u{0}");
        assert_eq!(text(b"$(reboot) `id` \"x' \\"), "\\$(reboot) \\`id\\` \\\"x\\' \\\\");
        assert_eq!(text(b"\xff\xc3"), "\\xff\\xc3");
        assert_eq!(text("\u{202e}gpj\u{200b}".as_bytes()), "\\u{202e}gpj\\u{200b}");
        let long = text(&[b'x'; 65_535]);
        assert!(long.chars().count() == Quotable::MOST + 1 && long.ends_with('…'));
        for byte in 0..=u8::MAX {
            assert!(!text(&[byte, byte]).chars().any(is_hidden));
        }
    }
}
