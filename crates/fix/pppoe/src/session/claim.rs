//! Who a subscriber says it is, and the proof that it knows the secret.

use crate::session::{Grant, Method};
use crate::{chap, ms_chap};
use std::fmt;
use subtle::ConstantTimeEq;

/// Who the peer says it is. What it showed for it stays inside: [`Claim::proof`] compares it with a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Claim {
    pub(crate) user: Vec<u8>,
    pub(crate) evidence: Evidence,
    /// Distinguishes the claims of a session, so that a verdict that comes late does not answer a newer one.
    pub(crate) serial: u32,
}

/// What the peer showed, for whoever authenticates in the place of a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing, since nobody has to.
    None,
    /// The password itself.
    Pap { password: Vec<u8> },
    /// Identifier and value of the challenge, and what the peer made of it (RFC 1994 section 4.1).
    ChapMd5 { identifier: u8, challenge: [u8; 16], response: [u8; 16] },
    /// The same, with the peer's own challenge (RFC 2759 section 4).
    MsChapV2 { identifier: u8, challenge: [u8; 16], peer_challenge: [u8; 16], response: [u8; 24] },
}

impl Claim {
    /// The name, as the peer wrote it; empty where nobody has to say who they are.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// By which method; `None` where the configuration demands none.
    pub fn method(&self) -> Option<Method> {
        match self.evidence {
            Evidence::None => None,
            Evidence::Pap { .. } => Some(Method::Pap),
            Evidence::ChapMd5 { .. } => Some(Method::ChapMd5),
            Evidence::MsChapV2 { .. } => Some(Method::MsChapV2),
        }
    }

    /// Compares what the peer showed with what `secret` gives, in constant time. `None`: it is not the same secret. A claim
    /// without a method is proved by any secret.
    pub fn proof(&self, secret: &[u8]) -> Option<Proof> {
        let mut authenticator_response = None;
        let same = match &self.evidence {
            Evidence::None => true,
            Evidence::Pap { password } => bool::from(password.as_slice().ct_eq(secret)),
            Evidence::ChapMd5 { identifier, challenge, response } => {
                bool::from(chap::md5_response(*identifier, secret, challenge).ct_eq(response))
            }
            Evidence::MsChapV2 { challenge, peer_challenge, response, .. } => {
                let expected = ms_chap::nt_response(challenge, peer_challenge, &self.user, secret);
                authenticator_response =
                    Some(ms_chap::authenticator_response(challenge, peer_challenge, &self.user, secret));
                bool::from(expected.ct_eq(response))
            }
        };
        same.then_some(Proof { serial: self.serial, authenticator_response })
    }

    /// What the peer showed.
    pub const fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// That somebody else has compared it with the secret. With MS-CHAPv2 `success` is what shows the peer that they know it (`S=` and 40
    /// digits, RFC 2759 section 5). `None`: it is not there.
    pub fn proof_elsewhere(&self, success: Option<&[u8]>) -> Option<Proof> {
        let authenticator_response = match (&self.evidence, success) {
            (Evidence::MsChapV2 { .. }, success) => Some(ms_chap::parse_success(success?)?.0),
            _ => None,
        };
        Some(Proof { serial: self.serial, authenticator_response })
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("user", &format::Quotable(&self.user).to_string())
            .field("method", &self.method())
            .finish_non_exhaustive()
    }
}

/// That a claim was compared with the right secret; only [`Claim::proof`] and [`Claim::proof_elsewhere`] make one. It carries what MS-CHAPv2 shows the
/// subscriber in return.
#[derive(Clone, PartialEq, Eq)]
pub struct Proof {
    pub(crate) serial: u32,
    pub(crate) authenticator_response: Option<[u8; 20]>,
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof").finish_non_exhaustive()
    }
}

/// The answer to a claim.
#[derive(Clone, Debug)]
pub enum Verdict {
    Accepted {
        grant: Grant,
        proof: Proof,
        /// Words for the subscriber; mostly empty.
        message: Vec<u8>,
    },
    /// It may not, whichever claim it made. The session then ends.
    Refused { message: Vec<u8> },
}
