//! `rxlane nics NAME NAME…`: several devices side by side, or below one another where the terminal is narrow.

use super::{HEAD, QUIET, cell, paragraph};
use crate::output::Output;
use anstyle::Style;
use format::wrapped;
use nic::Profile;
use nic::{Key, Stage};
use std::io::{self, Write};

/// Columns of the claims' names.
const LABEL: usize = 28;
/// Columns that a value needs to be readable.
const READABLE: usize = 16;

/// Prints what is claimed of `profiles`, claim by claim.
pub fn print(out: &mut Output, profiles: &[Profile], keys: &[Key]) -> io::Result<()> {
    let room = (out.width().saturating_sub(LABEL) / profiles.len().max(1)).saturating_sub(2);
    if room < READABLE {
        stacked(out, profiles, keys)?;
    } else {
        columns(out, profiles, room, keys)?;
    }
    writeln!(out)?;
    paragraph(out, "", "?: unknown. --verbose prints everything; one name with --verbose the sources.", QUIET)
}

/// The stages of which anything is claimed, with the claims that at least one of the profiles makes.
fn claimed(profiles: &[Profile], keys: &[Key]) -> Vec<(Stage, Vec<Key>)> {
    let is_claimed = |key: &Key| profiles.iter().any(|profile| profile.claim(*key).is_some());
    let of = |stage: Stage| {
        let keys = keys.iter().copied().filter(|key| key.stage == stage);
        (stage, keys.filter(is_claimed).collect::<Vec<Key>>())
    };
    Stage::all().map(of).filter(|(_, keys)| !keys.is_empty()).collect()
}

fn columns(out: &mut Output, profiles: &[Profile], room: usize, keys: &[Key]) -> io::Result<()> {
    row(out, "", profiles.iter().map(Profile::name).collect(), room, HEAD)?;
    for (stage, keys) in claimed(profiles, keys) {
        writeln!(out, "{}", out.styled(HEAD, stage.name()))?;
        for key in keys {
            let cells = profiles.iter().map(|profile| cell(profile, key)).collect();
            row(out, key.label, cells, room, Style::new())?;
        }
    }
    Ok(())
}

fn row(out: &mut Output, label: &str, cells: Vec<String>, room: usize, style: Style) -> io::Result<()> {
    let label: Vec<String> = wrapped(label, LABEL - 3);
    let cells: Vec<Vec<String>> = cells.iter().map(|cell| wrapped(&breakable(cell, room), room)).collect();
    let lines = cells.iter().map(Vec::len).max().unwrap_or_default().max(label.len());
    for number in 0..lines {
        let label = label.get(number).map_or("", String::as_str);
        let mut text = format!("  {label:<0$}", LABEL - 2);
        for cell in &cells {
            let part = cell.get(number).map_or("", String::as_str);
            text.push_str(&format!("  {part:<room$}"));
        }
        writeln!(out, "{}", out.styled(style, text.trim_end()))?;
    }
    Ok(())
}

fn stacked(out: &mut Output, profiles: &[Profile], keys: &[Key]) -> io::Result<()> {
    let names: Vec<String> = profiles.iter().map(Profile::name).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    writeln!(out, "{}", out.styled(HEAD, names.join(", ")))?;
    for (stage, keys) in claimed(profiles, keys) {
        writeln!(out, "{}", out.styled(HEAD, stage.name()))?;
        for key in keys {
            paragraph(out, "  ", key.label, Style::new())?;
            for (name, profile) in names.iter().zip(profiles) {
                let lead = format!("    {name:<longest$}  ");
                let room = out.width().saturating_sub(lead.chars().count());
                paragraph(out, &lead, &breakable(&cell(profile, key), room.max(READABLE)), Style::new())?;
            }
        }
    }
    Ok(())
}

/// The same text with spaces in words that do not fit a column of `room`: behind a mark where there is one.
fn breakable(text: &str, room: usize) -> String {
    let words = text.split(' ').map(|word| broken(word, room));
    words.collect::<Vec<_>>().join(" ")
}

fn broken(word: &str, room: usize) -> String {
    let mut rest: Vec<char> = word.chars().collect();
    let mut pieces = Vec::new();
    while rest.len() > room {
        let mark = rest.iter().take(room).rposition(|letter| ",;/.-_=:".contains(*letter));
        let cut = match mark {
            Some(mark) => mark + 1,
            // Without a mark to break behind, and never before a comma.
            None if rest.get(room) == Some(&',') => room.saturating_sub(1),
            None => room,
        };
        let tail = rest.split_off(cut.max(1));
        pieces.push(rest.into_iter().collect::<String>());
        rest = tail;
    }
    pieces.push(rest.into_iter().collect());
    pieces.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_break_behind_marks_and_never_before_a_comma() {
        assert_eq!(broken("tcp4,udp4,sctp4", 10), "tcp4,udp4, sctp4");
        assert_eq!(broken("0123456789,x", 10), "012345678 9,x");
        assert_eq!(broken("abcdefgh", 3), "abc def gh");
        assert_eq!(breakable("a bcd", 3), "a bcd");
    }
}
