//! Finds a name in the tables: the digits that may be a queue's number are cut out one after the other, and
//! what is left on both sides is looked up.

use super::drivers::{self, Counts};
use super::{Meaning, What};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Bytes of the longest name that is looked at; the kernel's are shorter than 32.
const LONGEST: usize = 128;

/// Numbers in a name that are tried as the queue's.
const NUMBERS: usize = 4;

/// Largest queue number; devices have at most some thousand queues.
const LARGEST_QUEUE: u32 = 65_535;

/// Where the number stands in a pattern.
const PLACE: &str = "{n}";

/// A name that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub meaning: Meaning,
    /// The pattern's place in the tables, the same for all queues: which counter of a queue it is.
    pub pattern: u16,
}

/// What the tables say of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Match(Match),
    /// It is this, or nothing, unless the driver turns out to be one that means something else by it.
    AskDriver(Option<Match>),
    /// It is no counter that matters here.
    Nothing,
}

/// What one driver means by a name.
struct Entry {
    counts: Counts,
    /// Whether the driver must be known to be one of `drivers`.
    if_known: bool,
    /// The drivers that print it.
    drivers: &'static [&'static str],
    pattern: u16,
}

/// Entries by what stands before and after the number; of counters without one, by the whole name and nothing.
type Table = HashMap<(&'static str, &'static str), Vec<Entry>, FixedState>;

#[derive(Default)]
struct Index {
    numbered: Table,
    plain: Table,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index::default();
    let mut patterns = [0..u16::MAX, 0..u16::MAX];
    for driver in drivers::all() {
        for counter in &driver.counters {
            let [plain, numbered] = &mut patterns;
            let (table, pattern, name) = match counter.pattern.split_once(PLACE) {
                Some(name) => (&mut index.numbered, numbered.next(), name),
                None => (&mut index.plain, plain.next(), (counter.pattern, "")),
            };
            let (counts, if_known, drivers) = (counter.counts, counter.if_known, driver.names.as_slice());
            let pattern = pattern.unwrap_or_default();
            table.entry(name).or_default().push(Entry { counts, if_known, drivers, pattern });
        }
    }
    index
});

impl Entry {
    fn meaning(&self, queue: Option<u32>) -> Meaning {
        match (self.counts, queue) {
            (Counts::Here(what), Some(queue)) => Meaning::Queue { queue, what },
            (Counts::Here(What::Packets), None) => Meaning::TotalPackets,
            (Counts::Here(What::PacketsPart), None) => Meaning::TotalPacketsPart,
            (Counts::Here(What::Bytes), None) => Meaning::TotalBytes,
            (Counts::Heading { receive }, _) => Meaning::Heading { receive },
            (Counts::Below(what), _) => Meaning::UnderHeading(what),
            (Counts::Overflow, _) => Meaning::Overflow,
            (Counts::TooLong, _) => Meaning::TooLong,
            (Counts::Allowance, _) => Meaning::Allowance,
            (Counts::Nothing | Counts::Here(_), _) => Meaning::Other,
        }
    }
}

/// Looks `name` up.
pub(crate) fn find(name: &str, driver: Option<&str>) -> Found {
    if name.len() > LONGEST {
        return Found::Nothing;
    }
    // atlantic puts the traffic class before the ring.
    let name = without_traffic_class(name);
    let index = &*INDEX;
    match choose(&index.plain, (name, ""), None, driver) {
        Found::Nothing => {}
        found => return found,
    }
    for (before, digits, after) in numbers(name).take(NUMBERS) {
        let Some(queue) = queue_number(digits) else { continue };
        match choose(&index.numbered, (before, after), Some(queue), driver) {
            Found::Nothing => {}
            found => return found,
        }
    }
    Found::Nothing
}

/// Of the entries of one name, the one that holds for `driver`.
fn choose(table: &Table, name: (&str, &str), queue: Option<u32>, driver: Option<&str>) -> Found {
    // A table of names that live as short as this one.
    let table: &HashMap<(&str, &str), Vec<Entry>, FixedState> = table;
    let Some(entries) = table.get(&name) else { return Found::Nothing };
    // `rx_64_bytes` is a frame size to some drivers (altera_tse) and a queue to others (mana).
    let is_size = name.0 == "rx_" && queue.is_some_and(is_frame_size);
    let found = |entry: &Entry| Match { meaning: entry.meaning(queue), pattern: entry.pattern };
    let by_name = entries.iter().find(|entry| !entry.if_known && !is_size);
    match driver {
        Some(driver) => entries
            .iter()
            .find(|entry| (is_size || entry.if_known) && entry.drivers.contains(&driver))
            .or(by_name)
            .map_or(Found::Nothing, |entry| Found::Match(found(entry))),
        None if is_size || entries.iter().any(|entry| entry.if_known) => Found::AskDriver(by_name.map(found)),
        None => by_name.map_or(Found::Nothing, |entry| Found::Match(found(entry))),
    }
}

/// `TC0 Queue[3] InPackets` without the first word.
fn without_traffic_class(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("TC") else { return name };
    match rest.split_once(' ') {
        Some((class, rest)) if !class.is_empty() && class.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => name,
    }
}

/// Every run of digits with what stands before and after it.
fn numbers(name: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = name.get(from..)?;
        let start = from + rest.find(|c: char| c.is_ascii_digit())?;
        let digits = name.get(start..)?.bytes().take_while(u8::is_ascii_digit).count();
        let end = start + digits;
        from = end;
        Some((name.get(..start)?, name.get(start..end)?, name.get(end..)?))
    })
}

/// A number as drivers print it: decimal, without leading zeros.
fn queue_number(digits: &str) -> Option<u32> {
    let is_plain = digits == "0" || !digits.starts_with('0');
    digits.parse().ok().filter(|&queue| is_plain && queue <= LARGEST_QUEUE)
}

/// Whether a number is a bound of frame sizes in some driver's counters.
fn is_frame_size(number: u32) -> bool {
    const SIZES: [u32; 22] = [
        63, 64, 65, 127, 128, 255, 256, 511, 512, 1023, 1024, 1518, 1519, 1522, 1523, 1536, 2047, 2048, 4095,
        4096, 8191, 9022,
    ];
    SIZES.contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_well_formed_and_agree() {
        for (table, digits) in [(&INDEX.numbered, 1), (&INDEX.plain, 0)] {
            for ((before, after), entries) in table {
                assert!(!before.contains(['{', '}']) && !after.contains(['{', '}']), "{before}");
                assert!(before.len() + after.len() + digits <= 31, "{before}");
                let mut plain = entries.iter().filter(|entry| !entry.if_known).map(|entry| entry.counts);
                let first = plain.next();
                assert!(plain.all(|counts| Some(counts) == first), "{before}{{n}}{after}");
            }
        }
    }

    #[test]
    fn a_pattern_is_a_bit_among_those_of_its_driver() {
        // Sums distinguish their parts by pattern modulo 64.
        for driver in drivers::all() {
            let numbered = driver.counters.iter().filter(|counter| counter.pattern.contains(PLACE)).count();
            assert!(numbered <= 64 && driver.counters.len() - numbered <= 64, "{:?}", driver.names);
        }
    }

    #[test]
    fn numbers_are_found_wherever_they_stand() {
        let parts: Vec<_> = numbers("rx-12.tc3_x").collect();
        assert_eq!(parts, [("rx-", "12", ".tc3_x"), ("rx-12.tc", "3", "_x")]);
        assert_eq!(numbers("é7ü").count(), 1);
        assert_eq!(
            (queue_number("07"), queue_number("0"), queue_number("99999999999")),
            (None, Some(0), None)
        );
    }
}
