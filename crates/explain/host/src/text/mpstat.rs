//! `mpstat -P ALL` (sysstat): how each CPU spent its time.
//!
//! A heading names the columns behind a time (`11:30:49 AM  CPU    %usr   %nice    %sys …`), and the rows have a
//! time of the same form or `Average:`, so columns count from the end. Several reports follow one another, the
//! average last; the last one is kept. Old versions write `%user` and an `intr/s` behind `%idle`. Numbers have the
//! locale's point.

use super::{Line, Outcome, Section, Tool, note_load};
use crate::{Architecture, Load, Snapshot, System};

pub(super) static TOOL: Tool = Tool {
    name: "mpstat",
    command: |_| false,
    heading: |line| columns(line).is_some(),
    open: |_| Box::new(Report::default()),
};

/// The first line of sysstat's tools: `Linux 6.1.57 (NanoPi-R6S) 01/08/24 _aarch64_ (8 CPU)`.
pub(super) static TITLE: Tool = Tool {
    name: "mpstat",
    command: |command| command.program == "mpstat",
    heading: |line| title(line).is_some(),
    open: |_| {
        Box::new(|line: &Line<'_>, snapshot: &mut Snapshot| {
            let Some((release, machine)) = title(line.trimmed()) else { return Outcome::Over };
            snapshot.system.get_or_insert_with(|| line.fact(System::Linux));
            snapshot.kernel.get_or_insert_with(|| line.fact(release.to_owned()));
            snapshot.note_architecture(Architecture::named(machine), &line.quote());
            Outcome::Taken
        })
    },
};

/// Kernel release and machine.
fn title(line: &str) -> Option<(&str, &str)> {
    let release = line.strip_prefix("Linux ")?.split_whitespace().next()?;
    let mut words = line.split_whitespace();
    let machine = words.find_map(|word| word.strip_prefix('_')?.strip_suffix('_'))?;
    let is_release = release.starts_with(|c: char| c.is_ascii_digit()) && !release.contains(',');
    (is_release && line.ends_with(" CPU)")).then_some((release, machine))
}

#[derive(Default)]
struct Report {
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    User,
    System,
    Interrupt,
    Softirq,
    Idle,
    Other,
}

impl Section for Report {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if let Some(columns) = columns(text) {
            self.columns = columns;
            return Outcome::Taken;
        }
        match row(text, &self.columns) {
            Some((Some(cpu), load)) => {
                note_load(cpu, line.fact(load), snapshot);
                Outcome::Taken
            }
            // All CPUs together say nothing about the one that is full, unless all are.
            Some((None, load)) => {
                line.kept().load = Some(line.fact(load));
                Outcome::Taken
            }
            None if text.is_empty() => Outcome::Skipped,
            None => Outcome::Over,
        }
    }
}

/// The columns behind `CPU`.
fn columns(line: &str) -> Option<Vec<Column>> {
    if !line.ends_with("%idle") && !line.ends_with("intr/s") {
        return None;
    }
    let mut words = line.split_whitespace();
    words.by_ref().find(|word| *word == "CPU")?;
    let columns: Vec<Column> = words
        .map(|word| match word {
            "%usr" | "%user" | "%nice" | "%guest" | "%gnice" => Column::User,
            "%sys" | "%system" => Column::System,
            "%irq" => Column::Interrupt,
            "%soft" => Column::Softirq,
            "%idle" | "%iowait" => Column::Idle,
            _ => Column::Other,
        })
        .collect();
    let has = |column| columns.contains(&column);
    (has(Column::User) && has(Column::System) && has(Column::Softirq)).then_some(columns)
}

/// The CPU of a row, `None` for all together, and its load.
fn row(line: &str, columns: &[Column]) -> Option<(Option<u32>, Load)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let place = words.len().checked_sub(columns.len() + 1)?;
    // A time, with AM or PM, or the word for an average.
    if columns.is_empty() || !(1..=2).contains(&place) {
        return None;
    }
    let cpu = match *words.get(place)? {
        "all" => None,
        number => Some(number.parse().ok()?),
    };
    let mut load = Load::default();
    for (word, column) in words.get(place + 1..)?.iter().zip(columns) {
        let share: f64 = word.replace(',', ".").parse().ok().filter(|share: &f64| *share >= 0.0)?;
        if *column != Column::Other && share > 100.0 {
            return None;
        }
        match column {
            Column::User => load.user += share,
            Column::System => load.system += share,
            Column::Interrupt => load.interrupt += share,
            Column::Softirq => load.softirq = Some(load.softirq.unwrap_or(0.0) + share),
            Column::Idle => load.idle += share,
            Column::Other => {}
        }
    }
    Some((cpu, load))
}
