//! CPUs: `lscpu` (util-linux, English), `nproc`, and the `processor` lines of `/proc/cpuinfo`.
//!
//! Online are the CPUs of lscpu's list; its "CPU(s)" counts those that are offline, too.

use super::{Line, Outcome, Section, Tool, cpu_list};
use crate::{Architecture, Fact, Quote, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "lscpu",
    command: |command| command.program == "lscpu",
    heading: |line| {
        line.strip_prefix("Architecture:").is_some_and(|rest| {
            let word = rest.trim();
            !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
        })
    },
    open: |_| Box::new(listing),
};

pub(super) static NPROC: Tool = Tool {
    name: "nproc",
    command: |command| command.program == "nproc" && command.option.is_none(),
    heading: |_| false,
    open: |_| Box::new(number),
};

pub(super) static CPUINFO: Tool = Tool {
    name: "/proc/cpuinfo",
    command: |command| command.reads("/proc/cpuinfo"),
    heading: |line| {
        line.starts_with("processor\t: ") && pair(line).is_some_and(|(_, number)| number.parse() == Ok(0_u32))
    },
    open: |_| Box::new(Processors { online: 0, present: None, quote: None }),
};

fn listing(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let text = line.trimmed();
    let Some((name, value)) = pair(text) else {
        return if text.is_empty() { Outcome::Skipped } else { Outcome::Over };
    };
    match name {
        "On-line CPU(s) list" => {
            if let Some(cpus) = cpu_list::list(value) {
                online(snapshot, cpus.len(), line.quote());
            }
        }
        "Model name" if value != "-" => {
            snapshot.cpus.model.get_or_insert_with(|| Fact::new(value.to_owned(), line.quote()));
        }
        "Architecture" => snapshot.note_architecture(Architecture::named(value), &line.quote()),
        "CPU(s)" => {}
        _ => {
            let node = name
                .strip_prefix("NUMA node")
                .and_then(|rest| rest.strip_suffix(" CPU(s)"))
                .and_then(|node| node.parse::<u32>().ok())
                .filter(|&node| (node as usize) < Snapshot::CPUS);
            let Some((node, cpus)) = node.zip(cpu_list::list(value)) else { return Outcome::Skipped };
            snapshot.cpus.nodes.insert(node, cpus);
        }
    }
    Outcome::Taken
}

fn number(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    match line.trimmed().parse::<usize>() {
        Ok(number) => {
            online(snapshot, number, line.quote());
            Outcome::Taken
        }
        Err(_) => Outcome::Over,
    }
}

/// `/proc/cpuinfo` has an entry for each CPU online; only its end shows that it was the last.
struct Processors {
    online: usize,
    /// The CPU whose lines follow.
    present: Option<u32>,
    quote: Option<Quote>,
}

impl Section for Processors {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if text.is_empty() {
            return Outcome::Skipped;
        }
        let Some((name, value)) = pair(text) else { return Outcome::Over };
        match name {
            "processor" if value.parse::<u32>().is_ok() => {
                self.online += 1;
                self.present = value.parse().ok();
                self.quote.get_or_insert_with(|| line.quote());
            }
            // Arm: drivers read it from MIDR_EL1 (arch/arm64/kernel/cpuinfo.c).
            "CPU part" => {
                let part = value.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
                if let Some((cpu, part)) = self.present.zip(part)
                    && snapshot.cpus.parts.len() < Snapshot::CPUS
                {
                    snapshot.cpus.parts.insert(cpu, line.fact(part));
                }
            }
            "model name" | "cpu model" => {
                snapshot.cpus.model.get_or_insert_with(|| Fact::new(value.to_owned(), line.quote()));
            }
            _ => return Outcome::Skipped,
        }
        Outcome::Taken
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        if let Some(quote) = self.quote.take() {
            online(snapshot, self.online, quote);
        }
    }

    fn cut(&mut self, _snapshot: &mut Snapshot) {}
}

/// `name: value`.
fn pair(text: &str) -> Option<(&str, &str)> {
    text.split_once(':').map(|(name, value)| (name.trim(), value.trim()))
}

/// What was read first stays: `/proc/interrupts` says the same.
fn online(snapshot: &mut Snapshot, cpus: usize, quote: Quote) {
    let number = u32::try_from(cpus).ok().filter(|_| (1..=Snapshot::CPUS).contains(&cpus));
    if let Some(number) = number.filter(|_| snapshot.cpus.online.is_none()) {
        snapshot.cpus.online = Some(Fact::new(number, quote));
    }
}
