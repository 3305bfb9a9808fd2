//! How rxlane writes figures, durations, tables, and text that somebody else chose: once for the terminal, the page, a
//! log and a command to paste.
//!
//! ```
//! use rxlane_format::{Share, Table, duration, plural, printable, quoted};
//!
//! assert_eq!(plural(1_234, "frame"), "1,234 frames");
//! assert_eq!(Share::of(1, 3).to_string(), "33.3 %");
//! assert_eq!(duration(0.25), "250 ms");
//! assert_eq!(printable("a\u{1b}[2Jb"), r"a\u{1b}[2Jb");
//! assert_eq!(quoted("eth0; id"), "'eth0; id'");
//! let table = Table::new(1, ["queue", "frames"]).rows([["rx-0", "12"], ["rx-1", "3,400"]]);
//! assert_eq!(table.lines(80), ["queue  frames", "rx-0       12", "rx-1    3,400"]);
//! ```

mod causes;
mod figure;
mod foreign;
mod share;
mod span;
mod table;

pub use causes::with_causes;
pub use figure::{bit_rate, bit_rate_of, compact, figure, number_of, plural, size, speed, thousands};
pub use foreign::{Quotable, in_json, is_hidden, one_line, printable, printable_up_to, quoted};
pub use share::Share;
pub use span::{duration, utc};
pub use table::{Table, shortened, wrapped};

/// What stands for a number that is not known.
pub const UNKNOWN: &str = "–";

/// With no-break spaces, so that a figure and its unit stay on one line of a page.
pub fn unbroken(figure: &str) -> String {
    figure.replace(' ', "\u{a0}")
}
