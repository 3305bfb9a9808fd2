//! System calls of a receiving packet socket that no safe function covers, and the control messages of frames.
#![allow(unsafe_code)]

use offload::NetHeader;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use wire::ethernet::EtherType;
use wire::vlan::{Tag, Tci};

/// An instruction of a filter (linux/filter.h).
pub type Instruction = libc::sock_filter;

/// Options that are on or off.
#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// `PACKET_AUXDATA`: lengths and VLAN tag with each frame.
    Auxdata,
    /// `PACKET_VNET_HDR`: a virtio header in front of each frame.
    NetHeader,
    /// `PACKET_IGNORE_OUTGOING`: no frames that are sent.
    IgnoreOutgoing,
    /// `SO_TIMESTAMPNS`: when the kernel received a frame.
    Times,
}

/// linux/if_packet.h; libc lacks them.
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

pub fn turn_on(socket: &OwnedFd, flag: Flag) -> io::Result<()> {
    let (level, name) = match flag {
        Flag::Auxdata => (libc::SOL_PACKET, libc::PACKET_AUXDATA),
        Flag::NetHeader => (libc::SOL_PACKET, PACKET_VNET_HDR),
        Flag::IgnoreOutgoing => (libc::SOL_PACKET, PACKET_IGNORE_OUTGOING),
        Flag::Times => (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
    };
    let value: libc::c_int = 1;
    // SAFETY: an int is read, which lives through the call.
    unsafe { set(socket, level, name, &value) }
}

/// Lets only frames reach the socket that a program accepts.
pub fn filter(socket: &OwnedFd, program: &[Instruction]) -> io::Result<()> {
    let length =
        libc::c_ushort::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: a `sock_fprog` is read that points to as many instructions as it says; both live through the call, and
    // the kernel copies them without changing them.
    unsafe { set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program) }
}

/// Makes the interface promiscuous as long as the socket lives.
pub fn promiscuous(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: interface as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: a `packet_mreq` is read, which lives through the call.
    unsafe { set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request) }
}

/// # Safety
///
/// The option takes a `T`, and what it points to is there.
unsafe fn set<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to a whole `T` that lives through the call, and the length is its size; the caller says that
    // the option takes one.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Frames that were dropped for want of room since the socket was opened (`PACKET_STATISTICS`), or since this was called
/// last.
pub fn drops(socket: &OwnedFd) -> io::Result<u32> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: the pointers are to a whole struct of integers and to its length, both of which live through the call.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut statistics).cast(), &raw mut length)
    };
    if result == 0 { Ok(statistics.tp_drops) } else { Err(io::Error::last_os_error()) }
}

/// What the socket gave.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Octets of virtio header and frame, also those for which there was no room.
    pub length: usize,
    pub header: [u8; NetHeader::LENGTH],
    pub tag: Option<Tag>,
}

/// Octets for control messages: the auxiliary data take 40, a time 32.
pub const CONTROL: usize = 96;

/// Room for control messages, aligned as they want it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct Control(pub [u8; CONTROL]);

/// Takes a frame into `room`.
///
/// # Errors
///
/// Those of recvmsg(2), `EAGAIN` if there is no frame.
pub fn receive(socket: &OwnedFd, room: &mut [u8]) -> io::Result<Taken> {
    let mut header = [0; NetHeader::LENGTH];
    let mut control = Control([0; CONTROL]);
    let mut vectors = [
        libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: header.len() },
        libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() },
    ];
    // SAFETY: `msghdr` is integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    // SAFETY: the message points to two vectors, and these to `header` and `room`, and to `CONTROL` octets, each with
    // its length; no two share any, and all live through the call.
    let length =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT | libc::MSG_TRUNC) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: recvmsg(2) succeeded, and its control octets are those of `control`.
    let tag = unsafe { tag_of(&message) };
    Ok(Taken { length, header, tag })
}

/// The tag in the auxiliary data of a message.
///
/// # Safety
///
/// As [`told`].
pub unsafe fn tag_of(message: &libc::msghdr) -> Option<Tag> {
    // SAFETY: the caller's promise; the struct is integers.
    let data: Option<libc::tpacket_auxdata> =
        unsafe { told(message, libc::SOL_PACKET, libc::PACKET_AUXDATA) };
    tag(&data?)
}

/// What the kernel tells beside a message under this level and type.
///
/// # Safety
///
/// recvmsg(2) or recvmmsg(2) has filled the message, its control octets are still there, and a `T` is integers.
pub unsafe fn told<T>(message: &libc::msghdr, level: libc::c_int, kind: libc::c_int) -> Option<T> {
    // SAFETY: the caller's promise.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: the pointer is to a header inside the control octets, as the macros check.
        let header = unsafe { next.read_unaligned() };
        // SAFETY: a length in octets without any access.
        let whole = unsafe { libc::CMSG_LEN(size_of::<T>() as libc::c_uint) } as usize;
        #[allow(clippy::unnecessary_cast, reason = "32 bits in musl")]
        let length = header.cmsg_len as usize;
        if (header.cmsg_level, header.cmsg_type) == (level, kind) && length >= whole {
            // SAFETY: the header says that as many octets follow it; the caller says that they may be anything.
            return Some(unsafe { libc::CMSG_DATA(next).cast::<T>().read_unaligned() });
        }
        // SAFETY: as above; null behind the last.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    None
}

fn tag(data: &libc::tpacket_auxdata) -> Option<Tag> {
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    // Kernels before 3.14 do not tell it, and take off no other.
    let told = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if told { EtherType(data.tp_vlan_tpid) } else { EtherType::VLAN };
    Some(Tag { tpid, tci: Tci(data.tp_vlan_tci) })
}
