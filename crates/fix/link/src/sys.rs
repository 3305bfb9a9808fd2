//! The address of a packet socket, which no safe function covers.
#![allow(unsafe_code)]

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};

/// The interface that a packet socket sends from and receives from, by its number, and what it receives.
#[derive(Clone, Copy, Debug)]
pub struct PacketAddress {
    pub interface: u32,
    /// EtherType, host order; 0: frames are only sent, not received.
    pub protocol: u16,
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
