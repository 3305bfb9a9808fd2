//! What a capture file says about the interface that frames were taken from.

use crate::LinkType;
use crate::bytes::halves_at;

/// How the timestamps of an interface count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampUnit {
    /// 10^-n seconds. 6 is microseconds, the default; 9 nanoseconds.
    Decimal(u8),
    /// 2^-n seconds.
    Binary(u8),
}

/// An interface of a capture: the global header of a classic pcap file or an Interface Description Block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Link type of its frames.
    pub link_type: LinkType,
    /// Link type number as written in the file.
    pub link_number: u16,
    /// Most bytes captured of a frame; 0 means no limit.
    pub snaplen: u32,
    /// Bytes of frame check sequence at the end of each frame in the file, if stated. They are left out of
    /// [`crate::Frame::data`] and [`crate::Frame::wire_len`].
    pub fcs_bytes: Option<u8>,
    /// `if_name` of pcapng, at most its first 64 bytes.
    pub name: Option<Box<str>>,
    /// Section it belongs to, from 0; always 0 in classic pcap.
    pub section: u32,
    /// Unit of its timestamps.
    pub unit: TimestampUnit,
    /// Seconds to add to its timestamps (`if_tsoffset`), 0 unless stated.
    pub offset_s: i64,
    /// The file's numbers are big endian.
    pub(crate) big_endian: bool,
    /// Where the timestamp of a record lies: bytes before its first captured byte.
    pub(crate) timestamp_back: u8,
    /// Timestamp is seconds and fraction instead of one 64-bit count.
    pub(crate) split_seconds: bool,
}

impl Interface {
    /// Nanoseconds since 1970-01-01 UTC of the record whose captured bytes start at `at` in `buf`.
    pub(crate) fn timestamp_ns(&self, buf: &[u8], at: usize) -> Option<i64> {
        let (upper, lower) = halves_at(self.big_endian, buf, at.checked_sub(self.timestamp_back.into())?)?;
        let ns = if self.split_seconds {
            i128::from(upper) * 1_000_000_000 + self.ticks_to_ns(lower.into())
        } else {
            self.ticks_to_ns((u64::from(upper) << 32) | u64::from(lower))
        };
        i64::try_from(ns + i128::from(self.offset_s) * 1_000_000_000).ok()
    }

    fn ticks_to_ns(&self, ticks: u64) -> i128 {
        let ticks = i128::from(ticks);
        match self.unit {
            TimestampUnit::Decimal(digits @ 0..=9) => ticks * 10_i128.pow(9 - u32::from(digits)),
            // 64 bits of 10^-29 s are less than a nanosecond: the division by more digits gives 0 too.
            TimestampUnit::Decimal(digits) => ticks / 10_i128.pow((u32::from(digits) - 9).min(30)),
            TimestampUnit::Binary(bits) => (ticks * 1_000_000_000) >> bits.min(126),
        }
    }
}
