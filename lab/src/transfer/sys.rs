//! Super-packets of UDP (udp(7), `UDP_SEGMENT`).

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Has the kernel make datagrams of `size` bytes, the last one shorter, of what is sent at once. Where the interface
/// leaves checksums to the stack, kernels before 6.11 refuse that (`EIO`), and datagrams are sent one by one.
pub(super) fn send_segments(
    socket: &UdpSocket,
    bytes: &[u8],
    size: usize,
    far: SocketAddr,
) -> io::Result<()> {
    set_segment(socket, libc::c_int::try_from(size).unwrap_or(0))?;
    let sent = socket.send_to(bytes, far);
    set_segment(socket, 0)?;
    match sent {
        Err(error) if error.raw_os_error() == Some(libc::EIO) => {
            bytes.chunks(size).try_for_each(|piece| socket.send_to(piece, far).map(drop))
        }
        sent => sent.map(drop),
    }
}

fn set_segment(socket: &UdpSocket, size: libc::c_int) -> io::Result<()> {
    // SAFETY: the option is one int, which lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const size).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
