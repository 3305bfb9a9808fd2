//! `rxlane fastpath status`.

use super::{BOLD, GOOD, POOR, item};
use crate::arguments::StateArguments;
use crate::output::{CommandResult, Outcome, Output};
use crate::render::prose::fast::{obstacle, passed};
use fastpath::Obstacle;
use fastpath::status::{SCHEMA, Status};
use format::{Share, duration, plural, printable, size, thousands};
use serde::Serialize;
use std::io::{self, Write};

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 it is up, 1 there is none, its process was killed, or does not answer, 3 it requires root.")]
pub struct StatusArguments {
    /// Print JSON (schema rxlane.fastpath/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl StatusArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let status: Status = super::ask(&self.state, "status")?;
        if self.json {
            out.json(&document(SCHEMA, &status))?;
        } else {
            let age = format!("for {}, process {}", duration(status.seconds), status.pid);
            let state = out.styled(GOOD, "up");
            writeln!(out, "{}: {state}, {age}", out.styled(BOLD, "fast path"))?;
            item(out, "ports", &format!("{} ({})", printable(&status.ports.join(", ")), status.mode))?;
            counted(out, &status)?;
        }
        Ok(Outcome::Success)
    }
}

/// A status by a schema.
pub fn document(schema: &str, status: &Status) -> Status {
    Status { schema: schema.to_owned(), ..status.clone() }
}

/// The fast path as it was at its end, and which settings are not restored.
#[derive(Serialize)]
pub struct Ended<'a> {
    #[serde(flatten)]
    last: Status,
    left: &'a [String],
}

impl Ended<'_> {
    pub fn new<'a>(last: &Status, left: &'a [String]) -> Ended<'a> {
        Ended { last: document("rxlane.fastpath-down/1", last), left }
    }
}

/// What was forwarded, and why the rest was not.
pub fn counted(out: &mut Output, status: &Status) -> io::Result<()> {
    let packets = &status.packets;
    let slow: u64 = packets.slow.values().sum();
    let all = packets.fast.saturating_add(slow);
    let share = match packets.fast_share {
        Some(_) => format!(", {} of all", Share::of(packets.fast, all).rounded()),
        None => String::new(),
    };
    item(out, "fast", &format!("{}{share}, {}", plural(packets.fast, "packet"), size(status.bytes)))?;
    let mut reasons: Vec<(&String, &u64)> = packets.slow.iter().collect();
    reasons.sort_by_key(|(_, packets)| std::cmp::Reverse(**packets));
    for (place, (reason, packets)) in reasons.into_iter().enumerate() {
        let name = if place == 0 { "kernel" } else { "" };
        item(
            out,
            name,
            &format!("{:>13}  {:<17} {}", thousands(*packets), printable(reason), passed(reason)),
        )?;
    }
    if status.limited > 0 {
        item(out, "dropped", &format!("{} above the limit", plural(status.limited, "packet")))?;
    }
    let flows = format!(
        "{} of at most {}, to {}",
        plural(status.flows, "connection"),
        thousands(status.flows_most),
        plural(status.next_hops, "station")
    );
    item(out, "flows", &flows)?;
    refusals(out, status)
}

fn refusals(out: &mut Output, status: &Status) -> io::Result<()> {
    let mut refusals: Vec<(&Obstacle, &u64)> = status.refusals.iter().collect();
    refusals.sort_by_key(|(_, connections)| std::cmp::Reverse(**connections));
    for (place, (why, connections)) in refusals.into_iter().enumerate() {
        let name = if place == 0 { "left out" } else { "" };
        item(out, name, &format!("{:>13}  {:<17} {}", thousands(*connections), why.name(), obstacle(*why)))?;
    }
    if status.lost > 0 {
        let mark = out.styled(POOR, "note");
        let times = plural(status.lost, "time");
        item(out, "events", &format!("{mark}: lost {times}, after which everything was read anew"))?;
    }
    Ok(())
}
