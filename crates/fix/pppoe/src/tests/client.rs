//! The whole client: discovery, session, and again when it ends.

use super::world::{ALL, Host, OWN, Sent, Wires, World, config, place, seconds, secrets};
use crate::client::{Action, Client, Config, End, Phase};
use crate::concentrator::Config as Concentrator;
use crate::discovery::message::{Builder, Message, padt};
use crate::discovery::offer::Pin;
use crate::framing::wrapped;
use crate::session::Closed;
use proptest::prelude::*;
use std::time::Duration;
use wire::ethernet::MacAddress;
use wire::pppoe::{Code, Stage, TagType};

const MINUTE: Duration = seconds(60);
const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 1, 2]);
const BAD: Wires = Wires { loss: 300, duplication: 200, reordering: 200 };

/// A client that never gives up, not started, at a concentrator.
fn world(seed: u64, password: &str, change: impl FnOnce(&mut Config)) -> World {
    with(config(), seed, password, change)
}

fn with(config: Concentrator, seed: u64, password: &str, change: impl FnOnce(&mut Config)) -> World {
    let mut world = World::new(config, secrets("alice * wonder *\n"), seed);
    let mut host = Host::new(seed as u32, place(1, 1), "alice", password, &ALL);
    host = host.configured(|config| {
        config.reconnect.most = None;
        change(config);
    });
    world.add(host);
    world
}

/// The same, which has just started.
fn connecting(seed: u64, password: &str, change: impl FnOnce(&mut Config)) -> World {
    let mut world = world(seed, password, change);
    world.connect(0);
    world
}

fn open(seed: u64) -> World {
    let mut world = connecting(seed, "wonder", |_| {});
    assert!(world.run_until(MINUTE, is_open), "{:?}", world.hosts[0].done);
    world
}

/// One whose every request is refused, since there is room for no session.
fn refusing(seed: u64) -> World {
    let mut config = config();
    config.caps.sessions = 0;
    let mut world = with(config, seed, "wonder", |_| {});
    world.connect(0);
    world
}

fn is_open(world: &World) -> bool {
    world.hosts[0].ipv4().is_some() && world.hosts[0].ipv6().is_some()
}

fn has_ended(world: &World) -> bool {
    world.hosts[0].done.last() == Some(&Action::Ended)
}

fn line(world: &mut World, is_up: bool) {
    world.of(0, |client, now, random, actions| client.line(now, is_up, random, actions));
}

/// A PADT of the concentrator to the client.
fn come_padt(world: &mut World, number: u16, text: Option<&str>) {
    let destination = world.hosts[0].mac;
    world.come(0, OWN, &Sent { destination, ..Sent::discovery(padt(number, text)) });
}

#[test]
fn a_session_opens_in_a_moment_and_closes_in_order() {
    let mut world = open(1);
    assert!(world.now < seconds(1000) + Duration::from_millis(400), "{:?}", world.now);
    let phase = |action: &Action| match action {
        Action::Phase(phase) => Some(phase.name()),
        _ => None,
    };
    let phases: Vec<_> = world.hosts[0].done.iter().filter_map(phase).collect();
    assert_eq!(phases, ["discovery", "lcp", "auth", "network", "open"]);
    let opened = world.hosts[0].opened().unwrap();
    assert_eq!((opened.concentrator, &opened.ac_name[..]), (OWN, &b"ac-1"[..]));
    assert_eq!((opened.mtu, opened.mru), (1492, 1492));
    assert_eq!(opened.ipv4.map(|ipv4| ipv4.local.to_string()).as_deref(), Some("10.0.0.2"));
    let is_first = |action: &&Action| matches!(action, Action::Opened(_));
    assert_eq!(world.hosts[0].done.iter().filter(is_first).count(), 1);
    world.run(10 * MINUTE);
    let status = world.hosts[0].client.status(world.now);
    assert_eq!((status.phase, status.attempts, status.sessions, status.failures), (Phase::Open, 1, 1, 0));
    assert!(status.uptime >= Some(9 * MINUTE) && status.last_error.is_none());
    assert_eq!(status.round_trip.map(|trip| trip.time), Some(Duration::from_millis(2)));
    world.close(0);
    assert!(world.run_until(MINUTE, has_ended));
    assert_eq!(world.hosts[0].ends(), [End::Session(Closed::Requested)]);
    world.run(seconds(4));
    assert!(world.concentrator.is_empty());
    let (_, last) = world.hosts[0].sent.last().unwrap();
    let [high, low] = opened.session.to_be_bytes();
    assert_eq!((last.destination, &last.payload[..4]), (OWN, &[0x11, 0xa7, high, low][..]));
    assert_eq!(world.hosts[0].client.deadline(), None);
    assert_eq!(world.hosts[0].client.status(world.now).phase, Phase::Closed);
}

