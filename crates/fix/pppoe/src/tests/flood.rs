//! Attacks on the concentrator as a whole; those on a single machine are with that machine.

use super::world::{Host, OWN, Sent, World, config, place, seconds, secrets};
use super::{line, mac};
use crate::concentrator::accounting::Ended;
use crate::concentrator::{Caps, Config, Filter, Refusal};
use crate::discovery::limits::{Rate, Rates};
use crate::discovery::message::{Message, padt};
use crate::discovery::place::Place;
use crate::framing::wrapped;
use crate::session::{Method, Phase};
use proptest::prelude::*;
use std::time::Duration;
use wire::ethernet::MacAddress;
use wire::pppoe::{Code, Stage, TagType};

const UNLIMITED: Rates = {
    let rate = Rate { per_second: 1_000_000, burst: 1_000_000 };
    Rates { host: rate, vlan: rate, port: rate }
};

/// A Configure-Request of LCP, with a magic number.
const LCP_REQUEST: &[u8] = &[0xc0, 0x21, 1, 77, 0, 10, 5, 6, 1, 2, 3, 4];

fn unlimited() -> Config {
    let mut config = config();
    config.discovery.offers = UNLIMITED;
    config.discovery.requests = UNLIMITED;
    config
}

/// With Alice's session up.
fn alice(method: Method) -> (World, usize) {
    let mut world = World::new(unlimited(), secrets("alice * wonder *\nbob * b *\n"), 1);
    let alice = world.join(Host::new(1, place(1, 1), "alice", "wonder", &[method]));
    world.run(seconds(2));
    assert!(world.hosts[alice].is_up());
    (world, alice)
}

/// A PADR for a fresh offer.
fn padr(world: &mut World, place: Place, source: MacAddress) -> Sent {
    Sent::discovery(world.padr(place, source).finish().unwrap())
}

fn number(answers: &[(Stage, Vec<u8>)]) -> u16 {
    let pads = answers.iter().find(|(stage, _)| *stage == Stage::Discovery).unwrap();
    let message = Message::parse(&pads.1).unwrap();
    assert_eq!(message.code(), Code::PADS);
    message.session()
}

/// What a flood does after its PADS.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Silent,
    /// It begins LCP, and agrees to nothing.
    Speaks,
    /// It goes on to a wrong password by PAP, and falls silent.
    Guesses,
}

/// A handshake of discovery. Gives whether it was confirmed.
fn handshake(world: &mut World, place: Place, source: u32, then: Then) -> bool {
    let padr = padr(world, place, mac(source));
    let answers = world.ask(place, mac(source), &padr);
    // One that gave way gets its PADT first.
    let own = answers.iter().find_map(|(stage, payload)| {
        let message = Message::parse(payload).ok().filter(|_| *stage == Stage::Discovery)?;
        (message.code() == Code::PADS)
            .then(|| (message.session(), message.first(TagType::AC_SYSTEM_ERROR).map(<[u8]>::len)))
    });
    let (session, refusal) = own.expect("an answer");
    assert_eq!(session == 0, refusal.is_some_and(|length| length > 0));
    let mut send = |packet: &[u8]| world.ask(place, mac(source), &Sent::session(session, packet));
    match then {
        _ if session == 0 => {}
        Then::Silent => {}
        Then::Speaks => drop(send(LCP_REQUEST)),
        Then::Guesses => {
            let of_session = answers.iter().find(|(stage, _)| *stage == Stage::Session);
            send(&agreed(&of_session.expect("a Configure-Request").1));
            send(LCP_REQUEST);
            let refused = send(b"\xc0\x23\x01\x01\x00\x11\x06nobody\x05guess");
            assert!(refused.iter().any(|(_, payload)| payload[6..9] == [0xc0, 0x23, 3]), "{refused:?}");
        }
    }
    session != 0
}

