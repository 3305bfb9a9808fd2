//! A PPP session of either end, to which any packets come at any time. The first byte chooses the end and its methods, then
//! steps follow: a byte below 0xf0 is the length of a packet, which follows; 0xf0 lets time pass to the next deadline, 0xf1 to
//! 0xfd so many times 700 ms, 0xfe answers claims, right or wrong, 0xff closes the session. It never panics, sends a bounded
//! number of packets of bounded length, and its deadline is not past once it was called.

use rxlane_pppoe::session::{
    Action, Concentrator, Config, Family, Grant, Host, Method, Phase, Role, Session, Timers, Verdict,
};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

const ALL: [Method; 3] = [Method::MsChapV2, Method::ChapMd5, Method::Pap];

fn config(choice: u8) -> Config {
    let methods = ALL.get(usize::from(choice >> 1 & 3)..).unwrap_or_default().to_vec();
    let role = if choice & 1 == 0 {
        Role::Host(Host {
            user: b"user@isp".to_vec(),
            secret: b"secret".to_vec(),
            methods,
            ipv4: (choice & 8 == 0).then_some(Ipv4Addr::UNSPECIFIED),
            dns: choice & 16 == 0,
            ipv6: (choice & 32 == 0).then_some(0),
        })
    } else {
        Role::Concentrator(Concentrator { name: b"ac".to_vec(), methods })
    };
    Config { role, timers: Timers::DEFAULT }
}

/// What follows from the order of actions, whatever came in.
#[derive(Default)]
struct Watch {
    up: [bool; 2],
    over: bool,
    claims: Vec<rxlane_pppoe::session::Claim>,
}

impl Watch {
    fn look(&mut self, session: &Session, actions: &mut Vec<Action>) {
        assert!(actions.len() <= 16, "{actions:?}");
        for action in actions.drain(..) {
            assert!(!self.over, "nothing follows: {action:?}");
            match action {
                Action::Send(bytes) => assert!(bytes.len() >= 6 && bytes.len() <= 1494),
                Action::Up4(_) => assert!(!std::mem::replace(&mut self.up[0], true)),
                Action::Up6(_) => assert!(!std::mem::replace(&mut self.up[1], true)),
                Action::Down(Family::Ipv4) => assert!(std::mem::replace(&mut self.up[0], false)),
                Action::Down(Family::Ipv6) => assert!(std::mem::replace(&mut self.up[1], false)),
                Action::Authenticate(claim) => self.claims.push(claim),
                Action::Phase(_) => {}
                Action::Notice(notice) => assert!(!notice.to_string().chars().any(char::is_control)),
                Action::Closed(closed) => {
                    assert!(!closed.to_string().chars().any(char::is_control));
                    self.over = true;
                }
            }
        }
        assert_eq!(self.up, [session.ipv4().is_some(), session.ipv6().is_some()]);
        assert_eq!(self.up != [false; 2], session.phase() == Phase::Open);
        assert!(!self.over || session.deadline().is_none());
        assert!((128..=1492).contains(&session.peer_mru()));
    }
}

pub fn run(bytes: &[u8]) {
    let Some((choice, mut steps)) = bytes.split_first() else { return };
    // Two ends draw different numbers.
    let mut counter = *choice;
    let mut random = |bytes: &mut [u8]| {
        for byte in bytes {
            counter = counter.wrapping_mul(29).wrapping_add(71);
            *byte = counter;
        }
    };
    let mut session = Session::new(Arc::new(config(*choice)), 1492);
    let (mut now, mut watch, mut actions) = (Duration::ZERO, Watch::default(), Vec::new());
    session.start(now, &mut random, &mut actions);
    while let Some((step, rest)) = steps.split_first() {
        watch.look(&session, &mut actions);
        steps = rest;
        match step {
            0..0xf0 => {
                let (packet, rest) = steps.split_at(steps.len().min(usize::from(*step)));
                steps = rest;
                session.receive(now, packet, &mut random, &mut actions);
                continue;
            }
            0xf0 => now = session.deadline().unwrap_or(now).max(now),
            0xf1..0xfe => now += Duration::from_millis(700 * u64::from(step - 0xf0)),
            0xfe => {
                let Some((kind, rest)) = steps.split_first() else { continue };
                steps = rest;
                let Some(claim) = watch.claims.pop() else { continue };
                let secret: &[u8] = if kind & 1 == 0 { b"secret" } else { b"other" };
                let grant = Grant {
                    ipv4: (kind & 2 == 0)
                        .then_some((Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2))),
                    dns: [(kind & 4 == 0).then_some(Ipv4Addr::new(192, 0, 2, 53)), None],
                    ipv6: (kind & 8 == 0).then_some((1, 2)),
                };
                let message = b"words".to_vec();
                let verdict = match claim.proof(secret) {
                    Some(proof) => Verdict::Accepted { grant, proof, message },
                    None => Verdict::Refused { message },
                };
                session.authenticated(now, verdict, &mut random, &mut actions);
                continue;
            }
            0xff => {
                session.close(now, &mut random, &mut actions);
                continue;
            }
        }
        session.tick(now, &mut random, &mut actions);
        assert!(session.deadline().is_none_or(|deadline| deadline > now), "a busy loop");
    }
    watch.look(&session, &mut actions);
}
