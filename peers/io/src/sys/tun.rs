//! TUN devices: making them, and what they are told to leave to the reader (tun.txt of the kernel).

use super::checked;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// `struct ifreq` as TUNSETIFF reads it: a name and flags; 40 octets on 64-bit machines.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: i16,
    rest: [u8; 22],
}

/// Makes the device in the calling thread's namespace; it goes with the file, which never waits. `flags` beside IFF_TUN and IFF_NO_PI;
/// `offloads` as of TUNSETOFFLOAD.
pub fn open(name: &str, flags: i32, offloads: u32) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let mut request = Request {
        name: [0; libc::IFNAMSIZ],
        flags: (libc::IFF_TUN | libc::IFF_NO_PI | flags) as i16,
        rest: [0; 22],
    };
    assert!(name.len() < libc::IFNAMSIZ);
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: a whole `ifreq`, which the kernel reads and writes.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) }.into())?;
    let offloads = libc::c_ulong::from(offloads);
    // SAFETY: the argument is a number.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, offloads) }.into())?;
    Ok(file)
}
