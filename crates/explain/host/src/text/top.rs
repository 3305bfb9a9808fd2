//! `top`: load by CPU, and the processes that matter, of Linux (procps, BusyBox), FreeBSD and NetBSD.
//!
//! A line for all CPUs together (`%Cpu(s):`, `CPU:`) says nothing about the one that is full, unless there is one;
//! one CPU's is `%Cpu0  :
//! 0.0 us, …` (procps 3.3 and later), `Cpu0  :  0.0%us, …` (before), `CPU0:   0% usr …` (BusyBox),
//! `CPU 0:  0.0% user, …` (FreeBSD, `-P`), `CPU0 states:  0.0% user, …` (NetBSD, `-1`). procps prints numbers by the
//! locale, so that a comma may stand in them: `%Cpu0  : 19,1 us,  0,7 sy, …`.

use super::ps::{Columns, Table};
use super::{Line, Outcome, Section, Tool, note_load, sysctl_machine};
use crate::{Load, Snapshot, System};

pub(super) static TOOL: Tool = Tool {
    name: "top",
    command: |command| command.program == "top",
    heading: |line| {
        load_of(line).is_some() || Columns::titled(line).is_some() || Columns::of_thread(line).is_some()
    },
    open: |_| Box::new(Screen::default()),
};

#[derive(Default)]
struct Screen {
    table: Table,
    has_titles: bool,
}

impl Section for Screen {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        match load_of(text) {
            Some((Cpu::One(cpu), load)) => {
                if text.starts_with("CPU ") && text.contains("% interrupt") {
                    sysctl_machine::infer(snapshot, System::FreeBsd, &line.quote());
                }
                note_load(cpu, line.fact(load), snapshot);
                return Outcome::Taken;
            }
            Some((Cpu::All, load)) => {
                line.kept().load = Some(line.fact(load));
                return Outcome::Taken;
            }
            None => {}
        }
        if self.table.titles(text) {
            self.has_titles = true;
            return Outcome::Taken;
        }
        if !self.has_titles
            && let Some(columns) = Columns::of_thread(text)
        {
            self.table.begin(columns);
            self.has_titles = true;
        }
        if self.has_titles && self.table.row(line, snapshot) {
            return Outcome::Taken;
        }
        // Lines about memory and load averages stand between those of the CPUs and the table.
        if text.is_empty() || !self.has_titles { Outcome::Skipped } else { Outcome::Over }
    }
}

/// Whom a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpu {
    One(u32),
    All,
}

/// The CPU, or all together, and the load.
fn load_of(line: &str) -> Option<(Cpu, Load)> {
    let rest = line.strip_prefix('%').unwrap_or(line);
    let rest = rest.strip_prefix("Cpu").or_else(|| rest.strip_prefix("CPU"))?;
    let (head, values) = rest.split_once(':')?;
    let cpu = match head.trim().trim_end_matches("states").trim_end() {
        "" | "(s)" => Cpu::All,
        number => Cpu::One(number.parse().ok()?),
    };
    let mut load = Load::default();
    let mut kinds = 0;
    // Values and names in turn: `0.0 us`, `0.0%us`, `0% usr`, `0.0% user`. A comma between digits is the locale's
    // point.
    let bytes = values.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let pointed: String = values
        .char_indices()
        .map(
            |(at, c)| if c == ',' && is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)) { '.' } else { c },
        )
        .collect();
    let words: Vec<&str> = pointed.split([' ', ',', '%', '\t']).filter(|word| !word.is_empty()).collect();
    for pair in words.chunks_exact(2) {
        let [number, name] = pair else { continue };
        let share: f64 = number.parse().ok().filter(|share| (0.0..=100.0).contains(share))?;
        match *name {
            // `ut` is the French `us`.
            "us" | "usr" | "user" | "ut" | "ni" | "nic" | "nice" => load.user += share,
            "sy" | "sys" | "system" => load.system += share,
            "hi" | "irq" | "interrupt" => load.interrupt += share,
            // The last word of a line that was cut.
            "s" if load.softirq.is_none() => load.softirq = Some(share),
            "si" | "sirq" => load.softirq = Some(load.softirq.unwrap_or(0.0) + share),
            "id" | "idle" | "wa" | "io" => load.idle += share,
            "st" | "steal" | "s" => {}
            _ => return None,
        }
        kinds += 1;
    }
    // FreeBSD has five, older Linux five or more; fewer is a line that was cut.
    (kinds >= 5 && words.contains(&"id") | words.contains(&"idle")).then_some((cpu, load))
}
