//! The end that demands to know who the other is.

use crate::control::ControlError;
use crate::session::{Claim, Concentrator, Evidence, Method, Proof, Remark, Waiting};
use crate::turn::Turn;
use crate::{Time, chap, draw, ms_chap, pap};
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

/// Challenges (CHAP) or waits (PAP), passes the claim on, and answers by the verdict. Each challenge is a new one, under a new
/// identifier, and good for one claim. What comes again after the verdict gets the same answer, without a second claim.
pub(crate) struct Authenticator {
    /// `None`: nobody has to say who they are.
    method: Option<Method>,
    /// Of the challenge, or of the request that is answered.
    identifier: u8,
    challenge: [u8; 16],
    stage: Stage,
    pub deadline: Option<Time>,
}

enum Stage {
    Waiting,
    /// Its verdict is awaited. PAP: the data of the request, whose repetitions change no more than the identifier.
    Claimed {
        serial: u32,
        user: Box<[u8]>,
        request: Box<[u8]>,
    },
    /// The subscriber was accepted, with this answer.
    Accepted(Box<[u8]>),
}

impl Authenticator {
    /// LCP agreed to `method`. `serial`: of this claim among those of the session.
    pub fn start(
        method: Option<Method>,
        concentrator: &Concentrator,
        serial: u32,
        turn: &mut Turn<'_>,
    ) -> (Authenticator, Option<Claim>) {
        let mut authenticator = Authenticator {
            method,
            identifier: u8::from_be_bytes(draw(turn.random)),
            challenge: [0; 16],
            stage: Stage::Waiting,
            deadline: None,
        };
        let claim = match method {
            None => Some(authenticator.claim(&[], Evidence::None, &[], serial)),
            Some(Method::Pap) => None,
            Some(_) => {
                authenticator.send_challenge(concentrator, turn);
                None
            }
        };
        (authenticator, claim)
    }

    pub fn waiting(&self) -> Waiting {
        if matches!(self.stage, Stage::Waiting) { Waiting::Claim } else { Waiting::Verdict }
    }

    fn send_challenge(&mut self, concentrator: &Concentrator, turn: &mut Turn<'_>) {
        self.identifier = self.identifier.wrapping_add(1);
        self.challenge = draw(turn.random);
        self.deadline = Some(turn.restart_at());
        let data = chap::value(&self.challenge, &concentrator.name);
        turn.send(PppProtocol::CHAP, chap::CHALLENGE, self.identifier, &data);
    }

    pub fn tick(&mut self, concentrator: &Concentrator, turn: &mut Turn<'_>) {
        if self.deadline.is_some_and(|deadline| turn.now >= deadline) {
            self.deadline = None;
            if matches!(self.stage, Stage::Waiting) {
                self.send_challenge(concentrator, turn);
            }
        }
    }

    /// Takes a packet of PAP or CHAP; one of the protocol that was not agreed to is dropped.
    pub fn receive(
        &mut self,
        protocol: PppProtocol,
        packet: ControlPacket<'_>,
        serial: u32,
        turn: &mut Turn<'_>,
    ) -> Result<Option<Claim>, ControlError> {
        match (self.method, packet.code) {
            (Some(Method::Pap), pap::REQUEST) if protocol == PppProtocol::PAP => {
                self.pap_request(packet, serial, turn)
            }
            (Some(Method::ChapMd5 | Method::MsChapV2), chap::RESPONSE) if protocol == PppProtocol::CHAP => {
                self.response(packet, serial, turn)
            }
            // A challenge to who challenges: reflection. It is never answered.
            (Some(Method::ChapMd5 | Method::MsChapV2), chap::CHALLENGE) if protocol == PppProtocol::CHAP => {
                if chap::parse_value(packet.code, packet.data)?.0 == self.challenge {
                    turn.remark(Remark::OwnChallenge);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn pap_request(
        &mut self,
        packet: ControlPacket<'_>,
        serial: u32,
        turn: &mut Turn<'_>,
    ) -> Result<Option<Claim>, ControlError> {
        let (user, password) = pap::parse_request(packet.data)?;
        match &self.stage {
            Stage::Waiting => {
                self.identifier = packet.identifier;
                let evidence = Evidence::Pap { password: password.to_vec() };
                return Ok(Some(self.claim(user, evidence, packet.data, serial)));
            }
            Stage::Claimed { request, .. } => {
                if **request == *packet.data {
                    self.identifier = packet.identifier;
                }
            }
            Stage::Accepted(answer) => {
                if turn.courtesy() {
                    turn.send(PppProtocol::PAP, pap::ACK, packet.identifier, answer);
                }
            }
        }
        Ok(None)
    }

    fn response(
        &mut self,
        packet: ControlPacket<'_>,
        serial: u32,
        turn: &mut Turn<'_>,
    ) -> Result<Option<Claim>, ControlError> {
        let (value, user) = chap::parse_value(packet.code, packet.data)?;
        if packet.identifier != self.identifier {
            return Ok(None);
        }
        match &self.stage {
            Stage::Waiting => {}
            Stage::Claimed { .. } => return Ok(None),
            Stage::Accepted(answer) => {
                if turn.courtesy() {
                    turn.send(PppProtocol::CHAP, chap::SUCCESS, packet.identifier, answer);
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
            Evidence::MsChapV2 { challenge, peer_challenge, response }
        };
        Ok(Some(self.claim(user, evidence, &[], serial)))
    }

    fn claim(&mut self, user: &[u8], evidence: Evidence, request: &[u8], serial: u32) -> Claim {
        self.deadline = None;
        self.stage = Stage::Claimed { serial, user: user.into(), request: request.into() };
        Claim { user: user.to_vec(), evidence, serial }
    }

    /// The subscriber is accepted. `false`: the proof is of no claim that is pending.
    pub fn accept(&mut self, proof: &Proof, message: &[u8], turn: &mut Turn<'_>) -> bool {
        if !matches!(self.stage, Stage::Claimed { serial, .. } if serial == proof.serial) {
            return false;
        }
        let (protocol, code, answer) = match (self.method, &proof.authenticator_response) {
            (Some(Method::Pap), _) => (PppProtocol::PAP, pap::ACK, pap::answer(message)),
            (Some(Method::MsChapV2), Some(shown)) => {
                (PppProtocol::CHAP, chap::SUCCESS, ms_chap::success(shown, message))
            }
            (Some(_), _) => (PppProtocol::CHAP, chap::SUCCESS, message.to_vec()),
            (None, _) => {
                self.stage = Stage::Accepted(Box::default());
                return true;
            }
        };
        turn.send(protocol, code, self.identifier, &answer);
        self.stage = Stage::Accepted(answer.into());
        true
    }

    /// The subscriber is refused: its name. `None`: no claim is pending.
    pub fn refuse(&mut self, message: &[u8], turn: &mut Turn<'_>) -> Option<Vec<u8>> {
        let Stage::Claimed { user, .. } = &self.stage else { return None };
        let user = user.to_vec();
        self.stage = Stage::Waiting;
        match self.method {
            Some(Method::Pap) => {
                turn.send(PppProtocol::PAP, pap::NAK, self.identifier, &pap::answer(message))
            }
            Some(Method::ChapMd5) => turn.send(PppProtocol::CHAP, chap::FAILURE, self.identifier, message),
            Some(Method::MsChapV2) => {
                let failure = ms_chap::failure(&draw(turn.random), message);
                turn.send(PppProtocol::CHAP, chap::FAILURE, self.identifier, &failure);
            }
            None => {}
        }
        Some(user)
    }
}
