//! Authentication, which begins when LCP is open: the end that shows who it is ([`Peer`], a host) and the end that demands it
//! ([`Authenticator`], a concentrator). In a session one end is the one and the other the other; a challenge to an
//! authenticator is never answered, so that nothing can be reflected.

use crate::control::{ControlError, Parsed};
use crate::session::{Claim, Closed, Concentrator, Evidence, Host, Method, Notice, Proof, Waiting};
use crate::step::Step;
use crate::{Time, chap, draw, ms_chap, pap};
use subtle::ConstantTimeEq;
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

/// What came of a packet to a host.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Nothing yet, or nothing new.
    Pending,
    /// This end was accepted, with these words.
    Accepted(Vec<u8>),
    Over(Closed),
}

/// Answers by the method that LCP agreed to, and by no other. Until it is accepted it sends its packet again whenever the
/// restart timer runs out, since the answer may have been lost (RFC 1334 section 2.2.1, RFC 1994 section 4.2).
pub(crate) struct Peer {
    method: Method,
    accepted: bool,
    identifier: u8,
    /// PAP: requests sent, whose identifiers end with `identifier`.
    requests: u8,
    pub(crate) deadline: Option<Time>,
    /// CHAP: the response that waits for an answer.
    response: Option<Box<Response>>,
    /// MS-CHAPv2: the challenge that this end issued last.
    issued: Option<Box<[u8; 16]>>,
}

struct Response {
    challenge: Vec<u8>,
    data: Vec<u8>,
    /// MS-CHAPv2: what the concentrator has to show.
    expected: Option<[u8; 20]>,
}

impl Peer {
    /// LCP agreed to `method`. With PAP the first word is this end's, with CHAP the concentrator's.
    pub(crate) fn start(method: Method, host: &Host, step: &mut Step<'_>) -> Peer {
        let mut peer = Peer {
            method,
            accepted: false,
            identifier: 0,
            requests: 0,
            deadline: None,
            response: None,
            issued: None,
        };
        if method == Method::Pap {
            peer.send(host, step);
        }
        peer
    }

    pub(crate) fn waiting(&self) -> Waiting {
        if self.method != Method::Pap && self.response.is_none() {
            Waiting::Challenge
        } else {
            Waiting::Answer
        }
    }

    fn send(&mut self, host: &Host, step: &mut Step<'_>) {
        self.deadline = Some(step.restart_at());
        if self.method == Method::Pap {
            self.identifier = self.identifier.wrapping_add(1);
            self.requests = self.requests.saturating_add(1);
            let data = pap::request(&host.user, &host.secret);
            step.send(PppProtocol::PAP, pap::REQUEST, self.identifier, &data);
        } else if let Some(response) = &self.response {
            step.send(PppProtocol::CHAP, chap::RESPONSE, self.identifier, &response.data);
        }
    }

    pub(crate) fn tick(&mut self, host: &Host, step: &mut Step<'_>) {
        if self.deadline.is_some_and(|deadline| step.now >= deadline) {
            self.deadline = None;
            if !self.accepted {
                self.send(host, step);
            }
        }
    }

    /// Takes a packet of PAP or CHAP; one of the protocol that was not agreed to is dropped.
    pub(crate) fn receive(
        &mut self,
        protocol: PppProtocol,
        packet: ControlPacket<'_>,
        host: &Host,
        step: &mut Step<'_>,
    ) -> Parsed<Outcome> {
        match (protocol == PppProtocol::PAP, self.method == Method::Pap) {
            (true, true) => Ok(self.pap_answer(packet)),
            (false, false) if packet.code == chap::CHALLENGE => {
                self.challenged(packet, host, step).map(|()| Outcome::Pending)
            }
            (false, false) => Ok(self.chap_answer(packet)),
            _ => Ok(Outcome::Pending),
        }
    }

