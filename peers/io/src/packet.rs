//! Packet sockets: opened, waited for, asked what they lost.

use crate::sys::socket::{bind_packet, set};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Every protocol (ETH_P_ALL).
const ALL: u16 = 3;
/// PACKET_IGNORE_OUTGOING of linux/if_packet.h.
const IGNORE_OUTGOING: i32 = 23;
/// Octets that may wait in a socket, either way.
const BUFFER: u32 = 8 << 20;

fn unbound() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// A socket that sends out of an interface, past its queueing discipline where `bypass` says so.
pub fn sending(interface: u32, bypass: bool) -> io::Result<OwnedFd> {
    let socket = unbound()?;
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER)?;
    if bypass {
        set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1_u32)?;
    }
    bind_packet(socket.as_fd(), interface, 0)?;
    Ok(socket)
}

/// A socket that receives what arrives on an interface; `prepare` sets options before it is bound.
pub fn receiving(
    interface: u32,
    prepare: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let socket = unbound()?;
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER)?;
    set(socket.as_fd(), libc::SOL_PACKET, IGNORE_OUTGOING, 1_u32)?;
    prepare(socket.as_fd())?;
    bind_packet(socket.as_fd(), interface, ALL)?;
    Ok(socket)
}

fn polled(socket: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(socket, PollFlags::IN)
}

/// Waits until there is something to read in one or one of two sockets, and says whether there is.
pub fn wait(sockets: &[BorrowedFd<'_>], microseconds: i64) -> io::Result<bool> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: microseconds * 1000 };
    let answer = match *sockets {
        [one] => poll(&mut [polled(one)], Some(&timeout)),
        [one, other] => poll(&mut [polled(one), polled(other)], Some(&timeout)),
        _ => Ok(0),
    };
    match answer {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// `Some` of an answer, `None` where there is nothing to read or no room to write at this moment.
pub fn ready(answer: io::Result<usize>) -> io::Result<Option<usize>> {
    match answer {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(None),
        Err(error) => Err(error),
    }
}
