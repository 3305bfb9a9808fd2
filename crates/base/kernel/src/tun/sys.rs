//! ioctl(2) of a TUN device.
#![allow(unsafe_code)]

use super::Form;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What an interface is made as.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub form: Form,
    /// A virtio header stands in front of every packet.
    pub has_header: bool,
    pub has_queues: bool,
    pub is_first: bool,
}

/// Makes the interface of an opened device, or another queue of it. `EBUSY`: there is one of this name; a longer name
/// is cut off.
pub fn attach(device: BorrowedFd<'_>, name: &str, kind: Kind) -> io::Result<()> {
    // SAFETY: `ifreq` is integers, pointers and arrays of them, for which zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    // The last byte stays zero.
    let room = libc::IFNAMSIZ - 1;
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes().take(room)) {
        *place = byte as libc::c_char;
    }
    let mut flags = libc::IFF_NO_PI;
    flags |= match kind.form {
        Form::Packets => libc::IFF_TUN,
        Form::Frames => libc::IFF_TAP,
    };
    for (is_set, flag) in [
        (kind.has_header, libc::IFF_VNET_HDR),
        (kind.has_queues, libc::IFF_MULTI_QUEUE),
        (kind.is_first, libc::IFF_TUN_EXCL),
    ] {
        flags |= if is_set { flag } else { 0 };
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which is whole, initialised, and lives through the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// linux/if_tun.h: `_IOW('T', 226, int)`.
const TUNSETCARRIER: u32 = 0x4004_54e2;

/// Turns the carrier on or off.
pub fn set_carrier(device: BorrowedFd<'_>, works: bool) -> io::Result<()> {
    let value = libc::c_int::from(works);
    // SAFETY: TUNSETCARRIER reads one int, which lives through the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), TUNSETCARRIER as _, &raw const value) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the interface persists without a descriptor.
pub fn set_persistent(device: BorrowedFd<'_>, is_persistent: bool) -> io::Result<()> {
    // SAFETY: TUNSETPERSIST takes its argument by value.
    let result = unsafe {
        libc::ioctl(device.as_raw_fd(), libc::TUNSETPERSIST as _, libc::c_ulong::from(is_persistent))
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Informs the kernel of what the reader of a device finishes itself (`TUN_F_*` of linux/if_tun.h).
pub fn set_offload(device: BorrowedFd<'_>, offloads: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    let result =
        unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD as _, libc::c_ulong::from(offloads)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
