//! Sessions from their beginning to their end, and what an operator asks for.

use super::mac;
use super::world::{ALL, Host, Sent, World, config, place, seconds, secrets};
use crate::concentrator::accounting::{Ended, Event, Traffic};
use crate::concentrator::{BitRates, Config, Filter, Identity, Refusal, SameUser, Why};
use crate::discovery::concentrator::Reason;
use crate::session::{Closed, Phase};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use wire::pppoe::TagType;

const USERS: &str = "\
    alice * wonder *\nbob * builder 10.0.0.77\ncarol * sea -\ndave * d *\neve * e *\nfrank * f *\ngina * g *\n";

fn host(number: u32, user: &str, password: &str) -> Host {
    Host::new(number, place(100, number as u16), user, password, &ALL)
}

fn world(users: &[(&str, &str)]) -> World {
    let mut world = World::new(config(), secrets(USERS), 42);
    for (number, (user, password)) in users.iter().enumerate() {
        world.join(host(number as u32, user, password));
    }
    world.run(seconds(5));
    world.check();
    world
}

#[test]
fn a_session_comes_up_is_accounted_and_goes() {
    let mut config = config();
    config.interim = Some(seconds(60));
    let mut world = World::new(config, secrets(USERS), 1);
    let alice = world.join(host(0, "alice", "wonder"));
    world.run(seconds(2));
    assert_eq!(world.up(), 1, "{:?} {:?}", world.ends, world.notices);
    let installed = world.installed.values().next().unwrap().clone();
    assert_eq!(installed.ipv4, Some(([10, 0, 0, 1].into(), [10, 0, 0, 2].into())));
    assert_eq!(installed.prefixes.link.unwrap().to_string(), "2001:db8:f::/64");
    assert_eq!(installed.ipv6.unwrap().0, 1);
    let identity = &installed.identity;
    assert_eq!((identity.user(), installed.mtu, identity.place), (&b"alice"[..], 1492, place(100, 0)));
    assert_eq!(Some(identity.number), world.hosts[alice].number());
    let ipv4 = world.hosts[alice].ipv4().unwrap();
    assert_eq!((ipv4.local, ipv4.peer), ([10, 0, 0, 2].into(), Some([10, 0, 0, 1].into())));
    assert_eq!(ipv4.dns[0], Some([9, 9, 9, 9].into()));
    let listed = world.concentrator.sessions(world.now).next().unwrap();
    assert_eq!(
        (listed.phase, listed.identity, listed.lease.address),
        (Phase::Open, identity, Some(ipv4.local))
    );
    assert!(listed.uptime.unwrap() > seconds(1));
    let traffic = Traffic { received_octets: 10, received_packets: 1, sent_octets: 2000, sent_packets: 2 };
    world.traffic.insert(identity.id, traffic);
    world.run(seconds(130));
    world.close(alice);
    // RFC 1661 section 4.1: who has to end waits for a restart period.
    world.run(seconds(4));
    let events: Vec<_> = world.records.iter().map(|record| (record.event.clone(), record.traffic)).collect();
    let closed = Closed::PeerEnded { message: Vec::new(), phase: Phase::Open };
    let later =
        [Event::Interim, Event::Interim, Event::Stop(Ended::Ppp(closed))].map(|event| (event, traffic));
    assert_eq!(events[0], (Event::Start, Traffic::default()));
    assert_eq!(events[1..], later);
    assert!(world.records.iter().all(|record| record.identity.accounting == identity.accounting));
    assert_eq!(world.records[3].uptime.as_secs() / 10, 13);
    assert!(world.concentrator.is_empty() && world.installed.is_empty());
    assert_eq!(world.concentrator.deadline(), None);
    world.check();
    // Whose address it was gets it again.
    world.connect(alice);
    world.run(seconds(2));
    assert_eq!(world.hosts[alice].ipv4().unwrap().local, Ipv4Addr::new(10, 0, 0, 2));
}

