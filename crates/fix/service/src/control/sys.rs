//! Who is at the other end of a connection.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The process at the other end of a connection: the one that made the listening socket, or the one that connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number; `None` where it is in another PID namespace, so that it has no number here.
    pub pid: Option<u32>,
    /// Its user.
    pub uid: u32,
}

/// Asks the kernel for it (unix(7), `SO_PEERCRED`).
pub fn peer(stream: &UnixStream) -> Option<Peer> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointers are to a whole struct of integers and to its length, both of which live through the call.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    let pid = u32::try_from(peer.pid).ok().filter(|pid| *pid > 0);
    (result == 0).then_some(Peer { pid, uid: peer.uid })
}
