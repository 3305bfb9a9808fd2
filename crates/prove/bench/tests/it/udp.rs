//! Both ends of a test with datagrams, over the loopback of a namespace, and what others send to the sink.

use rxlane_bench::payload::{FlowId, Header, Kind};
use rxlane_bench::udp::{self, Received, Receiving, Sending, Sent, UdpError};
use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{require, wait_until};

const PORT: u16 = 9100;

fn namespace() -> Option<Namespace> {
    require("netns", probe())?;
    let namespace = Namespace::new().expect("a namespace");
    namespace.inside(|| {
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0");
    });
    Some(namespace)
}

fn receiving() -> Receiving {
    Receiving {
        address: SocketAddr::from(([0_u16; 8], PORT)),
        // Nothing has to be lost because a test had to wait for the CPU.
        buffer: Some(64 << 20),
        length: Some(Duration::from_secs(30)),
        once: true,
        ..Receiving::default()
    }
}

fn sending(target: &str, count: u64) -> Sending {
    Sending {
        targets: vec![format!("{target}:{PORT}").parse().expect("an address")],
        payload: 32,
        count: Some(count),
        ..Sending::default()
    }
}

fn send(sending: &Sending) -> Result<Sent, UdpError> {
    udp::send(sending, None, &AtomicBool::new(false), &mut |_| ControlFlow::Continue(()))
}

/// Receives what `work` sends; it is called when the sockets are there.
fn received<T>(namespace: &Namespace, receiving: &Receiving, work: impl FnOnce() -> T + Send) -> (Received, T)
where
    T: Send,
{
    let stop = AtomicBool::new(false);
    // Sockets of the port, and those of them in which nothing waits (/proc/net/udp).
    let sockets = || {
        let table =
            |name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        let tables = table("udp") + &table("udp6");
        let own = tables.lines().filter(|line| line.contains(&format!(":{PORT:04X} 0000")));
        let own: Vec<bool> = own.map(|line| line.contains(":00000000 00:")).collect();
        (own.len(), own.iter().filter(|is_empty| **is_empty).count())
    };
    let threads = usize::from(receiving.threads);
    namespace.inside(|| {
        // Programs that other tests start hold descriptors of this process until they run.
        wait_until("the port to be free", || sockets().0 == 0);
        // Threads are in the namespace of the one that starts them.
        thread::scope(|scope| {
            let sink = scope.spawn(|| {
                let listening = receiving.listen().expect("sockets");
                let go_on = &mut |_: &_| ControlFlow::Continue(());
                udp::receive(receiving, listening, None, &stop, go_on).expect("received")
            });
            wait_until("it to listen", || sink.is_finished() || sockets().0 >= threads);
            let done = work();
            if !receiving.once {
                wait_until("it to take all", || sockets().1 >= threads);
                stop.store(true, Ordering::Relaxed);
            }
            (sink.join().expect("a thread"), done)
        })
    })
}

#[test]
fn all_that_is_sent_is_counted() {
    let Some(namespace) = namespace() else { return };
    let mut cases = Vec::new();
    for target in ["127.0.0.1", "[::1]"] {
        for payload in [16, 18, 1472, 9000] {
            cases.push((Sending { payload, ..sending(target, 5000) }, receiving()));
        }
        cases.push((Sending { segments: 40, payload: 1000, ..sending(target, 9999) }, receiving()));
        let coalesce = Receiving { coalesce: true, ..receiving() };
        cases.push((Sending { segments: 40, payload: 1000, ..sending(target, 9999) }, coalesce));
    }
    let many = Sending { ports: 40, threads: 3, first_port: Some(20_000), ..sending("127.0.0.1", 10_000) };
    let other = format!("127.0.0.2:{PORT}").parse().expect("an address");
    let targets = many.targets.iter().copied().chain([other]).collect();
    cases.push((Sending { targets, ..many }, Receiving { threads: 4, ..receiving() }));
    for (sending, receiving) in cases {
        let (received, sent) = received(&namespace, &receiving, || send(&sending).expect("sent"));
        let count = sending.count.expect("one");
        let (counts, bytes) = (&received.counts, count * sending.payload as u64);
        let arrived = [sent.counts.packets, counts.packets, counts.expected, counts.bytes];
        assert_eq!(arrived, [count, count, count, bytes], "{sending:?} {received:?}");
        let wrong =
            [counts.missing, counts.foreign, counts.reordered, counts.duplicates, received.before_first];
        assert_eq!(wrong, [0; 5], "{sending:?} {counts:?}");
        assert_eq!((counts.flows, counts.ended), (sent.flows, sent.flows), "{sending:?}");
        assert_eq!(received.socket_drops, Some(0), "{sending:?}");
        // 80 flows find every socket.
        assert!(received.by_thread.iter().all(|packets| *packets > 0), "{received:?}");
        assert_eq!(received.by_thread.iter().sum::<u64>(), count);
        // The loopback's MTU holds all of these; the sink believes in 1500.
        if sending.payload <= 1452 {
            assert_eq!(counts.wire, sent.counts.wire, "{sending:?}");
        }
    }
}

