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
    for (at, line) in lines(left, head, rows).into_iter().enumerate() {
        writeln!(out, "{}", if at == 0 { head_line(out, &line) } else { line })?;
    }
    Ok(())
}

/// The first line of a table, as it is printed.
pub fn head_line(out: &Output, line: &str) -> String {
    out.styled(HEAD, line)
}

/// The lines of [`print()`], the head first.
pub fn lines(left: usize, head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cell.chars().count());
            line.push(' ');
            match column < left {
                true => line.push_str(&format!("{cell}{space} ")),
                false => line.push_str(&format!("{space}{cell} ")),
            }
        }
        line.trim_end().to_owned()
    };
    std::iter::once(&head).chain(rows).map(line).collect()
}

/// A figure with about three digits that count.
pub fn figure(value: f64) -> String {
    match value.abs() {
        // No integer of 64 bits holds what is farther up.
        size if size >= 1e19 => format!("{value:.2e}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_no_integer_holds_are_powers_of_ten() {
        assert_eq!(figure(1e18), "1,000,000,000,000,000,000");
        assert_eq!(figure(1.5e24), "1.50e24");
    }
}
