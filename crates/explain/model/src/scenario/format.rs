//! What a scenario file can say.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is, one line.
    pub title: String,
    /// What it stands for.
    #[serde(default)]
    pub description: String,
    /// Seed of all randomness.
    #[serde(default = "one")]
    pub seed: u64,
    /// Simulated before anything is counted, milliseconds.
    #[serde(default = "warm_up")]
    pub warm_up_ms: f64,
    /// Simulated and counted, milliseconds.
    #[serde(default = "second")]
    pub duration_ms: f64,
    /// CPUs.
    #[serde(default = "one_cpu")]
    pub cpus: u32,
    /// Who takes frames out of rings.
    #[serde(default)]
    pub driver: Driver,
    /// GRO: frames that make one packet, at most.
    #[serde(default)]
    pub gro_frames: Option<u16>,
    /// Queues between driver and stack.
    #[serde(default)]
    pub hand_over: Option<HandOver>,
    /// Costs.
    #[serde(default)]
    pub costs: Costs,
    /// Network interfaces by name.
    pub interface: BTreeMap<String, Interface>,
    /// Traffic by name.
    pub traffic: BTreeMap<String, Traffic>,
    /// Processes by name.
    #[serde(default)]
    pub application: BTreeMap<String, Application>,
}

/// Who takes frames out of rings.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum Driver {
    /// Polls in soft interrupts, the vector masked meanwhile: Linux's NAPI; FreeBSD's interrupt threads.
    Napi {
        /// Frames a turn (`NAPI_POLL_WEIGHT`).
        #[serde(default = "budget")]
        budget: u32,
        /// Frames after which a squeeze is counted (`net.core.netdev_budget`).
        #[serde(default = "round")]
        round: u32,
        /// Microseconds that soft interrupts run on end before waiting threads have as long (ksoftirqd).
        #[serde(default = "limit")]
        limit_us: f64,
    },
    /// The interrupt handler: NetBSD, OpenBSD, Linux 2.2. Packets then wait in the IP input queue.
    Interrupt {},
    /// A clock: FreeBSD's `DEVICE_POLLING`.
    Polling {
        /// Ticks a second.
        hz: f64,
        /// Frames a tick and queue (`kern.polling.burst_max`).
        #[serde(default = "burst")]
        burst: u32,
        /// Percent of a tick left to threads (`kern.polling.user_frac`).
        #[serde(default = "user_percent")]
        user_percent: f64,
    },
}

impl Default for Driver {
    fn default() -> Driver {
        Driver::Napi { budget: budget(), round: round(), limit_us: limit() }
    }
}

/// Queues between driver and stack: RPS, netisr, a cpumap, `ipintrq`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    /// CPUs that empty one such queue each; a flow keeps to one.
    pub cpus: Vec<u32>,
    /// Packets that each holds.
    pub depth: u32,
    /// Whether a packet whose CPU is the one that it is on goes up the stack there and then (steering in XDP); else it
    /// waits in that CPU's queue, too (RPS).
    #[serde(default)]
    pub keeps_own: bool,
}

/// Costs, nanoseconds; those with `byte` are for each byte of a frame.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// A vector's interrupt.
    pub interrupt: f64,
    /// A poll besides its frames.
    pub poll: f64,
    /// An interrupt of the polling clock.
    pub tick: f64,
    /// An interrupt from another CPU.
    pub ipi: f64,
    /// Waking a process.
    pub wake: f64,
    /// Changing to another process.
    pub switch: f64,
    /// Taking a frame out of the ring.
    pub driver: f64,
    /// The same, an byte.
    pub driver_octet: f64,
    /// Putting a packet into a queue between driver and stack.
    pub hand_over: f64,
    /// Taking it out of there, besides the stack.
    pub take_over: f64,
    /// GRO, a frame.
    pub gro: f64,
    /// The stack, a packet.
    pub stack: f64,
    /// The same, an byte.
    pub stack_octet: f64,
    /// Sending a packet that is forwarded, transmit completion included.
    pub forward: f64,
    /// Whether driver and stack take exactly these times, or exponentially distributed ones about them.
    pub spread: Spread,
}

