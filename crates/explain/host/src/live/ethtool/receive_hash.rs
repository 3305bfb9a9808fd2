//! `ethtool -x` and `ethtool -n … rx-flow-hash`: the indirection table, the hash function, and the fields that
//! are hashed.

use super::{Ethtool, on_off};
use crate::live::bundle::{Output, Unread, printable};
use crate::redact;
use crate::text::ethtool_flow_hash::FIELDS;
use kernel::ethtool::{Command, Ioctl, StringSet, bounded, short, word, words};
use std::fmt::Write as _;

/// Bytes of `struct ethtool_rxnfc`, and of `struct ethtool_rxfh` before the table.
const CLASSIFICATION: usize = 192;
const HASH: usize = 24;

/// Flow types that are queried: what ethtool calls them, the number of `TCP_V4_FLOW` and so on, and what it prints.
pub(super) const FLOWS: [(&str, u32, &str); 4] = [
    ("tcp4", 1, "TCP over IPV4"),
    ("udp4", 2, "UDP over IPV4"),
    ("tcp6", 5, "TCP over IPV6"),
    ("udp6", 6, "UDP over IPV6"),
];

impl Ethtool {
    pub(super) fn indirection_table(&mut self, name: &[u8], display_name: &str, with_key: bool) -> Output {
        self.by_ioctl(|ioctl| {
            let rings = data(ioctl, name, Command::ReceiveRings, 0)?;
            match hash(ioctl, name) {
                Ok(hash) => Ok(render_hash(display_name, rings, &hash, with_key)),
                // Drivers that have a table and neither key nor function.
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    Ok(render_table(display_name, rings, &table(ioctl, name)?))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    pub(super) fn hash_fields(&mut self, name: &[u8], number: u32, flow: &str) -> Output {
        let fields = self.by_ioctl(|ioctl| Ok(data(ioctl, name, Command::HashFields, number)?))?;
        Ok(render_fields(flow, fields))
    }
}

/// `data` of `struct ethtool_rxnfc`.
fn data(ioctl: &mut Ioctl, name: &[u8], command: Command, flow: u32) -> std::io::Result<u64> {
    let answer = ioctl.bytes(name, command, &[flow], CLASSIFICATION)?;
    let data = answer.get(8..).and_then(|data| data.first_chunk()).ok_or_else(short)?;
    Ok(u64::from_ne_bytes(*data))
}

/// The table of a driver that reports nothing else.
fn table(ioctl: &mut Ioctl, name: &[u8]) -> Result<Vec<u32>, Unread> {
    let size = ioctl.numbers(name, Command::IndirectionTable, &[0], 1)?;
    let size = size.first().copied().unwrap_or(0);
    let count = bounded(size)?.saturating_add(1);
    let answer = ioctl.numbers(name, Command::IndirectionTable, &[size], count)?;
    Ok(answer.into_iter().skip(1).collect())
}

/// Table, key and functions as a driver reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hash {
    table: Vec<u32>,
    key: Vec<u8>,
    /// A function's name and whether it is on; none where the driver does not report them.
    functions: Vec<(String, bool)>,
}

fn hash(ioctl: &mut Ioctl, name: &[u8]) -> std::io::Result<Hash> {
    // cmd, rss_context, indir_size, key_size, hfunc (8 bits), then the table and the key behind it.
    let sizes = ioctl.bytes(name, Command::ReceiveHash, &[], HASH)?;
    let (table_size, key_size) = (word(sizes, 8).ok_or_else(short)?, word(sizes, 12).ok_or_else(short)?);
    let (entries, key) = (bounded(table_size)?, bounded(key_size)?);
    let room = HASH.saturating_add(entries.saturating_mul(4)).saturating_add(key);
    let answer = ioctl.bytes(name, Command::ReceiveHash, &[0, table_size, key_size], room)?;
    let configuration = answer.get(HASH..).unwrap_or_default();
    let (table, behind) = configuration.split_at_checked(entries.saturating_mul(4)).ok_or_else(short)?;
    let (table, key) = (words(table), behind.get(..key).ok_or_else(short)?.to_vec());
    let on = answer.get(16).copied().unwrap_or(0);
    let functions = match on {
        0 => Vec::new(),
        _ => ioctl.strings(name, StringSet::HashFunctions).unwrap_or_default(),
    };
    let is_on = |bit: usize| bit < 8 && on >> bit & 1 != 0;
    let functions =
        functions.into_iter().enumerate().map(|(bit, name)| (printable(&name), is_on(bit))).collect();
    Ok(Hash { table, key, functions })
}

fn render_table(display_name: &str, rings: u64, table: &[u32]) -> String {
    let mut text = format!("RX flow hash indirection table for {display_name} with {rings} RX ring(s):\n");
    if table.is_empty() {
        text.push_str("Operation not supported\n");
    }
    for (row, entries) in table.chunks(8).enumerate() {
        let _ = write!(text, "{:5}: ", row * 8);
        for entry in entries {
            let _ = write!(text, " {entry:5}");
        }
        text.push('\n');
    }
    text
}

fn render_hash(display_name: &str, rings: u64, hash: &Hash, with_key: bool) -> String {
    let mut text = render_table(display_name, rings, &hash.table);
    text.push_str("RSS hash key:\n");
    if hash.key.is_empty() {
        text.push_str("Operation not supported");
    } else if with_key {
        for (place, byte) in hash.key.iter().enumerate() {
            let _ = write!(text, "{}{byte:02x}", if place > 0 { ":" } else { "" });
        }
    } else {
        // Whoever knows it can choose a queue from outside.
        text.push_str(redact::HIDDEN);
    }
    text.push_str("\nRSS hash function:\n");
    if hash.functions.is_empty() {
        text.push_str("    Operation not supported\n");
    }
    for (name, on) in &hash.functions {
        let _ = writeln!(text, "    {name}: {}", on_off(*on));
    }
    text
}

const DISCARD: u32 = 31;

fn render_fields(flows: &str, fields: u64) -> String {
    let has = |bit: u32| fields >> bit & 1 != 0;
    if has(DISCARD) {
        return format!("{flows} flows - All matching flows discarded on RX\n");
    }
    let mut text = format!("{flows} flows use these fields for computing Hash flow key:\n");
    for (_, (words, _)) in (1..).zip(FIELDS).filter(|&(bit, _)| has(bit)) {
        text.push_str(words);
        text.push('\n');
    }
    if fields == 0 {
        text.push_str("None");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash() -> Hash {
        let functions = vec![("toeplitz".to_owned(), true), ("xor".to_owned(), false)];
        Hash { table: (0..10).map(|entry| entry % 4).collect(), key: vec![0x6d, 0x5a, 0], functions }
    }

    #[test]
    fn the_table_stands_in_rows_of_eight() {
        let text = render_hash("eth0", 4, &hash(), true);
        let expected = "RX flow hash indirection table for eth0 with 4 RX ring(s):
    0:      0     1     2     3     0     1     2     3
    8:      0     1
RSS hash key:
6d:5a:00
RSS hash function:
    toeplitz: on
    xor: off
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_key_is_left_out_unless_it_is_requested() {
        let text = render_hash("eth0", 4, &hash(), false);
        assert!(text.contains("\nRSS hash key:\n(hidden)\nRSS hash function:\n"), "{text}");
        assert!(!text.contains("6d"), "{text}");
        let none = render_hash("eth0", 1, &Hash::default(), false);
        assert_eq!(none.matches("Operation not supported").count(), 3, "{none}");
    }

    #[test]
    fn fields_have_ethtools_words() {
        assert_eq!(
            render_fields("UDP over IPV4", 0b11_0000),
            "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n\n"
        );
        assert!(render_fields("TCP over IPV6", 0).ends_with(":\nNone\n"));
        assert!(render_fields("TCP over IPV6", 1 << DISCARD).ends_with("discarded on RX\n"));
    }
}
