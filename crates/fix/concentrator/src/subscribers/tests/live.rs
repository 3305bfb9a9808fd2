//! Traffic of subscribers through namespaces.

use super::*;
use kernel::netlink::link_by_name;
use kernel::socket::Transmit;
use kernel::socket::filter::all_or_none;
use kernel::socket::{Packet, udp};
use link::parent::{Admission, Arrival, buffer, receive, receiver};
use link::running::{Event, Means, Request, Running};
use service::{Instances, Kind, StateDir};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{require, wait_for, wait_until};
use wire::VlanPattern;

const PATIENCE: Duration = testkit::PATIENCE;
const SERVER4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// A concentrator in one namespace, with the line to another.
struct Topology {
    near: Namespace,
    far: Namespace,
    subscribers: Subscribers,
    registry: Registry,
    local: MacAddress,
}

fn config(name: &str, vlans: VlanPattern, workers: usize) -> Config {
    Config {
        name: name.to_owned(),
        parent: "near0".to_owned(),
        vlans,
        addresses: vec!["10.0.0.1/32".parse().expect("an address")],
        mtu: 1492,
        workers,
        limits: Limits { sessions: 4096, prefixes: 4096 },
        uplinks: Vec::new(),
    }
}

impl Topology {
    fn new(pattern: VlanPattern, workers: usize) -> Topology {
        let (near, far) = (Namespace::new().expect("a namespace"), Namespace::new().expect("a namespace"));
        let veth = Veth { mtu: 1600, peer: Some(&far), queues: 2, ..Veth::pair("near0", "far0") };
        near.veth(&veth).expect("a pair");
        let (subscribers, registry, local) = near.inside(|| {
            let local = link_by_name("near0").expect("there").mac.expect("an address");
            let (subscribers, registry) = Subscribers::up(&config("bras0", pattern, workers)).expect("up");
            (subscribers, registry, local)
        });
        near.run("ip", &["route", "add", "10.64.0.0/16", "dev", "bras0"]).expect("a route");
        Topology { near, far, subscribers, registry, local }
    }

    fn drops(&self) -> BTreeMap<String, u64> {
        self.subscribers.counted().drops
    }
}

/// A socket that gets every frame of an interface.
fn all_frames(interface: &str) -> Packet {
    let admission = Admission { program: all_or_none(true).into(), has_tags: true, has_header: true };
    let index = link_by_name(interface).expect("there").index;
    receiver(index, &admission, |_| Ok(()), |_| Ok(())).expect("a socket")
}

/// Frames of PPPoE sessions that come until there are so many.
fn frames(socket: &Packet, count: usize) -> Vec<Vec<u8>> {
    let (mut buffer, mut all) = (buffer(), Vec::new());
    wait_until(format_args!("{count} frames"), || {
        loop {
            match receive(socket, &mut buffer).expect("received") {
                Arrival::Frame(received) => {
                    let protocol = wire::vlan::protocol(received.frame).expect("whole");
                    if protocol.ethertype == EtherType::PPPOE_SESSION {
                        all.push(received.frame.to_vec());
                    }
                }
                Arrival::Nothing => return all.len() >= count,
                other => panic!("{other:?}"),
            }
        }
    });
    all
}

/// Sends back what comes to a socket, until it is stopped.
fn echo(socket: &UdpSocket, is_over: &AtomicBool) {
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
    let mut buffer = [0; 2048];
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..length], from).expect("sent");
        }
    }
}

/// The end of the echo, also by a panic.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const LINES: [&str; 5] = ["none", "q:35", "ad:100,q:200", "ad:100,q:201", "ad:1,q:2,q:3,q:4"];

fn add(registry: &mut Registry, line: &str, number: u16) -> (Session, Number) {
    add_with(registry, session(line, number), number)
}

/// Adds a session with the address of this number.
fn add_with(registry: &mut Registry, session: Session, number: u16) -> (Session, Number) {
    let own = registry.insert(&session).expect("room");
    registry.add_address(own, address(number).into()).expect("free");
    (session, own)
}

