//! Whoever authenticates subscribers in the place of the secrets.

use super::authentication::Refusal;
use super::network::Network;
use super::secrets::{Address, Profile, station};
use super::sessions::Identity;
use super::{Concentrator, Step};
use crate::session::{Claim, Grant, Proof};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Who a subscriber says it is, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub identity: Identity,
    pub claim: Claim,
}

/// What a subscriber is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    pub profile: Profile,
    /// How long the session may be open.
    pub time: Option<Duration>,
    /// How long no packet may go through it.
    #[serde(default)]
    pub idle: Option<Duration>,
    /// Longest IP packet to the host, bytes.
    #[serde(default)]
    pub mtu: Option<u16>,
    /// Between interim records.
    pub interim: Option<Duration>,
    /// What every record of accounting has to carry.
    pub class: Vec<Vec<u8>>,
}

/// What comes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Accepted {
        granted: Box<Granted>,
        /// MS-CHAPv2: what shows the subscriber that they know the password.
        success: Option<Vec<u8>>,
    },
    /// No, with these words.
    Refused(String),
    /// There is none: why.
    None(String),
}

impl Concentrator {
    /// Takes an answer. One that comes too late, for a session that is over or a claim that is not pending any more, does nothing.
    pub fn answer(&mut self, step: &mut Step<'_>, question: &Question, answer: Reply) {
        let Question { identity, claim } = question;
        let Some(slot) = self.table.of_id(identity.id) else { return };
        if !self.table.get(slot).is_some_and(|entry| entry.session.awaits_verdict(Some(claim))) {
            return;
        }
        let judged = self.accept(step, slot, claim, answer);
        let verdict = self.verdict(step, slot, claim, judged);
        self.drive(step, slot, |session, step, actions| {
            session.authenticated(step.now, verdict, step.random, actions);
        });
    }

    fn accept(
        &mut self,
        step: &mut Step<'_>,
        slot: u32,
        claim: &Claim,
        answer: Reply,
    ) -> Result<(Grant, Proof), Refusal> {
        let (granted, success) = match answer {
            Reply::Accepted { granted, success } => (Arc::new(*granted), success),
            Reply::Refused(message) => {
                self.proved(step, slot, claim.user(), false);
                return Err(Refusal::Elsewhere(message));
            }
            Reply::None(why) => return Err(Refusal::NoAuthority(why)),
        };
        self.proved(step, slot, claim.user(), true);
        let unshown = || {
            "RADIUS accepts the user, and shows no knowledge of the password (MS-CHAP2-Success)".to_owned()
        };
        let proof =
            claim.proof_elsewhere(success.as_deref()).ok_or_else(|| Refusal::NoAuthority(unshown()))?;
        self.expect_usable(&granted.profile)
            .map_err(|why| Refusal::NoAuthority(format!("RADIUS grants what cannot be: {why}")))?;
        let grant = self.grant(step, slot, claim, Some(&granted.profile), Some(&granted))?;
        Ok((grant, proof))
    }

    /// Sees that a host can have what is granted, as of secrets when they are read.
    fn expect_usable(&self, profile: &Profile) -> Result<(), String> {
        if let Address::Fixed(address) = profile.address {
            station(address, self.config.local)?;
        }
        let reserved =
            |network: &Network| network.reserved().map(|reserved| format!("{network} is one of {reserved}"));
        match profile
            .routes
            .iter()
            .copied()
            .chain(profile.prefixes.iter())
            .find_map(|network| reserved(&network))
        {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}
