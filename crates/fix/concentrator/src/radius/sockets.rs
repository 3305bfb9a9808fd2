//! The sockets of some servers, and what is on its way by them.

use super::Server;
use ::radius::exchange::{Datagram, Done, Exchange, Patience, Request, Step, Unusable};
use ::radius::packet::LONGEST;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Servers of one kind, of whom one answers for all.
#[derive(Debug)]
pub(super) struct Sockets<T> {
    exchange: Exchange<T>,
    servers: Vec<SocketAddr>,
    /// By server and lane, made when they are first sent by.
    sockets: Vec<Vec<UdpSocket>>,
    send: Vec<Datagram>,
    done: Vec<Done<T>>,
    unusable: Vec<(SocketAddr, Unusable)>,
}

impl<T> Sockets<T> {
    pub(super) fn new(servers: Vec<Server>, patience: Patience) -> Sockets<T> {
        let (addresses, secrets): (Vec<_>, Vec<_>) =
            servers.into_iter().map(|server| (server.address, server.secret)).unzip();
        Sockets {
            exchange: Exchange::new(secrets, patience),
            sockets: addresses.iter().map(|_| Vec::new()).collect(),
            servers: addresses,
            send: Vec::new(),
            done: Vec::new(),
            unusable: Vec::new(),
        }
    }

    /// Whether there is no server.
    pub(super) const fn is_nobody(&self) -> bool {
        self.servers.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.exchange.len()
    }

    /// Whether nothing is on its way, and everything that came was taken.
    pub(super) fn is_idle(&self) -> bool {
        self.exchange.is_empty() && self.done.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.exchange.deadline()
    }

    fn step<R>(&mut self, now: Duration, with: impl FnOnce(&mut Exchange<T>, &mut Step<'_, T>) -> R) -> R {
        let Sockets { exchange, send, done, .. } = self;
        with(exchange, &mut Step { now, random: &mut link::pppoe::kernel::random, send, done })
    }

    pub(super) fn request(&mut self, now: Duration, token: T, request: Request) {
        self.step(now, |exchange, step| exchange.request(step, token, request));
    }

    pub(super) fn tick(&mut self, now: Duration) {
        self.step(now, |exchange, step| exchange.tick(step));
    }

    /// What is over.
    pub(super) fn done(&mut self) -> Vec<Done<T>> {
        std::mem::take(&mut self.done)
    }

    /// Datagrams that counted for nothing, and from which server.
    pub(super) fn unusable(&mut self) -> Vec<(SocketAddr, Unusable)> {
        std::mem::take(&mut self.unusable)
    }

    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().flatten().map(AsFd::as_fd)
    }

    /// Sends what is to be sent. What cannot be is as what gets lost on the way: it is sent again.
    pub(super) fn flush(&mut self) {
        for datagram in std::mem::take(&mut self.send) {
            if let Ok(socket) = self.socket(datagram.server, datagram.lane) {
                let _ = socket.send(&datagram.bytes);
            }
        }
    }

    fn socket(&mut self, server: usize, lane: usize) -> io::Result<&UdpSocket> {
        let none = || io::Error::from(io::ErrorKind::NotFound);
        let (address, sockets) =
            self.servers.get(server).zip(self.sockets.get_mut(server)).ok_or_else(none)?;
        // Lanes are taken into use one after the other.
        while sockets.len() <= lane {
            let own: SocketAddr = match address {
                SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
            };
            let socket = UdpSocket::bind(own)?;
            // From here on the kernel lets in what this server sends, and nothing else.
            socket.connect(address)?;
            socket.set_nonblocking(true)?;
            sockets.push(socket);
        }
        sockets.get(lane).ok_or_else(none)
    }

    /// Takes what came.
    pub(super) fn receive(&mut self, now: Duration) {
        let mut datagram = [0; LONGEST + 1];
        let Sockets { exchange, sockets, servers, send, done, unusable } = self;
        let mut step = Step { now, random: &mut link::pppoe::kernel::random, send, done };
        for ((server, lanes), address) in sockets.iter().enumerate().zip(servers) {
            for (lane, socket) in lanes.iter().enumerate() {
                // An error is that of a packet before, such as a port that nobody listens to.
                while let Ok(length) = socket.recv(&mut datagram) {
                    let datagram = datagram.get(..length).unwrap_or_default();
                    if let Err(why) = exchange.receive(&mut step, server, lane, datagram) {
                        unusable.push((*address, why));
                    }
                }
            }
        }
    }
}
