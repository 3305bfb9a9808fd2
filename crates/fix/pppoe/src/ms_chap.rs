//! MS-CHAPv2 (RFC 2759): the response to a challenge, what the other end shows in return, and the words of a failure.
//!
//! Its strength is that of one DES key: who records an exchange finds the password's hash. It is here since concentrators
//! demand it.

use des::Des;
use des::cipher::{Array, BlockCipherEncrypt, KeyInit};
use md4::Md4;
use sha1::{Digest, Sha1};
use std::fmt;

/// Bytes of the value of a Response: peer challenge (16), reserved (8), NT response (24), flags (1).
pub(crate) const RESPONSE_LENGTH: usize = 49;

pub fn response_value(peer_challenge: &[u8; 16], nt_response: &[u8; 24]) -> [u8; RESPONSE_LENGTH] {
    let mut value = [0; RESPONSE_LENGTH];
    for (place, byte) in value.iter_mut().zip(peer_challenge.iter().chain(&[0; 8]).chain(nt_response)) {
        *place = *byte;
    }
    value
}

/// Peer challenge and NT response of such a value; `None`: it has another length.
pub fn parse_response_value(value: &[u8]) -> Option<([u8; 16], [u8; 24])> {
    let value: &[u8; RESPONSE_LENGTH] = value.try_into().ok()?;
    let (peer_challenge, rest) = value.split_first_chunk::<16>()?;
    let (_reserved, rest) = rest.split_first_chunk::<8>()?;
    Some((*peer_challenge, *rest.first_chunk::<24>()?))
}

/// NT response (RFC 2759 section 8.1). `user`: as it stands in the packet; what stands before a backslash is a domain, which
/// does not count.
pub(crate) fn nt_response(
    authenticator_challenge: &[u8; 16],
    peer_challenge: &[u8; 16],
    user: &[u8],
    secret: &[u8],
) -> [u8; 24] {
    let challenge = challenge_hash(peer_challenge, authenticator_challenge, user);
    challenge_response(&challenge, &password_hash(secret))
}

/// What the authenticator shows in return: the 20 bytes behind `S=` (section 8.7).
pub(crate) fn authenticator_response(
    authenticator_challenge: &[u8; 16],
    peer_challenge: &[u8; 16],
    user: &[u8],
    secret: &[u8],
) -> [u8; 20] {
    let nt_response = nt_response(authenticator_challenge, peer_challenge, user, secret);
    let hash = Md4::digest(password_hash(secret));
    let digest = Sha1::new()
        .chain_update(hash)
        .chain_update(nt_response)
        .chain_update(b"Magic server to client signing constant")
        .finalize();
    Sha1::new()
        .chain_update(digest)
        .chain_update(challenge_hash(peer_challenge, authenticator_challenge, user))
        .chain_update(b"Pad to make it do more than one iteration")
        .finalize()
        .into()
}

/// Section 8.2.
fn challenge_hash(peer_challenge: &[u8; 16], authenticator_challenge: &[u8; 16], user: &[u8]) -> [u8; 8] {
    let user = user.rsplit(|byte| *byte == b'\\').next().unwrap_or(user);
    let digest = Sha1::new()
        .chain_update(peer_challenge)
        .chain_update(authenticator_challenge)
        .chain_update(user)
        .finalize();
    digest.first_chunk().copied().unwrap_or_default()
}

/// Section 8.3: MD4 of the password in UTF-16, little end first. A password that is no UTF-8 counts as Latin-1.
fn password_hash(secret: &[u8]) -> [u8; 16] {
    let units: Vec<u8> = match std::str::from_utf8(secret) {
        Ok(text) => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Err(_) => secret.iter().flat_map(|byte| [*byte, 0]).collect(),
    };
    Md4::digest(units).into()
}

/// Section 8.5: the challenge under three DES keys, which are the 21 bytes of the hash and five zeros.
fn challenge_response(challenge: &[u8; 8], hash: &[u8; 16]) -> [u8; 24] {
    let mut keys = hash.iter().copied().chain([0; 5]);
    let mut response = [0; 24];
    for block in response.as_chunks_mut::<8>().0 {
        let key = std::array::from_fn(|_| keys.next().unwrap_or(0));
        let mut bytes = Array(*challenge);
        Des::new(&Array(with_parity(&key))).encrypt_block(&mut bytes);
        *block = bytes.0;
    }
    response
}

/// Section 8.6: 56 bits of key, seven to a byte; the parity bits are not looked at.
fn with_parity(key: &[u8; 7]) -> [u8; 8] {
    let bits = key.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    std::array::from_fn(|place| ((bits >> (49 - 7 * place) & 0x7f) << 1) as u8)
}