    fn accept(&mut self, message: &[u8]) -> Outcome {
        self.accepted = true;
        self.response = None;
        self.deadline = None;
        Outcome::Accepted(message.to_vec())
    }

    fn pap_answer(&mut self, packet: ControlPacket<'_>) -> Outcome {
        let age = self.identifier.wrapping_sub(packet.identifier);
        if self.accepted || age >= self.requests {
            return Outcome::Pending;
        }
        let message = pap::parse_answer(packet.data);
        match packet.code {
            pap::ACK => self.accept(message),
            pap::NAK => {
                Outcome::Over(Closed::AuthenticationFailed { message: message.to_vec(), failure: None })
            }
            _ => Outcome::Pending,
        }
    }

    fn challenged(&mut self, packet: ControlPacket<'_>, host: &Host, step: &mut Step<'_>) -> Parsed<()> {
        let (challenge, _name) = chap::parse_value(packet.code, packet.data)?;
        if !step.may_answer() {
            return Ok(());
        }
        if self.issued.as_deref().is_some_and(|issued| issued.as_slice() == challenge) {
            step.notice(Notice::OwnChallenge);
            return Ok(());
        }
        // The same challenge again: the response was lost, and is the same.
        let same = self.identifier == packet.identifier
            && self.response.as_ref().is_some_and(|response| response.challenge == challenge);
        if !same {
            let response = self.respond(packet.identifier, challenge, host, step)?;
            self.response = Some(Box::new(response));
            self.identifier = packet.identifier;
        }
        self.send(host, step);
        Ok(())
    }

    fn respond(
        &mut self,
        identifier: u8,
        challenge: &[u8],
        host: &Host,
        step: &mut Step<'_>,
    ) -> Parsed<Response> {
        let (user, secret) = (&host.user[..], &host.secret[..]);
        let (value, expected) = if self.method == Method::ChapMd5 {
            (chap::md5_response(identifier, secret, challenge).to_vec(), None)
        } else {
            let Ok(theirs) = <&[u8; 16]>::try_from(challenge) else {
                return Err(ControlError::Data { code: chap::CHALLENGE, found: challenge.len(), least: 16 });
            };
            let own = draw(step.random);
            self.issued = Some(Box::new(own));
            let response = ms_chap::nt_response(theirs, &own, user, secret);
            let expected = ms_chap::authenticator_response(theirs, &own, user, secret);
            (ms_chap::response_value(&own, &response).to_vec(), Some(expected))
        };
        Ok(Response { challenge: challenge.to_vec(), data: chap::value(&value, user), expected })
    }

    fn chap_answer(&mut self, packet: ControlPacket<'_>) -> Outcome {
        let Some(response) = self.response.as_ref().filter(|_| packet.identifier == self.identifier) else {
            return Outcome::Pending;
        };
        match (packet.code, response.expected) {
            (chap::SUCCESS, None) => self.accept(packet.data),
            (chap::SUCCESS, Some(expected)) => match ms_chap::parse_success(packet.data) {
                Some((authenticator, message)) if bool::from(authenticator.ct_eq(&expected)) => {
                    self.accept(message)
                }
                _ => Outcome::Over(Closed::Impostor),
            },
            (chap::FAILURE, None) => {
                Outcome::Over(Closed::AuthenticationFailed { message: packet.data.to_vec(), failure: None })
            }
            (chap::FAILURE, Some(_)) => {
                let (failure, message) = ms_chap::Failure::parse(packet.data);
                Outcome::Over(Closed::AuthenticationFailed { message: message.to_vec(), failure })
            }
            _ => Outcome::Pending,
        }
    }
}

/// Challenges (CHAP) or waits (PAP), passes the claim on, and answers by the verdict. Each challenge is a new one, under a new
/// identifier, and good for one claim. What comes again after the verdict gets the same answer, without a second claim.
pub(crate) struct Authenticator {
    /// `None`: nobody has to say who they are.
    method: Option<Method>,
    /// Of the challenge, or of the request that is answered.
    identifier: u8,
    challenge: [u8; 16],
    /// Of its claim among those of the session.
    serial: u32,
    stage: Stage,
    pub(crate) deadline: Option<Time>,
}

