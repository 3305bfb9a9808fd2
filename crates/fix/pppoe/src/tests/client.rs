//! The whole client against concentrators, each run from a seed.

use super::segment::{Ac, Frame, HOST, Policy, Segment, Trouble, ac};
use crate::client::{Action, End, Phase};
use crate::discovery::complaint::Kind;
use crate::discovery::host::Failure;
use crate::discovery::message::padt;
use crate::discovery::offer::Pin;
use crate::framing::wrapped;
use crate::session::{Closed, Role};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use wire::ethernet::MacAddress;
use wire::pppoe::{Code, Stage};

const MINUTE: Duration = Duration::from_secs(60);

fn usual(number: u8) -> Ac {
    Ac::new(number, |_| {})
}

/// With the session open, at one concentrator.
fn open(seed: u64) -> Segment {
    let mut segment = Segment::new(seed, vec![usual(1)], |_| {});
    segment.start();
    assert!(segment.run(MINUTE, Segment::is_open), "{:?}", segment.done);
    segment
}

/// Not started, at one concentrator that knows another password.
fn with_a_wrong_password(seed: u64) -> Segment {
    Segment::new(seed, vec![usual(1)], |config| {
        let mut session = (*config.session).clone();
        let Role::Host(host) = &mut session.role else { unreachable!("a client is a host") };
        host.secret = b"wrong".to_vec();
        config.session = Arc::new(session);
    })
}

#[test]
fn a_session_opens_in_a_moment_and_closes_in_order() {
    let mut segment = open(1);
    assert!(segment.now < Duration::from_millis(1_600), "{:?}", segment.now);
    let phases: Vec<_> = segment
        .done
        .iter()
        .filter_map(|action| match action {
            Action::Phase(phase) => Some(phase.name()),
            _ => None,
        })
        .collect();
    assert_eq!(phases, ["discovery", "lcp", "auth", "network", "open"]);
    let opened = segment.opened();
    assert_eq!((opened.session, opened.concentrator, &opened.ac_name[..]), (101, ac(1), &b"ac1"[..]));
    assert_eq!((opened.mtu, opened.mru), (1492, 1492));
    assert_eq!(opened.ipv4.map(|ipv4| ipv4.local.to_string()).as_deref(), Some("198.51.100.7"));
    let is_first = |action: &&Action| matches!(action, Action::Opened(_));
    assert_eq!(segment.done.iter().filter(is_first).count(), 1);
    segment.run(10 * MINUTE, |_| false);
    let status = segment.client.status(segment.now);
    assert_eq!((status.phase, status.attempts, status.sessions, status.failures), (Phase::Open, 1, 1, 0));
    assert!(status.uptime >= Some(9 * MINUTE) && status.last_error.is_none());
    assert_eq!(status.round_trip.map(|trip| trip.time), Some(Duration::from_millis(4)));
    segment.close();
    assert!(segment.run(MINUTE, Segment::has_ended));
    assert_eq!(segment.ends(), [&End::Session(Closed::Asked)]);
    segment.run(Duration::from_secs(1), |_| false);
    assert_eq!(segment.held(), 0);
    let last = &segment.sent.last().expect("packets").1;
    assert_eq!(
        (last.stage, last.destination, &last.payload[..4]),
        (Stage::Discovery, ac(1), &[0x11, 0xa7, 0, 101][..])
    );
    assert_eq!((segment.client.deadline(), segment.client.status(segment.now).phase), (None, Phase::Closed));
}

#[test]
fn closed_twice_it_ends_at_once_with_a_padt() {
    let mut segment = open(2);
    segment.close();
    assert!(!segment.has_ended());
    segment.close();
    assert!(segment.has_ended());
    segment.run(Duration::from_secs(1), |_| false);
    assert_eq!(segment.held(), 0);
    let mut segment = Segment::new(2, vec![], |_| {});
    segment.start();
    segment.close();
    assert!(segment.has_ended(), "there was no session yet");
    assert_eq!(segment.sent.len(), 1, "a PADI");
}

