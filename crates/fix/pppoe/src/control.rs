//! Control packets (RFC 1661 section 5) and configuration options (section 6): reading and writing.

use thiserror::Error;
use wire::emit::{ControlPacket, Emit, Ppp, headers};
use wire::ppp::PppProtocol;

/// Codes of control packets (RFC 1661 section 5, RFC 1570 section 2); from 8 on those of LCP alone.
pub(crate) mod code {
    pub(crate) const CONFIGURE_REQUEST: u8 = 1;
    pub(crate) const CONFIGURE_ACK: u8 = 2;
    pub(crate) const CONFIGURE_NAK: u8 = 3;
    pub(crate) const CONFIGURE_REJECT: u8 = 4;
    pub(crate) const TERMINATE_REQUEST: u8 = 5;
    pub(crate) const TERMINATE_ACK: u8 = 6;
    pub(crate) const CODE_REJECT: u8 = 7;
    pub(crate) const PROTOCOL_REJECT: u8 = 8;
    pub(crate) const ECHO_REQUEST: u8 = 9;
    pub(crate) const ECHO_REPLY: u8 = 10;
    pub(crate) const IDENTIFICATION: u8 = 12;
    pub(crate) const TIME_REMAINING: u8 = 13;
}

/// What is wrong with a control packet or one of its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    #[error("{0}")]
    Header(#[from] wire::error::Error),
    /// An option of which only the type is there.
    #[error("the option at byte {at} ends behind its type")]
    Cut {
        /// Bytes of the options before it.
        at: usize,
    },
    /// An option whose length does not even count its own type and length.
    #[error("the option of type {kind} at byte {at} has length {length}, the least is 2")]
    Short {
        /// Bytes of the options before it.
        at: usize,
        kind: u8,
        /// Its length: 0 or 1.
        length: u8,
    },
    /// An option that reaches beyond the packet.
    #[error("the option of type {kind} at byte {at} has length {length}, with {left} bytes left")]
    Exceeds {
        /// Bytes of the options before it.
        at: usize,
        kind: u8,
        length: u8,
        /// Bytes from its type to the end of the packet.
        left: usize,
    },
    /// A packet that is too short for what its code says is in it.
    #[error("code {code} has {found} bytes of data, the least is {least}")]
    Data {
        code: u8,
        /// Bytes behind the header.
        found: usize,
        /// Bytes requested.
        least: usize,
    },
}

/// What was read of a control packet.
pub(crate) type Parsed<T> = Result<T, ControlError>;

/// One configuration option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigurationOption<'a> {
    pub kind: u8,
    pub data: &'a [u8],
}

/// Iterator over the options in the data of a Configure packet; one that does not fit ends it with an error.
pub fn options(data: &[u8]) -> Options<'_> {
    Options { bytes: data, at: 0 }
}

/// See [`options`].
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = Parsed<ConfigurationOption<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let left = self.bytes.get(at..).filter(|left| !left.is_empty())?;
        self.at = self.bytes.len();
        let Some(&[kind, length]) = left.first_chunk::<2>() else {
            return Some(Err(ControlError::Cut { at }));
        };
        if length < 2 {
            return Some(Err(ControlError::Short { at, kind, length }));
        }
        let Some(data) = left.get(2..usize::from(length)) else {
            return Some(Err(ControlError::Exceeds { at, kind, length, left: left.len() }));
        };
        self.at = at + usize::from(length);
        Some(Ok(ConfigurationOption { kind, data }))
    }
}

/// Whether an option of this type stands in `data`.
pub(crate) fn has_option(kind: u8, data: &[u8]) -> bool {
    options(data).map_while(Result::ok).any(|option| option.kind == kind)
}

/// Appends an option. Data beyond 253 bytes, the most that the length can express, is cut off; no option of this crate is as
/// long.
pub fn put_option(kind: u8, data: &[u8], options: &mut Vec<u8>) {
    let data = data.get(..data.len().min(253)).unwrap_or_default();
    options.extend([kind, data.len() as u8 + 2]);
    options.extend(data);
}

/// A control packet behind its protocol field, as [`Action::Send`](crate::session::Action::Send) wants it. `limit`: the most
/// bytes that the peer receives behind the protocol field (its MRU); `None` where it would be longer.
pub fn packet(protocol: PppProtocol, packet: ControlPacket<'_>, limit: u16) -> Option<Vec<u8>> {
    if packet.length() > usize::from(limit) {
        return None;
    }
    let mut bytes = vec![0; 2 + packet.length()];
    headers(&[&Ppp { protocol }, &packet], &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &[u8]) -> Vec<Result<(u8, &[u8]), ControlError>> {
        options(data).map(|option| option.map(|option| (option.kind, option.data))).collect()
    }

    /// Attack 2: zero-length and oversized options. The walk ends, and says which option is wrong and why.
    #[test]
    fn options_that_do_not_fit_end_the_walk() {
        let first = Ok((1, &b"\x05\xd4"[..]));
        let cases: [(&[u8], ControlError); 5] = [
            (b"\x01\x04\x05\xd4\x05", ControlError::Cut { at: 4 }),
            (b"\x01\x04\x05\xd4\x05\x00\x01", ControlError::Short { at: 4, kind: 5, length: 0 }),
            (b"\x01\x04\x05\xd4\x05\x01\x01", ControlError::Short { at: 4, kind: 5, length: 1 }),
            (b"\x01\x04\x05\xd4\x05\x06\x01", ControlError::Exceeds { at: 4, kind: 5, length: 6, left: 3 }),
            (b"\x01\x04\x05\xd4\x05\xff", ControlError::Exceeds { at: 4, kind: 5, length: 255, left: 2 }),
        ];
        for (data, error) in cases {
            assert_eq!(read(data), [first, Err(error)]);
        }
        assert_eq!(read(b"\x07\x02\x08\x02"), [Ok((7, &b""[..])), Ok((8, &b""[..]))]);
        assert_eq!(read(b""), []);
    }

    #[test]
    fn options_are_read_as_written() {
        let mut data = Vec::new();
        put_option(1, &1492_u16.to_be_bytes(), &mut data);
        put_option(7, &[], &mut data);
        assert_eq!(data, b"\x01\x04\x05\xd4\x07\x02");
        assert!(has_option(7, &data) && !has_option(5, &data));
        put_option(9, &[1; 300], &mut data);
        assert_eq!(read(&data).last(), Some(&Ok((9, &[1; 253][..]))));
    }

    #[test]
    fn a_packet_is_no_longer_than_its_limit() {
        let long = ControlPacket { code: 9, identifier: 1, data: &[0; 100] };
        assert_eq!(packet(PppProtocol::LCP, long, 103), None);
        assert_eq!(packet(PppProtocol::LCP, long, 104).map(|bytes| bytes.len()), Some(106));
        let short = ControlPacket { code: 5, identifier: 3, data: b"bye" };
        let bytes = packet(PppProtocol::LCP, short, 1492);
        assert_eq!(bytes.as_deref(), Some(&b"\xc0\x21\x05\x03\x00\x07bye"[..]));
    }
}