#[test]
fn closed_twice_it_ends_at_once_with_a_padt() {
    let mut world = open(2);
    world.close(0);
    assert!(!has_ended(&world));
    world.close(0);
    assert!(has_ended(&world));
    world.run(seconds(1));
    assert!(world.concentrator.is_empty());
    let mut world = connecting(2, "wonder", |_| {});
    world.close(0);
    assert!(has_ended(&world), "there was no session yet");
    assert_eq!(world.hosts[0].sent.len(), 1, "a PADI");
}

/// It opens, or says why not and tries again; and no session stays behind. The same seed is the same run.
#[test]
fn a_bad_segment_comes_up_and_leaks_nothing() {
    let mut slowest = Duration::ZERO;
    let run = |seed| {
        let mut world = world(seed, "wonder", |_| {});
        world.wires = BAD;
        world.connect(0);
        let is_open = |world: &World| world.hosts[0].is_up();
        assert!(world.run_until(10 * MINUTE, is_open), "seed {seed}: {:?}", world.hosts[0].done);
        let opened = world.now - seconds(1000);
        world.run(5 * MINUTE);
        world.close(0);
        assert!(world.run_until(MINUTE, has_ended), "seed {seed}");
        // What was lost of the end, the echoes of the concentrator find out.
        let is_empty = |world: &World| world.concentrator.is_empty();
        assert!(world.run_until(5 * MINUTE, is_empty), "seed {seed}");
        (opened, std::mem::take(&mut world.hosts[0].sent))
    };
    for seed in 0..100 {
        slowest = slowest.max(run(seed).0);
    }
    assert!(slowest < 5 * MINUTE, "{slowest:?}");
    assert_eq!(run(3), run(3));
    assert_ne!(run(3).1, run(4).1);
}

#[test]
fn of_two_concentrators_one_is_taken_and_reported() {
    for pin in [None, Some(Pin::Mac(OWN))] {
        let mut world = connecting(5, "wonder", |config| config.discovery.pin.clone_from(&pin));
        let padi = world.hosts[0].sent[0].1.payload.clone();
        let padi = Message::parse(&padi).unwrap();
        let offer = Builder::new(Code::PADO, 0).tag(TagType::AC_NAME, b"rival");
        let payload = offer.tag_if(TagType::HOST_UNIQ, padi.host_uniq()).finish().unwrap();
        let destination = world.hosts[0].mac;
        world.run(Duration::from_millis(10));
        world.come(0, OTHER, &Sent { destination, stage: Stage::Discovery, payload });
        assert!(world.run_until(MINUTE, is_open));
        let notices = world.hosts[0].notices();
        let words = "2 concentrators answered. \"ac-1\" (02:00:00:00:00:ac) was taken; the others: \"rival\"";
        assert_eq!(notices.iter().any(|notice| notice.starts_with(words)), pin.is_none(), "{notices:?}");
    }
}

#[test]
fn hours_that_pass_at_once_end_nothing_for_good() {
    for seed in 0..20 {
        let mut world = open(seed);
        for _ in 0..5 {
            world.now += seconds(3_600);
            assert!(world.run_until(2 * MINUTE, is_open), "{:?}", world.hosts[0].done);
            world.run(MINUTE);
        }
        assert!(world.run_until(5 * MINUTE, |world| world.concentrator.len() == 1), "seed {seed}");
    }
}

#[test]
fn waiting_doubles_between_half_and_all_of_it() {
    // What the concentrator says stays in the status.
    let mut world = refusing(8);
    world.run(MINUTE);
    let status = world.hosts[0].client.status(world.now);
    let said = status.last_error.as_ref().expect("an error").1.to_string();
    let words =
        "\"ac-1\" (02:00:00:00:00:ac) refused the session: AC-System-Error \"the concentrator is full";
    assert!(said.contains(words), "{said}");
    assert!(status.failures >= 4 && status.attempts >= status.failures, "{status:?}");

    let waits = |seed| {
        let mut world = refusing(seed);
        world.run(10 * MINUTE);
        world.hosts[0].waits()
    };
    let one = waits(9);
    for (wait, most) in one.iter().zip([1, 2, 4, 8, 16, 32, 60, 60, 60].map(seconds)) {
        assert!(*wait <= most && *wait >= most / 2, "{one:?}");
    }
    assert!(one.len() > 8);
    assert_ne!(one, waits(10), "not all of a street at once");
}

