//! Sessions handed from one process to the next.

use super::world::{Host, World, config, place, seconds, secrets};
use crate::concentrator::accounting::{Ended, Event, Traffic};
use crate::concentrator::{Config, End, Installed, Restored, Snapshot};
use crate::session::Method;
use std::collections::BTreeMap;
use std::time::Duration;

const USERS: &str = "alice * a *\nbob * b 10.0.0.77\ncarol * c -\ndave * d *\n";

fn world() -> World {
    let mut world = World::new(config(), secrets(USERS), 3);
    for (number, user) in ["alice", "bob", "carol", "dave"].into_iter().enumerate() {
        let method = [Method::Pap, Method::ChapMd5, Method::MsChapV2][number % 3];
        world.join(Host::new(number as u32, place(4, number as u16), user, &user[..1], &[method]));
    }
    world.run(seconds(5));
    assert_eq!(world.up(), 4);
    world
}

/// Ends the process without a word and begins another one, some seconds later, by what was written down.
fn restart(world: &mut World, config: Config, users: &str) -> Restored {
    let snapshot = world.act(|concentrator, step| concentrator.snapshot(step));
    let text = serde_json::to_string(&snapshot).unwrap();
    assert!(!text.contains("secret"));
    world.run(seconds(2));
    let snapshot: Snapshot = serde_json::from_str(&text).unwrap();
    world.sent.clear();
    world.ends.clear();
    world.replace(config, secrets(users));
    world.act(|concentrator, step| concentrator.restore(step, snapshot, seconds(2)).unwrap())
}

#[test]
fn subscribers_do_not_notice_a_restart() {
    let mut world = world();
    let alice = world.installed_of("alice").identity.id;
    let traffic = Traffic { received_octets: 5, received_packets: 1, sent_octets: 7, sent_packets: 2 };
    world.traffic.insert(alice, traffic);
    // But for their ids.
    let numbered = |world: &World| -> BTreeMap<u16, Installed> {
        let mut all: Vec<Installed> = world.installed.values().cloned().collect();
        all.iter_mut().for_each(|one| one.identity.id = "0".parse().unwrap());
        all.into_iter().map(|one| (one.identity.number, one)).collect()
    };
    let expected = numbered(&world);
    assert_eq!(restart(&mut world, config(), USERS), Restored { sessions: 4, ended: 0, draining: false });
    assert_eq!(numbered(&world), expected);
    assert_eq!(expected.len(), 4);
    assert!(world.sent.is_empty(), "nobody gets a message");
    world.check();
    world.traffic.insert(world.installed_of("alice").identity.id, traffic);
    world.run(seconds(300));
    assert_eq!((world.up(), world.ends.len()), (4, 0), "the echoes of both ends are answered");
    world.check();
    // What they had is not given to others, and comes back.
    assert_eq!(world.concentrator.free_addresses(), 2);
    for host in 0..4 {
        world.close(host);
    }
    world.run(seconds(10));
    assert_eq!((world.concentrator.free_addresses(), world.concentrator.len()), (4, 0));
    assert_eq!(world.concentrator.free_prefixes(), Some(1 << 16));
    let of_alice: Vec<_> = world.records.iter().filter(|record| record.identity.user() == b"alice").collect();
    let [start, stop] = of_alice[..] else { panic!("{of_alice:?}") };
    assert!(matches!(stop.event, Event::Stop(_)) && stop.uptime > seconds(304));
    assert_eq!((stop.traffic, stop.identity.accounting), (traffic + traffic, start.identity.accounting));
    world.check();
    world.connect(0);
    world.run(seconds(3));
    assert!(world.hosts[0].is_up());
}

#[test]
fn what_cannot_go_on_is_reported_and_accounted() {
    let mut world = world();
    // One more is in the middle of its set-up.
    world.join(Host::new(8, place(4, 8), "zed", "z", &[Method::Pap]));
    world.run(Duration::from_millis(254));
    assert_eq!(world.concentrator.len(), 5);
    // Alice is removed, Bob's address is another, Dave's is Erin's now.
    let dave = world.installed_of("dave").ipv4.unwrap().1;
    let users = format!("bob * b 10.0.0.78\ncarol * c -\ndave * d *\nerin * e {dave}\n");
    assert_eq!(restart(&mut world, config(), &users), Restored { sessions: 1, ended: 4, draining: false });
    let end = |end: &End| (String::from_utf8_lossy(end.identity.user()).into_owned(), end.cause.clone());
    let mut ends: Vec<_> = world.ends.iter().map(end).collect();
    ends.sort_by_key(|(user, _)| user.clone());
    let expected = [
        ("", "the session was still being set up".to_owned()),
        ("alice", "the user is no subscriber any more".to_owned()),
        ("bob", "the address of the user changed from 10.0.0.77 to 10.0.0.78".to_owned()),
        ("dave", format!("the address {dave} is not free any more")),
    ];
    assert_eq!(ends, expected.map(|(user, why)| (user.into(), Ended::NotRestored(why))));
    assert_eq!(world.padts().len(), 4);
    world.run(seconds(2));
    assert_eq!(world.up(), 1);
    world.check();
}

#[test]
fn another_version_is_not_read() {
    let mut world = world();
    let snapshot = world.act(|concentrator, step| concentrator.snapshot(step));
    let text = serde_json::to_string(&snapshot).unwrap().replace("\"version\":2", "\"version\":3");
    let snapshot: Snapshot = serde_json::from_str(&text).unwrap();
    let error = world.act(|concentrator, step| concentrator.restore(step, snapshot, seconds(0))).unwrap_err();
    assert!(error.to_string().contains("(form 3, expected 2)"), "{error}");
}

