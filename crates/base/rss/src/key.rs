//! The secret key of the Toeplitz hash.

use crate::{InputTooLong, KeyError};
use rand_core::Rng;
use std::fmt;
use std::str::FromStr;

/// A Toeplitz hash key: 8 to 256 bytes, the first byte is used first.
///
/// Most devices take 40 bytes (enough for two IPv6 addresses and two ports), the X710, E810 and mlx5 up to
/// 52, others more. Parsed from the colon form that `ethtool -x` prints and `ethtool -X … hkey` takes, or
/// from plain hexadecimal digits; printed in colon form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HashKey {
    /// Unused bytes are zero, so that equal keys are equal structures.
    bytes: [u8; HashKey::MAX_LENGTH],
    length: usize,
}

/// Whether a key gives both directions of a connection the same hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symmetry {
    /// IPv4 addresses, and addresses with ports.
    pub ipv4: bool,
    /// IPv6 addresses, and addresses with ports.
    pub ipv6: bool,
}

impl HashKey {
    /// Fewest bytes of a key.
    pub const MIN_LENGTH: usize = 8;
    /// Most bytes of a key.
    pub const MAX_LENGTH: usize = 256;
    /// Bytes that addresses and ports of IPv6 need, and the key length of most devices.
    pub const USUAL_LENGTH: usize = 40;

    /// The key of Microsoft, "Verifying the RSS Hash Calculation", which many drivers use by default.
    pub const MICROSOFT: HashKey = HashKey::padded(&[
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
        0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
        0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ]);

    const fn padded<const N: usize>(bytes: &[u8; N]) -> HashKey {
        let mut all = [0; HashKey::MAX_LENGTH];
        let mut i = 0;
        while i < N && i < HashKey::MAX_LENGTH {
            all[i] = bytes[i];
            i += 1;
        }
        HashKey { bytes: all, length: i }
    }

    /// A key of these bytes. Errors: fewer than 8 or more than 256.
    pub fn from_bytes(bytes: &[u8]) -> Result<HashKey, KeyError> {
        if bytes.len() < HashKey::MIN_LENGTH {
            return Err(KeyError::Length { bytes: bytes.len() });
        }
        let mut all = [0; HashKey::MAX_LENGTH];
        let place = all.get_mut(..bytes.len()).ok_or(KeyError::Length { bytes: bytes.len() })?;
        place.copy_from_slice(bytes);
        Ok(HashKey { bytes: all, length: bytes.len() })
    }

    /// A key of `length` bytes from a function of their position.
    fn build(length: usize, byte: impl FnMut(usize) -> u8) -> Result<HashKey, KeyError> {
        if !(HashKey::MIN_LENGTH..=HashKey::MAX_LENGTH).contains(&length) {
            return Err(KeyError::Length { bytes: length });
        }
        HashKey::from_bytes(&(0..length).map(byte).collect::<Vec<u8>>())
    }

    /// 6d:5a repeated: both directions of a connection get the same hash, and the hash has two equal halves
    /// of 16 bits (DPDK, testpmd and mlx5 examples; Woo and Park, "Scalable TCP Session Monitoring with
    /// Symmetric Receive-side Scaling", KAIST 2012). Errors: a length outside 8 to 256.
    pub fn symmetric(length: usize) -> Result<HashKey, KeyError> {
        HashKey::build(length, |i| if i % 2 == 0 { 0x6d } else { 0x5a })
    }

    /// Random bytes, as Linux draws one key at boot for all devices (`netdev_rss_key_fill`). Errors: a
    /// length outside 8 to 256.
    pub fn random(length: usize, generator: &mut impl Rng) -> Result<HashKey, KeyError> {
        HashKey::build(length, |_| (generator.next_u32() >> 24) as u8)
    }

    /// The bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// How many bytes of input this key covers: its length less 4.
    pub const fn covered(&self) -> usize {
        self.length - 4
    }

    /// Key bit `index`, the first is 0; zero behind the end.
    fn bit(&self, index: usize) -> u32 {
        self.bytes.get(index / 8).map_or(0, |byte| u32::from(byte >> (7 - index % 8)) & 1)
    }

    /// The 64 key bits from byte `at` on as a big-endian number, zeros behind the end.
    pub(crate) fn word(&self, at: usize) -> u64 {
        (at..at + 8).fold(0, |word, i| word << 8 | u64::from(self.bytes.get(i).copied().unwrap_or(0)))
    }

    /// The Toeplitz hash of `input`, bit by bit as Microsoft's "RSS Hashing Functions" states it: the reference
    /// for every faster way. Errors: an input longer than [`HashKey::covered`].
    pub fn hash(&self, input: &[u8]) -> Result<u32, InputTooLong> {
        if input.len() > self.covered() {
            return Err(InputTooLong { input: input.len(), covered: self.covered() });
        }
        let mut window = (self.word(0) >> 32) as u32;
        let mut next = 32;
        let mut hash = 0;
        for byte in input {
            for bit in (0..8).rev() {
                if byte >> bit & 1 == 1 {
                    hash ^= window;
                }
                window = window << 1 | self.bit(next);
                next += 1;
            }
        }
        Ok(hash)
    }

