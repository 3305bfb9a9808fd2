//! Making the link that holds the program on the interface.

use std::os::fd::{BorrowedFd, OwnedFd};

use crate::interface::Mode;
use crate::sys;
use kernel::netlink::{Refusal, XdpMode, attach_xdp, detach_xdp};

/// Makes a link. Where driver or kernel refuse, asks once more for the words of the refusal, which bpf(2) has no place
/// for.
///
/// The same request by netlink is refused by the same code (`dev_xdp_attach` and the driver's `ndo_bpf` in
/// `net/core/dev.c`) before anything has changed, and its answer carries the message. Should it succeed all the same,
/// because what stood in the way went in this moment, the program is taken off at once: held by netlink it could not be
/// pinned.
pub(crate) fn create(interface: u32, program: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Refusal> {
    let mode = match mode {
        Mode::Native => XdpMode::Native,
        Mode::Generic => XdpMode::Generic,
    };
    let link = || sys::link_create(program, interface, mode as u32);
    let error = match link() {
        Ok(link) => return Ok(link),
        Err(error) => error,
    };
    let is_drivers = matches!(
        error.raw_os_error(),
        Some(
            libc::EINVAL
                | libc::ERANGE
                | libc::EOPNOTSUPP
                | libc::ENOMEM
                | libc::ENOSPC
                | libc::EEXIST
                | libc::EIO
        )
    );
    if !is_drivers {
        return Err(error.into());
    }
    match attach_xdp(interface, program, mode) {
        Err(refusal) if refusal.error.raw_os_error() == error.raw_os_error() => Err(refusal),
        // Another reason than the first would mislead.
        Err(_) => Err(error.into()),
        Ok(()) => {
            let _ = detach_xdp(interface, mode);
            link().map_err(Refusal::from)
        }
    }
}