/// 30 % loss, a fifth doubled, a fifth late: it opens, or says why not and tries again; and no session stays behind.
#[test]
fn a_bad_segment_comes_up_and_leaks_nothing() {
    let mut slowest = Duration::ZERO;
    for seed in 0..200 {
        let mut segment = Segment::new(seed, vec![usual(1)], |_| {});
        segment.trouble = Trouble { loss: 30, doubled: 20, late: 20 };
        segment.start();
        let begin = segment.now;
        let opened = |segment: &Segment| segment.client.status(segment.now).phase == Phase::Open;
        assert!(segment.run(10 * MINUTE, opened), "seed {seed}: {:?}", segment.done);
        slowest = slowest.max(segment.now - begin);
        segment.run(5 * MINUTE, |_| false);
        segment.close();
        assert!(segment.run(MINUTE, Segment::has_ended), "seed {seed}");
        // What was lost of the end, the echoes of the concentrator find out.
        segment.run(5 * MINUTE, |segment| segment.held() == 0);
        assert_eq!(segment.held(), 0, "seed {seed}");
    }
    assert!(slowest < 5 * MINUTE, "{slowest:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let mut segment = Segment::new(seed, vec![usual(1), usual(2)], |_| {});
        segment.trouble = Trouble { loss: 30, doubled: 20, late: 20 };
        segment.start();
        segment.run(10 * MINUTE, |_| false);
        segment.sent
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn of_two_concentrators_one_is_taken_and_told() {
    let mut segment = Segment::new(5, vec![usual(1), usual(2)], |_| {});
    segment.start();
    assert!(segment.run(MINUTE, Segment::is_open));
    let remarks = segment.remarks();
    assert!(
        remarks[0].starts_with(
            "2 concentrators answered. \"ac1\" (02:00:00:00:01:01) was taken; the others: \"ac2\""
        ),
        "{remarks:?}"
    );
    assert_eq!(segment.held(), 1);
    let mut segment = Segment::new(5, vec![usual(1), usual(2)], |config| {
        config.discovery.pin = Some(Pin::Mac(ac(2)));
    });
    segment.start();
    assert!(segment.run(MINUTE, Segment::is_open));
    assert_eq!((segment.opened().concentrator, segment.remarks().len()), (ac(2), 0));
}

#[test]
fn a_concentrator_that_changes_its_address_is_found_again() {
    let mut segment = open(6);
    segment.run(MINUTE, |_| false);
    segment.acs = vec![usual(9)];
    assert!(segment.run(5 * MINUTE, |segment| !segment.is_open()), "it is noticed");
    assert!(segment.run(MINUTE, Segment::is_open), "{:?}", segment.done);
    assert_eq!(segment.opened().concentrator, ac(9));
    let status = segment.client.status(segment.now);
    let (_, end) = status.last_error.expect("an error");
    assert!(matches!(end, End::Session(Closed::PeerSilent { .. })), "{end}");
    assert!(matches!(
        segment.done.iter().find(|action| matches!(action, Action::Closed { .. })),
        Some(Action::Closed { was_open: true, .. })
    ));
}

#[test]
fn hours_that_pass_at_once_end_nothing_for_good() {
    for seed in 0..20 {
        let mut segment = open(seed);
        for _ in 0..5 {
            segment.now += Duration::from_secs(3_600);
            assert!(segment.run(2 * MINUTE, Segment::is_open), "{:?}", segment.done);
            segment.run(MINUTE, |_| false);
        }
        segment.run(5 * MINUTE, |segment| segment.held() == 1);
        assert_eq!(segment.held(), 1, "seed {seed}");
    }
}

#[test]
fn a_session_of_number_zero_is_none() {
    let mut segment = Segment::new(7, vec![usual(1)], |_| {});
    segment.acs[0].policy = Policy::Nothing;
    segment.start();
    assert!(segment.run(MINUTE, |segment| !segment.ends().is_empty()));
    assert!(matches!(segment.ends()[0], End::NotFound(Failure::NoSession { session: 0, .. })));
    segment.acs[0].policy = Policy::Confirm;
    assert!(segment.run(MINUTE, Segment::is_open));
}

#[test]
fn what_the_concentrator_says_stays_in_the_status() {
    let mut segment = Segment::new(8, vec![usual(1)], |_| {});
    segment.acs[0].policy = Policy::Refuse(Kind::AcSystem, "no free ports\u{7}");
    segment.start();
    segment.run(MINUTE, |_| false);
    let status = segment.client.status(segment.now);
    let (_, end) = status.last_error.clone().expect("an error");
    let said = end.to_string();
    assert!(
        said.contains(
            "\"ac1\" (02:00:00:00:01:01) refused the session: AC-System-Error \"no free ports\\u{7}\""
        ),
        "{said}"
    );
    assert!(status.failures >= 4 && status.attempts >= status.failures, "{status:?}");
}

#[test]
fn waiting_doubles_between_half_and_all_of_it() {
    let waits = |seed| {
        let mut segment = Segment::new(seed, vec![usual(1)], |_| {});
        segment.acs[0].policy = Policy::Nothing;
        segment.start();
        segment.run(10 * MINUTE, |_| false);
        segment.waits()
    };
    let one = waits(9);
    for (wait, most) in one.iter().zip([1, 2, 4, 8, 16, 32, 60, 60, 60]) {
        let most = Duration::from_secs(most);
        assert!(*wait <= most && *wait >= most / 2, "{one:?}");
    }
    assert!(one.len() > 8);
    assert_ne!(one, waits(10), "not all of a street at once");
}

#[test]
fn a_session_that_has_stood_counts_as_success() {
    let mut segment = open(11);
    for _ in 0..5 {
        segment.run(MINUTE, |_| false);
        let number = segment.opened().session;
        let payload = padt(number, Some("daily"));
        segment.acs[0].sessions.clear();
        segment.come(&Frame { stage: Stage::Discovery, source: ac(1), destination: HOST, payload });
        assert!(!segment.is_open() && segment.waits().last() <= Some(&Duration::from_secs(1)));
        assert!(segment.run(MINUTE, Segment::is_open));
    }
    let said = segment.ends()[0].to_string();
    // Its own words are not followed by guesses.
    assert_eq!(said, "the concentrator ended the session by a PADT and says Generic-Error \"daily\"");
    // Each time it goes after a moment, the waits grow.
    for _ in 0..4 {
        let payload = padt(segment.opened().session, None);
        segment.acs[0].sessions.clear();
        segment.come(&Frame { stage: Stage::Discovery, source: ac(1), destination: HOST, payload });
        assert!(segment.run(MINUTE, Segment::is_open));
    }
    assert!(segment.waits().last() >= Some(&Duration::from_secs(4)), "{:?}", segment.waits());
}

#[test]
fn after_a_padt_no_ppp_goes_out_and_none_answers_it() {
    let mut segment = open(12);
    let sent = segment.sent.len();
    let payload = padt(segment.opened().session, None);
    segment.come(&Frame { stage: Stage::Discovery, source: ac(1), destination: HOST, payload });
    segment.run(Duration::from_millis(400), |_| false);
    assert_eq!(segment.sent.len(), sent);
}

/// A PADT that comes before the Terminate-Ack hides neither why this end was terminating the session nor what the peer said.
#[test]
fn a_padt_stands_in_for_the_terminate_ack() {
    let end_by_padt = |segment: &mut Segment| {
        let number = *segment.acs[0].sessions.keys().next().expect("a session");
        let payload = padt(number, Some("Child pppd process terminated"));
        segment.acs[0].sessions.clear();
        let sent = segment.sent.len();
        segment.come(&Frame { stage: Stage::Discovery, source: ac(1), destination: HOST, payload });
        assert_eq!(segment.sent.len(), sent, "nothing answers a PADT");
        segment.ends().last().map(|end| (*end).clone()).expect("an end")
    };
    // A wrong password.
    let mut segment = with_a_wrong_password(15);
    segment.start();
    let is_refused = |segment: &Segment| segment.client.status(segment.now).phase == Phase::Closed;
    assert!(segment.run(MINUTE, is_refused) && segment.ends().is_empty(), "{:?}", segment.done);
    let end = end_by_padt(&mut segment);
    assert!(matches!(end, End::Session(Closed::AuthenticationFailed { .. })) && end.is_lasting(), "{end}");
    // Closed by its user.
    let mut segment = open(16);
    segment.close();
    assert_eq!(end_by_padt(&mut segment), End::Session(Closed::Asked));
    assert!(segment.has_ended());
    // Terminate-Requests with words and without.
    for (request, expected) in [
        (&b"\xc0\x21\x05\x09\x00\x08dues"[..], "the peer ended the session (it says \"dues\")"),
        (b"\xc0\x21\x05\x09\x00\x04", "the concentrator ended the session by a PADT and says"),
    ] {
        let mut segment = open(17);
        let payload = wrapped(segment.opened().session, request);
        segment.come(&Frame { stage: Stage::Session, source: ac(1), destination: HOST, payload });
        assert!(segment.ends().is_empty());
        let said = end_by_padt(&mut segment).to_string();
        assert!(said.starts_with(expected), "{said}");
    }
}

/// Attack 10: PADT from elsewhere, to elsewhere, or of another session end nothing.
#[test]
fn a_spoofed_padt_ends_nothing() {
    let mut segment = open(13);
    let number = segment.opened().session;
    for (source, destination, session) in [
        (ac(2), HOST, number),
        (ac(1), HOST, number + 1),
        (ac(1), HOST, 0),
        (ac(1), MacAddress::BROADCAST, number),
        (ac(1), ac(2), number),
    ] {
        let payload = padt(session, None);
        segment.come(&Frame { stage: Stage::Discovery, source, destination, payload });
        assert!(segment.is_open());
    }
}

/// Attack 16: packets of the session from another station, for another one, or of another session change nothing.
#[test]
fn a_session_is_that_of_its_concentrator() {
    let mut segment = open(14);
    let number = segment.opened().session;
    // A Terminate-Request.
    let end = b"\xc0\x21\x05\x09\x00\x04";
    for (source, destination, session) in [
        (ac(2), HOST, number),
        (ac(1), ac(2), number),
        (ac(1), MacAddress::BROADCAST, number),
        (ac(1), HOST, number + 1),
    ] {
        let payload = wrapped(session, end);
        segment.come(&Frame { stage: Stage::Session, source, destination, payload });
        assert!(segment.is_open());
    }
    let mut payload = wrapped(number, end);
    payload[5] = 7;
    segment.come(&Frame { stage: Stage::Session, source: ac(1), destination: HOST, payload });
    let (_, ignored) = segment.client.ignored();
    assert!(segment.is_open() && (ignored.foreign, ignored.malformed) == (4, 1));
    let payload = wrapped(number, end);
    segment.come(&Frame { stage: Stage::Session, source: ac(1), destination: HOST, payload });
    assert!(!segment.is_open());
}

#[test]
fn a_wrong_password_is_not_tried_in_a_hurry() {
    let mut segment = with_a_wrong_password(15);
    segment.start();
    segment.run(30 * MINUTE, |_| false);
    let waits = segment.waits();
    assert!(waits.iter().all(|wait| *wait >= Duration::from_secs(30)), "{waits:?}");
    assert!(waits.len() < 62 && segment.held() == 0, "{}", waits.len());
    let said = segment.ends()[0].to_string();
    assert!(said.contains("unknown user") && said.contains("check user name and password"), "{said}");
}

#[test]
fn a_line_that_is_unplugged_comes_back() {
    let mut segment = open(16);
    let number = segment.opened().session;
    // For a moment.
    let good = segment.trouble;
    segment.trouble.loss = 100;
    segment.line(false);
    segment.run(Duration::from_secs(10), |_| false);
    segment.line(true);
    segment.trouble = good;
    segment.run(5 * MINUTE, |_| false);
    assert!(segment.is_open() && segment.opened().session == number, "the same session");
    // For long.
    segment.trouble.loss = 100;
    segment.line(false);
    segment.run(30 * MINUTE, |_| false);
    let status = segment.client.status(segment.now);
    assert_eq!((status.phase, status.has_line, status.waits), (Phase::Closed, false, None));
    assert_eq!(segment.client.deadline(), None, "nothing is sent into the void");
    segment.trouble = good;
    segment.line(true);
    assert!(segment.run(Duration::from_secs(5), Segment::is_open), "at once");
    let down = "The line below went down";
    assert!(segment.remarks().iter().any(|remark| remark.starts_with(down)), "{:?}", segment.remarks());
    // While a concentrator is looked for.
    let mut segment = Segment::new(16, vec![], |_| {});
    segment.start();
    segment.line(false);
    assert_eq!(segment.client.deadline(), None);
    segment.acs.push(usual(1));
    segment.line(true);
    assert!(segment.run(Duration::from_secs(5), Segment::is_open));
}

#[test]
fn another_address_of_the_interface_begins_anew() {
    let mut segment = open(17);
    let other = MacAddress([2, 0, 0, 0, 0, 9]);
    segment.own = other;
    segment.call(|client, now, random, actions| client.set_own(now, other, random, actions));
    assert!(matches!(segment.ends()[..], [End::AddressChanged]));
    assert!(segment.run(MINUTE, Segment::is_open));
}

#[test]
fn it_gives_up_where_it_is_told_to() {
    let mut segment = Segment::new(18, vec![], |config| config.reconnect.most = Some(2));
    segment.start();
    assert!(segment.run(10 * MINUTE, Segment::has_ended));
    assert_eq!(segment.ends().len(), 2);
    assert!(segment.ends()[0].to_string().starts_with("nobody answered 6 PADI in 47 s"));
    assert_eq!(segment.client.deadline(), None);
    segment.acs.push(usual(1));
    segment.start();
    assert!(segment.run(MINUTE, Segment::is_open), "and can be started again");
}

#[test]
fn a_payload_that_is_not_agreed_to_is_explained() {
    for (own, mtu) in [(1508, 1500), (1492, 1492), (1496, 1496)] {
        let acs = vec![Ac::new(1, |config| config.max_payload = own)];
        let mut segment = Segment::new(19, acs, |config| config.discovery.max_payload = 1500);
        segment.start();
        assert!(segment.run(MINUTE, Segment::is_open));
        assert_eq!((segment.opened().mtu, segment.opened().mru), (mtu, mtu));
        let remarks = segment.remarks();
        assert_eq!(
            remarks.iter().any(|remark| remark.contains("PPP-Max-Payload 1500")),
            mtu < 1500,
            "{remarks:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes from whomever, it does not panic, and goes on.
    #[test]
    fn no_frames_stop_it(frames in proptest::collection::vec((any::<bool>(), 0_u8..3, any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..60)) {
        let mut segment = open(20);
        for (is_discovery, from, is_framed, octets) in frames {
            let stage = if is_discovery { Stage::Discovery } else { Stage::Session };
            let number = segment.client.status(segment.now).session.map_or(1, |opened| opened.session);
            let payload = match (is_framed, is_discovery) {
                (false, _) => octets,
                (true, false) => wrapped(number, &[&[0xc0, 0x21], &octets[..]].concat()),
                (true, true) => [&[0x11, Code::PADS.0, 0, 7, 0, octets.len() as u8], &octets[..]].concat(),
            };
            segment.come(&Frame { stage, source: ac(from), destination: HOST, payload });
        }
        prop_assert!(segment.run(30 * MINUTE, Segment::is_open));
    }
}
