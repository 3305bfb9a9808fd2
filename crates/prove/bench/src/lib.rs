//! Load and sinks for packets per second, and topologies in network namespaces for them.
//!
//! * [`udp::send()`] and [`udp::receive()`] are the two ends of a test with datagrams: batches of system calls, UDP GSO and GRO,
//!   several threads, targets and source ports, a rate or as fast as it goes. What [`payload`] puts into each datagram lets
//!   the sink distinguish loss, reordering and duplicates ([`sequence`]).
//! * [`request`] is load that a host asks of another.
//! * [`frames::play`] sends frames of any encapsulation onto an interface.
//! * [`machine`] is what CPUs, interrupts and queues did meanwhile; [`report`] the result (`rxlane.bench/1`).
//! * [`scenario`] are whole measurements in rounds, what follows from their figures (`rxlane.bench-scenario/1`), and what
//!   differs between two of them (`rxlane.bench-compare/1`); [`namespace`] is where they happen.
//! * [`Pair`] is two network namespaces, joined by a multi-queue veth pair; [`frames::play`] from one CPU reaches one CPU of
//!   the other end, as a NIC does that does not see past PPPoE; [`softnet`] counts what each CPU took.
//!
//! ```no_run
//! use rxlane_bench::udp::{self, Receiving, Sending};
//! use std::ops::ControlFlow;
//! use std::sync::atomic::AtomicBool;
//!
//! let (receiving, stop) = (Receiving { once: true, ..Receiving::default() }, AtomicBool::new(false));
//! let sending = Sending { targets: vec![([127, 0, 0, 1], udp::PORT).into()], count: Some(1000), ..Sending::default() };
//! let go_on = || |_: &_| ControlFlow::Continue(());
//! let received = std::thread::scope(|scope| {
//!     let listening = receiving.listen()?;
//!     let sink = scope.spawn(|| udp::receive(&receiving, listening, None, &stop, &mut go_on()));
//!     udp::send(&sending, None, &stop, &mut go_on())?;
//!     sink.join().unwrap()
//! })?;
//! println!("{} of {} arrived", received.counts.packets, received.counts.expected);
//! # Ok::<(), udp::UdpError>(())
//! ```
//!
//! # Contract
//!
//! Nothing is allocated for a datagram or frame, neither sent nor received. What a sink was sent never panics, and its memory
//! is bounded: flows beyond [`udp::MOST_FLOWS`] a thread are counted as foreign. What is not known is `None`, never zero: of
//! datagrams too short for a number nobody knows the loss.
//!
//! Of a topology nothing outside its namespaces is touched, but for NICs that a scenario was given. They go with their guards,
//! also in a panic; what a killed process left is removed by [`namespace::sweep`], or when the next namespace is made: programs in its
//! namespaces are ended, settings of NICs and the NICs themselves are put back.
//!
//! Specifications: RFC 768 (UDP), RFC 791 and RFC 8200 (fragments), RFC 4737 (reordering), IEEE 802.3 (bytes around a frame).
//!
//! # Deliberately not here
//!
//! Making frames (crate `traffic`), packet sockets (crate `link`), printing results (crate `cli`). What a scenario measures as
//! a command (`rxlane link`, `rxlane steer`) it runs as a command. TCP is `iperf3`'s.

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "for the program alone: what says no more than its name has no comment")]

pub mod counts;
pub mod frames;
mod gate;
mod installed;
pub mod machine;
pub mod namespace;
mod pace;
pub mod payload;
mod pin;
pub mod report;
pub mod request;
pub mod run;
pub mod scenario;
mod senders;
pub mod sequence;
pub mod softnet;
pub mod supervise;
pub mod udp;
pub mod wire_size;

pub use namespace::TopologyError;
pub use scenario::pair::Pair;
