//! Sets of CPUs in the two forms of the kernel: hexadecimal masks and lists of ranges.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use thiserror::Error;

/// A text or a number that is no set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum ParseError {
    /// Not a CPU, a range of them, or below [`CpuSet::MOST`].
    #[error("{found:?} is no CPU or range of CPUs (they count from 0 to 8191)")]
    Cpu { found: String },
    #[error("{found:?} is no CPU mask: it takes words of eight hexadecimal digits with commas between")]
    Mask { found: String },
}

/// A set of CPUs.
///
/// The kernel writes it as a mask (`rps_cpus`, `smp_affinity`: hexadecimal words of 32 bits set apart by commas,
/// the highest first; `bitmap_parse()` in lib/bitmap-str.c) or as a list (`smp_affinity_list`: `0-3,8`;
/// `bitmap_parselist()` there).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet(BTreeSet<u32>);

impl CpuSet {
    /// CPUs count from 0 and stay below this: the largest `CONFIG_NR_CPUS` of any architecture.
    pub const MOST: u32 = 8192;

    /// A set of these. Error: a number that is not below [`CpuSet::MOST`].
    pub fn new(cpus: impl IntoIterator<Item = u32>) -> Result<CpuSet, ParseError> {
        let cpus: BTreeSet<u32> = cpus.into_iter().collect();
        match cpus.last() {
            Some(&cpu) if cpu >= CpuSet::MOST => Err(ParseError::Cpu { found: cpu.to_string() }),
            _ => Ok(CpuSet(cpus)),
        }
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// Whether it has this one.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mask without leading zeros, every word but the highest of eight digits: `f`, `1,00000000`, `0`.
    pub fn mask(&self) -> String {
        let words = self.0.last().map_or(1, |highest| highest / 32 + 1);
        let mut mask = String::new();
        for word in (0..words).rev() {
            let first = word * 32;
            let bits = self.0.range(first..first + 32).fold(0_u32, |bits, cpu| bits | 1 << (cpu - first));
            // Writing to a string cannot fail.
            let _ = match word {
                _ if mask.is_empty() => write!(mask, "{bits:x}"),
                _ => write!(mask, ",{bits:08x}"),
            };
        }
        mask
    }

    /// Reads a mask. Errors: a word that is not one to eight hexadecimal digits, a CPU beyond
    /// [`CpuSet::MOST`].
    pub fn parse_mask(mask: &str) -> Result<CpuSet, ParseError> {
        let found = || ParseError::Mask { found: mask.to_owned() };
        let mut cpus = BTreeSet::new();
        for (word, digits) in (0_u32..).zip(mask.trim().rsplit(',')) {
            let is_word = (1..=8).contains(&digits.len()) && digits.bytes().all(|d| d.is_ascii_hexdigit());
            if !is_word || word >= CpuSet::MOST / 32 {
                return Err(found());
            }
            let bits = u32::from_str_radix(digits, 16).map_err(|_| found())?;
            cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| word * 32 + bit));
        }
        Ok(CpuSet(cpus))
    }

    /// The list, with ranges where two or more CPUs follow each other: `0-3,8`; empty without any.
    pub fn list(&self) -> String {
        let mut list = String::new();
        let mut cpus = self.iter().peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|&next| next == last + 1) {
                last = next;
            }
            let comma = if list.is_empty() { "" } else { "," };
            let _ = match last {
                _ if last == first => write!(list, "{comma}{first}"),
                _ => write!(list, "{comma}{first}-{last}"),
            };
        }
        list
    }

    /// Reads a list of numbers and ranges. Errors: anything else, a range that runs backwards, a CPU beyond
    /// [`CpuSet::MOST`], more CPUs than that counting those named twice.
    pub fn parse_list(list: &str) -> Result<CpuSet, ParseError> {
        let mut cpus = BTreeSet::new();
        let mut room = CpuSet::MOST;
        for part in list.trim().split(',').filter(|_| !list.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            // The whole part: half of `-1` is nothing.
            let found = || ParseError::Cpu { found: part.to_owned() };
            let (first, last) = cpu(first).zip(cpu(last)).ok_or_else(found)?;
            // Ranges on top of each other would take long to read and say nothing.
            let left = last.checked_sub(first).and_then(|more| room.checked_sub(more)?.checked_sub(1));
            room = left.ok_or_else(found)?;
            cpus.extend(first..=last);
        }
        Ok(CpuSet(cpus))
    }
}

fn cpu(digits: &str) -> Option<u32> {
    let number = digits.bytes().all(|d| d.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    number.filter(|&cpu| cpu < CpuSet::MOST)
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.list())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(cpus: &[u32]) -> CpuSet {
        CpuSet::new(cpus.iter().copied()).expect("small numbers")
    }

    #[test]
    fn masks_are_words_of_32_bits() {
        let cases: [(&[u32], &str); 6] = [
            (&[], "0"),
            (&[0, 1, 2, 3], "f"),
            (&[31], "80000000"),
            (&[32], "1,00000000"),
            (&[0, 64], "1,00000000,00000001"),
            (&[4, 36, 37], "30,00000010"),
        ];
        for (cpus, mask) in cases {
            assert_eq!(set(cpus).mask(), mask);
            assert_eq!(CpuSet::parse_mask(mask), Ok(set(cpus)));
        }
        // As the kernel prints it: every word of full width but the highest, which has the digits of nr_cpu_ids.
        assert_eq!(CpuSet::parse_mask("00000000,0000000f\n"), Ok(set(&[0, 1, 2, 3])));
    }

    #[test]
    fn lists_have_ranges() {
        for (cpus, list) in [(&[][..], ""), (&[7], "7"), (&[0, 1, 2, 3, 8], "0-3,8"), (&[1, 3, 4], "1,3-4")] {
            assert_eq!(set(cpus).list(), list);
            assert_eq!(CpuSet::parse_list(list), Ok(set(cpus)));
        }
    }

    #[test]
    fn what_is_neither_is_an_error() {
        for mask in ["", "g", "123456789", "1,,2", "-1", "+1", " 1 2", "0x1", &"0,".repeat(300)] {
            assert!(CpuSet::parse_mask(mask).is_err(), "{mask}");
        }
        for list in ["a", "3-1", "1-", "-1", "1,,2", "8192", "0-99999999999", "+1", "0-7:1/2", "0-8191,0"] {
            assert!(CpuSet::parse_list(list).is_err(), "{list}");
        }
        // The part that is wrong is named whole.
        for (list, part) in [("-1", "-1"), ("0,1-x,3", "1-x"), ("0,,1", "")] {
            assert_eq!(CpuSet::parse_list(list), Err(ParseError::Cpu { found: part.to_owned() }));
        }
        assert!(CpuSet::new([CpuSet::MOST]).is_err());
    }

    proptest! {
        #[test]
        fn any_set_round_trips(cpus in proptest::collection::btree_set(0..CpuSet::MOST, 0..60)) {
            let set = CpuSet(cpus);
            prop_assert_eq!(CpuSet::parse_mask(&set.mask()), Ok(set.clone()));
            prop_assert_eq!(CpuSet::parse_list(&set.list()), Ok(set));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = CpuSet::parse_mask(&text);
            let _ = CpuSet::parse_list(&text);
        }
    }
}
