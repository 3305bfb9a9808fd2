//! Whole sessions of host and concentrator on good and bad lines, each from a seed.

use super::line;

use super::line::{End, Line, Trouble, concentrator, host, of_concentrator, of_host};
use crate::session::{Action, Closed, Ipv4, Ipv6, Method, Phase};
use std::net::Ipv4Addr;
use std::time::Duration;

const ALL: [Method; 3] = [Method::MsChapV2, Method::ChapMd5, Method::Pap];

fn line(host_methods: &[Method], methods: &[Method], trouble: Trouble, seed: u64) -> Line {
    let host = of_host(host(host_methods));
    Line::new(host, of_concentrator(concentrator(methods)), trouble, seed)
}

#[test]
fn a_good_line_comes_up_in_a_moment_with_every_method() {
    for methods in [&[][..], &[Method::Pap], &[Method::ChapMd5], &[Method::MsChapV2], &ALL] {
        let mut line = line(&ALL, methods, Trouble::default(), 1);
        line.start();
        assert!(line.run(Duration::from_secs(1), Line::is_up), "{methods:?}: {:?}", line.ends[0].actions);
        let [host, concentrator] = &line.ends;
        assert_eq!(
            host.session.ipv4(),
            Some(Ipv4 { local: line::SUBSCRIBER, peer: Some(line::OWN), dns: [Some(line::DNS), None] })
        );
        assert_eq!(
            concentrator.session.ipv4(),
            Some(Ipv4 { local: line::OWN, peer: Some(line::SUBSCRIBER), dns: [None; 2] })
        );
        let Some(Ipv6 { local, peer: 1 }) = host.session.ipv6() else { panic!("{:?}", host.session.ipv6()) };
        assert_eq!(concentrator.session.ipv6(), Some(Ipv6 { local: 1, peer: local }));
        assert!(line.now < Duration::from_millis(300), "{:?}", line.now);
        let phases = |end: &End| -> Vec<_> {
            end.actions
                .iter()
                .filter_map(|action| match action {
                    Action::Phase(phase) => Some(*phase),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(phases(concentrator), [Phase::Auth, Phase::Network, Phase::Open]);
        line.run(line.now + Duration::from_millis(100), |_| false);
        assert!(line.ends.iter().all(|end| end.session.round_trip().is_some()));
        // An hour of silence but for echoes.
        assert!(!line.run(Duration::from_secs(3_600), |line| !line.is_up()));
    }
}

/// Attack 18's counterpart on an honest but bad line: it comes up, or both ends say why not, within a bound.
#[test]
fn a_bad_line_comes_up_or_gives_a_reason() {
    let trouble = Trouble { loss: 30, doubled: 20, late: 20 };
    let (mut up, mut reasons) = (0, 0);
    for seed in 0..600 {
        let methods = &ALL[(seed % 3) as usize..];
        let mut line = line(&ALL, methods, trouble, seed);
        line.start();
        // LCP 60 s, authentication 30 s, network 30 s, termination 6 s; and anew as often as requests come late.
        let limit = Duration::from_secs(600);
        let done = line.run(limit, |line| line.is_up() || line.is_over());
        assert!(
            done || line.ends.iter().all(|end| end.phase() == Phase::Open || end.closed().is_some()),
            "seed {seed}: {:?} {:?}",
            line.ends.each_ref().map(|end| end.phase()),
            line.ends.each_ref().map(|end| end.closed().cloned())
        );
        if line.is_up() {
            up += 1;
        } else {
            reasons += 1;
        }
    }
    assert!(up > 540, "{up} up, {reasons} not");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trouble = Trouble { loss: 30, doubled: 30, late: 30 };
    for seed in 0..20 {
        let run = || {
            let mut line = line(&ALL, &ALL, trouble, seed);
            line.start();
            line.run(Duration::from_secs(120), |_| false);
            (line.trace, line.ends.map(|end| end.actions))
        };
        assert_eq!(run(), run());
    }
}

#[test]
fn closing_is_heard_at_the_other_end() {
    for closer in 0..2 {
        let mut line = line(&ALL, &ALL, Trouble::default(), 3);
        line.start();
        assert!(line.run(Duration::from_secs(1), Line::is_up));
        line.ends[closer].close();
        line.collect();
        assert_eq!(line.ends[closer].phase(), Phase::Closed);
        assert!(line.run(Duration::from_secs(10), Line::is_over));
        assert_eq!(line.ends[closer].closed(), Some(&Closed::Asked));
        let other = line.ends[1 - closer].closed();
        assert_eq!(other, Some(&Closed::PeerEnded { message: Vec::new(), phase: Phase::Open }));
        for end in &line.ends {
            let downs = end.actions.iter().filter(|action| matches!(action, Action::Down(_))).count();
            assert_eq!(downs, 2);
            assert!(matches!(end.actions.last(), Some(Action::Closed(_))), "nothing follows");
            assert_eq!(end.session.deadline(), None);
        }
    }
}

#[test]
fn a_cut_line_is_noticed_and_a_dead_one_from_the_start() {
    let mut line = line(&ALL, &ALL, Trouble::default(), 4);
    line.start();
    assert!(line.run(Duration::from_secs(1), Line::is_up));
    line.trouble.loss = 100;
    let cut = line.now;
    assert!(line.run(Duration::from_secs(100), Line::is_over));
    assert!(line.now - cut < Duration::from_secs(37), "{:?}", line.now - cut);
    assert_eq!(line.ends[0].closed(), Some(&Closed::PeerSilent { echoes: 3 }));

    let mut line = self::line(&ALL, &ALL, Trouble { loss: 100, ..Trouble::default() }, 5);
    line.start();
    assert!(line.run(Duration::from_secs(31), Line::is_over));
    assert_eq!(line.ends[0].closed(), Some(&Closed::NoAnswer { requests: 10, heard: false }));
    assert_eq!(line.trace.len(), 20);
}

#[test]
fn wrong_passwords_are_told_as_such() {
    for method in ALL {
        let mut config = host(&ALL);
        config.secret = b"wrong".to_vec();
        let concentrator = of_concentrator(concentrator(&[method]));
        let mut line = Line::new(of_host(config), concentrator, Trouble::default(), 6);
        line.start();
        assert!(line.run(Duration::from_secs(20), Line::is_over));
        let Some(closed @ Closed::AuthenticationFailed { message, .. }) = line.ends[0].closed() else {
            panic!("{:?}", line.ends[0].closed());
        };
        assert_eq!(message, b"who are you");
        let words = "(it says \"who are you\"); if these words do not say why, check user name and password";
        assert!(closed.to_string().contains(words), "{closed}");
        assert_eq!(line.ends[1].closed(), Some(&Closed::SubscriberRefused { user: b"user@isp".to_vec() }));
    }
}

#[test]
fn a_line_that_returns_to_itself_is_told_as_looped() {
    for config in [
        of_host(host(&ALL)),
        of_concentrator(concentrator(&[Method::Pap])),
        of_concentrator(concentrator(&[])),
    ] {
        let mut end = End::new(config, 7);
        end.start();
        for _ in 0..1_000 {
            for packet in end.sent() {
                end.receive(&packet);
            }
        }
        end.pass(Duration::from_secs(100));
        let closed = end.closed().expect("over");
        assert!(matches!(closed, Closed::Looped | Closed::MethodRefused), "{closed}");
    }
}

#[test]
fn a_host_asks_for_its_own_address_and_takes_the_given_one() {
    let mut config = host(&ALL);
    config.ipv4 = Some(Ipv4Addr::new(203, 0, 113, 9));
    config.ipv6 = None;
    let mut line = Line::new(of_host(config), of_concentrator(concentrator(&ALL)), Trouble::default(), 8);
    line.start();
    let done = |line: &Line| line.ends.iter().all(|end| end.session.ipv4().is_some());
    assert!(line.run(Duration::from_secs(1), done));
    assert_eq!(line.ends[0].session.ipv4().map(|ipv4| ipv4.local), Some(line::SUBSCRIBER));
    assert!(!line.run(Duration::from_secs(60), |line| line.ends[1].phase() != Phase::Open));
    assert_eq!(line.ends[1].session.ipv6(), None, "rejected, and the session lives");
}
