//! What texts say: `texts/*.txt` has texts as people paste them, and the facts that are read from them.
//!
//! A case is a line `=== NAME`, the text (`--- or` between several that say the same), `---`, and the facts. Lines before
//! the first case are for people. `\\` is a backslash, `\r` a carriage return, `\e` an escape, `\0` a zero; `\c` stands
//! at the end of a text that has no last line end. `RXLANE_RECORD=1 cargo test` writes the facts anew, to be read in the
//! diff.

use crate::facts::facts;
use crate::{read, read_all};
use rxlane_host::Snapshot;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

fn files() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/texts");
    let paths = fs::read_dir(folder).expect("the texts").map(|entry| entry.expect("a file").path());
    paths.map(|path| (path.clone(), fs::read_to_string(path).expect("UTF-8"))).collect()
}

/// File and name, and text, of every case.
fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (path, file) in files() {
        let file_name = path.file_stem().expect("a name").to_string_lossy();
        for case in cases(&file).1 {
            texts.extend(case.texts.into_iter().map(|text| (format!("{file_name}: {}", case.name), text)));
        }
    }
    texts
}

#[test]
fn texts_say_what_is_written_below_them() {
    let is_recording = std::env::var_os("RXLANE_RECORD").is_some();
    let mut number = 0;
    for (path, file) in files() {
        let mut written = file.clone();
        for case in cases(&file).1 {
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
fn mail_quotes_and_line_ends_change_nothing() {
    for (name, text) in texts() {
        let quoted: String = text.lines().map(|line| format!("> {line}\r\n")).collect();
        assert_eq!(facts(&read(&quoted)), facts(&read(&text)), "{name}");
    }
}

/// Cases in which a later line says whose a fact is, or a part is counted before the total.
const SETTLED_LATER: [&str; 17] = [
    "a bus address finds",
    "a platform device is known",
    "a pattern, in the order of the shell",
    "a second sample is compared with the first (2)",
    "that was changed",
    "all cpus together",
    "another process in",
    "conntrack: ",
    "ethtool_statistics: ",
    "headings alone",
    "linux tables",
    "of several interfaces",
    "perf report with callers",
    "shares of all cpus",
    "the drivers counters go before",
    "the only ethernet device",
    "two samples and an unknown device",
];

/// What facts say wherever they stand: counters with the first of their samples, settings with the former value, too.
fn claims(text: &str) -> BTreeSet<String> {
    let mut claims = BTreeSet::new();
    for fact in facts(&read(text)) {
        let is_open =
            ["not read ", "log ", "interrupt 57 affinity"].iter().any(|start| fact.starts_with(start))
                || ["\"\": ", "tpid: None", "hardware None"].iter().any(|part| fact.contains(part));
        if is_open {
            continue;
        }
        let (now, former) = fact.split_once(", was ").unwrap_or((&fact, ""));
        let place = |fact: &str| fact.rsplit_once(" @").map_or(fact, |(claim, _)| claim).to_owned();
        let claim = place(now);
        // The key follows on the table.
        let claim = claim.split(", key ").next().unwrap_or_default();
        if let Some((subject, _)) = claim.split_once(": ").filter(|_| !former.is_empty()) {
            claims.insert(format!("{subject}: {}", place(former)));
        }
        let words = claim.split(' ').map(|word| word.split("..").next().unwrap_or(word));
        claims.insert(words.collect::<Vec<_>>().join(" "));
    }
    claims
}

#[test]
fn cut_after_any_line_a_text_says_less_and_nothing_else() {
    let is_settled = |name: &str| SETTLED_LATER.iter().all(|case| !name.contains(case));
    let mut wrong = Vec::new();
    for (name, text) in texts().into_iter().filter(|(name, _)| is_settled(name)) {
        let whole = claims(&text);
        for (end, _) in text.match_indices('\n') {
            let part = claims(&text[..=end]);
            let line = text[..=end].lines().count();
            wrong.extend(part.difference(&whole).map(|claim| format!("{name}, after line {line}: {claim}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Cut anywhere, or with lines of all tools in any order.
#[test]
fn no_text_panics() {
    let texts: Vec<String> = texts().into_iter().map(|(_, text)| text).collect();
    for text in &texts {
        // A long text takes long: not at every letter.
        for (end, _) in text.char_indices().step_by(1 + text.len() / 40) {
            read_all(&[&text[end..], &text[..end]]);
        }
    }
    let drivers = include_str!("statistics_drivers.txt").split(['\n', ';']);
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).chain(drivers).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for _ in 0..150 {
        let mut text = String::new();
        for _ in 0..200 {
            let mut line: Vec<char> = lines[random(lines.len())].chars().collect();
            if random(4) == 0 {
                line.truncate(random(line.len() + 1));
            }
            if random(4) == 0 && !line.is_empty() {
                let at = random(line.len());
                line[at] = ['0', '9', ':', 'é', '[', ' ', '\0', '_'][random(8)];
            }
            text.extend(line);
            text.push(if random(20) == 0 { ' ' } else { '\n' });
        }
        let snapshot = read(&text);
        assert!(snapshot.interfaces.iter().all(|interface| interface.queues.len() <= Snapshot::QUEUES));
    }
}

/// A line that no prompt stands before is not quoted as output of the command before, which prints no such line.
#[test]
fn what_the_command_before_cannot_have_printed_is_not_its_output() {
    let cpu = "%Cpu3  :  0.0 us,  0.0 sy,  0.0 ni,  2.0 id,  0.0 wa,  0.0 hi, 98.0 si,  0.0 st\n";
    let command = |prompt: &str| {
        let text = format!("{prompt}\n2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500\n\n{cpu}{cpu}");
        let snapshot = read(&text);
        let eth0 = snapshot.interface("eth0").expect("eth0").seen.command.as_deref().map(str::to_owned);
        (eth0, snapshot.cpus.load[&3].quote.command.as_deref().map(str::to_owned))
    };
    let ip = Some("ip -4 addr".to_owned());
    assert_eq!(command("root@r:~# ip -4 addr"), (ip, None));
    // Whatever prints several outputs may have printed this one.
    for several in ["ip -4 addr; top -bn1", "ip -4 addr && top -bn1", "dmesg"] {
        let both = (Some(several.to_owned()), Some(several.to_owned()));
        assert_eq!(command(&format!("root@r:~# {several}")), both, "{several}");
    }
    let top = read(&format!("$ top -bn1\n{cpu}"));
    assert_eq!(top.cpus.load[&3].quote.command.as_deref(), Some("top -bn1"));
}
