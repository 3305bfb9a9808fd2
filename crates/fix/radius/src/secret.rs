//! What the secret that client and server share is used for: authenticators, the Message-Authenticator, hidden passwords.

use crate::attribute::{MESSAGE_AUTHENTICATOR, USER_PASSWORD};
use crate::packet::{AUTHENTICATOR, Code, Draft, HEADER, LONGEST_VALUE, NoRoom, Packet};
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use std::fmt;
use subtle::ConstantTimeEq;

/// Bytes of the longest password (RFC 2865 section 5.2).
const LONGEST_PASSWORD: usize = 128;

/// A shared secret, which nothing prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Why an answer is not the server's, or cannot be known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forged {
    /// Not of a code that answers the request.
    #[error("an answer of {0:?} to a request of another kind")]
    Code(Code),
    /// The response authenticator is another one: another secret, or another sender.
    #[error("its authenticator does not fit: the secret is another one, or it is not from the server")]
    Authenticator,
    /// The Message-Authenticator is missing, so that the answer may be one that somebody else made of a true one (CVE-2024-3596).
    #[error(
        "it has no Message-Authenticator, so that anybody on the way may have changed it: configure the server to send one"
    )]
    NoMessageAuthenticator,
    /// It does not fit.
    #[error(
        "its Message-Authenticator does not fit: the secret is another one, or it was changed on the way"
    )]
    MessageAuthenticator,
}

impl Secret {
    /// From its bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Secret {
        Secret(bytes.into())
    }

    fn hmac(&self, parts: &[&[u8]]) -> [u8; 16] {
        // Keys of any length are valid (RFC 2104 section 2).
        let Ok(mut hmac) = Hmac::<Md5>::new_from_slice(&self.0) else { return [0; 16] };
        parts.iter().for_each(|part| hmac.update(part));
        hmac.finalize().into_bytes().into()
    }

    fn digest(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut digest = Md5::new();
        parts.iter().for_each(|part| digest.update(part));
        digest.update(&self.0);
        digest.finalize().into()
    }

    /// Adds a password, hidden by the authenticator that the packet will have (RFC 2865 section 5.2).
    ///
    /// # Errors
    ///
    /// It has more than 128 bytes, or no room.
    pub fn add_password(
        &self,
        draft: &mut Draft,
        authenticator: &[u8; 16],
        password: &[u8],
    ) -> Result<(), NoRoom> {
        if password.len() > LONGEST_PASSWORD {
            return Err(NoRoom { kind: USER_PASSWORD, length: password.len() });
        }
        let blocks = password.len().div_ceil(16).max(1);
        let mut hidden = password.to_vec();
        hidden.resize(16 * blocks, 0);
        let mut before = *authenticator;
        for block in hidden.as_chunks_mut::<16>().0 {
            let mut digest = Md5::new();
            digest.update(&self.0);
            digest.update(before);
            let mask: [u8; 16] = digest.finalize().into();
            block.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
            before = *block;
        }
        draft.add(USER_PASSWORD, &hidden)
    }

    /// Makes a request of a draft. An Access-Request gets `authenticator`, which nobody can have guessed, and a Message-Authenticator (RFC 3579
    /// section 3.2), and so does a Status-Server (RFC 5997 section 3); an Accounting-Request the authenticator that its content gives (RFC 2866 section 3).
    ///
    /// # Errors
    ///
    /// There is no room for a Message-Authenticator.
    pub fn sign(
        &self,
        mut draft: Draft,
        identifier: u8,
        authenticator: &[u8; 16],
    ) -> Result<Vec<u8>, NoRoom> {
        let is_query = draft.code().is_query();
        if is_query {
            draft.add(MESSAGE_AUTHENTICATOR, &[0; 16])?;
        }
        let mut bytes = draft.bytes;
        bytes[1] = identifier;
        if is_query {
            bytes[AUTHENTICATOR].copy_from_slice(authenticator);
            let at = bytes.len() - 16;
            let signature = self.hmac(&[&bytes]);
            bytes[at..].copy_from_slice(&signature);
        } else {
            bytes[AUTHENTICATOR].fill(0);
            let signature = self.digest(&[&bytes]);
            bytes[AUTHENTICATOR].copy_from_slice(&signature);
        }
        Ok(bytes)
    }

    /// Sees that an answer to this request (its bytes as they were sent) is of who knows the secret.
    ///
    /// # Errors
    ///
    /// It cannot be known to be.
    pub fn verify(&self, request: &[u8], answer: &Packet<'_>) -> Result<(), Forged> {
        let code = Code(request.first().copied().unwrap_or_default());
        if !answer.code().answers(code) {
            return Err(Forged::Code(answer.code()));
        }
        let requested = request.get(AUTHENTICATOR).unwrap_or_default();
        self.expect_authenticator(answer, requested)?;
        if !code.is_query() {
            return Ok(());
        }
        match self.has_message_authenticator(answer, requested) {
            // That a server is there grants nothing, and there is no other answer that it could have been made of.
            None if code == Code::ACCESS_REQUEST => Err(Forged::NoMessageAuthenticator),
            Some(false) => Err(Forged::MessageAuthenticator),
            Some(true) | None => Ok(()),
        }
    }

    /// Sees that a request of a server (RFC 5176 section 3) is of who knows the secret. Its authenticator is a digest of all of it and the
    /// secret; where there is a Message-Authenticator, too, it has to fit.
    ///
    /// # Errors
    ///
    /// It cannot be known to be.
    pub fn verify_request(&self, request: &Packet<'_>) -> Result<(), Forged> {
        self.expect_authenticator(request, &[0; 16])?;
        match self.has_message_authenticator(request, &[0; 16]) {
            Some(false) => Err(Forged::MessageAuthenticator),
            Some(true) | None => Ok(()),
        }
    }

    /// Sees that a packet's authenticator is what its content gives with `made_with` in its place.
    fn expect_authenticator(&self, packet: &Packet<'_>, made_with: &[u8]) -> Result<(), Forged> {
        let (head, attributes) = packet.bytes().split_at(HEADER);
        let expected = self.digest(&[&head[..AUTHENTICATOR.start], made_with, attributes]);
        match expected.ct_eq(packet.authenticator()).into() {
            true => Ok(()),
            false => Err(Forged::Authenticator),
        }
    }

    /// Whether a packet's Message-Authenticator fits, made with `made_with` in the place of the authenticator; `None`: it has none.
    fn has_message_authenticator(&self, packet: &Packet<'_>, made_with: &[u8]) -> Option<bool> {
        let (at, value) = packet.place(MESSAGE_AUTHENTICATOR)?;
        let (before, after) = packet.bytes().split_at(at);
        let after = after.get(value.len()..).unwrap_or_default();
        let signed =
            self.hmac(&[&before[..AUTHENTICATOR.start], made_with, &before[HEADER..], &[0; 16], after]);
        Some(value.len() == 16 && bool::from(signed.ct_eq(value)))
    }

    /// Makes an answer to a request of a draft, with a Message-Authenticator.
    ///
    /// # Errors
    ///
    /// There is no room for that.
    pub fn answer(&self, request: &Packet<'_>, mut draft: Draft) -> Result<Vec<u8>, NoRoom> {
        draft.add(MESSAGE_AUTHENTICATOR, &[0; 16])?;
        let at = draft.bytes.len() - 16;
        let mut bytes = draft.bytes;
        bytes[1] = request.identifier();
        bytes[AUTHENTICATOR].copy_from_slice(request.authenticator());
        let signature = self.hmac(&[&bytes]);
        bytes[at..].copy_from_slice(&signature);
        let authenticator = self.digest(&[&bytes]);
        bytes[AUTHENTICATOR].copy_from_slice(&authenticator);
        Ok(bytes)
    }
}

