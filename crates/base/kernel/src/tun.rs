//! TUN and TAP devices of this process (tuntap.txt of the kernel's documentation).
//!
//! One goes with the last descriptor of this process, however that ends, unless it is persistent ([`Tun::set_persistent`]).

mod sys;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};
use sys::Kind;

/// Where such devices are made.
pub const PATH: &str = "/dev/net/tun";

/// What a device carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// IP packets (TUN).
    Packets,
    /// Ethernet frames (TAP).
    Frames,
}

/// A TUN or TAP device.
#[derive(Debug)]
pub struct Tun {
    device: OwnedFd,
    name: String,
    form: Form,
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum TunError {
    #[error(
        "{PATH} cannot be opened ({0}): the kernel's tun module makes it (`modprobe tun`), and a container has to be \
         given it (`--device {PATH}`)"
    )]
    NoDriver(io::Error),
    #[error("making an interface requires CAP_NET_ADMIN: run rxlane as root")]
    Privilege,
    #[error("there is an interface {name} already; choose a name that is free")]
    Taken { name: String },
    #[error("the interface {name} cannot be made: {source}")]
    Refused { name: String, source: io::Error },
}

/// What a kernel hands over unfinished, and takes put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// Checksums are partial, and TCP segments of both IP versions come and go as super-packets.
    pub tcp: bool,
    /// Datagrams, too (Linux 6.2).
    pub udp: bool,
}

impl Offloads {
    /// `TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`, `TUN_F_TSO_ECN`.
    const TCP: libc::c_uint = 1 | 2 | 4 | 8;
    /// `TUN_F_USO4`, `TUN_F_USO6`.
    const UDP: libc::c_uint = 0x20 | 0x40;

    /// Their words in output.
    pub fn words(self) -> Vec<String> {
        let all = [(self.tcp, "checksum"), (self.tcp, "tso4"), (self.tcp, "tso6"), (self.udp, "uso")];
        all.iter().filter(|(there, _)| *there).map(|(_, word)| (*word).to_owned()).collect()
    }

    fn bits(self) -> libc::c_uint {
        (if self.tcp { Offloads::TCP } else { 0 }) | (if self.udp { Offloads::UDP } else { 0 })
    }
}

impl Tun {
    /// Makes a device in the network namespace of the calling thread. It is down, and has the MTU 1500.
    pub fn new(name: &str, form: Form) -> Result<Tun, TunError> {
        Tun::open(name, Kind { form, has_header: false, has_queues: false, is_first: true })
    }

    /// Makes a device of several queues. In front of every packet, read or written, stands a virtio header (`struct
    /// virtio_net_hdr`), and the kernel hands over and takes what it says of its [`Offloads`].
    pub fn queues(name: &str, form: Form, count: usize) -> Result<(Vec<Tun>, Offloads), TunError> {
        let open = |number: usize| {
            let kind = Kind { form, has_header: true, has_queues: count > 1, is_first: number == 0 };
            Tun::open(name, kind)
        };
        let queues = (0..count.max(1)).map(open).collect::<Result<Vec<Tun>, TunError>>()?;
        let mut offloads = Offloads::default();
        for candidate in [Offloads { tcp: true, udp: true }, Offloads { tcp: true, udp: false }] {
            // They belong to the device, whichever queue gets the request.
            let taken = queues.first().map(|queue| sys::set_offload(queue.device.as_fd(), candidate.bits()));
            if taken.is_some_and(|taken| taken.is_ok()) {
                offloads = candidate;
                break;
            }
        }
        Ok((queues, offloads))
    }

    fn open(name: &str, kind: Kind) -> Result<Tun, TunError> {
        let form = kind.form;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device = open(PATH, flags, Mode::empty()).map_err(|error| match error {
            Errno::PERM | Errno::ACCESS => TunError::Privilege,
            _ => TunError::NoDriver(error.into()),
        })?;
        attach(device.as_fd(), name, kind).map_err(|source| {
            match source.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::PERM) => TunError::Privilege,
                Some(Errno::BUSY | Errno::EXIST) => TunError::Taken { name: name.to_owned() },
                _ => TunError::Refused { name: name.to_owned(), source },
            }
        })?;
        Ok(Tun { device, name: name.to_owned(), form })
    }

    /// The name that it was made with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it carries.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Another descriptor of the device, which lives as long as any. Error: there are no more descriptors.
    pub fn try_clone(&self) -> io::Result<Tun> {
        Ok(Tun { device: self.device.try_clone()?, name: self.name.clone(), form: self.form })
    }

    /// Whether it persists, without a carrier and with its addresses and routes, when the last descriptor is closed.
    pub fn set_persistent(&self, is_persistent: bool) -> io::Result<()> {
        sys::set_persistent(self.device.as_fd(), is_persistent)
    }

    /// Turns the carrier on or off. Error: a kernel before 5.0.
    pub fn set_carrier(&self, works: bool) -> io::Result<()> {
        sys::set_carrier(self.device.as_fd(), works)
    }

    /// The next packet or frame that the kernel sends. Errors: `EAGAIN` if there is none, `EBADFD` if the interface was
    /// deleted.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        rustix::io::read(&self.device, buffer).map_err(io::Error::from)
    }

    /// Lets the kernel receive a packet or frame, given in pieces. Errors: `EIO` if the interface is down, `EBADFD` if
    /// it was deleted.
    pub fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::writev(&self.device, pieces).map(drop).map_err(io::Error::from)
    }
}

/// A program that is started has this process's descriptors for a moment, until it has become another one, and with them a
/// device of the same name that was closed just now. So a name that is taken is requested again for so long.
const HELD: Duration = Duration::from_millis(200);

fn attach(device: BorrowedFd<'_>, name: &str, kind: Kind) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match sys::attach(device, name, kind) {
            Err(error)
                if kind.is_first
                    && error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
                    && start.elapsed() < HELD =>
            {
                sleep(HELD / 20);
            }
            attached => return attached,
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
