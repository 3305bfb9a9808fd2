//! The drivers' names for their counters, as data. Sources are paths in the Linux kernel (read in 6.1, newer names
//! in the version given) where nothing else is said.

mod embedded;
mod intel;
mod servers;
mod virtual_machines;
mod workstations;

use super::What;

/// A driver and the statistics that it prints.
pub struct Driver {
    /// As `ethtool -i` names it; several where one source serves several drivers.
    pub names: &'static [&'static str],
    /// Where its names can be read.
    pub source: &'static str,
    /// A receive queue's counters; `{n}` stands for the queue's number.
    pub queues: &'static [(&'static str, Queue)],
    /// Of a receive queue, where it is known that this is the driver: others mean something else by the name.
    pub queues_if_known: &'static [(&'static str, Queue)],
    /// The device's own counters.
    pub device: &'static [(&'static str, Device)],
    /// The device's own, where it is known that this is the driver.
    pub device_if_known: &'static [(&'static str, Device)],
    /// What proves that this driver printed an output.
    pub proof: Option<Proof>,
}

/// Names that together are one driver's alone.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// All of these are there.
    pub with: &'static [&'static str],
    /// None of these is there.
    pub without: &'static [&'static str],
}

/// What a receive queue's line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// A counter.
    Counts(What),
    /// A heading whose value is the number of the queue below.
    Heading {
        /// Whether it is a receive queue's.
        receive: bool,
    },
    /// A counter of the queue of the heading above.
    UnderHeading(What),
    /// Frames too long for the queue's buffers.
    TooLong,
}

/// What a counter of the device counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Received frames.
    Packets,
    /// Received frames of one kind (unicast, multicast, broadcast).
    PacketsPart,
    /// Received octets.
    Bytes,
    /// Frames lost, or times that frames were lost, for want of room.
    Overflow,
    /// Frames dropped as too long.
    TooLong,
    /// Nothing that matters here, though the name means something elsewhere.
    NothingHere,
}

/// A driver of which nothing is known.
const NONE: Driver = Driver {
    names: &[],
    source: "",
    queues: &[],
    queues_if_known: &[],
    device: &[],
    device_if_known: &[],
    proof: None,
};

const fn proof(with: &'static [&'static str]) -> Option<Proof> {
    Some(Proof { with, without: &[] })
}

const PACKETS: Queue = Queue::Counts(What::Packets);
const PACKETS_PART: Queue = Queue::Counts(What::PacketsPart);
const BYTES: Queue = Queue::Counts(What::Bytes);
const BYTES_PART: Queue = Queue::Counts(What::BytesPart);
const DROPS: Queue = Queue::Counts(What::Drops);

/// Counters of `struct net_device_stats`, which many drivers hand through under these names.
static SHARED: Driver = Driver {
    source: "include/uapi/linux/if_link.h (rtnl_link_stats64)",
    device: &[
        ("rx_packets", Device::Packets),
        ("rx_bytes", Device::Bytes),
        ("rx_missed_errors", Device::Overflow),
        ("rx_over_errors", Device::Overflow),
        ("rx_fifo_errors", Device::Overflow),
    ],
    ..NONE
};

/// Every driver that is known.
pub(super) fn all() -> impl Iterator<Item = &'static Driver> {
    std::iter::once(&SHARED)
        .chain(intel::DRIVERS)
        .chain(servers::DRIVERS)
        .chain(virtual_machines::DRIVERS)
        .chain(workstations::DRIVERS)
        .chain(embedded::DRIVERS)
}