enum Stage {
    Waiting,
    /// Its verdict is awaited. PAP: the data of the request, whose repetitions change no more than the identifier.
    Claimed {
        user: Box<[u8]>,
        request: Box<[u8]>,
    },
    /// The subscriber was accepted, with this answer.
    Accepted(Box<[u8]>),
}

impl Authenticator {
    /// LCP agreed to `method`. `serial`: of this claim among those of the session.
    pub(crate) fn start(
        method: Option<Method>,
        concentrator: &Concentrator,
        serial: u32,
        step: &mut Step<'_>,
    ) -> (Authenticator, Option<Claim>) {
        let mut authenticator = Authenticator {
            method,
            identifier: u8::from_be_bytes(draw(step.random)),
            challenge: [0; 16],
            serial,
            stage: Stage::Waiting,
            deadline: None,
        };
        let claim = match method {
            None => Some(authenticator.claim(&[], Evidence::None, &[])),
            Some(Method::Pap) => None,
            Some(_) => {
                authenticator.send_challenge(concentrator, step);
                None
            }
        };
        (authenticator, claim)
    }

    pub(crate) fn waiting(&self) -> Waiting {
        if matches!(self.stage, Stage::Waiting) { Waiting::Claim } else { Waiting::Verdict }
    }

    /// Whether the verdict on this claim, or on any, is awaited.
    pub(crate) fn awaits_verdict(&self, claim: Option<&Claim>) -> bool {
        claim.is_none_or(|claim| claim.serial == self.serial) && matches!(self.stage, Stage::Claimed { .. })
    }

    fn send_challenge(&mut self, concentrator: &Concentrator, step: &mut Step<'_>) {
        self.identifier = self.identifier.wrapping_add(1);
        self.challenge = draw(step.random);
        self.deadline = Some(step.restart_at());
        let data = chap::value(&self.challenge, &concentrator.name);
        step.send(PppProtocol::CHAP, chap::CHALLENGE, self.identifier, &data);
    }

    pub(crate) fn tick(&mut self, concentrator: &Concentrator, step: &mut Step<'_>) {
        if self.deadline.is_some_and(|deadline| step.now >= deadline) {
            self.deadline = None;
            if matches!(self.stage, Stage::Waiting) {
                self.send_challenge(concentrator, step);
            }
        }
    }