    /// Whether `count` key bits from `first` on equal those `distance` bits further.
    fn repeats(&self, first: usize, count: usize, distance: usize) -> bool {
        (first..first + count).all(|i| self.bit(i) == self.bit(i + distance))
    }

    /// Whether swapping source and destination leaves the hash alone. An input bit selects the 32 key bits
    /// from its position on, so the key has to repeat from each source field to its destination field:
    /// over field length + 31 bits. False where the key does not cover the fields.
    pub fn symmetry(&self) -> Symmetry {
        let ipv4 = self.covered() >= 12 && self.repeats(0, 63, 32) && self.repeats(64, 47, 16);
        let ipv6 = self.covered() >= 36 && self.repeats(0, 159, 128) && self.repeats(256, 47, 16);
        Symmetry { ipv4, ipv6 }
    }
}

/// The 39 key bits that a byte of input is combined with.
pub(crate) struct Window(u64);

impl Window {
    /// The bits from the first bit of input byte `at` on.
    pub(crate) fn of(key: &HashKey, at: usize) -> Window {
        Window(key.word(at))
    }

    /// The 32 key bits that input bit `bit` selects; 0 is the most significant bit of the byte.
    pub(crate) fn of_bit(&self, bit: u32) -> u32 {
        (self.0 << (bit & 7) >> 32) as u32
    }
}

impl FromStr for HashKey {
    type Err = KeyError;

    /// Colon form (`6d:5a:56…`) or plain hexadecimal digits; white space around it is ignored.
    fn from_str(text: &str) -> Result<HashKey, KeyError> {
        let skipped = text.chars().take_while(|c| c.is_whitespace()).count();
        let text = text.trim();
        let colons = text.contains(':');
        let mut bytes = Vec::new();
        let mut characters = text.chars().zip(skipped + 1..);
        let mut last = skipped;
        let digit = |(found, position): (char, usize)| match found.to_digit(16) {
            Some(value) => Ok(value as u8),
            None => Err(KeyError::Digit { position, found }),
        };
        while let Some(first) = characters.next() {
            let high = digit(first)?;
            let second = characters.next().ok_or(KeyError::Unfinished { position: first.1 })?;
            bytes.push(high << 4 | digit(second)?);
            last = second.1;
            if colons {
                match characters.next() {
                    Some((':', position)) => last = position,
                    Some((found, position)) => return Err(KeyError::Colon { position, found }),
                    None => return HashKey::from_bytes(&bytes),
                }
            }
        }
        if colons {
            return Err(KeyError::Unfinished { position: last });
        }
        HashKey::from_bytes(&bytes)
    }
}

impl fmt::Display for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.bytes().iter().enumerate() {
            let colon = if i == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:\
                        80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa";

    #[test]
    fn the_microsoft_key_prints_and_parses() {
        assert_eq!(HashKey::MICROSOFT.to_string(), TEXT);
        assert_eq!(TEXT.parse(), Ok(HashKey::MICROSOFT));
        assert_eq!(format!("  {}\n", TEXT.replace(':', "").to_uppercase()).parse(), Ok(HashKey::MICROSOFT));
    }

    #[test]
    fn errors_name_the_position() {
        for (text, error) in [
            ("6d:5x:00", KeyError::Digit { position: 5, found: 'x' }),
            (" 6d:5", KeyError::Unfinished { position: 5 }),
            ("6d:5a:", KeyError::Unfinished { position: 6 }),
            ("6d:5a00:11", KeyError::Colon { position: 6, found: '0' }),
            ("6d5", KeyError::Unfinished { position: 3 }),
            ("6d:", KeyError::Unfinished { position: 3 }),
            ("", KeyError::Length { bytes: 0 }),
            (&"00".repeat(257), KeyError::Length { bytes: 257 }),
            ("ä", KeyError::Digit { position: 1, found: 'ä' }),
        ] {
            assert_eq!(text.parse::<HashKey>(), Err(error), "{text}");
        }
    }

    #[test]
    fn symmetry_follows_from_the_key() {
        let both = Symmetry { ipv4: true, ipv6: true };
        assert_eq!(HashKey::symmetric(40).unwrap().symmetry(), both);
        assert_eq!(HashKey::symmetric(16).unwrap().symmetry(), Symmetry { ipv4: true, ipv6: false });
        assert_eq!(HashKey::MICROSOFT.symmetry(), Symmetry { ipv4: false, ipv6: false });
    }

    proptest! {
        /// The claim of `symmetry` against the hash itself, on keys that repeat with some period.
        #[test]
        fn symmetric_keys_hash_both_directions_alike(
            pattern in proptest::collection::vec(any::<u8>(), 1..=16),
            input in any::<[u8; 36]>(),
        ) {
            let bytes: Vec<u8> = pattern.iter().copied().cycle().take(40).collect();
            let key = HashKey::from_bytes(&bytes).unwrap();
            let mut swapped = input;
            swapped[..32].rotate_left(16);
            swapped[32..].rotate_left(2);
            if key.symmetry().ipv6 {
                prop_assert_eq!(key.hash(&input), key.hash(&swapped));
            }
            let mut swapped = input;
            swapped[..8].rotate_left(4);
            swapped[8..12].rotate_left(2);
            if key.symmetry().ipv4 {
                prop_assert_eq!(key.hash(&input[..12]), key.hash(&swapped[..12]));
            }
        }
    }
}
