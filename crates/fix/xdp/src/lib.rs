//! Steering of inner flows over CPUs: eBPF programs, their loader, and the Rust decision they must agree with. And, in
//! [`envelope`], the program that keeps payloads short where an MTU was raised for the sake of headers.
//!
//! # What happens to a frame
//!
//! 1. On the CPU that the receive queue interrupts, `bpf/steer.bpf.c` reads every header up to the ports. Its
//!    [`Class`](layout::Class) is its outermost encapsulation. Frames of classes that were not selected, control
//!    traffic and whatever cannot be parsed go to the stack where they are, counted by [`Reason`](layout::Reason).
//! 2. A keyed hash of the inner flow chooses one of [`BUCKETS`](layout::BUCKETS) buckets, the bucket a CPU, and the
//!    frame is queued there before a socket buffer has been made of it (`BPF_MAP_TYPE_CPUMAP`).
//! 3. On that CPU, `bpf/arrive.bpf.c` counts the arrival and hands the frame to the stack.
//!
//! # How a bucket moves
//!
//! Whoever balances writes the CPU that a bucket should have. Each receiving CPU goes on sending the bucket where
//! *it* sent it last, until a frame comes at a moment when
//!
//! 1. all frames of the bucket that were sent have arrived (`sent == arrived + lost`, arrivals read first), and
//! 2. the last one that arrived where this CPU sent it did so at least [`Settings::hold_ns`](layout::Settings) ago, in
//!    which that CPU handed it to the stack. While a bucket should be elsewhere, arrivals are stamped with the time.
//!
//! So a move takes a gap between two frames of the bucket that is as long as the queue at that time and the hold; a
//! bucket without such a gap stays. A flow arrives on one receive queue, so its frames are not overtaken by later ones.
//! What voids this: a flow whose frames arrive by several queues at once, or a CPU that stops for longer than the hold
//! between counting an arrival and delivering it.
//!
//! # How it stays
//!
//! [`attach()`] fills all maps, pins them and the programs, and makes and pins the link that puts the program on the
//! interface last; whoever holds the pins holds the attachment, so it stays when the process ends, and any process
//! finds it with `Attachment::open`. A killed process leaves a whole attachment or pins without a link, which the
//! next one clears, as it does those of interfaces that were removed ([`dead()`]).
//!
//! ```no_run
//! let program = rxlane_xdp::Interface::find("eth0")?.program()?;
//! println!("{:?}", program.and_then(|program| program.attached_as));
//! # Ok::<(), rxlane_xdp::Error>(())
//! ```

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]
#![deny(unsafe_code)]

mod attachment;
mod bpffs;
mod counters;
mod dead;
pub mod envelope;
pub mod envelope_layout;
pub mod envelope_reference;
mod error;
mod family;
mod features;
mod foreign;
pub mod forward;
pub mod forward_layout;
pub mod forward_reference;
pub mod hash;
mod interface;
pub mod layout;
mod link;
mod load;
pub mod object;
mod permission;
mod pins;
pub mod reference;
mod steering;
pub mod subscribers;
pub mod subscribers_layout;

pub use attachment::{Loaded, attach, check};
pub use counters::{Counters, Receiver, Target};
pub use dead::{Dead, Stale, away, clear_dead, dead, is_attached_from};
pub use error::Error;
pub use family::Family;
pub use features::{Kernel, kernel};
pub use interface::{
    AttachedBy, Described, Interface, Mode, Program, is_redirect_target, no_redirect_target,
};
pub use steering::{Detached, LONGEST_QUEUE, Plan, Steering};

/// Steering programs on an interface. They stay when this is dropped and when the process ends.
pub type Attachment = attachment::Attachment<Steering>;