#[test]
fn hundreds_of_sessions_talk_through_one_interface() {
    let Some(()) = require("netns", probe()) else { return };
    for workers in [1, 2] {
        let mut topology = Topology::new(VlanPattern::Any, workers);
        let all: Vec<(Session, Number)> = (0..600_u16)
            .map(|number| add(&mut topology.registry, LINES[usize::from(number) % LINES.len()], number))
            .collect();
        let mut sent = Vec::new();
        for (number, (session, _)) in (0..).zip(&all) {
            let own = IpAddr::V4(address(number));
            let payload = [&number.to_be_bytes()[..], &[0x5a; 40]].concat();
            sent.push(frame(session, topology.local, &datagram(own, SERVER4.into(), &payload)));
            // Attacks 16 and 17, which come back to nobody.
            let wrong = datagram(address(number + 1).into(), SERVER4.into(), b"another's address");
            sent.push(frame(session, topology.local, &wrong));
            let thief = Session { peer: MacAddress([2, 6, 6, 6, 6, 6]), ..*session };
            sent.push(frame(&thief, topology.local, &datagram(own, SERVER4.into(), b"another station")));
            let elsewhere = Session { vlans: vlans("q:666"), ..*session };
            sent.push(frame(&elsewhere, topology.local, &datagram(own, SERVER4.into(), b"another VLAN")));
        }
        let is_over = AtomicBool::new(false);
        let (near, far) = (&topology.near, &topology.far);
        let socket = near.inside(|| UdpSocket::bind((SERVER4, 7000)).expect("bound"));
        let back = thread::scope(|scope| {
            let over = Over(&is_over);
            scope.spawn(|| echo(&socket, &is_over));
            let back = far.inside(|| {
                let socket = all_frames("far0");
                let mut transmit = Transmit::open("far0").expect("a socket");
                // Slowly enough for the socket of the echo.
                let mut back = Vec::new();
                for some in sent.chunks(4 * 50) {
                    transmit.send(&some.iter().map(Vec::as_slice).collect::<Vec<_>>()).expect("sent");
                    back.extend(frames(&socket, 50));
                }
                back
            });
            drop(over);
            back
        });
        let mut seen = vec![0; all.len()];
        for frame in &back {
            let number = u16::from_be_bytes(*frame[frame.len() - 42..].first_chunk().expect("two"));
            let (session, _) = &all[usize::from(number)];
            let end = frame.len() - 42 - 28;
            assert_eq!(frame[..end], frame_to(session, topology.local, &frame[end..])[..end], "{number}");
            assert_eq!(frame[end + 16..end + 20], address(number).octets(), "{number}");
            seen[usize::from(number)] += 1;
        }
        assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
        // Those of the last frames may still be on their way.
        wait_until("1800 frames that are dropped", || topology.drops().values().sum::<u64>() >= 1800);
        let expected = [("other-source".to_owned(), 600), ("other-peer".to_owned(), 1200)];
        assert_eq!(topology.drops(), BTreeMap::from(expected));
        for (number, (_, own)) in all.iter().enumerate() {
            let usage = topology.registry.usage(*own).expect("there");
            let bytes = sent[4 * number].len() as u64;
            await_sent(&topology.registry, *own, 1);
            assert_eq!((usage.received.frames, usage.received.bytes), (1, bytes));
            assert_eq!((usage.sent.frames, usage.sent.bytes), (1, bytes));
            assert_eq!((usage.received_dropped, usage.sent_dropped), (1, 0));
            assert_eq!(topology.registry.heard(*own), Ok(1));
        }
        let counted = topology.subscribers.down();
        assert_eq!((counted.received.frames, counted.sent.frames), (600, 600));
        // What another test forks off has this process's descriptors for a moment, and with them the interface.
        wait_until("the end of the interface", || {
            topology.near.run("ip", &["link", "show", "bras0"]).is_err()
        });
    }
}

#[test]
fn the_filter_leaves_other_lines_and_control_out() {
    let Some(()) = require("netns", probe()) else { return };
    let mut topology = Topology::new("100.*".parse().expect("a pattern"), 1);
    let (session, own) = add(&mut topology.registry, "ad:100,q:200", 5);
    let (other, _) = add(&mut topology.registry, "q:35", 6);
    let packet = datagram(address(5).into(), SERVER4.into(), b"x");
    let good = frame(&session, topology.local, &packet);
    let mut control = good.clone();
    control[28..30].copy_from_slice(&[0xc0, 0x21]);
    let mut compressed = good.clone();
    compressed[28..30].copy_from_slice(&[0x21, 0x45]);
    let elsewhere = frame(&session, MacAddress([2, 0, 0x5e, 0, 0, 99]), &packet);
    let line = frame(&other, topology.local, &datagram(address(6).into(), SERVER4.into(), b"x"));
    topology.far.send("far0", [&control, &line, &elsewhere, &compressed, &good]).expect("sent");
    wait_until("the good frame", || topology.registry.heard(own) == Ok(1));
    assert_eq!(topology.drops(), BTreeMap::from([("ppp-compressed".to_owned(), 1)]));
}