/// A password has to fit into an attribute.
const _: () = assert!(LONGEST_PASSWORD <= LONGEST_VALUE);

#[cfg(test)]
impl Secret {
    /// What a server makes of a request; `with` adds attributes.
    fn answer_with(&self, request: &[u8], code: Code, with: impl FnOnce(&mut Draft), signs: bool) -> Vec<u8> {
        let mut draft = Draft::new(code);
        with(&mut draft);
        if signs {
            let request = Packet::parse(request).expect("a request");
            return self.answer(&request, draft).expect("room");
        }
        let mut bytes = draft.bytes;
        bytes[1] = request[1];
        bytes[AUTHENTICATOR].copy_from_slice(&request[AUTHENTICATOR]);
        let authenticator = self.digest(&[&bytes]);
        bytes[AUTHENTICATOR].copy_from_slice(&authenticator);
        bytes
    }

    /// The shortest answer.
    pub(crate) fn answer_of(&self, request: &[u8], code: Code) -> Vec<u8> {
        self.answer_with(request, code, |_| (), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
    }

    /// RFC 2865 section 7.1: secret xyzzy5461, user nemo, password arctangent.
    const REQUEST: &str = "01 00 00 38 0f 40 3f 94 73 97 80 57 bd 83 d5 cb 98 f4 22 7a 01 06 6e 65 6d 6f 02 12 0d be 70 8d 93 d4 \
                           13 ce 31 96 e4 3f 78 2a 0a ee 04 06 c0 a8 01 10 05 06 00 00 00 03";
    const ACCEPT: &str = "02 00 00 26 86 fe 22 0e 76 24 ba 2a 10 05 f6 bf 9b 55 e0 b2 06 06 00 00 00 01 0f 06 00 00 00 00 0e 06 c0 a8 \
                          01 03";

    #[test]
    fn the_password_of_the_specification_is_hidden_as_there() {
        let (secret, request) = (Secret::new("xyzzy5461"), bytes(REQUEST));
        let authenticator = request[AUTHENTICATOR].try_into().expect("16 bytes");
        let mut draft = Draft::new(Code::ACCESS_REQUEST);
        draft.add(1, b"nemo").expect("room");
        secret.add_password(&mut draft, &authenticator, b"arctangent").expect("room");
        draft.add(4, &[192, 168, 1, 16]).expect("room");
        draft.add_number(5, 3).expect("room");
        let signed = secret.sign(draft, 0, &authenticator).expect("room");
        // Behind it is a Message-Authenticator, which is younger.
        assert_eq!(signed[HEADER..request.len()], request[HEADER..]);
        assert_eq!(signed.len(), request.len() + 18);
    }

    #[test]
    fn the_answer_of_the_specification_fits_and_lacks_a_message_authenticator() {
        let (request, accept) = (bytes(REQUEST), bytes(ACCEPT));
        let answer = Packet::parse(&accept).expect("a packet");
        let secret = Secret::new("xyzzy5461");
        assert_eq!(secret.verify(&request, &answer), Err(Forged::NoMessageAuthenticator));
        assert_eq!(Secret::new("xyzzy5462").verify(&request, &answer), Err(Forged::Authenticator));
        let mut other = request.clone();
        other[0] = Code::ACCOUNTING_REQUEST.0;
        assert_eq!(secret.verify(&other, &answer), Err(Forged::Code(Code::ACCESS_ACCEPT)));
    }

    #[test]
    fn a_changed_answer_is_found_whichever_byte_it_is() {
        let secret = Secret::new("s");
        let request = secret.sign(Draft::new(Code::ACCESS_REQUEST), 9, &[5; 16]).expect("room");
        let add = |draft: &mut Draft| draft.add(8, &[10, 0, 0, 1]).expect("room");
        let accept = secret.answer_with(&request, Code::ACCESS_ACCEPT, add, true);
        assert_eq!(secret.verify(&request, &Packet::parse(&accept).expect("a packet")), Ok(()));
        for at in (0..accept.len()).filter(|at| !LENGTH_AND_IDENTIFIER.contains(at)) {
            let mut changed = accept.clone();
            changed[at] ^= 1;
            let verified = Packet::parse(&changed).map(|packet| secret.verify(&request, &packet));
            assert_ne!(verified, Ok(Ok(())), "byte {at}");
        }
        // Blast-RADIUS: an authenticator that fits, for an answer without a Message-Authenticator.
        let bare = secret.answer_with(&request, Code::ACCESS_ACCEPT, add, false);
        let verified = secret.verify(&request, &Packet::parse(&bare).expect("a packet"));
        assert_eq!(verified, Err(Forged::NoMessageAuthenticator));
    }

    /// The identifier is looked at before, and another length is none.
    const LENGTH_AND_IDENTIFIER: std::ops::Range<usize> = 1..4;

    #[test]
    fn accounting_is_signed_by_its_content() {
        let secret = Secret::new("s");
        let mut draft = Draft::new(Code::ACCOUNTING_REQUEST);
        draft.add_number(40, 1).expect("room");
        let request = secret.sign(draft, 3, &[1; 16]).expect("room");
        let mut zeroed = request.clone();
        zeroed[AUTHENTICATOR].fill(0);
        assert_eq!(request[AUTHENTICATOR], secret.digest(&[&zeroed]));
        let response = secret.answer_of(&request, Code::ACCOUNTING_RESPONSE);
        assert_eq!(secret.verify(&request, &Packet::parse(&response).expect("a packet")), Ok(()));
    }

    #[test]
    fn a_long_password_takes_more_blocks_and_too_long_a_one_is_refused() {
        let (secret, authenticator) = (Secret::new("s"), [1; 16]);
        for (length, expected) in [(0, 16), (16, 16), (17, 32), (128, 128)] {
            let mut draft = Draft::new(Code::ACCESS_REQUEST);
            secret.add_password(&mut draft, &authenticator, &vec![b'x'; length]).expect("room");
            assert_eq!(draft.bytes.len(), HEADER + 2 + expected);
        }
        let refused =
            secret.add_password(&mut Draft::new(Code::ACCESS_REQUEST), &authenticator, &[b'x'; 129]);
        assert_eq!(refused, Err(NoRoom { kind: USER_PASSWORD, length: 129 }));
    }
}
