//! The receive path as a discrete-event simulation: what comes of a machine, its settings and its traffic.
//!
//! # What is simulated
//!
//! Frames arrive by one of several processes ([`plan::Arrivals`]) on a wire of some speed and are let in or not by length
//! (`admit`). What the device parses and hashes is answered by [`nic::Receiver`] once for each flow, so that a frame finds
//! its ring by its flow (`parse`, `hash`, `queue`). Vectors interrupt by time, by number of frames and by DMA segments
//! (`moderate`). A CPU does one piece of work at a time, interrupts before soft interrupts before threads, and what is
//! interrupted goes on later. Frames leave rings by polls with a budget, by the interrupt handler, or by a clock (`poll`); are
//! handed to another CPU, netisr or `ipintrq`, or not (`steer`); are merged, or not (`coalesce`); go through the stack (`decap`,
//! `deliver`) to a socket, whose reader wants the same CPUs, or out of an interface (`transmit`).
//!
//! Nothing in the machine is a fitted curve: rates, losses, CPU shares, interrupts and latencies follow from costs of single
//! steps and from the order in which the steps are taken.
//!
//! ```
//! use rxlane_model::measure::measure;
//! use rxlane_model::{Scenario, run};
//!
//! let text = r#"
//! title = "Two queues, 300,000 frames a second"
//! cpus = 2
//! warm_up_ms = 5
//! duration_ms = 20
//! costs = { driver = 500, stack = 1500 }
//! interface.wan = { queues = 2 }
//! traffic.download = { interface = "wan", arrival = { kind = "poisson", pps = 300000 } }
//! "#;
//! let scenario = Scenario::parse("line.toml", text)?;
//! let answer = run(scenario.plan(&mut |_, _, _, _| Err("no captures here".to_owned()))?);
//! assert!(answer.conserves());
//! assert!(measure(&answer, "received_kpps")? > 250.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contract
//!
//! * The same plan gives the same answer on every platform: integer arithmetic, picoseconds, one seed.
//! * Memory depends on the plan, not on the time simulated; a frame allocates nothing.
//! * Every frame is delivered, lost at a named place, or still under way ([`Answer::conserves`]).
//!
//! # Deliberately not here
//!
//! Transport protocols beyond a fixed window; caches other than as a cost; power states; DMA and bus bandwidth; locks between
//! CPUs; transmit completions other than as a part of the cost of a frame.

mod answer;
mod counting;
mod cpu;
mod engine;
pub mod forecast;
mod frame;
mod gro;
mod latency;
mod lookahead;
pub mod measure;
pub mod plan;
mod prefetch;
mod run;
pub mod scenario;
mod schedule;
mod source;
mod stages;
mod threads;
mod vector;

pub use answer::{Answer, CpuAnswer, Lost, QueueAnswer, Traffic, WaitAnswer};
pub use engine::run;
pub use frame::Bursts;
pub use latency::Latencies;
pub use nic::document::FileError;
pub use plan::Plan;
pub use scenario::Scenario;
pub use source::{Given, REFUSED};

/// Picoseconds.
pub type Time = u64;

/// Picoseconds of a second.
pub const SECOND: Time = 1_000_000_000_000;
