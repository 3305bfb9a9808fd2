//! How far a scenario has come, on standard error where that is a terminal.

use bench::scenario::rounds::Step;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};

/// A line that goes when this is dropped.
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// Shows nothing yet.
    pub fn new() -> Progress {
        let bar = || {
            let style = ProgressStyle::with_template("{bar:20} {pos} of {len} · {wide_msg}");
            ProgressBar::new(1).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        };
        Progress(io::stderr().is_terminal().then(bar))
    }

    /// Shows what is being measured.
    pub fn tell(&mut self, step: &Step<'_>) {
        let Some(bar) = &self.0 else { return };
        bar.set_length(step.all as u64);
        bar.set_position(step.done as u64);
        let left = step.left.map(|left| match left.as_secs() {
            seconds if seconds >= 90 => format!(", {} min left", (seconds + 30) / 60),
            seconds => format!(", {seconds} s left"),
        });
        bar.set_message(format!("round {}{} · {}", step.round, left.unwrap_or_default(), step.cell));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
