//! How a command speaks: standard output with or without colour, and the exit codes.
//!
//! Exit codes: 0 success, 1 negative result, 2 wrong usage or input, 3 the environment lacks something.
//! A reader that closes the pipe early (`rxlane … | head`) has what it needs: a command that has not come to its end by then exits 0.

#[cfg(target_os = "linux")]
use crate::steer_command::Worded;
use anstyle::{AnsiColor, Style};
use format::{Table, in_json, one_line, with_causes, wrapped};
use serde::Serialize;
#[cfg(target_os = "linux")]
use service::ErrorKind;
#[cfg(target_os = "linux")]
use service::control::ControlError;
#[cfg(target_os = "linux")]
use service::memory::MemoryError;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::rc::Rc;

pub const BOLD: Style = Style::new().bold();
pub const QUIET: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
pub const POOR: Style = AnsiColor::Yellow.on_default();
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// What a command that ran to its end has to say in its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success,
    /// Negative result: a finding, a failed check. Exit 1.
    Negative,
}

/// What the environment lacks for a request: a privilege, a kernel feature, a program. One sentence that says
/// what is missing and how to get it. Exit 3.
#[derive(Debug)]
pub struct Lacks(pub String);

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Lacks {}

/// What a subcommand returns. An error is exit 2, or 3 where the machine lacks something.
pub type CommandResult = anyhow::Result<Outcome>;

/// Turns the end of a command into its exit code, and a failure into one sentence on standard error.
pub fn exit_code(result: CommandResult) -> ExitCode {
    let error = match result {
        Ok(Outcome::Success) => return ExitCode::SUCCESS,
        Ok(Outcome::Negative) => return ExitCode::from(1),
        Err(error) => error,
    };
    let (code, sentence) = failure(&error);
    if code > 0 {
        complain(&sentence);
    }
    ExitCode::from(code)
}

/// The exit code of an error, and its sentence.
pub fn failure(error: &anyhow::Error) -> (u8, String) {
    #[cfg(target_os = "linux")]
    if let Some(kind) = kind(error) {
        let code = match kind {
            ErrorKind::No => 1,
            ErrorKind::Usage => 2,
            ErrorKind::Lacks => 3,
        };
        return (code, error.to_string());
    }
    if io_errors(error).any(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return (0, with_causes(error.as_ref()));
    }
    let lacks = error.chain().any(|cause| cause.is::<Lacks>()) || io_errors(error).any(lacks_something);
    (if lacks { 3 } else { 2 }, with_causes(error.as_ref()))
}

/// What an error of a crate below says of itself. Its sentence has its causes.
#[cfg(target_os = "linux")]
fn kind(error: &anyhow::Error) -> Option<ErrorKind> {
    macro_rules! of {
        ($($error:ty: $kind:expr),*) => { None$(.or_else(|| error.downcast_ref::<$error>().map($kind)))* };
    }
    #[cfg(feature = "full")]
    let of_full = of!(
        link::Error: link::Error::kind,
        client::Error: client::Error::kind,
        concentrator::Error: concentrator::Error::kind,
        envelope::Error: envelope::Error::kind
    );
    #[cfg(not(feature = "full"))]
    let of_full = None;
    of_full.or_else(|| {
        of!(
            steer::error::Error: steer::error::Error::kind,
            Worded: |error| error.0.kind(),
            fastpath::Error: fastpath::Error::kind,
            ControlError: |error| if error.is_negative() { ErrorKind::No } else { ErrorKind::Lacks },
            MemoryError: |_| ErrorKind::Lacks
        )
    })
}

/// One line on standard error. Nobody may be reading there either, which is nothing to end for.
pub fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "rxlane: {}", one_line(message));
}

fn io_errors(error: &anyhow::Error) -> impl Iterator<Item = &io::Error> {
    error.chain().filter_map(|cause| cause.downcast_ref())
}