/// The Configure-Ack to the Configure-Request in a payload.
fn agreed(payload: &[u8]) -> Vec<u8> {
    let mut ack = payload[6..].to_vec();
    ack[2] = 2;
    ack
}

/// Attack 8: a flood of PADR with good cookies, whose hosts begin LCP. Half-open sessions have caps, of a station, of a VLAN and
/// in all; other VLANs and those who come later are served, and nothing stays of it.
#[test]
fn a_flood_of_padr_fills_only_its_share() {
    let mut config = unlimited();
    config.caps =
        Caps { sessions: 1000, half_open: 60, place: 1000, place_half_open: 40, station: 3, line: u32::MAX };
    let mut world = World::new(config, secrets("alice * wonder *\n"), 1);
    let flood = |world: &mut World, place: Place, sources: &mut dyn Iterator<Item = u32>| {
        sources.filter(|source| handshake(world, place, *source, Then::Speaks)).count()
    };
    assert_eq!(flood(&mut world, place(1, 1), &mut std::iter::repeat_n(1, 50)), 3, "one station");
    assert_eq!(flood(&mut world, place(1, 1), &mut (2..500)), 37, "one VLAN");
    let alice = world.join(Host::new(1, place(2, 2), "alice", "wonder", &[Method::Pap]));
    world.run(seconds(2));
    assert!(world.hosts[alice].is_up(), "another VLAN");
    assert_eq!(flood(&mut world, place(3, 3), &mut (500..900)), 20, "all VLANs");
    assert_eq!(world.concentrator.half_open(), 60);
    assert!(world.notices.iter().any(|notice| notice.contains("busy")), "{:?}", world.notices);
    world.run(seconds(100));
    assert_eq!((world.concentrator.len(), world.concentrator.half_open()), (1, 0));
    assert!(world.hosts[alice].is_up());
    world.check();
}

/// Attack 8 without an end: 10,000 handshakes a second of hosts that fall silent, in one VLAN and then in two, under the usual limits. A
/// subscriber in the same VLAN and one in another are in within three seconds, and those who were in stay.
#[test]
fn hosts_that_fall_silent_keep_nobody_out() {
    const STEP: Duration = Duration::from_millis(10);
    for flooded in [&[place(1, 1)][..], &[place(1, 1), place(3, 3)]] {
        let mut world = World::new(config(), secrets("alice * wonder *\nbob * b *\ncarol * c *\n"), 1);
        let carol = world.join(Host::new(3, place(1, 1), "carol", "c", &[Method::Pap]));
        world.run(seconds(2));
        let alice = world.add(Host::new(1, place(1, 1), "alice", "wonder", &[Method::Pap]));
        let bob = world.add(Host::new(2, place(2, 2), "bob", "b", &[Method::Pap]));
        for step in 0..400 {
            for number in 0..100 {
                let source = 100 + step * 100 + number;
                assert!(handshake(
                    &mut world,
                    flooded[number as usize % flooded.len()],
                    source,
                    Then::Silent
                ));
            }
            if step == 100 {
                world.connect(alice);
                world.connect(bob);
            }
            world.run(STEP);
        }
        assert!(world.hosts[alice].is_up() && world.hosts[bob].is_up() && world.hosts[carol].is_up());
        let counters = *world.concentrator.counters();
        assert!(counters.gave_way > 30_000 && counters.padr_refused == 0, "{counters:?}");
        assert_eq!(counters.confirmed, counters.ended + world.concentrator.len() as u64);
        world.check();
        world.run(seconds(100));
        assert_eq!(world.concentrator.len(), 3);
    }
}

