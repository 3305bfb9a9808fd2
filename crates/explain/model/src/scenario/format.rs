//! What a scenario file can say.

#![expect(missing_docs, reason = "docs/model/scenarios.md has the keys")]

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is, one line.
    pub title: String,
    #[serde(default)]
    pub description: String,
    #[serde(default = "number::<_, 1>")]
    pub seed: u64,
    /// Simulated before anything is counted, milliseconds.
    #[serde(default = "number::<_, 50>")]
    pub warm_up_ms: f64,
    /// Simulated and counted, milliseconds.
    #[serde(default = "number::<_, 1000>")]
    pub duration_ms: f64,
    #[serde(default = "number::<_, 1>")]
    pub cpus: u32,
    /// Who takes frames out of rings.
    #[serde(default)]
    pub driver: Driver,
    /// GRO: frames that make one packet, at most.
    pub gro_frames: Option<u16>,
    /// Queues between driver and stack.
    pub hand_over: Option<HandOver>,
    #[serde(default)]
    pub costs: Costs,
    pub interface: BTreeMap<String, Interface>,
    pub traffic: BTreeMap<String, Traffic>,
    #[serde(default)]
    pub application: BTreeMap<String, Application>,
}

const BUDGET: u16 = 64;
const ROUND: u16 = 300;
const LIMIT: u16 = 2000;

/// Who takes frames out of rings.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum Driver {
    /// Polls in soft interrupts, the vector masked meanwhile: Linux's NAPI; FreeBSD's interrupt threads.
    Napi {
        /// Frames a turn (`NAPI_POLL_WEIGHT`).
        #[serde(default = "number::<_, BUDGET>")]
        budget: u32,
        /// Frames after which a squeeze is counted (`net.core.netdev_budget`).
        #[serde(default = "number::<_, ROUND>")]
        round: u32,
        /// Microseconds that soft interrupts run on end before waiting threads have as long (ksoftirqd).
        #[serde(default = "number::<_, LIMIT>")]
        limit_us: f64,
    },
    /// The interrupt handler: NetBSD, OpenBSD, Linux 2.2. Packets then wait in the IP input queue.
    Interrupt {},
    /// A clock: FreeBSD's `DEVICE_POLLING`.
    Polling {
        hz: f64,
        /// Frames a tick and queue (`kern.polling.burst_max`).
        #[serde(default = "number::<_, 150>")]
        burst: u32,
        /// Percent of a tick left to threads (`kern.polling.user_frac`).
        #[serde(default = "number::<_, 50>")]
        user_percent: f64,
    },
}

impl Default for Driver {
    fn default() -> Driver {
        Driver::Napi { budget: BUDGET.into(), round: ROUND.into(), limit_us: LIMIT.into() }
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
    pub interrupt: f64,
    /// A poll besides its frames.
    pub poll: f64,
    /// An interrupt of the polling clock.
    pub tick: f64,
    /// An interrupt from another CPU.
    pub ipi: f64,
    pub wake: f64,
    /// Changing to another process.
    pub switch: f64,
    /// Taking a frame out of the ring.
    pub driver: f64,
    pub driver_octet: f64,
    /// Putting a packet into a queue between driver and stack.
    pub hand_over: f64,
    /// Taking it out of there, besides the stack.
    pub take_over: f64,
    pub gro: f64,
    /// The stack, a packet.
    pub stack: f64,
    pub stack_octet: f64,
    /// Sending a packet that is forwarded, transmit completion included.
    pub forward: f64,
    /// Whether driver and stack take exactly these times, or exponentially distributed ones about them.
    pub spread: Spread,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    #[default]
    Exact,
    Exponential,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Mbit/s of the line; without it as fast as one likes.
    pub speed_mbps: Option<f64>,
    /// The device, as `rxlane nics` knows it. Without one, flows are spread over the queues in turn.
    pub nic: Option<String>,
    /// Receive queues in use.
    pub queues: Option<u16>,
    #[serde(default = "number::<_, 256>")]
    pub ring: u32,
    /// CPU of each queue's vector; without it those of the queues' numbers.
    pub vectors: Option<Vec<u32>>,
    #[serde(default)]
    pub moderation: Moderation,
    /// Hash key, hex bytes.
    pub key: Option<String>,
    /// Indirection table: the queue of each entry, or `"equal"` as `ethtool -X … equal` makes it.
    pub table: Option<IndirectionTable>,
    /// Hash fields such as `udp4=sdfn`.
    #[serde(default)]
    pub hash_fields: Vec<String>,
    /// Packets that may wait to be sent.
    #[serde(default = "number::<_, 256>")]
    pub transmit_ring: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected \"equal\" or a list with the queue of each entry")]