/// The end of a link, also by a panic.
struct Ended(UnixStream);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.write_all(&[1]);
    }
}

/// Runs a link with a fixed session in the far namespace while `work` goes on.
fn with_link<T>(topology: &Topology, session: &Session, own: Ipv4Addr, work: impl FnOnce() -> T) -> T {
    let peer = session.peer.to_string();
    topology.far.run("ip", &["link", "set", "far0", "address", &peer]).expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let (stop, ask) = UnixStream::pair().expect("a pair");
    let tags = if session.vlans.count() == 0 { String::new() } else { format!("{},", session.vlans) };
    let encapsulation = format!("{tags}pppoe:{}@{}", session.id, topology.local);
    let request = Request {
        name: "sub0".to_owned(),
        parent: "far0".to_owned(),
        encapsulation: encapsulation.parse().expect("an encapsulation"),
        is_managed: true,
        addresses: Vec::new(),
        mtu: Some(1492),
        mss_clamp: false,
        means: Means::Simple,
    };
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let end = Ended(ask.try_clone().expect("a descriptor"));
        let (folder, far) = (folder.path(), &topology.far);
        let link = scope.spawn(move || {
            far.inside(|| {
                // What another test forks off has all descriptors, that of the former link's interface among them, until it has
                // become the program that it is to be.
                wait_until("the end of the former link", || link_by_name("sub0").is_err());
                let sockets = Instances::new(Kind::Link, StateDir::at(folder)).expect("a namespace");
                let mut link = Running::up(&request, &sockets, stop, ask).expect("up");
                ready.send(()).expect("somebody waits");
                link.run(&mut |_| {}).expect("ran");
                link.down()
            })
        });
        is_ready.recv().expect("up");
        let local = own.to_string();
        far.run("ip", &["addr", "add", &local, "peer", "10.0.0.1", "dev", "sub0"]).expect("an address");
        let done = work();
        drop(end);
        link.join().expect("no panic");
        done
    })
}

/// Waits until so many frames of a session are counted, which is after they have arrived.
fn await_sent(registry: &Registry, own: Number, frames: u64) {
    let sent = || registry.usage(own).expect("there").sent.frames;
    wait_until(format_args!("{frames} frames"), || sent() >= frames);
    assert_eq!(sent(), frames);
}

/// Sends so many bytes from one end of a connection to the other.
fn transfer(listener: (&Namespace, Ipv4Addr), from: &Namespace, bytes: usize) {
    let (namespace, address) = listener;
    let listener = namespace.inside(|| TcpListener::bind((address, 7080)).expect("bound"));
    thread::scope(|scope| {
        let taker = scope.spawn(move || {
            let (mut stream, _) = listener.accept().expect("accepted");
            stream.set_read_timeout(Some(PATIENCE)).expect("set");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("read");
            all
        });
        from.inside(|| {
            let mut stream = TcpStream::connect((address, 7080)).expect("connected");
            stream.set_write_timeout(Some(PATIENCE)).expect("set");
            let bytes: Vec<u8> = (0..bytes).map(|place| (place % 251) as u8).collect();
            stream.write_all(&bytes).expect("written");
        });
        let all = taker.join().expect("no panic");
        assert_eq!(all.len(), bytes);
        assert!(all.iter().enumerate().all(|(place, byte)| *byte == (place % 251) as u8));
    });
}

