//! A snapshot of a machine's receive path: live Linux, or whatever text was pasted, in one data model; and settings
//! that are read, changed and restored.
//!
//! ```
//! use rxlane_host::text::Reader;
//!
//! let paste = "$ ethtool -g eth0\nRing parameters for eth0:\nPre-set maximums:\nRX:\t4096\n\
//!              Current hardware settings:\nRX:\t256\n";
//! let mut reader = Reader::new();
//! reader.read("paste.txt", paste.as_bytes())?;
//! let snapshot = reader.finish();
//! let eth0 = snapshot.interface("eth0").expect("the text names it");
//! let ring = eth0.rings.rx.current.as_ref().expect("the text says it");
//! assert_eq!((*ring.get(), ring.quote().line), (256, 6));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Contract
//!
//! * There is one way into the model: text. A live machine is read through netlink, procfs and sysfs and written
//!   down as a [bundle](crate) of the same commands' outputs, in the same form as the tools print them; the same
//!   reader takes that bundle, the output of the shell collector, and what a person pasted. So a live diagnosis
//!   and the diagnosis of its bundle cannot differ.
//! * Every fact carries the line it was read from ([`Quote`]). What no line says is unknown, never zero.
//! * Memory is bounded by the limits of [`Snapshot`], whatever the size of the text. No text panics.
//!
//! # Deliberately not here
//!
//! Judgement: crate `doctor` draws conclusions. Packets: crate `capture` reads files of them.

#![deny(unsafe_code)]

mod architecture;
pub mod collector;
mod counter;
mod fast_path;
mod interface;
#[cfg(target_os = "linux")]
pub mod live;
mod machine;
mod netfilter;
mod quote;
pub mod redact;
#[cfg(target_os = "linux")]
pub mod sample;
#[cfg(target_os = "linux")]
pub mod setting;
mod snapshot;
pub mod statistics;
pub mod text;
pub mod trace;

pub use architecture::{Architecture, Fixed};
pub use counter::{Basis, Counter, Delta, Shares};
pub use fast_path::FastPath;
pub use interface::{
    Channels, Feature, Interface, Kind, Limited, Link, Queue, Reta, Rings, SHAPERS, SteerTarget, Steering,
    Totals, Xdp,
};
pub use machine::{
    Chip, Cpus, Distribution, FunctionShare, Interrupt, Load, LogLine, LogTopic, Mbufs, Netisr,
    NetisrProtocol, Process, Softnet, System, Workstream,
};
pub use netfilter::{Connections, FlowRule, Flowtable, Netfilter, ProtocolConnections};
pub use quote::{Fact, Observed, Quote};
pub use snapshot::{PppoeDriver, Session, Snapshot, Symbols, Unread};
