//! `rxlane steer down`.

use super::{StateArguments, item, persist};
use crate::output::{CommandResult, Outcome, Output};
use ::persist::Removed;
use format::printable;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use steer::down::Down;

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 nothing is steered or changed any more, 1 something is not restored or could not be\nread (it says what), 3 it requires root.\n\n\
Works also after `up` or its daemon was killed, and after the interface was removed.")]
pub struct DownArguments {
    /// Interface.
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// Remove what `up --persist` wrote, too.
    #[arg(long)]
    undo: bool,
    /// Print JSON (schema rxlane.steer-down/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl DownArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let removed = if self.undo { persist::undo(&self.interface)? } else { Vec::new() };
        let down = steer::down::down(&self.interface, &self.state.records())?;
        let is_kept = removed.iter().any(Removed::is_kept);
        if self.json {
            let paths = removed.iter().filter(|one| !one.is_kept()).map(|one| one.path.clone()).collect();
            out.json_of("rxlane.steer-down/1", &Document { down: &down, removed: paths })?;
        } else {
            print(out, &down)?;
            if self.undo {
                persist::print_undone(out, &removed)?;
            }
        }
        Ok(if down.is_whole() && !is_kept { Outcome::Success } else { Outcome::Negative })
    }
}

#[derive(Serialize)]
struct Document<'d> {
    #[serde(flatten)]
    down: &'d Down,
    /// Files that `up --persist` wrote and that are removed.
    removed: Vec<PathBuf>,
}

pub fn print(out: &mut Output, down: &Down) -> io::Result<()> {
    let name = match &down.present {
        Some(present) => format!("{} (attached as {})", printable(present), printable(&down.interface)),
        None => printable(&down.interface),
    };
    if down.is_nothing() {
        writeln!(out, "{name} is not steered; there is nothing to take back.")?;
        return remarks(out, down);
    }
    writeln!(out, "{name} is {} steered.", if down.found_nothing() { "not" } else { "no longer" })?;
    if let Some(frames) = down.frames {
        let unseen = match down.unseen {
            Some(0) | None => String::new(),
            Some(unseen) => {
                format!(", {} of them dropped where a CPU's queue was full", format::thousands(unseen))
            }
        };
        item(out, "steered", &format!("{}{unseen}", format::plural(frames, "frame")))?;
    }
    for why in &down.leftovers {
        item(out, "leftovers", &format!("removed: {why}"))?;
    }
    if let Some(pid) = down.ended {
        item(out, "process", &format!("{pid}, which stayed with it, has ended"))?;
    }
    for setting in &down.settings {
        item(out, "restored", &printable(setting))?;
    }
    for left in &down.left {
        item(out, "left", &printable(left))?;
    }
    for failure in &down.failures {
        item(out, "failed", &printable(failure))?;
    }
    remarks(out, down)?;
    if down.kept > 0 {
        writeln!(
            out,
            "{} not restored, for the reasons above.",
            format::plural(down.kept as u64, "setting")
        )?;
    }
    Ok(())
}

fn remarks(out: &mut Output, down: &Down) -> io::Result<()> {
    down.remarks.iter().try_for_each(|remark| item(out, "note", &printable(remark)))
}
