//! What stands in the payload of a test's datagrams, so that the sink can distinguish loss from reordering.
//!
//! All numbers are big-endian:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0 to 2 | `rxb` |
//! | 3 | kind: `d` data, `b` begin, `e` end; `s`: data, too short for what follows |
//! | 4 to 7 | run: drawn by each sender |
//! | 8 to 9 | flow: each socket of the sender has its own number |
//! | 10 to 15 | data: sequence number, from 0 in each flow; end: how many were sent with a number; begin: 0 |
//! | 16 on | `0x5a` |
//!
//! A datagram of 4 to 15 bytes has the first four alone, a shorter one nothing. Begin and end take 16 bytes, whatever the
//! payload, and are counted by neither side. A flow whose beginning was seen is known from its number 0 on: what is missing
//! there was lost, and not sent before anybody listened.

/// Bytes of the header; payloads that are shorter have no sequence number.
pub const HEADER: usize = 16;
/// Bytes by which a payload is known for one of a test.
pub const MARK: usize = 4;
pub const FILLER: u8 = 0x5a;
pub const SEQUENCES: u64 = 1 << 48;

const NAME: [u8; 3] = *b"rxb";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data,
    Begin,
    /// The flow has ended, after so many.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId {
    pub run: u32,
    pub flow: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    pub id: FlowId,
    pub sequence: u64,
}

impl Header {
    /// The bytes.
    pub fn bytes(&self) -> [u8; HEADER] {
        let kind = match self.kind {
            Kind::Data => b'd',
            Kind::Begin => b'b',
            Kind::End => b'e',
        };
        let run = self.id.run.to_be_bytes();
        let number = u64::from(self.id.flow) << 48 | (self.sequence & (SEQUENCES - 1));
        let number = number.to_be_bytes();
        let mut bytes = [0; HEADER];
        let parts = NAME.iter().chain([&kind]).chain(&run).chain(&number);
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = *part);
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    Numbered(Header),
    /// It is of a test, and too short for a number.
    Unnumbered,
    Foreign,
}

pub fn read(payload: &[u8]) -> Read {
    let Some((mark, rest)) = payload.split_first_chunk::<MARK>() else { return Read::Foreign };
    let [a, b, c, kind] = *mark;
    if [a, b, c] != NAME {
        return Read::Foreign;
    }
    let kind = match kind {
        b'd' => Kind::Data,
        b'b' => Kind::Begin,
        b'e' => Kind::End,
        b's' if payload.len() < HEADER => return Read::Unnumbered,
        _ => return Read::Foreign,
    };
    let Some((run, rest)) = rest.split_first_chunk() else { return Read::Foreign };
    let Some(number) = rest.first_chunk() else { return Read::Foreign };
    let number = u64::from_be_bytes(*number);
    let id = FlowId { run: u32::from_be_bytes(*run), flow: (number >> 48) as u16 };
    Read::Numbered(Header { kind, id, sequence: number & (SEQUENCES - 1) })
}

/// Writes what stays the same in every payload of this length.
pub fn prepare(payload: &mut [u8]) {
    payload.fill(FILLER);
    if (MARK..HEADER).contains(&payload.len()) {
        payload.iter_mut().zip(NAME.iter().chain(b"s")).for_each(|(byte, part)| *byte = *part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_are_written() {
        for kind in [Kind::Data, Kind::Begin, Kind::End] {
            for sequence in [0, 1, SEQUENCES - 1] {
                let header = Header { kind, id: FlowId { run: 0xdead_beef, flow: 0x1234 }, sequence };
                assert_eq!(read(&header.bytes()), Read::Numbered(header));
                assert_eq!(read(&[&header.bytes()[..], &[FILLER; 9]].concat()), Read::Numbered(header));
                // Cut anywhere it is nobody's.
                for end in 0..HEADER {
                    assert_eq!(read(&header.bytes()[..end]), Read::Foreign, "{end}");
                }
            }
        }
        let header = Header { kind: Kind::Data, id: FlowId { run: 1, flow: 2 }, sequence: 3 };
        assert_eq!(header.bytes(), *b"rxbd\0\0\0\x01\0\x02\0\0\0\0\0\x03");
    }

    #[test]
    fn short_payloads_have_no_number_and_shorter_ones_nothing() {
        for length in 0..=20 {
            let mut payload = vec![0; length];
            prepare(&mut payload);
            let expected = if (MARK..HEADER).contains(&length) { Read::Unnumbered } else { Read::Foreign };
            assert_eq!(read(&payload), expected, "{length}");
        }
        assert_eq!(read(b"rxbs............"), Read::Foreign);
        assert_eq!(read(b"rxbx............"), Read::Foreign);
    }
}