#[test]
fn payloads_too_short_for_a_number_are_counted_and_their_loss_is_unknown() {
    let Some(namespace) = namespace() else { return };
    for (payload, unnumbered, foreign) in [(0, 0, 3000), (3, 0, 3000), (4, 3000, 0), (15, 3000, 0)] {
        let sending = Sending { payload, ..sending("127.0.0.1", 3000) };
        let receiving = Receiving { once: false, ..receiving() };
        let (received, _) = received(&namespace, &receiving, || send(&sending).expect("sent"));
        let counts = received.counts;
        assert_eq!(
            (counts.packets, counts.unnumbered, counts.foreign),
            (3000, unnumbered, foreign),
            "{payload}"
        );
        assert_eq!((counts.expected, counts.flows, counts.ended), (0, 1, 1));
    }
}

#[test]
fn what_the_kernel_drops_is_what_is_lost() {
    let Some(namespace) = namespace() else { return };
    // Room for a few datagrams, and far more of them than a thread takes while it is not on a CPU.
    let receiving = Receiving { buffer: Some(4096), ..receiving() };
    let sending = Sending { payload: 1000, batch: 1024, ..sending("127.0.0.1", 200_000) };
    let (received, sent) = received(&namespace, &receiving, || send(&sending).expect("sent"));
    let counts = received.counts;
    assert_eq!((sent.counts.packets, counts.expected), (200_000, 200_000), "{received:?}");
    assert!(counts.missing > 0, "{received:?}");
    assert_eq!(counts.packets + counts.missing, 200_000, "{received:?}");
    // Beginning and end are dropped as well, where there is no room for them.
    let dropped = received.socket_drops.expect("the kernel reports it");
    assert!((counts.missing..=counts.missing + 7).contains(&dropped), "{received:?}");
}

/// A datagram of a test, made by hand.
fn datagram(kind: Kind, flow: u16, sequence: u64) -> Vec<u8> {
    [&Header { kind, id: FlowId { run: 7, flow }, sequence }.bytes()[..], &[0; 16]].concat()
}

/// What the sink makes of these datagrams.
fn received_of(namespace: &Namespace, receiving: &Receiving, datagrams: &[Vec<u8>]) -> Received {
    let all = received(namespace, receiving, || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(("127.0.0.1", PORT)).expect("a target");
        for datagram in datagrams {
            socket.send(datagram).expect("sent");
        }
    });
    all.0
}

#[test]
fn reordering_duplicates_and_loss_are_kept_apart() {
    let Some(namespace) = namespace() else { return };
    let mut datagrams = vec![datagram(Kind::Begin, 0, 0)];
    // 0 and 3 are lost, 5 comes behind 7, 8 twice.
    datagrams.extend([1, 2, 4, 6, 7, 5, 8, 8, 9].map(|sequence| datagram(Kind::Data, 0, sequence)));
    datagrams.extend([12, 12].map(|sequence| datagram(Kind::End, 0, sequence)));
    // Nobody heard this one begin.
    datagrams.extend([100, 102].map(|sequence| datagram(Kind::Data, 1, sequence)));
    datagrams.push(datagram(Kind::End, 1, 103));
    let received = received_of(&namespace, &receiving(), &datagrams);
    let counts = &received.counts;
    assert_eq!((counts.packets, counts.flows, counts.ended), (11, 2, 2), "{received:?}");
    assert_eq!((counts.reordered, counts.duplicates), (1, 1), "{received:?}");
    // 0, 3, 10, 11 of the first; 101 of the second.
    assert_eq!((counts.missing, counts.expected, received.before_first), (5, 12 + 3, 100), "{received:?}");
}

#[test]
fn foreign_datagrams_are_counted_apart() {
    let Some(namespace) = namespace() else { return };
    let mut datagrams: Vec<_> = (0..10).map(|sequence| datagram(Kind::Data, 0, sequence)).collect();
    let whole = datagram(Kind::Data, 0, 10);
    datagrams.extend((0..16).map(|end| whole[..end].to_vec()));
    datagrams.extend([vec![0xff; 1400], b"rxbx and more than sixteen bytes".to_vec()]);
    // Numbers that the sender of this flow did not reach.
    datagrams.extend([datagram(Kind::Data, 0, 1 << 47), datagram(Kind::End, 0, 1 << 47)]);
    datagrams.push(datagram(Kind::End, 0, 10));
    let received = received_of(&namespace, &receiving(), &datagrams);
    let counts = &received.counts;
    assert_eq!((counts.packets, counts.foreign), (10 + 16 + 3, 16 + 3), "{received:?}");
    assert_eq!((counts.expected, counts.missing, counts.unnumbered), (10, 0, 0), "{received:?}");
}

