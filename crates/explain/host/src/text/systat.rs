//! `systat` of FreeBSD: `-vmstat` with interrupts a second at the right edge, and `-ifstat` with traffic by interface
//! (usr.bin/systat/vmstat.c and ifstat.c). They count nothing since boot, so that a screen has rates alone.

use super::vmstat_i::Source;
use super::{Line, Outcome, Section, Tool, command, proc_interrupts, sysctl_machine};
use crate::{Fact, Interrupt, Snapshot, System};

pub(super) static TOOL: Tool = Tool {
    name: "systat",
    command: |command| command.program == "systat",
    heading: |line| is_vmstat(line) || is_ifstat(line),
    open: |_| Box::new(Screen { is_traffic: false }),
};

/// `    2 users    Load  1.92  1.41  1.10                  Nov 28 10:12:01`.
fn is_vmstat(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(6).collect();
    matches!(words[..], [users, "users" | "user", "Load", first, _, _]
        if users.parse::<u32>().is_ok() && first.parse::<f64>().is_ok())
}

/// `      Interface           Traffic               Peak                Total`.
fn is_ifstat(line: &str) -> bool {
    line.split_whitespace().eq(["Interface", "Traffic", "Peak", "Total"])
}

struct Screen {
    is_traffic: bool,
}

impl Section for Screen {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if is_vmstat(text) || is_ifstat(text) {
            self.is_traffic = is_ifstat(text);
            sysctl_machine::infer(snapshot, System::FreeBsd, &line.quote());
            return Outcome::Taken;
        }
        if self.is_traffic {
            return traffic(text, line, snapshot);
        }
        // The columns at the left belong to other things.
        if let Some((rate, name)) = interrupt(text) {
            note(rate, name, line, snapshot);
            return Outcome::Taken;
        }
        Outcome::Skipped
    }
}

/// `igb0  in   114.332 MB/s  …`, and below it a row of what it sends.
fn traffic(text: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [] => Outcome::Skipped,
        ["out", ..] => Outcome::Taken,
        [name, "in", number, ..] if command::is_interface(name) && number.parse::<f64>().is_ok() => {
            snapshot.interface_mut(name, &line.quote());
            Outcome::Taken
        }
        _ => Outcome::Over,
    }
}

/// Interrupts a second and the vector's name at the end of a line: `… 18123 igb0:que 0`, `… 13.5k igc0:rxq0`.
fn interrupt(text: &str) -> Option<(u64, &str)> {
    let at = text.find(':').filter(|_| !text.ends_with(':'))?;
    let start = text.get(..at)?.rfind(' ')?;
    let (before, name) = (text.get(..start)?, text.get(start + 1..)?);
    let rate = before.rsplit(' ').next()?;
    let (number, times) = match rate.strip_suffix('k') {
        Some(number) => (number, 1000.0),
        None => (rate, 1.0),
    };
    let rate = number.parse::<f64>().ok().filter(|rate| (0.0..1e9).contains(rate))? * times;
    Some((rate as u64, name))
}

fn note(rate: u64, name: &str, line: &Line<'_>, snapshot: &mut Snapshot) {
    let source = Source::of(name);
    if source.interface.is_none() || snapshot.interrupts.len() >= Snapshot::INTERRUPTS {
        return;
    }
    let rate = Some(Fact::new(rate, line.quote()));
    if let Some(known) = snapshot.interrupts.iter_mut().find(|known| known.action == name) {
        known.rate = rate;
        return;
    }
    snapshot.interrupts.push(Interrupt {
        action: name.to_owned(),
        interface: source.interface.map(str::to_owned),
        queue: source.queue,
        receives: source.receives,
        rate,
        ..proc_interrupts::bare("", line.quote())
    });
}
