//! Where it is recorded what is up.

use link::Error;
use service::control::ControlError;
use service::{Instances, Kind, StateDir};
use std::path::PathBuf;
use steer::record::Records;

/// The state folder.
#[derive(clap::Args, Clone, Debug, Default)]
// The arguments of a command that has these belong to groups of their own.
#[group(skip)]
pub struct StateArguments {
    /// Folder of records, journal and control sockets [default: /run/rxlane].
    #[arg(long, value_name = "FOLDER", aliases = ["state", "journal"], overrides_with = "state_dir")]
    state_dir: Option<PathBuf>,
}

impl StateArguments {
    /// The folder.
    pub fn folder(&self) -> StateDir {
        StateDir::at(self.state_dir.clone().unwrap_or_else(|| StateDir::DEFAULT.into()))
    }

    /// The records of what is attached there.
    pub fn records(&self) -> Records {
        Records::new(self.folder().path())
    }

    /// What is up of a kind in this network namespace. Errors: which one this is cannot be read.
    pub fn instances(&self, kind: Kind) -> Result<Instances, Error> {
        Ok(Instances::new(kind, self.folder()).map_err(ControlError::from)?)
    }
}
