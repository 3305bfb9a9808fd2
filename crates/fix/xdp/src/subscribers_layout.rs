//! What the programs of a concentrator and its data path share. `bpf/subscribers_layout.h` says the same in C; a test compares
//! both from the object's BTF.
//!
//! The maps [`map::SESSIONS`] and [`map::CONTROL`] are memory of the daemon, too. It writes them in words of 64 bits, so that no
//! program sees a part of one.

use wire::ethernet::MacAddress;

/// Why a program left a frame to the daemon and the kernel. The order is that of the numbers in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Pass {
    /// The daemon's heartbeat is older than [`HEARTBEAT_MOST_NS`].
    DaemonSilent = 1,
    /// The frame is for another station, or a group, or its source is no station.
    NotAddressed = 2,
    /// PPPoE discovery, and PPP protocols other than IP.
    Control = 3,
    /// Another EtherType.
    NotIp = 4,
    /// More than two tags, or a TPID other than 0x8100 and 0x88a8.
    Tags = 5,
    /// A header that reaches beyond the end, or a length or IPv4 header checksum that is wrong.
    Malformed = 6,
    /// An IPv4 header with options, or an extension header of IPv6.
    IpOptions = 7,
    /// TTL or hop limit below 2.
    Ttl = 8,
    /// No session has the address, or not the one whose frame it is.
    NoSession = 9,
    /// TCP with SYN, whose segment size the daemon lowers.
    Syn = 10,
    /// On a veth pair: the checksum is left to a device.
    Checksum = 11,
    /// Longer than the subscriber, the route or the interface takes.
    TooLong = 12,
    /// The kernel's routes lead to this machine, elsewhere or nowhere.
    Route = 13,
    /// The next hop has no MAC address yet.
    NoNeighbour = 14,
    /// No memory in front of the frame for longer headers.
    NoRoom = 15,
}

impl Pass {
    /// All of them, in the order of their numbers, of which the first is 1.
    pub const ALL: [Pass; 15] = [
        Pass::DaemonSilent,
        Pass::NotAddressed,
        Pass::Control,
        Pass::NotIp,
        Pass::Tags,
        Pass::Malformed,
        Pass::IpOptions,
        Pass::Ttl,
        Pass::NoSession,
        Pass::Syn,
        Pass::Checksum,
        Pass::TooLong,
        Pass::Route,
        Pass::NoNeighbour,
        Pass::NoRoom,
    ];

    /// The word of output.
    pub const fn name(self) -> &'static str {
        match self {
            Pass::DaemonSilent => "daemon-silent",
            Pass::NotAddressed => "not-addressed",
            Pass::Control => "control",
            Pass::NotIp => "not-ip",
            Pass::Tags => "tags",
            Pass::Malformed => "malformed",
            Pass::IpOptions => "ip-options",
            Pass::Ttl => "ttl",
            Pass::NoSession => "no-session",
            Pass::Syn => "syn",
            Pass::Checksum => "checksum",
            Pass::TooLong => "too-long",
            Pass::Route => "route",
            Pass::NoNeighbour => "no-neighbour",
            Pass::NoRoom => "no-room",
        }
    }
}

/// Places for reasons in [`SubscriberCounts`].
pub const PASS_PLACES: usize = 32;
/// Uplinks of a concentrator.
pub const UPLINKS_MOST: usize = 8;
/// Lengths of prefixes that are looked up, of each IP version: the longest ones.
pub const LENGTHS_MOST: usize = 6;
/// Nanoseconds since the last heartbeat after which the daemon is taken for dead: it is restarted in less.
pub const HEARTBEAT_MOST_NS: u64 = 10_000_000_000;

/// A value of [`map::SESSIONS`] as words of 64 bits.
pub const SESSION_WORDS: usize = size_of::<SessionLine>() / 8;
/// The value of [`map::CONTROL`] as words of 64 bits.
pub const CONTROL_WORDS: usize = size_of::<Control>() / 8;

