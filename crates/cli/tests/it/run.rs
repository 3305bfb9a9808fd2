//! The program, run as its users run it.

#[path = "../run/mod.rs"]
mod ended;

pub use ended::{BINARY, Ended, Report, schema};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Output, Stdio};

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
    pub fn output(&mut self) -> Output {
        let streams = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = std::mem::take(&mut self.input);
        std::thread::scope(|scope| {
            scope.spawn(move || match stdin.write_all(&input) {
                // It may end without reading everything.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => panic!("{error}"),
                _ => {}
            });
            child.wait_with_output().expect("an end")
        })
    }
}
