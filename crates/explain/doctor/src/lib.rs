//! Findings: a snapshot of a machine, its traffic and the profiles of its network cards become facts, evidence and
//! remedies.
//!
//! # Contract
//!
//! * [`diagnose`] runs every rule of [`RULES`] over a [`Case`] and gives a [`Report`].
//! * A finding states [facts](facts::Fact), which the command words, and quotes the lines it rests on; none is without.
//!   What the text does not prove is offered as possible, not claimed. A rule without the data it needs says so, and
//!   what would give it; a report in which the deciding rules lack data is "unknown", never "healthy".
//! * A remedy is exact for this machine (interfaces, queue numbers, CPU lists) and never one that would make
//!   things worse. What it will bring is predicted from the traffic sample where there is one.
//!
//! ```
//! # use rxlane_doctor::{Case, diagnose, report::Verdict};
//! let mut reader = host::text::Reader::new();
//! let text = "$ ethtool -S eth0\n rx_queue_0_packets: 9000000\n rx_queue_1_packets: 3\n";
//! reader.read("paste.txt", text.as_bytes()).expect("it fits in memory");
//! let snapshot = reader.finish();
//! let report = diagnose(&Case::new(&snapshot, None, None).expect("built-in profiles load"));
//! assert_eq!(report.verdict, Verdict::Limited);
//! assert_eq!(report.findings[0].id, "one-queue-hot");
//! ```
//!
//! # Reading on
//!
//! `rule.rs` says what a rule is; `rules/` has them by subject, `docs/findings/` their pages; `case.rs` and `device.rs`
//! have the questions that several rules put. CONTRIBUTING.md shows how to add one.
//!
//! # Deliberately not here
//!
//! Reading a machine (crate `host`), changing it (`host::setting`, `host::journal`), and what people read: sentences and
//! tables are the command's.

#![forbid(unsafe_code)]

mod case;
mod cores;
mod device;
mod diagnose;
mod distribution;
pub mod facts;
mod fast_path;
pub mod finding;
mod fixed;
mod forwarding;
mod frame_limit;
mod load;
mod loss;
mod modelled;
mod placement;
pub mod pppoe_gro;
mod release;
mod remedies;
pub mod report;
mod rows;
mod rule;
pub mod rules;
mod software;
pub mod stacked;
mod steered;
mod traffic;
mod vectors;

pub use case::{Case, Spread};
pub(crate) use case::{ENOUGH_BETWEEN, ENOUGH_SINCE_START};
pub(crate) use device::Device;
pub use diagnose::diagnose;
pub use fast_path::commands as fast_path_commands;
pub use forwarding::{Lookup, flowtable_commands, lookup_device};
pub use report::Report;
pub use rule::Rule;
pub use rules::RULES;
pub use traffic::{Traffic, setup};
