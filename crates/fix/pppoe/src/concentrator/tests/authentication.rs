//! Every method, and hosts that speak only one protocol.

use super::host::Host;
use super::world::{World, config, place, secrets};
use crate::concentrator::Config;
use crate::session::Method;
use std::time::Duration;

fn try_with(demanded: &[Method], allowed: &[Method], change: impl FnOnce(&mut Config)) -> World {
    let mut config = config();
    config.methods = demanded.to_vec();
    change(&mut config);
    let mut world = World::new(config, secrets("alice * wonder *\n"), 5);
    let alice = world.add(Host::new(1, place(1, 1), "alice", "wonder", allowed));
    world.connect(alice);
    world.run(Duration::from_secs(10));
    world.check();
    world
}

#[test]
fn every_method_is_taken_and_the_one_that_both_want_is_found() {
    let all = [Method::ChapMd5, Method::MsChapV2, Method::Pap];
    for method in all {
        assert_eq!(try_with(&[method], &all, |_| {}).up(), 1, "{method}");
        assert_eq!(try_with(&all, &[method], |_| {}).up(), 1, "{method}");
    }
    let none = try_with(&[Method::ChapMd5], &[Method::Pap], |_| {});
    assert_eq!((none.up(), none.concentrator.len()), (0, 0));
    assert!(!none.ends.is_empty());
}

#[test]
fn without_authentication_anybody_gets_an_address() {
    let world = try_with(&[], &[], |_| {});
    assert_eq!(world.up(), 1, "{:?} {:?}", world.ends, world.hosts[0].ends);
    assert_eq!(world.installed.values().next().unwrap().user.len(), 0);
}

#[test]
fn one_protocol_is_enough() {
    let world = try_with(&[Method::Pap], &[Method::Pap], |config| config.identifier = None);
    assert!(world.hosts[0].ipv4.is_some() && world.hosts[0].ipv6.is_none());
    let world = try_with(&[Method::Pap], &[Method::Pap], |config| {
        config.local = None;
        config.pool.clear();
    });
    assert!(world.hosts[0].ipv4.is_none() && world.hosts[0].ipv6.is_some());
}
