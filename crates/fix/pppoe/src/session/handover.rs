//! An open session of a concentrator, handed to another process.
//!
//! What PPP needs to go on: both magic numbers and MRUs, without which echoes and long packets come to nothing, and the
//! identifiers, so that no answer to the old process is taken for one to the new. Who the subscriber is has been shown; what
//! was granted is the caller's to keep. A session that is not open is not handed over: its host begins again.

use super::machine::Machine;
use super::network::Network;
use super::{Config, Grant, Phase, Role, Session};
use crate::automaton::State;
use crate::ipcp::Ipcp;
use crate::ipv6cp::Ipv6cp;
use crate::lcp::{LEAST_MRU, Lcp, Peer};
use crate::negotiation::Negotiation;
use crate::turn::Manners;
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
    pub fn handover(&self) -> Option<Handover> {
        let machine = &self.machine;
        if machine.phase != Phase::Open || !matches!(self.config.role, Role::Concentrator(_)) {
            return None;
        }
        let (lcp, ipcp, ipv6cp) = (&machine.lcp, machine.ipcp.as_ref(), machine.ipv6cp.as_ref());
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
            ipcp: ipcp.filter(|network| network.up).map(|network| network.negotiation.identifier()),
            ipv6cp: ipv6cp
                .filter(|network| network.up)
                .map(|network| (network.negotiation.identifier(), network.layer.result().peer)),
        })
    }

    /// Goes on with a session of another process, with what it was granted. Its first echo comes at a random moment of the
    /// interval, so that thousands of them do not come at once. `None`: nothing of it would be up, or its MRU cannot be.
    pub fn resume(
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
        machine.ipcp = match ipcp {
            Some(identifier) => Ipcp::resumed(grant).map(|layer| Network::resumed(layer, true, identifier)),
            None => Ipcp::concentrator(grant).map(|layer| Network::resumed(layer, false, 0)),
        };
        machine.ipv6cp = grant.ipv6.map(|(own, suggestion)| {
            let (identifier, peer) = ipv6cp.unwrap_or_default();
            Network::resumed(Ipv6cp::resumed(own, suggestion, peer), ipv6cp.is_some(), identifier)
        });
        machine.keepalive.start(now);
        machine.keepalive.identifier = echo;
        let share = u32::from(u16::from_be_bytes(draw(random)));
        let ago = config.timers.echo.saturating_mul(share) / u32::from(u16::MAX);
        machine.keepalive.heard_at(now.saturating_sub(ago));
        Some(Session { config, machine, manners: Manners::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Action, Concentrator, Host, Method, Timers, Verdict};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    fn config(role: Role) -> Arc<Config> {
        Arc::new(Config { role, timers: Timers::DEFAULT })
    }

    fn grant() -> Grant {
        let ipv4 = Some((Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)));
        Grant { ipv4, dns: [None; 2], ipv6: Some((1, 7)) }
    }

    /// Carries packets between both ends until nobody has any.
    fn talk(now: Time, ends: &mut [Session; 2], first: [Vec<Action>; 2], seed: &mut u8) -> Vec<Action> {
        let mut random = |octets: &mut [u8]| {
            octets.iter_mut().for_each(|octet| {
                *seed = seed.wrapping_mul(29).wrapping_add(17);
                *octet = *seed;
            })
        };
        let (mut todo, mut rest) = (first.map(std::collections::VecDeque::from), Vec::new());
        while let Some(from) = (0..2).find(|end| !todo[*end].is_empty()) {
            let mut actions = Vec::new();
            let to = match todo[from].pop_front().unwrap() {
                Action::Send(packet) => {
                    ends[1 - from].receive(now, &packet, &mut random, &mut actions);
                    1 - from
                }
                Action::Authenticate(claim) => {
                    let proof = claim.proof(b"secret").unwrap();
                    let verdict = Verdict::Accepted { grant: grant(), proof, message: Vec::new() };
                    ends[from].authenticated(now, verdict, &mut random, &mut actions);
                    from
                }
                other => {
                    rest.push(other);
                    from
                }
            };
            todo[to].extend(actions);
        }
        rest
    }

    #[test]
    fn an_open_session_goes_on_in_another_process() {
        let methods = vec![Method::ChapMd5];
        let server =
            config(Role::Concentrator(Concentrator { name: b"ac".to_vec(), methods: methods.clone() }));
        let (user, secret, ipv4) = (b"u".to_vec(), b"secret".to_vec(), Some(Ipv4Addr::UNSPECIFIED));
        let host = config(Role::Host(Host { user, secret, methods, ipv4, dns: false, ipv6: Some(0) }));
        let (mut now, mut seed) = (Duration::from_secs(100), 1);
        let mut random = |octets: &mut [u8]| octets.fill(0x5a);
        let mut ends = [
            Session::new(server.clone(), 1492, &mut random),
            Session::new(host, 1480, &mut |octets: &mut [u8]| octets.fill(3)),
        ];
        assert_eq!(ends[0].handover(), None, "not open");
        let mut first = [Vec::new(), Vec::new()];
        ends[0].start(now, &mut random, &mut first[0]);
        ends[1].start(now, &mut |octets: &mut [u8]| octets.fill(3), &mut first[1]);
        talk(now, &mut ends, first, &mut seed);
        assert_eq!((ends[0].phase(), ends[1].phase()), (Phase::Open, Phase::Open));
        assert_eq!(ends[1].handover(), None, "a host's");

        let handover = ends[0].handover().unwrap();
        let text = serde_json::to_string(&handover).unwrap();
        let handover: Handover = serde_json::from_str(&text).unwrap();
        let resumed = Session::resume(server.clone(), &handover, &grant(), now, &mut random).unwrap();
        assert_eq!(
            (resumed.ipv4(), resumed.ipv6(), resumed.peer_mru()),
            (ends[0].ipv4(), ends[0].ipv6(), 1480)
        );
        assert_eq!(resumed.handover(), Some(handover));
        ends[0] = resumed;
        // Its echoes are answered, and it answers those of the host: the magic numbers are right.
        for _ in 0..20 {
            now += Duration::from_secs(10);
            for end in 0..2 {
                let mut actions = [Vec::new(), Vec::new()];
                ends[end].tick(now, &mut random, &mut actions[end]);
                assert!(talk(now, &mut ends, actions, &mut seed).is_empty());
            }
        }
        assert!(ends[0].round_trip().is_some() && ends[1].round_trip().is_some());
        // The host ends it, and is understood.
        let mut actions = [Vec::new(), Vec::new()];
        ends[1].close(now, &mut random, &mut actions[1]);
        let rest = talk(now, &mut ends, actions, &mut seed);
        assert_eq!(rest.iter().filter(|action| matches!(action, Action::Down(_))).count(), 4, "{rest:?}");

        let nothing = Handover { ipcp: None, ipv6cp: None, ..handover };
        assert!(Session::resume(server.clone(), &nothing, &grant(), now, &mut random).is_none());
        assert!(
            Session::resume(server, &Handover { peer_mru: 0, ..handover }, &grant(), now, &mut random)
                .is_none()
        );
    }
}
