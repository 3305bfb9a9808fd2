//! Subscribers whom the secrets do not name: somebody else is queried, who answers soon, late, or never.

use super::world::{ALL, Host, World, config, place, seconds, secrets};
use crate::concentrator::accounting::{Ended, Event, Traffic};
use crate::concentrator::network::Prefixes;
use crate::concentrator::secrets::{Address, Profile};
use crate::concentrator::{BitRates, Change, Filter, Granted, NotGranted, Question, Refusal, Reply};
use crate::session::{Evidence, Method};
use std::net::Ipv4Addr;

const NEMO: &[u8] = b"nemo";

fn world() -> World {
    let mut config = config();
    config.asks = true;
    World::new(config, secrets("alice * wonder *\n"), 7)
}

fn host(number: u32, methods: &[Method]) -> Host {
    Host::new(number, place(100, number as u16), "nemo", "arctangent", methods)
}

fn accepted(profile: Profile) -> Reply {
    let granted = Granted { profile, class: vec![b"gold".to_vec()], ..Granted::default() };
    Reply::Accepted { granted: Box::new(granted), success: None }
}

fn fixed(last: u8) -> Profile {
    Profile { address: Address::Fixed([10, 0, 0, last].into()), ..Profile::default() }
}

/// Lets a host connect until somebody is queried.
fn question_of(world: &mut World, host: Host) -> Question {
    world.join(host);
    world.run(seconds(2));
    world.questions.pop().expect("a question")
}

fn answer(world: &mut World, question: &Question, answer: Reply) {
    world.act(|machine, step| machine.answer(step, question, answer));
    world.run(seconds(2));
    world.check();
}

#[test]
fn a_subscriber_gets_what_is_granted_and_records_carry_the_class() {
    let mut world = world();
    let question = question_of(&mut world, host(0, &[Method::ChapMd5]));
    assert_eq!(question.claim.user(), NEMO);
    assert!(matches!(question.claim.evidence(), Evidence::ChapMd5 { .. }));
    assert_eq!(world.up(), 0);
    let route = "10.9.0.0/24".parse().expect("a network");
    answer(&mut world, &question, accepted(Profile { routes: Box::new([route]), ..fixed(3) }));
    assert_eq!(world.hosts[0].ipv4().expect("an address").local, Ipv4Addr::new(10, 0, 0, 3));
    assert_eq!(*world.installed.values().next().expect("a session").routes, [route]);
    assert_eq!(world.records[0].granted.as_ref().expect("granted").class, [b"gold"]);
    // The address is of the pool, which gives it to nobody else: three are left.
    assert_eq!(world.concentrator.free_addresses(), 3);
    world.close(0);
    world.run(seconds(5));
    assert_eq!(world.concentrator.free_addresses(), 4);
}

#[test]
fn a_user_of_the_secrets_needs_no_answer() {
    let mut world = world();
    world.join(Host::new(1, place(1, 1), "alice", "wonder", &ALL));
    world.run(seconds(3));
    assert_eq!((world.up(), world.questions.len()), (1, 0));
}

#[test]
fn a_refusal_and_no_answer_end_the_session_and_only_the_first_holds_off() {
    for (wrong, said) in [(true, "RADIUS refuses the user: not today"), (false, "nobody there")] {
        let mut world = world();
        for number in 0..12 {
            world.join(Host::new(5, place(5, 5), "nemo", "arctangent", &[Method::Pap]));
            world.run(seconds(2));
            let Some(question) = world.questions.pop() else {
                assert!(wrong && number > 2, "{said}");
                break;
            };
            let no = if wrong {
                Reply::Refused("not today".to_owned())
            } else {
                Reply::None("nobody there".to_owned())
            };
            answer(&mut world, &question, no);
            assert!(world.notices.iter().any(|notice| notice.contains(said)), "{:?}", world.notices);
            world.run(seconds(5));
            world.hosts.clear();
        }
        let held_off = world.concentrator.counters().held_off > 0;
        assert_eq!(held_off, wrong, "{said}");
    }
}

