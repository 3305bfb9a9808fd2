//! Frame sizes.

use crate::below;
use rand_core::Rng;
use std::fmt;
use std::str::FromStr;

/// How long frames are. A size is that of the untagged Ethernet frame, from MAC address to FCS, as in RFC 2544
/// section 9: tags, labels and PPPoE come on top. Captures hold no FCS: a size of 64 is a frame of 60 bytes.
/// A size that does not hold the headers (IPv6 and TCP take 78) is raised to what they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Fixed(u16),
    /// From the first to the last, each as likely as any other.
    Range(u16, u16),
    /// The "simple IMIX": of twelve frames seven of 64, four of 594 and one of 1518 bytes. These are IP packets
    /// of 40 (padded to 46), 576 and 1500 bytes in Ethernet; the mix goes back to Spirent's, and traffic
    /// generators use it as such (Cisco TRex, `scripts/stl/imix.py`, gives it as 60, 590, 1514 without FCS at
    /// 28 : 16 : 4). Mean 361.8.
    Imix,
}

impl Sizes {
    /// Bytes of MAC header and FCS of an untagged frame.
    pub const ETHERNET: u16 = 18;
    /// The least size of an Ethernet frame (IEEE 802.3-2022 clause 3.2.8).
    pub const LEAST: u16 = 64;

    /// The largest size that can be drawn.
    pub const fn largest(self) -> u16 {
        match self {
            Sizes::Fixed(size) | Sizes::Range(_, size) => size,
            Sizes::Imix => 1518,
        }
    }

    /// The smallest size that can be drawn.
    pub const fn smallest(self) -> u16 {
        match self {
            Sizes::Fixed(size) | Sizes::Range(size, _) => size,
            Sizes::Imix => 64,
        }
    }

    /// Draws one number, whatever the sizes: a size.
    pub fn draw(self, random: &mut impl Rng) -> u16 {
        match self {
            Sizes::Fixed(size) => {
                random.next_u64();
                size
            }
            Sizes::Range(first, last) => first + below(random, u64::from(last - first) + 1) as u16,
            Sizes::Imix => match below(random, 12) {
                0..7 => 64,
                7..11 => 594,
                _ => 1518,
            },
        }
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let size = |text: &str| text.parse::<u16>().ok().filter(|size| *size >= Sizes::LEAST);
        let sizes = match (text, text.split_once('-')) {
            ("imix", _) => Some(Sizes::Imix),
            (_, Some((first, last))) => match (size(first), size(last)) {
                (Some(first), Some(last)) if first <= last => Some(Sizes::Range(first, last)),
                _ => None,
            },
            _ => size(text).map(Sizes::Fixed),
        };
        sizes.ok_or_else(|| {
            "imix, a frame size with FCS from 64 to 65535, or a range of them such as 64-1518".to_owned()
        })
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Fixed(size) => write!(f, "{size}"),
            Sizes::Range(first, last) => write!(f, "{first}-{last}"),
            Sizes::Imix => f.write_str("imix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn imix_is_seven_to_four_to_one() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut counts = [0u32; 3];
        for _ in 0..120_000 {
            match Sizes::Imix.draw(&mut random) {
                64 => counts[0] += 1,
                594 => counts[1] += 1,
                1518 => counts[2] += 1,
                size => panic!("{size}"),
            }
        }
        let expected = [70_000u32, 40_000, 10_000];
        assert!(counts.iter().zip(expected).all(|(found, e)| found.abs_diff(e) < 800), "{counts:?}");
    }

    #[test]
    fn a_range_reaches_both_ends() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let drawn: std::collections::BTreeSet<u16> =
            (0..200).map(|_| Sizes::Range(64, 67).draw(&mut random)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [64, 65, 66, 67]);
    }

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for text in ["imix", "64", "1518", "64-1518"] {
            assert_eq!(text.parse::<Sizes>().map(|sizes| sizes.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "63", "70000", "1518-64", "64-", "big"] {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
    }
}
