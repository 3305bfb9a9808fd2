//! Traffic over a link: datagrams both ways, and streams.

use super::ends::{Ends, Side};
use crate::stream::Stream;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::netns::Namespace;
use testkit::wait_until;

const PORT: u16 = 7777;
/// How long anything may take.
const PATIENCE: Duration = testkit::PATIENCE;
/// Bytes of a stream.
const STREAM: usize = 1 << 20;

/// Datagrams of many sizes and a stream each way, over IPv4 and IPv6.
pub fn both_ways(ends: &Ends, mtu: usize) {
    for side in [Side::Near, Side::Far] {
        for (address, headers) in side.addresses().into_iter().zip([28, 48]) {
            // The longest that is one packet, and one that is several fragments.
            echo(ends, side, address, &[0, 1, 1000, mtu - headers - 1, mtu - headers, 4000]);
            stream(ends, side, address);
        }
    }
}

fn at(address: &str) -> SocketAddr {
    SocketAddr::new(address.parse::<IpAddr>().expect("an address"), PORT)
}

fn datagrams(namespace: &Namespace, address: SocketAddr) -> UdpSocket {
    // A socket stays in the namespace in which it was made.
    let socket = namespace.bound(|| UdpSocket::bind(address)).expect("bound");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    socket
}

/// Receives once more where the process was stopped meanwhile: with a time limit the kernel does not by itself (signal(7)).
fn resumed<T>(mut receive: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match receive() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn any(address: &str) -> SocketAddr {
    let any = if address.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    any.parse().expect("an address")
}

/// Datagrams to `address` of `side` and back.
pub fn echo(ends: &Ends, side: Side, address: &str, sizes: &[usize]) {
    echo_between(ends.namespace(side.other()), ends.namespace(side), address, sizes);
}

/// Datagrams to `address` and back.
pub fn echo_between(from: &Namespace, to: &Namespace, address: &str, sizes: &[usize]) {
    let answers = datagrams(to, at(address));
    let asks = datagrams(from, any(address));
    asks.connect(at(address)).expect("connected");
    for &size in sizes {
        let sent: Vec<u8> = (0..size).map(|place| (place * 7 + size) as u8).collect();
        let mut buffer = [0; 9000];
        asks.send(&sent).expect("sent");
        let (length, from) = resumed(|| answers.recv_from(&mut buffer)).expect("there in time");
        assert_eq!(buffer[..length], sent, "{address}, {size}");
        answers.send_to(&sent, from).expect("answered");
        let length = resumed(|| asks.recv(&mut buffer)).expect("back in time");
        assert_eq!(buffer[..length], sent, "{address}, {size}");
    }
}

/// A datagram that must not be fragmented, sent until the sender has learned how long it may be (ICMP: `EMSGSIZE`).
pub fn sent_until_the_path_is_known(from: &Namespace, address: &str, size: usize) {
    let asks = datagrams(from, any(address));
    asks.connect(at(address)).expect("connected");
    let sent = vec![7; size];
    // Linux sets DF by itself, and discovers the path MTU (`IP_PMTUDISC_WANT`); a datagram is then sent in fragments. The
    // first ones are too long.
    wait_until(format!("somebody reports the MTU of the path to {address}"), || {
        let _ = asks.send(&sent);
        from.run("ip", &["route", "get", address]).expect("ip").contains("mtu ")
    });
}

fn listener(namespace: &Namespace, address: &str) -> TcpListener {
    namespace.bound(|| TcpListener::bind(at(address))).expect("bound")
}

fn connected(namespace: &Namespace, address: &str) -> TcpStream {
    let stream = namespace.inside(|| TcpStream::connect_timeout(&at(address), PATIENCE));
    let stream = stream.unwrap_or_else(|error| panic!("{address}: {error}"));
    stream.set_write_timeout(Some(PATIENCE)).expect("a time");
    stream
}

/// A megabyte to `address` of `side`, and one back.
pub fn stream(ends: &Ends, side: Side, address: &str) {
    stream_between(ends.namespace(side.other()), ends.namespace(side), address);
}

/// A megabyte to `address`, and one back.
pub fn stream_between(from: &Namespace, to: &Namespace, address: &str) {
    Stream::between(from, to, address).carry(STREAM);
}

/// The segment size, bytes of payload, that the far end uses towards an address of the near one.
pub fn segment_size(ends: &Ends, address: &str) -> u32 {
    let listener = listener(ends.namespace(Side::Near), address);
    let stream = connected(ends.namespace(Side::Far), address);
    let _accepted = listener.accept().expect("accepted");
    // A connection that still closes, over a removed link, has segments of 36 bytes: its route leads nowhere.
    let port = format!(":{}", stream.local_addr().expect("an address").port());
    let sockets = ends.namespace(Side::Far).run("ss", &["-tinH", "sport", "=", &port]).expect("ss");
    let size = sockets.split_whitespace().find_map(|word| word.strip_prefix("mss:"));
    size.and_then(|size| size.parse().ok()).unwrap_or_else(|| panic!("{sockets}"))
}

/// Does something while the near end sends by several connections to `address` as fast as it can.
pub fn while_flooded(ends: &Ends, address: &str, work: impl FnOnce()) {
    let listener = listener(ends.namespace(Side::Far), address);
    let pairs: Vec<(TcpStream, TcpStream)> = (0..4)
        .map(|_| {
            let sends = connected(ends.namespace(Side::Near), address);
            (sends, listener.accept().expect("accepted").0)
        })
        .collect();
    let over = AtomicBool::new(false);
    let is_over = || over.load(Ordering::Relaxed);
    let pause = Some(Duration::from_millis(50));
    thread::scope(|scope| {
        for (mut sends, mut takes) in pairs {
            sends.set_write_timeout(pause).expect("a time");
            takes.set_read_timeout(pause).expect("a time");
            // Nothing goes on while there is no carrier.
            scope.spawn(move || {
                while !is_over() {
                    let _ = sends.write(&[5; 1 << 16]);
                }
            });
            scope.spawn(move || {
                while !is_over() {
                    let _ = takes.read(&mut [0; 1 << 16]);
                }
            });
        }
        work();
        over.store(true, Ordering::Relaxed);
    });
}

/// Waits until datagrams arrive from the near end.
pub fn wait_until_it_answers(ends: &Ends, address: &str) {
    let answers = datagrams(ends.namespace(Side::Far), at(address));
    answers.set_read_timeout(Some(Duration::from_millis(50))).expect("a time");
    let asks = datagrams(ends.namespace(Side::Near), any(address));
    let until = Instant::now() + PATIENCE;
    loop {
        // Without a route or carrier it cannot even be sent.
        let _ = asks.send_to(b"?", at(address));
        match resumed(|| answers.recv_from(&mut [0; 10])) {
            Ok(_) => return,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(Instant::now() < until, "it does not answer");
    }
}