/// What the port has no room for behind the tags of the line is neither sent nor requested.
#[test]
fn packets_are_no_longer_than_the_line_has_room_for() {
    let mut world = World::new(config(), secrets(USERS), 1);
    world.max_payload = 1484;
    let alice = world.join(host(0, "alice", "wonder"));
    world.run(seconds(2));
    assert_eq!(world.installed.values().next().unwrap().mtu, 1484);
    assert_eq!(world.hosts[alice].opened().unwrap().mtu, 1484);
    // A session is of the line as it was when it began.
    world.max_payload = 127;
    let bob = world.join(host(1, "bob", "builder"));
    world.run(seconds(2));
    assert!(world.hosts[alice].is_up() && !world.hosts[bob].is_up());
    assert!(world.hosts[bob].ended_with("no room for packets"));
}

#[test]
fn fixed_addresses_no_address_and_a_wrong_password() {
    let world = world(&[("bob", "builder"), ("carol", "sea"), ("dave", "wrong"), ("nobody", "d")]);
    assert_eq!(world.hosts[0].ipv4().unwrap().local, Ipv4Addr::new(10, 0, 0, 77));
    assert_eq!((world.hosts[1].ipv4(), world.hosts[1].ipv6().is_some()), (None, true));
    assert!(!world.hosts[2].is_up() && !world.hosts[3].is_up());
    for host in [2, 3] {
        assert!(world.hosts[host].ended_with("unknown user or wrong password"));
    }
    let notices = world.notices.join("\n");
    for words in
        ["\"dave\" was refused", "the password is wrong (line 4", "\"nobody\" was refused", "no such user"]
    {
        assert!(notices.contains(words), "{notices}");
    }
    assert_eq!(world.concentrator.len(), 2);
    let causes: Vec<_> = world.ends.iter().map(|end| end.cause.clone()).collect();
    let refused = [Refusal::Password { line: 4 }, Refusal::Unknown].map(Ended::Refused);
    assert_eq!(causes, refused);
}

#[test]
fn the_same_user_again_takes_over_or_is_refused() {
    for policy in [SameUser::Replace, SameUser::Refuse] {
        let mut config = config();
        config.same_user = policy;
        let mut world = World::new(config, secrets(USERS), 7);
        let (old, new) = (world.add(host(0, "alice", "wonder")), world.add(host(1, "alice", "wonder")));
        let (fixed, again) = (world.add(host(2, "bob", "builder")), world.add(host(3, "bob", "builder")));
        world.connect(old);
        world.connect(fixed);
        world.run(seconds(2));
        let address = world.hosts[old].ipv4().unwrap().local;
        world.connect(new);
        world.connect(again);
        world.run(seconds(2));
        let replaced = policy == SameUser::Replace;
        let up: Vec<_> = world.hosts.iter().map(Host::is_up).collect();
        assert_eq!(up, [!replaced, replaced, !replaced, replaced]);
        let [alice, bob] = if replaced { [new, again] } else { [old, fixed] };
        assert_eq!(world.hosts[alice].ipv4().unwrap().local, address);
        assert_eq!(world.hosts[bob].ipv4().unwrap().local, Ipv4Addr::new(10, 0, 0, 77));
        if replaced {
            assert!(matches!(world.ends[0].cause, Ended::TakenOver { by, .. } if by == world.hosts[new].mac));
        } else {
            assert!(world.hosts[new].ended_with("as many sessions as allowed"));
        }
        // A wrong password takes nothing over.
        world.join(host(9, "alice", "guess"));
        world.run(seconds(2));
        assert_eq!((world.up(), world.concentrator.len()), (2, 2));
        world.check();
    }
}

