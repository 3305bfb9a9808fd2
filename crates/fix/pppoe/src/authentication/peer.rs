//! The end that shows who it is.

use super::Outcome;
use crate::control::ControlError;
use crate::session::{Closed, Host, Method, Remark, Waiting};
use crate::turn::Turn;
use crate::{Time, chap, draw, ms_chap, pap};
use subtle::ConstantTimeEq;
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

/// Answers by the method that LCP agreed to, and by no other. Until it is accepted it sends its packet again whenever the
/// restart timer runs out, since the answer may have been lost (RFC 1334 section 2.2.1, RFC 1994 section 4.2).
pub(crate) struct Peer {
    method: Method,
    accepted: bool,
    identifier: u8,
    /// PAP: requests sent, whose identifiers end with `identifier`.
    requests: u8,
    pub deadline: Option<Time>,
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
    pub fn start(method: Method, host: &Host, turn: &mut Turn<'_>) -> Peer {
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
            peer.send(host, turn);
        }
        peer
    }

    pub fn waiting(&self) -> Waiting {
        if self.method != Method::Pap && self.response.is_none() {
            Waiting::Challenge
        } else {
            Waiting::Answer
        }
    }

    fn send(&mut self, host: &Host, turn: &mut Turn<'_>) {
        self.deadline = Some(turn.restart_at());
        if self.method == Method::Pap {
            self.identifier = self.identifier.wrapping_add(1);
            self.requests = self.requests.saturating_add(1);
            let data = pap::request(&host.user, &host.secret);
            turn.send(PppProtocol::PAP, pap::REQUEST, self.identifier, &data);
        } else if let Some(response) = &self.response {
            turn.send(PppProtocol::CHAP, chap::RESPONSE, self.identifier, &response.data);
        }
    }

    pub fn tick(&mut self, host: &Host, turn: &mut Turn<'_>) {
        if self.deadline.is_some_and(|deadline| turn.now >= deadline) {
            self.deadline = None;
            if !self.accepted {
                self.send(host, turn);
            }
        }
    }

    /// Takes a packet of PAP or CHAP; one of the protocol that was not agreed to is dropped.
    pub fn receive(
        &mut self,
        protocol: PppProtocol,
        packet: ControlPacket<'_>,
        host: &Host,
        turn: &mut Turn<'_>,
    ) -> Result<Outcome, ControlError> {
        match (protocol == PppProtocol::PAP, self.method == Method::Pap) {
            (true, true) => Ok(self.pap_answer(packet)),
            (false, false) if packet.code == chap::CHALLENGE => {
                self.challenged(packet, host, turn).map(|()| Outcome::Going)
            }
            (false, false) => Ok(self.chap_answer(packet)),
            _ => Ok(Outcome::Going),
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
            return Outcome::Going;
        }
        let message = pap::parse_answer(packet.data);
        match packet.code {
            pap::ACK => self.accept(message),
            pap::NAK => {
                Outcome::Over(Closed::AuthenticationFailed { message: message.to_vec(), failure: None })
            }
            _ => Outcome::Going,
        }
    }

    fn challenged(
        &mut self,
        packet: ControlPacket<'_>,
        host: &Host,
        turn: &mut Turn<'_>,
    ) -> Result<(), ControlError> {
        let (challenge, _name) = chap::parse_value(packet.code, packet.data)?;
        if !turn.courtesy() {
            return Ok(());
        }
        if self.issued.as_deref().is_some_and(|issued| issued.as_slice() == challenge) {
            turn.remark(Remark::OwnChallenge);
            return Ok(());
        }
        // The same challenge again: the response was lost, and is the same.
        let same = self.identifier == packet.identifier
            && self.response.as_ref().is_some_and(|response| response.challenge == challenge);
        if !same {
            let response = self.respond(packet.identifier, challenge, host, turn)?;
            self.response = Some(Box::new(response));
            self.identifier = packet.identifier;
        }
        self.send(host, turn);
        Ok(())
    }

    fn respond(
        &mut self,
        identifier: u8,
        challenge: &[u8],
        host: &Host,
        turn: &mut Turn<'_>,
    ) -> Result<Response, ControlError> {
        let (user, secret) = (&host.user[..], &host.secret[..]);
        let (value, expected) = if self.method == Method::ChapMd5 {
            (chap::md5_response(identifier, secret, challenge).to_vec(), None)
        } else {
            let Ok(theirs) = <&[u8; 16]>::try_from(challenge) else {
                return Err(ControlError::Data { code: chap::CHALLENGE, found: challenge.len(), least: 16 });
            };
            let own = draw(turn.random);
            self.issued = Some(Box::new(own));
            let response = ms_chap::nt_response(theirs, &own, user, secret);
            let expected = ms_chap::authenticator_response(theirs, &own, user, secret);
            (ms_chap::response_value(&own, &response).to_vec(), Some(expected))
        };
        Ok(Response { challenge: challenge.to_vec(), data: chap::value(&value, user), expected })
    }

    fn chap_answer(&mut self, packet: ControlPacket<'_>) -> Outcome {
        let Some(response) = self.response.as_ref().filter(|_| packet.identifier == self.identifier) else {
            return Outcome::Going;
        };
        match (packet.code, response.expected) {
            (chap::SUCCESS, None) => self.accept(packet.data),
            (chap::SUCCESS, Some(expected)) => match ms_chap::parse_success(packet.data) {
                Some((shown, message)) if bool::from(shown.ct_eq(&expected)) => self.accept(message),
                _ => Outcome::Over(Closed::Impostor),
            },
            (chap::FAILURE, None) => {
                Outcome::Over(Closed::AuthenticationFailed { message: packet.data.to_vec(), failure: None })
            }
            (chap::FAILURE, Some(_)) => {
                let (failure, message) = ms_chap::Failure::parse(packet.data);
                Outcome::Over(Closed::AuthenticationFailed { message: message.to_vec(), failure })
            }
            _ => Outcome::Going,
        }
    }
}
