//! How hosts learn of their IPv6 prefixes: over sessions, as their kernels and DHCPv6 clients request it.

use super::world::{ALL, Host, World, config, place, seconds, secrets};
use crate::concentrator::network::Prefixes;
use crate::concentrator::secrets::{Address, Profile};
use crate::concentrator::{Config, Granted, Reply};
use crate::dhcpv6::{HOST_PORT, SERVER_PORT};
use crate::framing::unwrapped;
use std::net::{IpAddr, Ipv6Addr};
use wire::emit::{Emit, Ipv6, Udp, checksum};
use wire::ip::IpProtocol;
use wire::pppoe::Stage;
use wire::{ipv6, transport};

const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const SOLICITATION: [u8; 8] = [133, 0, 0, 0, 0, 0, 0, 0];
/// A Solicit of a host for an address and a prefix.
const SOLICIT: [u8; 50] = *b"\x01abc\0\x01\0\x0a\0\x03\0\x01\x02\0\0\0\0\x01\0\x03\0\x0c\0\0\0\x01\0\0\0\0\0\0\0\0\0\x19\0\x0c\0\0\0\x02\0\0\0\0\0\0\0\0";

fn delegating() -> Config {
    let mut config = config();
    config.delegated = Some(("2001:db8:8000::/54".parse().unwrap(), 56));
    config.dns6 = vec!["2001:db8::53".parse().unwrap()];
    config
}

fn world(config: Config, users: &str) -> World {
    let mut world = World::new(config, secrets(users), 5);
    world.join(Host::new(0, place(1, 1), "alice", "a", &ALL));
    world.run(seconds(3));
    assert_eq!(world.up(), 1, "{:?}", world.notices);
    world
}

/// A packet of PPP around one of IPv6 with a right checksum.
fn packet(from: Ipv6Addr, to: Ipv6Addr, hop_limit: u8, protocol: IpProtocol, payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    checksum::fill(IpAddr::V6(from), IpAddr::V6(to), protocol, &mut payload).unwrap();
    let header = Ipv6 { hop_limit, ..Ipv6::new(protocol, from, to, payload.len() as u16) };
    let mut bytes = vec![0; ipv6::Header::LENGTH];
    header.emit(&mut bytes).unwrap();
    [&[0, 0x57][..], &bytes, &payload].concat()
}

fn solicitation() -> Vec<u8> {
    packet(HOST, ALL_ROUTERS, 255, IpProtocol::ICMPV6, &SOLICITATION)
}

fn dhcp(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; transport::Udp::LENGTH];
    let length = (bytes.len() + message.len()) as u16;
    let header = Udp { source_port: HOST_PORT, destination_port: SERVER_PORT, length, checksum: 0 };
    header.emit(&mut bytes).unwrap();
    bytes.extend(message);
    packet(HOST, ALL_SERVERS, 1, IpProtocol::UDP, &bytes)
}

/// What a packet of IPv6 in a session has behind its header, with its destination; `None`: it is another packet.
fn inside(stage: Stage, payload: &[u8]) -> Option<(Ipv6Addr, Vec<u8>)> {
    let (_, packet) = unwrapped(payload).ok().filter(|_| stage == Stage::Session)?;
    let (header, rest) = packet.strip_prefix(&[0, 0x57])?.split_first_chunk().unwrap();
    let header = ipv6::Header::of(header);
    assert_eq!((header.source(), header.hop_limit()), ("fe80::1".parse().unwrap(), 255));
    assert_eq!(header.check_length(rest.len()), Ok(rest.len()));
    let (from, to) = (header.source().into(), header.destination().into());
    assert!(checksum::is_right(from, to, header.next_header(), rest));
    Some((header.destination(), rest.to_vec()))
}

/// Advertisements that were sent so far.
fn advertisements(world: &World) -> Vec<Vec<u8>> {
    let all = world.sent.iter().filter_map(|(.., stage, payload)| inside(*stage, payload));
    let all = all.inspect(|(to, _)| assert_eq!(to.to_string(), "ff02::1"));
    all.map(|(_, message)| message).filter(|message| message[0] == 134).collect()
}

