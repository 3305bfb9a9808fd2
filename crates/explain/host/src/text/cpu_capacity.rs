//! What CPUs can do compared with each other: `cpu_capacity`, where Linux knows it, which is 1024 for the fastest
//! (Documentation/scheduler/sched-capacity.rst), and else the highest frequency of each.

use super::{Context, Line, Outcome, Section, Tool};
use crate::Snapshot;
use std::collections::VecDeque;

pub(super) static TOOL: Tool = Tool {
    name: "/sys/devices/system/cpu",
    command: |command| command.path.is_some_and(|path| file(path).is_some()),
    heading: |line| {
        named(line).is_some_and(|(path, value)| {
            file(path).is_some_and(|(cpu, _)| cpu.is_some()) && number(value).is_some()
        })
    },
    open: |context| Box::new(Files::new(context)),
};

/// `lscpu -e` with frequencies: `CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE    MAXMHZ   MINMHZ`.
pub(super) static TABLE: Tool = Tool {
    name: "lscpu -e",
    command: |_| false,
    heading: |line| columns(line).is_some(),
    open: |_| {
        let mut place = None;
        Box::new(move |line: &Line<'_>, snapshot: &mut Snapshot| {
            let text = line.trimmed();
            if let Some(found) = columns(text) {
                place = Some(found);
                return Outcome::Taken;
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            let cpu = words.first().and_then(|word| word.parse().ok());
            let mhz =
                place.and_then(|place| words.get::<usize>(place)?.replace(',', ".").parse::<f64>().ok());
            match cpu.zip(mhz.filter(|mhz| (1.0..1e6).contains(mhz))) {
                Some((cpu, mhz)) => {
                    let khz = (mhz * 1000.0) as u32;
                    Files::note(Measure::Frequency, cpu, khz, line.quote(), snapshot);
                    Outcome::Taken
                }
                None if text.is_empty() => Outcome::Skipped,
                None => Outcome::Over,
            }
        })
    },
};

/// The column of the highest frequency.
fn columns(line: &str) -> Option<usize> {
    let mut words = line.split_whitespace();
    let place = words.clone().position(|word| word == "MAXMHZ")?;
    (words.next() == Some("CPU") && line.contains("ONLINE")).then_some(place)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Capacity,
    Frequency,
}

/// The CPU, where it is no pattern of the shell, and what the file says of it.
fn file(path: &str) -> Option<(Option<u32>, Measure)> {
    let (cpu, file) = path.strip_prefix("/sys/devices/system/cpu/cpu")?.split_once('/')?;
    let measure = match file {
        "cpu_capacity" => Measure::Capacity,
        "cpufreq/cpuinfo_max_freq" => Measure::Frequency,
        _ => return None,
    };
    Some((cpu.parse().ok(), measure))
}

/// Path and value of `grep .`.
fn named(line: &str) -> Option<(&str, &str)> {
    line.split_once(':').map(|(path, value)| (path, value.trim()))
}

fn number(value: &str) -> Option<u32> {
    value.parse().ok()
}

struct Files {
    measure: Measure,
    /// The CPUs that the command names, in its order; empty where it has a pattern, whose files come in the order of
    /// their names.
    waiting: VecDeque<u32>,
    /// Values of a pattern's files.
    values: Vec<(u32, crate::Quote)>,
}

impl Files {
    fn new(context: &Context) -> Files {
        let command = context.command.as_deref().unwrap_or_default();
        let files: Vec<_> = command.split_whitespace().filter_map(file).collect();
        let measure = files.first().map_or(Measure::Capacity, |(_, measure)| *measure);
        Files { measure, waiting: files.iter().filter_map(|(cpu, _)| *cpu).collect(), values: Vec::new() }
    }

    fn note(measure: Measure, cpu: u32, value: u32, quote: crate::Quote, snapshot: &mut Snapshot) {
        let known = match measure {
            Measure::Capacity => &mut snapshot.cpus.capacity,
            Measure::Frequency => &mut snapshot.cpus.frequency,
        };
        if known.len() < Snapshot::CPUS {
            known.insert(cpu, crate::Fact::new(value, quote));
        }
    }
}

impl Section for Files {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if text.is_empty() {
            return Outcome::Skipped;
        }
        if let Some((path, value)) = named(text)
            && let Some((Some(cpu), measure)) = file(path)
        {
            let Some(value) = number(value) else { return Outcome::Over };
            Files::note(measure, cpu, value, line.quote(), snapshot);
            return Outcome::Taken;
        }
        let Some(value) = number(text) else { return Outcome::Over };
        match self.waiting.pop_front() {
            Some(cpu) => Files::note(self.measure, cpu, value, line.quote(), snapshot),
            None if self.values.len() < Snapshot::CPUS => self.values.push((value, line.quote())),
            None => snapshot.omitted += 1,
        }
        Outcome::Taken
    }

    /// Only the whole list says how many there are, and so which is whose: `cpu10` stands before `cpu2`.
    fn end(&mut self, snapshot: &mut Snapshot) {
        let values = std::mem::take(&mut self.values);
        let mut cpus: Vec<String> = (0..values.len()).map(|cpu| cpu.to_string()).collect();
        cpus.sort();
        for (cpu, (value, quote)) in cpus.iter().filter_map(|cpu| cpu.parse().ok()).zip(values) {
            Files::note(self.measure, cpu, value, quote, snapshot);
        }
    }
}
