//! `rxlane envelope down`.

use super::{StateArguments, item};
use crate::output::{CommandResult, Outcome, Output};
use envelope::{Down, down};
use format::printable;
use std::io::{self, Write};

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 everything is as it was, 1 there was no envelope, or the MTU is not what it was (it says why), 2 no such \
interface, 3 it requires root.\n\n\
Works also after `up` was killed, and after the interface was removed.")]
pub struct DownArguments {
    /// Interface.
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// Print JSON (schema rxlane.envelope-down/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl DownArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let down = down(&self.interface, &self.state.records())?;
        if self.json {
            out.json_of("rxlane.envelope-down/1", &down)?;
        } else {
            print(out, &down)?;
        }
        Ok(if down.is_whole() { Outcome::Success } else { Outcome::Negative })
    }
}

pub fn print(out: &mut Output, down: &Down) -> io::Result<()> {
    let name = match &down.present {
        Some(present) => format!("{} (attached as {})", printable(present), printable(&down.interface)),
        None => printable(&down.interface),
    };
    writeln!(out, "{name} has no envelope any more.")?;
    if let Some(restored) = &down.restored {
        item(out, "restored", &printable(restored))?;
    }
    if let Some(refused) = down.refused {
        item(out, "refused", &format::plural(refused, "frame"))?;
    }
    for why in &down.leftovers {
        item(out, "leftovers", &format!("removed: {why}"))?;
    }
    for left in &down.left {
        item(out, "left", &printable(left))?;
    }
    down.remarks.iter().try_for_each(|remark| item(out, "note", &printable(remark)))
}