#[test]
fn a_session_that_has_stood_counts_as_success() {
    let mut world = open(11);
    for _ in 0..5 {
        world.run(MINUTE);
        let number = world.hosts[0].number().unwrap();
        come_padt(&mut world, number, Some("daily"));
        assert!(!is_open(&world) && world.hosts[0].waits().last() <= Some(&seconds(1)));
        assert!(world.run_until(MINUTE, is_open));
    }
    let said = world.hosts[0].ends()[0].to_string();
    // Its own words are not followed by guesses.
    assert_eq!(said, "the concentrator ended the session by a PADT and says Generic-Error \"daily\"");
    // Each time it goes after a moment, the waits grow.
    for _ in 0..4 {
        let number = world.hosts[0].number().unwrap();
        come_padt(&mut world, number, None);
        assert!(world.run_until(MINUTE, is_open));
    }
    let waits = world.hosts[0].waits();
    assert!(waits.last() >= Some(&seconds(4)), "{waits:?}");
}

/// After a PADT no PPP goes out and none answers it; and one that comes before the Terminate-Ack hides neither why this end was
/// terminating the session nor what the peer said.
#[test]
fn a_padt_stands_in_for_the_terminate_ack() {
    let end_by_padt = |world: &mut World, number| {
        let sent = world.hosts[0].sent.len();
        come_padt(world, number, Some("Child pppd process terminated"));
        world.run(Duration::from_millis(400));
        assert_eq!(world.hosts[0].sent.len(), sent, "nothing answers a PADT");
        world.hosts[0].ends().pop().expect("an end")
    };
    // A wrong password.
    let mut world = connecting(15, "wrong", |_| {});
    let is_refused = |world: &World| world.hosts[0].done.contains(&Action::Phase(Phase::Closed));
    assert!(world.run_until(MINUTE, is_refused) && world.hosts[0].ends().is_empty());
    let number = world.hosts[0].number().unwrap();
    let end = end_by_padt(&mut world, number);
    assert!(matches!(end, End::Session(Closed::AuthenticationFailed { .. })) && end.is_lasting(), "{end}");
    // Closed by its user.
    let mut world = open(16);
    let number = world.hosts[0].number().unwrap();
    world.close(0);
    assert_eq!(end_by_padt(&mut world, number), End::Session(Closed::Requested));
    assert!(has_ended(&world));
    // Terminate-Requests with words and without.
    for (request, expected) in [
        (&b"\xc0\x21\x05\x09\x00\x08dues"[..], "the peer ended the session (it says \"dues\")"),
        (b"\xc0\x21\x05\x09\x00\x04", "the concentrator ended the session by a PADT and says"),
    ] {
        let mut world = open(17);
        let (number, destination) = (world.hosts[0].number().unwrap(), world.hosts[0].mac);
        world.come(0, OWN, &Sent { destination, ..Sent::session(number, request) });
        assert!(world.hosts[0].ends().is_empty());
        let said = end_by_padt(&mut world, number).to_string();
        assert!(said.starts_with(expected), "{said}");
    }
}

/// Attack 16: packets of the session from another station, for another one, or of another session change nothing.
#[test]
fn a_session_is_that_of_its_concentrator() {
    let mut world = open(14);
    let (own, number) = (world.hosts[0].mac, world.hosts[0].number().unwrap());
    // A Terminate-Request.
    let end = b"\xc0\x21\x05\x09\x00\x04";
    let mut come = |source, destination, payload| {
        world.come(0, source, &Sent { destination, stage: Stage::Session, payload });
        is_open(&world)
    };
    let mut longer = wrapped(number, end);
    longer[5] = 7;
    for (source, destination, payload) in [
        (OTHER, own, wrapped(number, end)),
        (OWN, OTHER, wrapped(number, end)),
        (OWN, MacAddress::BROADCAST, wrapped(number, end)),
        (OWN, own, wrapped(number ^ 1, end)),
        (OWN, own, longer),
    ] {
        assert!(come(source, destination, payload));
    }
    assert!(!come(OWN, own, wrapped(number, end)));
    let ignored = world.hosts[0].client.ignored().1;
    assert_eq!((ignored.foreign, ignored.malformed), (4, 1));
}

