//! The tables of all rounds: median [least–most], in Markdown.

use crate::ends::{Client, Way};
use crate::turn::{Transfer, Turn};
use std::collections::BTreeSet;

/// A column: its name, digits behind the point, and the figure.
type Column = (&'static str, usize, fn(&Turn) -> f64);

const SPEED: [Column; 5] = [
    ("up, Mbit/s", 0, |turn| turn.up.rate / 1e6),
    ("down, Mbit/s", 0, |turn| turn.down.rate / 1e6),
    ("ping client to server, ms", 3, |turn| turn.pings[0]),
    ("server to client, ms", 3, |turn| turn.pings[1]),
    ("memory of the client, Pss KiB", 0, |turn| turn.memory.pss),
];

const WORK: [Column; 8] = [
    ("up: instructions a byte, client's end", 2, |turn| turn.up.instructions[0]),
    ("server's end", 2, |turn| turn.up.instructions[1]),
    ("a frame, client's end", 0, |turn| each_frame(&turn.up)),
    ("CPU s/GB, client's end", 1, |turn| each_gigabyte(&turn.up)),
    ("down: instructions a byte, client's end", 2, |turn| turn.down.instructions[0]),
    ("server's end", 2, |turn| turn.down.instructions[1]),
    ("a frame, client's end", 0, |turn| each_frame(&turn.down)),
    ("CPU s/GB, client's end", 1, |turn| each_gigabyte(&turn.down)),
];

/// Instructions of the client's end for a frame that carries payload.
fn each_frame(transfer: &Transfer) -> f64 {
    transfer.instructions[0] * transfer.bytes / transfer.frames[0]
}

fn each_gigabyte(transfer: &Transfer) -> f64 {
    transfer.busy[0] / (transfer.bytes / 1e9)
}

pub fn print(ways: &[(Way, Vec<Turn>)]) {
    columns(ways, &SPEED);
    split(ways);
    columns(ways, &WORK);
    ratios_to_the_kernel(ways);
}

fn columns(ways: &[(Way, Vec<Turn>)], columns: &[Column]) {
    let names: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    println!("\n| | {} |\n|{}", names.join(" | "), " --- |".repeat(names.len() + 1));
    for (way, turns) in ways.iter().filter(|(_, turns)| !turns.is_empty()) {
        let cells =
            columns.iter().map(|(_, digits, figure)| median_and_range(turns.iter().map(figure), *digits));
        println!("| {} | {} |", way.name(), cells.collect::<Vec<_>>().join(" | "));
    }
}

/// Medians of where the CPU time of each end went, and what its programs had of it, as percent of a CPU.
fn split(ways: &[(Way, Vec<Turn>)]) {
    println!(
        "\n| | up: client's CPU busy, % (user, system, soft interrupts; programs) | server's | down: client's | server's |"
    );
    println!("|{}", " --- |".repeat(5));
    for (way, turns) in ways.iter().filter(|(_, turns)| !turns.is_empty()) {
        let mut cells = Vec::new();
        for transfer in [(|turn| &turn.up) as fn(&Turn) -> &Transfer, |turn| &turn.down] {
            for end in [0, 1] {
                let of = |figure: fn(&Transfer, usize) -> f64| {
                    spread(turns.iter().map(|turn| figure(transfer(turn), end)))[0]
                };
                let names: BTreeSet<&String> =
                    turns.iter().flat_map(|turn| transfer(turn).programs[end].keys()).collect();
                let programs = names.into_iter().map(|name| {
                    let share = spread(turns.iter().map(|turn| {
                        let transfer = transfer(turn);
                        let all = transfer.busy[end] / (1.0 - transfer.split[end].idle / 100.0);
                        100.0 * transfer.programs[end].get(name).copied().unwrap_or_default() / all
                    }))[0];
                    format!("{name} {share:.0}")
                });
                let programs: Vec<String> = programs.collect();
                cells.push(format!(
                    "{:.0} ({:.0}, {:.0}, {:.0}; {})",
                    100.0 - of(|transfer, end| transfer.split[end].idle),
                    of(|transfer, end| transfer.split[end].user),
                    of(|transfer, end| transfer.split[end].system),
                    of(|transfer, end| transfer.split[end].softirq),
                    if programs.is_empty() { "–".to_owned() } else { programs.join(", ") },
                ));
            }
        }
        println!("| {} | {} |", way.name(), cells.join(" | "));
    }
}

/// Ratios to the kernel's PPPoE, round by round.
fn ratios_to_the_kernel(ways: &[(Way, Vec<Turn>)]) {
    let is_kernel = |way: &Way| way.client == Client::Kernel && way.name() == "pppd, kernel";
    let Some((_, kernel)) = ways.iter().find(|(way, _)| is_kernel(way)) else { return };
    println!("\n| times pppd, kernel | up | down | instructions a byte at the client's end, up | down |");
    println!("|{}", " --- |".repeat(5));
    for (way, turns) in ways.iter().filter(|(_, turns)| turns.len() == kernel.len() && !turns.is_empty()) {
        let ratio = |figure: fn(&Turn) -> f64| {
            median_and_range(turns.iter().zip(kernel).map(|(this, kernel)| figure(this) / figure(kernel)), 2)
        };
        println!(
            "| {} | {} | {} | {} | {} |",
            way.name(),
            ratio(|turn| turn.up.rate),
            ratio(|turn| turn.down.rate),
            ratio(|turn| turn.up.instructions[0]),
            ratio(|turn| turn.down.instructions[0]),
        );
    }
}

fn median_and_range(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let [median, least, most] = spread(values);
    format!("{median:.digits$} [{least:.digits$}–{most:.digits$}]")
}

/// Median, least and most.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    [at(values.len() / 2), at(0), at(values.len().saturating_sub(1))]
}
