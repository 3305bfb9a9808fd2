//! Sockets: addresses and options of AF_PACKET and AF_XDP, and what ethtool turns off.

use super::checked;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Types whose octets may be handed to the kernel and taken from it.
///
/// # Safety
///
/// Integers only, of which every value is allowed, without padding.
pub unsafe trait Plain: Copy + Default {}

/// `struct tpacket_req3`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Ring {
    pub block_size: u32,
    pub block_count: u32,
    pub frame_size: u32,
    pub frame_count: u32,
    pub retire_milliseconds: u32,
    pub private: u32,
    pub features: u32,
}

/// `struct tpacket_req`, for TPACKET_V2.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct PlainRing {
    pub block_size: u32,
    pub block_count: u32,
    pub frame_size: u32,
    pub frame_count: u32,
}

/// `struct xdp_umem_reg`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Memory {
    pub address: u64,
    pub length: u64,
    pub chunk: u32,
    pub headroom: u32,
    pub flags: u32,
    pub metadata: u32,
}

/// `struct xdp_ring_offset`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Offsets {
    pub producer: u64,
    pub consumer: u64,
    pub descriptors: u64,
    pub flags: u64,
}

/// `struct xdp_mmap_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AllOffsets {
    pub receive: Offsets,
    pub transmit: Offsets,
    pub fill: Offsets,
    pub completion: Offsets,
}

// SAFETY: integers of one width.
unsafe impl Plain for u32 {}
// SAFETY: integers of one width. As `struct timeval`: seconds and microseconds.
unsafe impl Plain for [i64; 2] {}
// SAFETY: integers of one width.
unsafe impl Plain for Ring {}
// SAFETY: integers of one width.
unsafe impl Plain for PlainRing {}
// SAFETY: two integers of eight octets, then four of four: 32 octets without a gap.
unsafe impl Plain for Memory {}
// SAFETY: integers of one width.
unsafe impl Plain for AllOffsets {}

/// setsockopt(2).
pub fn set<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` octets of a whole T.
    let answer = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    checked(answer.into()).map(drop)
}

/// getsockopt(2) of what the kernel gives whole.
pub fn get<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` octets of a T, all of whose values are allowed.
    let answer =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) };
    checked(answer.into())?;
    Ok(value)
}

/// Binds a packet socket to an interface, for frames of `protocol` (host order; 0: none).
pub fn bind_packet(fd: BorrowedFd<'_>, interface: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: a whole `sockaddr_ll` and its size.
    let answer = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    checked(answer.into()).map(drop)
}

/// Binds an XDP socket to queue 0 of an interface.
pub fn bind_xdp(fd: BorrowedFd<'_>, interface: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: a whole `sockaddr_xdp` and its size.
    let answer = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    };
    checked(answer.into()).map(drop)
}

/// sendto(2) of nothing: what lies in the socket's ring is sent, without waiting.
pub fn kick(fd: BorrowedFd<'_>) -> io::Result<usize> {
    // SAFETY: no octets and no address.
    let answer =
        unsafe { libc::sendto(fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
    checked(answer as libc::c_long)
}
