//! A packet of IPv4 becomes fragments (RFC 791 sections 2.3 and 3.2).

use crate::framing::{put_word, word};
use offload::checksum;
use std::ops::Range;
use wire::ipv4;

/// The longest header.
pub(crate) const HEADER: usize = 60;
/// Bytes that the offset counts in.
const UNIT: usize = 8;
/// In the word of flags and offset.
const DONT_FRAGMENT: u16 = 0x4000;
const MORE: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Options: the end, the filler, and the bit of those that every fragment has.
const END: u8 = 0;
const FILLER: u8 = 1;
const COPIED: u8 = 0x80;

#[derive(Clone, Debug)]
pub(crate) struct Fragments {
    header: [u8; HEADER],
    length: usize,
    data: usize,
    /// Bytes of data of each fragment but the last.
    room: usize,
    at: usize,
    word: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) header: [u8; HEADER],
    pub(crate) length: usize,
    /// Which bytes behind the packet's header are its data.
    pub(crate) data: Range<usize>,
}

impl Fragments {
    /// Of a packet with this header, whose options are whole, and so many bytes behind it; each of at most `most` bytes.
    /// `None`: it is no header, it must not be fragmented, or there is no room for eight bytes of data.
    pub(crate) fn of(header: &[u8], data: usize, most: usize) -> Option<Fragments> {
        let seen = ipv4::Header::of(header.first_chunk()?);
        seen.check_header().ok()?;
        let length = seen.header_length();
        let word = word(header, 6)?;
        let room = most.checked_sub(length)? / UNIT * UNIT;
        let last = usize::from(word & OFFSET) * UNIT + data;
        if word & DONT_FRAGMENT != 0 || room == 0 || last > usize::from(u16::MAX) {
            return None;
        }
        let mut own = [0; HEADER];
        own.get_mut(..length)?.copy_from_slice(header.get(..length)?);
        Some(Fragments { header: own, length, data, room, at: 0, word })
    }

    /// Bytes of data of each fragment but the last.
    pub(crate) const fn room(&self) -> usize {
        self.room
    }

    /// Of the options, only those that are to be copied are in later fragments; the others become fillers.
    fn clean(&mut self) {
        let mut at = ipv4::Header::LENGTH;
        while at < self.length {
            let rest = self.header.get_mut(at..self.length).unwrap_or_default();
            let length = match rest {
                [] | [END, ..] => return,
                [FILLER, ..] => 1,
                [_, length, ..] => usize::from(*length),
                [_] => return,
            };
            let Some(option) = rest.get_mut(..length).filter(|_| length > 0) else { return };
            if option.first().is_some_and(|kind| kind & COPIED == 0) {
                option.fill(FILLER);
            }
            at += length;
        }
    }
}

impl Iterator for Fragments {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.at >= self.data {
            return None;
        }
        let start = self.at;
        let end = self.data.min(start + self.room);
        let offset = (self.word & OFFSET) + (start / UNIT) as u16;
        let more = if end < self.data { MORE } else { self.word & MORE };
        let total = (self.length + end - start) as u16;
        let mut header = self.header;
        put_word(&mut header, 2, total);
        put_word(&mut header, 6, self.word & !(OFFSET | MORE) | more | offset);
        put_word(&mut header, 10, 0);
        let sum = checksum::internet(header.get(..self.length).unwrap_or_default());
        put_word(&mut header, 10, sum);
        if start == 0 {
            self.clean();
        }
        self.at = end;
        Some(Piece { header, length: self.length, data: start..end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{emitted, ipv4};
    use wire::IpProtocol;
    use wire::emit::Ipv4;

    fn header(options: &[u8], data: usize, fragment_offset: u16, more_fragments: bool) -> Vec<u8> {
        let ip = Ipv4 {
            traffic_class: 3,
            identification: 77,
            dont_fragment: false,
            more_fragments,
            fragment_offset,
            options,
            ..ipv4(IpProtocol::UDP, options.len() + data)
        };
        emitted(&ip)
    }

    #[test]
    fn put_together_they_are_the_packet() {
        for (options, data, most, offset, more) in [
            (&[][..], 1480, 1492, 0, false),
            (&[], 1480, 1000, 0, false),
            (&[], 60_000, 576, 0, false),
            (&[], 1472, 68, 185, true),
            (&[7, 7, 4, 0, 0, 0, 0, 0x94, 4, 0, 0, 0], 1400, 800, 0, false),
        ] {
            let header = header(options, data, offset, more);
            let mut at = 0;
            let pieces: Vec<Piece> = Fragments::of(&header, data, most).expect("fragments").collect();
            for (number, piece) in pieces.iter().enumerate() {
                let own = &piece.header[..piece.length];
                let seen = ipv4::Header::of(own.first_chunk().expect("a header"));
                assert_eq!(checksum::internet(own), 0);
                assert_eq!(usize::from(seen.total_length()), piece.length + piece.data.len());
                assert!(usize::from(seen.total_length()) <= most && piece.data.start == at, "{piece:?}");
                assert_eq!(usize::from(seen.fragment_offset()), usize::from(offset) + at / 8);
                let is_last = number + 1 == pieces.len();
                assert_eq!(seen.more_fragments(), !is_last || more);
                assert_eq!((seen.identification(), seen.ttl()), (77, 64));
                if number > 0 && !options.is_empty() {
                    // Record route is in the first alone, router alert in all.
                    assert_eq!(own[20..], [1, 1, 1, 1, 1, 1, 1, 0x94, 4, 0, 0, 0]);
                }
                at = piece.data.end;
            }
            assert_eq!(at, data);
        }
    }

    #[test]
    fn what_must_or_can_not_be_is_not_fragmented() {
        let mut own = header(&[], 1480, 0, false);
        assert!(Fragments::of(&own, 1480, 27).is_none());
        assert!(Fragments::of(&own[..19], 1480, 1000).is_none());
        assert!(Fragments::of(&own, 65_536, 1000).is_none());
        own[6] |= 0x40;
        assert!(Fragments::of(&own, 1480, 1000).is_none());
    }

    #[test]
    fn options_of_wrong_lengths_end_nothing() {
        for length in [0, 1, 2, 40, 255] {
            let own = header(&[0x07, length, 0, 0], 1400, 0, false);
            assert_eq!(Fragments::of(&own, 1400, 800).expect("fragments").count(), 2);
        }
    }
}
