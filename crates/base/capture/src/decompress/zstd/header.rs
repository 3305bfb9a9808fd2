//! Frame headers (RFC 8878 sections 3.1.1.1 and 3.1.2), read before the decoder sees them: it would set
//! memory aside for any window that a header asks for.

use std::io::{self, Read};

use super::cut;
use crate::decompress::ZSTD;

/// Largest window that is unpacked, 128 MiB: `ZSTD_WINDOWLOG_LIMIT_DEFAULT` (27) of the zstd program.
const MAX_WINDOW: u64 = 128 << 20;

const PART: &str = "a frame header";

/// The header at the start of a frame.
pub(super) enum Head {
    /// Nothing to unpack, to be passed over.
    Skippable {
        /// Bytes that follow.
        length: u32,
    },
    /// Blocks follow.
    Frame {
        /// The whole header, from the magic number on.
        bytes: Vec<u8>,
        /// Bytes that the decoder must keep.
        window: u64,
    },
}

/// Reads one header. Err says in words why the frame cannot be unpacked.
pub(super) fn read_head(input: &mut impl Read) -> io::Result<Head> {
    let magic: [u8; 4] = take(input)?;
    if matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
        return Ok(Head::Skippable { length: u32::from_le_bytes(take(input)?) });
    }
    if magic != ZSTD {
        return Err(io::Error::other(format!(
            "what follows a frame starts with {:02x} {:02x} {:02x} {:02x}, which is no zstd frame",
            magic[0], magic[1], magic[2], magic[3]
        )));
    }
    let [descriptor] = take(input)?;
    // Section 3.1.1.1.1.4: a decoder must ensure that the bit is not set.
    if descriptor & 0x08 != 0 {
        return Err(io::Error::other(
            "a frame header sets the reserved bit, which only a later format can mean",
        ));
    }
    let mut bytes = Vec::from(magic);
    bytes.push(descriptor);
    let single_segment = descriptor & 0x20 != 0;
    let mut window = None;
    if !single_segment {
        let [byte] = take(input)?;
        bytes.push(byte);
        // Section 3.1.1.1.2.
        let base = 1u64 << (10 + (byte >> 3));
        window = Some(base + base / 8 * u64::from(byte & 7));
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = match descriptor >> 6 {
        0 => usize::from(single_segment),
        flag => 1 << flag,
    };
    let mut rest = [0; 12];
    let rest = &mut rest[..dictionary + content];
    input.read_exact(rest).map_err(in_header)?;
    bytes.extend_from_slice(rest);
    let window = window.unwrap_or_else(|| content_size(&rest[dictionary..]));
    if window > MAX_WINDOW {
        let limit = MAX_WINDOW >> 20;
        // 31 is as far as the option goes.
        let way_out = if window <= 1 << 31 { "; unpack it with zstd -d --long=31 first" } else { "" };
        return Err(io::Error::other(format!(
            "a frame needs a window of {window} bytes, above the limit of {limit} MiB{way_out}"
        )));
    }
    Ok(Head::Frame { bytes, window })
}

/// Section 3.1.1.1.4: little endian; two bytes count from 256.
fn content_size(field: &[u8]) -> u64 {
    let value = field.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    if field.len() == 2 { value + 256 } else { value }
}

fn take<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(in_header)?;
    Ok(bytes)
}

fn in_header(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof { cut(PART) } else { error }
}