#[test]
fn an_answer_that_comes_too_late_changes_nothing() {
    let mut world = world();
    let question = question_of(&mut world, host(0, &[Method::Pap]));
    world.hosts[0].is_dead = true;
    world.run(seconds(120));
    assert!(world.concentrator.is_empty());
    answer(&mut world, &question, accepted(fixed(3)));
    assert!(world.concentrator.is_empty() && world.concentrator.free_addresses() == 4);
    // Nor does a second one to the same question.
    let question = question_of(&mut world, host(1, &[Method::Pap]));
    answer(&mut world, &question, accepted(fixed(3)));
    assert_eq!(world.up(), 1);
    answer(&mut world, &question, Reply::Refused(String::new()));
    assert_eq!(world.up(), 1);
}

#[test]
fn ms_chap_v2_takes_what_shows_the_password_to_the_host() {
    let mut world = world();
    let question = question_of(&mut world, host(0, &[Method::MsChapV2]));
    let proof = question.claim.proof(b"arctangent").expect("the right password");
    let digits: String =
        proof.authenticator_response.expect("MS-CHAPv2").iter().map(|byte| format!("{byte:02X}")).collect();
    let Reply::Accepted { granted, .. } = accepted(Profile::default()) else { unreachable!() };
    let success = Some(format!("S={digits}").into_bytes());
    answer(&mut world, &question, Reply::Accepted { granted, success });
    assert_eq!(world.up(), 1, "{:?}", world.notices);

    let question = question_of(&mut world, host(1, &[Method::MsChapV2]));
    answer(&mut world, &question, accepted(Profile::default()));
    assert!(world.notices.iter().any(|notice| notice.contains("MS-CHAP2-Success")), "{:?}", world.notices);
}

#[test]
fn what_no_host_can_have_is_refused() {
    let mut world = world();
    let loopback = Profile { address: Address::Fixed([127, 0, 0, 1].into()), ..Profile::default() };
    let own = Profile { address: Address::Fixed([10, 0, 0, 1].into()), ..Profile::default() };
    let multicast =
        Profile { routes: Box::new(["224.0.0.0/8".parse().expect("a network")]), ..Profile::default() };
    for (number, profile) in (0..).zip([loopback, own, multicast]) {
        let question = question_of(&mut world, host(number, &[Method::Pap]));
        answer(&mut world, &question, accepted(profile.clone()));
        let ended = world.ends.last().expect("an end");
        assert!(
            matches!(&ended.cause, Ended::Refused(Refusal::NoAuthority(why)) if why.contains("what cannot be")),
            "{profile:?}"
        );
    }
}

#[test]
fn the_time_and_the_interval_that_are_granted_hold_over_a_takeover() {
    let mut world = world();
    let question = question_of(&mut world, host(0, &[Method::Pap]));
    let granted = Granted {
        time: Some(seconds(100)),
        interim: Some(seconds(20)),
        profile: fixed(3),
        ..Granted::default()
    };
    answer(&mut world, &question, Reply::Accepted { granted: Box::new(granted), success: None });
    world.run(seconds(50));
    let interim = world.records.iter().filter(|record| record.event == Event::Interim).count();
    assert_eq!(interim, 2);
    let snapshot = world.act(|machine, step| machine.snapshot(step));
    let mut config = config();
    config.asks = true;
    world.replace(config, secrets("alice * wonder *\n"));
    let now = seconds(0);
    let restored = world.act(|machine, step| machine.restore(step, snapshot, now)).expect("restored");
    assert_eq!((restored.sessions, restored.ended), (1, 0));
    // The address of the pool is taken again.
    assert_eq!(world.concentrator.free_addresses(), 3);
    world.run(seconds(60));
    let cause = &world.ends.last().expect("an end").cause;
    assert_eq!(*cause, Ended::TimeUsed);
}

