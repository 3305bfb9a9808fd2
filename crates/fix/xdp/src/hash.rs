//! The bucket of a flow: a keyed hash that `bpf/flow.h` computes too.
//!
//! Pairs of 32-bit words, each plus a word of the key, are multiplied to 64 bits and summed (NH of UMAC, RFC 4418
//! section 5.2.2); a multiplication mixes the sum, and its highest eight bits are the bucket. Words are
//! addresses, ports and protocol as this processor loads them, so buckets differ between processors of different
//! byte order, where nobody compares them.

use crate::layout::{KEY_WORDS, Settings};
use wire::{FlowKey, IpVersion};

/// 2^64 divided by the golden ratio, made odd.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bucket, below [`BUCKETS`](crate::layout::BUCKETS). Ports and protocol count where the key has ports: fragments
/// have none, and other packets without them go by their addresses.
pub fn bucket(flow: &FlowKey, settings: &Settings) -> u8 {
    let words = Words::of(flow);
    let words = if settings.symmetric != 0 { words.ordered() } else { words };
    (mix(nh(&words, &settings.key)) >> 56) as u8
}

/// What is hashed of a flow; in an IPv4 flow three words of each address are not there.
struct Words {
    source: [u32; 4],
    destination: [u32; 4],
    addresses: usize,
    ports: u32,
    protocol: u32,
}

impl Words {
    fn of(flow: &FlowKey) -> Words {
        let addresses = match flow.version() {
            IpVersion::V4 => 1,
            IpVersion::V6 => 4,
        };
        let mut all =
            flow.addresses_and_ports().as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
        let mut next = |count| {
            let mut words = [0; 4];
            words.iter_mut().zip(all.by_ref().take(count)).for_each(|(word, found)| *word = found);
            words
        };
        let (source, destination) = (next(addresses), next(addresses));
        let [ports, ..] = next(1);
        let (ports, protocol) = if flow.has_ports() { (ports, u32::from(flow.protocol())) } else { (0, 0) };
        Words { source, destination, addresses, ports, protocol }
    }

    /// The same for both directions: the smaller end first.
    fn ordered(self) -> Words {
        let Words { source, destination, addresses, ports, protocol } = self;
        let (low, high) = (ports as u16, (ports >> 16) as u16);
        if (source, low) <= (destination, high) {
            return self;
        }
        Words { source: destination, destination: source, addresses, ports: ports.rotate_left(16), protocol }
    }
}

fn nh(words: &Words, key: &[u32; KEY_WORDS]) -> u64 {
    let [ports_key, protocol_key, address_keys @ ..] = key;
    let pair = |first: u32, first_key: u32, second: u32, second_key: u32| {
        u64::from(first.wrapping_add(first_key)).wrapping_mul(u64::from(second.wrapping_add(second_key)))
    };
    let ends = words.source.iter().zip(&words.destination).zip(address_keys.as_chunks::<2>().0);
    ends.take(words.addresses)
        .map(|((source, destination), [source_key, destination_key])| {
            pair(*source, *source_key, *destination, *destination_key)
        })
        .fold(pair(words.ports, *ports_key, words.protocol, *protocol_key), u64::wrapping_add)
}

fn mix(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(MIX)
}
