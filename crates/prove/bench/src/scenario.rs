//! Whole measurements: cells, each measured once a round.
//!
//! A [`Scenario`] has a [`Design`]: factors (tags: none, one, two; offloads: on, off), cells, which are combinations of their
//! levels, and what is measured of each. [`rounds::run`] measures every cell once a round, each round beginning with another
//! cell, so that whatever else the machine does meets all alike; ratios are taken within a round. The result is a
//! [`report::Report`] (`rxlane.bench-scenario/1`) with every figure. [`compare`] holds two of them against each other.
//!
//! Everything happens in network namespaces of its own ([`crate::namespace`]): nothing of the machine is changed. Only
//! [`pps::interface`] measures a real interface, whose settings it restores.

mod bounded;
pub mod compare;
mod cpu_time;
mod design;
mod environment;
pub mod forward;
mod iperf;
mod moderation;
pub(crate) mod pair;
pub mod pppoe;
pub mod pps;
mod program;
pub mod report;
pub mod rounds;
mod router;
pub mod soundness;
pub mod spread;
pub mod steer;
mod udp_load;
pub mod verdict;
pub mod vlan;

use crate::namespace::SceneError;
use report::{Fact, LeftOut, Levels};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use thiserror::Error;

pub use design::{Comparison, Design};
pub use environment::Environment;

/// Something was not measured.
#[derive(Debug, Error)]
pub enum Error {
    /// A signal asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// The machine lacks something; what, and how to get it.
    #[error("{0}")]
    Lacks(String),
    /// The request cannot be met.
    #[error("{0}")]
    Wrong(String),
    /// It went wrong on the way.
    #[error("{0}")]
    Failed(String),
    /// A device or its driver does not do this at all: no cell with these levels is tried again.
    #[error("refused: {why}")]
    Refused {
        /// What it does not do.
        levels: Levels,
        /// Its words.
        why: String,
    },
}

impl From<SceneError> for Error {
    fn from(error: SceneError) -> Error {
        match error {
            SceneError::NotRoot | SceneError::NoProgram(_) | SceneError::Thread(_) => {
                Error::Lacks(error.to_string())
            }
            SceneError::Failed { .. } | SceneError::System { .. } => match error.way_out() {
                Some(way_out) => Error::Lacks(format!("{error}; {way_out}")),
                None => Error::Failed(error.to_string()),
            },
        }
    }
}

/// What every measurement needs.
#[derive(Clone, Debug)]
pub struct Tools<'a> {
    /// This program, for what it does as a command.
    pub rxlane: PathBuf,
    /// How long each measurement takes.
    pub seconds: Duration,
    /// Set when it should end.
    pub stop: &'a AtomicBool,
}

/// Figures of a cell, by the names of metrics.
pub type Measured = Vec<(&'static str, f64)>;

/// A measurement.
pub trait Scenario {
    /// Its factors, cells and metrics.
    fn design(&self) -> Design;

    /// Finds out once what is missing here, and gives the cells that cannot be measured. Error: nothing can be measured.
    fn prepare(&mut self, tools: &Tools<'_>) -> Result<Vec<LeftOut>, Error>;

    /// What is the same each time, about the cells that are measured.
    fn facts(&self, _cells: &[Levels]) -> Result<Vec<Fact>, Error> {
        Ok(Vec::new())
    }

    /// Measures a cell. Error: it could not be measured; nothing is left behind.
    fn measure(&self, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error>;
}

/// The level of a factor; every cell of a scenario has all its factors.
fn level<'c>(cell: &'c Levels, factor: &str) -> &'c str {
    cell.get(factor).map_or("", String::as_str)
}
