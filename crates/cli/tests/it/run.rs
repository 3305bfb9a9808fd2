//! The program, run as its users run it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Output, Stdio};

/// Its file.
pub const BINARY: &str = env!("CARGO_BIN_EXE_rxlane");

/// A command that reads nothing, or what it is given.
pub struct Command {
    command: std::process::Command,
    input: Vec<u8>,
}

/// `rxlane`, without arguments.
pub fn rxlane() -> Command {
    Command { command: std::process::Command::new(BINARY), input: Vec::new() }
}

impl Command {
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Command {
        self.args([argument])
    }

    pub fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Command {
        self.command.args(arguments);
        self
    }

    pub fn env(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Command {
        self.command.env(name, value);
        self
    }

    pub fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Command {
        self.command.current_dir(folder);
        self
    }

    pub fn write_stdin(&mut self, input: impl Into<Vec<u8>>) -> &mut Command {
        self.input = input.into();
        self
    }

    /// Runs it to its end.
    pub fn output(&mut self) -> io::Result<Output> {
        let streams = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn()?;
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = std::mem::take(&mut self.input);
        std::thread::scope(|scope| {
            scope.spawn(move || match stdin.write_all(&input) {
                // It may end without reading everything.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => panic!("{error}"),
                _ => {}
            });
            child.wait_with_output()
        })
    }

    /// Runs it to its end, which has to be success.
    pub fn succeed(&mut self) -> Output {
        self.end(0)
    }

    /// Runs it to its end, which has to have this exit code.
    pub fn end(&mut self, code: i32) -> Output {
        let output = self.output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{:?}: {error}", self.command);
        output
    }
}
