//! Words of a shell command: how a word is quoted, and how a command falls into words.

use super::{ParseError, Program};

/// The word as a POSIX shell takes it for one word, literally (POSIX.1-2024, XCU 2.2.2).
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A program with its arguments as a command.
pub(super) fn command<S: AsRef<str>>(program: Program, arguments: &[S]) -> String {
    let arguments = arguments.iter().map(|word| quoted(word.as_ref()));
    [program.name().to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

/// The words of a command that has no quotes but those that [`quoted`] makes. Whether the shell would do
/// anything else with the command is not looked at: the caller compares the command that it makes of the words with
/// this one.
///
/// # Errors
///
/// A quote is not closed.
pub fn split(command: &str) -> Result<Vec<String>, ParseError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(letter) => word.push(letter),
                        None => return Err(ParseError(format!("a quote is not closed in: {command}"))),
                    }
                }
            }
            '\\' => {
                let next = letters.next();
                word.get_or_insert_default().push(next.unwrap_or('\\'));
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_needs_quotes_has_them() {
        assert_eq!(quoted("net.core.rmem_max=4"), "net.core.rmem_max=4");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$(id)"), "'$(id)'");
        assert!(split("echo 'open").is_err());
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec(".{0,12}", 0..5)) {
            let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            prop_assert_eq!(split(&command.join(" ")), Ok(words));
        }
    }
}
