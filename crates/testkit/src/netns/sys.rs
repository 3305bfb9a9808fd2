//! Two system calls that no safe function covers.
#![allow(unsafe_code)]

use rustix::io::Result;
use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives the calling thread a mount namespace of its own.
pub fn leave_mount_namespace() -> Result<()> {
    // SAFETY: what makes unshare(2) unsafe is CLONE_FILES, after which the file descriptors of other threads are
    // none of this one; it is not asked for.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
}

/// The number of the interface that a packet socket sends from.
#[derive(Clone, Copy, Debug)]
pub struct SendingFrom(pub u32);

// SAFETY: the closure gets a pointer to a whole, initialised `sockaddr_ll` that lives until it returns, and its size.
unsafe impl SocketAddrArg for SendingFrom {
    unsafe fn with_sockaddr<R>(&self, f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            // None: frames are only sent, not received.
            sll_protocol: 0,
            sll_ifindex: self.0 as libc::c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        f((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as SocketAddrLen)
    }
}
