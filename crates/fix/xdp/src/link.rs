//! Making the link that holds the program on the interface.

use format::quoted;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::error::Error;
use crate::interface::{Interface, Mode, driver};
use crate::permission::refused;
use kernel::bpf;
use kernel::netlink::{Link, Refusal, XdpMode, attach_xdp, detach_xdp};

/// Makes a link. Where driver or kernel refuse, asks once more for the words of the refusal, which bpf(2) has no place
/// for.
///
/// The same request by netlink is refused by the same code (`dev_xdp_attach` and the driver's `ndo_bpf` in
/// `net/core/dev.c`) before anything has changed, and its answer carries the message. Should it succeed all the same,
/// because what stood in the way went in this moment, the program is taken off at once: held by netlink it could not be
/// pinned.
fn create(interface: u32, program: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Refusal> {
    let mode = match mode {
        Mode::Native => XdpMode::Native,
        Mode::Generic => XdpMode::Generic,
    };
    let link = || bpf::link_create(program, interface, mode as u32);
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

/// Puts a program on an interface, for as long as the link is open or pinned.
pub(crate) fn create_link(
    interface: &Interface,
    mode: Mode,
    program: BorrowedFd<'_>,
) -> Result<OwnedFd, Error> {
    let refusal = match create(interface.index, program, mode) {
        Ok(link) => return Ok(link),
        Err(refusal) => refusal,
    };
    let known = interface.link()?;
    match refusal.error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) if known.xdp.is_some() => Err(occupied(interface)?),
        Some(libc::EPERM | libc::EACCES) => {
            Err(refused(format!("attach to {}", interface.name), refusal.error))
        }
        number => Err(Error::Lacks(unsupported(number, &known, mode, &refusal))),
    }
}

/// That driver or kernel refuse the program in this mode, in their words, and the way out.
fn unsupported(number: Option<i32>, link: &Link, mode: Mode, refusal: &Refusal) -> String {
    let name = &link.name;
    let of = driver(link).map_or(String::new(), |driver| format!(" ({driver})"));
    let said = refusal.message.as_ref().map_or(String::new(), |said| format!(", it says \"{said}\""));
    if number == Some(libc::EOPNOTSUPP) && mode == Mode::Native {
        return format!(
            "the driver of {name}{of} has no native XDP{said}: `--mode generic` works with any driver, but only after the \
             kernel has built a socket buffer for each frame"
        );
    }
    let advice = advice(number, link, mode, refusal.message.is_some());
    let advice = advice.map_or(String::new(), |advice| format!(": {advice}"));
    format!("{name}{of} refuses the program in {mode} mode{said} ({}){advice}", refusal.error)
}

/// The way out, and where the driver does not say what is wrong, what usually is.
fn advice(number: Option<i32>, link: &Link, mode: Mode, has_said: bool) -> Option<String> {
    if mode == Mode::Generic {
        return None;
    }
    let generic = "`--mode generic` asks nothing of the driver".to_owned();
    let name = &link.name;
    let mtu = format!(" (it is {})", link.mtu);
    let causes = match number? {
        libc::EINVAL | libc::ERANGE => format!(
            "an MTU that is too long for XDP{mtu}, LRO (`ethtool -K {quoted_name} lro off`), header split or too many queues \
             (`ethtool -L {quoted_name}`)",
            quoted_name = quoted(name)
        ),
        libc::ENOMEM | libc::ENOSPC => format!(
            "that XDP takes transmit queues of its own, of which fewer receive queues (`ethtool -L {quoted_name}`) leave some",
            quoted_name = quoted(name)
        ),
        _ => return Some(generic),
    };
    if has_said {
        return Some(generic);
    }
    Some(format!("the usual cause is {causes}; the kernel's log may say which; {generic}"))
}

/// The error that names the program on an interface.
pub(crate) fn occupied(interface: &Interface) -> Result<Error, Error> {
    let name = interface.name.clone();
    Ok(match interface.program()? {
        Some(program) => match program.attached_as.clone() {
            Some((family, attached)) => Error::Attached { family, interface: name, attached },
            None => Error::Foreign { interface: name, program: Box::new(program) },
        },
        // It was taken off since.
        None => Error::Locked { interface: name },
    })
}
