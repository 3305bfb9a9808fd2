//! A network interface and its receive queues, as far as the text says. `None` is unknown, never zero.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

use crate::{Counter, Fact, Observed, Quote, Snapshot};
use std::collections::BTreeMap;

/// Bytes of the longest name, an alternative one (`ALTIFNAMSIZ` in include/uapi/linux/if.h, less the final NUL).
const LONGEST_NAME: usize = 127;

/// Queueing disciplines that hold traffic to a rate, or give classes their shares (tc(8)).
pub const SHAPERS: [&str; 10] =
    ["cake", "htb", "hfsc", "tbf", "cbq", "drr", "ets", "qfq", "netem", "cake_mq"];

/// The name of the interface to which goes what is nobody's; no interface has it.
pub(crate) const NOBODY: &str = "\0";

/// Whether a name is a word for every shell and program as it stands. The kernel lets an interface be called
/// `eth0;reboot` or `-K` (`dev_valid_name()` in net/core/dev.c forbids slashes, colons and blanks).
pub(crate) fn is_plain_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && !name.starts_with(['-', '.'])
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || b".-_@%+=,".contains(&c))
}

/// What an interface is, besides a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Device,
    Vlan {
        /// TPID, `0x8100` or `0x88a8`; `None` where the text does not say.
        tpid: Option<u16>,
        /// VLAN id; `None` where the text does not say.
        id: Option<u16>,
    },
    /// A PPP interface, over PPPoE where a session or a process says so.
    Ppp,
    Bridge {
        /// Whether it filters by VLAN.
        filtering: Option<bool>,
        /// The TPID that it filters by (`0x8100` or `0x88a8`).
        tpid: Option<u16>,
    },
    Veth,
    /// Anything else, by the word of the system (`bond`, `macvlan`, `tun`, …).
    Other(String),
}

/// Current and largest number, of queues or of ring entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limited {
    pub current: Option<Observed<u32>>,
    /// Most that the driver allows; `None` where it does not say (`n/a`).
    pub most: Option<Fact<u32>>,
}

/// `ethtool -l`: queues that have vectors of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Receive only.
    pub rx: Limited,
    /// Both in one vector.
    pub combined: Limited,
}

/// `ethtool -g`: entries of a ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    pub rx: Limited,
}

/// A feature as `ethtool -k` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Whether it is on.
    pub on: bool,
    /// Whether nobody can change it.
    pub fixed: bool,
}

/// The indirection table as `ethtool -x` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reta {
    /// Receive rings that the driver names, of which the table may use fewer.
    pub rings: u32,
    /// The queue of each entry, in order.
    pub entries: Vec<u32>,
    /// The hash key; `None` where the driver does not report it or the text left it out.
    pub key: Option<rss::HashKey>,
    /// The hash function that is on (`toeplitz`); `None` where the text does not say.
    pub function: Option<String>,
}

/// A receive queue and what was counted at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    pub packets: Option<Counter>,
    pub bytes: Option<Counter>,
    /// Frames lost for want of a buffer or a ring entry.
    pub drops: Option<Counter>,
    /// CPUs that RPS spreads to, as the mask says; an empty list is RPS off.
    pub rps: Option<Observed<Vec<u32>>>,
}

/// Frames that the device or the driver counts for the whole interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub packets: Option<Counter>,
    /// Received bytes.
    pub bytes: Option<Counter>,
    /// Lost since the ring was full or the host gave no buffer: every counter that says so, by its name
    /// (`rx_missed_errors`, `rx_no_buffer_count`, `rx_fifo_errors`, `rx_no_dma_resources`, `rx_out_of_buffer`, …).
    pub overflow: BTreeMap<String, Counter>,
    /// Dropped as too long (`rx_long_length_errors`, `rx_oversize`, …), by name. A byte counter such as
    /// `rx_long_byte_count` is none of these.
    pub too_long: BTreeMap<String, Counter>,
    /// Packets that the host of a virtual machine dropped or held back beyond what was bought (`pps_allowance_exceeded`), by name.
    pub allowances: BTreeMap<String, Counter>,
}

/// How an XDP program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xdp {
    /// None.
    Off,
    Native,
    /// After the driver, on the finished socket buffer.
    Generic,
    Offloaded,
}

/// Frames handed to other CPUs by an XDP program through a cpumap, as `rxlane steer status` counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steering {
    /// How the program is attached; [`Xdp::Off`] where none of rxlane's is.
    pub mode: Observed<Xdp>,
    /// CPUs that it hands frames to.
    pub cpus: BTreeMap<u32, SteerTarget>,
    /// Frames by what the program did with them and why: `steered` were handed on.
    pub reasons: BTreeMap<String, Counter>,
    pub moves: Option<Counter>,
    /// Encapsulations that it hands on (`plain`, `vlan`, `qinq`, `pppoe`, `mpls`).
    pub classes: Option<Observed<Vec<String>>>,
    /// Whether a living process moves flows from busy to idle CPUs.
    pub rebalances: Option<Observed<bool>>,
}

/// A CPU to which an XDP program hands frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteerTarget {
    pub frames: Option<Counter>,
    /// Frames lost on the way, since the CPU's queue was full.
    pub drops: Option<Counter>,
    pub seen: Quote,
}

impl Steering {
    /// Steering of which nothing but the mode is known.
    pub fn new(mode: Observed<Xdp>) -> Steering {
        Steering {
            mode,
            cpus: BTreeMap::new(),
            reasons: BTreeMap::new(),
            moves: None,
            classes: None,
            rebalances: None,
        }
    }
}

