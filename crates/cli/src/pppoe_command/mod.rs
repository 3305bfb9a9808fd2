//! `rxlane pppoe`: discover.

mod discover;

use crate::output::{CommandResult, Output};

/// Arguments of `rxlane pppoe`.
#[derive(clap::Args)]
pub struct PppoeArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Find the access concentrators of a line: who answers, with which services, how fast, how large packets may be.
    Discover(discover::DiscoverArguments),
}

impl PppoeArguments {
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Discover(arguments) => arguments.run(out),
        }
    }
}
