//! The option of IPV6CP: Interface-Identifier (RFC 5072 section 4.1). Everything else is rejected.

use crate::control::{ConfigurationOption, has_option, put_option};
use crate::negotiation::{Failure, Judgement, Layer};
use crate::session::Ipv6;
use crate::step::Step;
use crate::{Random, draw};
use wire::ppp::PppProtocol;

const IDENTIFIER: u8 = 1;

/// Identifiers are 64 bits in host order; zero is none.
#[derive(Clone, Debug)]
pub(crate) struct Ipv6cp {
    /// Requested first; zero: one drawn at random.
    first: u64,
    requested: u64,
    /// What a concentrator suggests to a subscriber that has none or this end's; zero: one drawn at random.
    suggestion: u64,
    peer: u64,
    candidate: u64,
}

impl Ipv6cp {
    /// `first`: this end's identifier; `suggestion`: one for a peer that has none of its own. Zero: drawn at random.
    pub(crate) fn new(first: u64, suggestion: u64) -> Ipv6cp {
        Ipv6cp { first, requested: first, suggestion, peer: 0, candidate: 0 }
    }

    /// One that was up in another process, with the identifier that the peer has.
    pub(crate) fn resumed(first: u64, suggestion: u64, peer: u64) -> Ipv6cp {
        Ipv6cp { peer, ..Ipv6cp::new(first, suggestion) }
    }

    /// What came of it, once it is up.
    pub(crate) fn result(&self) -> Ipv6 {
        Ipv6 { local: self.requested, peer: self.peer }
    }

    fn suggest(&self, step: &mut Step<'_>) -> u64 {
        if self.suggestion != 0 && self.suggestion != self.requested {
            return self.suggestion;
        }
        draw_identifier(self.requested, step.random)
    }
}

/// An identifier that is neither zero nor `other`, with the universal bit off, since it comes from no assigned address (RFC 5072
/// section 4.1).
pub(crate) fn draw_identifier(other: u64, random: &mut dyn Random) -> u64 {
    let identifier = u64::from_be_bytes(draw(random)) & !(1 << 57);
    if identifier == 0 || identifier == other { (other & !(1 << 57)) ^ 1 | 1 << 32 } else { identifier }
}

fn identifier(data: &[u8]) -> Option<u64> {
    <[u8; 8]>::try_from(data).ok().map(u64::from_be_bytes)
}

impl Layer for Ipv6cp {
    fn protocol(&self) -> PppProtocol {
        PppProtocol::IPV6CP
    }

    fn request(&self, options: &mut Vec<u8>) {
        put_option(IDENTIFIER, &self.requested.to_be_bytes(), options);
    }

    fn reset(&mut self, step: &mut Step<'_>) {
        self.requested = if self.first == 0 { draw_identifier(0, step.random) } else { self.first };
    }

    fn begin(&mut self) {
        self.candidate = 0;
    }

    fn judge(&mut self, option: ConfigurationOption<'_>, step: &mut Step<'_>) -> Result<Judgement, Failure> {
        if option.kind != IDENTIFIER {
            return Ok(Judgement::Reject);
        }
        match identifier(option.data) {
            Some(identifier) if identifier != 0 && identifier != self.requested => {
                self.candidate = identifier;
                Ok(Judgement::Ack)
            }
            _ => Ok(Judgement::Nak(self.suggest(step).to_be_bytes().to_vec())),
        }
    }

    fn missing(&mut self, step: &mut Step<'_>, naks: &mut Vec<u8>) {
        if self.candidate == 0 && !has_option(IDENTIFIER, naks) {
            put_option(IDENTIFIER, &self.suggest(step).to_be_bytes(), naks);
        }
    }

    fn agreed(&mut self) -> Result<(), Failure> {
        self.peer = self.candidate;
        if self.peer == 0 { Err(Failure::NoAgreement) } else { Ok(()) }
    }

    /// An identifier that this end cannot take is answered by another one.
    fn naked(&mut self, option: ConfigurationOption<'_>, step: &mut Step<'_>) -> Result<(), Failure> {
        if option.kind == IDENTIFIER {
            let proposed =
                identifier(option.data).filter(|proposed| *proposed != 0 && *proposed != self.peer);
            self.requested = proposed.unwrap_or_else(|| draw_identifier(self.peer, step.random));
        }
        Ok(())
    }

    fn rejected(&mut self, _kind: u8) -> Result<(), Failure> {
        Err(Failure::NoAgreement)
    }
}