#[test]
fn what_was_granted_is_changed_while_the_session_is_open() {
    let mut world = world();
    let question = question_of(&mut world, host(0, &[Method::Pap]));
    answer(&mut world, &question, accepted(fixed(3)));
    world.join(Host::new(1, place(100, 1), "alice", "wonder", &ALL));
    world.run(seconds(6));
    let all = Filter::default();
    let nemo = Filter { user: Some(NEMO), ..all };
    let time = |time| Change { time: Some(seconds(time)), ..Change::default() };
    fn change(world: &mut World, filter: &Filter<'_>, change: &Change) -> (Result<usize, NotGranted>, usize) {
        let changed = world.act(|machine, step| machine.change(step, filter, change));
        world.run(seconds(1));
        (changed, world.up())
    }
    let records = Change { interim: Some(seconds(20)), class: vec![b"red".to_vec()], ..Change::default() };
    // Alice is of the secrets: she is neither changed nor in the way.
    assert_eq!(change(&mut world, &all, &records), (Ok(1), 2));
    let alice = Filter { user: Some(b"alice"), ..all };
    assert_eq!(change(&mut world, &alice, &time(5)), (Err(NotGranted), 2));
    assert_eq!(change(&mut world, &Filter { user: Some(b"eve"), ..all }, &time(5)), (Ok(0), 2));
    // It has been open for ten seconds: a limit, none, and one that is over.
    assert_eq!(change(&mut world, &nemo, &time(30)), (Ok(1), 2));
    assert_eq!(change(&mut world, &nemo, &time(0)), (Ok(1), 2));
    world.run(seconds(60));
    let made: Vec<_> = world.records.iter().filter(|record| record.event == Event::Interim).collect();
    assert_eq!(made.len(), 3);
    assert!(made.iter().all(|record| record.granted.as_ref().expect("granted").class == [b"red"]));
    assert_eq!(change(&mut world, &nemo, &time(5)), (Ok(1), 1));
    assert!(matches!(world.records.last().expect("a record").event, Event::Stop(Ended::TimeUsed)));
}

#[test]
fn a_session_that_nobody_uses_ends_and_one_that_is_used_goes_on() {
    let mut world = world();
    let question = question_of(&mut world, host(0, &[Method::Pap]));
    let granted =
        Granted { idle: Some(seconds(20)), mtu: Some(1400), profile: fixed(3), ..Granted::default() };
    answer(&mut world, &question, Reply::Accepted { granted: Box::new(granted), success: None });
    let installed = world.installed_of("nemo").clone();
    assert_eq!(installed.mtu, 1400);
    for packets in 1..5 {
        let traffic = Traffic { received_packets: packets, ..Traffic::default() };
        world.traffic.insert(installed.identity.id, traffic);
        world.run(seconds(15));
        assert_eq!(world.up(), 1, "{packets}");
    }
    // Another change is no use of it.
    let class = Change { class: vec![b"red".to_vec()], ..Change::default() };
    assert_eq!(world.act(|machine, step| machine.change(step, &Filter::default(), &class)), Ok(1));
    // Nothing that the data path has to carry: the next process after a kill has to know of it all the same.
    assert_eq!(std::mem::take(&mut world.changed).len(), 1);
    world.run(seconds(10));
    assert_eq!(world.ends.last().expect("an end").cause, Ended::Idle);
    assert!(matches!(world.records.last().expect("a record").event, Event::Stop(Ended::Idle)));
}

#[test]
fn a_rate_that_is_granted_holds_and_another_one_without_a_flap() {
    let mut config = config();
    config.asks = true;
    config.rates = BitRates { download: Some(9_000_000), upload: Some(9_000_000) };
    let mut world = World::new(config, secrets(""), 7);
    let question = question_of(&mut world, host(0, &[Method::Pap]));
    let rates = BitRates { download: Some(50_000_000), upload: Some(BitRates::UNLIMITED) };
    answer(&mut world, &question, accepted(Profile { rates, ..fixed(3) }));
    assert_eq!(world.installed_of("nemo").rates, BitRates { download: Some(50_000_000), upload: None });
    let change = Change { rates: BitRates { download: None, upload: Some(8_000) }, ..Change::default() };
    let changed = world.act(|machine, step| machine.change(step, &Filter::default(), &change));
    assert_eq!(changed, Ok(1));
    let rates = BitRates { download: Some(50_000_000), upload: Some(8_000) };
    assert_eq!(world.installed_of("nemo").rates, rates);
    // Other secrets leave it, and so does another process.
    world.act(|machine, step| machine.reload(step, secrets("alice * wonder *\n")));
    assert_eq!(world.installed_of("nemo").rates, rates);
    let snapshot = world.act(|machine, step| machine.snapshot(step));
    let mut config = super::world::config();
    config.asks = true;
    world.replace(config, secrets(""));
    world.act(|machine, step| machine.restore(step, snapshot, seconds(1)).unwrap());
    assert_eq!(world.installed_of("nemo").rates, rates);
    assert_eq!(world.ends, []);
    world.check();
}

