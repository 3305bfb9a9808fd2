//! `ps`, and the table of processes that `top` shows: the processes that carry PPPoE in user space, threads of
//! the kernel that receive, and whatever else takes half a CPU.
//!
//! Columns are found by their titles: `%CPU` (Linux, BusyBox, ps), `WCPU` (top of FreeBSD and NetBSD), and the
//! command last. A thread of FreeBSD's kernel is `intr{irq256: igb0:que 0}` with `-H`; `[intr/irq256: igb0:que 0]`
//! of its ps is the same and gets the same name.
//!
//! BusyBox counts per cent of all CPUs together, everything else per cent of one.

use super::kept::Kept;
use super::line::is_word_of;
use super::{Line, Outcome, Tool};
use crate::{Process, Snapshot};
use std::borrow::Cow;
use std::collections::HashSet;

pub(super) static TOOL: Tool = Tool {
    name: "ps",
    command: |command| command.program == "ps",
    heading: |_| false,
    open: |_| {
        let mut table = Table::default();
        Box::new(move |line: &Line<'_>, snapshot: &mut Snapshot| match line.trimmed() {
            "" => Outcome::Skipped,
            text if table.titles(text) || table.row(line, snapshot) => Outcome::Taken,
            _ => Outcome::Over,
        })
    },
};

/// Commands that carry PPPoE in user space, or decide about its sessions.
const PPPOE: &str = "pppd pppoe ppp mpd mpd4 mpd5 pppoed accel-pppd pppoe-server pppoe-relay pppoe-sniff \
                     pppoe-connect rp-pppoe npppd";

/// Per cent of a CPU from which any process is of interest.
const BUSY: f64 = 50.0;

/// The same where the share is of all CPUs, before their number is known.
const BUSY_OF_ALL: f64 = 1.0;

/// Where a table has what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pid: usize,
    cpu: usize,
    /// The number of the value with a per cent sign, where values have one; some columns before it may be of
    /// several words.
    percent: usize,
    command: usize,
    /// Whether the share is of all CPUs together (BusyBox, procps/top.c).
    is_of_all: bool,
}

impl Columns {
    /// The columns that a line of titles names.
    pub(crate) fn titled(line: &str) -> Option<Columns> {
        if !line.contains("PID") {
            return None;
        }
        let titles: Vec<&str> = line.split_whitespace().collect();
        let place = |names: &[&str]| titles.iter().position(|title| names.contains(title));
        let pid = place(&["PID"])?;
        let cpu = place(&["%CPU", "WCPU", "CPU%"])?;
        // `VSZ %VSZ`, before 1.18 `VSZ %MEM`, always behind PPID.
        let is_of_all = place(&["PPID"]).is_some()
            && titles
                .array_windows()
                .any(|[size, share]| *size == "VSZ" && matches!(*share, "%VSZ" | "%MEM"));
        let command = titles.len().checked_sub(1)?;
        let is_last = matches!(titles.last(), Some(&("COMMAND" | "CMD" | "COMM" | "UCOMM")));
        // NetBSD's top ends with NAME COMMAND, of which the first is the thread's.
        let command =
            if titles.get(command.checked_sub(1)?) == Some(&"NAME") { command - 1 } else { command };
        let marked = titles.get(..cpu)?.iter().filter(|title| title.starts_with('%')).count();
        (is_last && pid < command && cpu < command).then_some(Columns {
            pid,
            cpu,
            percent: marked,
            command,
            is_of_all,
        })
    }

