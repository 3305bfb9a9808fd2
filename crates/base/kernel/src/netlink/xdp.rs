//! XDP programs of interfaces, and what a driver's XDP can do.

use super::link::ifinfo;
use super::{Attributes, Generic, Refusal, link_by_name, set};
use libc::{IFLA_XDP, RTM_SETLINK};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `IFLA_XDP_*` of linux/if_link.h.
const FD: u16 = 1;
const ATTACHED: u16 = 2;
const FLAGS: u16 = 3;
const PROG_ID: u16 = 4;
const DRV_PROG_ID: u16 = 5;
const SKB_PROG_ID: u16 = 6;
/// `XDP_ATTACHED_MULTI`.
const ATTACHED_MULTI: u8 = 4;
/// `XDP_FLAGS_UPDATE_IF_NOEXIST`.
const UPDATE_IF_NOEXIST: u32 = 1 << 0;

/// The XDP program of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xdp {
    /// The program of the driver.
    pub native: Option<u32>,
    /// The program that is run for each skb.
    pub generic: Option<u32>,
    /// Any of them, the NIC's own included.
    pub any: u32,
    /// `XDP_ATTACHED_MULTI`: there are several.
    pub several: bool,
}

impl Xdp {
    /// Whether this program is one of them.
    pub fn has(&self, program: u32) -> bool {
        self.any == program || self.native == Some(program) || self.generic == Some(program)
    }

    pub(super) fn read(nest: Attributes<'_>) -> Option<Xdp> {
        // XDP_ATTACHED_NONE is 0.
        let attached = nest.u8(ATTACHED).filter(|attached| *attached != 0)?;
        let (native, generic) = (nest.u32(DRV_PROG_ID), nest.u32(SKB_PROG_ID));
        // With several the kernel gives no IFLA_XDP_PROG_ID; before 4.13 it gives none at all.
        let any = nest.u32(PROG_ID).or(native).or(generic).unwrap_or_default();
        Some(Xdp { native, generic, any, several: attached == ATTACHED_MULTI })
    }
}

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum XdpMode {
    /// On skbs (`XDP_FLAGS_SKB_MODE`).
    Generic = 1 << 1,
    /// In the driver (`XDP_FLAGS_DRV_MODE`).
    Native = 1 << 2,
}

/// Attaches a program by netlink, where none is attached: unlike bpf(2), the refusal has the words of kernel and driver.
pub fn attach_xdp(index: u32, program: BorrowedFd<'_>, mode: XdpMode) -> Result<(), Refusal> {
    set_program(index, program.as_raw_fd(), mode as u32 | UPDATE_IF_NOEXIST)
}

/// Takes a program off that [`attach_xdp`] has put there.
pub fn detach_xdp(index: u32, mode: XdpMode) -> Result<(), Refusal> {
    set_program(index, -1, mode as u32)
}

fn set_program(index: u32, fd: i32, flags: u32) -> Result<(), Refusal> {
    set(&ifinfo(RTM_SETLINK, index)
        .with_nest(IFLA_XDP, |xdp| xdp.with(FD, &fd.to_ne_bytes()).with(FLAGS, &flags.to_ne_bytes())))
}

/// `NETDEV_XDP_ACT_*` of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures {
    bits: u64,
}

impl XdpFeatures {
    /// Whether the driver runs XDP programs itself and knows abort, drop, pass and transmit (`NETDEV_XDP_ACT_BASIC`).
    pub const fn is_native(self) -> bool {
        self.bits & 1 != 0
    }

    /// Whether a program may redirect a frame, to a CPU among others (`NETDEV_XDP_ACT_REDIRECT`).
    pub const fn redirects(self) -> bool {
        self.bits & 2 != 0
    }

    /// Whether frames that programs of other interfaces redirect to it are sent (`NETDEV_XDP_ACT_NDO_XMIT`); they are lost else. Most
    /// drivers do so once they have a program themselves, veth as long as its other end polls: with a program there, or GRO.
    pub const fn is_redirect_target(self) -> bool {
        self.bits & 4 != 0
    }

    /// Whether programs that know frames in several buffers get them so (`NETDEV_XDP_ACT_RX_SG`).
    pub const fn has_frags(self) -> bool {
        self.bits & 32 != 0
    }
}

/// What the kernel says of the XDP of an interface's driver (the generic netlink family `netdev`,
/// `Documentation/netlink/specs/netdev.yaml`). `None`: it says nothing, being older than 6.3, or there is no such interface.
/// Requires no privilege. A driver outside the kernel's tree may run XDP and not say so.
pub fn xdp_features(interface: &str) -> Option<XdpFeatures> {
    /// `NETDEV_CMD_DEV_GET`, `NETDEV_A_DEV_IFINDEX`.
    const DEV_GET: u8 = 1;
    const IFINDEX: u16 = 1;
    let index = link_by_name(interface).ok()?.index;
    let answer =
        Generic::open("netdev").ok()?.get(DEV_GET, |message| message.with(IFINDEX, &index.to_ne_bytes()));
    features(&answer.ok()?)
}

fn features(answer: &[u8]) -> Option<XdpFeatures> {
    /// `NETDEV_A_DEV_XDP_FEATURES`.
    const XDP_FEATURES: u16 = 3;
    Attributes::new(answer).u64(XDP_FEATURES).map(|bits| XdpFeatures { bits })
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::*;

    #[test]
    fn features_are_read_and_no_piece_of_an_answer_panics() {
        let answer = |bits: u64| Message::new(0, &[]).with(1, &[2; 4]).with(3, &bits.to_ne_bytes());
        let whole = answer(1 | 2 | 32);
        let read = features(whole.attributes()).expect("features");
        assert!(read.is_native() && read.redirects() && read.has_frags() && !read.is_redirect_target());
        for end in 0..whole.attributes().len() {
            assert_eq!(features(whole.attributes().get(..end).expect("within")), None, "{end}");
        }
        let read = features(answer(4).attributes()).expect("features");
        assert!(!read.is_native() && !read.redirects() && !read.has_frags() && read.is_redirect_target());
        assert_eq!(xdp_features("rxlane-nothere"), None);
    }

    #[test]
    fn a_program_is_none_several_or_one() {
        let read = |attached: u8, kind: u16| {
            let nest = Message::new(0, &[]).with(ATTACHED, &[attached]).with(kind, &7_u32.to_ne_bytes());
            Xdp::read(Attributes::new(nest.attributes()))
        };
        assert_eq!(read(0, PROG_ID), None);
        assert_eq!(read(1, PROG_ID), Some(Xdp { native: None, generic: None, any: 7, several: false }));
        assert_eq!(read(4, DRV_PROG_ID), Some(Xdp { native: Some(7), generic: None, any: 7, several: true }));
    }
}
