//! Names and layouts that the programs and their loader share. `bpf/maps.h` and `bpf/stats.h` say the same in C; a
//! test compares both from the object's BTF.

/// Buckets that inner flows fall into.
pub const BUCKETS: usize = 256;

/// CPU numbers that can be targets: below this.
pub const CPUS: usize = 1024;

/// What a frame is wrapped in, outermost first; decides whether it is steered at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Class {
    /// IP without a tag.
    Plain = 0,
    /// One tag of any TPID, then IP.
    Vlan = 1,
    /// Two or more tags, then IP.
    Qinq = 2,
    /// A PPPoE session packet, under whatever tags.
    Pppoe = 3,
    /// MPLS directly behind Ethernet or tags.
    Mpls = 4,
}

impl Class {
    pub const ALL: [Class; 5] = [Class::Plain, Class::Vlan, Class::Qinq, Class::Pppoe, Class::Mpls];

    /// The word of command lines and output.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Plain => "plain",
            Class::Vlan => "vlan",
            Class::Qinq => "qinq",
            Class::Pppoe => "pppoe",
            Class::Mpls => "mpls",
        }
    }

    /// The bit in [`Settings::classes`].
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Reason {
    /// Given to the CPU of its bucket: queued to it, or, received on that very CPU, left to the stack there.
    Steered = 0,
    /// Its class was not selected; no more of it was read than what decides the class.
    ClassLeft = 1,
    PppoeDiscovery = 2,
    /// A PPP control protocol in a session: LCP, authentication, NCPs.
    PppControl = 3,
    /// Another PPP protocol that is not IP.
    PppOther = 4,
    /// No IP: ARP, LLC and SNAP, an unknown EtherType, MPLS with something else in it.
    NotIp = 5,
    /// A header reaches beyond the end of the frame.
    Truncated = 6,
    /// A field contradicts its specification.
    Malformed = 7,
    /// More tags, labels or extension headers than the walk follows.
    TooDeep = 8,
    /// The bucket's CPU is not in the map of CPUs.
    NoCpu = 9,
    /// A header stands behind the first buffer of a frame in several, where it cannot be read.
    NotLinear = 10,
}

impl Reason {
    pub const ALL: [Reason; 11] = [
        Reason::Steered,
        Reason::ClassLeft,
        Reason::PppoeDiscovery,
        Reason::PppControl,
        Reason::PppOther,
        Reason::NotIp,
        Reason::Truncated,
        Reason::Malformed,
        Reason::TooDeep,
        Reason::NoCpu,
        Reason::NotLinear,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Reason::Steered => "steered",
            Reason::ClassLeft => "class-left",
            Reason::PppoeDiscovery => "pppoe-discovery",
            Reason::PppControl => "ppp-control",
            Reason::PppOther => "ppp-other",
            Reason::NotIp => "not-ip",
            Reason::Truncated => "truncated",
            Reason::Malformed => "malformed",
            Reason::TooDeep => "too-deep",
            Reason::NoCpu => "no-cpu",
            Reason::NotLinear => "not-linear",
        }
    }
}

/// Places for reasons in [`Counts`]; those behind [`Reason::ALL`] are spare.
pub const REASONS: usize = 16;

/// 32-bit words of the hash key: ten of an IPv6 flow (addresses, ports, protocol) and a spare pair.
pub const KEY_WORDS: usize = 12;

/// Read-only data `SETTINGS` of both programs. Host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Settings {
    /// Key of the hash, chosen at random for each attachment.
    pub key: [u32; KEY_WORDS],
    /// Bits of the [`Class`]es that are steered.
    pub classes: u32,
    /// 1: both directions of a flow have one hash.
    pub symmetric: u32,
    /// Possible CPUs of this machine, at most [`CPUS`].
    pub cpus: u32,
    pub spare: u32,
    /// Nanoseconds after which a frame that came out of the queue of its CPU is taken for delivered.
    pub hold_ns: u64,
}

/// An entry of the array `BUCKETS`, which only user space writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Bucket {
    pub cpu: u32,
    pub spare: u32,
    /// Frames of this bucket that were sent and are known never to arrive (the queue of the CPU was full).
    pub lost: u64,
}

/// In [`Counts::current`]: the bucket waits for its move.
pub const HOLDING: u32 = 1 << 31;

/// The one entry of the per-CPU array `COUNTS`, of the CPU that receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// The CPU whose entry this is, set before the program is attached: its own frames need no queue. A number that no
    /// CPU has queues all.
    pub own_cpu: u32,
    pub spare: u32,
    /// Frames by [`Reason`].
    pub reasons: [u64; REASONS],
    /// Frames queued, by bucket.
    pub sent: [u64; BUCKETS],
    /// Frames queued, by CPU.
    pub sent_to: [u64; CPUS],
    /// While a bucket waits for its move: when this CPU first saw that it should, in nanoseconds of the monotonic
    /// clock; else 0.
    pub held_ns: [u64; BUCKETS],
    /// Frames whose CPU is this one, by bucket: neither queued nor counted as arrived.
    pub kept: [u64; BUCKETS],
    /// The CPU to which this CPU sends the bucket, with [`HOLDING`] while it waits for its move; set from `BUCKETS`
    /// before the program is attached.
    pub current: [u32; BUCKETS],
}

/// The one entry of the per-CPU array `ARRIVALS`, of the CPU that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Arrivals {
    /// Frames that came out of the queue, by bucket.
    pub arrived: [u64; BUCKETS],
    /// Frames whose bucket could not be found again; nothing but a defect makes one.
    pub strange: u64,
    /// When a frame last arrived or was kept here whose bucket should have another CPU, in nanoseconds of the monotonic clock.
    pub astray_ns: [u64; BUCKETS],
}

/// Names of the maps, in C and under bpffs. The steering program uses all of them, the arriving one `BUCKETS` and
/// `ARRIVALS`, the same maps (variants without frags: the steering program not `ARRIVALS`, the arriving one only that).
pub mod map {
    /// `BPF_MAP_TYPE_ARRAY` of [`BUCKETS`](super::BUCKETS) [`Bucket`](super::Bucket)s.
    pub const BUCKETS: &str = "BUCKETS";
    /// `BPF_MAP_TYPE_CPUMAP`.
    pub const CPUS: &str = "CPUS";
    /// `BPF_MAP_TYPE_PERCPU_ARRAY` of one [`Counts`](super::Counts).
    pub const COUNTS: &str = "COUNTS";
    /// `BPF_MAP_TYPE_PERCPU_ARRAY` of one [`Arrivals`](super::Arrivals).
    pub const ARRIVALS: &str = "ARRIVALS";
}