impl SteerTarget {
    /// A CPU of which nothing was counted.
    pub fn seen(seen: Quote) -> SteerTarget {
        SteerTarget { frames: None, drops: None, seen }
    }
}

/// A negotiated link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Mbit/s.
    pub speed: Option<Observed<u32>>,
    /// What says that the link has no speed: there is no carrier, or the device is virtual.
    pub no_speed: Option<Quote>,
    /// Whether full duplex.
    pub full_duplex: Option<Observed<bool>>,
    /// Whether there is carrier.
    pub up: Option<Observed<bool>>,
    /// The fastest mode that this end supports, Mbit/s.
    pub supported: Option<Fact<u32>>,
    /// The fastest mode that the other end advertises, Mbit/s.
    pub partner: Option<Fact<u32>>,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name; empty where a text shows counters and never says whose.
    pub name: String,
    pub kind: Option<Fact<Kind>>,
    /// The interface that its frames pass (a VLAN's parent, the Ethernet device of a PPPoE session).
    pub parent: Option<Fact<String>>,
    /// The bridge or bond it belongs to.
    pub master: Option<Fact<String>>,
    /// The driver, as `ethtool -i` names it.
    pub driver: Option<Fact<String>>,
    /// Bus address (`0000:03:00.0`).
    pub bus: Option<Fact<String>>,
    /// `vendor:device`, four lower-case hexadecimal digits each.
    pub pci: Option<Fact<String>>,
    /// What the text calls the device (`I210 Gigabit Network Connection`).
    pub model: Option<Fact<String>>,
    /// MTU, bytes.
    pub mtu: Option<Observed<u32>>,
    /// Largest MTU that the driver allows, bytes.
    pub mtu_most: Option<Fact<u32>>,
    /// Whether it is administratively up.
    pub up: Option<Observed<bool>>,
    /// Whether it has an IP address with more than the link's scope.
    pub addressed: Option<Fact<bool>>,
    pub link: Link,
    /// Queues with vectors.
    pub channels: Channels,
    pub rings: Rings,
    /// Interrupt coalescing by ethtool's names (`rx-usecs`, `rx-frames`, …), in the units of the name.
    pub coalesce: BTreeMap<String, Observed<u64>>,
    pub adaptive_rx: Option<Observed<bool>>,
    pub features: BTreeMap<String, Observed<Feature>>,
    pub reta: Option<Observed<Reta>>,
    /// Hash fields by flow type (`udp4`), as the letters of ethtool (`sdfn`); empty: not hashed.
    pub hash_fields: BTreeMap<String, Observed<String>>,
    /// Receive queues by number.
    pub queues: BTreeMap<u32, Queue>,
    pub totals: Totals,
    pub xdp: Option<Observed<Xdp>>,
    /// The queueing discipline of what it sends, where that is one of [`SHAPERS`].
    pub shaper: Option<Fact<String>>,
    /// What rxlane's program hands to other CPUs.
    pub steering: Option<Steering>,
    /// SR-IOV functions in use.
    pub virtual_functions: Option<Fact<u32>>,
    /// A line that named the interface first.
    pub seen: Quote,
}

impl Interface {
    /// An interface of which nothing but the name is known.
    pub fn named(name: &str, seen: Quote) -> Interface {
        Interface {
            name: name.to_owned(),
            kind: None,
            parent: None,
            master: None,
            driver: None,
            bus: None,
            pci: None,
            model: None,
            mtu: None,
            mtu_most: None,
            up: None,
            addressed: None,
            link: Link::default(),
            channels: Channels::default(),
            rings: Rings::default(),
            coalesce: BTreeMap::new(),
            adaptive_rx: None,
            features: BTreeMap::new(),
            reta: None,
            hash_fields: BTreeMap::new(),
            queues: BTreeMap::new(),
            totals: Totals::default(),
            xdp: None,
            shaper: None,
            steering: None,
            virtual_functions: None,
            seen,
        }
    }

    /// Of a listing that shows addresses: whether it shows one of this interface, in this line.
    pub(crate) fn note_address(&mut self, line: Option<&Quote>) {
        if self.addressed.as_ref().is_none_or(|known| !known.value) {
            let quote = line.unwrap_or(&self.seen).clone();
            self.addressed = Some(Fact::new(line.is_some(), quote));
        }
    }

    /// The receive queue of that number, made where there is none yet; `None` beyond the bound.
    pub(crate) fn queue_mut(&mut self, number: u32) -> Option<&mut Queue> {
        let has_room = self.queues.len() < Snapshot::QUEUES || self.queues.contains_key(&number);
        has_room.then(|| self.queues.entry(number).or_default())
    }

    /// Receive queues in use, as channels say (combined, or receive alone, or both).
    pub fn channel_count(&self) -> Option<u32> {
        let combined = self.channels.combined.current.as_ref().map(|n| *n.get());
        let rx = self.channels.rx.current.as_ref().map(|n| *n.get());
        match (combined, rx) {
            (None, None) => None,
            (combined, rx) => Some(combined.unwrap_or(0).saturating_add(rx.unwrap_or(0))).filter(|&n| n > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for name in ["eth0", "eth0.35", "6in4-wan", "br-lan", "enp0s31f6np0", "a@b"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in
            ["", "eth0;reboot", "$(reboot)", "-K", "..", "a b", "a/b", "x>y", "e'x", "*", "\u{e9}", "a\n"]
        {
            assert!(!is_plain_name(name), "{name}");
        }
    }
}