/// Attack 8 by hosts that say more: 600 a second that begin LCP and agree to nothing, or 2,000 that have wrong passwords and answer no
/// Terminate-Request. A subscriber in the same VLAN is in within three seconds, and the one who was in stays.
#[test]
fn hosts_that_stall_keep_nobody_out() {
    const STEP: Duration = Duration::from_millis(10);
    for (then, each) in [(Then::Speaks, 6), (Then::Guesses, 20)] {
        let mut config = config();
        config.methods = vec![Method::Pap];
        let mut world = World::new(config, secrets("alice * wonder *\ncarol * c *\n"), 1);
        let here = place(1, 1);
        let carol = world.join(Host::new(3, here, "carol", "c", &[Method::Pap]));
        world.run(seconds(2));
        let alice = world.add(Host::new(1, here, "alice", "wonder", &[Method::Pap]));
        for step in 0..800 {
            for number in 0..each {
                handshake(&mut world, here, 100 + step * each + number, then);
            }
            if step == 400 {
                world.connect(alice);
            }
            world.run(STEP);
        }
        assert!(
            world.hosts[alice].is_up() && world.hosts[carol].is_up(),
            "{:?}",
            world.concentrator.counters()
        );
        world.check();
        world.run(seconds(100));
        assert_eq!(world.concentrator.len(), 2);
    }
}

/// One that gave way and comes late with its PADR is given a session: its number and cookie are as if it had had none.
#[test]
fn a_host_that_gave_way_may_ask_again() {
    let mut config = unlimited();
    config.caps.place_half_open = 2;
    let mut world = World::new(config, secrets("alice * wonder *\n"), 1);
    let at = place(1, 1);
    let first = padr(&mut world, at, mac(1));
    assert_ne!(number(&world.ask(at, mac(1), &first)), 0);
    assert!(handshake(&mut world, at, 2, Then::Speaks));
    assert!(handshake(&mut world, at, 3, Then::Silent), "the first gave way");
    assert_eq!(world.concentrator.counters().gave_way, 1);
    let answers = world.ask(at, mac(1), &first);
    assert!(answers.len() >= 2, "a PADT to the third, and a PADS");
    assert_eq!((world.concentrator.len(), world.concentrator.counters().gave_way), (2, 2));
    // Two who speak do not give way.
    world.ask(at, mac(1), &Sent::session(number(&answers[1..]), LCP_REQUEST));
    assert!(!handshake(&mut world, at, 4, Then::Silent));
    world.check();
}

/// Attack 9: a PADR sent again. While LCP is negotiated it gets the same PADS; later, and when its session is over, nothing. By
/// another station, or in another VLAN, it is nothing at any time.
#[test]
fn a_padr_opens_one_session() {
    let mut world = World::new(unlimited(), secrets("alice * wonder *\n"), 1);
    let padr = padr(&mut world, place(1, 1), mac(1));
    let first = number(&world.ask(place(1, 1), mac(1), &padr));
    for _ in 0..100 {
        let answers = world.ask(place(1, 1), mac(1), &padr);
        assert_eq!((number(&answers), answers.len()), (first, 1));
    }
    assert_eq!(world.ask(place(1, 1), mac(2), &padr).len(), 0);
    assert_eq!(world.ask(place(1, 2), mac(1), &padr).len(), 0);
    assert_eq!((world.concentrator.len(), world.concentrator.counters().padr_repeated), (1, 100));
    let end = Sent::discovery(padt(first, None));
    assert_eq!(world.ask(place(1, 1), mac(1), &end).len(), 0);
    assert_eq!(world.ask(place(1, 1), mac(1), &padr).len(), 0);
    assert_eq!((world.concentrator.len(), world.concentrator.counters().padr_used_up), (0, 1));
    world.run(seconds(200));
    assert_eq!(world.ask(place(1, 1), mac(1), &padr).len(), 0, "its cookie is too old");
    world.check();
}

