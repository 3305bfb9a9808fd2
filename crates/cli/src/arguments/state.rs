//! Where it is recorded what is up.

use crate::output::complain;
use format::quoted;
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

    /// A command of rxlane to paste, which finds the same folder.
    pub fn command(&self, words: &str) -> String {
        match &self.state_dir {
            None => format!("rxlane {words}"),
            Some(folder) => format!("rxlane {words} --state-dir {}", quoted(&folder.to_string_lossy())),
        }
    }

    /// The records of what is attached there.
    pub fn records(&self) -> Records {
        Records::new(self.folder().path())
    }

    /// What is up of a kind in this network namespace. Errors: which one this is cannot be read.
    pub fn instances(&self, kind: Kind) -> Result<Instances, ControlError> {
        Ok(Instances::new(kind, self.folder())?)
    }
}

/// What all instances of a kind answer, and whether one that lives does not, which is reported. `killed` is called for one that
/// was killed.
pub fn responses<T>(
    instances: &Instances,
    ask: impl Fn(&str) -> Result<T, ControlError>,
    killed: impl Fn(&str),
) -> Result<(Vec<T>, bool), ControlError> {
    let (mut all, mut is_silent) = (Vec::new(), false);
    for name in instances.names()? {
        match ask(&name) {
            Ok(answer) => all.push(answer),
            // It ended meanwhile.
            Err(ControlError::None { .. }) => {}
            // The others have an answer.
            Err(error) if error.is_negative() => {
                is_silent = true;
                if matches!(error, ControlError::Killed { .. }) {
                    killed(&name);
                }
                complain(&error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok((all, is_silent))
}
