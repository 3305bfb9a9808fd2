//! A line on standard error that says how far a command has come, where that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);
const BAR: u64 = 30;

/// The line, which goes with this.
pub struct Progress {
    is_terminal: bool,
    began: Instant,
    written: Option<Instant>,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { is_terminal: io::stderr().is_terminal(), began: Instant::now(), written: None }
    }

    pub fn show(&mut self, text: &str) {
        if !self.is_terminal || self.written.is_some_and(|written| written.elapsed() < TICK) {
            return;
        }
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        let text = format::shortened(&format::printable(text), width.saturating_sub(1));
        // Nobody may be reading there, which is nothing to end for.
        let _ = write!(io::stderr(), "\r{text}\x1b[K");
        self.written = Some(Instant::now());
    }

    /// So much of it is done; `in_words` makes words of an amount.
    pub fn show_amount(&mut self, done: u64, all: Option<u64>, in_words: fn(u64) -> String) {
        let Some(all) = all.filter(|all| *all > 0) else { return self.show(&in_words(done)) };
        let full = (BAR * done.min(all) / all) as usize;
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR as usize - full));
        let left = self.began.elapsed().as_secs_f64() * all.saturating_sub(done) as f64 / done.max(1) as f64;
        let left = format::duration(left.ceil());
        self.show(&format!("{bar} {} of {}, {left} left", in_words(done), in_words(all)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.written.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
