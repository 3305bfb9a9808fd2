//! How far a scenario has come, on standard error where that is a terminal.

use bench::scenario::rounds::Step;

/// A line that goes when this is dropped.
pub struct Progress(crate::progress::Progress);

impl Progress {
    pub fn new() -> Progress {
        Progress(crate::progress::Progress::new())
    }

    pub fn show(&mut self, step: &Step<'_>) {
        let left = step.left.map(|left| format!(", {} left", format::duration(left.as_secs_f64().round())));
        let (done, all) = (step.done, step.all);
        let left = left.unwrap_or_default();
        self.0.show(&format!("{done} of {all} · round {}{left} · {}", step.round, step.cell));
    }
}
