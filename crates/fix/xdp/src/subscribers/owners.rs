//! Whose an address is, for the programs.

use crate::error::Error;
use crate::load::map_error;
use crate::subscribers_layout::{Control, OwnerValue, Prefix6};
use aya::maps::{HashMap, MapData};
use kernel::bpf::SharedWords;
use std::fmt;
use std::mem::offset_of;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const ANY: u64 = 0;
const VALUE: usize = size_of::<OwnerValue>();

/// The prefixes of all sessions. The longest one that has an address counts; where there are prefixes of more lengths than the
/// programs look up, the shorter ones are left to the caller. Whose a prefix of IPv4 is stands in the index that the caller writes.
pub struct Owners {
    ipv6: HashMap<MapData, [u8; size_of::<Prefix6>()], [u8; VALUE]>,
    lengths4: Lengths,
    lengths6: Lengths,
    control: Arc<SharedWords>,
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owners")
    }
}

/// How many prefixes there are of each length.
struct Lengths {
    counts: [u32; 129],
    /// Where the programs read which there are, a word of the control memory.
    word: usize,
    /// A prefix could not be written: whose an address is, none of this IP version says any more.
    is_incomplete: bool,
}

impl Lengths {
    const fn new(offset: usize) -> Lengths {
        Lengths { counts: [0; 129], word: offset / 8, is_incomplete: false }
    }

    /// One prefix more or less of a length.
    fn count(&mut self, length: u8, change: i32, control: &SharedWords) {
        if let Some(count) = self.counts.get_mut(usize::from(length)) {
            *count = count.saturating_add_signed(change);
        }
        self.publish(control);
    }

    fn publish(&self, control: &SharedWords) {
        if let Some(word) = control.words().get(self.word) {
            let lengths = if self.is_incomplete { 0 } else { packed(&self.counts) };
            word.store(lengths, Ordering::Release);
        }
    }
}

/// The longest lengths that there are, a byte each and one, the longest in the lowest.
fn packed(counts: &[u32; 129]) -> u64 {
    let lengths = counts.iter().enumerate().rev().filter(|(_, count)| **count > 0);
    lengths.take(8).zip(0..).fold(0, |word, ((length, _), place)| word | (length as u64 + 1) << (8 * place))
}

impl Owners {
    pub(super) fn new(
        ipv6: HashMap<MapData, [u8; size_of::<Prefix6>()], [u8; VALUE]>,
        control: Arc<SharedWords>,
    ) -> Owners {
        let lengths4 = Lengths::new(offset_of!(Control, lengths4));
        let lengths6 = Lengths::new(offset_of!(Control, lengths6));
        Owners { ipv6, lengths4, lengths6, control }
    }

    /// Packets of this prefix, whose address has no other bits, are those of the session at a place. One of IPv4 is in the index.
    ///
    /// # Errors
    ///
    /// The kernel takes no more of IPv6. From then on the programs leave all packets of IPv6 alone.
    pub fn insert(
        &mut self,
        (address, length): (IpAddr, u8),
        place: u32,
        generation: u16,
    ) -> Result<(), Error> {
        let IpAddr::V6(address) = address else {
            self.lengths4.count(length, 1, &self.control);
            return Ok(());
        };
        let value = [place, generation.into()].map(u32::to_ne_bytes);
        let mut bytes = [0; VALUE];
        bytes.copy_from_slice(value.as_flattened());
        let written = self.ipv6.insert(key6(address.octets(), length), bytes, ANY);
        self.lengths6.is_incomplete |= written.is_err();
        self.lengths6.count(length, 1, &self.control);
        written.map_err(|error| map_error("write whose an address is", error))
    }

    /// Takes a prefix away; one of IPv4 is in the index still.
    pub fn remove(&mut self, (address, length): (IpAddr, u8)) {
        let IpAddr::V6(address) = address else {
            self.lengths4.count(length, -1, &self.control);
            return;
        };
        // What is there still leads to a session that has ended: its generation says so.
        let _ = self.ipv6.remove(&key6(address.octets(), length));
        self.lengths6.count(length, -1, &self.control);
    }
}

fn key6(address: [u8; 16], length: u8) -> [u8; 24] {
    let mut key = [0; 24];
    let (front, back) = key.split_at_mut(16);
    front.copy_from_slice(&address);
    back.copy_from_slice(&u64::from(length).to_ne_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::packed;

    #[test]
    fn the_longest_lengths_come_first() {
        let mut counts = [0; 129];
        assert_eq!(packed(&counts), 0);
        for length in [0, 56, 64, 128] {
            counts[length] = 3;
        }
        assert_eq!(packed(&counts).to_le_bytes(), [129, 65, 57, 1, 0, 0, 0, 0]);
        counts[20..30].fill(1);
        assert_eq!(packed(&counts).to_le_bytes(), [129, 65, 57, 30, 29, 28, 27, 26]);
    }
}