#[test]
fn other_options_that_end_sessions_are_named() {
    type Change = fn(&mut Config);
    let cases: [(Change, usize, &str); 5] = [
        // Carol has IPv6 alone.
        (
            |config| config.local = Some([10, 0, 0, 9].into()),
            3,
            "the concentrator was restarted: the address of the concentrator changed from 10.0.0.1 to 10.0.0.9",
        ),
        (|config| config.identifier = None, 4, "IPv6 was turned off"),
        (|config| config.identifier = Some(7), 4, "the link-local address of the concentrator changed"),
        (|config| config.prefixes = None, 4, "the IPv6 prefix of the user changed from 2001:db8:f:"),
        (
            |config| {
                config.local = None;
                config.pool.clear();
            },
            3,
            "the address of the concentrator changed from 10.0.0.1 to none",
        ),
    ];
    for (change, ended, said) in cases {
        let mut other = config();
        change(&mut other);
        let mut world = world();
        let restored = restart(&mut world, other, USERS);
        assert_eq!(restored, Restored { sessions: 4 - ended, ended, draining: false }, "{said}");
        let texts = world.padts();
        assert_eq!((texts.len(), world.stops().len()), (ended, ended), "each is accounted for");
        assert!(texts.iter().all(|text| text.contains(said)), "{said}: {texts:?}");
        world.check();
        world.act(|concentrator, step| concentrator.shut_down(step));
    }
    // Addresses outside of another pool stay with who has them.
    let mut other = config();
    other.pool = vec!["10.9.0.2-10.9.0.5".parse().unwrap()];
    assert_eq!(restart(&mut world(), other, USERS), Restored { sessions: 4, ended: 0, draining: false });
}

/// The same sessions again, as when an earlier process is still there: nobody is ended for it.
#[test]
fn sessions_that_are_there_are_not_doubled() {
    let mut world = world();
    let snapshot = world.act(|concentrator, step| concentrator.snapshot(step));
    world.sent.clear();
    let restored = world.act(|concentrator, step| concentrator.restore(step, snapshot, seconds(0)));
    assert_eq!(restored, Ok(Restored { sessions: 0, ended: 4, draining: false }));
    assert!(world.sent.is_empty());
    world.run(seconds(100));
    assert_eq!(world.up(), 4);
}

/// The data path of the earlier process counts until its end, and the account has all of it once.
#[test]
fn what_was_counted_after_the_snapshot_is_accounted() {
    let mut world = world();
    let traffic = |count| Traffic {
        received_octets: 10 * count,
        received_packets: count,
        sent_octets: 20 * count,
        sent_packets: count,
    };
    let count = |world: &mut World, counts: [(&str, u64); 2]| {
        for (user, count) in counts {
            world.traffic.insert(world.installed_of(user).identity.id, traffic(count));
        }
    };
    count(&mut world, [("alice", 1), ("bob", 2)]);
    let snapshot = world.act(|concentrator, step| concentrator.snapshot(step));
    count(&mut world, [("alice", 5), ("bob", 7)]);
    let counted = world.act(|concentrator, step| concentrator.counted(step));
    assert_eq!(counted.len(), 4);
    // Bob is no subscriber any more.
    world.replace(config(), secrets("alice * a *\ncarol * c -\ndave * d *\n"));
    world.act(|concentrator, step| {
        let restored = concentrator.restore(step, snapshot, seconds(0)).unwrap();
        assert_eq!(restored, Restored { sessions: 3, ended: 1, draining: false });
        concentrator.settle(&counted, step.actions);
    });
    world.traffic.insert(world.installed_of("alice").identity.id, traffic(3));
    world.act(|concentrator, step| concentrator.shut_down(step));
    let mut stops: Vec<_> =
        world.stops().iter().map(|stop| (stop.identity.user().to_vec(), stop.traffic.sent_packets)).collect();
    stops.sort_unstable();
    let expected = [(&b"alice"[..], 8), (b"bob", 7), (b"carol", 0), (b"dave", 0)];
    assert_eq!(stops, expected.map(|(user, packets)| (user.to_vec(), packets)));
    assert!(world.stops().iter().all(|stop| stop.traffic == traffic(stop.traffic.sent_packets)));
}

/// Another data path in the same process carries what the former one did, and the account has what both have counted.
#[test]
fn what_a_former_data_path_has_counted_is_kept() {
    let mut world = world();
    let traffic = |count| Traffic { received_octets: count, sent_packets: count, ..Traffic::default() };
    let before: Vec<_> = world.installed.values().cloned().collect();
    for (number, installed) in (1..).zip(&before) {
        world.traffic.insert(installed.identity.id, traffic(number));
    }
    let mut again = world.act(|concentrator, step| concentrator.carried_anew(step));
    again.sort_by_key(|installed| installed.identity.id);
    assert_eq!(again, before);
    // The new one begins at nothing.
    for installed in &before {
        world.traffic.insert(installed.identity.id, traffic(100));
    }
    world.act(|concentrator, step| concentrator.shut_down(step));
    let mut counted: Vec<u64> = world.stops().iter().map(|stop| stop.traffic.received_octets).collect();
    counted.sort_unstable();
    assert_eq!(counted, (1..=before.len() as u64).map(|number| 100 + number).collect::<Vec<_>>());
}
