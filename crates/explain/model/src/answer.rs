//! What a simulation says.

#![expect(missing_docs, reason = "fields are named for what they count; comments have units and exceptions")]

use crate::Time;
use crate::frame::Bursts;
use crate::latency::Latencies;

/// Where frames are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    Admit,
    Ring,
    /// The queue between driver and stack was full: of RPS, netisr or a cpumap, or `ipintrq`.
    Input,
    Socket,
    Transmit,
}

impl Lost {
    /// All, in the order in which a frame meets them.
    pub const ALL: [Lost; 5] = [Lost::Admit, Lost::Ring, Lost::Input, Lost::Socket, Lost::Transmit];

    pub const fn name(self) -> &'static str {
        match self {
            Lost::Admit => "admit",
            Lost::Ring => "ring",
            Lost::Input => "input",
            Lost::Socket => "socket",
            Lost::Transmit => "transmit",
        }
    }

    pub const fn stage(self) -> &'static str {
        match self {
            Lost::Admit => "admit",
            Lost::Ring => "queue",
            Lost::Input => "steer",
            Lost::Socket => "deliver",
            Lost::Transmit => "transmit",
        }
    }
}

/// What became of the frames of a source.
#[derive(Clone)]
pub struct Traffic {
    pub name: String,
    /// Bytes of payload in a frame; 0 where nobody requested it.
    pub payload: u32,
    pub offered: u64,
    /// Their bytes without FCS.
    pub offered_bytes: u64,
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Frames lost, by [`Lost`].
    pub lost: [u64; 5],
    /// From the wire to the goal.
    pub latencies: Latencies,
}

impl Traffic {
    pub(crate) fn new(name: String, payload: u32) -> Traffic {
        let latencies = Latencies::new();
        Traffic {
            name,
            payload,
            offered: 0,
            offered_bytes: 0,
            delivered: 0,
            delivered_bytes: 0,
            lost: [0; 5],
            latencies,
        }
    }

    pub(crate) fn start_counting(&mut self) {
        *self = Traffic::new(std::mem::take(&mut self.name), self.payload);
    }

    /// Frames lost anywhere.
    pub fn lost(&self) -> u64 {
        self.lost.iter().sum()
    }
}

/// What happened at a receive queue.
#[derive(Clone, Debug)]
pub struct QueueAnswer {
    pub port: usize,
    /// Number within the interface.
    pub number: usize,
    pub cpu: usize,
    /// Frames that came, those without room included.
    pub frames: u64,
    /// Frames without room.
    pub lost: u64,
    pub interrupts: u64,
    /// Most frames that were in the ring.
    pub peak: u32,
    /// Frames in the ring when a poll or handler turned to it.
    pub bursts: Bursts,
}

/// What happened at a queue between driver and stack, or at a socket.
#[derive(Clone, Debug)]
pub struct WaitAnswer {
    /// The application, or a name of the input.
    pub name: String,
    /// CPU that empties it; `None` where that changes.
    pub cpu: Option<usize>,
    /// Frames without room.
    pub lost: u64,
    /// Most packets that were in it.
    pub peak: u32,
    /// Packets in it when its reader turned to it.
    pub bursts: Bursts,
    /// CPU time of an application's own calls and work; 0 of an input.
    pub spent: Time,
    pub calls: u64,
}

/// Where the time of a CPU went, picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuAnswer {
    pub interrupt: Time,
    pub softirq: Time,
    /// System calls and changes of threads.
    pub system: Time,
    pub user: Time,
    /// Nothing.
    pub idle: Time,
    /// Times that soft interrupts had to stop with work left.
    pub squeezes: u64,
}

/// The result of a run.
#[derive(Clone)]
pub struct Answer {
    /// Simulated and counted, picoseconds.
    pub duration: Time,
    /// Frames that were under way when counting began.
    pub before: u64,
    /// Frames that are under way at the end.
    pub after: u64,
    /// Events that it took: what the simulation cost, and nothing of what is simulated.
    pub events: u64,
    pub traffic: Vec<Traffic>,
    pub queues: Vec<QueueAnswer>,
    /// By queue between driver and stack.
    pub inputs: Vec<WaitAnswer>,
    pub applications: Vec<WaitAnswer>,
    pub cpus: Vec<CpuAnswer>,
    pub ports: Vec<String>,
    /// Of each of them the share of the time (0 to 1) in which its line was busy with frames that came; a little more than 1 where one
    /// that came first began before. `None` of a line without limit.
    pub filled: Vec<Option<f64>>,
}

/// From here on a line is called full: what did not come for want of room on it is in no count.
const FULL: f64 = 0.99;

impl Answer {
    /// Counted seconds.
    pub fn seconds(&self) -> f64 {
        self.duration as f64 / 1e12
    }

    /// Interfaces whose lines are full, so that senders wait for them.
    pub fn full_lines(&self) -> impl Iterator<Item = &str> {
        let is_full = |filled: &Option<f64>| filled.is_some_and(|filled| filled >= FULL);
        let lines = self.ports.iter().zip(&self.filled).filter(move |(_, filled)| is_full(filled));
        lines.map(|(port, _)| port.as_str())
    }

    /// Whether each frame that came is accounted for: delivered, lost at a named place, or still under way.
    pub fn conserves(&self) -> bool {
        let offered: u64 = self.traffic.iter().map(|traffic| traffic.offered).sum();
        let ended: u64 = self.traffic.iter().map(|traffic| traffic.delivered + traffic.lost()).sum();
        self.before + offered == ended + self.after
    }
}