#[test]
fn tcp_goes_in_super_packets_while_sessions_come_and_go() {
    let Some(()) = require("netns", probe()) else { return };
    let mut topology = Topology::new(VlanPattern::Any, 2);
    let (session, own) = add(&mut topology.registry, "ad:100,q:200", 5);
    let mut registry = std::mem::replace(&mut topology.registry, Registry::new(LIMITS, topology.local));
    let is_over = AtomicBool::new(false);
    let changes = thread::scope(|scope| {
        let over = Over(&is_over);
        let changer = scope.spawn(|| {
            let mut changes = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                let some: Vec<Number> = (100..400)
                    .map(|number| add(&mut registry, LINES[usize::from(number) % LINES.len()], number).1)
                    .collect();
                for number in some {
                    registry.remove(number).expect("there");
                }
                changes += 300;
                thread::yield_now();
            }
            changes
        });
        with_link(&topology, &session, address(5), || {
            transfer((&topology.near, SERVER4), &topology.far, 8 << 20);
            transfer((&topology.far, address(5)), &topology.near, 8 << 20);
        });
        drop(over);
        changer.join().expect("no panic")
    });
    // The session's counters are behind those of all by an instruction.
    let usage = || registry.usage(own).expect("there");
    wait_until("equal counters", || {
        let counted = topology.subscribers.counted();
        (usage().received, usage().sent) == (counted.received, counted.sent)
    });
    let counted = topology.subscribers.counted();
    assert!(changes > 3000, "{changes}");
    assert!(counted.super_packets > 50 && counted.delivered > counted.deliveries * 5 / 4, "{counted:?}");
    assert_eq!(counted.drops, BTreeMap::new());
}

#[test]
fn who_sends_too_long_packets_gets_icmp_and_datagrams_become_fragments() {
    let Some(()) = require("netns", probe()) else { return };
    let mut topology = Topology::new(VlanPattern::Any, 1);
    let narrow = Session { mtu: 1000, ..session("q:35", 5) };
    let (_, own) = add_with(&mut topology.registry, narrow, 5);
    with_link(&topology, &narrow, address(5), || {
        // Sends so many bytes, in datagrams of `segment` bytes where that is given.
        let send = |may_fragment: bool, bytes: usize, segment: Option<u16>| {
            topology.near.inside(|| {
                let socket = UdpSocket::bind((SERVER4, 0)).expect("bound");
                udp::set_may_fragment(&socket, IpVersion::V4, may_fragment).expect("set");
                segment.into_iter().for_each(|bytes| udp::set_segment(&socket, bytes).expect("set"));
                socket.send_to(&vec![0x77; bytes], (address(5), 7001)).map_err(|error| error.raw_os_error())
            })
        };
        let taker = topology.far.inside(|| UdpSocket::bind((address(5), 7001)).expect("bound"));
        taker.set_read_timeout(Some(PATIENCE)).expect("set");
        let mut buffer = [0; 65_536];
        let mut take = |bytes: usize| {
            assert_eq!(taker.recv(&mut buffer).expect("received"), bytes);
            assert!(buffer[..bytes].iter().all(|byte| *byte == 0x77));
        };
        // May be fragmented: as it is, and beyond the MTU of the interface, which the kernel has fragmented before.
        for bytes in [900, 1200, 1464, 4000] {
            send(true, bytes, None).expect("sent");
            take(bytes);
        }
        // One, two and two; and six of the three that the kernel had made.
        await_sent(&topology.registry, own, 11);
        // Of a super-packet of four datagrams, each.
        send(true, 5000, Some(1300)).expect("sent");
        [1300, 1300, 1300, 1100].into_iter().for_each(&mut take);
        await_sent(&topology.registry, own, 11 + 8);
        // Must not: the kernel learns of it.
        assert_eq!(topology.subscribers.counted().too_big_told, 0);
        send(false, 1200, None).expect("sent");
        wait_until("EMSGSIZE", || send(false, 1200, None) == Err(Some(libc::EMSGSIZE)));
        send(false, 972, None).expect("sent");
        take(972);
        let counted = topology.subscribers.counted();
        assert!(counted.too_big_told > 0 && counted.drops["path-mtu"] >= counted.too_big_told, "{counted:?}");
    });
    // TCP finds out by itself: no segment size was lowered.
    let other = Session { mtu: 900, ..session("q:35", 6) };
    let (_, own) = add_with(&mut topology.registry, other, 6);
    with_link(&topology, &other, address(6), || {
        transfer((&topology.far, address(6)), &topology.near, 1 << 20)
    });
    let usage = topology.registry.usage(own).expect("there");
    assert!(usage.sent_dropped > 0, "{usage:?}");
    let longest = usage.sent.bytes / usage.sent.frames;
    assert!(longest <= 900 + 26, "{usage:?}");
}