pub enum IndirectionTable {
    Word(String),
    Entries(Vec<u16>),
}

/// When a vector interrupts.
// Without braces serde takes any key besides the kind.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum Moderation {
    /// At each frame.
    Off {},
    /// At most once in an interval.
    Interval { us: f64 },
    /// As Linux's igb adapts the interval to frame lengths.
    Igb {},
    /// After a time, or a number of frames or DMA segments, whichever is first.
    Coalesce {
        /// Microseconds since the first frame.
        us: f64,
        frames: u32,
        #[serde(default = "many")]
        segments: u32,
        #[serde(default = "number::<_, 2048>")]
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
    pub interface: String,
    /// Its encapsulation: `q:35,pppoe`; without it none.
    pub encap: Option<String>,
    /// Flows, made from the seed.
    #[serde(default = "number::<_, 1000>")]
    pub flows: u32,
    /// Subscribers that the flows belong to, each with a PPPoE session of its own.
    #[serde(default = "number::<_, 1>")]
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
    pub size: Option<Size>,
    pub arrival: Arrival,
    /// All to this queue of the interface, whatever the device would do.
    pub queue: Option<u16>,
    /// Longest frame let in, bytes without FCS, whatever the device would do.
    pub longest: Option<u32>,
    /// What the stack needs for its packets besides `costs.stack`, nanoseconds.
    #[serde(default)]
    pub stack: f64,
    #[serde(default)]
    pub stack_octet: f64,
    #[serde(default)]
    pub coalesces: bool,
    /// Bytes of payload in a frame, for goodput.
    #[serde(default)]
    pub payload: u32,
    /// Where packets go: an application's name, `out:INTERFACE`; without it the stack is the end.
    pub to: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    pub source: std::net::IpAddr,
    pub destination: std::net::IpAddr,
    #[serde(default = "number::<_, 4321>")]
    pub source_port: u16,
    #[serde(default = "number::<_, 4321>")]
    pub destination_port: u16,
    /// TCP in place of UDP.
    #[serde(default)]
    pub tcp: bool,
}

/// A frame size, or a text that says several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a frame size: 64 to 65535 bytes, \"64-1518\" or \"imix\"")]
pub enum Size {
    One(u16),
    Text(String),
}

/// When frames come. Rates are frames a second.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum Arrival {
    Constant {
        pps: f64,
    },
    /// Independent senders.
    Poisson {
        pps: f64,
    },
    /// Sending programs that each need a time for a frame, a share of which only one of them can spend at a time
    /// (Amdahl's law). They take turns: gaps are equal.
    Senders {
        number: u32,
        /// Microseconds that a sender needs for a frame.
        us: f64,
        /// Percent of it that is serial.
        #[serde(default)]
        serial_percent: f64,
    },
    /// Frames of any flows, close together.
    Bursts {
        frames: u32,
        /// Nanoseconds between them; the line sets a limit.
        #[serde(default)]
        gap_ns: f64,
        per_second: f64,
    },
    /// Frames of one flow as fast as the line takes them.
    Trains {
        frames: u32,
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
        #[serde(default = "number::<_, 200>")]
        retry_ms: f64,
        /// Bytes on the wire that acknowledgments take of a half-duplex line, for each frame.
        #[serde(default)]
        acknowledgment_octets: u32,
    },
    /// As in a capture, from its first frame on.
    Capture {
        file: String,
    },
}

/// A process with a socket. Costs are nanoseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Its CPU; without it, it is woken where there is an idle one.
    pub cpu: Option<u32>,
    #[serde(default = "number::<_, 256>")]
    pub socket: u32,
    /// Packets a system call takes at most.
    #[serde(default = "number::<_, 1>")]
    pub batch: u32,
    #[serde(default)]
    pub call: f64,
    /// A packet, in the kernel.
    #[serde(default)]
    pub system: f64,
    #[serde(default)]
    pub system_octet: f64,
    /// A call's worth of work in user space.
    #[serde(default)]
    pub user_call: f64,
    /// A packet in user space.
    #[serde(default)]
    pub user: f64,
    #[serde(default)]
    pub user_octet: f64,
    /// Who gets what it writes: an application's name or `out:INTERFACE`.
    pub next: Option<String>,
}

/// A default.
fn number<T: From<u16>, const N: u16>() -> T {
    N.into()
}

fn many() -> u32 {
    u32::MAX
}

fn uniform() -> String {
    "uniform".to_owned()
}
