//! Who a subscriber is, and what they get.

use super::accounting::Ended;
use super::authority::Granted;
use super::config::SameUser;
use super::network::Network;
use super::pool::NoPrefix;
use super::rates::BitRates;
use super::secrets::{Address, Profile, Secrets, Subscriber};
use super::sessions::{Lease, sessions};
use super::{Action, Concentrator, Notice, Question, Step};
use crate::discovery::place::Place;
use crate::ipv6cp::draw_identifier;
use crate::session::{Claim, Grant, Proof, Verdict};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// Why a subscriber gets no session. `Display` is for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Nobody of this name.
    #[error("the secrets have no such user")]
    Unknown,
    #[error("the password is wrong (line {line} of the secrets has the right one)")]
    Password { line: usize },
    #[error(
        "too many wrong passwords came from this host, or for this user on this line, so that none is checked for {} s more",
        wait.as_secs() + 1
    )]
    HeldOff {
        /// For how long none is looked at.
        wait: Duration,
    },
    #[error("the session is another user's already")]
    OtherUser,
    #[error("the user has {} already, and may not have more", sessions(*.0))]
    Sessions(u32),
    #[error("the address {0} of this user is in use by another session")]
    AddressInUse(Ipv4Addr),
    /// The pool is empty.
    #[error("{0}")]
    NoAddress(String),
    /// Another session has the fixed prefix, by the secrets that were before.
    #[error("the prefix {0} of this user is in use by another session")]
    PrefixInUse(Network),
    /// Neither protocol is for this user.
    #[error("there is neither an IPv4 address nor IPv6 for this user")]
    Nothing,
    /// Whoever authenticates in the place of the secrets says no, with these words for the subscriber.
    #[error("RADIUS refuses the user{}", in_words(.0))]
    Elsewhere(String),
    /// Nobody answers, or what they say cannot be used: why.
    #[error("{0}")]
    NoAuthority(String),
}

fn in_words(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// What a host hears with passwords that are not checked, whichever of its packets it is.
pub(super) const HELD_OFF: &str = "too many wrong passwords; try again in a minute";

impl Refusal {
    /// What the host hears. Whether it was the name or the password is not for strangers.
    pub(super) const fn for_host(&self) -> &'static str {
        match self {
            Refusal::Unknown | Refusal::Password { .. } | Refusal::Elsewhere(_) => {
                "unknown user or wrong password"
            }
            Refusal::NoAuthority(_) => "nobody can be authenticated at the moment; try again later",
            Refusal::HeldOff { .. } => HELD_OFF,
            Refusal::OtherUser => "the user changed in mid-session; connect again",
            Refusal::Sessions(_) => "this user has as many sessions as allowed already",
            Refusal::AddressInUse(_) => "the address of this user is in use by another session",
            Refusal::PrefixInUse(_) => "the prefix of this user is in use by another session",
            Refusal::NoAddress(_) => "all addresses are in use; try again later",
            Refusal::Nothing => "no address is set up for this user; ask the operator",
        }
    }
}

impl Concentrator {
    /// Says what comes of a claim; `None`: somebody else is queried, whose answer [`Concentrator::answer`] takes.
    pub(super) fn authenticate(&mut self, step: &mut Step<'_>, slot: u32, claim: &Claim) -> Option<Verdict> {
        let secrets = self.secrets.clone();
        let is_elsewhere =
            self.config.asks && claim.method().is_some() && secrets.named(claim.user()).is_none();
        let judged = match is_elsewhere {
            false => self.judge(step, slot, claim, &secrets),
            true => match self.hold_off(step, slot, claim.user()) {
                Ok(()) => {
                    let identity = self.table.get(slot)?.identity.clone();
                    step.actions.push(Action::Ask(Box::new(Question { identity, claim: claim.clone() })));
                    return None;
                }
                Err(refusal) => Err(refusal),
            },
        };
        Some(self.verdict(step, slot, claim, judged))
    }

