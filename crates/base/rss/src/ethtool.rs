//! The indirection table as `ethtool -x` prints it.

use crate::{HashKey, IndirectionTable, PrintedTableError, TableShape};
use std::fmt::Write;

/// What `ethtool -x` says of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedTable {
    /// The interface, as the first line names it.
    pub interface: String,
    /// Receive rings of the interface; the table may name fewer.
    pub rings: u32,
    /// The table, in entries of 16 bits: the width is not printed.
    pub table: IndirectionTable,
    /// The hash key; `None` where it is not printed or the driver does not report it.
    pub key: Option<HashKey>,
    /// The hash function that is on (`toeplitz`, `xor`, `crc32`); `None` where the text does not say.
    pub function: Option<String>,
}

const HEADER: &str = "RX flow hash indirection table for ";
const ROW: usize = 8;

impl PrintedTable {
    /// Reads the output of `ethtool -x`; lines before the table are ignored, and so is what follows it but for
    /// the key. Errors: no table, a row that does not continue the one before, an entry that is no queue, a
    /// key that is none.
    pub fn parse(text: &str) -> Result<PrintedTable, PrintedTableError> {
        let mut lines = (1..).zip(text.lines()).peekable();
        let (header, interface, rings) = lines
            .by_ref()
            .find_map(|(line, text)| header(text).map(|(interface, rings)| (line, interface, rings)))
            .ok_or(PrintedTableError::NoHeader)?;
        let mut queues = Vec::new();
        while let Some((label, entries)) = lines.peek().and_then(|(_, text)| row(text)) {
            let line = lines.next().map_or(header, |(line, _)| line);
            if label != queues.len() {
                return Err(PrintedTableError::RowLabel { line, found: label, expected: queues.len() });
            }
            for entry in entries {
                let queue = entry.parse();
                queues.push(queue.map_err(|_| PrintedTableError::Queue { line, found: entry.to_owned() })?);
            }
        }
        if queues.is_empty() {
            return Err(PrintedTableError::NoRows { line: header });
        }
        let table = IndirectionTable::explicit(TableShape::new(queues.len(), 16)?, &queues)?;
        let rest: Vec<(usize, &str)> = lines.collect();
        let key = key(rest.iter().copied())?;
        let function = function(rest.iter().map(|(_, text)| *text));
        Ok(PrintedTable { interface: interface.to_owned(), rings, table, key, function })
    }

    /// The table as `ethtool -x` prints it, without the key.
    pub fn print(interface: &str, rings: u32, table: &IndirectionTable) -> String {
        let mut text = format!("{HEADER}{interface} with {rings} RX ring(s):\n");
        for (row, queues) in (0..).step_by(ROW).zip(table.queues().chunks(ROW)) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{row:5}: ");
            for queue in queues {
                let _ = write!(text, " {queue:5}");
            }
            text.push('\n');
        }
        text
    }
}

/// Interface and number of rings of the line that opens the table.
fn header(text: &str) -> Option<(&str, u32)> {
    let (interface, rings) = text.trim().strip_prefix(HEADER)?.rsplit_once(" with ")?;
    Some((interface, rings.strip_suffix(" RX ring(s):")?.trim().parse().ok()?))
}

/// Label and entries of a row; `None` for a line that is no row.
fn row(text: &str) -> Option<(usize, std::str::SplitWhitespace<'_>)> {
    let (label, entries) = text.split_once(':')?;
    let mut words = entries.split_whitespace();
    // A row holds numbers set apart by spaces; `00:1a:…` of a key line does not.
    words.next().filter(|word| !word.contains(':'))?;
    Some((label.trim().parse().ok()?, entries.split_whitespace()))
}

/// The key on the line after "RSS hash key:", where there is one. A driver that does not report its key has
/// "Operation not supported" there.
fn key<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Option<HashKey>, PrintedTableError> {
    let mut lines = lines.skip_while(|(_, text)| text.trim() != "RSS hash key:").skip(1);
    match lines.next() {
        Some((line, text)) if text.contains(':') => {
            text.parse().map(Some).map_err(|error| PrintedTableError::Key { line, error })
        }
        _ => Ok(None),
    }
}

/// The name before ": on" among the lines after "RSS hash function:".
fn function<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut lines = lines.skip_while(|text| text.trim() != "RSS hash function:").skip(1);
    lines.find_map(|text| text.trim().strip_suffix(": on")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: usize, queues: u32) -> IndirectionTable {
        IndirectionTable::equal(TableShape::new(entries, 16).unwrap(), queues, 0).unwrap()
    }

    #[test]
    fn what_is_printed_is_read() {
        for (entries, queues) in [(1, 1), (7, 3), (8, 8), (299, 69)] {
            let text = PrintedTable::print("enp1s0", queues, &table(entries, queues));
            assert_eq!(PrintedTable::parse(&text).map(|read| read.table), Ok(table(entries, queues)));
        }
        let text = PrintedTable::print("eth0.35", 4, &table(12, 4));
        let rows =
            "    0:      0     1     2     3     0     1     2     3\n    8:      0     1     2     3\n";
        assert_eq!(text, format!("RX flow hash indirection table for eth0.35 with 4 RX ring(s):\n{rows}"));
        let key = "RSS hash key:\n6d:5a:6d:5a:6d:5a:6d:5a\nRSS hash function:\n    toeplitz: on\n";
        let read = PrintedTable::parse(&format!("$ ethtool -x eth0.35\n{text}{key}")).unwrap();
        assert_eq!((read.interface.as_str(), read.rings), ("eth0.35", 4));
        assert_eq!(read.function.as_deref(), Some("toeplitz"));
        let xor = "RSS hash function:\n    toeplitz: off\n    xor: on\n    crc32: off\n";
        assert_eq!(PrintedTable::parse(&format!("{text}{xor}")).unwrap().function.as_deref(), Some("xor"));
        assert_eq!(PrintedTable::parse(&text).unwrap().function, None);
        assert_eq!(read.table, table(12, 4));
        assert_eq!(read.key, HashKey::symmetric(8).ok());
        let without =
            PrintedTable::parse(&format!("{text}RSS hash key:\nOperation not supported\n")).unwrap();
        assert_eq!(without.key, None);
    }

    #[test]
    fn errors_name_the_line() {
        let parse =
            |rows: &str| PrintedTable::parse(&format!("{HEADER}e with 2 RX ring(s):\n{rows}")).unwrap_err();
        assert_eq!(PrintedTable::parse("0: 1 2"), Err(PrintedTableError::NoHeader));
        assert_eq!(parse("RSS hash key:\n"), PrintedTableError::NoRows { line: 1 });
        let label = PrintedTableError::RowLabel { line: 3, found: 9, expected: 8 };
        assert_eq!(parse("0: 0 1 0 1 0 1 0 1\n9: 0 1\n"), label);
        assert_eq!(parse("0: 0 x\n"), PrintedTableError::Queue { line: 2, found: "x".into() });
        assert_eq!(parse("0: 0 70000\n"), PrintedTableError::Queue { line: 2, found: "70000".into() });
        let key = parse("0: 0 1\nRSS hash key:\n6d:5x\n");
        assert_eq!(key.to_string(), "line 4: hash key: 'x' at character 5 is no hexadecimal digit");
    }
}