    /// The columns of a row of BusyBox's top that shows a thread that receives, for what a `grep` leaves:
    /// `9 2 root RW 0 0% 0 25% [ksoftirqd/0]`.
    pub fn of_thread(line: &str) -> Option<Columns> {
        if !line.ends_with(']') || !["% [ksoftirqd/", "% [napi/"].iter().any(|thread| line.contains(thread)) {
            return None;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_number = |word: Option<&&str>| word.is_some_and(|word| word.parse::<u32>().is_ok());
        let marked = words.iter().filter(|word| word.ends_with('%')).count();
        let command = words.len().checked_sub(1)?;
        (is_number(words.first()) && is_number(words.get(1)) && marked == 2).then_some(Columns {
            pid: 0,
            cpu: command.checked_sub(1)?,
            percent: 1,
            command,
            is_of_all: true,
        })
    }

    /// Process id, per cent of a CPU, and command line.
    fn row<'a>(&self, line: &'a str) -> Option<(u32, f64, &'a str)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let pid = words.get(self.pid)?.parse().ok()?;
        let marked = |word: &&str| word.strip_suffix('%').is_some_and(|number| number.parse::<f64>().is_ok());
        let places: Vec<usize> =
            words.iter().enumerate().filter(|(_, word)| marked(word)).map(|(at, _)| at).collect();
        // Columns between the CPU share and the command, `CPU` of NetBSD among them, are one word each.
        let (at, command) = match places.get(self.percent) {
            Some(&at) => (at, at + (self.command - self.cpu)),
            None => (self.cpu, self.command),
        };
        let share: f64 = words.get(at)?.trim_end_matches('%').parse().ok()?;
        let command = after_words(line, command)?;
        (share.is_finite() && (0.0..=1_000_000.0).contains(&share)).then_some((pid, share, command))
    }
}

/// The line from its `count`th word on, counted from 0.
fn after_words(line: &str, count: usize) -> Option<&str> {
    let mut rest = line.trim_start();
    for _ in 0..count {
        rest = rest.split_once(char::is_whitespace)?.1.trim_start();
    }
    Some(rest).filter(|rest| !rest.is_empty())
}

/// The command's name: without folder, arguments and the brackets of kernel threads; FreeBSD's threads whole.
fn name(command: &str) -> Cow<'_, str> {
    // FreeBSD's ps -H, bin/ps/print.c.
    let whole = command.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(command);
    for process in ["intr", "kernel"] {
        if let Some(thread) = whole.strip_prefix(process).and_then(|rest| rest.strip_prefix('/')) {
            return format!("{process}{{{thread}}}").into();
        }
    }
    // FreeBSD's top puts kernel threads in brackets: `[kernel{if_io_tqg_0}]`.
    first_name(if whole.contains('{') { whole } else { command }).into()
}

fn first_name(command: &str) -> &str {
    let is_thread = |prefix: &str| {
        command.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if let Some(brace) = command.find('{').filter(|&brace| brace > 0 && !has_blank(command.get(..brace))) {
        let end =
            command.get(brace..).and_then(|rest| rest.find('}')).map_or(command.len(), |end| brace + end + 1);
        return command.get(..end).unwrap_or(command);
    }
    if is_thread("irq") || is_thread("swi") {
        return command;
    }
    let word = command.split_whitespace().next().unwrap_or(command);
    let word = word.trim_start_matches(['[', '{', '(', '-']).trim_end_matches([']', '}', ')', ':']);
    // `ksoftirqd/0` has a slash that is none of a folder.
    if word.starts_with('/') || word.starts_with("./") {
        word.rsplit('/').next().unwrap_or(word)
    } else {
        word
    }
}

fn has_blank(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.contains(char::is_whitespace))
}

/// Whether a process of that name matters whatever it takes.
fn is_relevant(name: &str) -> bool {
    is_word_of(PPPOE, name) || is_thread(name)
}

/// Whether it is a thread of the kernel that receives: `ksoftirqd/0`, `napi/eth0-6` (`napi_kthread_create()`, net/core/dev.c).
fn is_thread(name: &str) -> bool {
    name.starts_with("ksoftirqd/") || name.starts_with("napi/")
}

/// Whether it is what a CPU does when it has nothing to do.
fn is_idle(name: &str) -> bool {
    matches!(name, "idle" | "swapper") || name.starts_with("idle{") || name.starts_with("idle:")
}

