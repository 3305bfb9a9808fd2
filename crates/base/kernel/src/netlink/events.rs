//! Notifications of changes.

use super::answers::messages;
use super::link::Link;
use super::uninterrupted;
use libc::{RTM_DELLINK, RTM_NEWLINK, RTNLGRP_LINK};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A socket to which the kernel sends every change of some kind in its network namespace, ready to be polled.
#[derive(Debug)]
pub struct Events(Socket);

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An interface is now so.
    Link(Link),
    /// The interface of this number was deleted, or went to another network namespace.
    LinkRemoved(u32),
    /// Some changes were lost: whoever is interested has to ask.
    Lost,
}

impl Events {
    /// Changes of interfaces from now on.
    pub fn of_links() -> io::Result<Events> {
        Events::subscribe(&[RTNLGRP_LINK])
    }

    /// `RTNLGRP_*`.
    fn subscribe(groups: &[u32]) -> io::Result<Events> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        for group in groups {
            socket.add_membership(*group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Events(socket))
    }

    /// What changed since the last call; nothing, if nothing did.
    pub fn changes(&self) -> io::Result<Vec<Change>> {
        match uninterrupted(|| self.0.recv_from_full()) {
            // Only the kernel has port 0.
            Ok((_, from)) if from.port_number() != 0 => Ok(Vec::new()),
            Ok((datagram, _)) => {
                Ok(messages(&datagram).filter_map(|(kind, _, _, body)| change(kind, body)).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(vec![Change::Lost]),
            Err(error) => Err(error),
        }
    }
}

fn change(kind: u16, body: &[u8]) -> Option<Change> {
    /// `ifi_family` of messages about an interface as a port of a bridge, whose deletion is not that of the interface.
    const BRIDGE: u8 = libc::AF_BRIDGE as u8;
    if body.first() == Some(&BRIDGE) {
        return None;
    }
    match kind {
        RTM_NEWLINK => Some(Change::Link(Link::read(body))),
        RTM_DELLINK => Some(Change::LinkRemoved(Link::read(body).index)),
        _ => None,
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
