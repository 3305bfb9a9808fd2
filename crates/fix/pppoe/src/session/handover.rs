//! An open session of a concentrator, handed to another process.
//!
//! What PPP needs to go on: both magic numbers and MRUs, without which echoes and long packets come to nothing, and the
//! identifiers, so that no answer to the old process is taken for one to the new. The subscriber is authenticated already; what
//! was granted is the caller's to keep. A session that is not open is not handed over: its host begins again.

use super::machine::Machine;
use super::network::{Layer3, Network};
use super::{Config, Family, Grant, Phase, Role, Session};
use crate::automaton::State;
use crate::ipcp::Ipcp;
use crate::ipv6cp::Ipv6cp;
use crate::lcp::{LEAST_MRU, Lcp, Peer};
use crate::negotiation::Negotiation;
use crate::step::Budget;
use crate::{Random, Time, draw};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What an open session is made of again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    mru: u16,
    magic: u32,
    peer_mru: u16,
    peer_magic: u32,
    /// Of LCP's last Configure-Request, of the last Echo-Request, of the last Protocol-Reject.
    identifiers: [u8; 3],
    /// Identifier of IPCP's last request; `None`: it is not up.
    ipcp: Option<u8>,
    /// The same of IPV6CP, and the peer's interface identifier.
    ipv6cp: Option<(u8, u64)>,
}

impl Session {
    /// What another process needs to go on with it. `None`: it is a host's, or not open.
    pub(crate) fn handover(&self) -> Option<Handover> {
        let machine = &self.machine;
        if machine.phase != Phase::Open || !matches!(self.config.role, Role::Concentrator(_)) {
            return None;
        }
        let lcp = &machine.lcp;
        let identifier = |family| {
            let network = machine.network(family).filter(|network| network.up)?;
            Some(network.negotiation.identifier())
        };
        Some(Handover {
            mru: lcp.own_mru(),
            magic: lcp.magic,
            peer_mru: lcp.peer.mru,
            peer_magic: lcp.peer.magic,
            identifiers: [
                machine.lcp_negotiation.identifier(),
                machine.keepalive.identifier,
                machine.reject_identifier,
            ],
            ipcp: identifier(Family::Ipv4),
            ipv6cp: identifier(Family::Ipv6).zip(machine.ipv6().map(|up| up.peer)),
        })
    }

    /// Goes on with a session of another process, with what it was granted. Its first echo comes at a random moment of the
    /// interval, so that thousands of them do not come at once. `None`: nothing of it would be up, or its MRU cannot be.
    pub(crate) fn resume(
        config: Arc<Config>,
        handover: &Handover,
        grant: &Grant,
        now: Time,
        random: &mut dyn Random,
    ) -> Option<Session> {
        let Handover { mru, magic, peer_mru, peer_magic, identifiers, ipcp, ipv6cp } = *handover;
        let is_up = ipcp.is_some() && grant.ipv4.is_some() || ipv6cp.is_some() && grant.ipv6.is_some();
        let role = matches!(config.role, Role::Concentrator(_));
        if !is_up || !role || mru.min(peer_mru) < LEAST_MRU {
            return None;
        }
        let [lcp_identifier, echo, reject_identifier] = identifiers;
        let mut machine = Machine::new(mru);
        machine.lcp = Lcp::resumed(mru, magic, Peer { mru: peer_mru, magic: peer_magic, method: None });
        machine.lcp_negotiation = Negotiation::resumed(State::Opened, lcp_identifier);
        machine.reject_identifier = reject_identifier;
        machine.phase = Phase::Open;
        let ipv4 = if ipcp.is_some() { Ipcp::resumed(grant) } else { Ipcp::concentrator(grant) };
        let ipv4 =
            ipv4.map(|layer| Network::resumed(Layer3::Ipv4(layer), ipcp.is_some(), ipcp.unwrap_or_default()));
        let ipv6 = grant.ipv6.map(|(own, suggestion)| {
            let (identifier, peer) = ipv6cp.unwrap_or_default();
            let layer = Layer3::Ipv6(Ipv6cp::resumed(own, suggestion, peer));
            Network::resumed(layer, ipv6cp.is_some(), identifier)
        });
        machine.networks = [ipv4, ipv6];
        machine.keepalive.start(now);
        machine.keepalive.identifier = echo;
        let share = u32::from(u16::from_be_bytes(draw(random)));
        let ago = config.timers.echo.saturating_mul(share) / u32::from(u16::MAX);
        machine.keepalive.heard_at(now.saturating_sub(ago));
        Some(Session { config, machine, budget: Budget::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::line::{ALL, End, Line, concentrator, grant, host, of_host};

    /// That it then answers echoes and ends in order, the tests of takeovers see.
    #[test]
    fn an_open_session_is_the_same_in_another_process() {
        let methods = [crate::session::Method::ChapMd5];
        let mut random = |bytes: &mut [u8]| bytes.fill(0x5a);
        let mut line = Line::new(of_host(host(&ALL)), concentrator(&methods));
        line.ends[0] = End::with_mru(of_host(host(&ALL)), 1480, 1);
        assert_eq!(line.ends[1].session.handover(), None, "not open");
        line.start();
        assert!(line.is_up());
        assert_eq!(line.ends[0].session.handover(), None, "a host's");

        let server = concentrator(&methods);
        let handover = line.ends[1].session.handover().unwrap();
        let text = serde_json::to_string(&handover).unwrap();
        let handover: Handover = serde_json::from_str(&text).unwrap();
        let mut resume =
            |handover| Session::resume(server.clone(), &handover, &grant(), line.ends[1].now, &mut random);
        let resumed = resume(handover).unwrap();
        let former = &line.ends[1].session;
        assert_eq!((resumed.ipv4(), resumed.ipv6()), (former.ipv4(), former.ipv6()));
        assert_eq!(resumed.peer_mru(), 1480);
        assert_eq!(resumed.handover(), Some(handover));
        assert!(resume(Handover { ipcp: None, ipv6cp: None, ..handover }).is_none());
        assert!(resume(Handover { peer_mru: 0, ..handover }).is_none());
    }
}