/// Makes shares of all CPUs shares of one, now that their number is known or never will be.
pub(super) fn shares(snapshot: &mut Snapshot, kept: &Kept) {
    let count = snapshot.cpu_count();
    let mut place = 0;
    snapshot.processes.retain_mut(|process| {
        let is_of_all = kept.of_all_cpus.contains(&place);
        place += 1;
        if !is_of_all {
            return true;
        }
        process.of_all = process.cpu;
        process.cpu = process.cpu.and_then(|share| of_one(share, count));
        if is_thread(&process.name) {
            // A rounded share; a thread takes one CPU at most.
            process.cpu = process.cpu.map(|share| share.min(100.0));
        }
        is_relevant(&process.name) || process.cpu.is_some_and(|share| share >= BUSY)
    });
}

/// The share of one CPU. More than half of all is at least that much of one, whatever their number.
fn of_one(share: f64, count: Option<u32>) -> Option<f64> {
    match count {
        Some(count) => Some(share * f64::from(count)),
        None => Some(share).filter(|share| *share == 0.0 || *share > 50.0),
    }
}

/// Rows of one table.
#[derive(Default)]
pub(super) struct Table {
    columns: Option<Columns>,
    /// Places in the snapshot's processes that this table has filled.
    filled: HashSet<usize>,
}

impl Table {
    /// Begins a table under these titles; whether the line is some.
    pub fn titles(&mut self, line: &str) -> bool {
        let Some(columns) = Columns::titled(line) else { return false };
        self.begin(columns);
        true
    }

    /// Begins a table of these columns.
    pub fn begin(&mut self, columns: Columns) {
        self.columns = Some(columns);
        self.filled.clear();
    }

    /// Notes the process of a row; whether the line is one.
    pub fn row(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> bool {
        let Some(columns) = &self.columns else { return false };
        let Some((pid, cpu, command)) = columns.row(line.trimmed()) else { return false };
        let busy = if columns.is_of_all { BUSY_OF_ALL } else { BUSY };
        let name = name(command);
        snapshot.lists_threads |= ["kernel{", "intr{", "idle{"].iter().any(|thread| name.starts_with(thread));
        if name.is_empty() || is_idle(&name) || (cpu < busy && !is_relevant(&name)) {
            return true;
        }
        let processes = &mut snapshot.processes;
        let known = processes.iter().position(|one| one.pid == Some(pid) && one.name == name);
        let (place, mut kept) = (known.unwrap_or(processes.len()), line.kept());
        // What the share is of.
        if !columns.is_of_all {
            kept.of_all_cpus.remove(&place);
        } else if place < Snapshot::LINES {
            kept.of_all_cpus.insert(place);
        }
        match known {
            Some(place) => {
                let is_first = self.filled.insert(place);
                if let Some(process) = processes.get_mut(place)
                    // Several threads of one name: the busiest counts.
                    && (is_first || process.cpu.is_none_or(|former| former < cpu))
                {
                    process.cpu = Some(cpu);
                    process.quote = line.quote();
                }
            }
            None if processes.len() >= Snapshot::LINES => snapshot.omitted += 1,
            None => {
                self.filled.insert(processes.len());
                let (name, quote) = (name.into_owned(), line.quote());
                processes.push(Process { name, pid: Some(pid), cpu: Some(cpu), of_all: None, quote });
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_commands() {
        for (command, expected) in [
            ("/usr/local/sbin/mpd5 -b", "mpd5"),
            ("[ksoftirqd/3]", "ksoftirqd/3"),
            ("intr{irq256: igb0:que 0}", "intr{irq256: igb0:que 0}"),
            ("irq256: igb0:que 0", "irq256: igb0:que 0"),
            ("kernel{if_io_tqg_0}", "kernel{if_io_tqg_0}"),
            ("[kernel{if_io_tqg_0}]", "kernel{if_io_tqg_0}"),
            ("[intr{irq264: igb0:que 1}]", "intr{irq264: igb0:que 1}"),
            ("[intr/irq264: igb0:rxq0]", "intr{irq264: igb0:rxq0}"),
            ("[kernel/if_io_tqg_0]", "kernel{if_io_tqg_0}"),
            ("pppd call provider {x}", "pppd"),
            ("{pppd}", "pppd"),
            ("intr{irq256: igb0", "intr{irq256: igb0"),
        ] {
            assert_eq!(super::name(command), expected, "{command}");
        }
    }
}
