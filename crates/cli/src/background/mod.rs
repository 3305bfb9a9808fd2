//! Commands that stay: in the background by `--daemon`, with a log; what they say while they run; the signals that end them.

pub mod daemon;
pub mod log;
pub mod queue;
pub mod stop;
pub mod teller;
pub mod whole_lines;
