//! How a command speaks: standard output with or without colour, and the exit codes.
//!
//! Exit codes: 0 success, 1 the answer is no, 2 wrong usage or input, 3 the environment lacks something.
//! A reader that closes the pipe early (`rxlane … | head`) has what it wanted: exit 0.

use anstyle::Style;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// What a command that ran to its end has to say in its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit 0.
    Success,
    /// The answer is no: a finding, a failed check. Exit 1.
    #[allow(dead_code)]
    Negative,
}

/// Why a command stopped.
#[derive(Debug)]
pub enum Failure {
    /// Wrong usage or input: exit 2.
    Input(anyhow::Error),
    /// A privilege, a kernel feature or a part is missing: exit 3.
    #[allow(dead_code)]
    Environment(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Input(error.into())
    }
}

/// What a subcommand returns.
pub type CommandResult = Result<Outcome, Failure>;

/// Turns the end of a command into its exit code, and a failure into one sentence on standard error.
pub fn exit_code(result: CommandResult) -> ExitCode {
    let (code, error) = match result {
        Ok(Outcome::Success) => return ExitCode::SUCCESS,
        Ok(Outcome::Negative) => return ExitCode::from(1),
        Err(Failure::Input(error)) => (2, error),
        Err(Failure::Environment(error)) => (3, error),
    };
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(io::stderr(), "rxlane: {error:#}");
    ExitCode::from(code)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// Standard output of a command.
pub struct Output {
    writer: Box<dyn Write>,
    colour: bool,
    width: usize,
}

impl Output {
    /// Standard output, coloured on a terminal unless `NO_COLOR` is set, as wide as the terminal is, in a
    /// pipe as wide as `COLUMNS` says (100 columns at most, 100 where nothing says).
    pub fn standard() -> Output {
        let stdout = io::stdout();
        let colour = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        let terminal = || Some(usize::from(terminal_size::terminal_size()?.0.0));
        let asked = || std::env::var("COLUMNS").ok()?.parse().ok();
        let width = if stdout.is_terminal() { terminal() } else { asked() }.unwrap_or(100).clamp(40, 100);
        Output { writer: Box::new(BufWriter::new(stdout)), colour, width }
    }

    /// Columns that a table may use.
    #[allow(dead_code)]
    pub fn width(&self) -> usize {
        self.width
    }

    /// `text` in `style` where colour is wanted, plain elsewhere.
    #[allow(dead_code)]
    pub fn styled(&self, style: Style, text: impl fmt::Display) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// Writes out what is buffered. Errors: whatever standard output says, a closed pipe among it.
    pub fn finish(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.writer.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
