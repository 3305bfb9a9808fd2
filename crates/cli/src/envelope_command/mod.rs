//! `rxlane envelope`: room for headers without room for longer payloads: check, up, status, down.

mod check;
mod down;
mod status;
mod up;

use crate::arguments::StateArguments;
use crate::output::{BAD, BOLD, CommandResult, GOOD, Output};
// The same records, failures and layout as those of steering, with which an envelope is recorded.
use crate::steer_command::item;

#[derive(clap::Args)]
pub struct EnvelopeArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Say whether an interface can have an envelope, and what that would change.
    Check(check::CheckArguments),
    /// Raise the MTU by a header allowance, and refuse frames whose payload exceeds the former MTU.
    Up(up::UpArguments),
    /// Show how an envelope stands: MTU, allowance, frames that passed and that were refused.
    Status(status::StatusArguments),
    /// Restore the MTU and take the program off.
    Down(down::DownArguments),
}

impl EnvelopeArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Check(arguments) => arguments.run(out),
            Command::Up(arguments) => arguments.run(out),
            Command::Status(arguments) => arguments.run(out),
            Command::Down(arguments) => arguments.run(out),
        }
    }
}
