//! The Toeplitz hash by byte tables: no CPU feature needed.

use crate::HashKey;
use crate::key::Window;

const FLOW_BYTES: usize = 36;

/// One table per input byte: what each of its 256 values adds to the hash. The hash is linear over XOR, so
/// the contributions of the bytes are independent of each other.
#[derive(Clone)]
pub(crate) struct Tables {
    /// The bytes of addresses and ports, apart so that their number is known at compile time.
    flow: Box<[[u32; 256]; FLOW_BYTES]>,
    rest: Vec<[u32; 256]>,
}

fn table(key: &HashKey, byte: usize) -> [u32; 256] {
    let mut table = [0; 256];
    let windows = Window::of(key, byte);
    for value in 1..256_usize {
        // Take the lowest set bit off: both parts are already in the table or a single key window.
        let bit = value & value.wrapping_neg();
        let low = windows.of_bit(7 - bit.trailing_zeros());
        let before = table.get(value ^ bit).copied().unwrap_or(0);
        if let Some(entry) = table.get_mut(value) {
            *entry = before ^ low;
        }
    }
    table
}

impl Tables {
    pub(crate) fn new(key: &HashKey) -> Tables {
        let mut flow = Box::new([[0; 256]; FLOW_BYTES]);
        for (byte, place) in flow.iter_mut().enumerate() {
            *place = table(key, byte);
        }
        let rest = (FLOW_BYTES..key.covered()).map(|byte| table(key, byte)).collect();
        Tables { flow, rest }
    }

    /// `N` is at most 36.
    #[inline(always)]
    pub(crate) fn hash_flow<const N: usize>(&self, input: &[u8; N]) -> u32 {
        self.flow.iter().zip(input).fold(0, |hash, (table, byte)| hash ^ table[usize::from(*byte)])
    }

    /// The input is covered by the key, so every byte has its table.
    pub(crate) fn hash(&self, input: &[u8]) -> u32 {
        let tables = self.flow.iter().chain(&self.rest);
        tables.zip(input).fold(0, |hash, (table, byte)| hash ^ table[usize::from(*byte)])
    }
}
