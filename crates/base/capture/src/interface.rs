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
        self.raw_to_ns(self.raw_time(buf, at)?)
    }

    /// Least and greatest [`Self::timestamp_ns`] of the records whose captured bytes start at `offsets`.
    pub(crate) fn time_span(
        &self,
        buf: &[u8],
        offsets: impl Iterator<Item = usize> + Clone,
    ) -> Option<(i64, i64)> {
        // Raw numbers are compared, and only the two extremes are converted, which needs many instructions.
        // The conversion never makes a later one earlier.
        let (mut least, mut greatest) = (u64::MAX, 0);
        for time in offsets.clone().filter_map(|at| self.raw_time(buf, at)) {
            least = least.min(time);
            greatest = greatest.max(time);
        }
        if least > greatest {
            return None;
        }
        match (self.raw_to_ns(least), self.raw_to_ns(greatest)) {
            (Some(least), Some(greatest)) => Some((least, greatest)),
            // An extreme that no i64 can hold: those of the others count.
            _ => offsets.filter_map(|at| self.timestamp_ns(buf, at)).fold(None, |span, time| {
                let (low, high) = span.unwrap_or((time, time));
                Some((low.min(time), high.max(time)))
            }),
        }
    }

    /// A number that grows with the time: of pcap nanoseconds, because a damaged fraction may be more than a
    /// second; of pcapng the ticks.
    #[inline(always)]
    fn raw_time(&self, buf: &[u8], at: usize) -> Option<u64> {
        let time = halves_at(self.big_endian, buf, at.checked_sub(self.timestamp_back.into())?)?;
        if !self.split_seconds {
            return Some(time);
        }
        let to_ns = if self.unit == TimestampUnit::Decimal(9) { 1 } else { 1_000 };
        Some((time >> 32) * 1_000_000_000 + (time & 0xffff_ffff) * to_ns)
    }

    fn raw_to_ns(&self, raw: u64) -> Option<i64> {
        let ns = if self.split_seconds { raw.into() } else { self.ticks_to_ns(raw) };
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