#[test]
fn a_pool_that_is_named_has_the_address() {
    let mut config = config();
    config.asks = true;
    config.named_pools.insert("gold".into(), vec!["10.1.0.1-10.1.0.2".parse().expect("a range")]);
    let mut world = World::new(
        config.clone(),
        secrets("[[subscriber]]\nuser = \"own\"\npassword = \"p\"\npool = \"gold\"\n"),
        7,
    );
    let of = |pool: &str| accepted(Profile { pool: Some(pool.into()), ..Profile::default() });
    let question = question_of(&mut world, host(0, &[Method::Pap]));
    answer(&mut world, &question, of("gold"));
    assert_eq!(world.hosts[0].ipv4().expect("an address").local, Ipv4Addr::new(10, 1, 0, 1));
    world.join(Host::new(1, place(1, 1), "own", "p", &ALL));
    world.run(seconds(3));
    assert_eq!(world.hosts[1].ipv4().expect("an address").local, Ipv4Addr::new(10, 1, 0, 2));
    assert_eq!(world.concentrator.free_addresses(), 4);
    // Another process has them, too; and both come back.
    let snapshot = world.act(|machine, step| machine.snapshot(step));
    let text = "[[subscriber]]\nuser = \"own\"\npassword = \"p\"\npool = \"gold\"\n";
    world.replace(config.clone(), secrets(text));
    let restored =
        world.act(|machine, step| machine.restore(step, snapshot, seconds(1)).expect("this version"));
    assert_eq!(restored.ended, 0);
    world.close(0);
    world.run(seconds(5));
    let question = question_of(&mut world, host(2, &[Method::Pap]));
    answer(&mut world, &question, of("gold"));
    assert_eq!(world.hosts[2].ipv4().expect("an address").local, Ipv4Addr::new(10, 1, 0, 1));
    world.close(2);
    world.run(seconds(5));
    let question = question_of(&mut world, host(3, &[Method::Pap]));
    answer(&mut world, &question, of("silver"));
    assert!(
        world.notices.iter().any(|notice| notice.contains("no pool of the name \"silver\"")),
        "{:?}",
        world.notices
    );
    config.named_pools.insert("other".into(), vec!["10.0.0.5-10.0.0.9".parse().expect("a range")]);
    assert!(config.check().expect_err("an overlap").to_string().contains("overlap"));
}

/// No pool has it, so that nothing else says whose it is; a host that got it by DHCPv6 would use what is routed to another one.
#[test]
fn a_prefix_that_is_granted_twice_is_the_first_users() {
    let mut config = config();
    config.asks = true;
    let mut world = World::new(config.clone(), secrets(""), 7);
    let prefix = "2001:db8:b::/56".parse().expect("a prefix");
    let granted = || {
        let prefixes = Prefixes { link: None, delegated: Some(prefix) };
        accepted(Profile { prefixes, ..Profile::default() })
    };
    let user =
        |number: u32, user: &str| Host::new(number, place(1, number as u16), user, "p", &[Method::Pap]);
    let question = question_of(&mut world, user(0, "nemo"));
    answer(&mut world, &question, granted());
    let question = question_of(&mut world, user(1, "ahab"));
    answer(&mut world, &question, granted());
    let delegated = |world: &World, user: &str| world.installed_of(user).prefixes.delegated;
    assert_eq!((delegated(&world, "nemo"), delegated(&world, "ahab")), (Some(prefix), None));
    assert!(
        world.notices.iter().any(|notice| notice.contains("in use by another session")),
        "{:?}",
        world.notices
    );
    // Its user may come from another place, and has it there.
    let question = question_of(&mut world, user(2, "nemo"));
    answer(&mut world, &question, granted());
    assert_eq!(delegated(&world, "nemo"), Some(prefix));
    // Another process knows whose it is, and when nobody has it anybody may.
    let snapshot = world.act(|machine, step| machine.snapshot(step));
    world.replace(config, secrets(""));
    world.act(|machine, step| machine.restore(step, snapshot, seconds(1)).expect("this version"));
    let question = question_of(&mut world, user(3, "ishmael"));
    answer(&mut world, &question, granted());
    assert_eq!((delegated(&world, "nemo"), delegated(&world, "ishmael")), (Some(prefix), None));
    world.close(2);
    world.run(seconds(5));
    let question = question_of(&mut world, user(4, "queequeg"));
    answer(&mut world, &question, granted());
    assert_eq!(delegated(&world, "queequeg"), Some(prefix));
}
