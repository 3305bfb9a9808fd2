//! Whole measurements: cells, each measured once a round, and what follows from their figures.
//!
//! A [`Scenario`] has factors (tags: none, one, two; offloads: on, off) and cells, which are combinations of their levels.
//! [`rounds::run`] measures every cell once a round, each round beginning with another cell, so that what the machine does
//! besides meets all alike; ratios are taken within a round. What comes of it is a [`report::Report`]
//! (`rxlane.bench-scenario/1`), with every figure. [`compare`] holds two of them against each other.
//!
//! Everything happens in network namespaces of its own ([`crate::namespace`]): nothing of the machine is changed. Only
//! [`pps::interface`] measures a real interface, whose settings it puts back.

mod bounded;
pub mod compare;
mod cpu_time;
pub mod forward;
mod iperf;
mod moderation;
mod pair;
pub mod pppoe;
pub mod pps;
mod program;
pub mod report;
pub mod rounds;
mod router;
pub mod soundness;
pub mod spread;
pub mod steer;
mod surroundings;
mod udp_load;
pub mod verdict;
pub mod vlan;

use crate::namespace::SceneError;
use report::{Fact, Factor, LeftOut, Levels, Metric, Report};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use thiserror::Error;
use verdict::Comparison;

pub use surroundings::Surroundings;

/// Something was not measured.
#[derive(Debug, Error)]
pub enum Error {
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// The machine lacks something; what, and how to get it.
    #[error("{0}")]
    Lacks(String),
    /// What was asked for cannot be.
    #[error("{0}")]
    Wrong(String),
    /// It went wrong on the way.
    #[error("{0}")]
    Failed(String),
    /// A device or its driver does not do this at all: no cell with these levels is asked for again.
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

/// What all scenarios are told.
#[derive(Clone, Debug)]
pub struct Means<'a> {
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
    /// Its word.
    fn name(&self) -> &'static str;

    /// What it measures, for a heading.
    fn title(&self) -> &'static str;

    /// What was chosen besides rounds and seconds, by name.
    fn parameters(&self) -> BTreeMap<String, String>;

    /// What differs between cells.
    fn factors(&self) -> Vec<Factor>;

    /// What is measured of each.
    fn metrics(&self) -> Vec<Metric>;

    /// All cells, in the order in which they are shown.
    fn cells(&self) -> Vec<Levels>;

    /// Looks what is missing here, once, and gives the cells that cannot be measured.
    ///
    /// # Errors
    ///
    /// Nothing can be measured.
    fn prepare(&mut self, means: &Means<'_>) -> Result<Vec<LeftOut>, Error>;

    /// What is found out once, since it is the same each time, and is about the cells that are measured.
    ///
    /// # Errors
    ///
    /// It could not be found out.
    fn facts(&self, _cells: &[Levels], _means: &Means<'_>) -> Result<Vec<Fact>, Error> {
        Ok(Vec::new())
    }

    /// What somebody has to do meanwhile, to be told before the first measurement.
    fn wants(&self) -> Option<String> {
        None
    }

    /// Measures a cell.
    ///
    /// # Errors
    ///
    /// It could not be measured; nothing is left behind.
    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error>;

    /// Which cells are worth a sentence beside which others.
    fn comparisons(&self) -> Vec<Comparison>;

    /// What else is to be said of figures, in sentences.
    fn remarks(&self, _report: &Report) -> Vec<String> {
        Vec::new()
    }
}

/// A cell of these levels.
fn levels<const N: usize>(of: [(&str, &str); N]) -> Levels {
    of.into_iter().map(|(factor, level)| (factor.to_owned(), level.to_owned())).collect()
}

/// The level of a factor; every cell of a scenario has all its factors.
fn level<'c>(cell: &'c Levels, factor: &str) -> &'c str {
    cell.get(factor).map_or("", String::as_str)
}