/// Data of a Success packet (section 5).
pub fn success(authenticator_response: &[u8; 20], message: &[u8]) -> Vec<u8> {
    [b"S=", hexadecimal(authenticator_response).as_bytes(), b" M=", message].concat()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The authenticator response and the words of a Success packet; `None` where there is none.
pub fn parse_success(data: &[u8]) -> Option<([u8; 20], &[u8])> {
    let (digits, rest) = data.strip_prefix(b"S=")?.split_first_chunk::<40>()?;
    let mut response = [0; 20];
    for (byte, [high, low]) in response.iter_mut().zip(digits.as_chunks::<2>().0) {
        *byte = (digit(*high)? << 4) | digit(*low)?;
    }
    Some((response, rest.strip_prefix(b" M=").unwrap_or_default()))
}

fn digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Data of a Failure packet (section 6): authentication failed, no second try.
pub fn failure(challenge: &[u8; 16], message: &[u8]) -> Vec<u8> {
    [b"E=691 R=0 C=", hexadecimal(challenge).as_bytes(), b" V=3 M=", message].concat()
}

/// What the code of a failure means (section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code behind `E=`.
    pub code: u32,
}

impl Failure {
    /// Reads the data of a Failure packet: the code, if there is one, and the words behind `M=`; without those everything is
    /// words.
    pub fn parse(data: &[u8]) -> (Option<Failure>, &[u8]) {
        let code = data.strip_prefix(b"E=").and_then(|rest| {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count().min(9);
            std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
        });
        let Some(code) = code else { return (None, data) };
        let words = data.windows(2).position(|pair| pair == b"M=").and_then(|at| data.get(at + 2..));
        (Some(Failure { code }), words.unwrap_or_default())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            646 => f.write_str("logging on is restricted to certain hours"),
            647 => f.write_str("the account is disabled"),
            648 => f.write_str("the password has expired"),
            649 => f.write_str("the account may not dial in"),
            691 => f.write_str("unknown name or wrong password"),
            709 => f.write_str("the password could not be changed"),
            code => write!(f, "error {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHENTICATOR: [u8; 16] = *b"\x5b\x5d\x7c\x7d\x7b\x3f\x2f\x3e\x3c\x2c\x60\x21\x32\x26\x26\x28";
    const PEER: [u8; 16] = *b"\x21\x40\x23\x24\x25\x5e\x26\x2a\x28\x29\x5f\x2b\x3a\x33\x7c\x7e";

    /// RFC 2759 section 9.2.
    #[test]
    fn test_vectors_of_the_rfc() {
        assert_eq!(challenge_hash(&PEER, &AUTHENTICATOR, b"User"), *b"\xd0\x2e\x43\x86\xbc\xe9\x12\x26");
        assert_eq!(
            password_hash(b"clientPass"),
            *b"\x44\xeb\xba\x8d\x53\x12\xb8\xd6\x11\x47\x44\x11\xf5\x69\x89\xae"
        );
        let response = *b"\x82\x30\x9e\xcd\x8d\x70\x8b\x5e\xa0\x8f\xaa\x39\x81\xcd\x83\x54\x42\x33\x11\x4a\x3d\x85\xd6\xdf";
        for user in [&b"User"[..], b"DOMAIN\\User"] {
            assert_eq!(nt_response(&AUTHENTICATOR, &PEER, user, b"clientPass"), response);
        }
        let response = authenticator_response(&AUTHENTICATOR, &PEER, b"User", b"clientPass");
        let data = success(&response, b"hello");
        assert_eq!(data, b"S=407A5589115FD0D6209F510FE9C04566932CDA56 M=hello");
        assert_eq!(parse_success(&data), Some((response, &b"hello"[..])));
    }

    /// RFC 2759 section 9.3: DES keys without and with parity, which is not looked at.
    #[test]
    fn keys_are_spread_over_eight_bytes() {
        let spread = with_parity(b"\xfc\x15\x6a\xf7\xed\xcd\x6c");
        let expected = *b"\xfd\x0b\x5b\x5e\x7f\x6e\x34\xd9";
        assert_eq!(spread.map(|byte| byte & 0xfe), expected.map(|byte| byte & 0xfe));
    }

    #[test]
    fn successes_that_are_none() {
        for data in [&b""[..], b"S=", b"S=407A", b"S=zz7A5589115FD0D6209F510FE9C04566932CDA56", b"M=hello"] {
            assert_eq!(parse_success(data), None);
        }
    }

    #[test]
    fn failures_become_words() {
        let (failure, words) = Failure::parse(b"E=691 R=1 C=00112233445566778899AABBCCDDEEFF V=3 M=no way");
        assert_eq!((failure, words), (Some(Failure { code: 691 }), &b"no way"[..]));
        assert_eq!(failure.unwrap().to_string(), "unknown name or wrong password");
        assert_eq!(Failure::parse(b"E=99999999999999"), (Some(Failure { code: 999_999_999 }), &b""[..]));
        assert_eq!(Failure::parse(b"E="), (None, &b"E="[..]));
        assert_eq!(Failure::parse(b"go away"), (None, &b"go away"[..]));
        let own = super::failure(&AUTHENTICATOR, b"refused");
        assert_eq!(Failure::parse(&own), (Some(Failure { code: 691 }), &b"refused"[..]));
    }

    #[test]
    fn values_of_another_length_are_none() {
        let value = response_value(&PEER, &[7; 24]);
        assert_eq!(parse_response_value(&value), Some((PEER, [7; 24])));
        assert_eq!(parse_response_value(&value[..48]), None);
        assert_eq!(parse_response_value(&[0; 50]), None);
    }
}
