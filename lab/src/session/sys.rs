//! System calls of PPPoE sockets and of `/dev/ppp`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Bytes of an interface's name with its end (IFNAMSIZ).
pub(super) const NAME_LENGTH: usize = 16;
/// `struct sockaddr_pppox` is packed: family 2, protocol 4, session id 2, station 6, name 16 bytes.
const ADDRESS_LENGTH: usize = 30;
/// `PX_PROTO_OE`.
const PPPOE: libc::c_int = 0;

// linux/ppp-ioctl.h
const PPPIOCGCHAN: libc::c_ulong = 0x8004_7437;
const PPPIOCATTCHAN: libc::c_ulong = 0x4004_7438;
const PPPIOCCONNECT: libc::c_ulong = 0x4004_743a;
const PPPIOCNEWUNIT: libc::c_ulong = 0xc004_743e;

/// A socket with that session. The name is shorter than [`NAME_LENGTH`].
pub(super) fn connect(interface: &str, number: u16, peer: [u8; 6]) -> io::Result<OwnedFd> {
    let mut address = [0_u8; ADDRESS_LENGTH];
    address[..2].copy_from_slice(&(libc::AF_PPPOX as u16).to_ne_bytes());
    address[2..6].copy_from_slice(&PPPOE.to_ne_bytes());
    address[6..8].copy_from_slice(&number.to_be_bytes());
    let name = interface.as_bytes();
    let length = name.len().min(NAME_LENGTH - 1);
    address[8..14].copy_from_slice(&peer);
    address[14..14 + length].copy_from_slice(&name[..length]);
    // SAFETY: takes numbers only.
    let socket = unsafe { libc::socket(libc::AF_PPPOX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, PPPOE) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the pointer is valid for the length that goes with it.
    let done = unsafe {
        libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), ADDRESS_LENGTH as libc::socklen_t)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

/// Number of the PPP channel behind the socket.
pub(super) fn channel(socket: &OwnedFd) -> io::Result<i32> {
    with_number(socket, PPPIOCGCHAN, 0)
}

/// Makes `file` speak for the channel.
pub(super) fn attach(file: &File, channel: i32) -> io::Result<()> {
    with_number(file, PPPIOCATTCHAN, channel).map(drop)
}

/// A new interface, whose number is the next free one.
pub(super) fn new_unit(file: &File) -> io::Result<i32> {
    with_number(file, PPPIOCNEWUNIT, -1)
}

/// Connects the channel of `file` with the interface.
pub(super) fn connect_unit(file: &File, unit: i32) -> io::Result<()> {
    with_number(file, PPPIOCCONNECT, unit).map(drop)
}

fn with_number(file: &impl AsRawFd, request: libc::c_ulong, mut number: i32) -> io::Result<i32> {
    // SAFETY: each of these requests reads or writes one int, which lives until the call returns.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), request, &raw mut number) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
}
