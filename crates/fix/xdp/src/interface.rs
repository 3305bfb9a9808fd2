//! Interfaces of a network namespace, and the XDP program that one has.

use format::quoted;
use std::fmt;
use std::fs;
use std::time::SystemTime;

use crate::error::Error;
use crate::family::Family;
use crate::link::occupied;
use crate::{foreign, pins};
use kernel::netlink::{self, Link};
use kernel::netns::NetNs;

/// How an XDP program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// By the driver, before there is a socket buffer.
    Native,
    /// By the kernel, for each socket buffer.
    Generic,
}

impl Mode {
    /// The word of command lines and output.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Native => "native",
            Mode::Generic => "generic",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether frames that XDP redirects to an interface are sent, as far as the kernel says (Linux 6.3); with a program on it.
pub fn is_redirect_target(name: &str) -> bool {
    netlink::xdp_features(name).is_none_or(|features| features.is_redirect_target())
}

/// Why they are not, and on a veth pair what helps.
pub fn no_redirect_target(name: &str, is_veth: bool) -> String {
    match is_veth {
        true => format!(
            "{name} loses what XDP sends out of it, since the other end of this veth pair does not poll: `ethtool -K NAME gro on` \
             there, in its network namespace"
        ),
        false => format!("the driver of {name} does not send what XDP redirects to it"),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub is_ethernet: bool,
    pub mtu: Option<u32>,
    /// The largest MTU that the kernel lets it have; `None`: not known, or the driver itself decides.
    pub mtu_most: Option<u32>,
    /// The kind of a virtual interface: `veth`, `vlan`.
    pub kind: Option<String>,
    /// Whether it is a TUN or TAP device whose other end writes virtio headers, and so may write super-packets.
    pub has_virtio_headers: bool,
    /// As [`Interface::driver`].
    pub driver: Option<String>,
}

/// A network interface of the namespace in which the calling thread was when it was looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interface {
    /// Its name at that time.
    pub name: String,
    /// Its index, which stays when it is renamed.
    pub index: u32,
    /// The inode of its network namespace, which identifies a namespace as long as they exist.
    pub namespace: u64,
}

impl Interface {
    /// Looks an interface up in the network namespace of the calling thread.
    pub fn find(name: &str) -> Result<Interface, Error> {
        let link = netlink::link_by_name(name).map_err(|source| match source.raw_os_error() {
            Some(libc::ENODEV) => Error::NoInterface { name: name.to_owned() },
            _ => Error::system(format!("ask rtnetlink for the interface {name}"))(source),
        })?;
        Ok(Interface { name: link.name, index: link.index, namespace: namespace()? })
    }

    pub(crate) fn link(&self) -> Result<Link, Error> {
        netlink::link_by_index(self.index).map_err(|source| match source.raw_os_error() {
            Some(libc::ENODEV) => Error::NoInterface { name: self.name.clone() },
            _ => Error::system(format!("ask rtnetlink for the interface {}", self.name))(source),
        })
    }

    /// The XDP program on the interface, whoever attached it; `None`: it has none.
    ///
    /// Works without privilege; what takes one to know is `None` in the answer.
    pub fn program(&self) -> Result<Option<Program>, Error> {
        let Some(xdp) = self.link()?.xdp else { return Ok(None) };
        let mode = match (xdp.native, xdp.generic) {
            _ if xdp.several => None,
            (Some(_), None) => Some(Mode::Native),
            (None, Some(_)) => Some(Mode::Generic),
            _ => None,
        };
        let mut program = foreign::describe(xdp.any, mode);
        // What the process may not see of the pins it does not know to be ours.
        program.attached_as = Family::ALL.into_iter().find_map(|family| {
            let (folder, _) = pins::attached_with(family, &xdp).ok().flatten()?;
            Some((family, folder.interface))
        });
        Ok(Some(program))
    }

    /// Sees that no XDP program is on the interface. Works without privilege.
    ///
    /// # Errors
    ///
    /// [`Error::Attached`] and [`Error::Foreign`] name what is there; and those of
    /// [`Interface::program`].
    pub fn is_free(&self) -> Result<(), Error> {
        if self.link()?.xdp.is_some() { Err(occupied(self)?) } else { Ok(()) }
    }

    /// What the kernel says of it now.
    pub fn described(&self) -> Result<Described, Error> {
        /// `include/uapi/linux/if_arp.h`.
        const ARPHRD_ETHER: u16 = 1;
        let link = self.link()?;
        let driver = driver(&link);
        let is_ethernet = link.hardware == ARPHRD_ETHER;
        Ok(Described {
            is_ethernet,
            mtu: Some(link.mtu),
            mtu_most: link.max_mtu,
            kind: link.kind,
            has_virtio_headers: link.has_virtio_headers,
            driver,
        })
    }

