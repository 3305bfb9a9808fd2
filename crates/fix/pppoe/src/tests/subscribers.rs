//! Hundreds of subscribers over bad wires.

use super::world::{Host, Wires, World, config, place, seconds, secrets};
use crate::concentrator::accounting::Ended;
use crate::concentrator::{End, Refusal};
use crate::session::{Closed, Method, Phase};
use std::collections::BTreeSet;
use std::fmt::Write;

const HOSTS: u32 = 240;

/// With these pools, of which every tenth subscriber needs none where `has_fixed`.
fn world(seed: u64, pools: &[&str], has_fixed: bool) -> World {
    let mut config = config();
    config.pool = pools.iter().map(|range| range.parse().unwrap()).collect();
    config.interim = Some(seconds(30));
    let users = (0..HOSTS).fold(String::new(), |mut text, user| {
        let is_fixed = has_fixed && user % 10 == 0;
        let address = if is_fixed { format!("10.0.9.{}", user / 10 + 1) } else { "*".to_owned() };
        writeln!(text, "user-{user} * secret-{user} {address}").unwrap();
        text
    });
    let mut world = World::new(config, secrets(&users), seed);
    for user in 0..HOSTS {
        let method = [Method::Pap, Method::ChapMd5, Method::MsChapV2][user as usize % 3];
        let vlan = (user / 8) as u16;
        let (name, password) = (format!("user-{user}"), format!("secret-{user}"));
        world.add(Host::new(user, place(vlan, 7), &name, &password, &[method]).persisting());
    }
    world
}

/// Loss of 30 %, duplication and reordering, hosts that die without a word and come back, NCPs that flap: every session comes up
/// or ends with a reason, and no session, address or timer is left behind.
#[test]
fn every_session_comes_up_or_ends_with_a_reason() {
    let mut world = world(1, &["10.0.1.0-10.0.1.99", "10.0.2.0-10.0.2.199"], true);
    world.wires = Wires { loss: 300, duplication: 100, reordering: 200 };
    for host in 0..HOSTS as usize {
        world.connect(host);
    }
    let mut ever_up = BTreeSet::new();
    for _ in 0..140 {
        world.run(seconds(1));
        ever_up.extend((0..HOSTS as usize).filter(|host| world.hosts[*host].is_up()));
        for host in 0..HOSTS as usize {
            if !world.hosts[host].is_dead {
                world.connect(host);
            }
        }
        for _ in 0..2 {
            let victim = world.pick(HOSTS as usize);
            disturb(&mut world, victim);
        }
    }
    world.check();
    assert!(ever_up.len() > HOSTS as usize * 9 / 10, "{} of {HOSTS} came up", ever_up.len());
    assert!(!world.ends.is_empty() && world.concentrator.counters().opened > u64::from(HOSTS));

    // The wires are fixed: everybody comes up, and both ends agree on it.
    world.wires = Wires::default();
    // A host that is still closing begins anew once it has closed.
    for seconds_until_the_next in [60, 240] {
        for host in 0..HOSTS as usize {
            revive(&mut world, host);
        }
        world.run(seconds(seconds_until_the_next));
    }
    world.check();
    let down: Vec<_> =
        world.hosts.iter().filter(|host| !host.is_up()).map(|host| (&host.user, host.ends())).collect();
    assert!(down.is_empty(), "{down:?}");
    assert_eq!(world.concentrator.len(), HOSTS as usize);
    assert!(world.concentrator.sessions(world.now).all(|session| session.phase == Phase::Open));
    for host in &world.hosts {
        let installed = world.installed.values().find(|installed| installed.identity.station == host.mac);
        let installed = installed.unwrap_or_else(|| panic!("{} is not installed", host.user));
        let (ipv4, local) = (installed.ipv4, host.ipv4().map(|ipv4| ipv4.local));
        // The host whose protocol was ended in its name does not learn of it when the answer is lost; and when all answers to
        // ten requests are, the host gives up a protocol that is up at the other end.
        let agrees = ipv4.is_none() || ipv4.map(|(_, address)| address) == local;
        assert!(agrees || host.has_given_up_ipv4(), "{} {ipv4:?} {local:?}", host.user);
        assert_eq!(Some(installed.identity.number), host.number());
    }

    // Everybody dies at once.
    world.hosts.iter_mut().for_each(|host| host.is_dead = true);
    world.run(seconds(120));
    world.check();
    assert_eq!((world.concentrator.len(), world.concentrator.half_open()), (0, 0));
    assert_eq!(world.concentrator.free_addresses(), 300);
    assert_eq!(world.concentrator.free_prefixes(), Some(1 << 16));
    assert!(world.concentrator.deadline().is_none() && world.installed.is_empty());
}

/// What is dead comes back, and what was closed begins anew.
fn revive(world: &mut World, host: usize) {
    if std::mem::take(&mut world.hosts[host].is_dead) {
        world.hosts[host].reset();
    }
    world.connect(host);
}

fn disturb(world: &mut World, victim: usize) {
    let (place, mac) = (world.hosts[victim].place, world.hosts[victim].mac);
    match world.pick(6) {
        // It loses power, and comes back some time later.
        0 | 1 => {
            world.hosts[victim].reset();
            world.hosts[victim].is_dead = true;
        }
        2 | 3 => revive(world, victim),
        // One of its network protocols ends and begins again.
        4 if world.hosts[victim].is_up() => {
            let protocol = if world.chance(500) { 0x21 } else { 0x57 };
            let frame = world.hosts[victim].send_raw(&[0x80, protocol, 5, 200, 0, 4]);
            world.inject(place, mac, frame);
        }
        _ => world.close(victim),
    }
}

/// More subscribers than addresses: those who got none learn why and try again, and get the first that is free.
#[test]
fn a_pool_that_is_too_small_is_shared_in_turn() {
    let mut world = world(9, &["10.0.1.0-10.0.1.99"], false);
    for host in 0..HOSTS as usize {
        world.connect(host);
    }
    world.run(seconds(20));
    assert_eq!((world.up(), world.concentrator.free_addresses()), (100, 0));
    let refused = world.hosts.iter().filter(|host| !host.is_up());
    assert!(refused.clone().all(|host| host.ended_with("all addresses are in use")));
    for host in 0..HOSTS as usize {
        if world.hosts[host].is_up() {
            world.close(host);
        }
    }
    world.run(seconds(20));
    assert_eq!(world.up(), 100);
    let is_full = |end: &End| matches!(end.cause, Ended::Refused(Refusal::NoAddress(_)));
    let left: Vec<&End> = world.ends.iter().filter(|end| !is_full(end)).collect();
    assert_eq!(left.len(), 100, "those who left");
    assert!(left.iter().all(|end| matches!(end.cause, Ended::Ppp(Closed::PeerEnded { .. }))));
    world.check();
}
