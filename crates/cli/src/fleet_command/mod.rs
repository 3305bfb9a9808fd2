//! `rxlane fleet`: many machines at once, from their bundles.

mod import;
mod tables;

use crate::output::{CommandResult, Output};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct FleetArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Judge every bundle of a folder, and write machines, interfaces, queues, CPUs and findings as tables.
    Import(ImportArguments),
}

#[derive(clap::Args)]
#[command(after_help = "\
Bundles are text, one file a machine, as rxlane collect or its script writes them; the file's name is the machine's, without .txt. Tables \
are Parquet: FOLDER/machines.parquet, interfaces.parquet, queues.parquet, cpus.parquet, findings.parquet (docs/fleet.md has their columns).\n\n\
Exit codes: 0 all bundles were read, 1 some could not be, 2 wrong usage or input, 3 the environment lacks something.\n\n\
Examples:\n  \
rxlane fleet import bundles --parquet tables\n  \
duckdb -c \"SELECT id, count(DISTINCT machine) FROM 'tables/findings.parquet' GROUP BY id\"")]
pub struct ImportArguments {
    /// Folder of the bundles.
    #[arg(value_name = "DIR")]
    bundles: PathBuf,
    /// Folder for the tables, made where there is none; tables that are there are replaced.
    #[arg(long, value_name = "FOLDER")]
    parquet: PathBuf,
    /// Print the summary as JSON (schema rxlane.fleet/1).
    #[arg(long)]
    json: bool,
}

impl FleetArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Import(arguments) => import::run(&arguments, out),
        }
    }
}
