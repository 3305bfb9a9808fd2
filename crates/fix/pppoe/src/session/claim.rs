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
    /// Tells one claim of a session from another, so that a verdict that comes late does not answer a newer one.
    pub(crate) serial: u32,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Evidence {
    None,
    Pap { password: Vec<u8> },
    ChapMd5 { identifier: u8, challenge: [u8; 16], response: [u8; 16] },
    MsChapV2 { challenge: [u8; 16], peer_challenge: [u8; 16], response: [u8; 24] },
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
            Evidence::MsChapV2 { challenge, peer_challenge, response } => {
                let expected = ms_chap::nt_response(challenge, peer_challenge, &self.user, secret);
                authenticator_response =
                    Some(ms_chap::authenticator_response(challenge, peer_challenge, &self.user, secret));
                bool::from(expected.ct_eq(response))
            }
        };
        same.then_some(Proof { serial: self.serial, authenticator_response })
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

/// That a claim was compared with the right secret; only [`Claim::proof`] makes one. It carries what MS-CHAPv2 shows the
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
