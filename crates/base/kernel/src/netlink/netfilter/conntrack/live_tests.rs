//! With the kernel, in namespaces: connections that netlink made, and one of packets that a router translates.

use super::{
    Connection, ConnectionChange, ConnectionEvents, Direction, Keep, Key, NEW, PROTOINFO, STATE, SUBSYSTEM,
    TCP, TIMEOUT, TUPLE_ORIG, TUPLE_REPLY, Update, ZONE, each, remove,
};
use crate::netlink::Netlink;
use crate::netlink::address::family;
use crate::netlink::netfilter::request;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use std::net::{IpAddr, UdpSocket};
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, program, require, wait_for};

const TCP_PROTOCOL: u8 = 6;
const UDP_PROTOCOL: u8 = 17;
const ESTABLISHED: u8 = 3;
/// Seconds that connections live when they are made, and that they are given.
const SHORT: u32 = 10_000;
const LONG: u32 = 400_000;

fn direction(source: &str, destination: &str, ports: (u16, u16)) -> Direction {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    Direction { source: address(source), destination: address(destination), ports: Some(ports) }
}

/// Makes a connection without any packet; TCP is established.
fn create(original: &Direction, protocol: u8, zone: u16) {
    let Direction { source, destination, ports } = *original;
    let reply = Direction { source: destination, destination: source, ports: ports.map(|(a, b)| (b, a)) };
    let message = original.write(request(SUBSYSTEM, NEW, family(source)), TUPLE_ORIG, protocol);
    let message = reply.write(message, TUPLE_REPLY, protocol).with(TIMEOUT, &SHORT.to_be_bytes());
    let message = if zone == 0 { message } else { message.with(ZONE, &zone.to_be_bytes()) };
    let message = match protocol {
        TCP_PROTOCOL => {
            message.with_nest(PROTOINFO, |info| info.with_nest(TCP, |tcp| tcp.with(STATE, &[ESTABLISHED])))
        }
        _ => message,
    };
    let mut netlink = Netlink::netfilter().expect("a socket");
    netlink.set(&message, NLM_F_CREATE | NLM_F_EXCL).expect("a connection");
}

/// What is compared of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    original: Direction,
    protocol: u8,
    zone: u16,
    liberal: Option<bool>,
    timeout: Option<u32>,
}

impl Seen {
    fn of(connection: &Connection<'_>) -> Seen {
        Seen {
            original: connection.original().expect("a direction"),
            protocol: connection.protocol().expect("a protocol"),
            zone: connection.zone(),
            liberal: connection.is_liberal(),
            timeout: connection.timeout(),
        }
    }

    fn is(&self, key: &(Direction, u8, u16)) -> bool {
        (self.original, self.protocol, self.zone) == *key
    }
}

fn all() -> Vec<Seen> {
    let mut all = Vec::new();
    each(|connection| all.push(Seen::of(&connection))).expect("connections");
    all
}

/// A namespace whose kernel tracks connections.
fn namespace() -> Option<Namespace> {
    require("netns", probe())?;
    let namespace = Namespace::new().expect("a namespace");
    let tracks =
        namespace.inside(|| each(|_| {}).map_err(|refusal| Missing(format!("conntrack: {refusal}"))));
    require("conntrack", tracks)?;
    Some(namespace)
}

/// The changes that wait, none of which was lost.
fn changes(events: &mut ConnectionEvents) -> Vec<(ConnectionChange, Seen)> {
    let mut changes = Vec::new();
    let lost = events.each(|change, connection| changes.push((change, Seen::of(&connection))));
    assert!(!lost.expect("changes"));
    changes
}

fn keys() -> [(Direction, u8, u16); 4] {
    let four = direction("10.7.0.2", "198.51.100.7", (5000, 443));
    let six = direction("2001:db8::2", "2001:db8:1::7", (5000, 443));
    [(four, TCP_PROTOCOL, 0), (four, TCP_PROTOCOL, 5), (four, UDP_PROTOCOL, 0), (six, TCP_PROTOCOL, 0)]
}

fn update((original, protocol, zone): (Direction, u8, u16)) -> Update {
    Update { original, protocol, zone, timeout: Some(LONG), liberal: protocol == TCP_PROTOCOL }
}

