//! The ring of an event (`struct perf_event_mmap_page`, `enum perf_event_type`).

use crate::socket::Mapping;
use std::sync::atomic::Ordering;

/// Where the kernel writes next, and what was read so far, in the first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Bytes of `struct perf_event_header`.
const HEADER: usize = 8;
/// `PERF_RECORD_LOST`: an id and a number. `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// `PERF_RECORD_MISC_CPUMODE_MASK`, `PERF_RECORD_MISC_KERNEL`, `PERF_RECORD_MISC_USER`.
const MODE: u16 = 7;
const KERNEL: u16 = 1;
const USER: u16 = 2;
/// Addresses from here on mark a context in a chain (`PERF_CONTEXT_MAX`).
const CONTEXTS: u64 = -4095_i64 as u64;

/// What a CPU was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The kernel.
    Kernel,
    /// A program.
    User,
    /// A virtual machine, or what the kernel does not say.
    Other,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// What the CPU was in.
    pub mode: Mode,
    /// The address that it executed.
    pub address: u64,
    /// Number of the process; 0 is the idle task of a CPU.
    pub process: u32,
    /// Fields of a tracepoint, as its format describes them; empty of others.
    pub raw: &'a [u8],
    chain: &'a [u8],
}

impl Sample<'_> {
    /// Addresses of the kernel's functions that led here, the one that executed first.
    pub fn callers(&self) -> impl Iterator<Item = u64> + '_ {
        self.chain
            .chunks_exact(8)
            .filter_map(|bytes| bytes.first_chunk())
            .map(|bytes| u64::from_ne_bytes(*bytes))
            .filter(|address| *address < CONTEXTS)
    }
}

#[derive(Debug)]
pub(super) struct Ring {
    mapping: Mapping,
    /// Where samples begin, and their bytes, a power of two.
    start: usize,
    size: usize,
    has_chain: bool,
    /// As the kernel counts: bytes since the beginning.
    tail: u64,
    lost: u64,
    /// A record that goes over the end of the ring.
    wrapped: Vec<u8>,
}

impl Ring {
    pub(super) fn new(mapping: Mapping, start: usize, size: usize, has_chain: bool) -> Ring {
        Ring { mapping, start, size, has_chain, tail: 0, lost: 0, wrapped: Vec::new() }
    }

    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn read(&mut self, mut take: impl FnMut(Sample<'_>)) {
        // The kernel writes records first and the head then (`perf_output_put_handle()`).
        let Some(head) = self.mapping.long(HEAD).map(|head| head.load(Ordering::Acquire)) else { return };
        while self.tail < head {
            let left = usize::try_from(head - self.tail).unwrap_or(0);
            let Some(length) = self.length().filter(|length| (HEADER..=left).contains(length)) else {
                // Nothing that is a record can follow.
                self.tail = head;
                break;
            };
            let record = record(&self.mapping, self.start, self.size, self.tail, length, &mut self.wrapped);
            match number(record, 0).zip(record.get(HEADER..)) {
                Some((LOST, body)) => self.lost = self.lost.saturating_add(long(body, 8).unwrap_or(0)),
                Some((SAMPLE, body)) => {
                    if let Some(sample) = sample(mode(record), body, self.has_chain) {
                        take(sample);
                    }
                }
                _ => {}
            }
            self.tail += length as u64;
        }
        if let Some(tail) = self.mapping.long(TAIL) {
            tail.store(self.tail, Ordering::Release);
        }
    }

    /// Bytes of the record at the tail. Records are aligned to eight bytes, so that no header goes over the end.
    fn length(&self) -> Option<usize> {
        let place = self.start + (self.tail as usize & (self.size - 1));
        let header = self.mapping.bytes(place, HEADER);
        Some(u16::from_ne_bytes(*header.get(6..)?.first_chunk()?).into())
    }
}

/// The bytes of a record, copied where it goes over the end of the ring.
fn record<'a>(
    mapping: &'a Mapping,
    start: usize,
    size: usize,
    tail: u64,
    length: usize,
    wrapped: &'a mut Vec<u8>,
) -> &'a [u8] {
    let place = tail as usize & (size - 1);
    let first = length.min(size - place);
    if first == length {
        return mapping.bytes(start + place, length);
    }
    wrapped.clear();
    wrapped.extend_from_slice(mapping.bytes(start + place, first));
    wrapped.extend_from_slice(mapping.bytes(start, length - first));
    wrapped
}

