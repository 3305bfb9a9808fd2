//! System calls of sockets that no safe function covers.
#![allow(unsafe_code)]

mod mapping;
mod messages;

pub use mapping::Mapping;
pub use messages::{Incoming, Message, Outgoing, receive};

use super::filter::Instruction;
use super::packet::RingRequest;
use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Types whose bytes may be handed to the kernel and taken from it.
///
/// # Safety
///
/// Integers only, of which every value is allowed, without padding.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: elements without gaps.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: integers of one width.
unsafe impl Plain for RingRequest {}
// SAFETY: integers of 4, 2, 2 and 8 bytes: 16 without a gap.
unsafe impl Plain for Membership {}

/// `struct packet_mreq`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Membership {
    pub(super) interface: u32,
    pub(super) kind: u16,
    pub(super) length: u16,
    pub(super) address: [u8; 8],
}

/// setsockopt(2).
pub(super) fn set<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of a whole T, which has no padding.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    checked(result as isize).map(drop)
}

/// getsockopt(2) of what the kernel gives whole.
pub(super) fn get<T: Plain + Default>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<T> {
    get_some(socket, level, name, T::default()).map(|(value, _)| value)
}

/// The same of what the kernel may give in part: also how many bytes.
pub(super) fn get_some<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    mut value: T,
) -> io::Result<(T, usize)> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes of a T, all of whose values are allowed.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    checked(result as isize).map(|_| (value, length as usize))
}

/// Lets only frames reach a socket that a program accepts.
pub(crate) fn set_filter(socket: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    let length =
        libc::c_ushort::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    let (level, name, size) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, size_of::<libc::sock_fprog>());
    // SAFETY: a `sock_fprog` is read that points to as many instructions as it says; both live through the call, and the kernel
    // copies them without changing them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const program).cast(),
            size as libc::socklen_t,
        )
    };
    checked(result as isize).map(drop)
}

/// The type of the interface that a packet socket is bound to.
pub(super) fn hardware_type(socket: BorrowedFd<'_>) -> io::Result<u16> {
    // SAFETY: `sockaddr_ll` is integers and arrays of them, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointers are to a whole address and to its length, both of which live through the call.
    let result = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    checked(result as isize).map(|_| address.sll_hatype)
}

/// The process at the other end of a connection: the one that made the listening socket, or the one that connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number; `None` where it is in another PID namespace, so that it has no number here.
    pub pid: Option<u32>,
    /// Its user.
    pub uid: u32,
}

/// Who is at the other end (unix(7), `SO_PEERCRED`); `None`: the kernel does not say.
pub fn peer(stream: &UnixStream) -> Option<Peer> {
    // `struct ucred`: process, user, group.
    let [pid, uid, _]: [u32; 3] = get(stream.as_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED).ok()?;
    Some(Peer { pid: Some(pid).filter(|pid| *pid > 0), uid })
}

/// The interface that a packet socket sends from and receives from, and what it receives.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketAddress {
    pub(super) interface: u32,
    /// EtherType, host order; 0: frames are only sent, not received.
    pub(super) protocol: u16,
}

// SAFETY: the closure gets a pointer to a whole, initialised `sockaddr_ll` that lives until it returns, and its size.
unsafe impl SocketAddrArg for PacketAddress {
    unsafe fn with_sockaddr<R>(&self, f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            // Network byte order (packet(7)).
            sll_protocol: self.protocol.to_be(),
            sll_ifindex: self.interface as libc::c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        f((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as SocketAddrLen)
    }
}

/// The answer of a system call, `-1` being an error.
#[inline]
fn checked(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}