#[test]
fn flows_without_end_take_no_memory_without_end() {
    let Some(namespace) = namespace() else { return };
    let receiving = Receiving { once: false, ..receiving() };
    let of_run = |run| Header { kind: Kind::Data, id: FlowId { run, flow: 0 }, sequence: 0 }.bytes().to_vec();
    let received = received_of(&namespace, &receiving, &(0..20_000).map(of_run).collect::<Vec<_>>());
    let counts = &received.counts;
    assert_eq!(counts.packets, 20_000, "{received:?}");
    assert_eq!((counts.flows, counts.foreign), (16_384, 20_000 - 16_384), "{received:?}");
}

#[test]
fn a_rate_over_flows_ends_after_its_length_and_at_a_stop() {
    let Some(namespace) = namespace() else { return };
    let sending = Sending { count: None, rate: Some(20_000.0), ports: 7, ..sending("127.0.0.1", 0) };
    let limited = Sending { length: Some(Duration::from_millis(500)), ..sending.clone() };
    let (all, sent) = received(&namespace, &receiving(), || send(&limited).expect("sent"));
    assert_eq!(sent.counts.packets + sent.counts.skipped, 10_000, "{sent:?}");
    assert_eq!((all.counts.packets, all.counts.missing), (sent.counts.packets, 0), "{all:?}");
    let endless = Receiving { length: None, once: false, ..receiving() };
    let (all, sent) = received(&namespace, &endless, || {
        let stop = AtomicBool::new(false);
        let mut at_first = |_: &_| {
            stop.store(true, Ordering::Relaxed);
            ControlFlow::Continue(())
        };
        udp::send(&sending, None, &stop, &mut at_first).expect("sent")
    });
    assert!(sent.counts.packets > 50, "{sent:?}");
    assert_eq!((all.counts.packets, all.counts.missing), (sent.counts.packets, 0), "{all:?}");
}

#[test]
fn nobody_there_is_counted() {
    let Some(namespace) = namespace() else { return };
    let sending = Sending {
        count: None,
        rate: Some(100.0),
        length: Some(Duration::from_millis(300)),
        ..sending("127.0.0.1", 0)
    };
    let sent = namespace.inside(|| send(&sending)).expect("sent");
    assert!(sent.counts.refused > 0, "{sent:?}");
    let sending = Sending { targets: vec!["192.0.2.1:9".parse().expect("an address")], ..sending };
    let error = namespace.inside(|| send(&sending)).expect_err("no route");
    assert!(error.to_string().starts_with("cannot send to 192.0.2.1:9: "), "{error}");
}

#[test]
fn a_port_is_not_shared_with_strangers() {
    let Some(namespace) = namespace() else { return };
    let error = namespace.inside(|| {
        let _other = UdpSocket::bind(("0.0.0.0", PORT)).expect("a socket");
        receiving().listen().expect_err("taken")
    });
    assert!(error.to_string().starts_with("cannot receive on [::]:9100: Address already in use"), "{error}");
    // A second sink would take some of the flows of the first.
    let endless = Receiving { once: false, ..receiving() };
    let (_, again) = received(&namespace, &endless, || receiving().listen().is_err());
    assert!(again);
}

#[test]
fn interfaces_are_found_by_their_addresses() {
    let Some(namespace) = namespace() else { return };
    namespace.veth(&Veth::pair("near0", "far0")).expect("a pair");
    namespace.run("ip", &["addr", "add", "10.9.0.1/24", "dev", "near0"]).expect("an address");
    namespace.inside(|| {
        let to = |target: &str| udp::interface_to(&target.parse().expect("an address"));
        assert_eq!(to("10.9.0.2:9").as_deref(), Some("near0"));
        assert_eq!(to("127.0.0.1:9").as_deref(), Some("lo"));
        assert_eq!(to("[::1]:9").as_deref(), Some("lo"));
        assert_eq!(to("192.0.2.1:9"), None);
        assert_eq!(kernel::netlink::interface_with("10.9.0.2".parse().expect("an address")), None);
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let wrong = [
        (Sending { threads: 2, ..sending("127.0.0.1", 1) }, "fewer than 2 threads"),
        (Sending { payload: 65_508, ..sending("127.0.0.1", 1) }, "65507 at most"),
        (Sending { segments: 64, payload: 1400, ..sending("127.0.0.1", 1) }, "64 segments of 1400 bytes"),
        (Sending { ports: 9, first_port: Some(65_530), ..sending("127.0.0.1", 1) }, "9 source ports"),
        (Sending { rate: Some(f64::NAN), ..sending("127.0.0.1", 1) }, "a rate is more than 0"),
        (
            Sending { source: Some("::1".parse().expect("one")), ..sending("127.0.0.1", 1) },
            "different versions",
        ),
        (Sending { ports: 20_000, ..sending("127.0.0.1", 1) }, "16384 are possible"),
    ];
    for (sending, message) in wrong {
        let error = send(&sending).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}
