//! `rxlane pppoe sessions`.

use super::{BOLD, POOR, StateArguments, failed};
use crate::explain_command::text::printable;
use crate::output::{CommandResult, Outcome, Output, complain};
use anyhow::anyhow;
use explain::{counted as number_of, grouped};
use link::control::Bearer;
use link::pppoe::serving::{ConcentratorStatus, SubscriberStatus};
use std::io::{self, Write};

/// Arguments of `rxlane pppoe sessions`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 the interface is served, 1 it is not, or the process was killed, or does not answer, 2 several are served and none is \
named, 3 it takes root.")]
pub struct SessionsArguments {
    /// Interface that is served [default: the only one].
    #[arg(value_name = "IFACE")]
    interface: Option<String>,
    /// Only sessions in whose line this stands: a user, a MAC address, a VLAN.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Print JSON (schema rxlane.pppoe/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl SessionsArguments {
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        let interface = match self.interface.clone().map_or_else(|| self.only_one(), |name| Ok(Some(name)))? {
            Some(interface) => interface,
            None => return Ok(Outcome::Negative),
        };
        let asked = self
            .state
            .sockets(Bearer::Concentrator)
            .and_then(|sockets| Ok(sockets.answer::<ConcentratorStatus>(&interface, "sessions")?));
        let mut status = match asked {
            Ok(status) => status,
            Err(error) => return failed(error),
        };
        if let Some(text) = &self.filter {
            status.sessions.retain(|session| row(session).iter().any(|cell| cell.contains(text)));
        }
        if self.json {
            out.json(&status)?;
        } else {
            print(out, &status)?;
        }
        Ok(Outcome::Success)
    }
}

impl SessionsArguments {
    /// The interface that is served, where it is one; `None`: none is, or nobody answers, which was told.
    fn only_one(&self) -> anyhow::Result<Option<String>> {
        let (mut served, is_silent) = match self.state.all::<ConcentratorStatus>(Bearer::Concentrator) {
            Ok(all) => all,
            Err(error) => return failed(error).map(|_| None),
        };
        let names: Vec<&str> = served.iter().map(|status| status.parent.as_str()).collect();
        if let [first, _, ..] = names[..] {
            return Err(anyhow!(
                "which one? {} are served here: `rxlane pppoe sessions {first}`",
                names.join(", ")
            ));
        }
        if served.is_empty() && !is_silent {
            complain("no interface is served in this network namespace (`rxlane pppoe serve` serves one)");
        }
        Ok(served.pop().map(|status| status.parent))
    }
}

const HEADINGS: [&str; 9] =
    ["id", "user", "MAC address", "VLANs", "phase", "IPv4", "open", "from it", "to it"];

fn print(out: &mut Output, status: &ConcentratorStatus) -> io::Result<()> {
    let half = if status.half_open > 0 {
        format!(", {} of them not open yet", status.half_open)
    } else {
        String::new()
    };
    let title = out.styled(BOLD, printable(&status.parent));
    writeln!(out, "{title}: {}{half}", number_of(status.count as u64, "session"))?;
    if status.draining {
        let note = out.styled(POOR, "note");
        writeln!(
            out,
            "{note}: no more sessions are taken; `rxlane pppoe drain {} --undo` takes them again",
            printable(&status.parent)
        )?;
    }
    if status.sessions.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; 9]> = status.sessions.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(HEADINGS.get(column).map(|heading| heading.len())).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let headings = out.styled(BOLD, line(&HEADINGS.map(str::to_owned)));
    writeln!(out, "{headings}")?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
}

fn row(session: &SubscriberStatus) -> [String; 9] {
    [
        session.id.clone(),
        session.user.clone(),
        session.mac.clone(),
        session.tags.clone(),
        session.phase.clone(),
        session.peer.map_or(String::new(), |peer| peer.to_string()),
        session.uptime.map_or(String::new(), super::status::duration),
        grouped(session.received_octets),
        grouped(session.sent_octets),
    ]
}
