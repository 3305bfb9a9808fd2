//! Words that texts and names do not use, with those that they do.

use crate::run::{Ended, rxlane};
use std::fs;
use std::path::{Path, PathBuf};

/// Words and phrases of texts, and what to write.
const TEXTS: &[(&[&str], &str)] = &[
    (&["adapter of metal", "adapters of metal"], "physical NIC"),
    (&["are told", "is told"], "get, see; or the subject reports"),
    (&["become of"], "happens to"),
    (&["before packets are made of them"], "before the skb is allocated"),
    (&["comes in by", "come in by", "came in by"], "arrives on"),
    (&["dealing", "dealt"], "distribution, distributed"),
    (&["encapsulated line", "encapsulated lines"], "VLAN, QinQ or PPPoE interface"),
    (&["gone"], "removed"),
    (&["hot"], "busy; saturated at 100 %"),
    (&["mend", "mended", "mends"], "fix, fixed, fixes"),
    (&["noted"], "recorded"),
    (&["octet", "octets"], "byte, bytes"),
    (&["put what helped into"], "make it persistent with"),
    (&["spared"], "excluded"),
    (&["take root", "takes root"], "require root"),
    (&["tell", "tells", "told"], "report, show, print"),
    (&["the answer is no"], "negative result"),
    (&["the most wanted"], "in order of preference"),
    (&["the process that stays"], "the daemon"),
    (&["there and back"], "round-trip time (RTT)"),
    (&["unasked"], "unrequested"),
    (&["what became of", "whatever became of"], "by disposition; even if"),
];

/// Words of public names besides, and what to name them.
const NAMES: &[(&[&str], &str)] = &[
    (&["asked", "wanted"], "requested"),
    (&["bell"], "wakeup"),
    (&["bearer", "beside", "desk"], "what it is"),
    (&["clerk"], "queue"),
    (&["crew"], "workers"),
    (&["death"], "stale"),
    (&["lent"], "borrowed"),
    (&["lopsided"], "uneven"),
    (&["scene"], "topology"),
    (&["shown"], "to_text, rendered"),
    (&["strain"], "load"),
    (&["teller"], "writer"),
    (&["whose"], "owner"),
    (&["wish"], "request"),
];

/// The folder of the project.
fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project")
}

/// Files of a folder and those below it with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(files(&entry, extension));
        } else if entry.extension().is_some_and(|own| own == extension) {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// Adds a line for each of the words in a text. Words may be on two lines; `-` and `_` join words to another one.
fn judge(place: &str, text: &str, found: &mut Vec<String>) {
    let words: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .flat_map(|(line, text)| text.split_whitespace().map(move |word| (line + 1, word)))
        .map(|(line, word)| {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && !"-_".contains(c));
            (line, bare.to_lowercase())
        })
        .collect();
    for (not, but) in TEXTS.iter().flat_map(|(all, but)| all.iter().map(move |not| (not, but))) {
        let phrase: Vec<&str> = not.split(' ').collect();
        for window in words.windows(phrase.len()) {
            if window.iter().zip(&phrase).all(|((_, word), part)| word == part) {
                found.push(format!("{place}:{}: `{not}`: write {but}", window[0].0));
            }
        }
    }
}

/// Markdown without what is quoted as code, and without where links lead; lines stay where they are.
fn prose(markdown: &str) -> String {
    let (mut is_code, mut prose) = (false, String::new());
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let outside = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            let mut parts = outside.split("](");
            prose.push_str(parts.next().unwrap_or_default());
            parts.for_each(|part| prose.push_str(part.split_once(')').map_or("", |(_, rest)| rest)));
        }
        prose.push('\n');
    }
    prose
}

