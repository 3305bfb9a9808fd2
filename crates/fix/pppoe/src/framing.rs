//! What is around PPP in a frame of the session stage (RFC 2516 sections 4 and 6): a PPPoE header of code 0.

use wire::emit::{Emit, Pppoe};
use wire::error::{Error, Field, Layer, Rule};
use wire::pppoe::{Code, Header, Stage};

/// The payload of a frame of EtherType 0x8864 around `packet`, which begins with the PPP protocol field. What is longer than
/// the length field can say is cut.
pub fn wrapped(session: u16, packet: &[u8]) -> Vec<u8> {
    let payload_length = u16::try_from(packet.len()).unwrap_or(u16::MAX);
    let mut bytes = vec![0; Header::LENGTH];
    // There is room for it.
    let _ = Pppoe { code: Code::SESSION, session, payload_length }.emit(&mut bytes);
    bytes.extend(packet.iter().take(usize::from(payload_length)));
    bytes
}

/// The session and the packet of the payload of a frame of EtherType 0x8864, without padding.
///
/// # Errors
///
/// The header or the length is not all there; another version, type or code.
pub fn unwrapped(bytes: &[u8]) -> Result<(u16, &[u8]), Error> {
    checked(bytes, Stage::Session).map(|(header, packet)| (header.session(), packet))
}

/// The header of a packet of either stage, and what its length counts; errors as [`unwrapped`] has them.
pub(crate) fn checked(bytes: &[u8], stage: Stage) -> Result<(Header<'_>, &[u8]), Error> {
    let Some((header, rest)) = bytes.split_first_chunk() else {
        return Err(Error::new(Layer::Pppoe, Field::Header, Rule::Cut, bytes.len(), Header::LENGTH));
    };
    let header = Header::of(header);
    header.check_version()?;
    header.check_code(stage)?;
    header.check_length(rest.len())?;
    Ok((header, rest.get(..usize::from(header.length())).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack 4: lengths that disagree with the frame, in the session stage.
    #[test]
    fn what_is_wrapped_is_unwrapped_and_padding_is_not_part_of_it() {
        let bytes = wrapped(0x1234, b"\xc0\x21\x09\x01\x00\x08\0\0\0\0");
        assert_eq!(bytes[..6], [0x11, 0, 0x12, 0x34, 0, 10]);
        for padding in [0, 1, 46, 70_000] {
            let padded = [&bytes[..], &vec![0xee; padding]].concat();
            assert_eq!(unwrapped(&padded), Ok((0x1234, &bytes[6..])));
        }
        for length in 0..bytes.len() {
            let rule = if length < 6 { Rule::Cut } else { Rule::Exceeds };
            assert_eq!(unwrapped(&bytes[..length]).expect_err("cut").rule, rule);
        }
        assert_eq!(unwrapped(&[0x11, 0, 0, 7, 0, 0, 0xff]), Ok((7, &[][..])));
        for first in [[0x11, 0x09], [0x12, 0], [0x21, 0]] {
            assert!(unwrapped(&[&first[..], &[0, 7, 0, 0]].concat()).is_err());
        }
        let long = wrapped(1, &vec![1; 65_536]);
        assert_eq!(unwrapped(&long).map(|(_, packet)| packet.len()), Ok(65_535));
    }
}
