//! System calls of a packet socket that no safe function covers.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// linux/if_packet.h; libc lacks it.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Octets for control messages, of which the auxiliary data take 40.
const CONTROL: usize = 96;

#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// A packet socket for all frames that an interface receives, each with the tag that the kernel takes off.
pub fn open(interface: &str) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened, and that nothing else has.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    for option in [libc::PACKET_AUXDATA, PACKET_IGNORE_OUTGOING] {
        let on: libc::c_int = 1;
        let length = size_of_val(&on) as libc::socklen_t;
        // SAFETY: the pointer is to an int of that length, which lives through the call.
        let result = unsafe {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, (&raw const on).cast(), length)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let name = CString::new(interface)?;
    // SAFETY: a string that ends with a zero and lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: integers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as libc::c_int;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer is to an address of that length, which lives through the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Takes a frame into `room`: its octets without the outermost tag, and TPID and TCI of that as they were on the line.
pub fn receive(socket: &OwnedFd, room: &mut [u8]) -> io::Result<(usize, Option<[u8; 4]>)> {
    let mut control = Control([0; CONTROL]);
    let mut vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    // SAFETY: the message points to a vector, that to `room`, and to `CONTROL` octets, each with its length; all live
    // through the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: recvmsg(2) has filled the message, and its control octets are still there.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let is_auxdata = header.is_some_and(|header| {
        (header.cmsg_level, header.cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA)
    });
    if !is_auxdata {
        return Ok((length, None));
    }
    // SAFETY: behind a header of this type the kernel writes auxiliary data, for which there is room.
    let data: libc::tpacket_auxdata = unsafe {
        libc::CMSG_DATA(libc::CMSG_FIRSTHDR(&raw const message))
            .cast::<libc::tpacket_auxdata>()
            .read_unaligned()
    };
    let has_tag = data.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
    let tag = || {
        let ([a, b], [c, d]) = (data.tp_vlan_tpid.to_be_bytes(), data.tp_vlan_tci.to_be_bytes());
        [a, b, c, d]
    };
    Ok((length, has_tag.then(tag)))
}
