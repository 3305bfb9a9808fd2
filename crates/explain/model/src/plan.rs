//! What is simulated, checked and resolved: times in picoseconds, names replaced by numbers.

#![expect(
    missing_docs,
    reason = "fields are named for what they hold; docs/model/scenarios.md has the keys behind them"
)]

use crate::Time;
use crate::source::Given;
use traffic::{Popularity, Sizes};

/// A cost that has a part for the frame and a part for each of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Picoseconds a frame.
    pub frame: Time,
    /// Picoseconds a byte.
    pub byte: Time,
}

impl Cost {
    #[inline]
    pub(crate) const fn of(self, bytes: u32) -> Time {
        self.frame + self.byte * bytes as Time
    }

    pub(crate) const fn and(self, other: Cost) -> Cost {
        Cost { frame: self.frame + other.frame, byte: self.byte + other.byte }
    }
}

/// Costs of a machine that do not belong to one source or application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// The interrupt of a vector: entry, handler, exit.
    pub interrupt: Time,
    /// What a poll costs besides its frames: entering soft interrupts, leaving them, caches that are cold.
    pub poll: Time,
    /// Of `polling`: the clock's interrupt.
    pub tick: Time,
    /// An interrupt from another CPU that has handed frames over.
    pub ipi: Time,
    /// Waking a thread, on the CPU that does it.
    pub wake: Time,
    /// Changing to another thread.
    pub switch: Time,
    /// Taking a frame out of the ring.
    pub driver: Cost,
    /// Putting a frame into another CPU's queue or the IP input queue.
    pub hand_over: Time,
    /// Taking it out of there, besides the stack.
    pub take_over: Time,
    /// Comparing and merging a frame in GRO.
    pub gro: Time,
    /// Whether times of `driver` and of the stack are exponentially distributed about their mean, for comparisons with
    /// queueing theory.
    pub exponential: bool,
}

/// When a vector interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moderation {
    Off,
    /// Not before this time since the last interrupt (Intel's EITR).
    Throttle {
        interval: Time,
    },
    /// The same, the interval following the mean frame length as Linux's igb computes it
    /// (`igb_update_ring_itr`, conservative mode, 1 Gbit/s).
    Adaptive,
    /// After a time since the first frame, or a number of frames or of DMA segments, whichever is first (Broadcom's
    /// host coalescing).
    Coalesce {
        after: Time,
        frames: u32,
        segments: u32,
        /// Bytes that fit one segment.
        segment: u32,
    },
}

/// Who takes frames out of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// A poll in a soft interrupt, with the vector masked: Linux's NAPI; FreeBSD's interrupt threads.
    Napi {
        budget: u32,
        /// Frames after which the kernel counts a squeeze.
        round: u32,
        /// How long soft interrupts may run on end while threads wait; then both share the CPU, as ksoftirqd does.
        limit: Time,
    },
    /// The interrupt handler itself, above everything else: NetBSD, OpenBSD, Linux 2.2.
    Interrupt,
    /// The clock: FreeBSD's `DEVICE_POLLING`.
    Polling {
        /// Between two ticks.
        period: Time,
        /// Frames a tick and queue, at most.
        burst: u32,
        /// Time of a tick that frames may take.
        share: Time,
    },
}

/// GRO of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gro {
    /// Frames of one packet, at most.
    pub frames: u16,
}

/// A network interface.
#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    /// Picoseconds a byte on the wire; 0 is a wire without limit.
    pub byte: Time,
    /// Frames that may wait to be sent.
    pub transmit_ring: u32,
}

/// A receive queue with its vector.
#[derive(Clone, Debug)]
pub struct Queue {
    pub port: usize,
    pub cpu: usize,
    pub ring: u32,
    pub moderation: Moderation,
}

/// A queue between driver and stack: of RPS, netisr, a cpumap, or `ipintrq`.
#[derive(Clone, Debug)]
pub struct Input {
    /// Whose soft interrupt empties it.
    pub cpu: usize,
    pub depth: u32,
}