    /// The driver, as sysfs and ethtool name it; `None` where it has none or cannot be queried.
    pub fn driver(&self) -> Option<String> {
        driver(&self.link().ok()?)
    }
}

/// The driver of an interface: the kind of a virtual one, or what sysfs says of the device on its bus, which it shows
/// in every network namespace.
pub(crate) fn driver(link: &Link) -> Option<String> {
    if let Some(kind) = &link.kind {
        return Some(kind.clone());
    }
    let (bus, device) = link.device.as_ref()?;
    let driver = fs::read_link(format!("/sys/bus/{bus}/devices/{device}/driver")).ok()?;
    Some(driver.file_name()?.to_string_lossy().into_owned())
}

/// The inode of the network namespace of the calling thread.
pub(crate) fn namespace() -> Result<u64, Error> {
    let unread = Error::system("look up the network namespace");
    NetNs::current().map(|namespace| namespace.0).map_err(unread)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttachedBy {
    /// A BPF link of this id, which only its owner can detach or replace.
    Link(u32),
    /// Netlink, as `ip link set dev IFACE xdp …` does; [`Program::off`] takes it off.
    Netlink,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub id: u32,
    /// How it is run; `None`: by the network card itself, or in several ways at once.
    pub mode: Option<Mode>,
    /// Its name, at most 15 bytes; `None` where it has none or the process may not ask.
    pub name: Option<String>,
    /// The hash of its instructions, as `bpftool prog` prints it.
    pub tag: Option<[u8; 8]>,
    /// Who holds it; `None` where the process may not ask.
    pub attached_by: Option<AttachedBy>,
    pub loaded: Option<SystemTime>,
    pub user: Option<u32>,
    /// Processes that have it or its link open, as number and name; as far as the process may see them.
    pub processes: Vec<(u32, String)>,
    /// The family that attached it, and the name that the interface had then; `None`: another tool, or unknown.
    pub attached_as: Option<(Family, String)>,
}

impl Program {
    /// The name under which this interface was attached by a family, where it was.
    pub fn attached_name(&self, family: Family) -> Option<&str> {
        self.attached_as.as_ref().filter(|(of, _)| *of == family).map(|(_, name)| name.as_str())
    }

    /// How to get rid of it.
    pub(crate) fn way_out(&self, interface: &str) -> String {
        if let Some((family, attached)) = &self.attached_as {
            return format!("`{}` ends it", family.end_command(attached));
        }
        match (self.name.as_deref(), self.attached_by) {
            (Some("fastpath"), _) => "`rxlane fastpath down` ends it".to_owned(),
            (Some("xdp_dispatcher"), _) => format!(
                "`xdp-loader unload {quoted_interface} --all` takes it off",
                quoted_interface = quoted(interface)
            ),
            (_, Some(AttachedBy::Link(id))) => {
                format!("end the program that holds its link, or `bpftool link detach id {id}`")
            }
            (_, Some(AttachedBy::Netlink)) => format!("{} takes it off", self.off(interface)),
            (_, None) => format!("end the program that attached it, or {}", self.off(interface)),
        }
    }

    /// The command that takes off a program that netlink attached, in backquotes. Without its mode a driver that runs
    /// programs is queried, and says yes although a generic one stays.
    pub fn off(&self, interface: &str) -> String {
        let mode = if self.mode == Some(Mode::Generic) { "xdpgeneric" } else { "xdp" };
        format!("`ip link set dev {quoted_interface} {mode} off`", quoted_interface = quoted(interface))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` (id {}", self.id)?,
            None => write!(f, "one without a name that can be seen (id {}", self.id)?,
        }
        if let Some(mode) = self.mode {
            write!(f, ", {mode}")?;
        }
        if self.name.as_deref() == Some("xdp_dispatcher") {
            f.write_str(", of libxdp and xdp-tools")?;
        }
        match self.attached_by {
            Some(AttachedBy::Link(id)) => write!(f, ", held by link {id}")?,
            Some(AttachedBy::Netlink) => f.write_str(", attached by netlink")?,
            None => {}
        }
        for (index, (pid, name)) in self.processes.iter().enumerate() {
            let lead = if index == 0 { ", open in" } else { "," };
            write!(f, "{lead} {name} ({pid})")?;
        }
        f.write_str(")")
    }
}
