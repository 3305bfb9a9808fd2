//! Why a link cannot be had, or cannot go on.

use crate::frame_size::{longest_mtu, needed_mtu};
use crate::framing::FramingError;
use format::quoted;
use kernel::netlink::{self, Address, Link, Refusal};
use kernel::tun::TunError;
use rustix::process::{Resource, getrlimit};
pub use service::ErrorKind as Kind;
use service::control::ControlError;
use service::memory::MemoryError;
use std::io;
use wire::emit::Encapsulation;

/// The least MTU of IPv6 (RFC 8200 section 5).
pub(crate) const LEAST_IPV6: u32 = 1280;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name or an MTU that no interface has, or a parent that is none.
    #[error("{0}")]
    Usage(String),
    /// Packets that do not fit the parent.
    #[error("{0}")]
    No(String),
    /// The process may not do it, or may not have more of something; or it failed.
    #[error("{0}")]
    Lacks(String),
    #[error(transparent)]
    Framing(#[from] FramingError),
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The interface does not take an address.
    #[error("{name} does not take the address {address}: {refusal}{}", no_ipv6(address, *mtu, refusal))]
    Address {
        name: String,
        address: Address,
        /// MTU of the interface then, bytes; `None`: nobody knows.
        mtu: Option<u32>,
        refusal: Refusal,
    },
    #[error(
        "another process has the frames of {parent} with the encapsulation {encapsulation} already, perhaps by a former name of the \
         interface, and each would get all of them (`rxlane link status` lists links, `rxlane pppoe status` concentrators)"
    )]
    LineTaken { parent: String, encapsulation: String },
    #[error(
        "{parent} gives no XDP socket ({source}){}; `--io af-packet` takes packet sockets",
        no_xdp(source)
    )]
    Xdp { parent: String, source: io::Error },
    #[error("{0}, fewer `--workers`, and where subscribers are served fewer `--max-sessions`, take less")]
    Memory(#[from] MemoryError),
    #[error("cannot {what}: {source}")]
    Kernel { what: String, source: io::Error },
    /// The socket for `status` and `down` cannot be had.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl Error {
    pub fn kind(&self) -> Kind {
        match self {
            Error::Usage(_) | Error::Framing(_) => Kind::Usage,
            Error::No(_) | Error::LineTaken { .. } | Error::Tun(TunError::Taken { .. }) => Kind::No,
            Error::Xdp { source, .. } => match source.raw_os_error() {
                Some(libc::EBUSY) => Kind::No,
                Some(libc::EINVAL | libc::EMSGSIZE) => Kind::Usage,
                _ => Kind::Lacks,
            },
            Error::Control(error) if error.is_negative() => Kind::No,
            Error::Address { address, mtu, .. } if too_short(address, *mtu).is_some() => Kind::Usage,
            Error::Lacks(_)
            | Error::Tun(_)
            | Error::Address { .. }
            | Error::Memory(_)
            | Error::Kernel { .. }
            | Error::Control(_) => Kind::Lacks,
        }
    }

    /// Whether another link, or another program, has what this one takes.
    pub(crate) fn is_of_another(&self) -> bool {
        match self {
            Error::LineTaken { .. } | Error::Tun(TunError::Taken { .. }) => true,
            Error::Xdp { source, .. } => source.raw_os_error() == Some(libc::EBUSY),
            _ => false,
        }
    }

    /// What the kernel said, where it is that no more files may be opened, whatever was tried.
    pub fn or_descriptors(self, needed: u64) -> Error {
        match self.number() {
            Some(libc::EMFILE) => Error::Lacks(no_descriptors(getrlimit(Resource::Nofile).current, needed)),
            Some(libc::ENFILE) => Error::Lacks(no_descriptors(None, needed)),
            _ => self,
        }
    }

    /// Number of the error of the system call that failed.
    fn number(&self) -> Option<i32> {
        match self {
            Error::Tun(TunError::NoDriver(source) | TunError::Refused { source, .. })
            | Error::Xdp { source, .. }
            | Error::Kernel { source, .. }
            | Error::Control(ControlError::File { source, .. } | ControlError::NoAnswer { source, .. }) => {
                let refusal = source.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>());
                refusal.map_or(source, |refusal| &refusal.error).raw_os_error()
            }
            Error::Address { refusal, .. } => refusal.error.raw_os_error(),
            _ => None,
        }
    }

    pub fn address(index: u32, name: &str, address: Address, refusal: Refusal) -> Error {
        let mtu = netlink::link_by_index(index).ok().map(|link| link.mtu);
        Error::Address { name: name.to_owned(), address, mtu, refusal }
    }

    pub fn mtu_too_large(mtu: u32, parent: &Link, encapsulation: &Encapsulation) -> Error {
        let Link { name, mtu: parent_mtu, .. } = parent;
        let (most, needed) = (longest_mtu(*parent_mtu, encapsulation), needed_mtu(mtu, encapsulation));
        Error::No(format!(
            "packets of {mtu} bytes do not fit {name}, whose MTU is {parent_mtu}: with this encapsulation {most} is the \
             most; `ip link set {quoted_name} mtu {needed}` makes room where the device allows it",
            quoted_name = quoted(name)
        ))
    }

    /// A thread that moves packets of this interface ended by itself.
    pub fn worker(name: &str) -> Error {
        Error::Lacks(format!(
            "a worker of {name} ended unexpectedly: this is a defect of rxlane, please report what stands above"
        ))
    }

    pub fn packet_socket(parent: &str) -> impl Fn(io::Error) -> Error {
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                Error::Lacks(format!("frames of {parent} take CAP_NET_RAW: run rxlane as root"))
            }
            _ => Error::Kernel { what: format!("open a packet socket on {parent}"), source },
        }
    }

    pub fn kernel(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Kernel { what, source }
    }

    pub fn refused(what: impl Into<String>) -> impl FnOnce(Refusal) -> Error {
        let failed = Error::kernel(what);
        move |refusal| failed(io::Error::other(refusal))
    }
}

