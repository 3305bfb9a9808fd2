//! TUN devices and a socket that sees frames: system calls that no safe function covers.
#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, bind, socket_with};
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;

/// Offloads (`linux/if_tun.h`): checksum, TCP over IPv4, over IPv6, ECN; UDP over IPv4, over IPv6.
const TCP_OFFLOADS: libc::c_uint = 0x01 | 0x02 | 0x04 | 0x08;
const UDP_OFFLOADS: libc::c_uint = 0x20 | 0x40;

/// A TUN device in the namespace of this thread, with virtio headers and all offloads. Gone when it is closed.
///
/// Errors: no `/dev/net/tun`, no privilege; `InvalidInput` where the kernel knows no UDP segmentation (before 6.2).
pub fn tun(name: &str) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    // SAFETY: integers and octets, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, octet) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *place = octet as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes a whole `ifreq`.
    let set = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    done(set)?;
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    let set = unsafe {
        libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(TCP_OFFLOADS | UDP_OFFLOADS))
    };
    done(set)?;
    Ok(file)
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A packet socket whose reads are the frames that come in by an interface.
pub fn frames(interface: &str) -> Result<File, Errno> {
    let every = (libc::ETH_P_ALL as u16).to_be();
    let protocol = NonZeroU32::new(every.into()).map(Protocol::from_raw);
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    let index = name_to_index(&socket, interface)?;
    bind(&socket, &Receiving { index, protocol: every })?;
    Ok(File::from(socket))
}

struct Receiving {
    index: u32,
    protocol: u16,
}

// SAFETY: the closure gets a pointer to a whole, initialised `sockaddr_ll` that lives until it returns, and its size.
unsafe impl SocketAddrArg for Receiving {
    unsafe fn with_sockaddr<R>(&self, f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            sll_protocol: self.protocol,
            sll_ifindex: self.index as libc::c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        f((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as SocketAddrLen)
    }
}