#[test]
fn connections_are_kept_alive_and_liberal_by_their_key() {
    let Some(namespace) = namespace() else { return };
    namespace.inside(|| {
        let keys = keys();
        keys.iter().for_each(|(original, protocol, zone)| create(original, *protocol, *zone));
        let mut keep = Keep::open().expect("a socket");
        // All but that of zone 5, and one that does not exist.
        let missing = direction("10.7.0.3", "198.51.100.7", (1, 2));
        let chosen = [keys[0], keys[2], keys[3], (missing, UDP_PROTOCOL, 0)];
        assert_eq!(keep.update(&chosen.map(update)).expect("changed"), 3);
        let all = all();
        assert_eq!(all.len(), keys.len(), "{all:?}");
        for seen in all {
            let is_changed = seen.zone == 0;
            let (timeout, is_tcp) = (seen.timeout.expect("a timeout"), seen.protocol == TCP_PROTOCOL);
            assert_eq!(timeout > SHORT, is_changed, "{seen:?}");
            assert!(timeout <= LONG);
            assert_eq!(seen.liberal, is_tcp.then_some(is_changed), "{seen:?}");
        }
        // Nothing to change is a question whether they exist.
        let question = |key| Update { timeout: None, liberal: false, ..update(key) };
        assert_eq!(keep.update(&keys.map(question)).expect("there"), 4);
        assert_eq!(keep.update(&[]).expect("none"), 0);
        let mut ended = Vec::new();
        keep.update_each(&chosen.map(question), |place| ended.push(place)).expect("there");
        assert_eq!(ended, [3]);
        let chosen = chosen.map(|(original, protocol, zone)| Key { original, protocol, zone });
        let mut found = Vec::new();
        keep.query(&chosen, |place, connection| found.push((place, Seen::of(&connection)))).expect("there");
        assert_eq!(found.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(found.iter().all(|(place, seen)| seen.is(&keys[[0, 2, 3][*place]])), "{found:?}");
    });
}

#[test]
fn many_connections_are_changed_by_few_calls() {
    const COUNT: u16 = 300;
    let Some(namespace) = namespace() else { return };
    namespace.inside(|| {
        let of = |port: u16| (direction("10.7.0.2", "198.51.100.7", (port, 53)), UDP_PROTOCOL, 0);
        let updates: Vec<Update> = (1..=2 * COUNT).map(of).map(update).collect();
        (1..=COUNT)
            .map(|port| of(2 * port))
            .for_each(|(original, protocol, zone)| create(&original, protocol, zone));
        let mut keep = Keep::open().expect("a socket");
        assert_eq!(keep.update(&updates).expect("changed"), usize::from(COUNT));
        let all = all();
        assert_eq!(all.len(), usize::from(COUNT));
        assert!(all.iter().all(|seen| seen.timeout.is_some_and(|timeout| timeout > SHORT)));
    });
}

#[test]
fn changes_are_notified_up_to_the_end() {
    let Some(namespace) = namespace() else { return };
    namespace.inside(|| {
        let mut events = ConnectionEvents::open(1 << 20).expect("a socket");
        let keys = keys();
        keys.iter().for_each(|(original, protocol, zone)| create(original, *protocol, *zone));
        let new = changes(&mut events);
        for key in &keys {
            let is_new = |(change, seen): &(_, Seen)| *change == ConnectionChange::Changed && seen.is(key);
            assert!(new.iter().any(is_new), "{key:?} not in {new:?}");
        }
        let mut keep = Keep::open().expect("a socket");
        assert_eq!(keep.update(&keys.map(update)).expect("changed"), 4);
        assert!(!changes(&mut events).is_empty());
        events.exclude(&keep).expect("a filter");
        assert_eq!(keep.update(&keys.map(update)).expect("changed"), 4);
        assert_eq!(changes(&mut events), []);
        for key in &keys {
            assert!(remove(&key.0, key.1, key.2).expect("removed"));
            assert!(!remove(&key.0, key.1, key.2).expect("none"));
            let ended = changes(&mut events);
            let is_end = |(change, seen): &(_, Seen)| *change == ConnectionChange::Destroyed && seen.is(key);
            assert!(ended.len() == 1 && ended.iter().all(is_end), "{key:?}: {ended:?}");
        }
        assert_eq!(all(), []);
    });
}

#[test]
fn what_does_not_fit_into_the_buffer_is_lost_and_said_to_be() {
    let Some(namespace) = namespace() else { return };
    namespace.inside(|| {
        let mut events = ConnectionEvents::open(1).expect("the least that there is");
        let of = |port: u16| direction("10.7.0.2", "198.51.100.7", (port, 53));
        (1..=100).for_each(|port| create(&of(port), UDP_PROTOCOL, 0));
        let mut count = 0;
        assert!(events.each(|_, _| count += 1).expect("changes"));
        assert!((1..100).contains(&count), "{count}");
        assert_eq!(changes(&mut events), []);
        create(&of(101), UDP_PROTOCOL, 0);
        assert_eq!(changes(&mut events).len(), 1);
    });
}

/// A station, a router that masquerades, and a server.
fn router() -> Option<[Namespace; 3]> {
    let router = namespace()?;
    let nft = require("nft", program("nft"))?;
    let [station, server] = [(); 2].map(|()| Namespace::new().expect("a namespace"));
    router.veth(&Veth { peer: Some(&station), ..Veth::pair("lan0", "eth0") }).expect("a pair");
    router.veth(&Veth { peer: Some(&server), ..Veth::pair("wan0", "eth0") }).expect("a pair");
    let ip = |namespace: &Namespace, arguments: &str| {
        namespace.run("ip", &arguments.split(' ').collect::<Vec<_>>()).expect(arguments);
    };
    ip(&router, "address add 10.7.0.1/24 dev lan0");
    ip(&router, "address add 10.8.0.1/24 dev wan0");
    ip(&station, "address add 10.7.0.2/24 dev eth0");
    ip(&station, "route add default via 10.7.0.1");
    ip(&server, "address add 10.8.0.2/24 dev eth0");
    router.run("sysctl", &["-qw", "net.ipv4.ip_forward=1"]).expect("forwarding");
    let rules =
        "table ip t { chain c { type nat hook postrouting priority 100; oifname \"wan0\" masquerade; }; }";
    router.run(nft.to_str().expect("UTF-8"), &[rules]).expect("rules");
    Some([station, router, server])
}

#[test]
fn a_router_notifies_what_its_packets_began_with_both_directions() {
    let Some([station, router, server]) = router() else { return };
    let mut events = router.inside(|| ConnectionEvents::open(1 << 20).expect("a socket"));
    let server_socket = server.inside(|| UdpSocket::bind("10.8.0.2:7000").expect("a socket"));
    let station_socket = station.inside(|| UdpSocket::bind("10.7.0.2:6000").expect("a socket"));
    for socket in [&server_socket, &station_socket] {
        socket.set_read_timeout(Some(testkit::PATIENCE)).expect("a limit");
    }
    let mut bytes = [0; 8];
    station_socket.send_to(b"there", "10.8.0.2:7000").expect("sent");
    let (_, from) = server_socket.recv_from(&mut bytes).expect("received");
    server_socket.send_to(b"back", from).expect("sent");
    station_socket.recv(&mut bytes).expect("received");
    let original = direction("10.7.0.2", "10.8.0.2", (6000, 7000));
    let reply =
        Direction { source: original.destination, destination: from.ip(), ports: Some((7000, from.port())) };
    let mut was_replied = false;
    wait_for("a notification of the reply", || {
        let lost = events.each(|change, connection| {
            assert_eq!(change, ConnectionChange::Changed);
            let directions = (connection.original(), connection.reply());
            assert_eq!(directions, (Some(original), Some(reply)));
            was_replied |= connection.is_replied();
        });
        assert!(!lost.expect("changes"));
        was_replied.then_some(())
    });
    router.inside(|| assert!(remove(&original, UDP_PROTOCOL, 0).expect("removed")));
    let mut ended = Vec::new();
    wait_for("a notification of the end", || {
        events.each(|change, connection| ended.push((change, connection.original()))).expect("changes");
        ended.contains(&(ConnectionChange::Destroyed, Some(original))).then_some(())
    });
}
