//! What texts say: `texts/*.txt` has texts as people paste them, and the facts that are read from them.
//!
//! A case is a line `=== NAME`, the text (`--- or` between several that say the same), `---`, and the facts. Lines before
//! the first case are for people. `\\` is a backslash, `\r` a carriage return, `\e` an escape, `\0` a zero; `\c` stands
//! at the end of a text that has no last line end. `RXLANE_RECORD=1 cargo test` writes the facts anew, to be read in the
//! diff.

use crate::facts::facts;
use crate::read;
use std::fs;
use std::path::Path;

struct Case {
    name: String,
    texts: Vec<String>,
    facts: Vec<String>,
}

fn unescaped(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let mut letters = line.chars();
        let mut is_cut = false;
        while let Some(letter) = letters.next() {
            match (letter, letter == '\\') {
                (_, true) => match letters.next() {
                    Some('r') => text.push('\r'),
                    Some('e') => text.push('\u{1b}'),
                    Some('0') => text.push('\0'),
                    Some('c') => is_cut = true,
                    other => text.extend(other),
                },
                (letter, false) => text.push(letter),
            }
        }
        if !is_cut {
            text.push('\n');
        }
    }
    text
}

/// The lines before the first case, and the cases.
fn cases(file: &str) -> (&str, Vec<Case>) {
    let (head, rest) = file.split_once("=== ").unwrap_or((file, ""));
    let cases = rest.split("\n=== ").map(|case| {
        let mut lines = case.lines();
        let name = lines.next().expect("a name").to_owned();
        let lines: Vec<&str> = lines.collect();
        let end =
            lines.iter().position(|line| *line == "---").unwrap_or_else(|| panic!("{name} has no facts"));
        let (texts, facts) = lines.split_at(end);
        let texts = texts.split(|line| *line == "--- or").map(unescaped).collect();
        let facts = facts.iter().skip(1).filter(|line| !line.is_empty()).map(|fact| (*fact).to_owned());
        Case { name, texts, facts: facts.collect() }
    });
    (head, cases.collect())
}

#[test]
fn texts_say_what_is_written_below_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/texts");
    let is_recording = std::env::var_os("RXLANE_RECORD").is_some();
    let mut number = 0;
    for entry in fs::read_dir(folder).expect("the texts") {
        let path = entry.expect("a file").path();
        let file = fs::read_to_string(&path).expect("UTF-8");
        let (_, cases) = cases(&file);
        let mut written = file.clone();
        for case in cases {
            for text in &case.texts {
                number += 1;
                let said = facts(&read(text));
                if is_recording {
                    let begin = written.find(&format!("=== {}\n", case.name)).expect("the case");
                    let facts = begin + written[begin..].find("\n---\n").expect("facts") + 5;
                    let end = written[facts - 1..].find("\n=== ").map_or(written.len(), |end| facts + end);
                    let lines: String = said.iter().map(|fact| format!("{fact}\n")).collect();
                    written.replace_range(facts..end, &lines);
                } else {
                    assert_eq!(said, case.facts, "{}: {}:\n{text}", path.display(), case.name);
                }
            }
        }
        if is_recording {
            fs::write(&path, written).expect("written");
        }
    }
    assert!(number > 100, "{number}");
}

#[test]
fn no_part_of_a_text_panics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/texts");
    for entry in fs::read_dir(folder).expect("the texts") {
        let file = fs::read_to_string(entry.expect("a file").path()).expect("UTF-8");
        for text in cases(&file).1.iter().flat_map(|case| &case.texts) {
            // A long text takes long: not at every letter.
            for (end, _) in text.char_indices().step_by(1 + text.len() / 300) {
                read(&text[..end]);
            }
        }
    }
}
