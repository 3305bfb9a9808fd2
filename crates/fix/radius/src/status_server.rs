//! Whether a server answers (RFC 5997).

use crate::access::Nas;
use crate::exchange::Request;
use crate::packet::{Code, Draft, NoRoom};

/// A Status-Server, which either port of a server answers without a user. One that does not know it, or not the secret, is silent.
///
/// # Errors
///
/// The name of the concentrator is too long for its attribute.
pub fn request(nas: &Nas) -> Result<Request, NoRoom> {
    let mut draft = Draft::new(Code::STATUS_SERVER);
    nas.describe(&mut draft)?;
    Ok(Request { draft, password: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Forged, Packet, Secret};

    #[test]
    fn either_port_answers_and_no_other_secret_does() {
        let nas = Nas { identifier: b"bras1".to_vec(), address: None };
        let secret = Secret::new("xyzzy5461");
        let draft = request(&nas).expect("room").draft;
        let request = secret.sign(draft, 7, &[5; 16]).expect("room");
        // RFC 5997 section 3: a Message-Authenticator has to be there.
        let parsed = Packet::parse(&request).expect("a packet");
        assert_eq!((parsed.code(), parsed.values(80).count()), (Code::STATUS_SERVER, 1));
        for (code, expected) in [
            (Code::ACCESS_ACCEPT, Ok(())),
            (Code::ACCOUNTING_RESPONSE, Ok(())),
            (Code::ACCESS_REJECT, Err(Forged::Code(Code::ACCESS_REJECT))),
        ] {
            let answer = secret.answer_of(&request, code);
            assert_eq!(secret.verify(&request, &Packet::parse(&answer).expect("a packet")), expected);
        }
        let forged = Secret::new("another").answer_of(&request, Code::ACCESS_ACCEPT);
        let forged = Packet::parse(&forged).expect("a packet");
        assert_eq!(secret.verify(&request, &forged), Err(Forged::Authenticator));
    }
}
