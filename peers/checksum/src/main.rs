//! The internet checksum of rxlane against smoltcp's, etherparse's and DPDK's.
//!
//! All are called in one program, turn by turn, over the same inputs, and timed in CPU time of the thread. Before
//! anything is measured all have to give the same checksums. DPDK's function is inlined into a C loop compiled for this
//! very processor (-march=native), the others are compiled for any x86-64; rxlane chooses at run time.

mod dpdk;
mod measure;

use measure::{Way, compare};
use rxlane_offload::checksum::{Path, Sum};
use std::process::ExitCode;

/// What is required against the best peer, and for how many bytes.
const TARGET: (usize, f64) = (1460, 1.3);
const LENGTHS: [usize; 7] = [20, 40, 64, 576, 1460, 9000, 65000];

/// Bytes of all inputs together, about: what the first-level cache holds besides the rest.
const TOGETHER: usize = 16384;

/// Inputs of one length in one buffer, each starting 6 bytes after a multiple of 64, as behind headers.
pub struct Inputs {
    bytes: Vec<u8>,
    length: usize,
    stride: usize,
    count: usize,
}

impl Inputs {
    fn new(length: usize) -> Inputs {
        let stride = (length + 6).next_multiple_of(64);
        let count = (TOGETHER / stride).max(1);
        let mut state = 1_u64;
        let bytes = (0..stride * count)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state >> 56) as u8
            })
            .collect();
        Inputs { bytes, length, stride, count }
    }

    /// The bytes from the first input on, bytes from one input to the next, bytes of an input, inputs.
    fn parts(&self) -> (&[u8], usize, usize, usize) {
        (&self.bytes[6..], self.stride, self.length, self.count)
    }

    /// The exclusive or of what `sum` makes of every input.
    #[inline(always)]
    fn each(&self, sum: impl Fn(&[u8]) -> u16) -> u16 {
        let inputs = self.bytes.chunks_exact(self.stride);
        inputs.fold(0, |all, input| all ^ sum(&input[6..6 + self.length]))
    }
}

fn rxlane(inputs: &Inputs) -> u16 {
    inputs.each(|input| Sum::of(input).folded())
}

fn rxlane_by(path: Path) -> impl Fn(&Inputs) -> u16 {
    move |inputs| inputs.each(|input| Sum::by_path(path, input).map_or(0, Sum::folded))
}

fn smoltcp(inputs: &Inputs) -> u16 {
    inputs.each(smoltcp::wire::checksum::data)
}

fn etherparse(inputs: &Inputs) -> u16 {
    // Its result is as the words lie in memory, and complemented.
    inputs
        .each(|input| !etherparse::checksum::Sum16BitWords::new().add_slice(input).ones_complement().to_be())
}

fn dpdk(inputs: &Inputs) -> u16 {
    dpdk::raw_cksum(inputs).to_be()
}

fn bench(length: usize) -> Result<(), String> {
    let inputs = Inputs::new(length);
    let paths: Vec<_> = Path::ALL.into_iter().filter(|path| path.is_available()).collect();
    let by_path: Vec<_> = paths.iter().map(|path| (format!("rxlane {path}"), rxlane_by(*path))).collect();
    let mut ways: Vec<Way> = vec![
        Way::new("rxlane", &rxlane),
        Way::new("smoltcp", &smoltcp),
        Way::new("etherparse", &etherparse),
        Way::new("DPDK", &dpdk),
    ];
    ways.extend(by_path.iter().map(|(name, way)| Way::new(name, way)));
    let expected = rxlane(&inputs);
    if let Some(way) = ways.iter().find(|way| (way.sums)(&inputs) != expected) {
        return Err(format!("{length} bytes: {} differs from rxlane", way.name));
    }
    let target = (length == TARGET.0).then_some(TARGET.1);
    compare(length, &inputs, &ways, inputs.count, target);
    Ok(())
}

fn main() -> ExitCode {
    println!("ns a checksum, median [least-greatest] of {} turns; ratios turn by turn", measure::TURNS);
    match LENGTHS.into_iter().try_for_each(bench) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-checksum: {error}");
            ExitCode::FAILURE
        }
    }
}
