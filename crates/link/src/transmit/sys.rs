//! System calls of a sending packet socket that no safe function covers.
#![allow(unsafe_code)]

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use std::fmt;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

/// Frames a call takes at most; larger batches gain nothing measurable, and the kernel's limit is 1024 (`UIO_MAXIOV`).
pub const BATCH: usize = 64;

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

/// Room for the arguments of a call, so that none is allocated later.
pub struct Messages {
    vectors: Box<[libc::iovec; BATCH]>,
    headers: Box<[libc::mmsghdr; BATCH]>,
}

// SAFETY: the pointers inside are written anew by each call from what it borrows, and never read outside it.
unsafe impl Send for Messages {}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({BATCH})")
    }
}

impl Messages {
    pub fn new() -> Messages {
        // SAFETY: both structs are integers and pointers, for which zero is a value.
        unsafe { Messages { vectors: Box::new(zeroed()), headers: Box::new(zeroed()) } }
    }

    /// Sends the first frames, at most [`BATCH`], and gives their number, at least one.
    ///
    /// # Errors
    ///
    /// Those of sendmmsg(2) for the first frame.
    pub fn send(&mut self, socket: &OwnedFd, frames: &[&[u8]]) -> io::Result<usize> {
        let count = frames.len().min(BATCH);
        for ((vector, header), frame) in self.vectors.iter_mut().zip(self.headers.iter_mut()).zip(frames) {
            vector.iov_base = frame.as_ptr().cast_mut().cast();
            vector.iov_len = frame.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the first `count` headers point to vectors of `self` and these to `frames`, all of which live through
        // the call; the kernel reads the frames and writes only `msg_len`.
        let sent = unsafe {
            libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), count as libc::c_uint, 0)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}
