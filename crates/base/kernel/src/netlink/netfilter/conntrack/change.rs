//! Changes of connections: how long they live, how strictly TCP's window is watched, and their end.

use super::{
    BE_LIBERAL, Connection, DELETE, Direction, FLAGS_ORIGINAL, FLAGS_REPLY, GET, NEW, PROTOINFO, SUBSYSTEM,
    TCP, TIMEOUT, TUPLE_ORIG, ZONE,
};
use crate::netlink::address::family;
use crate::netlink::batch::Batches;
use crate::netlink::netfilter::{HEADER, request};
use crate::netlink::{Attributes, Message, Netlink, Refusal};
use std::io;

/// What is to be changed about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The direction of its first packet, with ports: TCP, UDP and their like.
    pub original: Direction,
    /// IP protocol number.
    pub protocol: u8,
    /// Its zone.
    pub zone: u16,
    /// Seconds from now until it ends if no packet comes; `None`: as it is.
    pub timeout: Option<u32>,
    /// Whether TCP packets outside the window are to be valid in both directions from now on.
    pub liberal: bool,
}

impl Update {
    fn message(&self) -> Message {
        let Update { original, protocol, zone, .. } = *self;
        let message = Key { original, protocol, zone }.message(NEW);
        let message = match self.timeout {
            Some(seconds) => message.with(TIMEOUT, &seconds.to_be_bytes()),
            None => message,
        };
        if !self.liberal {
            return message;
        }
        // `struct nf_ct_tcp_flags`: flags, and which of them change.
        let flags = [BE_LIBERAL, BE_LIBERAL];
        let tcp = |tcp: Message| tcp.with(FLAGS_ORIGINAL, &flags).with(FLAGS_REPLY, &flags);
        message.with_nest(PROTOINFO, |info| info.with_nest(TCP, tcp))
    }
}

/// Which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The direction of its first packet, with ports: TCP, UDP and their like.
    pub original: Direction,
    /// IP protocol number.
    pub protocol: u8,
    /// Its zone.
    pub zone: u16,
}

impl Key {
    /// A request about it.
    fn message(&self, command: u8) -> Message {
        let message = request(SUBSYSTEM, command, family(self.original.source));
        let message = self.original.write(message, TUPLE_ORIG, self.protocol);
        if self.zone == 0 { message } else { message.with(ZONE, &self.zone.to_be_bytes()) }
    }
}

/// A socket that keeps connections alive whose packets conntrack does not see.
#[derive(Debug)]
pub struct Keep(Batches);

impl Keep {
    /// In the network namespace of the calling thread. Error: those of socket(2).
    pub fn open() -> io::Result<Keep> {
        Netlink::netfilter().and_then(Batches::new).map(Keep)
    }

    pub(super) fn port(&self) -> io::Result<u32> {
        self.0.port()
    }

    /// Changes connections, 64 in a system call, and gives how many of them there are; the others have ended. Each change is a
    /// notification for whoever listens ([`ConnectionEvents::exclude`](super::ConnectionEvents::exclude)).
    ///
    /// Errors: those of [`Keep::update_each`].
    pub fn update(&mut self, updates: &[Update]) -> Result<usize, Refusal> {
        let mut ended = 0;
        self.update_each(updates, |_| ended += 1)?;
        Ok(updates.len().saturating_sub(ended))
    }

    /// As [`Keep::update`]; hands the place in `updates` of each connection that has ended to `ended`.
    ///
    /// Error: the first refusal of one that exists, after all were tried (`EPERM`: this process may not, or the connection has a
    /// fixed timeout); or that of the socket, after which the rest was not tried.
    pub fn update_each(&mut self, updates: &[Update], mut ended: impl FnMut(usize)) -> Result<(), Refusal> {
        let mut refused = None;
        self.0.exchange(updates, Update::message, |place, answer| match answer {
            Err(refusal) if is_missing(&refusal) => ended(place),
            Err(refusal) => _ = refused.get_or_insert(refusal),
            Ok(_) => {}
        })?;
        refused.map_or(Ok(()), Err)
    }

    /// Hands each connection that exists to `take`, with its place in `keys` and with all that a notification leaves out.
    ///
    /// Error: the first refusal, after all were tried (`EPERM`: this process may not); or that of the socket.
    pub fn query(
        &mut self,
        keys: &[Key],
        mut take: impl FnMut(usize, Connection<'_>),
    ) -> Result<(), Refusal> {
        let mut refused = None;
        self.0.exchange(
            keys,
            |key| key.message(GET),
            |place, answer| match answer {
                Ok(body) => take(place, Connection(Attributes::behind(HEADER, body))),
                Err(refusal) if is_missing(&refusal) => {}
                Err(refusal) => _ = refused.get_or_insert(refusal),
            },
        )?;
        refused.map_or(Ok(()), Err)
    }
}

fn is_missing(refusal: &Refusal) -> bool {
    refusal.error.raw_os_error() == Some(libc::ENOENT)
}

/// Ends a connection; whether there was one. Errors: `EPERM`: this process may not; others: this kernel tracks no connections.
pub fn remove(original: &Direction, protocol: u8, zone: u16) -> Result<bool, Refusal> {
    let key = Key { original: *original, protocol, zone };
    match Netlink::netfilter()?.set(&key.message(DELETE), 0) {
        Ok(()) => Ok(true),
        Err(refusal) if is_missing(&refusal) => Ok(false),
        Err(refusal) => Err(refusal),
    }
}
