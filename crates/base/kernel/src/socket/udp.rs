//! Options of UDP sockets (udp(7)).

use super::sys;
use std::io;
use std::os::fd::AsFd;
use wire::IpVersion;

/// linux/udp.h.
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;
/// `SO_MEMINFO`, and the place of `SK_MEMINFO_DROPS` in it (linux/sock_diag.h).
const SO_MEMINFO: libc::c_int = 55;
const MEMINFO: usize = 9;
const DROPS: usize = 8;

/// Has the kernel cut what is sent into datagrams of so many bytes (`UDP_SEGMENT`); 0: not any more. Error: kernels before 4.18
/// do not know it.
pub fn set_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    sys::set(socket.as_fd(), libc::SOL_UDP, UDP_SEGMENT, u32::from(bytes))
}

/// Lets the kernel hand over several datagrams as one (`UDP_GRO`): [`Control::segment`](super::Control::segment). Error:
/// kernels before 5.0 do not know it.
pub fn set_gro(socket: impl AsFd) -> io::Result<()> {
    sys::set(socket.as_fd(), libc::SOL_UDP, UDP_GRO, 1_u32)
}

/// Datagrams that the socket had no room for since it was opened; the counter has 32 bits. Error: the kernel does not count
/// them (before 4.12).
pub fn drops(socket: impl AsFd) -> io::Result<u32> {
    let (counters, length) = sys::get_some(socket.as_fd(), libc::SOL_SOCKET, SO_MEMINFO, [0_u32; MEMINFO])?;
    let has_drops = length >= (DROPS + 1) * size_of::<u32>();
    counters.get(DROPS).copied().filter(|_| has_drops).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Whether routers, and the kernel of what is longer than the MTU, may fragment what is sent (`IP_MTU_DISCOVER`). Error: the
/// socket is of the other version of IP.
pub fn set_may_fragment(socket: impl AsFd, version: IpVersion, may: bool) -> io::Result<()> {
    let (level, name) = match version {
        IpVersion::V4 => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
        IpVersion::V6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
    };
    // The numbers are the same of both versions.
    let value = if may { libc::IP_PMTUDISC_DONT } else { libc::IP_PMTUDISC_DO };
    sys::set(socket.as_fd(), level, name, value.cast_unsigned())
}
