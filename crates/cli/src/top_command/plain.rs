//! The same rows as text, for a pipe or a file.

use super::columns::{CLASSES, CPUS, QUEUES, REASONS, STACKS, STAGES, STEERED, VECTORS};
use super::model::Model;
use super::steering::OFF;
use super::table::{self, Cell, Column, share};
use crate::output::Output;
use anstyle::{AnsiColor, Style};
use format::compact;
use std::io::{self, Write};

const CRITICAL: Style = AnsiColor::Red.on_default().bold();
/// Columns of a table in a pipe: wide enough for all of them.
const WIDTH: usize = 110;

pub fn print(out: &mut Output, model: &Model) -> io::Result<()> {
    let totals = &model.totals;
    let on = if model.device == model.interface { String::new() } else { format!(" on {}", model.device) };
    let driver = model.driver.as_deref().map(|driver| format!(" ({driver})")).unwrap_or_default();
    writeln!(
        out,
        "{}{on}{driver}: {} frames/s, {} bytes/s, {} drops/s, {} interrupts/s",
        model.interface,
        compact(totals.frames_per_second),
        compact(totals.bytes_per_second),
        compact(totals.drops_per_second),
        compact(totals.interrupts_per_second),
    )?;
    for remark in &model.remarks {
        writeln!(out, "{}", out.styled(CRITICAL, format!("! {}", remark.text)))?;
    }
    part(out, "Queues", &model.queues, QUEUES)?;
    part(out, "Vectors", &model.vectors, VECTORS)?;
    part(out, "CPUs", &model.cpus, CPUS)?;
    part(out, "Stages", &model.stages, STAGES)?;
    traffic(out, model)?;
    steering(out, model)?;
    fastpath(out, model)?;
    if !model.notes.is_empty() {
        out.heading("Notes")?;
        for note in &model.notes {
            writeln!(out, "  {}", table::fitted(note, note.chars().count(), true))?;
        }
    }
    Ok(())
}

fn traffic(out: &mut Output, model: &Model) -> io::Result<()> {
    let Some(frames) = model.traffic.sampled_frames else { return Ok(()) };
    let seconds = model.traffic.sampled_seconds.unwrap_or(0.0);
    let merged = share(model.traffic.merged_share);
    let title = format!("Traffic, a sample of {frames} frames in {seconds:.1} s after GRO ({merged} merged)");
    part(out, &title, &model.traffic.classes, CLASSES)?;
    part(out, "Stacks", &model.traffic.stacks, STACKS)
}

fn steering(out: &mut Output, model: &Model) -> io::Result<()> {
    let Some(mode) = model.steering.mode else { return Ok(()) };
    out.heading(&format!("Steering: {}", mode))?;
    if mode == OFF {
        return Ok(());
    }
    rows(out, &model.steering.cpus, STEERED)?;
    rows(out, &model.steering.reasons, REASONS)
}

fn fastpath(out: &mut Output, model: &Model) -> io::Result<()> {
    let Some(rows) = &model.fastpath else { return Ok(()) };
    out.heading("Fast path")?;
    let rate = compact(rows.fast_per_second);
    writeln!(out, "  {rate} packets/s, {} of all; {} connections", share(rows.share), rows.flows)?;
    let passed = rows.reasons.iter().map(|row| format!("{} {}/s", row.reason, compact(row.per_second)));
    let passed: Vec<String> = passed.collect();
    if passed.is_empty() {
        Ok(())
    } else {
        out.paragraph("  ", &format!("to the kernel: {}", passed.join(", ")))
    }
}

fn part<R>(out: &mut Output, title: &str, of: &[R], columns: &[Column<R>]) -> io::Result<()> {
    if of.is_empty() {
        return Ok(());
    }
    out.heading(title)?;
    rows(out, of, columns)
}

fn rows<R>(out: &mut Output, of: &[R], columns: &[Column<R>]) -> io::Result<()> {
    let fitting: Vec<_> =
        table::fitting(columns, WIDTH).into_iter().filter(|(_, column, _)| !column.is_bar).collect();
    line(out, &table::heading(&fitting, None))?;
    of.iter().try_for_each(|row| line(out, &table::row(&fitting, row)))
}

fn line(out: &mut Output, cells: &[Cell]) -> io::Result<()> {
    let texts: Vec<&str> = cells.iter().map(|cell| cell.text.as_str()).collect();
    writeln!(out, "  {}", texts.join(" ").trim_end())
}
