//! Who is at the other end of a connection.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Number of the process that made the listening socket, or at its end the one that connected (unix(7), `SO_PEERCRED`); `None`
/// where it is in another PID namespace, in which case it has no number here.
pub fn peer(stream: &UnixStream) -> Option<u32> {
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
    u32::try_from(peer.pid).ok().filter(|pid| result == 0 && *pid > 0)
}