fn mode(record: &[u8]) -> Mode {
    let misc = record.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |two| u16::from_ne_bytes(*two));
    match misc & MODE {
        KERNEL => Mode::Kernel,
        USER => Mode::User,
        _ => Mode::Other,
    }
}

/// A sample of address, process and thread, and of a chain or raw data, in the order of `perf_output_sample()`
/// (kernel/events/core.c).
fn sample(mode: Mode, body: &[u8], has_chain: bool) -> Option<Sample<'_>> {
    let (address, process) = (long(body, 0)?, number(body, 8)?);
    let rest = body.get(16..)?;
    let (chain, raw) = if has_chain {
        let length = usize::try_from(long(rest, 0)?).ok()?.checked_mul(8)?;
        (rest.get(8..)?.get(..length)?, &[][..])
    } else {
        let length = usize::try_from(number(rest, 0)?).ok()?;
        (&[][..], rest.get(4..)?.get(..length)?)
    };
    Some(Sample { mode, address, process, raw, chain })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: usize = 4096;

    fn record_of(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(misc.to_ne_bytes());
        record.extend(((body.len() + HEADER) as u16).to_ne_bytes());
        record.extend(body);
        record
    }

    /// Address, process and thread, and a chain.
    fn clock(address: u64, chain: &[u64]) -> Vec<u8> {
        let mut body = address.to_ne_bytes().to_vec();
        body.extend([7_u32, 8].map(u32::to_ne_bytes).concat());
        body.extend((chain.len() as u64).to_ne_bytes());
        body.extend(chain.iter().flat_map(|address| address.to_ne_bytes()));
        record_of(SAMPLE, KERNEL, &body)
    }

    /// A ring of a page in which the kernel has written these bytes behind `begin`.
    fn ring(begin: u64, bytes: &[u8], has_chain: bool) -> Ring {
        let mut mapping = Mapping::anonymous(2 * PAGE).expect("memory");
        for (at, byte) in bytes.iter().enumerate() {
            mapping.bytes_mut(PAGE + (begin as usize + at) % PAGE, 1)[0] = *byte;
        }
        mapping.long(HEAD).expect("within").store(begin + bytes.len() as u64, Ordering::Release);
        let mut ring = Ring::new(mapping, PAGE, PAGE, has_chain);
        ring.tail = begin;
        ring
    }

    #[test]
    fn samples_are_read_over_the_end_of_the_ring_and_losses_counted() {
        let lost = record_of(LOST, 0, &[0_u64, 41].map(u64::to_ne_bytes).concat());
        let bytes = [clock(0x1000, &[CONTEXTS + 3, 0x1000, 0x2000]), lost, clock(0x3000, &[0x3000])].concat();
        for begin in [0, PAGE as u64 - 24, 5 * PAGE as u64 - 8] {
            let mut ring = ring(begin, &bytes, true);
            let mut seen = Vec::new();
            ring.read(|sample| {
                seen.push((sample.address, sample.process, sample.callers().collect::<Vec<_>>()))
            });
            assert_eq!(seen, [(0x1000, 7, vec![0x1000, 0x2000]), (0x3000, 7, vec![0x3000])], "{begin}");
            assert_eq!(ring.lost(), 41);
            let tail = ring.mapping.long(TAIL).expect("within").load(Ordering::Acquire);
            assert_eq!(tail, begin + bytes.len() as u64);
            ring.read(|sample| panic!("again: {sample:?}"));
        }
    }

    #[test]
    fn fields_of_a_tracepoint_are_raw_bytes() {
        let mut body = 0x1000_u64.to_ne_bytes().to_vec();
        body.extend([7_u32, 8, 4].map(u32::to_ne_bytes).concat());
        body.extend([1, 2, 3, 4]);
        let mut ring = ring(0, &record_of(SAMPLE, USER, &body), false);
        let mut seen = 0;
        ring.read(|sample| {
            seen += 1;
            assert_eq!((sample.mode, sample.raw), (Mode::User, &[1, 2, 3, 4][..]));
        });
        assert_eq!(seen, 1);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), has_chain: bool, begin in 0..4096_u64) {
            let mut ring = ring(begin & !7, &bytes, has_chain);
            ring.read(|sample| assert!(sample.callers().count() < 4096));
            let mut whole = clock(1, &[1, 2]);
            whole.truncate(bytes.len());
            let mut ring = self::ring(0, &whole, has_chain);
            ring.read(|sample| assert!(sample.callers().count() < 4096));
        }
    }
}
