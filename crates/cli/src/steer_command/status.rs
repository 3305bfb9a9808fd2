//! `rxlane steer status`.

use super::{BAD, BOLD, GOOD, POOR, QUIET, StateArguments, item, percent, rate};
use crate::arguments::seconds;
use crate::output::{CommandResult, Outcome, Output};
use crate::physical;
use format::{plural, printable, thousands};
use std::io::{self, Write};
use std::time::Duration;
use steer::status::{self, Status};

#[derive(clap::Args)]
#[command(after_help = "\
Exit code 0 also where nothing is steered: the mode is `off` then. Without root the mode is what the kernel shows, else `unknown`, and counters are not shown.\n\n\
Examples:\n  \
rxlane steer status\n  \
rxlane steer status enp1s0 --interval 5\n  \
rxlane steer status enp1s0 --json --interval 0")]
pub struct StatusArguments {
    /// Interface [default: all that are steered].
    #[arg(value_name = "INTERFACE")]
    interface: Option<String>,
    /// Time over which rates are taken, seconds; 0 for totals alone.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value = "1", value_parser = seconds(0.0, 3600.0))]
    interval: Duration,
    /// Print JSON (schema rxlane.steer/1; without INTERFACE a list under `interfaces`).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

/// Rows of lists that a machine can make long.
const ROWS: usize = 64;
/// Buckets in a line of the picture.
const LINE: usize = 64;

impl StatusArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let records = self.state.records();
        let Some(interface) = &self.interface else {
            return self.print_all(out, &status::all(self.interval, &records)?);
        };
        let interface = &physical::meant(interface, &self.state.folder())?;
        let status = status::status(interface, self.interval, &records)?;
        out.show(self.json, &status, print)?;
        Ok(Outcome::Success)
    }

    fn print_all(&self, out: &mut Output, all: &[Status]) -> CommandResult {
        if self.json {
            let value = serde_json::json!({ "schema": "rxlane.steer-list/1", "interfaces": all });
            out.json(&value)?;
            return Ok(Outcome::Success);
        }
        for (place, status) in all.iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            print(out, status)?;
        }
        if all.is_empty() {
            writeln!(out, "No interface here is steered.")?;
        }
        Ok(Outcome::Success)
    }
}

pub fn print(out: &mut Output, status: &Status) -> io::Result<()> {
    let name = printable(&status.interface);
    if matches!(status.mode, "off" | "unknown") {
        let off = if status.complete { "not steered" } else { "not known to be steered" };
        let off = out.styled(BOLD, off);
        writeln!(out, "{name}: {off}")?;
        return remarks(out, status);
    }
    let mode = out
        .styled(if status.mode == "native" { GOOD } else { POOR }, format!("steered, {} mode", status.mode));
    let since = status.since.map_or(String::new(), |since| format!(", for {}", status::age(since)));
    writeln!(out, "{name}: {mode}{since}")?;
    if !status.complete {
        return remarks(out, status);
    }
    item(out, "classes", &status.classes.join(", "))?;
    let queue = status.queue_size.map_or("?".to_owned(), |size| thousands(size.into()));
    let symmetric = if status.symmetric { "; both directions of a flow to one CPU" } else { "" };
    item(out, "queue", &format!("{queue} frames in front of each CPU{symmetric}"))?;
    process(out, status)?;
    remarks(out, status)?;
    cpus(out, status)?;
    reasons(out, status)?;
    receiving(out, status)?;
    buckets(out, status)
}

fn process(out: &mut Output, status: &Status) -> io::Result<()> {
    let Some(keeper) = &status.keeper else {
        return item(out, "process", "none stays with it: nothing is rebalanced");
    };
    let mut tasks = Vec::new();
    if keeper.foreground {
        tasks.push("takes steering away when it ends".to_owned());
    }
    if keeper.rebalance {
        tasks.push(format!("rebalances ({} so far)", plural(status.moves, "move")));
    }
    if let Some(address) = &keeper.metrics {
        tasks.push(format!("serves metrics at http://{address}/metrics"));
    }
    let alive = if keeper.alive { "" } else { "dead; " };
    item(out, "process", &printable(&format!("{} {alive}{}", keeper.pid, tasks.join(", "))))?;
    // One that only serves metrics judges the balance as well, and moves nothing by it.
    match keeper.state.as_deref().filter(|_| keeper.alive && keeper.rebalance) {
        Some(state) => item(out, "balance", &printable(state)),
        None => Ok(()),
    }
}

