//! `rxlane envelope check`.

use super::up::{RequestArguments, document, planned};
use crate::arguments::StateArguments;
use crate::output::{CommandResult, Outcome, Output};
use envelope::resolve;
use service::memory;

/// Arguments of `rxlane envelope check`.
#[derive(clap::Args)]
#[command(after_help = "\
Nothing is changed, and a driver may refuse all the same.\n\n\
Exit codes: 0 it can have one, 1 there is an envelope or another XDP program already, 2 wrong usage, 3 the kernel, the driver or a \
privilege is missing.\n\n\
Example:\n  \
rxlane envelope check enp1s0 --header 8")]
pub struct CheckArguments {
    #[command(flatten)]
    request: RequestArguments,
    /// Print JSON (schema rxlane.envelope-check/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl CheckArguments {
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        // Before there is any thread: one that gets no memory ends the process.
        memory::expect(2 * memory::BEGINNING)?;
        let resolved = resolve(&self.request.request(), &self.state.records())?;
        if self.json {
            out.json_of("rxlane.envelope-check/1", &document(&resolved, resolved.plan.mode))?;
        } else {
            planned(out, &resolved)?;
        }
        Ok(Outcome::Success)
    }
}