/// The answers to a packet of the host.
fn answers(world: &mut World, packet: &[u8]) -> Vec<Vec<u8>> {
    let answers = world.ask_as(0, packet);
    answers.iter().filter_map(|(stage, payload)| inside(*stage, payload)).map(|(_, inside)| inside).collect()
}

/// Whether an answer by DHCPv6 has these bytes of an address.
fn has(answer: &[u8], address: &str) -> bool {
    let bytes = address.parse::<Ipv6Addr>().unwrap().octets();
    answer.windows(16).any(|window| window == bytes)
}

#[test]
fn a_host_is_notified_of_its_prefix_at_once_and_again_and_again() {
    let mut world = world(delegating(), "alice * a *\n");
    let first = advertisements(&world);
    assert_eq!(first.len(), 1);
    assert!(has(&first[0], "2001:db8:f::") && has(&first[0], "2001:db8::53"));
    world.run(seconds(60));
    assert_eq!(advertisements(&world).len(), 3);
    world.run(seconds(7200));
    let count = advertisements(&world).len();
    assert!((7..=9).contains(&count), "{count} in two hours");
    assert_eq!(answers(&mut world, &solicitation()), first);
    let counters = world.concentrator.counters();
    assert_eq!((counters.advertisements, counters.configuration_ignored), (count as u64 + 1, 0));
    // Nobody sends anything for a session that is over.
    world.close(0);
    world.run(seconds(10));
    world.sent.clear();
    world.run(seconds(7200));
    assert!(world.sent.is_empty());
    world.check();
}

#[test]
fn a_host_is_assigned_its_prefixes_wherever_they_come_from() {
    let fixed = "[[subscriber]]\nuser = \"alice\"\npassword = \"a\"\ndelegated = \"2001:db8:b0c::/48\"\n";
    for (users, delegated) in [("alice * a *\n", "2001:db8:8000::"), (fixed, "2001:db8:b0c::")] {
        let mut world = world(delegating(), users);
        let prefixes = world.installed_of("alice").prefixes;
        assert_eq!(prefixes.delegated.unwrap().address(), delegated.parse::<IpAddr>().unwrap());
        assert_eq!(world.records[0].prefixes, prefixes);
        let [answer] = &answers(&mut world, &dhcp(&SOLICIT))[..] else { panic!("one answer") };
        assert_eq!((&answer[..4], &answer[8..12]), (&[0x02, 0x23, 0x02, 0x22][..], &b"\x02abc"[..]));
        assert!(has(answer, "2001:db8:f::1") && has(answer, delegated) && has(answer, "2001:db8::53"));
        world.close(0);
        world.run(seconds(10));
        world.check();
    }
    let mut config = delegating();
    config.asks = true;
    let mut world = World::new(config, secrets(""), 6);
    world.join(Host::new(0, place(1, 1), "nemo", "a", &ALL));
    world.run(seconds(2));
    let question = world.questions.pop().expect("a question");
    let prefixes = Prefixes {
        link: Some("2001:db8:a::/64".parse().unwrap()),
        delegated: Some("2001:db8:b::/48".parse().unwrap()),
    };
    let profile = Profile { address: Address::Pool, prefixes, ..Profile::default() };
    let granted = Box::new(Granted { profile, ..Granted::default() });
    world.act(|machine, step| {
        machine.answer(step, &question, Reply::Accepted { granted, success: None });
    });
    world.run(seconds(2));
    let [answer] = &answers(&mut world, &dhcp(&SOLICIT))[..] else { panic!("one answer") };
    assert!(has(answer, "2001:db8:a::1") && has(answer, "2001:db8:b::"));
}

