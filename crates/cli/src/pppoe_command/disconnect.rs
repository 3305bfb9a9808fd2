//! `rxlane pppoe disconnect`.

use super::{StateArguments, failed, status};
use crate::output::{CommandResult, Outcome, Output, complain};
use link::control::{Bearer, ControlError};
use link::pppoe::resolver::Place;
use link::pppoe::status::SessionStatus;
use std::io::Write;

/// Arguments of `rxlane pppoe disconnect`.
#[derive(clap::Args)]
#[command(after_help = "\
The concentrator is told (Terminate-Request, PADT), and the command waits until interface, routes and name servers are as \
before. Exit codes: 0 they are, 1 there was no such session, or its process was killed before (what it left is put back), or does \
not answer, 3 it takes root.")]
pub struct DisconnectArguments {
    /// Interface of the session, as `rxlane pppoe connect --ifname` named it.
    #[arg(value_name = "IFNAME")]
    name: String,
    #[command(flatten)]
    state: StateArguments,
}

impl DisconnectArguments {
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        let sockets = match self.state.sockets(Bearer::Session) {
            Ok(sockets) => sockets,
            Err(error) => return failed(error),
        };
        match sockets.end::<SessionStatus>(&self.name) {
            Ok(last) => {
                writeln!(out, "{} is disconnected.", last.interface)?;
                status::traffic(out, &last)?;
                Ok(Outcome::Success)
            }
            Err(error) => {
                if matches!(error, ControlError::Killed { .. }) {
                    self.recover();
                }
                failed(error.into())
            }
        }
    }

    /// Puts back the name servers that a killed process could not.
    fn recover(&self) {
        if let Err(error) = Place::of_machine(&self.state.folder()).recover() {
            complain(&error.to_string());
        }
    }
}
