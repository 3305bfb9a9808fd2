//! Which offloads each end has.

use std::fmt;

/// Four offloads at an end, as ethtool(8) names them: `gso`, `tso`, `gro`, `tx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(pub [bool; 4]);

const NAMES: [&str; 4] = ["gso", "tso", "gro", "tx"];

/// The offloads of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    pub own: At,
    pub peer: At,
}

impl Offloads {
    /// None at one end, all at the other.
    pub const OPPOSITES: [Offloads; 2] = [
        Offloads { own: At([false; 4]), peer: At([true; 4]) },
        Offloads { own: At([true; 4]), peer: At([false; 4]) },
    ];
}

/// Environment variable for more turns: `threes` or `all`.
const TURNS: &str = "RXLANE_LAB_OFFLOADS";

/// All or none at each end, four turns. If the environment asks for `threes`, sixteen turns in which any three of the eight
/// offloads are on and off in every combination, twice each; if it asks for `all`, all 256.
pub fn turns() -> Vec<Offloads> {
    let words = match std::env::var(TURNS).as_deref() {
        Ok("all") => (0..=255).collect(),
        Ok("threes") => threes(),
        Ok(other) if !other.is_empty() => panic!("{TURNS}={other}: `threes` or `all`"),
        _ => vec![0xff, 0x0f, 0x00, 0xf0],
    };
    words.into_iter().map(of_word).collect()
}

/// The words of the extended Hamming code [8, 4, 4], whose dual has distance 4: an orthogonal array of strength 3.
fn threes() -> Vec<u8> {
    (0..=255).filter(|word| is_in_code(*word)).collect()
}

fn of_word(word: u8) -> Offloads {
    Offloads { own: At(bits(word >> 4)), peer: At(bits(word)) }
}

fn is_in_code(word: u8) -> bool {
    // Three data bits make each check bit, and the fourth makes all eight even.
    [0b1110_1000, 0b1101_0100, 0b1011_0010, 0b0111_0001]
        .iter()
        .all(|check| (word & check).count_ones().is_multiple_of(2))
}

fn bits(word: u8) -> [bool; 4] {
    [8, 4, 2, 1].map(|bit| word & bit != 0)
}

impl At {
    /// Words for `ethtool -K`.
    pub fn words(self) -> String {
        let words =
            NAMES.iter().zip(self.0).map(|(name, on)| format!("{name} {}", if on { "on" } else { "off" }));
        words.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Offloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "own {}, peer {}", self.own.words(), self.peer.words())
    }
}

#[test]
fn any_three_offloads_take_every_combination_twice() {
    let words = threes();
    assert_eq!(words.len(), 16);
    for mask in (0_u8..=255).filter(|mask| mask.count_ones() == 3) {
        for choice in (0..=255_u8).filter(|choice| choice & !mask == 0) {
            assert_eq!(
                words.iter().filter(|word| *word & mask == choice).count(),
                2,
                "{mask:08b} {choice:08b}"
            );
        }
    }
}
