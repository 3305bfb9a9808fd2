//! What the counters of `ethtool -S` mean, whatever the driver calls them.
//!
//! Statistics names are free text of the driver, at most 31 characters long (`ETH_GSTRING_LEN` in
//! `include/uapi/linux/ethtool.h`). The same thing has many names, and the same digits many meanings: `64` is a
//! queue in `rx_queue_64_packets`, a frame size in `rx_64_bytes`, a priority elsewhere. So a name counts for
//! something only where a driver of `drivers.txt` says so, each with the kernel source that it was read from;
//! every other name is [`Meaning::Other`].
//!
//! The device's own counters are distinguished from a queue's, a queue's frames from those that XDP or large
//! receive offload saw, and a lost frame from an event (an interrupt, a refill that failed and was done again).

#![expect(missing_docs, reason = "what its name does not say has a comment")]

mod drivers;
mod index;
mod proof;

pub(crate) use index::{Found, Match, find};
pub use proof::drivers_with;
pub(crate) use proof::{Clues, is_clue};

/// What a queue's counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Received frames.
    Packets,
    /// Received frames of one kind (unicast, multicast, broadcast): all kinds together are the queue's frames.
    PacketsPart,
    /// Received bytes.
    Bytes,
    /// Received bytes of one kind of frames.
    BytesPart,
    /// Frames lost for want of a buffer or a ring entry. Counters of several causes add up.
    Drops,
    /// Frames that an XDP program dropped where the driver counts them among [`What::Drops`], too.
    DropsByXdp,
    /// Frames that passed the queue while it was polled: zero says nothing, since queues are not always polled.
    PacketsWhilePolled,
}

/// What a statistics name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A counter of a receive queue.
    Queue {
        /// The queue's number, from 0.
        queue: u32,
        what: What,
    },
    /// No counter but a heading: the counters below belong to the queue whose number stands for the value.
    Heading {
        /// Whether it is a receive queue's.
        receive: bool,
    },
    /// A counter of the receive queue that the last heading named.
    UnderHeading(What),
    /// Frames that the device received.
    TotalPackets,
    /// Frames of one kind that the device received: all kinds together are its frames.
    TotalPacketsPart,
    /// Bytes that the device received.
    TotalBytes,
    /// Frames that the device lost since a ring or a FIFO was full or the host gave no buffer, or how often
    /// that was so.
    Overflow,
    TooLong,
    /// Packets beyond what the host of a virtual machine allows it.
    Allowance,
    /// Anything else: transmitted frames, frame sizes, priorities, errors, events.
    Other,
}

/// What `name` counts. `driver`, as `ethtool -i` names it, settles names that mean different things to different
/// drivers; without it such a name means what it cannot mistake, or nothing.
///
/// Allocates nothing; the time does not depend on what the name contains beyond its first 128 bytes.
pub fn meaning(name: &str, driver: Option<&str>) -> Meaning {
    match find(name, driver) {
        Found::Match(found) => found.meaning,
        Found::AskDriver(found) => found.map_or(Meaning::Other, |found| found.meaning),
        Found::Nothing => Meaning::Other,
    }
}
