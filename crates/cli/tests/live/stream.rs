//! Streams of TCP whose bytes are compared.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use testkit::PATIENCE;
use testkit::netns::Namespace;

const PORT: u16 = 7777;

/// Both ends of a connection.
pub struct Stream {
    sends: TcpStream,
    takes: TcpStream,
}

impl Stream {
    /// Connects to an address of the other namespace.
    pub fn between(from: &Namespace, to: &Namespace, address: &str) -> Stream {
        let at = SocketAddr::new(address.parse().expect("an address"), PORT);
        Stream::to(from, to, at, at)
    }

    /// The other end listens at an address that is not the one to which this one connects, where addresses are translated.
    pub fn to(from: &Namespace, to: &Namespace, listens: SocketAddr, connects_to: SocketAddr) -> Stream {
        // A socket stays in the namespace in which it was made.
        let listener = to.bound(|| TcpListener::bind(listens)).expect("bound");
        let sends = from.inside(|| TcpStream::connect_timeout(&connects_to, PATIENCE)).expect("connected");
        let (takes, _) = listener.accept().expect("accepted");
        for end in [&sends, &takes] {
            end.set_write_timeout(Some(PATIENCE)).expect("a time");
            end.set_read_timeout(Some(PATIENCE)).expect("a time");
        }
        Stream { sends, takes }
    }

    /// Address and port of the end that has connected.
    pub fn client(&self) -> SocketAddr {
        self.sends.local_addr().expect("an address")
    }

    /// So many bytes there and the same back.
    pub fn carry(&mut self, bytes: usize) {
        for is_back in [false, true] {
            let (from, to) = if is_back { (&self.takes, &self.sends) } else { (&self.sends, &self.takes) };
            one_way(from, to, bytes);
        }
    }
}

fn one_way(mut from: &TcpStream, mut to: &TcpStream, bytes: usize) {
    let sent = random(bytes);
    thread::scope(|scope| {
        let received = scope.spawn(move || {
            let mut received = vec![0; bytes];
            to.read_exact(&mut received).map(|()| received)
        });
        from.write_all(&sent).expect("sent");
        let received = received.join().expect("no panic").expect("received");
        assert!(received == sent, "other bytes");
    });
}

fn random(bytes: usize) -> Vec<u8> {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word as u8
    };
    (0..bytes).map(next).collect()
}