/// Attack 10: PADT for sessions of others: from another MAC address, VLAN or port, with another number, to all.
#[test]
fn a_padt_of_somebody_else_ends_nothing() {
    let (mut world, alice) = alice(Method::ChapMd5);
    let (own, number) = (world.hosts[alice].mac, world.hosts[alice].number().unwrap());
    let sent = |number, destination| Sent { destination, ..Sent::discovery(padt(number, None)) };
    let port = Place { port: 4, ..place(1, 1) };
    for (place, source, padt) in [
        (place(1, 1), mac(1), sent(number, OWN)),
        (place(1, 2), own, sent(number, OWN)),
        (Place { port: 3, vlans: wire::Vlans::NONE }, own, sent(number, OWN)),
        (port, own, sent(number, OWN)),
        (place(1, 1), own, sent(number ^ 1, OWN)),
        (place(1, 1), own, sent(number, MacAddress::BROADCAST)),
        (place(1, 1), own, sent(number, mac(7))),
    ] {
        assert_eq!(world.ask(place, source, &padt).len(), 0);
        assert_eq!(world.concentrator.len(), 1, "{place:?} {source}");
    }
    for guess in 1..=0xfffe {
        if guess != number {
            world.ask(place(1, 1), mac(1), &sent(guess, OWN));
        }
    }
    assert!(world.hosts[alice].is_up() && world.ends.is_empty());
    assert_eq!(world.ask(place(1, 1), own, &sent(number, OWN)).len(), 0, "and its own gets no answer");
    assert_eq!(world.ends[0].cause, Ended::Host);
    world.check();
}

/// A PADT instead of the Terminate-Ack does not hide who ended the session.
#[test]
fn a_session_that_is_being_disconnected_is_the_operators_also_with_a_padt_of_its_host() {
    let (mut world, alice) = alice(Method::ChapMd5);
    let (own, number) = (world.hosts[alice].mac, world.hosts[alice].number().unwrap());
    let filter = Filter { user: Some(b"alice"), ..Filter::default() };
    assert_eq!(world.act(|concentrator, step| concentrator.disconnect(step, &filter)), 1);
    assert!(world.ends.is_empty());
    let end = Sent::discovery(padt(number, None));
    assert_eq!(world.ask(place(1, 1), own, &end).len(), 0);
    assert_eq!((world.ends.len(), &world.ends[0].cause), (1, &Ended::Operator));
    world.check();
}

/// Attack 16: frames of a session from another MAC address, VLAN or port. They neither reach the session nor keep it alive.
#[test]
fn frames_from_elsewhere_do_not_reach_a_session() {
    let (mut world, alice) = alice(Method::ChapMd5);
    let (own, number) = (world.hosts[alice].mac, world.hosts[alice].number().unwrap());
    let terminate = Sent::session(number, &[0xc0, 0x21, 5, 1, 0, 4]);
    assert_eq!(world.ask(place(1, 1), mac(1), &terminate).len(), 0);
    assert_eq!(world.ask(place(1, 1), own, &Sent { destination: mac(5), ..terminate.clone() }).len(), 0);
    assert_eq!(world.concentrator.counters().other_station, 1);
    // There is no such session elsewhere, and who sends such frames is informed at a rate of its own.
    let answers = (0..100).map(|_| world.ask(place(1, 2), own, &terminate).len()).sum::<usize>();
    assert!((1..=5).contains(&answers), "{answers}");
    assert_eq!(world.concentrator.counters().unknown_session, 100);
    world.hosts[alice].is_dead = true;
    let echo = Sent::session(number, &[0xc0, 0x21, 9, 1, 0, 8, 0, 0, 0, 0]);
    for _ in 0..60 {
        world.run(seconds(2));
        world.ask(place(1, 1), mac(1), &echo);
    }
    assert_eq!(world.concentrator.len(), 0, "the dead host is not kept alive by others");
    world.check();
}

