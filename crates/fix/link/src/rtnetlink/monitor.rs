//! Notifications of changes of interfaces.

use super::message::messages;
use super::{Link, RTM_DELLINK, RTM_NEWLINK, read_link};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

const RTNLGRP_LINK: u32 = 1;

/// A socket to which the kernel tells every change of an interface of its network namespace.
#[derive(Debug)]
pub struct Monitor(Socket);

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Now(Link),
    /// The interface of this number was deleted, or went to another network namespace.
    Gone(u32),
    /// Some changes were lost: whoever is interested has to ask.
    Lost,
}

impl Monitor {
    /// Listens from now on.
    pub fn new() -> io::Result<Monitor> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 1 << (RTNLGRP_LINK - 1)))?;
        socket.set_non_blocking(true)?;
        Ok(Monitor(socket))
    }

    /// What changed since the last call; nothing, if nothing did.
    pub fn changes(&self) -> io::Result<Vec<Change>> {
        match self.0.recv_from_full() {
            Ok((datagram, _)) => Ok(messages(&datagram).filter_map(change).collect()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(vec![Change::Lost]),
            Err(error) => Err(error),
        }
    }
}

fn change((kind, body): (u16, &[u8])) -> Option<Change> {
    /// `ifi_family` of messages about an interface as a port of a bridge, whose deletion is not that of the interface.
    const BRIDGE: u8 = libc::AF_BRIDGE as u8;
    if body.first() == Some(&BRIDGE) {
        return None;
    }
    match kind {
        RTM_NEWLINK => Some(Change::Now(read_link(body))),
        RTM_DELLINK => Some(Change::Gone(read_link(body).index)),
        _ => None,
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