#[test]
fn an_operator_disconnects_by_name_address_and_id() {
    let mut world = world(&[("alice", "wonder"), ("bob", "builder"), ("dave", "d"), ("carol", "sea")]);
    let id = world.installed_of("dave").identity.id;
    let prefix = world.installed_of("carol").prefixes.link.unwrap();
    let user = |user: &'static str| Filter { user: Some(user.as_bytes()), ..Filter::default() };
    let own: [IpAddr; 1] = [[10, 0, 0, 77].into()];
    let (none, routed): ([IpAddr; 1], _) = ([[10, 0, 0, 99].into()], [prefix.address()]);
    let addresses = |addresses| Filter { addresses, ..Filter::default() };
    let (bobs, carols) = (addresses(&own), addresses(&routed));
    let is_here = |identity: &Identity| identity.place == place(100, 0);
    let elsewhere = |identity: &Identity| !is_here(identity);
    for (nth, (filter, count)) in [
        (user("nobody"), 0),
        (Filter { identity: Some(&elsewhere), ..user("alice") }, 0),
        (Filter { identity: Some(&is_here), ..user("alice") }, 1),
        (Filter { user: Some(b"alice"), ..bobs }, 0),
        (bobs, 1),
        (addresses(&none), 0),
        (carols, 1),
        (Filter { id: Some(id), ..user("alice") }, 0),
        (Filter { id: Some(id), ..Filter::default() }, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let disconnected = world.act(|concentrator, step| concentrator.disconnect(step, &filter));
        assert_eq!(disconnected, count, "filter {nth}");
    }
    world.run(seconds(1));
    assert_eq!(world.ends.iter().map(|end| &end.cause).collect::<Vec<_>>(), [&Ended::Operator; 4]);
    assert!(world.hosts.iter().all(|host| !host.is_up()));
    let filter = Filter { id: Some(id), ..Filter::default() };
    assert_eq!(world.act(|concentrator, step| concentrator.disconnect(step, &filter)), 0);
    world.check();
}

#[test]
fn draining_takes_no_more_and_shutting_down_informs_everybody() {
    let mut world = world(&[("alice", "wonder"), ("bob", "builder")]);
    // One has its offer already.
    let early = world.join(host(4, "eve", "e"));
    world.run(Duration::from_millis(5));
    world.act(|machine, step| machine.set_draining(step, true));
    let late = world.join(host(5, "dave", "d"));
    world.run(seconds(120));
    assert_eq!((world.up(), world.concentrator.len()), (2, 2));
    assert!(!world.hosts[late].ends().is_empty());
    assert!(world.hosts[early].ended_with("takes no more sessions"));
    let ignored = &world.concentrator.discovery_counters().ignored;
    assert!(ignored.keys().eq([&Reason::Draining]), "{ignored:?}");
    world.act(|machine, step| machine.set_draining(step, false));
    world.connect(late);
    world.run(seconds(5));
    assert_eq!((world.up(), world.concentrator.len()), (3, 3));
    world.close(late);
    world.run(seconds(5));
    world.sent.clear();
    world.act(|concentrator, step| concentrator.shut_down(step));
    assert!(world.concentrator.is_empty() && world.installed.is_empty());
    assert_eq!(world.padts().len(), 2);
    world.run(seconds(1));
    assert_eq!(world.up(), 0);
    world.check();
}

#[test]
fn secrets_are_replaced_all_at_once_and_disagreeing_sessions_reported() {
    let mut world = world(&[("alice", "wonder"), ("bob", "builder"), ("dave", "d"), ("eve", "e")]);
    let [alice, bob, dave, eve] = ["alice", "bob", "dave", "eve"].map(|user| {
        let installed = world.installed_of(user);
        (installed.identity.id, installed.ipv4.unwrap().1)
    });
    // Alice is removed, Bob has another password, Dave's address is now Zoe's, Eve stays as she is.
    let new = format!("bob * changed 10.0.0.77\ndave * d *\neve * e *\nzoe * z {}\n", dave.1);
    let reloaded = world.act(|machine, step| machine.reload(step, secrets(&new)));
    let mut expected = vec![(alice.0, Why::Removed), (bob.0, Why::Password), (dave.0, Why::Address)];
    expected.sort_by_key(|(id, _)| id.slot());
    assert_eq!(reloaded.disagreeing, expected);
    assert_eq!(world.up(), 4, "nobody is ended for it");
    // Zoe has to wait for her address, and Dave's next one is another.
    let zoe = world.join(host(6, "zoe", "z"));
    world.run(seconds(2));
    assert!(world.hosts[zoe].ended_with("in use by another session"));
    for (id, _) in reloaded.disagreeing {
        let filter = Filter { id: Some(id), ..Filter::default() };
        world.act(|concentrator, step| concentrator.disconnect(step, &filter));
    }
    world.run(seconds(1));
    for host in [0, 1, 2, zoe] {
        world.connect(host);
    }
    world.run(seconds(3));
    assert_eq!(world.hosts[zoe].ipv4().unwrap().local, dave.1);
    let now = world.hosts[2].ipv4().unwrap().local;
    assert!(now != dave.1 && now != eve.1, "{now}");
    assert!(!world.hosts[0].is_up() && !world.hosts[1].is_up());
    world.check();
}

#[test]
fn a_blocked_host_gets_no_answer() {
    let mut world = world(&[("alice", "wonder"), ("bob", "builder")]);
    let alice = world.installed_of("alice").identity.clone();
    let tables = [("alice", "wonder"), ("bob", "builder")]
        .map(|(user, password)| format!("[[subscriber]]\nuser = \"{user}\"\npassword = \"{password}\"\n"));
    let reloaded = world.act(|machine, step| {
        let text = format!("blocked = [\"{}\"]\n{}", alice.station, tables.concat());
        machine.reload(step, secrets(&text))
    });
    assert_eq!(reloaded.disagreeing, [(alice.id, Why::Blocked)]);
    assert!(reloaded.difference.to_string().ends_with("1 blocked)"), "{}", reloaded.difference);
    assert_eq!(world.up(), 2, "it goes on");
    let filter = Filter { id: Some(alice.id), ..Filter::default() };
    world.act(|machine, step| machine.disconnect(step, &filter));
    world.run(seconds(1));
    world.connect(0);
    world.run(seconds(20));
    assert!(!world.hosts[0].is_up() && world.hosts[1].is_up());
    assert!(world.concentrator.discovery_counters().ignored[&Reason::Blocked] > 0);

    world.act(|machine, step| machine.reload(step, secrets(&tables.concat())));
    world.connect(0);
    // Its PADI have become rare.
    world.run(seconds(60));
    assert!(world.hosts[0].is_up());
    world.check();
}

/// A fixed address and a fixed prefix that become anybody's while a session has them.
#[test]
fn what_a_session_has_is_nobody_elses_after_a_reload() {
    let subscriber =
        |user: &str, rest: &str| format!("[[subscriber]]\nuser = \"{user}\"\npassword = \"p\"\n{rest}\n");
    let others: String = ["a", "b", "c", "d"].into_iter().map(|user| subscriber(user, "")).collect();
    let fixed = "address = \"10.0.0.3\"\nprefix = \"2001:db8:f:1::/64\"\nroutes = [\"192.0.2.0/28\", \"2001:db8:1::/48\"]";
    let mut world = World::new(config(), secrets(&(others.clone() + &subscriber("bob", fixed))), 11);
    world.join(host(0, "bob", "p"));
    world.run(seconds(2));
    let installed = world.installed.values().next().unwrap().clone();
    assert_eq!(installed.ipv4.unwrap().1, Ipv4Addr::new(10, 0, 0, 3));
    assert_eq!(installed.prefixes.link.unwrap().to_string(), "2001:db8:f:1::/64");
    assert_eq!(installed.routes.len(), 2);
    assert_eq!(world.concentrator.free_addresses(), 3);
    world.act(|machine, step| machine.reload(step, secrets(&(others + &subscriber("bob", "")))));
    assert_eq!(world.concentrator.free_addresses(), 3);
    for number in 1..5 {
        world.join(host(number, ["a", "b", "c", "d"][number as usize - 1], "p"));
    }
    world.run(seconds(5));
    assert_eq!(world.up(), 4, "three others, and one without an address");
    world.check();
    let prefixes: std::collections::BTreeSet<_> =
        world.installed.values().map(|installed| installed.prefixes.link).collect();
    assert_eq!(prefixes.len(), 4);
    world.act(|concentrator, step| concentrator.shut_down(step));
    assert_eq!((world.concentrator.free_addresses(), world.concentrator.free_prefixes()), (4, Some(1 << 16)));
}

/// The line identification of an access node goes with the session, and escaped into what people read.
#[test]
fn a_line_is_known_by_its_identification() {
    let mut world = World::new(config(), secrets(USERS), 1);
    let line = b"\x00\x00\x0d\xe9\x01\x05eth\n1\x02\x03bob";
    let padr = world.padr(place(1, 1), mac(1)).tag(TagType::VENDOR_SPECIFIC, line);
    world.ask(place(1, 1), mac(1), &Sent::discovery(padr.finish().unwrap()));
    let listed = world.concentrator.sessions(world.now).next().unwrap();
    assert_eq!(listed.identity.line.as_ref().unwrap().to_string(), "circuit \"eth\\u{a}1\", remote \"bob\"");
}

/// However many MAC addresses are behind it.
#[test]
fn a_line_has_as_many_sessions_as_it_may() {
    let mut config = config();
    config.caps.line = 2;
    let mut world = World::new(config, secrets(USERS), 1);
    let ask = |world: &mut World, number, line: &[u8]| {
        let padr = world.padr(place(1, 1), mac(number)).tag(TagType::VENDOR_SPECIFIC, line);
        world.ask(place(1, 1), mac(number), &Sent::discovery(padr.finish().unwrap()));
        world.concentrator.len()
    };
    let [one, other] = [b"\x00\x00\x0d\xe9\x01\x01a", b"\x00\x00\x0d\xe9\x01\x01b"];
    assert_eq!([1, 2, 3].map(|number| ask(&mut world, number, one)), [1, 2, 2]);
    assert!(
        world.notices.iter().any(|notice| notice.contains("this line has 2 sessions")),
        "{:?}",
        world.notices
    );
    assert_eq!(ask(&mut world, 4, other), 3);
    world.run(seconds(100));
    assert_eq!(ask(&mut world, 5, one), 1);
    world.check();
}

#[test]
fn strays_of_the_data_path_are_answered_at_a_rate() {
    let mut world = world(&[("alice", "wonder")]);
    let number = world.hosts[0].number().unwrap();
    let (at, mac) = (world.hosts[0].place, world.hosts[0].mac);
    world.sent.clear();
    for _ in 0..100 {
        world.act(|concentrator, step| {
            concentrator.stray(step, at, mac, number ^ 1);
            concentrator.stray(step, at, mac, number);
            concentrator.stray(step, at, mac, 0);
        });
    }
    assert!((1..=5).contains(&world.sent.len()), "{}", world.sent.len());
    world.run(seconds(1));
    assert!(world.hosts[0].is_up(), "its session is there");
}

#[test]
fn a_configuration_that_contradicts_itself_is_reported() {
    type Change = fn(&mut Config);
    let cases: [(&str, Change); 5] = [
        ("no own address (--local)", |config| config.local = None),
        ("overlap", |config| config.pool.push("10.0.0.5-10.0.0.9".parse().unwrap())),
        ("cannot be parted into prefixes", |config| config.prefixes = Some("10.0.0.0/8".parse().unwrap())),
        ("too long for an offer", |config| config.discovery.name = vec![b'x'; 1500]),
        ("neither IPv4", |config| {
            (config.local, config.identifier, config.pool) = (None, None, Vec::new());
        }),
    ];
    for (expected, change) in cases {
        let mut config = config();
        change(&mut config);
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn one_of_two_protocols_may_come_and_go() {
    let mut world = world(&[("alice", "wonder")]);
    // IPV6CP Terminate-Request.
    world.ask_as(0, &[0x80, 0x57, 5, 99, 0, 4]);
    world.run(Duration::from_millis(500));
    let installed = world.installed.values().next().unwrap();
    assert!(installed.ipv4.is_some() && installed.ipv6.is_none() && installed.prefixes.link.is_none());
    assert_eq!(world.records.len(), 1);
    world.run(seconds(5));
    world.check();
}

#[test]
fn rates_are_those_of_the_secrets_else_those_of_everybody_and_change_in_mid_session() {
    let text = |rates: &str| {
        format!(
            "[[subscriber]]\nuser = \"a\"\npassword = \"p\"\n{rates}\n[[subscriber]]\nuser = \"b\"\npassword = \"p\"\n"
        )
    };
    let mut config = config();
    config.rates = BitRates { download: Some(100_000_000), upload: None };
    let mut world = World::new(config, secrets(&text("download = \"50M\"\nupload = \"1.5M\"")), 3);
    world.join(host(0, "a", "p"));
    world.join(host(1, "b", "p"));
    world.run(seconds(3));
    let rates = |world: &World, user: &str| {
        let BitRates { download, upload } = world.installed_of(user).rates;
        (download, upload)
    };
    assert_eq!(rates(&world, "a"), (Some(50_000_000), Some(1_500_000)));
    assert_eq!(rates(&world, "b"), (Some(100_000_000), None));
    let other = secrets(&text("download = \"60M\""));
    world.act(|machine, step| machine.reload(step, other));
    assert_eq!(rates(&world, "a"), (Some(60_000_000), None));
    assert_eq!(rates(&world, "b"), (Some(100_000_000), None));
    assert_eq!((world.up(), world.ends.len()), (2, 0));
    world.check();
}

/// Pool, rates, number and whether there is an answer at all: of the VLANs where nothing else is said of a subscriber, and of the first
/// table that has them.
#[test]
fn vlans_have_what_their_table_says() {
    let users: String = ["a", "b", "c", "d"]
        .map(|user| format!("[[subscriber]]\nuser = \"{user}\"\npassword = \"p\"\n"))
        .concat();
    let own = "[[subscriber]]\nuser = \"e\"\npassword = \"p\"\npool = \"iron\"\nupload = \"3M\"\n";
    let tables = "[[vlan]]\nvlans = \"100-199.7\"\nblocked = true\n[[vlan]]\nvlans = \"100-199.*\"\npool = \"gold\"\ndownload = \"50M\"\n\
                  upload = \"5M\"\nsessions = 1\n";
    let mut config = config();
    config.rates = BitRates { download: Some(1_000_000), upload: Some(1_000_000) };
    config.named_pools.insert("gold".into(), vec!["10.1.0.1-10.1.0.9".parse().expect("a range")]);
    config.named_pools.insert("iron".into(), vec!["10.2.0.1-10.2.0.9".parse().expect("a range")]);
    let mut world = World::new(config, secrets(&format!("{tables}{users}{own}")), 5);
    let hosts = [("a", 150, 1), ("b", 150, 1), ("c", 100, 7), ("d", 200, 1), ("e", 199, 1)];
    for (number, (user, outer, inner)) in (1..).zip(hosts) {
        world.join(Host::new(number, place(outer, inner), user, "p", &ALL));
        world.run(seconds(2));
    }
    let has = |world: &World, user: &str| {
        let installed =
            world.installed.values().find(|installed| installed.identity.user() == user.as_bytes())?;
        let BitRates { download, upload } = installed.rates;
        Some((installed.ipv4?.1.octets()[1], download? / 1_000_000, upload? / 1_000_000))
    };
    let all = |world: &World| ["a", "b", "c", "d", "e"].map(|user| has(world, user));
    assert_eq!(all(&world), [Some((1, 50, 5)), None, None, Some((0, 1, 1)), Some((2, 50, 3))]);
    assert!(world.hosts[1].ended_with("this VLAN is full: it has 1 session"));
    assert!(world.concentrator.discovery_counters().ignored[&Reason::Blocked] > 0);

    let reloaded = world.act(|machine, step| {
        let tables =
            "[[vlan]]\nvlans = \"150.*\"\nblocked = true\n[[vlan]]\nvlans = \"any\"\ndownload = \"7M\"\n";
        machine.reload(step, secrets(&format!("{tables}{users}{own}")))
    });
    let a = world.installed_of("a").identity.id;
    assert_eq!(reloaded.disagreeing, [(a, Why::Blocked)]);
    assert_eq!(reloaded.difference.to_string(), "5 subscribers (2 tables [[vlan]])");
    assert_eq!(all(&world), [Some((1, 1, 1)), None, None, Some((0, 7, 1)), Some((2, 7, 3))]);
    world.check();
}
