//! `rxlane model`: the receive-path model, what-if and against field reports.

mod capture_frames;
mod input;
mod reproduce;
mod run;
mod sweep;

use crate::output::{CommandResult, Output};

#[derive(clap::Args)]
pub struct ModelArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Simulate a scenario: rates, losses by stage, CPUs, interrupts, latencies, bursts
    Run(run::RunArguments),
    /// Simulate a scenario with one key at several values, and draw what comes of it
    Sweep(sweep::SweepArguments),
    /// Compare the model with the figures of five field reports
    Reproduce(reproduce::ReproduceArguments),
}

impl ModelArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Run(arguments) => arguments.run(out),
            Command::Sweep(arguments) => arguments.run(out),
            Command::Reproduce(arguments) => arguments.run(out),
        }
    }
}
