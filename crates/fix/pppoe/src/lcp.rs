//! The options of LCP (RFC 1661 section 6) as they are on PPPoE.
//!
//! Requested: Maximum-Receive-Unit, always, since its default is 1500 and PPPoE has 1492 (RFC 2516 section 7); Magic-Number;
//! Authentication-Protocol by a concentrator. Everything else is rejected: Quality-Protocol, and what RFC 2516 section 7 does
//! not want on PPPoE (ACCM, PFC, ACFC, FCS alternatives).

use crate::control::{ConfigurationOption, put_option};
use crate::draw;
use crate::negotiation::{Failure, Judgement, Layer};
use crate::session::{Concentrator, Demanded, Host, Method, Notice, Role};
use crate::step::Step;
use wire::ppp::PppProtocol;

const MRU: u8 = 1;
const AUTHENTICATION: u8 = 3;
const MAGIC: u8 = 5;

/// The least MRU that is agreed to: below it rejects and echoes say nothing any more. The peer's is nak'ed with it.
pub(crate) const LEAST_MRU: u16 = 128;
/// MRU of a peer that names none (RFC 1661 section 6.1).
const DEFAULT_MRU: u16 = 1500;
/// Requests with this end's own magic number after which the line is looped. That a peer draws the same number once has a
/// chance of 2^-32.
const LOOPS: u8 = 4;

/// What the peer's request says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) mru: u16,
    /// Zero: none.
    pub(crate) magic: u32,
    /// How this end is to authenticate itself.
    pub(crate) method: Option<Method>,
}

impl Peer {
    const DEFAULT: Peer = Peer { mru: DEFAULT_MRU, magic: 0, method: None };
}

#[derive(Clone, Debug)]
pub(crate) struct Lcp {
    /// Most bytes that this end receives.
    mru: u16,
    /// MRU that is requested; `None`: the peer does not want to hear of it.
    requested_mru: Option<u16>,
    mru_naks: u8,
    /// This end's magic number; zero: the peer wants none.
    pub(crate) magic: u32,
    /// Method that this end demands, and which of its methods the peer did not want.
    pub(crate) demand: Option<Method>,
    refused: [bool; 3],
    /// What the peer's last good request said, and what the one says that is being judged.
    pub(crate) peer: Peer,
    candidate: Peer,
    loops: u8,
    /// Method that the peer demanded last and that is not allowed, until one is.
    pub(crate) not_allowed: Option<Demanded>,
    method_naks: u8,
}

impl Lcp {
    pub(crate) fn new(mru: u16) -> Lcp {
        let mru = mru.max(LEAST_MRU);
        Lcp {
            mru,
            requested_mru: Some(mru),
            mru_naks: 0,
            magic: 0,
            demand: None,
            refused: [false; 3],
            peer: Peer::DEFAULT,
            candidate: Peer::DEFAULT,
            loops: 0,
            not_allowed: None,
            method_naks: 0,
        }
    }

    /// As it was agreed to in another process.
    pub(crate) fn resumed(mru: u16, magic: u32, peer: Peer) -> Lcp {
        Lcp { magic, peer, ..Lcp::new(mru) }
    }

    /// The most bytes that may be sent to the peer behind the protocol field.
    pub(crate) fn peer_mru(&self) -> u16 {
        self.peer.mru.min(self.mru)
    }

    /// The most bytes that this end receives.
    pub(crate) fn own_mru(&self) -> u16 {
        self.mru
    }

    fn judge_magic(&mut self, data: &[u8], step: &mut Step<'_>) -> Result<Judgement, Failure> {
        let magic = data.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        if data.len() == 4 && magic != 0 && magic != self.magic {
            self.loops = 0;
            self.candidate.magic = magic;
            return Ok(Judgement::Ack);
        }
        if data.len() == 4 && magic != 0 {
            self.loops += 1;
            if self.loops >= LOOPS {
                return Err(Failure::Looped);
            }
        }
        Ok(Judgement::Nak(draw_magic(step).to_be_bytes().to_vec()))
    }

