//! `rxlane link down`.

use super::{StateArguments, status};
use crate::output::{CommandResult, Outcome, Output};
use link::status::Status;
use service::Kind;
use std::io::Write;

#[derive(clap::Args)]
#[command(after_help = "\
Waits until the interface is removed. Exit codes: 0 it is, 1 there was no such link, or its process was killed before (its \
interface went with it, and what else it left is removed), or does not answer, 3 it requires root.")]
pub struct DownArguments {
    /// Name of the link.
    #[arg(value_name = "NAME")]
    name: String,
    /// Print JSON (schema rxlane.link-down/1): the link as it was at its end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl DownArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let last: Status = self.state.instances(Kind::Link)?.end(&self.name)?;
        if self.json {
            out.json(&status::document(status::DOWN, &last, None))?;
            return Ok(Outcome::Success);
        }
        writeln!(out, "{} is removed.", last.identity.name)?;
        status::counted(out, &last, None)?;
        Ok(Outcome::Success)
    }
}
