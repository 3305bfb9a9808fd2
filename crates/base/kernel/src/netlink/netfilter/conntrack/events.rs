//! Notifications of connections (`ctnetlink_conntrack_event()` in net/netfilter/nf_conntrack_netlink.c).

use super::{Connection, DELETE, Keep, NEW, SUBSYSTEM};
use crate::netlink::answers::messages;
use crate::netlink::netfilter::HEADER;
use crate::netlink::{Attributes, set_receive_buffer, uninterrupted};
use crate::socket::{BATCH, Incoming, filter, set_filter};
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of a notification that are read; it has some 300, without labels and security context.
const NOTIFICATION: usize = 2048;
/// Calls of recvmmsg(2) for one of [`ConnectionEvents::each`], each of [`BATCH`] notifications.
const CALLS: usize = 64;

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionChange {
    /// It is new, or something about it changed.
    Changed,
    /// It ended: its time was over, or somebody removed it.
    Destroyed,
}

/// A socket to which the kernel sends every change of connections in its network namespace, ready to be polled.
///
/// What a message of a change has: both directions, zone, status, timeout and mark, and of the rest what changed
/// ([`Connection::tcp_state`], [`Connection::has_helper`]); that of an end has directions, zone and status. [`Keep::query`] has all.
///
/// With `net.netfilter.nf_conntrack_events` at 2, the default since Linux 5.19, connections that began before anybody listened send
/// nothing, not even at their end (`nf_ct_ecache_ext_add()` in net/netfilter/nf_conntrack_ecache.c).
#[derive(Debug)]
pub struct ConnectionEvents {
    socket: Socket,
    incoming: Incoming,
}

impl ConnectionEvents {
    /// Changes from now on. `buffer_bytes` is what the kernel keeps for this socket, in whose count a notification takes some
    /// 1,000 bytes. Errors: `EPERM`: this process may not; `EPROTONOSUPPORT`: this kernel has no netfilter.
    pub fn open(buffer_bytes: usize) -> io::Result<ConnectionEvents> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        set_receive_buffer(&socket, buffer_bytes)?;
        for group in
            [libc::NFNLGRP_CONNTRACK_NEW, libc::NFNLGRP_CONNTRACK_UPDATE, libc::NFNLGRP_CONNTRACK_DESTROY]
        {
            socket.add_membership(group.cast_unsigned())?;
        }
        socket.set_non_blocking(true)?;
        Ok(ConnectionEvents { socket, incoming: Incoming::new(BATCH, NOTIFICATION) })
    }

    /// From now on the kernel leaves out what this process itself changes by `keep`: the header of a notification has the port
    /// of the socket that caused it.
    pub fn exclude(&mut self, keep: &Keep) -> io::Result<()> {
        set_filter(self.socket.as_fd(), &filter::netlink_source_is_not(keep.port()?))
    }

    /// Hands on the changes that wait, 4,096 at most in a call. Gives whether some before them were lost because the buffer was
    /// full, so that the table has to be read again.
    pub fn each(&mut self, mut take: impl FnMut(ConnectionChange, Connection<'_>)) -> io::Result<bool> {
        let mut lost = false;
        for _ in 0..CALLS {
            match uninterrupted(|| self.incoming.receive(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    lost = true;
                    continue;
                }
                Err(error) => return Err(error),
            }
            // Only the kernel has port 0.
            for datagram in self.incoming.messages().filter(|datagram| datagram.netlink_port() == 0) {
                lost |= datagram.length > datagram.bytes.len();
                read(datagram.bytes, &mut take);
            }
        }
        Ok(lost)
    }
}

impl AsFd for ConnectionEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn read(datagram: &[u8], take: &mut impl FnMut(ConnectionChange, Connection<'_>)) {
    for (kind, _, _, body) in messages(datagram) {
        let change = match kind.to_be_bytes() {
            [SUBSYSTEM, NEW] => ConnectionChange::Changed,
            [SUBSYSTEM, DELETE] => ConnectionChange::Destroyed,
            _ => continue,
        };
        take(change, Connection(Attributes::behind(HEADER, body)));
    }
}
