//! Writing captures.

use std::io::{self, BufWriter, Write};

use crate::LinkType;
use crate::walk::MAX_CAPTURED;

const BUFFER: usize = 128 << 10;

/// Resolution of the timestamps written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// 10^-6 s; nanoseconds given are rounded down.
    Microseconds,
    /// 10^-9 s.
    Nanoseconds,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Pcap,
    Pcapng,
}

/// Writes a capture of one interface to anything that takes bytes, through its own buffer. Numbers are little
/// endian.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    target: Target,
    resolution: Resolution,
}

impl<W: Write> Writer<W> {
    /// Starts a classic pcap file, version 2.4 (draft-ietf-opsawg-pcap section 4).
    pub fn pcap(out: W, link_type: LinkType, resolution: Resolution) -> io::Result<Self> {
        let magic: u32 = match resolution {
            Resolution::Microseconds => 0xa1b2_c3d4,
            Resolution::Nanoseconds => 0xa1b2_3c4d,
        };
        let version = 4 << 16 | 2;
        let head = [magic, version, 0, 0, MAX_CAPTURED, link_type.number().into()];
        let mut out = BufWriter::with_capacity(BUFFER, out);
        out.write_all(words_le(&mut [0; 24], head))?;
        Ok(Self { out, target: Target::Pcap, resolution })
    }

    /// Starts a pcapng file: one section of unstated length, one interface (draft-ietf-opsawg-pcapng sections 4.1 and 4.2).
    pub fn pcapng(out: W, link_type: LinkType, resolution: Resolution) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER, out);
        out.write_all(words_le(&mut [0; 28], [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]))?;
        let digits = match resolution {
            Resolution::Microseconds => 6,
            Resolution::Nanoseconds => 9,
        };
        // Options: if_tsresol (9) of one byte, padded; end of options.
        let words = [1, 32, link_type.number().into(), MAX_CAPTURED, 0x0001_0009, digits, 0, 32];
        out.write_all(words_le(&mut [0; 32], words))?;
        Ok(Self { out, target: Target::Pcapng, resolution })
    }

    /// Appends a record: nanoseconds since 1970-01-01 UTC, the captured bytes, the frame's length on the wire. Error:
    /// `InvalidInput` for a time that the format cannot express (before 1970; classic pcap: after 2106), for more than
    /// [`crate::MAX_CAPTURED`] bytes, or for a wire length below the captured one; otherwise those of the output.
    #[inline]
    pub fn write(&mut self, timestamp_ns: i64, data: &[u8], wire_len: u32) -> io::Result<()> {
        let captured = u32::try_from(data.len()).ok().filter(|&captured| captured <= MAX_CAPTURED);
        let captured = captured.ok_or_else(|| invalid("frame longer than 262144 bytes"))?;
        if wire_len < captured {
            return Err(invalid("length on the wire below the captured length"));
        }
        let time = u64::try_from(timestamp_ns).map_err(|_| invalid("time before 1970"))?;
        match self.target {
            Target::Pcap => self.write_pcap(time, data, captured, wire_len),
            Target::Pcapng => self.write_pcapng(time, data, captured, wire_len),
        }
    }

    fn write_pcap(&mut self, time: u64, data: &[u8], captured: u32, wire_len: u32) -> io::Result<()> {
        let seconds = u32::try_from(time / 1_000_000_000)
            .map_err(|_| invalid("time after 2106, which classic pcap cannot express; use pcapng"))?;
        let nanoseconds = (time % 1_000_000_000) as u32;
        let fraction = match self.resolution {
            Resolution::Microseconds => nanoseconds / 1000,
            Resolution::Nanoseconds => nanoseconds,
        };
        self.out.write_all(words_le(&mut [0; 16], [seconds, fraction, captured, wire_len]))?;
        self.out.write_all(data)
    }

    fn write_pcapng(&mut self, time: u64, data: &[u8], captured: u32, wire_len: u32) -> io::Result<()> {
        let ticks = match self.resolution {
            Resolution::Microseconds => time / 1000,
            Resolution::Nanoseconds => time,
        };
        let padded = captured.next_multiple_of(4);
        let length = 32 + padded;
        let head = [6, length, 0, (ticks >> 32) as u32, ticks as u32, captured, wire_len];
        self.out.write_all(words_le(&mut [0; 28], head))?;
        self.out.write_all(data)?;
        self.out.write_all(&[0; 3][..(padded - captured) as usize])?;
        self.out.write_all(&length.to_le_bytes())
    }

    /// Writes out what is buffered, for who reads along.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes out what is buffered and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

fn words_le<const WORDS: usize, const BYTES: usize>(
    bytes: &mut [u8; BYTES],
    words: [u32; WORDS],
) -> &[u8; BYTES] {
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