    /// Takes a packet of PAP or CHAP; one of the protocol that was not agreed to is dropped.
    pub(crate) fn receive(
        &mut self,
        protocol: PppProtocol,
        packet: ControlPacket<'_>,
        step: &mut Step<'_>,
    ) -> Parsed<Option<Claim>> {
        match (self.method, packet.code) {
            (Some(Method::Pap), pap::REQUEST) if protocol == PppProtocol::PAP => {
                self.pap_request(packet, step)
            }
            (Some(Method::ChapMd5 | Method::MsChapV2), chap::RESPONSE) if protocol == PppProtocol::CHAP => {
                self.response(packet, step)
            }
            // A challenge to who challenges: reflection. It is never answered.
            (Some(Method::ChapMd5 | Method::MsChapV2), chap::CHALLENGE) if protocol == PppProtocol::CHAP => {
                if chap::parse_value(packet.code, packet.data)?.0 == self.challenge {
                    step.notice(Notice::OwnChallenge);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn pap_request(&mut self, packet: ControlPacket<'_>, step: &mut Step<'_>) -> Parsed<Option<Claim>> {
        let (user, password) = pap::parse_request(packet.data)?;
        match &self.stage {
            Stage::Waiting => {
                self.identifier = packet.identifier;
                let evidence = Evidence::Pap { password: password.to_vec() };
                return Ok(Some(self.claim(user, evidence, packet.data)));
            }
            Stage::Claimed { request, .. } => {
                if **request == *packet.data {
                    self.identifier = packet.identifier;
                }
            }
            Stage::Accepted(answer) => {
                if step.may_answer() {
                    step.send(PppProtocol::PAP, pap::ACK, packet.identifier, answer);
                }
            }
        }
        Ok(None)
    }

    fn response(&mut self, packet: ControlPacket<'_>, step: &mut Step<'_>) -> Parsed<Option<Claim>> {
        let (value, user) = chap::parse_value(packet.code, packet.data)?;
        if packet.identifier != self.identifier {
            return Ok(None);
        }
        match &self.stage {
            Stage::Waiting => {}
            Stage::Claimed { .. } => return Ok(None),
            Stage::Accepted(answer) => {
                if step.may_answer() {
                    step.send(PppProtocol::CHAP, chap::SUCCESS, packet.identifier, answer);
                }
                return Ok(None);
            }
        }
        let challenge = self.challenge;
        let short = |least| ControlError::Data { code: packet.code, found: value.len(), least };
        let evidence = if self.method == Some(Method::ChapMd5) {
            let response = value.try_into().map_err(|_| short(16))?;
            Evidence::ChapMd5 { identifier: packet.identifier, challenge, response }
        } else {
            let (peer_challenge, response) =
                ms_chap::parse_response_value(value).ok_or_else(|| short(ms_chap::RESPONSE_LENGTH))?;
            Evidence::MsChapV2 { identifier: packet.identifier, challenge, peer_challenge, response }
        };
        Ok(Some(self.claim(user, evidence, &[])))
    }

    fn claim(&mut self, user: &[u8], evidence: Evidence, request: &[u8]) -> Claim {
        self.deadline = None;
        self.stage = Stage::Claimed { user: user.into(), request: request.into() };
        Claim { user: user.to_vec(), evidence, serial: self.serial }
    }

    /// The subscriber is accepted. `false`: the proof is of no claim that is pending.
    pub(crate) fn accept(&mut self, proof: &Proof, message: &[u8], step: &mut Step<'_>) -> bool {
        if proof.serial != self.serial || !matches!(self.stage, Stage::Claimed { .. }) {
            return false;
        }
        let (protocol, code, answer) = match (self.method, &proof.authenticator_response) {
            (Some(Method::Pap), _) => (PppProtocol::PAP, pap::ACK, pap::answer(message)),
            (Some(Method::MsChapV2), Some(authenticator)) => {
                (PppProtocol::CHAP, chap::SUCCESS, ms_chap::success(authenticator, message))
            }
            (Some(_), _) => (PppProtocol::CHAP, chap::SUCCESS, message.to_vec()),
            (None, _) => {
                self.stage = Stage::Accepted(Box::default());
                return true;
            }
        };
        step.send(protocol, code, self.identifier, &answer);
        self.stage = Stage::Accepted(answer.into());
        true
    }

    /// The subscriber is refused: its name. `None`: no claim is pending.
    pub(crate) fn refuse(&mut self, message: &[u8], step: &mut Step<'_>) -> Option<Vec<u8>> {
        let Stage::Claimed { user, .. } = &self.stage else { return None };
        let user = user.to_vec();
        self.stage = Stage::Waiting;
        match self.method {
            Some(Method::Pap) => {
                step.send(PppProtocol::PAP, pap::NAK, self.identifier, &pap::answer(message))
            }
            Some(Method::ChapMd5) => step.send(PppProtocol::CHAP, chap::FAILURE, self.identifier, message),
            Some(Method::MsChapV2) => {
                let failure = ms_chap::failure(&draw(step.random), message);
                step.send(PppProtocol::CHAP, chap::FAILURE, self.identifier, &failure);
            }
            None => {}
        }
        Some(user)
    }
}
