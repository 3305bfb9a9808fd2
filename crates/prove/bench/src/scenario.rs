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

use crate::namespace::TopologyError;
use crate::supervise::ThreadError;
use crate::udp::UdpError;
use report::{Fact, LeftOut, Levels};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use thiserror::Error;

pub use design::{Comparison, Design};
pub use environment::Environment;

#[derive(Debug, Error)]
pub enum Error {
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Lacks(String),
    #[error("{0}")]
    Wrong(String),
    #[error("{0}")]
    Failed(String),
    #[error("refused: {why}")]
    Refused { levels: Levels, why: String },
}

impl From<TopologyError> for Error {
    fn from(error: TopologyError) -> Error {
        match error {
            TopologyError::NotRoot | TopologyError::NoProgram(_) => Error::Lacks(error.to_string()),
            TopologyError::Failed { .. } | TopologyError::System { .. } => match error.way_out() {
                Some(way_out) => Error::Lacks(format!("{error}; {way_out}")),
                None => Error::Failed(error.to_string()),
            },
        }
    }
}

impl From<ThreadError> for Error {
    fn from(error: ThreadError) -> Error {
        Error::Lacks(error.to_string())
    }
}

impl From<UdpError> for Error {
    fn from(error: UdpError) -> Error {
        let number = error.cause().and_then(io::Error::raw_os_error);
        match error {
            UdpError::Thread(error) => error.into(),
            _ if number == Some(Errno::MFILE.raw_os_error()) => {
                Error::Lacks(format!("{error}; `ulimit -n NUMBER` allows more"))
            }
            _ => Error::Failed(error.to_string()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Tools<'a> {
    /// This program, for what it does as a command.
    pub rxlane: PathBuf,
    pub seconds: Duration,
    pub stop: &'a AtomicBool,
}

impl Tools<'_> {
    /// Polls until `probe` finds something; `None`: not within `patience`. Error: that of `probe`, or a signal.
    fn wait_for<T>(
        &self,
        patience: Duration,
        mut probe: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        const POLL: Duration = Duration::from_millis(20);
        let start = Instant::now();
        loop {
            let found = probe()?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if found.is_some() || start.elapsed() > patience {
                return Ok(found);
            }
            sleep(POLL);
        }
    }
}

/// Figures of a cell, by the names of metrics.
pub type Measured = Vec<(&'static str, f64)>;

pub trait Scenario {
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
