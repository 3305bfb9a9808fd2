//! `rxlane envelope status`.

use super::{BAD, BOLD, GOOD, StateArguments, item};
use crate::output::{CommandResult, Outcome, Output};
use envelope::{Row, State, Status, status};
use format::{printable, thousands};
use std::io::{self, Write};

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 it is as `up` left it, or there is none, 1 something was changed since (it says what), 2 no such \
interface, 3 it requires root.")]
pub struct StatusArguments {
    /// Interface.
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// Print JSON (schema rxlane.envelope/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl StatusArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let status = status(&self.interface, &self.state.records())?;
        if self.json {
            out.json(&status)?;
        } else {
            print(out, &status)?;
        }
        Ok(if status.state == State::Damaged { Outcome::Negative } else { Outcome::Success })
    }
}

fn print(out: &mut Output, status: &Status) -> io::Result<()> {
    let name = printable(&status.interface);
    let (style, state) = match (status.state, status.mode) {
        (State::Off, _) => (BOLD, "no envelope".to_owned()),
        (State::Up, mode) => (GOOD, format!("envelope, {} mode", mode.unwrap_or_default())),
        (State::Damaged, Some(mode)) => (BAD, format!("envelope, {mode} mode, damaged")),
        (State::Damaged, None) => (BAD, "what is left of an envelope".to_owned()),
    };
    writeln!(out, "{name}: {}", out.styled(style, state))?;
    if let (Some(payload), Some(header)) = (status.payload, status.header) {
        item(out, "payload", &format!("{} bytes at most", thousands(payload.into())))?;
        item(out, "header", &format!("{header} bytes"))?;
    }
    if let Some(mtu) = status.mtu.filter(|_| status.state != State::Off) {
        item(out, "mtu", &mtu.to_string())?;
    }
    for problem in &status.problems {
        item(out, "problem", &printable(problem))?;
    }
    table(out, "Frames that passed", &status.passed)?;
    table(out, "Frames that were refused", &status.refused)
}

fn table(out: &mut Output, title: &str, rows: &[Row]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    out.heading(title)?;
    rows.iter().try_for_each(|row| writeln!(out, "  {:<15}{:>15}", row.word, thousands(row.frames)))
}