/// How costs of a frame spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// Not at all.
    #[default]
    Exact,
    /// Exponentially.
    Exponential,
}

/// A network interface.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Mbit/s of the line; without it as fast as one likes.
    #[serde(default)]
    pub speed_mbps: Option<f64>,
    /// The device, as `rxlane nics` knows it. Without one, flows are dealt to the queues in turn.
    #[serde(default)]
    pub nic: Option<String>,
    /// Receive queues in use.
    #[serde(default)]
    pub queues: Option<u16>,
    /// Depth of each ring.
    #[serde(default = "ring")]
    pub ring: u32,
    /// CPU of each queue's vector; without it those of the queues' numbers.
    #[serde(default)]
    pub vectors: Option<Vec<u32>>,
    /// When vectors interrupt.
    #[serde(default)]
    pub moderation: Moderation,
    /// Hash key, hex bytes.
    #[serde(default)]
    pub key: Option<String>,
    /// Indirection table: the queue of each entry, or `"equal"` as `ethtool -X … equal` makes it.
    #[serde(default)]
    pub table: Option<IndirectionTable>,
    /// Hash fields such as `udp4=sdfn`.
    #[serde(default)]
    pub hash_fields: Vec<String>,
    /// Packets that may wait to be sent.
    #[serde(default = "ring")]
    pub transmit_ring: u32,
}

/// An indirection table.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected \"equal\" or a list with the queue of each entry")]
pub enum IndirectionTable {
    /// By a word.
    Word(String),
    /// Entry by entry.
    Entries(Vec<u16>),
}

/// When a vector interrupts.
// Without braces serde takes any key beside the kind.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum Moderation {
    /// At each frame.
    Off {},
    /// At most once in an interval.
    Interval {
        /// Microseconds.
        us: f64,
    },
    /// As Linux's igb adapts the interval to frame lengths.
    Igb {},
    /// After a time, or a number of frames or DMA segments, whichever is first.
    Coalesce {
        /// Microseconds since the first frame.
        us: f64,
        /// Frames.
        frames: u32,
        /// DMA segments.
        #[serde(default = "many")]
        segments: u32,
        /// Bytes of a segment.
        #[serde(default = "segment")]
        segment_octets: u32,
    },
}

impl Default for Moderation {
    fn default() -> Moderation {
        Moderation::Off {}
    }
}

/// Traffic from one side.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// The interface at which it arrives.
    pub interface: String,
    /// Its encapsulation: `q:35,pppoe`; without it none.
    #[serde(default)]
    pub encap: Option<String>,
    /// Flows, made from the seed.
    #[serde(default = "flows")]
    pub flows: u32,
    /// Subscribers that the flows belong to, each with a PPPoE session of its own.
    #[serde(default = "subscribers")]
    pub subscribers: u32,
    /// Whether each subscriber has VLAN tags of its own.
    #[serde(default)]
    pub own_tags: bool,
    /// Of 100 flows, how many are IPv6.
    #[serde(default)]
    pub ipv6_percent: u8,
    /// Of 100 flows, how many are UDP.
    #[serde(default)]
    pub udp_percent: u8,
    /// The flows one by one, in place of a number of them.
    #[serde(default)]
    pub flow: Vec<Flow>,
    /// How frames spread over flows: uniform, zipf, round-robin.
    #[serde(default = "uniform")]
    pub popularity: String,
    /// Frame sizes with FCS, without encapsulation: 64, "64-1518", "imix".
    #[serde(default)]
    pub size: Option<Size>,
    /// When frames come.
    pub arrival: Arrival,
    /// All to this queue of the interface, whatever the device would do.
    #[serde(default)]
    pub queue: Option<u16>,
    /// Longest frame let in, bytes without FCS, whatever the device would do.
    #[serde(default)]
    pub longest: Option<u32>,
    /// What the stack needs for its packets besides `costs.stack`, nanoseconds.
    #[serde(default)]
    pub stack: f64,
    /// The same, an byte.
    #[serde(default)]
    pub stack_octet: f64,
    /// Whether GRO sees through its encapsulation.
    #[serde(default)]
    pub coalesces: bool,
    /// Bytes of payload in a frame, for goodput.
    #[serde(default)]
    pub payload: u32,
    /// Where packets go: an application's name, `out:INTERFACE`; without it the stack is the end.
    #[serde(default)]
    pub to: Option<String>,
}