/// A value of [`map::SESSIONS`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SessionLine {
    /// From the lowest bit: 24 of sequence, odd while it is written; 8 of flags; 16 of MTU; 16 of generation.
    pub state: u64,
    /// As [`wire::Vlans::number`].
    pub vlans: u64,
    /// MAC address in the upper 48 bits, session id in the lower 16.
    pub station: u64,
    /// The interface identifier of its link-local address, which no program reads.
    pub identifier: u64,
    /// Frames and bytes from the subscriber, then to it.
    pub counts: [u64; 4],
    /// Ticks of a byte and when all that has passed is due, from the subscriber, then to it.
    pub buckets: [u64; 4],
    /// Frames that were dropped, from the subscriber and to it.
    pub dropped: [u64; 2],
    pub spare: [u64; 2],
}

/// In [`SessionLine::state`]: there is a session; its segment sizes are lowered; it has a rate.
pub const IS_THERE: u64 = 1 << 24;
/// See [`IS_THERE`].
pub const HAS_CLAMP: u64 = 1 << 25;
/// See [`IS_THERE`].
pub const IS_LIMITED: u64 = 1 << 26;

/// A value of [`map::OWNERS_IPV6`]: whose an address is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OwnerValue {
    /// Place in [`map::SESSIONS`].
    pub place: u32,
    /// That of [`SessionLine::state`].
    pub generation: u32,
}

/// A key of [`map::OWNERS_IPV6`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Prefix6 {
    /// In network byte order.
    pub address: [u8; 16],
    pub length: u64,
}

/// An interface with a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Port {
    /// Its MAC address.
    pub station: [u8; 6],
    /// 1: frames come from another network stack of this machine, which leaves checksums to a device that this is not (veth).
    pub is_virtual: u8,
    pub spare: u8,
    /// Its number; 0: none.
    pub interface: u64,
}

impl Port {
    pub(crate) fn new(interface: u32, MacAddress(station): MacAddress, is_virtual: bool) -> Port {
        Port { station, is_virtual: is_virtual.into(), spare: 0, interface: interface.into() }
    }

    /// Its words.
    pub(crate) fn words(self) -> [u64; 2] {
        let [a, b, c, d, e, f] = self.station;
        [u64::from_ne_bytes([a, b, c, d, e, f, self.is_virtual, self.spare]), self.interface]
    }
}

/// The one value of [`map::CONTROL`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Control {
    /// When the daemon was last heard of: monotonic clock, nanoseconds.
    pub heartbeat_ns: u64,
    /// Lengths of prefixes that there are, the longest in the lowest byte, each and one; 0: no more.
    pub lengths4: u64,
    /// The same of IPv6.
    pub lengths6: u64,
    /// Of hashes in [`map::INDEX_IPV4`].
    pub seed: [u64; 2],
    /// Places of it, less one.
    pub mask: u64,
    /// Number of the interface of all subscribers.
    pub interface: u64,
    /// Bytes of the longest frame that the interface with the lines sends.
    pub longest: u64,
    /// The interface with the lines.
    pub lines: Port,
    pub uplinks: [Port; UPLINKS_MOST],
}

/// A value of the per-CPU map [`map::FORWARDED`]: the first of packets from subscribers, the second of those to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SubscriberCounts {
    /// Frames forwarded.
    pub frames: u64,
    /// Bytes of those frames on the line.
    pub bytes: u64,
    /// Packets dropped by the rate of their session.
    pub limited: u64,
    /// Frames left to the daemon and the kernel, by [`Pass`].
    pub passed: [u64; PASS_PLACES],
}

/// Names of the maps.
pub mod map {
    /// Array of [`SessionLine`](super::SessionLine), shared with the daemon.
    pub const SESSIONS: &str = "SESSIONS";
    /// Array of one [`Control`](super::Control), shared with the daemon.
    pub const CONTROL: &str = "CONTROL";
    /// Array of words, shared with the daemon: its index of prefixes of IPv4. From the lowest bit: place of the session (20), a part of
    /// its generation (6), length of the prefix and one (6), address (32); 0: none.
    pub const INDEX_IPV4: &str = "INDEX_IPV4";
    /// Hash: [`Prefix6`](super::Prefix6) to [`OwnerValue`](super::OwnerValue).
    pub const OWNERS_IPV6: &str = "OWNERS_IPV6";
    /// Devmap: the interface with the lines.
    pub const LINES: &str = "LINES";
    /// Devmap by the number of the interface: uplinks.
    pub const UPLINKS: &str = "UPLINKS";
    /// Per-CPU array of two [`SubscriberCounts`](super::SubscriberCounts).
    pub const FORWARDED: &str = "FORWARDED_WAYS";
}