#[test]
fn segment_sizes_are_lowered_to_what_the_session_takes() {
    let Some(()) = require("netns", probe()) else { return };
    let mut topology = Topology::new(VlanPattern::Any, 1);
    let narrow = Session { mtu: 1000, mss_clamp: true, ..session("none", 5) };
    add_with(&mut topology.registry, narrow, 5);
    with_link(&topology, &narrow, address(5), || {
        transfer((&topology.far, address(5)), &topology.near, 1 << 20);
        transfer((&topology.near, SERVER4), &topology.far, 1 << 20);
    });
    let counted = topology.subscribers.counted();
    assert_eq!(counted.drops, BTreeMap::new());
    assert!(counted.mss_clamped >= 4, "{counted:?}");
}

#[test]
fn the_parent_is_watched_and_its_new_address_taken() {
    let Some(()) = require("netns", probe()) else { return };
    let mut topology = Topology::new("none".parse().expect("a pattern"), 2);
    let again = config("bras1", "none".parse().expect("a pattern"), 1);
    let refused = topology.near.inside(|| Subscribers::up(&again).map(drop).expect_err("taken"));
    assert!(refused.to_string().contains("near0"), "{refused}");
    let carrier = |topology: &Topology| {
        topology.near.run("cat", &["/sys/class/net/bras0/carrier"]).expect("read").trim().to_owned()
    };
    assert_eq!(carrier(&topology), "1");
    let expected = [Event::ParentDown, Event::ParentMac, Event::ParentUp];
    let moved = MacAddress([2, 0, 0x5e, 0, 0, 0x77]);
    for (event, arguments) in expected.into_iter().zip([
        "link set near0 down",
        "link set near0 address 02:00:5e:00:00:77",
        "link set near0 up",
    ]) {
        topology.near.run("ip", &arguments.split(' ').collect::<Vec<_>>()).expect("set");
        wait_until(format!("{event:?}"), || {
            topology.subscribers.poll_changes().expect("looked").events.contains(&event)
        });
        assert_eq!(carrier(&topology), if event == Event::ParentUp { "1" } else { "0" });
    }
    topology.registry.set_local(moved);
    topology.subscribers.set_local(moved).expect("filtered");
    let (session, own) = add(&mut topology.registry, "none", 5);
    let packet = datagram(address(5).into(), SERVER4.into(), b"x");
    topology
        .far
        .send("far0", [frame(&session, topology.local, &packet), frame(&session, moved, &packet)])
        .expect("sent");
    wait_until("the frame to the new address", || topology.registry.heard(own) == Ok(1));
    assert_eq!(topology.drops(), BTreeMap::new());
}

#[test]
fn senders_of_ipv6_get_icmp() {
    let Some(()) = require("netns", probe()) else { return };
    let mut topology = Topology::new(VlanPattern::Any, 1);
    let (_, own) = add_with(&mut topology.registry, Session { mtu: 1300, ..session("q:35", 5) }, 5);
    topology.registry.add_prefix(own, "2001:db8:64::/64".parse().expect("a network")).expect("free");
    let on = "for name in all bras0; do echo 0 > /proc/sys/net/ipv6/conf/$name/disable_ipv6; done";
    topology.near.run("sh", &["-c", on]).expect("on");
    for arguments in ["addr add 2001:db8::1/128 dev bras0 nodad", "route add 2001:db8:64::/64 dev bras0"] {
        let arguments: Vec<&str> = ["-6"].into_iter().chain(arguments.split(' ')).collect();
        topology.near.run("ip", &arguments).expect("set");
    }
    topology.near.inside(|| {
        let socket = UdpSocket::bind("[2001:db8::1]:0").expect("bound");
        udp::set_may_fragment(&socket, IpVersion::V6, false).expect("set");
        let refused = wait_for("EMSGSIZE", || socket.send_to(&[7; 1400], "[2001:db8:64::9]:7001").err());
        assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE), "{refused}");
        let sent = || topology.registry.usage(own).expect("there").sent.frames;
        let before = sent();
        socket.send_to(&[7; 1300 - 48], "[2001:db8:64::9]:7001").expect("fits");
        wait_until("one more frame", || sent() > before);
    });
    assert!(topology.subscribers.counted().too_big_told > 0);
}