/// Where packets of a source go after the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Nowhere: they are received when the stack is done.
    Stack,
    /// The socket of an application.
    Application(usize),
    /// Out of an interface.
    Port(usize),
}

/// A process with a socket.
#[derive(Clone, Debug)]
pub struct Application {
    pub name: String,
    /// Its CPU; without one it is woken where there is an idle one.
    pub cpu: Option<usize>,
    pub socket: u32,
    /// Frames a system call takes at most.
    pub batch: u32,
    /// A system call, in the kernel.
    pub call: Time,
    /// A frame, in the kernel.
    pub system: Cost,
    /// A call's worth of work in user space.
    pub user_call: Time,
    /// A frame in user space.
    pub user: Cost,
    /// Who gets what it writes; [`Goal::Stack`] is nobody.
    pub next: Goal,
}

/// When frames come.
pub enum Arrivals {
    Constant {
        gap: Time,
    },
    /// Exponentially distributed gaps.
    Poisson {
        /// The mean.
        gap: Time,
    },
    /// Frames of any flows, close together.
    Bursts {
        frames: u32,
        /// Gap in a burst.
        gap: Time,
        /// From the start of one to that of the next.
        period: Time,
    },
    /// Frames of one flow as fast as the wire takes them, trains starting as a Poisson process: what TCP makes of
    /// super-packets.
    Trains {
        frames: u32,
        /// Mean gap between starts.
        gap: Time,
    },
    /// A sender that has so many frames under way and waits for acknowledgments: TCP with a fixed window.
    Window {
        /// Frames under way.
        frames: u32,
        /// From delivery to the acknowledgment's arrival.
        back: Time,
        /// After which lost frames are sent again.
        retry: Time,
        /// Bytes on the wire that acknowledgments take of a half-duplex line for each frame.
        acknowledgment: u32,
    },
    /// Given ones: a capture.
    Given(Box<dyn Iterator<Item = Given> + Send>),
}

/// What becomes of the frames of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowPlan {
    /// Receive queue, of all interfaces together.
    pub queue: u32,
    /// Queue between driver and stack, where there are such.
    pub input: u32,
}

/// Where frames come from.
pub struct Source {
    pub name: String,
    pub port: usize,
    pub arrivals: Arrivals,
    /// Their sizes, untagged, with FCS.
    pub sizes: Sizes,
    /// Bytes of tags, labels and PPPoE.
    pub overhead: u32,
    /// Which flow a frame belongs to.
    pub popularity: Popularity,
    pub flows: Box<[FlowPlan]>,
    /// Longest frame that is let in, bytes without FCS.
    pub longest: u32,
    /// What the stack does with a packet, decapsulation included.
    pub stack: Cost,
    /// Whether GRO can merge its frames.
    pub coalesces: bool,
    /// Bytes of payload in a frame, for goodput; 0 where nobody requested it.
    pub payload: u32,
    pub goal: Goal,
}

/// Everything.
pub struct Plan {
    /// Of all randomness.
    pub seed: u64,
    /// Simulated before anything is counted.
    pub warm_up: Time,
    /// Simulated and counted.
    pub duration: Time,
    pub cpus: usize,
    pub driver: Driver,
    /// GRO, where it is on.
    pub gro: Option<Gro>,
    /// Queues between driver and stack.
    pub inputs: Vec<Input>,
    /// Whether a packet whose queue is that of the CPU that it is on goes up the stack there and then, as steering in XDP
    /// passes it; else it waits in that queue, as with RPS.
    pub keeps_own: bool,
    /// Whether CPUs may run ahead of each other. That changes how long a simulation takes and nothing else.
    pub ahead: bool,
    pub costs: Costs,
    pub ports: Vec<Port>,
    pub queues: Vec<Queue>,
    pub applications: Vec<Application>,
    pub sources: Vec<Source>,
}
