//! Netlink: questions to the kernel and changes by it (interfaces, addresses, routes, generic families), notifications, and what
//! netfilter knows.
//!
//! Messages are written and read attribute by attribute: what a newer kernel adds, or sends in another size, is passed over and
//! costs nothing but itself.
//!
//! ```
//! use rxlane_kernel::netlink::{Events, link_by_name};
//!
//! let events = Events::of_links()?;
//! let loopback = link_by_name("lo")?;
//! assert_eq!((loopback.index, loopback.mac.map(|mac| mac.0)), (1, Some([0; 6])));
//! assert!(events.changes()?.is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Functions open a socket for each call, in the network namespace of the calling thread. Message types:
//! `include/uapi/linux/rtnetlink.h`; attributes: `if_link.h`, `if_addr.h`, `genetlink.h`.

mod address;
mod answers;
mod batch;
mod events;
mod generic;
mod link;
mod lookup;
mod message;
mod neighbour;
pub mod netfilter;
mod qdisc;
mod route;
mod rule;
mod xdp;
mod xfrm;

pub use address::{
    Address, AddressError, add_address, addresses, interface_with, link_local, remove_address, station,
};
pub use events::{Change, Events};
pub use generic::Generic;
pub use link::{
    BridgePort, Link, VlanDevice, configure, disable_own_ipv6, link_by_index, link_by_name, links,
    remove_link, rename, set_down, set_up,
};
pub use lookup::{Found, Lookup, Routes};
pub use message::{Attributes, Message, until_zero};
pub use neighbour::{BridgeEntry, Neighbour, bridge_entries, neighbours, refresh};
pub use qdisc::{Qdisc, qdiscs};
pub use route::{Gateway, Route, default_route, default_routes, route_of, route_tos};
pub use rule::{Rule, rules};
pub use xdp::{Xdp, XdpFeatures, XdpMode, attach_xdp, detach_xdp, xdp_features};
pub use xfrm::{Policy, PolicyEvents, policies};

use answers::Answers;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE};
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use std::io;
use std::os::fd::AsFd;
use thiserror::Error;

/// Dumps of a table that keeps changing before the last one is taken as it is.
const ATTEMPTS: u32 = 5;

/// What the kernel answered instead of doing it.
#[derive(Debug, Error)]
#[error("{error}{}", .message.as_ref().map_or(String::new(), |message| format!(": {message}")))]
pub struct Refusal {
    /// The error.
    pub error: io::Error,
    /// The explanation of kernel or driver (extended acknowledgement, Linux 4.12), where it gave one.
    pub message: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { error, message: None }
    }
}

/// A netlink socket for questions and changes, one at a time.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket for interfaces, addresses and routes (rtnetlink(7)). Error: those of socket(2): a container may deny the
    /// family.
    pub fn route() -> io::Result<Netlink> {
        Netlink::open(NETLINK_ROUTE)
    }

    fn netfilter() -> io::Result<Netlink> {
        Netlink::open(NETLINK_NETFILTER)
    }

    fn generic() -> io::Result<Netlink> {
        Netlink::open(NETLINK_GENERIC)
    }

    fn open(protocol: isize) -> io::Result<Netlink> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Kernels before 4.12 have neither; their errors are plain numbers.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Netlink { socket, sequence: 0 })
    }

    /// One object: what follows the message header in the answer.
    pub fn get(&mut self, message: &Message) -> Result<Vec<u8>, Refusal> {
        let mut found = None;
        self.exchange(message, NLM_F_ACK, |object| found = found.take().or_else(|| Some(object.to_vec())))?;
        let empty = || io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel answered without data");
        Ok(found.ok_or_else(empty)?)
    }

    /// All objects of a table. A dump that the kernel marks as interrupted is taken again.
    pub fn dump(&mut self, message: &Message) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut attempt = 1;
        loop {
            let mut objects = Vec::new();
            let interrupted = self.exchange(message, NLM_F_DUMP, |object| objects.push(object.to_vec()))?;
            if !interrupted || attempt == ATTEMPTS {
                return Ok(objects);
            }
            attempt += 1;
        }
    }

    /// Hands each object of a table to `take`, in one pass: a table that changed meanwhile is taken as it came.
    fn each(&mut self, message: &Message, take: impl FnMut(&[u8])) -> Result<(), Refusal> {
        self.exchange(message, NLM_F_DUMP, take).map(drop)
    }

    /// The first object of a table, among those in `most` datagrams, of which `choose` makes something. It consumes the socket,
    /// which has the rest of the table.
    fn find<T>(
        mut self,
        message: &Message,
        most: usize,
        mut choose: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        self.send(message, NLM_F_DUMP)?;
        let (mut answers, mut found) = (Answers::new(self.sequence), None);
        for _ in 0..most {
            self.receive(&mut answers, &mut |object| found = found.take().or_else(|| choose(object)))?;
            if found.is_some() || answers.complete {
                break;
            }
        }
        Ok(found)
    }

    /// Changes something; `flags` in addition to those of a request that is acknowledged.
    fn set(&mut self, message: &Message, flags: u16) -> Result<(), Refusal> {
        self.exchange(message, NLM_F_ACK | flags, |_| {}).map(drop)
    }

    /// Gives whether the answer was interrupted by a change of the table.
    fn exchange(
        &mut self,
        message: &Message,
        flags: u16,
        mut take: impl FnMut(&[u8]),
    ) -> Result<bool, Refusal> {
        self.send(message, flags)?;
        let mut answers = Answers::new(self.sequence);
        while !answers.complete {
            self.receive(&mut answers, &mut take)?;
        }
        Ok(answers.interrupted)
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn send(&mut self, message: &Message, flags: u16) -> io::Result<()> {
        let bytes = message.bytes(flags, self.next_sequence())?;
        uninterrupted(|| self.socket.send(&bytes, 0)).map(drop)
    }

    fn receive(&self, answers: &mut Answers, take: &mut dyn FnMut(&[u8])) -> Result<(), Refusal> {
        let (datagram, from) = uninterrupted(|| self.socket.recv_from_full())?;
        // Only the kernel has port 0; another process may send to this socket, too.
        if from.port_number() == 0 { answers.take(&datagram, take) } else { Ok(()) }
    }
}

/// Asks for one object of rtnetlink.
fn get(message: &Message) -> Result<Vec<u8>, Refusal> {
    Netlink::route()?.get(message)
}

fn set(message: &Message) -> Result<(), Refusal> {
    Netlink::route()?.set(message, 0)
}

/// Adds what is not there yet.
fn add(message: &Message) -> Result<(), Refusal> {
    Netlink::route()?.set(message, NLM_F_CREATE | NLM_F_EXCL)
}

/// Gives a socket a receive buffer of so many bytes; the kernel doubles the number for its own use (socket(7)). Beyond
/// `net.core.rmem_max` that requires `CAP_NET_ADMIN` in the first user namespace; without it the buffer is as large as that allows.
fn set_receive_buffer(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    // The kernel reads an int, and keeps to half of the greatest.
    let bytes = bytes.min(1 << 30);
    set_socket_recv_buffer_size_force(&socket, bytes)
        .or_else(|_| set_socket_recv_buffer_size(&socket, bytes))
        .map_err(io::Error::from)
}

fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