#[test]
fn a_wrong_password_is_not_tried_in_a_hurry() {
    let mut world = connecting(15, "wrong", |_| {});
    world.run(30 * MINUTE);
    let waits = world.hosts[0].waits();
    assert!(waits.iter().all(|wait| *wait >= seconds(30)), "{waits:?}");
    assert!(waits.len() < 62, "{}", waits.len());
    let said = world.hosts[0].ends()[0].to_string();
    assert!(said.contains("unknown user") && said.contains("check user name and password"), "{said}");
}

#[test]
fn a_line_that_is_unplugged_comes_back() {
    let mut world = open(16);
    let number = world.hosts[0].number();
    let dead = Wires { loss: 1000, ..Wires::default() };
    // For a moment.
    world.wires = dead;
    line(&mut world, false);
    world.run(seconds(10));
    line(&mut world, true);
    world.wires = Wires::default();
    world.run(5 * MINUTE);
    assert!(is_open(&world) && world.hosts[0].number() == number, "the same session");
    // For long.
    world.wires = dead;
    line(&mut world, false);
    world.run(30 * MINUTE);
    let status = world.hosts[0].client.status(world.now);
    assert_eq!((status.phase, status.has_line, status.waits), (Phase::Closed, false, None));
    assert_eq!(world.hosts[0].client.deadline(), None, "nothing is sent into the void");
    world.wires = Wires::default();
    line(&mut world, true);
    assert!(world.run_until(seconds(5), is_open), "at once");
    let notices = world.hosts[0].notices();
    assert!(notices.iter().any(|notice| notice.starts_with("The line below went down")), "{notices:?}");
    // While a concentrator is looked for.
    let mut world = connecting(16, "wonder", |_| {});
    line(&mut world, false);
    assert_eq!(world.hosts[0].client.deadline(), None);
    line(&mut world, true);
    assert!(world.run_until(seconds(5), is_open));
}

#[test]
fn it_gives_up_where_it_is_configured_to() {
    let mut world = world(18, "wonder", |config| config.reconnect.most = Some(2));
    world.wires.loss = 1000;
    world.connect(0);
    assert!(world.run_until(10 * MINUTE, has_ended));
    let ends = world.hosts[0].ends();
    assert!(ends.len() == 2 && ends[0].to_string().starts_with("nobody answered 6 PADI in 47 s"), "{ends:?}");
    assert_eq!(world.hosts[0].client.deadline(), None);
    world.wires.loss = 0;
    world.of(0, Client::start);
    assert!(world.run_until(MINUTE, is_open), "and can be started again");
}

#[test]
fn a_payload_that_is_not_agreed_to_is_explained() {
    for (own, mtu) in [(1508, 1500), (1492, 1492), (1496, 1496)] {
        let mut config = config();
        config.discovery.max_payload = own;
        let mut world = with(config, 19, "wonder", |config| config.discovery.max_payload = 1500);
        world.connect(0);
        assert!(world.run_until(MINUTE, is_open));
        let opened = world.hosts[0].opened().unwrap();
        assert_eq!((opened.mtu, opened.mru), (mtu, mtu));
        let notices = world.hosts[0].notices();
        let is_explained = notices.iter().any(|notice| notice.contains("PPP-Max-Payload 1500"));
        assert_eq!(is_explained, mtu < 1500, "{own}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes from whomever, it does not panic, and goes on.
    #[test]
    fn no_frames_stop_it(frames in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..60)) {
        let mut world = open(20);
        let destination = world.hosts[0].mac;
        for (is_discovery, is_own, is_framed, bytes) in frames {
            let stage = if is_discovery { Stage::Discovery } else { Stage::Session };
            let payload = match (is_framed, is_discovery) {
                (false, _) => bytes,
                (true, false) => wrapped(world.hosts[0].number().unwrap_or(1), &[&[0xc0, 0x21], &bytes[..]].concat()),
                (true, true) => [&[0x11, Code::PADS.0, 0, 7, 0, bytes.len() as u8], &bytes[..]].concat(),
            };
            world.come(0, if is_own { OWN } else { OTHER }, &Sent { destination, stage, payload });
        }
        prop_assert!(world.run_until(30 * MINUTE, is_open));
    }
}