#[test]
fn documents_use_the_words_of_the_field() {
    let project = project();
    let mut all: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| project.join(name)).into();
    all.extend(files(&project.join("docs"), "md"));
    let mut found = Vec::new();
    for file in all {
        let text = prose(&fs::read_to_string(&file).expect("a document"));
        let place = file.strip_prefix(&project).unwrap_or(&file).display().to_string();
        judge(&place, &text, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The words of a command and of those below it, as `rxlane` takes them.
fn commands(path: Vec<String>, all: &mut Vec<(String, String)>) {
    let output = rxlane().args(&path).arg("--help").output();
    output.ends(0);
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    let below = help.split_once("\nCommands:\n").map(|(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
    let names: Vec<String> = below
        .unwrap_or_default()
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    all.push((format!("rxlane {} --help", path.join(" ")), help));
    for name in names {
        commands(path.iter().cloned().chain([name]).collect(), all);
    }
}

#[test]
fn help_and_man_pages_use_the_words_of_the_field() {
    let mut all = Vec::new();
    commands(Vec::new(), &mut all);
    assert!(all.len() > 40, "commands are found by `Commands:`");
    let folder = tempfile::tempdir().expect("a folder");
    rxlane().arg("man").arg(folder.path()).output().ends(0);
    for file in files(folder.path(), "1") {
        let page = fs::read_to_string(&file).expect("a page");
        all.push((file.file_name().unwrap_or_default().to_string_lossy().into_owned(), page));
    }
    let mut found = Vec::new();
    all.iter().for_each(|(place, text)| judge(place, text, &mut found));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The string literals of a source file that are more than a name, without what is put in for `{…}`; lines stay where they are.
fn sentences(source: &str) -> String {
    let product = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let (mut text, mut literal) = (String::new(), None::<String>);
    let mut depth = 0;
    for line in product.lines() {
        let is_code = literal.is_none();
        // Comments; names of keys and of arguments, which scripts know.
        if is_code && ["//", "#[serde(", "#[arg("].iter().any(|start| line.trim_start().starts_with(start)) {
            text.push('\n');
            continue;
        }
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match (letter, &mut literal) {
                ('\\', Some(_)) => drop(letters.next()),
                // A quotation mark as a character is none.
                ('\'', None) if letters.peek() == Some(&'"') => drop(letters.next()),
                ('"', Some(_)) => text.extend(literal.take().filter(|literal| literal.contains(' '))),
                ('"', None) => (literal, depth) = (Some(String::new()), 0),
                ('{', Some(_)) => depth += 1,
                ('}', Some(_)) if depth > 0 => depth -= 1,
                (_, Some(literal)) if depth == 0 => literal.push(letter),
                _ => {}
            }
        }
        literal.as_mut().unwrap_or(&mut text).push('\n');
    }
    text
}

#[test]
fn sentences_use_the_words_of_the_field() {
    let project = project();
    let mut found = Vec::new();
    for file in files(&project.join("crates"), "rs") {
        let place = file.strip_prefix(&project).unwrap_or(&file).display().to_string();
        if !["/tests", "/examples/", "testkit/"].iter().any(|part| place.contains(part)) {
            // A line of bundles, which are read long after they were written.
            let source = fs::read_to_string(&file).expect("a source").replace("nothing to tell", "");
            judge(&place, &sentences(&source), &mut found);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The words of a name in snake case or camel case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
        if letter != '_' {
            words.last_mut().expect("one").extend(letter.to_lowercase());
        }
    }
    words
}

/// Public names of a source file with their lines. A field that is a key of JSON or TOML keeps the name that scripts know.
fn public_names(source: &str) -> Vec<(usize, &str)> {
    const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "mod", "const", "static", "type", "union"];
    let mut names = Vec::new();
    let (mut derives_serde, mut is_data) = (false, false);
    for (number, line) in source.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[derive(") {
            derives_serde = line.contains("Serialize") || line.contains("Deserialize");
        }
        let Some(item) = line.strip_prefix("pub ") else {
            let bare = line
                .strip_prefix("pub(")
                .map_or(line, |rest| rest.split_once(") ").map_or("", |(_, rest)| rest));
            if bare.starts_with("struct ") || bare.starts_with("enum ") {
                is_data = std::mem::take(&mut derives_serde);
            }
            continue;
        };
        let mut parts =
            item.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty());
        let first = parts.next().unwrap_or_default();
        let qualifiers = ["const", "unsafe", "async", "extern", "C", "mut", "fn"];
        if ITEMS.contains(&first) || qualifiers.contains(&first) {
            let name = parts.find(|part| !qualifiers.contains(part));
            names.extend(name.map(|name| (number + 1, name)));
            if ["struct", "enum"].contains(&first) {
                is_data = std::mem::take(&mut derives_serde);
            }
        } else if !is_data && item[first.len()..].starts_with(':') {
            names.push((number + 1, first));
        }
    }
    names
}

#[test]
fn public_names_use_the_words_of_the_field() {
    let source = "#[derive(Serialize)]\npub struct Shown {\n    pub octets: u64,\n}\n\npub struct Wish {\n    pub beside: u8,\n}\npub const fn is_hot() {}\n";
    let names: Vec<&str> = public_names(source).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["Shown", "Wish", "beside", "is_hot"]);
    let project = project();
    let mut found = Vec::new();
    for file in files(&project.join("crates"), "rs") {
        let place = file.strip_prefix(&project).unwrap_or(&file).display().to_string();
        if !place.contains("/src/") || place.contains("/tests/") || place.ends_with("tests.rs") {
            continue;
        }
        let source = fs::read_to_string(&file).expect("a source");
        for (line, name) in public_names(&source) {
            let words = words(name);
            let wrong =
                TEXTS.iter().chain(NAMES).flat_map(|(all, but)| all.iter().map(move |not| (not, but)));
            let wrong = wrong.filter(|(not, _)| words.iter().any(|word| word == **not));
            found
                .extend(wrong.map(|(not, but)| format!("{place}:{line}: {name} has `{not}`: name it {but}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
