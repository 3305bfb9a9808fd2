//! Man pages and shell completions, from the same definitions as the parser.

use crate::output::{CommandResult, Outcome, Output};
use anyhow::Context;
use clap::Command;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `rxlane completions`.
#[derive(clap::Args)]
pub struct CompletionsArguments {
    /// Shell
    shell: clap_complete::Shell,
}

impl CompletionsArguments {
    /// Prints the completions of `command`.
    pub fn run(self, out: &mut Output, mut command: Command) -> CommandResult {
        let name = command.get_name().to_owned();
        // The generator panics when its writer fails, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        out.write_all(&script)?;
        Ok(Outcome::Success)
    }
}

/// Arguments of `rxlane man`.
#[derive(clap::Args)]
pub struct ManArguments {
    /// Directory for one page a command; made when it is not there
    directory: PathBuf,
}

impl ManArguments {
    /// Writes a page for `command` and each command below it.
    pub fn run(self, out: &mut Output, command: Command) -> CommandResult {
        let directory = &self.directory;
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        clap_mangen::generate_to(command, directory)
            .with_context(|| format!("cannot write into {}", directory.display()))?;
        writeln!(out, "The pages are in {}.", directory.display())?;
        Ok(Outcome::Success)
    }
}
