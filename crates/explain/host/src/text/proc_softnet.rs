//! `/proc/net/softnet_stat`: the backlog of each CPU (`softnet_seq_show`, net/core/net-procfs.c), in hexadecimal
//! columns of 32 bits.
//!
//! | column | meaning | since |
//! | --- | --- | --- |
//! | 0, 1, 2 | frames processed, dropped, budget or time ran out | always |
//! | 3 to 8 | unused today | |
//! | 9 | wake-ups by RPS | 2.6.35 |
//! | 10 | flow limit | 3.11 |
//! | 11, 12 | backlog length, CPU | 5.10 |
//! | 13, 14 | lengths of the two backlog queues | 6.4 |
//!
//! There is a row for each CPU online. Before Linux 5.10 it does not say which: row and CPU are taken for the
//! same, which holds where no CPU is offline.

use super::{Line, Outcome, Section, Tool};
use crate::{Counter, Snapshot, Softnet};

pub(super) static TOOL: Tool = Tool {
    name: "/proc/net/softnet_stat",
    command: |command| command.reads("/proc/net/softnet_stat"),
    heading: |line| line.as_bytes().first().is_some_and(u8::is_ascii_hexdigit) && columns(line).is_some(),
    open: |_| Box::new(Rows { next: 0 }),
};

const LEAST_COLUMNS: usize = 9;
const MOST_COLUMNS: usize = 24;
const RPS_COLUMN: usize = 9;
const CPU_COLUMN: usize = 12;

struct Rows {
    /// The CPU of the next row where it does not say.
    next: u32,
}

impl Section for Rows {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let Some((cpu, columns)) = self.row(line.trimmed()) else { return Outcome::Over };
        let [processed, dropped, squeezed, ..] = columns[..] else { return Outcome::Over };
        if cpu as usize >= Snapshot::CPUS {
            snapshot.omitted += 1;
            return Outcome::Taken;
        }
        let rps = columns.get(RPS_COLUMN).map(|&count| u64::from(count));
        let quote = line.quote();
        match snapshot.softnet.get_mut(&cpu) {
            Some(softnet) => {
                softnet.processed.again(processed.into(), quote.clone());
                softnet.dropped.again(dropped.into(), quote.clone());
                softnet.time_squeeze.again(squeezed.into(), quote.clone());
                Counter::note(&mut softnet.received_rps, rps, &quote);
            }
            None => {
                let counter = |value: u32| Counter::new(value.into(), quote.clone());
                let softnet = Softnet {
                    processed: counter(processed),
                    dropped: counter(dropped),
                    time_squeeze: counter(squeezed),
                    received_rps: rps.map(|rps| Counter::new(rps, quote.clone())),
                };
                snapshot.softnet.insert(cpu, softnet);
            }
        }
        Outcome::Taken
    }
}

impl Rows {
    /// The CPU of a row, and its columns.
    fn row(&mut self, line: &str) -> Option<(u32, Vec<u32>)> {
        let columns = columns(line)?;
        let cpu = columns.get(CPU_COLUMN).map_or(self.next, |&cpu| cpu);
        self.next = cpu.saturating_add(1);
        Some((cpu, columns))
    }
}

/// The rows of the file, each with its CPU.
#[cfg(target_os = "linux")]
pub(crate) fn rows(text: &str) -> Vec<(u32, Vec<u32>)> {
    let mut rows = Rows { next: 0 };
    text.lines().map_while(|line| rows.row(line.trim())).collect()
}

/// Nine or more numbers of eight hexadecimal digits, and nothing else.
fn columns(line: &str) -> Option<Vec<u32>> {
    if line.len() < LEAST_COLUMNS * 9 - 1 || line.as_bytes().get(8) != Some(&b' ') {
        return None;
    }
    let mut columns = Vec::with_capacity(16);
    for word in line.split_ascii_whitespace() {
        if word.len() != 8 || columns.len() == MOST_COLUMNS || !word.bytes().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        columns.push(u32::from_str_radix(word, 16).ok()?);
    }
    (columns.len() >= LEAST_COLUMNS).then_some(columns)
}
