//! Finds a name in the tables: the digits that may be a queue's number are cut out one after the other, and
//! what is left on both sides is looked up.

use super::buckets::{Buckets, bucket};
use super::drivers::{self, Counts};
use super::{Meaning, What};
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
    /// What it means.
    pub meaning: Meaning,
    /// The pattern's place in the tables, the same for all queues: which counter of a queue it is.
    pub pattern: u16,
}

/// What the tables say of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is this.
    Match(Match),
    /// It is this, or nothing, unless the driver turns out to be one that means something else by it.
    AskDriver(Option<Match>),
    /// It is no counter that matters here.
    Nothing,
}

/// An entry of the tables.
struct Entry {
    /// What stands before and after the number; of a counter without one, the whole name and nothing.
    before: &'static str,
    after: &'static str,
    counts: Counts,
    /// Whether the driver must be known to be one of `drivers`.
    if_known: bool,
    /// The drivers that print it.
    drivers: &'static [&'static str],
    pattern: u16,
}

struct Index {
    numbered: Table,
    plain: Table,
}

/// Entries by what stands before and after the number.
struct Table {
    entries: Vec<Entry>,
    buckets: Buckets,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let (mut numbered, mut plain) = (Vec::new(), Vec::new());
    for driver in drivers::all() {
        for counter in &driver.counters {
            let (to, before, after) = match counter.pattern.split_once(PLACE) {
                Some((before, after)) => (&mut numbered, before, after),
                None => (&mut plain, counter.pattern, ""),
            };
            let (counts, if_known, drivers) = (counter.counts, counter.if_known, driver.names.as_slice());
            to.push(Entry { before, after, counts, if_known, drivers, pattern: to.len() as u16 });
        }
    }
    Index { numbered: Table::of(numbered), plain: Table::of(plain) }
});

impl Table {
    fn of(mut entries: Vec<Entry>) -> Table {
        let place = |entry: &Entry| (bucket(entry.before, entry.after), entry.key(), entry.pattern);
        entries.sort_by_key(place);
        Table { buckets: Buckets::of(entries.iter().map(Entry::key)), entries }
    }

    /// The entries of a name, none where there is none.
    fn get(&self, before: &str, after: &str) -> &[Entry] {
        let bucket = self.entries.get(self.buckets.places(before, after)).unwrap_or_default();
        let is_it = |entry: &Entry| entry.key() == (before, after);
        let rest = bucket.iter().position(is_it).and_then(|start| bucket.get(start..)).unwrap_or_default();
        let count = rest.iter().take_while(|entry| is_it(entry)).count();
        rest.get(..count).unwrap_or_default()
    }
}

impl Entry {
    fn key(&self) -> (&'static str, &'static str) {
        (self.before, self.after)
    }

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
    match choose(index.plain.get(name, ""), None, driver) {
        Found::Nothing => {}
        found => return found,
    }
    for (before, digits, after) in numbers(name).take(NUMBERS) {
        let Some(queue) = queue_number(digits) else { continue };
        match choose(index.numbered.get(before, after), Some(queue), driver) {
            Found::Nothing => {}
            found => return found,
        }
    }
    Found::Nothing
}

/// Of entries of one name, the one that holds for `driver`.
fn choose(entries: &[Entry], queue: Option<u32>, driver: Option<&str>) -> Found {
    let found = |entry: &Entry| Match { meaning: entry.meaning(queue), pattern: entry.pattern };
    let Some(any) = entries.first() else { return Found::Nothing };
    // `rx_64_bytes` is a frame size to some drivers (altera_tse) and a queue to others (mana).
    let is_size = any.before == "rx_" && queue.is_some_and(is_frame_size);
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
    use super::super::What;
    use super::*;

    #[test]
    fn patterns_are_well_formed_and_agree() {
        for list in [&INDEX.numbered.entries, &INDEX.plain.entries] {
            assert!(list.len() < usize::from(u16::MAX));
            for entry in list {
                assert!(
                    !entry.before.contains(['{', '}']) && !entry.after.contains(['{', '}']),
                    "{}",
                    entry.before
                );
                let digits = usize::from(std::ptr::eq(list, &INDEX.numbered.entries));
                assert!(entry.before.len() + entry.after.len() + digits <= 31, "{}", entry.before);
            }
            for pair in list.windows(2) {
                let [a, b] = pair else { unreachable!("windows of two") };
                if a.key() == b.key() && !a.if_known && !b.if_known {
                    assert_eq!(a.counts, b.counts, "{}{{n}}{}", a.before, a.after);
                }
            }
        }
    }

    #[test]
    fn a_pattern_is_a_bit_among_those_of_its_driver() {
        // Sums tell their parts apart by pattern modulo 64.
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

    #[test]
    fn a_queue_has_no_leading_zeros() {
        assert_eq!(find("rx_queue_3_packets", None).packets(), Some((3, What::Packets)));
        assert_eq!(find("rx_queue_03_packets", None), Found::Nothing);
    }

    impl Found {
        fn packets(self) -> Option<(u32, What)> {
            match self {
                Found::Match(Match { meaning: Meaning::Queue { queue, what }, .. }) => Some((queue, what)),
                _ => None,
            }
        }
    }
}
