//! PAP packets (RFC 1334 section 2.2): the password itself goes over the line.

use crate::control::ControlError;

pub(crate) const REQUEST: u8 = 1;
pub(crate) const ACK: u8 = 2;
pub(crate) const NAK: u8 = 3;

/// Data of an Authenticate-Request. Names and passwords beyond 255 bytes, which the packet cannot express, are cut.
pub fn request(user: &[u8], password: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(2 + user.len() + password.len());
    for field in [user, password] {
        let field = field.get(..field.len().min(255)).unwrap_or_default();
        data.push(field.len() as u8);
        data.extend(field);
    }
    data
}

/// Name and password of an Authenticate-Request. Errors: a field that reaches beyond the packet.
pub fn parse_request(data: &[u8]) -> Result<(&[u8], &[u8]), ControlError> {
    let error = |least| ControlError::Data { code: REQUEST, found: data.len(), least };
    let (user, rest) = field(data).map_err(error)?;
    let (password, _) = field(rest).map_err(|least| error(least + 1 + user.len()))?;
    Ok((user, password))
}

/// A field behind its length; the error is how many bytes it would take.
fn field(bytes: &[u8]) -> Result<(&[u8], &[u8]), usize> {
    let (length, rest) = bytes.split_first().ok_or(1_usize)?;
    rest.split_at_checked(usize::from(*length)).ok_or(1 + usize::from(*length))
}

/// Data of an Authenticate-Ack or -Nak.
pub fn answer(message: &[u8]) -> Vec<u8> {
    let message = message.get(..message.len().min(255)).unwrap_or_default();
    [&[message.len() as u8], message].concat()
}

/// The words of an Authenticate-Ack or -Nak. Some send none, not even their length; of one that is too short for its length
/// what is there counts, since the code says what matters.
pub fn parse_answer(data: &[u8]) -> &[u8] {
    let Some((length, words)) = data.split_first() else { return &[] };
    words.get(..usize::from(*length)).unwrap_or(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_read_as_written() {
        let data = request(b"user@isp", b"secret");
        assert_eq!(data, b"\x08user@isp\x06secret");
        assert_eq!(parse_request(&data), Ok((&b"user@isp"[..], &b"secret"[..])));
        assert_eq!(parse_request(b"\0\0"), Ok((&b""[..], &b""[..])));
        assert_eq!(parse_answer(&answer(b"welcome")), b"welcome");
        assert_eq!(parse_answer(b""), b"");
        assert_eq!(parse_answer(b"\x20cut"), b"cut");
    }

    #[test]
    fn every_cut_of_a_request_is_an_error() {
        let data = request(b"user", b"secret");
        for length in 0..data.len() {
            let Err(ControlError::Data { code: REQUEST, found, least }) = parse_request(&data[..length])
            else {
                panic!("{length} bytes are a whole request");
            };
            assert!(found == length && least > length, "{length}: {least}");
        }
        assert_eq!(request(&[b'x'; 300], b"").len(), 257);
    }
}
