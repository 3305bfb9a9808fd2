//! The `SIOCETHTOOL` ioctl (`net/ethtool/ioctl.c`), for commands that read.
//!
//! The kernel writes as many bytes as the driver has names, counters or table entries at that moment, which may
//! be more than when the size was queried. So the buffer ends at a page that nobody may write: what does not
//! fit is an error of the call and no damage to this process.

#![allow(unsafe_code)]

use crate::socket::Mapping;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketType};
use std::io;

/// Commands that only read (`include/uapi/linux/ethtool.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Command {
    /// `ETHTOOL_GDRVINFO`, `struct ethtool_drvinfo`.
    DriverInfo = 0x03,
    /// `ETHTOOL_GLINK`, `struct ethtool_value`.
    Link = 0x0a,
    /// `ETHTOOL_GCOALESCE`, `struct ethtool_coalesce`.
    Coalesce = 0x0e,
    /// `ETHTOOL_GRINGPARAM`, `struct ethtool_ringparam`.
    Rings = 0x10,
    /// `ETHTOOL_GSTRINGS`, `struct ethtool_gstrings`.
    Strings = 0x1b,
    /// `ETHTOOL_GSTATS`, `struct ethtool_stats`.
    Statistics = 0x1d,
    /// `ETHTOOL_GRXFH`, `struct ethtool_rxnfc`.
    HashFields = 0x29,
    /// `ETHTOOL_GRXRINGS`, `struct ethtool_rxnfc`.
    ReceiveRings = 0x2d,
    /// `ETHTOOL_GSSET_INFO`, `struct ethtool_sset_info`.
    StringCounts = 0x37,
    /// `ETHTOOL_GRXFHINDIR`, `struct ethtool_rxfh_indir`.
    IndirectionTable = 0x38,
    /// `ETHTOOL_GFEATURES`, `struct ethtool_gfeatures`.
    Features = 0x3a,
    /// `ETHTOOL_GCHANNELS`, `struct ethtool_channels`.
    Channels = 0x3c,
    /// `ETHTOOL_GRSSH`, `struct ethtool_rxfh`.
    ReceiveHash = 0x46,
    /// `ETHTOOL_GLINKSETTINGS`, `struct ethtool_link_settings`.
    LinkSettings = 0x4c,
}

/// A socket to ask with, and the buffer that questions and answers share.
#[derive(Debug)]
pub(super) struct Caller {
    socket: OwnedFd,
    buffer: Guarded,
}

impl Caller {
    pub(super) fn open() -> io::Result<Caller> {
        // Any socket will do; a container may deny one family and allow another.
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
            .or_else(|_| rustix::net::socket(AddressFamily::UNIX, SocketType::DGRAM, None))?;
        Ok(Caller { socket, buffer: Guarded::new(1)? })
    }

    /// Asks `command` of the interface `name`. `question` follows the command's number in its structure; room is
    /// made for at least `room` bytes of answer, which is returned from its start, the number included.
    pub(super) fn ask(
        &mut self,
        name: &[u8],
        command: Command,
        question: &[u8],
        room: usize,
    ) -> io::Result<&[u8]> {
        let needed = room.max(question.len().saturating_add(4));
        if self.buffer.size < needed {
            self.buffer = Guarded::new(needed)?;
        }
        let bytes = self.buffer.bytes();
        bytes.fill(0);
        let number = (command as u32).to_ne_bytes();
        for (to, from) in bytes.iter_mut().zip(number.iter().chain(question)) {
            *to = *from;
        }
        // SAFETY: all-zero bytes are a valid `ifreq`, which is integers, bytes and a pointer.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero and ends the name.
        let places = request.ifr_name.len() - 1;
        if name.len() > places {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        request.ifr_ifru.ifru_data = self.buffer.bytes().as_mut_ptr().cast();
        // SAFETY: `request` is an `ifreq` with a name that ends in zero. Its pointer is to a mapping that this
        // process may write and that nothing else refers to while `self` is borrowed; it is followed by pages
        // that may not be written, so the kernel's copy stops there with EFAULT. None of the commands of
        // `Command` follows a pointer in the structure or keeps this one.
        let result =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(self.buffer.bytes()) }
    }
}

/// Memory that is followed by a page without access.
#[derive(Debug)]
struct Guarded {
    memory: Mapping,
    /// Bytes that may be written: whole pages.
    size: usize,
}

impl Guarded {
    /// At least `room` bytes.
    fn new(room: usize) -> io::Result<Guarded> {
        let page = rustix::param::page_size();
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let size = room.max(1).checked_next_multiple_of(page).ok_or_else(too_large)?;
        let mut memory = Mapping::anonymous(size.checked_add(page).ok_or_else(too_large)?)?;
        let guard = memory.bytes_mut(size, page).as_mut_ptr();
        // SAFETY: the last page of the mapping just made, to which nothing refers: `bytes` ends before it.
        let result = unsafe { libc::mprotect(guard.cast(), page, libc::PROT_NONE) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Guarded { memory, size }) }
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.memory.bytes_mut(0, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_cannot_write_behind_the_buffer() {
        let mut buffer = Guarded::new(10).expect("memory");
        assert_eq!(buffer.size, rustix::param::page_size());
        buffer.bytes().fill(1);
        let start = buffer.bytes().as_mut_ptr();
        // A read(2) of more than fits is cut at the page without access, as the ioctl's copy is.
        let zero = std::fs::File::open("/dev/zero").expect("device");
        // SAFETY: the kernel checks the range page by page; the second page is mapped without access.
        let read = unsafe { libc::read(zero.as_raw_fd(), start.cast(), buffer.size + 16) };
        assert_eq!(read, isize::try_from(buffer.size).expect("small"));
    }

    #[test]
    fn a_name_too_long_for_the_kernel_is_no_device() {
        let mut caller = Caller::open().expect("a socket");
        let error = caller.ask(&[b'x'; 16], Command::DriverInfo, &[], 196).expect_err("too long");
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