fn no_descriptors(limit: Option<u64>, needed: u64) -> String {
    match limit {
        Some(limit) => format!(
            "the process may have {limit} files open (RLIMIT_NOFILE), and more are needed: where there are `--workers`, fewer take fewer, and \
             `ulimit -n {needed}` before it is started (in a unit LimitNOFILE={needed}) is enough for these"
        ),
        None => {
            "the machine has as many files open as it may: `sysctl fs.file-max` shows and raises the limit"
                .to_owned()
        }
    }
}

/// Why an interface takes no IPv6 address, and what to do about it.
fn no_ipv6(address: &Address, mtu: Option<u32>, refusal: &Refusal) -> String {
    match refusal.error.raw_os_error() {
        Some(libc::EACCES) => {
            "; IPv6 is off here (`sysctl net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0`)"
                .to_owned()
        }
        _ => match too_short(address, mtu) {
            Some(mtu) => {
                format!("; IPv6 takes packets of {LEAST_IPV6} bytes or more, and these are {mtu} at most (`--mtu`)")
            }
            None => String::new(),
        },
    }
}

/// The MTU, where that is less than IPv6 takes and the address is of IPv6.
fn too_short(address: &Address, mtu: Option<u32>) -> Option<u32> {
    mtu.filter(|mtu| *mtu < LEAST_IPV6 && address.local.is_ipv6())
}

fn no_xdp(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EBUSY) => ": a queue has one such socket, and another link or program has it",
        Some(libc::EINVAL) => ": it has fewer transmit queues than workers (`--workers 1`), or none",
        Some(libc::EMSGSIZE) => ": frames of its MTU are longer than a page, which is the most",
        Some(libc::EAFNOSUPPORT) => ": this kernel has no AF_XDP",
        _ => "",
    }
}