    /// What the session hears, and the operator.
    pub(super) fn verdict(
        &mut self,
        step: &mut Step<'_>,
        slot: u32,
        claim: &Claim,
        judged: Result<(Grant, Proof), Refusal>,
    ) -> Verdict {
        match judged {
            Ok((grant, proof)) => Verdict::Accepted { grant, proof, message: Vec::new() },
            Err(refusal) => {
                self.counters.refused += 1;
                let message = refusal.for_host().into();
                if let Some(entry) = self.table.get_mut(slot) {
                    // The session has only to inform the host; then it ends for this.
                    entry.closing = Some(Ended::Refused(refusal.clone()));
                    let (place, station, user) =
                        (entry.identity.place, entry.identity.station, claim.user().to_vec());
                    let is_wrong = matches!(
                        refusal,
                        Refusal::Unknown | Refusal::Password { .. } | Refusal::Elsewhere(_)
                    );
                    let refused = Notice::Refused { place, station, user: user.clone(), refusal };
                    self.notice(step, refused);
                    // None was in force, or the claim had not been looked at: it begins with this one.
                    if let Some(wait) =
                        self.throttle.wait(step.now, &place, station, &user).filter(|_| is_wrong)
                    {
                        let of_host = self.throttle.wait_of_host(step.now, &place, station);
                        let user = of_host.is_none().then_some(user);
                        let notice = Notice::HeldOff { place, station, user, wait };
                        self.notice(step, notice);
                    }
                }
                Verdict::Refused { message }
            }
        }
    }

    fn judge(
        &mut self,
        step: &mut Step<'_>,
        slot: u32,
        claim: &Claim,
        secrets: &Secrets,
    ) -> Result<(Grant, Proof), Refusal> {
        let (subscriber, proof) = match claim.method() {
            None => prove(claim, secrets)?,
            Some(_) => self.prove_in_time(step, slot, claim, secrets)?,
        };
        let grant = self.grant(step, slot, claim, subscriber.map(|subscriber| &subscriber.profile), None)?;
        Ok((grant, proof))
    }

    /// Gives a session whose user is known now what it gets. `granted`: by whoever authenticated it in the place of the secrets.
    pub(super) fn grant(
        &mut self,
        step: &mut Step<'_>,
        slot: u32,
        claim: &Claim,
        profile: Option<&Profile>,
        granted: Option<&Arc<Granted>>,
    ) -> Result<Grant, Refusal> {
        let user = claim.user();
        // LCP started anew in mid-session: what was given stays given.
        match self.table.get(slot).and_then(|entry| entry.identity.user.as_deref()) {
            Some(same) if same == user => {}
            Some(_) => return Err(Refusal::OtherUser),
            None => {
                let most = profile.and_then(|profile| profile.sessions);
                let one = profile.is_some_and(Profile::serves_one).then_some(1);
                let most = most.or(one).unwrap_or(self.config.sessions_per_user);
                if claim.method().is_some() {
                    self.make_room(step, slot, user, most)?;
                }
                let lease = self.lease(step, slot, user, profile)?;
                self.table.set_user(slot, Arc::from(user));
                if let Some(address) = lease.address {
                    self.table.set_address(slot, address);
                }
                if let Some(entry) = self.table.get_mut(slot) {
                    entry.lease = lease;
                    entry.granted = granted.cloned();
                }
            }
        }
        let lease = self.table.get(slot).map(|entry| entry.lease.clone()).unwrap_or_default();
        let ipv4 = self.config.local.zip(lease.address);
        Ok(Grant { ipv4, dns: self.config.dns, ipv6: lease.identifiers })
    }

    /// Sees that a claim may be looked at: there were not too many wrong ones before.
    fn hold_off(&mut self, step: &Step<'_>, slot: u32, user: &[u8]) -> Result<(), Refusal> {
        let Some(entry) = self.table.get(slot) else { return Err(Refusal::Unknown) };
        let (place, station) = (entry.identity.place, entry.identity.station);
        match self.throttle.wait(step.now, &place, station, user) {
            Some(wait) => {
                self.counters.held_off += 1;
                Err(Refusal::HeldOff { wait })
            }
            None => Ok(()),
        }
    }

    /// Remembers whether a claim was right.
    pub(super) fn proved(&mut self, step: &Step<'_>, slot: u32, user: &[u8], is_right: bool) {
        let Some(entry) = self.table.get(slot) else { return };
        let (place, station) = (entry.identity.place, entry.identity.station);
        match is_right {
            true => self.throttle.succeeded(place, station, user),
            false => self.throttle.failed(step.now, &place, station, user),
        }
    }