/// Attack 20: authentication again and again, and as somebody else. What was given stays as it is, and no other session is
/// touched.
#[test]
fn repeated_authentication_changes_nothing() {
    let (mut world, alice) = alice(Method::Pap);
    let bob = world.join(Host::new(2, place(1, 2), "bob", "b", &[Method::Pap]));
    world.run(seconds(2));
    let before = (world.installed.clone(), world.concentrator.free_addresses());
    for identifier in 0..=255 {
        for claim in [&b"\x05alice\x06wonder"[..], b"\x05alice\x05wrong", b"\x03bob\x01b"] {
            world.ask_as(alice, &line::packet(line::PAP, 1, identifier, claim));
        }
    }
    world.run(seconds(60));
    assert_eq!((world.installed.clone(), world.concentrator.free_addresses()), before);
    assert!(world.hosts[alice].is_up() && world.hosts[bob].is_up() && world.ends.is_empty());
    assert_eq!(world.records.len(), 2);
    world.check();
}

/// Attack 19: LCP started anew in mid-session takes the session through authentication again: the same user gets what they
/// had, another one nothing.
#[test]
fn lcp_started_anew_keeps_the_lease() {
    let (mut world, alice) = alice(Method::Pap);
    let free = world.concentrator.free_addresses();
    world.ask_as(alice, LCP_REQUEST);
    assert!(world.installed.is_empty(), "nothing flows until this one is authenticated again");
    assert_eq!(world.concentrator.sessions(world.now).next().unwrap().phase, Phase::Lcp);
    assert_eq!((world.concentrator.half_open(), world.concentrator.free_addresses()), (1, free));
    world.run(seconds(100));
    assert_eq!(world.concentrator.len(), world.up());
    world.check();
}

/// Attack 20: a session that was opened as one user and goes through authentication again as another. It ends, and neither
/// user's other sessions or addresses are touched.
#[test]
fn a_session_cannot_change_its_user() {
    let (mut world, alice) = alice(Method::Pap);
    let bob = world.join(Host::new(2, place(1, 2), "bob", "b", &[Method::Pap]));
    world.run(seconds(2));
    let id = world.installed_of("alice").identity.id;
    world.hosts[alice].is_dead = true;
    // PAP has to be demanded, which it is by a Nak of what is demanded first.
    let mut answers = world.ask_as(alice, LCP_REQUEST);
    for _ in 0..3 {
        let mut packets = answers.drain(..).map(|(_, payload)| payload[6..].to_vec());
        let Some(mut request) = packets.find(|packet| packet[..3] == [0xc0, 0x21, 1]) else { break };
        drop(packets);
        let demand = request.windows(4).position(|option| option == [3, 5, 0xc2, 0x23]);
        if demand.is_some() {
            answers = world.ask_as(alice, &[0xc0, 0x21, 3, request[3], 0, 8, 3, 4, 0xc0, 0x23]);
        } else {
            request[2] = 2;
            answers = world.ask_as(alice, &request);
        }
    }
    assert_eq!(world.concentrator.session(world.now, id).unwrap().phase, Phase::Auth);
    let answers = world.ask_as(alice, &[0xc0, 0x23, 1, 9, 0, 10, 3, b'b', b'o', b'b', 1, b'b']);
    assert!(answers.iter().any(|(_, payload)| payload[6..9] == [0xc0, 0x23, 3]), "{answers:?}");
    world.run(seconds(20));
    assert!(world.hosts[bob].is_up());
    assert_eq!((world.ends.len(), &world.ends[0].cause), (1, &Ended::Refused(Refusal::OtherUser)));
    assert_eq!((world.concentrator.len(), world.concentrator.free_addresses()), (1, 3));
    world.check();
}

