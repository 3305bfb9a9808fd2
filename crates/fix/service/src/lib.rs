//! The one life cycle of everything that is brought up and taken down: links, PPPoE sessions, access concentrators, steering,
//! envelopes.
//!
//! What comes up has a [`Kind`] and a name, and its files are in the [`StateDir`]. Settings that it changes go through the
//! [`journal`], so that a process that is killed at any moment leaves what undoes them. A [`daemon`] answers at its
//! [`control`] socket, writes a [`log`], ends by [`signals`] or with its network [`namespace`], and waits for whatever comes
//! first in one [`event_loop`].
//!
//! ```
//! use rxlane_service::control::{ControlHandler, Server};
//! use rxlane_service::{Instances, Kind, StateDir};
//! use std::os::unix::net::UnixStream;
//! use std::sync::Arc;
//!
//! struct Status;
//!
//! impl ControlHandler for Status {
//!     fn answer(&self, question: &str) -> Option<String> {
//!         matches!(question, "status" | "down").then(|| "{\"seconds\":1}".to_owned())
//!     }
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let links = Instances::new(Kind::Link, StateDir::at(folder))?;
//! let (_stop, ask) = UnixStream::pair()?;
//! let _server = Server::new(&links, "sub0", Arc::new(Status), ask)?;
//! let answer: serde_json::Value = links.ask("sub0", "status")?;
//! assert_eq!(answer["seconds"], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A process that is killed
//!
//! Nothing relies on code that runs at the end of a process. Whoever dies at any moment leaves: a journal, which undoes
//! settings; a record of what came up, which the next `up` or `down` of that kind takes down; a record of the former name
//! servers, which the next session or `status` restores; sockets and locks that nobody holds. Interfaces of links and sessions
//! go with their process.
//!
//! So `panic = "abort"` would be safe for the state of a machine: it is one more way to be killed. It would differ from
//! unwinding in three ways: settings stay changed until the next command instead of being undone at once; subscribers of a
//! concentrator hear no goodbye; and commands that catch a panic while they only look at a machine (`doctor`, `steer check`)
//! would end with it.
//!
//! # Deliberately not here
//!
//! What comes up (crates `link`, `steer`, `envelope` and others), and what a command prints (crate `cli`).

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]

pub mod control;
pub mod daemon;
pub mod event_loop;
mod instance;
pub mod journal;
pub mod journald;
pub mod lines;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod namespace;
pub mod notify;
pub mod process;
pub mod record;
pub mod signals;
mod state;
mod steps;

pub use instance::{Instance, Instances, Kind};
pub use state::{StateDir, StateError};
pub use steps::step;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A negative result: exit 1.
    No,
    /// Wrong usage or input: exit 2.
    Usage,
    /// The environment lacks something: exit 3.
    Lacks,
}
