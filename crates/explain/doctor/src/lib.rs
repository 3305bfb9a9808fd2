//! Findings: a snapshot of a machine, its traffic and the profiles of its network cards become evidence,
//! explanation and remedy.
//!
//! # Contract
//!
//! * [`diagnose`] runs every rule of [`RULES`] over a [`Case`] and gives a [`Report`].
//! * A finding quotes the lines it rests on; none is without. What the text does not prove is offered as
//!   possible, not claimed. A rule without the data it needs says so, and what would give it; a report in which
//!   the deciding rules lack data is "unknown", never "healthy".
//! * A remedy is exact for this machine (interfaces, queue numbers, CPU lists) and never one that would make
//!   things worse. What it will bring is predicted from the traffic sample where there is one, and "cannot tell"
//!   where there is none.
//!
//! # Reading on
//!
//! `rule.rs` says what a rule is; each of `rules/` is one finding with its page of documentation; `case.rs` has
//! the questions that several rules ask. CONTRIBUTING.md shows how to add one.
//!
//! # Deliberately not here
//!
//! Reading a machine (crate `host`), changing it (`host::setting`, `host::journal`), and how a report looks
//! (the command).

#![forbid(unsafe_code)]

mod case;
mod conclusion;
mod dealt;
mod diagnose;
mod frame_limit;
mod heat;
mod ksoftirqd;
mod loss;
mod modelled;
mod moderation;
pub mod page;
pub mod report;
mod rows;
pub mod rule;
pub mod rules;
pub mod stacked;
mod steered;
mod steering;
mod strain;
mod traffic;
mod vectors;

pub use case::{Carries, Case, ENOUGH_BETWEEN, ENOUGH_SINCE_START, Spread};
pub use diagnose::diagnose;
pub use report::Report;
pub use rule::Rule;
pub use rules::RULES;
pub use traffic::{Traffic, setup};
