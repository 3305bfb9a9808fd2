//! The result of a scenario as text: what differs most, the table, every comparison, and how it was measured.

use super::figures::Scale;
use crate::bench_command::prose;
use crate::output::Output;
use crate::steer_command::item;
use bench::scenario::Environment;
use bench::scenario::report::{Cell, Metric, Report};
use format::{Table, plural, printable};
use std::io::{self, Write};

/// Sentences before everything else.
const LEAD: usize = 3;

pub fn print(out: &mut Output, report: &Report) -> io::Result<()> {
    out.heading(&format!("{}: {}", report.scenario, report.title))?;
    let lead = prose::clearest(report, LEAD);
    lead.iter().try_for_each(|text| out.sentence(text))?;
    report.warnings.iter().try_for_each(|warning| item(out, "warning", &printable(warning)))?;
    if let Some(failures) = prose::failures(report) {
        item(out, "failed", &printable(&failures))?;
    }
    tables(out, report)?;
    let rest: Vec<&str> = prose::sentences(report).filter(|text| !lead.contains(text)).collect();
    if !rest.is_empty() {
        out.heading("Cells compared, by ratios within a round; less than 1.3 times is a tie")?;
        rest.iter().try_for_each(|text| out.sentence(text))?;
    }
    facts(out, report)?;
    about(out, report)
}

fn about(out: &mut Output, report: &Report) -> io::Result<()> {
    out.heading("How")?;
    item(out, "machine", &printable(&machine(&report.machine)))?;
    item(out, "state", &state(&report.machine))?;
    let parameters: Vec<String> =
        report.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let rounds = format!(
        "{}{} from {}{}; {}",
        plural(report.rounds.into(), "round"),
        if report.complete { "" } else { ", not all whole," },
        report.began,
        if report.rounds == 1 { "" } else { ", each beginning with another cell" },
        parameters.join(", ")
    );
    item(out, "measured", &rounds)?;
    match prose::left_out(report) {
        Some(left_out) => item(out, "left out", &printable(&left_out)),
        None => Ok(()),
    }
}

pub fn machine(machine: &Environment) -> String {
    let model = machine.model.as_deref().unwrap_or("unknown CPU");
    let cpus = machine.cpus;
    let cpus = cpus.map_or_else(|| "unknown number of CPUs".to_owned(), |n| plural(n.into(), "CPU"));
    let virtual_machine = match machine.virtualised {
        Some(true) => ", virtual machine",
        Some(false) => "",
        None => ", virtual machine or not is unknown",
    };
    let (kernel, rxlane) = (&machine.kernel, &machine.rxlane);
    format!("{model}, {cpus}{virtual_machine}; Linux {kernel}; rxlane {rxlane}")
}

pub fn state(machine: &Environment) -> String {
    let unknown = || "unknown".to_owned();
    let load = machine.load_average.map_or_else(unknown, |load| format!("{load:.2}"));
    let busy = machine.busy_before.map_or_else(unknown, |busy| format!("{:.0} %", 100.0 * busy));
    format!("load average {load}, CPUs {busy} busy in the half second before")
}

/// A row for each cell, as many metrics next to each other as there is room for.
fn tables(out: &mut Output, report: &Report) -> io::Result<()> {
    out.heading(if report.rounds == 1 { "Figures of one round" } else { "Median [least–greatest]" })?;
    let factors = varied(report);
    let of_cell = |cell: &Cell| -> Vec<String> {
        let level =
            |factor: &&str| cell.levels.get(*factor).map(|level| printable(level)).unwrap_or_default();
        factors.iter().map(level).collect()
    };
    let left: Vec<Vec<String>> = report.cells.iter().map(of_cell).collect();
    // Two blanks on the left, and two between columns.
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or_default() + 2;
    let taken: usize = (0..factors.len())
        .map(|at| width(&mut left.iter().map(|row| row[at].chars().count()).chain([factors[at].len()])))
        .sum();
    let metrics = report.measured();
    let figures = metrics.iter().map(|metric| column(report, metric));
    let columns: Vec<(String, Vec<String>)> = failed(report).into_iter().chain(figures).collect();
    let mut rest = columns.as_slice();
    let mut is_first = true;
    while !rest.is_empty() {
        let mut room = out.width().saturating_sub(taken + 1);
        let mut count = 0;
        for (head, cells) in rest {
            let cells = cells.iter().map(|cell| cell.chars().count());
            let needed = width(&mut cells.chain([head.chars().count()]));
            if needed > room && count > 0 {
                break;
            }
            room = room.saturating_sub(needed);
            count += 1;
        }
        let (fitting, others) = rest.split_at(count);
        let heads: Vec<&str> =
            factors.iter().copied().chain(fitting.iter().map(|(head, _)| head.as_str())).collect();
        let row = |(at, left): (usize, &Vec<String>)| {
            let figures = fitting.iter().map(|(_, cells)| cells[at].clone());
            left.iter().cloned().chain(figures).collect::<Vec<_>>()
        };
        let rows: Vec<Vec<String>> = left.iter().enumerate().map(row).collect();
        if !is_first {
            writeln!(out)?;
        }
        out.table(&Table::new(factors.len(), heads).rows(rows))?;
        (rest, is_first) = (others, false);
    }
    writeln!(out)?;
    let longest = metrics.iter().map(|metric| metric.name.chars().count()).max().unwrap_or_default();
    metrics.iter().try_for_each(|metric| out.item(longest + 2, &metric.name, &metric.title))
}

/// Factors in which cells differ: what is the same in all of them would take the room of figures.
fn varied(report: &Report) -> Vec<&str> {
    let first = report.cells.first().map(|cell| &cell.levels);
    let differs = |name: &str| {
        report.cells.iter().any(|cell| Some(cell.levels.get(name)) != first.map(|first| first.get(name)))
    };
    let names: Vec<&str> = report.factors.iter().map(|factor| factor.name.as_str()).collect();
    let varied: Vec<&str> = names.iter().copied().filter(|name| differs(name)).collect();
    if varied.is_empty() { names } else { varied }
}

fn column(report: &Report, metric: &Metric) -> (String, Vec<String>) {
    let scale = Scale::of_metric(report, metric);
    let cell = |cell: &Cell| {
        prose::spread(&scale, cell.figures.get(&metric.name).and_then(|figures| figures.spread))
    };
    let of = if metric.whole_machine { " (machine)" } else { "" };
    (format!("{}{of}, {}", metric.name, scale.unit), report.cells.iter().map(cell).collect())
}

/// In how many rounds cells could not be measured; `None`: in none.
fn failed(report: &Report) -> Option<(String, Vec<String>)> {
    let cell = |cell: &Cell| match cell.failures.len() {
        0 => String::new(),
        failures => format!("{failures} of {}", report.rounds),
    };
    (report.failures() > 0).then(|| ("failed".to_owned(), report.cells.iter().map(cell).collect()))
}

fn facts(out: &mut Output, report: &Report) -> io::Result<()> {
    if report.facts.is_empty() {
        return Ok(());
    }
    out.heading("The same in every round")?;
    report.facts.iter().try_for_each(|fact| out.sentence(&format!("{}: {}", fact.question, fact.answer)))
}
