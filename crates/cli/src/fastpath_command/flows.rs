//! `rxlane fastpath flows`.

use crate::arguments::StateArguments;
use crate::output::{CommandResult, Outcome, Output};
use fastpath::status::{FLOWS, FlowRow};
use format::{Table, duration, printable, size, thousands};
use serde::Deserialize;
use serde_json::json;
use std::io::Write;

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 it is up, 1 there is none, its process was killed, or does not answer, 3 it requires root.")]
pub struct FlowsArguments {
    /// Print JSON (schema rxlane.fastpath-flows/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

#[derive(Deserialize)]
struct Listed {
    flows: Vec<FlowRow>,
    all: u64,
}

impl FlowsArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let Listed { flows, all } = super::ask(&self.state, "flows")?;
        if self.json {
            out.json_of(FLOWS, &json!({"flows": flows, "all": all}))?;
            return Ok(Outcome::Success);
        }
        if flows.is_empty() {
            writeln!(out, "No connection is in the fast path.")?;
            return Ok(Outcome::Success);
        }
        let rows = flows.iter().flat_map(|row| {
            let way = format!("  {} > {}", row.ports.0, row.ports.1);
            let way = match row.translated {
                Some((source, destination)) if source == row.source => format!("{way}, to {destination}"),
                Some((source, _)) => format!("{way}, as {source}"),
                None => way,
            };
            [
                vec![
                    row.protocol.clone(),
                    format!("{} > {}", row.source, row.destination),
                    thousands(row.packets.0 + row.packets.1),
                    size(row.bytes.0 + row.bytes.1),
                    row.idle.map_or_else(|| "never".to_owned(), duration),
                ],
                vec![String::new(), printable(&way)],
            ]
        });
        let head = ["", "connection, ports, translated", "packets", "bytes", "idle"];
        out.table(&Table::new(2, head).rows(rows))?;
        if all > flows.len() as u64 {
            writeln!(out, "{} of {} connections.", flows.len(), thousands(all))?;
        }
        Ok(Outcome::Success)
    }
}