/// One flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Source address.
    pub source: std::net::IpAddr,
    /// Destination address.
    pub destination: std::net::IpAddr,
    /// Source port.
    #[serde(default = "port")]
    pub source_port: u16,
    /// Destination port.
    #[serde(default = "port")]
    pub destination_port: u16,
    /// TCP in place of UDP.
    #[serde(default)]
    pub tcp: bool,
}

/// A frame size, or a text that says several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a frame size: 64 to 65535 bytes, \"64-1518\" or \"imix\"")]
pub enum Size {
    /// One.
    One(u16),
    /// Several.
    Text(String),
}

/// When frames come. Rates are frames a second.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum Arrival {
    /// Equal gaps.
    Constant {
        /// Rate.
        pps: f64,
    },
    /// Independent senders.
    Poisson {
        /// Rate.
        pps: f64,
    },
    /// Sending programs that each need a time for a frame, a share of which only one of them can spend at a time
    /// (Amdahl's law). They take turns: gaps are equal.
    Senders {
        /// How many.
        number: u32,
        /// Microseconds that a sender needs for a frame.
        us: f64,
        /// Percent of it that is serial.
        #[serde(default)]
        serial_percent: f64,
    },
    /// Frames of any flows, close together.
    Bursts {
        /// Frames of a burst.
        frames: u32,
        /// Nanoseconds between them; the line sets a limit.
        #[serde(default)]
        gap_ns: f64,
        /// Bursts a second.
        per_second: f64,
    },
    /// Frames of one flow as fast as the line takes them.
    Trains {
        /// Frames of a train.
        frames: u32,
        /// Trains a second.
        per_second: f64,
    },
    /// One connection with a window.
    Window {
        /// Frames under way.
        frames: u32,
        /// Microseconds from delivery to the acknowledgment's arrival.
        #[serde(default)]
        back_us: f64,
        /// Milliseconds after which lost frames are sent again.
        #[serde(default = "retry")]
        retry_ms: f64,
        /// Bytes on the wire that acknowledgments take of a half-duplex line, for each frame.
        #[serde(default)]
        acknowledgment_octets: u32,
    },
    /// As in a capture, from its first frame on.
    Capture {
        /// The file.
        file: String,
    },
}

/// A process with a socket. Costs are nanoseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Its CPU; without it, it is woken where there is an idle one.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// Packets that its socket holds.
    #[serde(default = "ring")]
    pub socket: u32,
    /// Packets a system call takes at most.
    #[serde(default = "one_packet")]
    pub batch: u32,
    /// A system call.
    #[serde(default)]
    pub call: f64,
    /// A packet, in the kernel.
    #[serde(default)]
    pub system: f64,
    /// The same, an byte.
    #[serde(default)]
    pub system_octet: f64,
    /// A call's worth of work in user space.
    #[serde(default)]
    pub user_call: f64,
    /// A packet in user space.
    #[serde(default)]
    pub user: f64,
    /// The same, an byte.
    #[serde(default)]
    pub user_octet: f64,
    /// Who gets what it writes: an application's name or `out:INTERFACE`.
    #[serde(default)]
    pub next: Option<String>,
}

fn one() -> u64 {
    1
}
fn warm_up() -> f64 {
    50.0
}
fn second() -> f64 {
    1000.0
}
fn one_cpu() -> u32 {
    1
}
fn budget() -> u32 {
    64
}
fn round() -> u32 {
    300
}
fn limit() -> f64 {
    2000.0
}
fn burst() -> u32 {
    150
}
fn user_percent() -> f64 {
    50.0
}
fn ring() -> u32 {
    256
}
fn many() -> u32 {
    u32::MAX
}
fn segment() -> u32 {
    2048
}
fn flows() -> u32 {
    1000
}
fn subscribers() -> u32 {
    1
}
fn uniform() -> String {
    "uniform".to_owned()
}
fn port() -> u16 {
    4321
}
fn retry() -> f64 {
    200.0
}
fn one_packet() -> u32 {
    1
}
