//! CHAP packets (RFC 1994 section 4) and its MD5 response.

use crate::control::ControlError;
use md5::{Digest, Md5};

pub const CHALLENGE: u8 = 1;
pub(crate) const RESPONSE: u8 = 2;
pub(crate) const SUCCESS: u8 = 3;
pub(crate) const FAILURE: u8 = 4;

/// Data of a Challenge or Response: the value behind its length, then the sender's name.
pub fn value(value: &[u8], name: &[u8]) -> Vec<u8> {
    let value = value.get(..value.len().min(255)).unwrap_or_default();
    [&[value.len() as u8], value, name].concat()
}

/// Value and name of a Challenge or Response. Errors: a value that is empty (RFC 1994 section 4.1: one or more bytes) or
/// reaches beyond the packet.
pub fn parse_value(code: u8, data: &[u8]) -> Result<(&[u8], &[u8]), ControlError> {
    let error = |least| ControlError::Data { code, found: data.len(), least };
    let (length, rest) = data.split_first().ok_or(error(2))?;
    let length = usize::from(*length).max(1);
    rest.split_at_checked(length).filter(|_| data.first() != Some(&0)).ok_or(error(1 + length))
}

/// MD5 of identifier, secret and challenge (RFC 1994 section 4.1).
pub(crate) fn md5_response(identifier: u8, secret: &[u8], challenge: &[u8]) -> [u8; 16] {
    Md5::new().chain_update([identifier]).chain_update(secret).chain_update(challenge).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_written_and_their_lengths_checked() {
        assert_eq!(parse_value(CHALLENGE, &value(b"1234", b"ac")), Ok((&b"1234"[..], &b"ac"[..])));
        assert_eq!(parse_value(CHALLENGE, b"\x02ab"), Ok((&b"ab"[..], &b""[..])));
        for (data, least) in [(&b""[..], 2), (b"\0", 2), (b"\0name", 2), (b"\x10name", 17), (b"\xff", 256)] {
            let error = ControlError::Data { code: RESPONSE, found: data.len(), least };
            assert_eq!(parse_value(RESPONSE, data), Err(error));
        }
    }

    /// MD5("\x01" "secret" "challenge"), by `printf '\001secretchallenge' | md5sum`.
    #[test]
    fn response_is_the_digest_of_identifier_secret_and_challenge() {
        let response: String =
            md5_response(1, b"secret", b"challenge").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(response, "46e47770030e2b4e26a0db72a7efec00");
    }
}