#[test]
fn delegated_prefixes_are_nobody_elses_and_come_back() {
    let mut world = World::new(delegating(), secrets("a * p *\nb * p *\nc * p *\nd * p *\n"), 8);
    for (number, user) in ["a", "b", "c", "d"].into_iter().enumerate() {
        world.join(Host::new(number as u32, place(1, number as u16), user, "p", &ALL));
    }
    world.run(seconds(3));
    let given: std::collections::BTreeSet<_> =
        world.installed.values().map(|installed| installed.prefixes.delegated.unwrap().to_string()).collect();
    let expected = ["2001:db8:8000:", "2001:db8:8000:100:", "2001:db8:8000:200:", "2001:db8:8000:300:"];
    assert_eq!(given, expected.map(|start| format!("{start}:/56")).into());
    // A fifth goes on without one, and the operator learns of it.
    world.act(|machine, step| machine.reload(step, secrets("a * p *\nb * p *\nc * p *\nd * p *\ne * p -\n")));
    world.join(Host::new(9, place(1, 9), "e", "p", &ALL));
    world.run(seconds(3));
    let fifth = world.installed_of("e").prefixes;
    assert!(fifth.link.is_some() && fifth.delegated.is_none());
    assert!(world.notices.iter().any(|notice| notice.contains("2001:db8:8000::/54")), "{:?}", world.notices);
    // Another process goes on with them, and hosts are notified again in time, not all at once.
    let snapshot = world.act(|concentrator, step| concentrator.snapshot(step));
    let before: Vec<_> = world.installed.values().map(|installed| installed.prefixes).collect();
    world.replace(delegating(), secrets("a * p *\nb * p *\nc * p *\nd * p *\ne * p -\n"));
    world.sent.clear();
    world.act(|concentrator, step| concentrator.restore(step, snapshot, seconds(1)).unwrap());
    let after: Vec<_> = world.installed.values().map(|installed| installed.prefixes).collect();
    assert_eq!((after, world.sent.len()), (before, 0));
    world.run(seconds(1800));
    let sent = advertisements(&world).len();
    assert!((5..=7).contains(&sent), "{sent}");
    let [answer] = &answers(&mut world, &dhcp(&SOLICIT))[..] else { panic!("one answer") };
    assert!(has(answer, &world.installed_of("a").prefixes.delegated.unwrap().ipv6().unwrap().to_string()));
    for host in 0..4 {
        world.close(host);
    }
    world.run(seconds(10));
    world.join(Host::new(10, place(1, 10), "b", "p", &ALL));
    world.run(seconds(3));
    assert!(world.installed_of("b").prefixes.delegated.is_some());
    world.check();
}

#[test]
fn what_is_no_request_and_what_is_too_much_has_no_answer() {
    let mut world = world(delegating(), "alice * a *\n");
    let link = |payload: &[u8]| packet(HOST, ALL_ROUTERS, 255, IpProtocol::ICMPV6, payload);
    let mut wrong_sum = solicitation();
    *wrong_sum.last_mut().unwrap() ^= 1;
    let global = "2001:db8:f::9".parse().unwrap();
    let whole = dhcp(&SOLICIT);
    let wrong = [
        wrong_sum,
        packet(HOST, ALL_ROUTERS, 64, IpProtocol::ICMPV6, &SOLICITATION),
        link(&[134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        link(&SOLICITATION[..7]),
        packet(HOST, ALL_SERVERS, 1, IpProtocol::TCP, &[0; 20]),
        packet(global, ALL_SERVERS, 1, IpProtocol::UDP, &whole[42..]),
        packet(HOST, "fe80::1".parse().unwrap(), 1, IpProtocol::UDP, &whole[42..]),
        vec![0, 0x57],
        vec![0, 0x57, 0x45],
        whole[..whole.len() - 1].to_vec(),
        dhcp(b"\x01ab"),
        dhcp(b"\x0dabc"),
    ];
    let count = wrong.len() as u64;
    for packet in wrong {
        world.run(seconds(1));
        assert_eq!(world.ask_as(0, &packet), [], "{packet:02x?}");
    }
    assert_eq!(world.concentrator.counters().configuration_ignored, count);
    world.run(seconds(20));
    // A host that never stops has a few at once, and one a second from then on.
    let at_once: usize = (0..1000).map(|_| answers(&mut world, &solicitation()).len()).sum();
    assert_eq!(at_once, 8);
    world.run(seconds(3));
    let later: usize = (0..1000).map(|_| answers(&mut world, &dhcp(&SOLICIT)).len()).sum();
    assert_eq!(later, 3);
    world.check();
    // A session without IPv6 has none of it.
    let mut without = config();
    without.identifier = None;
    without.prefixes = None;
    let mut world = World::new(without, secrets("alice * a *\n"), 5);
    world.join(Host::new(0, place(1, 1), "alice", "a", &ALL));
    world.run(seconds(3));
    assert_eq!(world.ask_as(0, &solicitation()), []);
    assert!(advertisements(&world).is_empty());
}