fn remarks(out: &mut Output, status: &Status) -> io::Result<()> {
    for remark in &status.remarks {
        let mark = out.styled(POOR, "note");
        out.paragraph("  ", &format!("{mark}: {}", printable(remark)))?;
    }
    Ok(())
}

fn cpus(out: &mut Output, status: &Status) -> io::Result<()> {
    out.heading("CPUs")?;
    writeln!(
        out,
        "{}",
        out.styled(QUIET, "  CPU   buckets          frames           rate   share       drops")
    )?;
    let by_rate = status.cpus.iter().any(|row| row.per_second.is_some_and(|rate| rate > 0.0));
    let weight =
        |row: &status::CpuRow| if by_rate { row.per_second.unwrap_or(0.0) } else { row.frames as f64 };
    let all: f64 = status.cpus.iter().map(weight).sum();
    for row in status.cpus.iter().take(ROWS) {
        let share = percent((all > 0.0).then(|| weight(row) / all));
        let mut drops = thousands(row.drops);
        if row.drops_per_second.is_some_and(|rate| rate >= 0.5) {
            drops += &format!(" ({})", rate(row.drops_per_second));
        }
        let drops = format!("{drops:>10}");
        let drops = if row.drops > 0 { out.styled(BAD, drops) } else { drops };
        writeln!(
            out,
            "  {:<5} {:>7} {:>15} {:>14} {share:>7}  {drops}",
            row.cpu,
            row.buckets,
            thousands(row.frames),
            rate(row.per_second)
        )?;
    }
    out.more(status.cpus.len(), ROWS)
}

fn reasons(out: &mut Output, status: &Status) -> io::Result<()> {
    out.heading("Frames by disposition")?;
    let none: Vec<&str> = status.reasons.iter().filter(|row| row.frames == 0).map(|row| row.reason).collect();
    for row in status.reasons.iter().filter(|row| row.frames > 0) {
        writeln!(out, "  {:<16} {:>13} {:>14}", row.reason, thousands(row.frames), rate(row.per_second))?;
    }
    if !none.is_empty() {
        out.hanging("  ", 2, &format!("none: {}", none.join(", ")), QUIET)?;
    }
    Ok(())
}

fn receiving(out: &mut Output, status: &Status) -> io::Result<()> {
    if status.receiving.is_empty() {
        return Ok(());
    }
    out.heading("CPUs that receive")?;
    for row in status.receiving.iter().take(ROWS) {
        let part = percent((row.frames > 0).then(|| row.steered as f64 / row.frames as f64));
        writeln!(
            out,
            "  {:<5} {:>23} {:>14}   {part} by flow",
            row.cpu,
            thousands(row.frames),
            rate(row.per_second)
        )?;
    }
    out.more(status.receiving.len(), ROWS)
}

/// Each bucket as a character: its CPU, or where CPUs have numbers of several digits its place among them.
fn buckets(out: &mut Output, status: &Status) -> io::Result<()> {
    const SIGNS: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let cpus: Vec<u32> = status.cpus.iter().map(|row| row.cpu).collect();
    let by_number = cpus.iter().all(|cpu| *cpu < 10);
    let sign = |cpu: u32| {
        let place = if by_number {
            cpu as usize
        } else {
            cpus.iter().position(|other| *other == cpu).unwrap_or(usize::MAX)
        };
        SIGNS.chars().nth(place).unwrap_or('?')
    };
    let waiting = status.buckets.iter().filter(|bucket| bucket.waiting).count();
    let on_the_way = if waiting > 0 { format!(", {waiting} on their way to another") } else { String::new() };
    out.heading(&format!("Buckets by CPU ({} moved{on_the_way})", thousands(status.moves)))?;
    for line in status.buckets.chunks(LINE) {
        let line: String = line.iter().map(|bucket| sign(bucket.cpu)).collect();
        writeln!(out, "  {line}")?;
    }
    if !by_number {
        let legend =
            cpus.iter().map(|cpu| format!("{} CPU {cpu}", sign(*cpu))).collect::<Vec<_>>().join(", ");
        out.paragraph("  ", &legend)?;
    }
    Ok(())
}