    /// The peer demands that this end says who it is. Of methods that are not allowed it hears one that is, each time
    /// another, and when all were named it is over: a method that is not in the list is never used.
    fn judge_method(&mut self, data: &[u8], host: &Host, step: &mut Step<'_>) -> Result<Judgement, Failure> {
        let allowed: &[Method] = if host.user.is_empty() { &[] } else { &host.methods };
        if let Some(method) = Method::of_option(data).filter(|method| allowed.contains(method)) {
            self.candidate.method = Some(method);
            return Ok(Judgement::Ack);
        }
        let demanded = Demanded {
            protocol: data.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes)),
            algorithm: data.get(2).copied(),
        };
        self.not_allowed = Some(demanded);
        if allowed.is_empty() {
            return Ok(Judgement::Reject);
        }
        step.notice(Notice::MethodNotAllowed { demanded });
        let named = usize::from(self.method_naks);
        self.method_naks = self.method_naks.saturating_add(1);
        match allowed.get(named % allowed.len()) {
            Some(method) if named < allowed.len().saturating_mul(2) => {
                Ok(Judgement::Nak(method.option().to_vec()))
            }
            _ => Err(Failure::NoAgreement),
        }
    }

    /// The subscriber wants to show who it is by another method than the one demanded.
    fn other_method(&mut self, data: &[u8], concentrator: &Concentrator) -> Result<(), Failure> {
        let methods = &concentrator.methods;
        if let (Some(demand), slots) = (self.demand, &mut self.refused)
            && let Some(slot) = slots.get_mut(demand as usize)
        {
            *slot = true;
        }
        let free = |method: &Method| !self.refused.get(*method as usize).copied().unwrap_or(true);
        let proposed = Method::of_option(data).filter(|method| methods.contains(method) && free(method));
        match proposed.or_else(|| methods.iter().copied().find(free)) {
            Some(method) => {
                self.demand = Some(method);
                Ok(())
            }
            None => Err(Failure::MethodRefused),
        }
    }
}

/// A magic number, which is never zero.
fn draw_magic(step: &mut Step<'_>) -> u32 {
    u32::from_be_bytes(draw(step.random)).max(1)
}

impl Layer for Lcp {
    fn protocol(&self) -> PppProtocol {
        PppProtocol::LCP
    }

    fn request(&self, options: &mut Vec<u8>) {
        if let Some(mru) = self.requested_mru {
            put_option(MRU, &mru.to_be_bytes(), options);
        }
        if let Some(method) = self.demand {
            put_option(AUTHENTICATION, method.option(), options);
        }
        if self.magic != 0 {
            put_option(MAGIC, &self.magic.to_be_bytes(), options);
        }
    }

    fn reset(&mut self, step: &mut Step<'_>) {
        self.requested_mru = Some(self.mru);
        self.magic = draw_magic(step);
        self.demand = match &step.config.role {
            Role::Host(_) => None,
            Role::Concentrator(concentrator) => concentrator.methods.first().copied(),
        };
        self.refused = [false; 3];
        (self.mru_naks, self.method_naks) = (0, 0);
    }

    fn begin(&mut self) {
        self.candidate = Peer::DEFAULT;
    }

    fn judge(&mut self, option: ConfigurationOption<'_>, step: &mut Step<'_>) -> Result<Judgement, Failure> {
        match (option.kind, &step.config.role) {
            (MRU, _) => {
                let mru = option.data.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
                if option.data.len() != 2 || mru < LEAST_MRU {
                    let least = if option.data.len() == 2 { LEAST_MRU } else { self.mru };
                    return Ok(Judgement::Nak(least.to_be_bytes().to_vec()));
                }
                self.candidate.mru = mru;
                Ok(Judgement::Ack)
            }
            (MAGIC, _) => self.judge_magic(option.data, step),
            (AUTHENTICATION, Role::Host(host)) => self.judge_method(option.data, host, step),
            _ => Ok(Judgement::Reject),
        }
    }

    fn agreed(&mut self) -> Result<(), Failure> {
        self.peer = self.candidate;
        self.not_allowed = self.not_allowed.filter(|_| self.peer.method.is_none());
        Ok(())
    }

    fn naked(&mut self, option: ConfigurationOption<'_>, step: &mut Step<'_>) -> Result<(), Failure> {
        match (option.kind, &step.config.role) {
            (MRU, _) => {
                // A smaller one is as good. A larger one cannot be received; who insists on it is not known again, and cannot
                // send more than PPPoE lets it.
                let mru = option.data.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
                self.mru_naks = self.mru_naks.saturating_add(1);
                if (LEAST_MRU..=self.mru).contains(&mru) {
                    self.requested_mru = Some(mru);
                } else if self.mru_naks > 1 {
                    self.requested_mru = None;
                }
                Ok(())
            }
            (MAGIC, _) if self.magic != 0 => {
                self.magic = draw_magic(step);
                Ok(())
            }
            (AUTHENTICATION, Role::Concentrator(concentrator)) if self.demand.is_some() => {
                self.other_method(option.data, concentrator)
            }
            _ => Ok(()),
        }
    }

    fn rejected(&mut self, kind: u8) -> Result<(), Failure> {
        match kind {
            MRU => self.requested_mru = None,
            MAGIC => self.magic = 0,
            _ => return Err(Failure::MethodRefused),
        }
        Ok(())
    }
}
