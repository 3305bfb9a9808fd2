//! Packed captures: gzip and Zstandard, recognised by their first bytes. Both decoders here return everything
//! that could be unpacked before an error, so that no whole record before the damage is lost.

mod gzip;
mod zstd;

use std::io::{BufReader, Read};

use crate::Compression;

const INPUT_BUFFER: usize = 256 << 10;

/// RFC 1952 section 2.3.1: ID1, ID2, CM = deflate.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
/// RFC 8878 section 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How a file that starts with these bytes is packed.
pub(crate) fn recognise(head: &[u8]) -> Compression {
    let skippable = matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]); // RFC 8878 section 3.1.2
    if head.starts_with(&GZIP) {
        Compression::Gzip
    } else if head.starts_with(&ZSTD) || skippable {
        Compression::Zstd
    } else {
        Compression::None
    }
}

/// Unpacks what `reader` yields.
pub(crate) fn unpack(compression: Compression, reader: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    let input = BufReader::with_capacity(INPUT_BUFFER, reader);
    match compression {
        Compression::None => Box::new(input),
        Compression::Gzip => Box::new(gzip::Gzip::new(input)),
        Compression::Zstd => Box::new(zstd::Zstd::new(input)),
    }
}
