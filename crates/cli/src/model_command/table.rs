//! Tables of figures: the first column to the left, numbers to the right.

use crate::output::Output;
use anstyle::Style;
use std::io::{self, Write};

const HEAD: Style = Style::new().bold();

/// A heading.
pub fn heading(out: &mut Output, text: &str) -> io::Result<()> {
    let text = out.styled(HEAD, text);
    writeln!(out, "\n{text}")
}

/// Rows below a head; the first `left` columns are texts.
pub fn print(out: &mut Output, left: usize, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    for (at, row) in std::iter::once(&head).chain(rows).enumerate() {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cell.chars().count());
            line.push(' ');
            match column < left {
                true => line.push_str(&format!("{cell}{space} ")),
                false => line.push_str(&format!("{space}{cell} ")),
            }
        }
        let line = line.trim_end();
        writeln!(out, "{}", if at == 0 { out.styled(HEAD, line) } else { line.to_owned() })?;
    }
    Ok(())
}

/// A figure with about three digits that count.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => explain::grouped(value.round().abs() as u64),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Picoseconds in a unit that suits them.
pub fn duration(picoseconds: Option<u64>) -> String {
    let Some(time) = picoseconds else { return "–".to_owned() };
    match time as f64 {
        time if time < 1e6 => format!("{} ns", figure(time / 1e3)),
        time if time < 1e9 => format!("{} µs", figure(time / 1e6)),
        time if time < 1e12 => format!("{} ms", figure(time / 1e9)),
        time => format!("{} s", figure(time / 1e12)),
    }
}
