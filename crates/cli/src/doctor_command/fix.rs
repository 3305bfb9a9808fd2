//! The fix of the short text: all commands of a remedy, or none.

use super::text::paragraph;
use crate::output::{BOLD, Output};
use crate::render::prose::WordedRemedy;
use format::{plural, printable};
use std::io::{self, Write};

/// Commands that are printed without `--verbose`: one for each of many queues is too long, and part of a remedy is none.
const MOST: usize = 12;

/// What stands before commands that fix nothing.
pub const QUESTION: &str = "To know more";

/// Prints the commands that fix it; where there are none, in words what does.
pub fn print(out: &mut Output, remedy: &WordedRemedy<'_>) -> io::Result<()> {
    let commands = remedy.commands;
    if commands.is_empty() {
        paragraph(out, "", &format!("Fix: {}.", remedy.what))?;
    } else if commands.len() > MOST {
        let count = plural(commands.len() as u64, "command");
        paragraph(out, "", &format!("Fix: {} ({count}; --verbose shows them).", remedy.what))?;
    } else {
        match remedy.is_question {
            true => paragraph(out, "", &format!("{QUESTION}: {}:", remedy.what))?,
            false => writeln!(out, "Fix:")?,
        }
        for command in commands {
            let command = out.styled(BOLD, printable(command));
            writeln!(out, "    {command}")?;
        }
    }
    remedy.caution.as_ref().map_or(Ok(()), |caution| paragraph(out, "", caution))
}
