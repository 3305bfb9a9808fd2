//! Datagrams there and back, which go on whatever is lost, and the frames of crafted ones.

use super::router::{Router, at, mac};
use super::sniffer::{Packet, Sniffer, sum};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use testkit::PATIENCE;
use testkit::netns::Namespace;

/// Bytes of a datagram.
const LENGTH: usize = 600;

/// A client of UDP, and its server.
pub struct Datagrams {
    asks: UdpSocket,
    answers: UdpSocket,
    number: u64,
}

impl Datagrams {
    /// The server listens at one address, the client sends to another, which is translated where it is another.
    pub fn between(from: &Namespace, to: &Namespace, listens: SocketAddr, sends_to: SocketAddr) -> Datagrams {
        // A socket stays in the namespace in which it was made.
        let answers = to.bound(|| UdpSocket::bind(listens)).expect("bound");
        let any = if sends_to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let asks = from.bound(|| UdpSocket::bind(any)).expect("bound");
        asks.connect(sends_to).expect("connected");
        for socket in [&asks, &answers] {
            socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
        }
        Datagrams { asks, answers, number: 0 }
    }

    /// From the router's client to its server.
    pub fn through(router: &Router, server: &str, port: u16) -> Datagrams {
        Datagrams::between(&router.client, &router.server, at(server, port), at(server, port))
    }

    /// The client's address and port.
    pub fn client(&self) -> SocketAddr {
        self.asks.local_addr().expect("an address")
    }

    /// One there, and one back, with what was sent; again until both have arrived.
    #[track_caller]
    pub fn exchange(&mut self) {
        self.number += 1;
        let sent = payload(self.number);
        let until = Instant::now() + PATIENCE;
        loop {
            // Without a route it cannot even be sent.
            let _ = self.asks.send(&sent);
            if self.is_answered(&sent) {
                return;
            }
            assert!(Instant::now() < until, "datagram {} has no answer", self.number);
        }
    }

    #[track_caller]
    fn is_answered(&self, sent: &[u8]) -> bool {
        let mut buffer = [0; 2000];
        while let Some((length, from)) = received(|| self.answers.recv_from(&mut buffer)) {
            let _ = self.answers.send_to(&buffer[..length], from);
            if buffer[..length] == *sent {
                break;
            }
        }
        while let Some(length) = received(|| self.asks.recv(&mut buffer)) {
            if buffer[..length] == *sent {
                return true;
            }
        }
        false
    }

    /// Sends without an answer.
    pub fn ask(&mut self, times: usize) {
        for _ in 0..times {
            self.number += 1;
            let _ = self.asks.send(&payload(self.number));
        }
    }

    /// Whether the server receives anything for a moment.
    pub fn arrive(&self) -> bool {
        received(|| self.answers.recv_from(&mut [0; 2000])).is_some()
    }
}

/// `None`: nothing came in time.
#[track_caller]
fn received<T>(mut receive: impl FnMut() -> std::io::Result<T>) -> Option<T> {
    loop {
        match receive() {
            Ok(taken) => return Some(taken),
            // The kernel does not go on by itself after a process was stopped (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
            // ICMP said so: it is refused, or there is no way now.
            Err(_) => return None,
        }
    }
}

fn payload(number: u64) -> Vec<u8> {
    let mut payload = vec![number as u8; LENGTH];
    payload[..8].copy_from_slice(&number.to_be_bytes());
    payload
}

/// A frame of IPv4 that a test changes before it is sent.
#[derive(Clone, Debug)]
pub struct Crafted {
    pub to_mac: [u8; 6],
    pub from_mac: [u8; 6],
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub protocol: u8,
    pub ttl: u8,
    /// With flags and offset of fragments.
    pub fragment: u16,
    pub options: Vec<u8>,
    pub tcp_flags: u8,
    pub payload: Vec<u8>,
}

impl Crafted {
    /// From the client to its router.
    pub fn from_client(
        router: &Router,
        protocol: u8,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Crafted {
        use super::router::{FAR, LAN};
        Crafted {
            to_mac: mac(&router.router, LAN),
            from_mac: mac(&router.client, FAR),
            source,
            destination,
            protocol,
            ttl: 64,
            fragment: 0,
            options: Vec::new(),
            tcp_flags: 0x10,
            payload: vec![0x5a; 40],
        }
    }

    /// The same from the server.
    pub fn from_server(
        router: &Router,
        protocol: u8,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Crafted {
        use super::router::{FAR, WAN};
        Crafted {
            to_mac: mac(&router.router, WAN),
            from_mac: mac(&router.server, FAR),
            ..Crafted::from_client(router, protocol, source, destination)
        }
    }

    /// With right checksums.
    pub fn frame(&self) -> Vec<u8> {
        let (SocketAddr::V4(source), SocketAddr::V4(destination)) = (self.source, self.destination) else {
            panic!("IPv4")
        };
        let addresses = [source.ip().octets(), destination.ip().octets()].concat();
        let mut data = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
        let sum_at = if self.protocol == super::sniffer::UDP {
            data.extend((8 + self.payload.len() as u16).to_be_bytes());
            6
        } else {
            data.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, self.tcp_flags, 0x20, 0]);
            16
        };
        data.extend([0; 2]);
        data.resize(if sum_at == 6 { 8 } else { 20 }, 0);
        data.extend(&self.payload);
        let length = (data.len() as u32).to_be_bytes();
        let checksum = !sum(&[&addresses, &length, &[0, self.protocol], &data]);
        data[sum_at..sum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        let words = 5 + self.options.len() / 4;
        let mut ip = vec![0x40 | words as u8, 0];
        ip.extend(((words * 4 + data.len()) as u16).to_be_bytes());
        ip.extend([0x12, 0x34]);
        ip.extend(self.fragment.to_be_bytes());
        ip.extend([self.ttl, self.protocol, 0, 0]);
        ip.extend(&addresses);
        ip.extend(&self.options);
        let checksum = !sum(&[&ip]);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        [&self.to_mac[..], &self.from_mac, &[8, 0], &ip, &data].concat()
    }
}

/// Packets that a sniffer gets until there are so many of a kind.
#[track_caller]
pub fn wait_for_packets(sniffer: &mut Sniffer, packets: usize, is_such: impl Fn(&Packet) -> bool) {
    let mut seen = 0;
    testkit::wait_until(format!("{packets} packets"), || {
        seen += sniffer.packets().iter().filter(|packet| is_such(packet)).count();
        seen >= packets
    });
}
