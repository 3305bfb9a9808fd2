//! `perf top` and `perf report`: in which functions CPUs spent their time, and who called them.
//!
//! A row has shares, then columns by the sort order, then the kind of the symbol and its name: `61.05%  [kernel]  [k]
//! native_queued_spin_lock_slowpath`. Of two shares the first counts what the function calls as well (`--children`).
//! Below a row that has a call graph stand callers (`--54.20%--_raw_spin_lock`), until the next row
//! (tools/perf/ui/stdio/hist.c). A report has a row for each program, so that shares of one function add up.

use super::{Line, Outcome, Section, Tool};
use crate::{Fact, FunctionShare, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "perf",
    command: |command| command.program == "perf",
    heading: |line| row(line).is_some(),
    open: |_| Box::new(Profile { first: None, row: None }),
};

/// Functions that are kept, and callers of each.
const MOST: usize = 256;
const CALLERS: usize = 64;

#[derive(Default)]
struct Profile {
    /// Place of this output's first function among the snapshot's.
    first: Option<usize>,
    /// Place of the row whose callers follow.
    row: Option<usize>,
}

impl Section for Profile {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if let Some((share, function)) = row(text) {
            self.note(share, function, line, snapshot);
            return Outcome::Taken;
        }
        if text.is_empty() || text.starts_with('#') {
            return Outcome::Skipped;
        }
        let Some(place) = self.row else { return Outcome::Skipped };
        let Some(caller) = caller(text) else {
            // Lines of the graph without a name, titles of another report.
            let is_graph = text.bytes().all(|c| matches!(c, b'|' | b'-' | b' '));
            return if is_graph { Outcome::Taken } else { Outcome::Over };
        };
        if let Some(known) = snapshot.functions.get_mut(place).map(|function| &mut function.value)
            && known.callers.len() < CALLERS
            && known.function != caller
            && !known.callers.iter().any(|one| one == caller)
        {
            known.callers.push(caller.to_owned());
        }
        Outcome::Taken
    }
}

impl Profile {
    fn note(&mut self, share: f64, function: &str, line: &Line<'_>, snapshot: &mut Snapshot) {
        let first = *self.first.get_or_insert(snapshot.functions.len());
        let known = snapshot.functions.iter().skip(first).position(|known| known.value.function == function);
        if let Some(known) = known.and_then(|at| snapshot.functions.get_mut(first + at)) {
            known.value.share = (known.value.share + share).min(1.0);
            self.row = known.value.callers.is_empty().then_some(first).and(self.row);
            return;
        }
        if snapshot.functions.len() >= MOST {
            snapshot.omitted += 1;
            self.row = None;
            return;
        }
        self.row = Some(snapshot.functions.len());
        let function = FunctionShare { function: function.to_owned(), share, callers: Vec::new() };
        snapshot.functions.push(Fact::new(function, line.quote()));
    }
}

/// The share of the samples, a part of 1, and the function.
fn row(text: &str) -> Option<(f64, &str)> {
    // Terminals show whether callers are folded.
    let text = text.trim_start_matches(['-', '+', ' ']);
    let (head, symbol) = text.split_once(" [k] ").or_else(|| text.split_once(" [.] "))?;
    let shares = head.split_whitespace().map_while(share);
    let share = shares.take(2).last()?;
    // Compilers make parts and copies of functions: `native_queued_spin_lock_slowpath.part.0`.
    let function = symbol.split_whitespace().next()?.split('.').next()?;
    let is_function = function.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b':'));
    (is_function && !function.is_empty() && share <= 1.0).then_some((share, function))
}

fn share(word: &str) -> Option<f64> {
    let number = word.strip_suffix('%')?.replace(',', ".");
    number.parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share)).map(|share| share / 100.0)
}

/// The function in a line of a call graph: `|--54.20%--_raw_spin_lock`, `sch_direct_xmit`, `- 37.64% dev_queue_xmit`.
fn caller(text: &str) -> Option<&str> {
    let name = text.trim_start_matches(['|', '-', '+', ' ']);
    let name = match name.split_once('%') {
        Some((number, rest)) if number.replace(',', ".").parse::<f64>().is_ok() => {
            rest.trim_start_matches(['-', ' '])
        }
        _ => name,
    };
    let name = name.split_whitespace().next().filter(|_| !name.trim().contains(' '))?;
    let is_function = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b':'));
    is_function.then_some(name)
}