/// A full disk, or a limit of the machine on files or memory: no fault of the input.
fn lacks_something(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.kind(), FileTooLarge | StorageFull | QuotaExceeded | OutOfMemory)
        || matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

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
        let requested = || std::env::var("COLUMNS").ok()?.parse().ok();
        let width = if stdout.is_terminal() { terminal() } else { requested() }.unwrap_or(100).clamp(40, 100);
        Output { writer: Box::new(BufWriter::new(stdout)), colour, width }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// `text` in `style` where there is colour, plain elsewhere.
    pub fn styled(&self, style: Style, text: impl fmt::Display) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// A heading with an empty line before it.
    pub fn heading(&mut self, text: &str) -> io::Result<()> {
        let text = self.styled(BOLD, text);
        writeln!(self, "\n{text}")
    }

    /// A name in a column of so many characters, and a text that is broken behind it.
    pub fn item(&mut self, column: usize, name: &str, text: &str) -> io::Result<()> {
        self.hanging(&format!("  {name:column$}"), column + 2, text, Style::new())
    }

    /// A text in a style behind what begins its first line; the later ones are indented by so many columns.
    pub fn hanging(&mut self, lead: &str, indent: usize, text: &str, style: Style) -> io::Result<()> {
        for (place, line) in wrapped(text, self.width.saturating_sub(indent).max(20)).iter().enumerate() {
            let (lead, indent) = if place == 0 { (lead, 0) } else { ("", indent) };
            let line = self.styled(style, line);
            writeln!(self, "{lead}{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// As wide as the terminal, its later lines farther to the right.
    pub fn sentence(&mut self, text: &str) -> io::Result<()> {
        self.hanging("  ", 4, text, Style::new())
    }

    /// A text that is broken where there is no more room, each line behind the same indent.
    pub fn paragraph(&mut self, indent: &str, text: &str) -> io::Result<()> {
        let lines = wrapped(text, self.width.saturating_sub(indent.len()));
        lines.iter().try_for_each(|line| writeln!(self, "{indent}{line}"))
    }

    pub fn table(&mut self, table: &Table) -> io::Result<()> {
        for (at, line) in table.lines(self.width.saturating_sub(2)).iter().enumerate() {
            let line = if at == 0 { self.styled(BOLD, line) } else { line.clone() };
            writeln!(self, "  {line}")?;
        }
        Ok(())
    }

    /// How many of so many rows are not printed, where that are any.
    pub fn more(&mut self, rows: usize, printed: usize) -> io::Result<()> {
        match rows.saturating_sub(printed) {
            0 => Ok(()),
            more => writeln!(self, "  … and {more} more (--json lists them)"),
        }
    }

    /// What `write` prints, as text, in the colour and width of this output.
    pub fn aside(&self, write: impl FnOnce(&mut Output) -> io::Result<()>) -> io::Result<String> {
        let text = Rc::new(RefCell::new(Vec::new()));
        let writer = Box::new(Aside(Rc::clone(&text)));
        write(&mut Output { writer, colour: self.colour, width: self.width })?;
        let text = text.take();
        String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Writes `value` as JSON, indented, and a line feed.
    pub fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(Spelled(self), value).map_err(io::Error::from)?;
        writeln!(self)
    }

    /// `value` as JSON where `json`, else as text.
    pub fn show<T: Serialize>(
        &mut self,
        json: bool,
        value: &T,
        print: impl FnOnce(&mut Output, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        if json { self.json(value) } else { print(self, value) }
    }

    /// `value` as JSON with its schema before it.
    pub fn json_of(&mut self, schema: &'static str, value: &impl Serialize) -> io::Result<()> {
        #[derive(Serialize)]
        struct WithSchema<'a, T> {
            schema: &'static str,
            #[serde(flatten)]
            value: &'a T,
        }
        self.json(&WithSchema { schema, value })
    }

    /// The same on a line of its own, for readers that take one document after the other.
    pub fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(Spelled(self), value).map_err(io::Error::from)?;
        writeln!(self)
    }

    /// Writes out what is buffered, at the end of a command. Who reads no further is no error, and changes nothing of how it ended.
    pub fn finish(&mut self, outcome: Outcome) -> CommandResult {
        match self.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(outcome),
        }
    }
}

/// Where JSON is written, so that no hidden character of a string reaches a terminal: `serde_json` escapes those below U+0020 alone,
/// and hands strings on in whole characters.
struct Spelled<'a>(&'a mut Output);

impl Write for Spelled<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match str::from_utf8(buffer) {
            Ok(text) if !text.is_ascii() => self.0.write_all(in_json(text).as_bytes())?,
            _ => self.0.write_all(buffer)?,
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct Aside(Rc<RefCell<Vec<u8>>>);

impl Write for Aside {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error with the place that it is about. A closed pipe keeps its kind and is no error in the end.
fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("standard output: {error}"))
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.writer.write(buffer).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(named)
    }
}