    /// Compares a claim with the secret, unless there were too many wrong ones before.
    fn prove_in_time<'s>(
        &mut self,
        step: &Step<'_>,
        slot: u32,
        claim: &Claim,
        secrets: &'s Secrets,
    ) -> Result<(Option<&'s Subscriber>, Proof), Refusal> {
        self.hold_off(step, slot, claim.user())?;
        let proved = prove(claim, secrets);
        self.proved(step, slot, claim.user(), proved.is_ok());
        proved
    }

    /// Sees that a user may have one session more.
    fn make_room(&mut self, step: &mut Step<'_>, slot: u32, user: &[u8], most: u32) -> Result<(), Refusal> {
        let sessions: Vec<u32> = self.table.of_user(user).collect();
        let surplus = (sessions.len() + 1).saturating_sub(most as usize);
        if surplus > 0 && (most == 0 || self.config.same_user == SameUser::Refuse) {
            return Err(Refusal::Sessions(most));
        }
        sessions.iter().rev().take(surplus).for_each(|oldest| self.take_over(step, *oldest, slot));
        Ok(())
    }

    /// Ends a session because of another one.
    fn take_over(&mut self, step: &mut Step<'_>, old: u32, new: u32) {
        let Some(entry) = self.table.get(new) else { return };
        let cause = Ended::TakenOver { by: entry.identity.station, at: entry.identity.place };
        self.cut(step, old, cause);
    }

    fn lease(
        &mut self,
        step: &mut Step<'_>,
        slot: u32,
        user: &[u8],
        profile: Option<&Profile>,
    ) -> Result<Lease, Refusal> {
        let mut lease = Lease::default();
        if let Some(own) = self.config.identifier {
            lease.identifiers = Some((own, draw_identifier(own, step.random)));
        }
        let configured = profile.map(|profile| profile.address).unwrap_or_default();
        let place = self.table.get(slot).map(|entry| entry.identity.place).unwrap_or_default();
        let secrets = self.secrets.clone();
        let of_vlans = || secrets.of_vlans(place.vlans)?.pool.as_deref();
        let pool = profile.and_then(|profile| profile.pool.as_deref()).or_else(of_vlans);
        lease.address = match configured {
            _ if self.config.local.is_none() => None,
            Address::None => None,
            Address::Pool if pool.is_none() && self.config.pool.is_empty() => None,
            Address::Fixed(address) => {
                self.free(step, slot, user, address)?;
                // One that the secrets do not keep back may be of the pool.
                self.addresses.hold(address);
                Some(address)
            }
            Address::Pool => Some(self.addresses.take(user, pool).map_err(Refusal::NoAddress)?),
        };
        if lease.address.is_none() && lease.identifiers.is_none() {
            return Err(Refusal::Nothing);
        }
        if lease.identifiers.is_some() {
            let own = profile.map(|profile| profile.prefixes).unwrap_or_default();
            let (prefixes, lacking) = self.prefixes.take(user, own);
            lease.prefixes = prefixes;
            for why in lacking {
                let why = match why {
                    NoPrefix::InUse(prefix) => Refusal::PrefixInUse(prefix),
                    NoPrefix::Empty(why) => Refusal::NoAddress(why),
                };
                self.notice(step, Notice::NoPrefix { user: user.to_vec(), why });
            }
        }
        lease.routes = profile.map(|profile| profile.routes.clone()).unwrap_or_default();
        lease.rates = self.rates_of(&place, profile);
        Ok(lease)
    }

    /// As [`rates`], now.
    pub(super) fn rates_of(&self, place: &Place, profile: Option<&Profile>) -> BitRates {
        rates(&self.secrets, self.config.rates, place, profile)
    }

    /// Sees that nobody has a fixed address.
    fn free(
        &mut self,
        step: &mut Step<'_>,
        slot: u32,
        user: &[u8],
        address: Ipv4Addr,
    ) -> Result<(), Refusal> {
        let Some(holder) = self.table.of_address(address) else { return Ok(()) };
        let is_own = self.table.get(holder).is_some_and(|entry| entry.identity.user() == user);
        if !is_own || self.config.same_user == SameUser::Refuse {
            return Err(Refusal::AddressInUse(address));
        }
        self.take_over(step, holder, slot);
        Ok(())
    }
}

/// What a profile says, else what holds in the VLANs, else for everybody.
pub(super) fn rates(
    secrets: &Secrets,
    everybodys: BitRates,
    place: &Place,
    profile: Option<&Profile>,
) -> BitRates {
    let of_vlans = secrets.of_vlans(place.vlans).map(|vlans| vlans.rates).unwrap_or_default();
    profile.map(|profile| profile.rates).unwrap_or_default().or(of_vlans).or(everybodys)
}

/// Compares a claim with the secret. Of a user who is unknown it takes as long.
fn prove<'s>(claim: &Claim, secrets: &'s Secrets) -> Result<(Option<&'s Subscriber>, Proof), Refusal> {
    let subscriber = secrets.find(claim.user());
    if claim.method().is_none() {
        return claim.proof(b"").map(|proof| (subscriber, proof)).ok_or(Refusal::Unknown);
    }
    let Some(found) = subscriber else {
        let _ = claim.proof(b"not anybody's password");
        return Err(Refusal::Unknown);
    };
    let proof = claim.proof(found.password.bytes()).ok_or(Refusal::Password { line: found.line })?;
    Ok((Some(found), proof))
}
