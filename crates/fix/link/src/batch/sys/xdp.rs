//! Structs of AF_XDP sockets (linux/if_xdp.h).

use super::{Plain, checked};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct xdp_umem_reg` without what came after Linux 4.18 but the flags.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Offsets {
    pub producer: u64,
    pub consumer: u64,
    pub descriptors: u64,
    pub flags: u64,
}

/// `struct xdp_mmap_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AllOffsets {
    pub receive: Offsets,
    pub transmit: Offsets,
    pub fill: Offsets,
    pub completion: Offsets,
}

// SAFETY: two integers of eight octets, then four of four: 32 octets without a gap.
unsafe impl Plain for Memory {}
// SAFETY: integers of one width.
unsafe impl Plain for AllOffsets {}

/// Binds an XDP socket to a queue of an interface, in copy mode.
pub fn bind(socket: BorrowedFd<'_>, interface: u32, queue: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as libc::c_ushort,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: a whole `sockaddr_xdp` and its size.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    checked(result.into()).map(drop)
}