/// Attack 23: passwords guessed as fast as discovery allows. A handful is looked at; others on the line and the user elsewhere
/// get in, and so does the user at the host with the wrong passwords, in time.
#[test]
fn guessing_passwords_takes_time() {
    let mut world = World::new(unlimited(), secrets("alice * wonder *\nbob * b *\n"), 1);
    let thief = world.join(Host::new(1, place(1, 1), "alice", "guess", &[Method::Pap]).persisting());
    world.run(seconds(3600));
    let counters = *world.concentrator.counters();
    // A minute each, but for the first ones.
    assert!((60..75).contains(&counters.refused), "{counters:?}");
    assert!(counters.held_off > 200, "{counters:?}");
    let ends = world.hosts[thief].ends();
    let refused = ends.iter().filter(|end| end.to_string().contains("too many wrong passwords")).count();
    assert!(refused as u64 >= counters.held_off - 1, "{:?}", ends.last());
    let bob = world.join(Host::new(2, place(1, 1), "bob", "b", &[Method::Pap]));
    let alice = world.join(Host::new(3, place(1, 2), "alice", "wonder", &[Method::Pap]));
    let repents = world.add(Host::new(1, place(1, 3), "alice", "wonder", &[Method::Pap]));
    world.run(seconds(2));
    assert!(world.hosts[bob].is_up() && world.hosts[alice].is_up());
    world.connect(repents);
    world.run(seconds(2));
    assert!(world.hosts[repents].is_up(), "the same MAC address in another VLAN is another host");
    world.check();
}

/// Attack 23: many sessions are opened first, and passwords tried in them afterwards.
#[test]
fn guesses_in_sessions_that_are_open_already_are_held_off() {
    let mut config = unlimited();
    config.methods = vec![Method::Pap];
    config.caps.station = 50;
    let mut world = World::new(config, secrets("alice * wonder *\n"), 1);
    let (station, at) = (mac(1), place(1, 1));
    let numbers: Vec<u16> = (0..50)
        .map(|_| {
            let padr = padr(&mut world, at, station);
            let answers = world.ask(at, station, &padr);
            let number = number(&answers);
            // What the concentrator asks for is agreed to, and LCP is open.
            let request = &answers.iter().find(|(stage, _)| *stage == Stage::Session).unwrap().1;
            for packet in [agreed(request), vec![0xc0, 0x21, 1, 1, 0, 4]] {
                world.ask(at, station, &Sent::session(number, &packet));
            }
            number
        })
        .collect();
    for number in numbers {
        world.ask(at, station, &Sent::session(number, b"\xc0\x23\x01\x01\x00\x10\x05alice\x05guess"));
    }
    let counters = world.concentrator.counters();
    assert_eq!((counters.refused, counters.held_off), (50, 44), "six were looked at");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever comes, nothing panics, and what is kept agrees with itself.
    #[test]
    fn any_frames_leave_the_tables_whole(
        frames in proptest::collection::vec((any::<bool>(), 0u8..3, 0u16..3, any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..60),
        seed in any::<u64>(),
    ) {
        let mut world = World::new(unlimited(), secrets("alice * wonder *\n"), seed);
        let alice = world.join(Host::new(1, place(1, 1), "alice", "wonder", &[Method::Pap]));
        world.run(seconds(1));
        let session = world.hosts[alice].number().unwrap_or(1);
        for (is_session, from, inner, code, bytes) in frames {
            let source = if from == 0 { world.hosts[alice].mac } else { mac(from.into()) };
            let stage = if is_session { Stage::Session } else { Stage::Discovery };
            let payload = match code {
                0..64 => wrapped(session, &bytes),
                64..128 => wrapped(session, &[&[0xc0, 0x21], &bytes[..]].concat()),
                128..160 => wrapped(session, &[&[0x80, 0x21], &bytes[..]].concat()),
                160..192 => [&[0x11, 0xa7][..], &session.to_be_bytes(), &[0, 0]].concat(),
                192..224 => [&[0x11, 0x09, 0, 0, 0, bytes.len() as u8][..], &bytes].concat(),
                _ => bytes,
            };
            world.ask(place(1, inner), source, &Sent { destination: OWN, stage, payload });
            world.run(Duration::from_millis(u64::from(code)));
        }
        world.check();
        world.hosts[alice].is_dead = true;
        world.run(seconds(300));
        prop_assert!(world.concentrator.is_empty() && world.installed.is_empty());
        prop_assert_eq!(world.concentrator.free_addresses(), 4);
    }
}
