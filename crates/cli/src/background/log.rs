//! The log of a process in the background: whatever it says, line by line behind the time.

use super::whole_lines::WholeLines;
use crate::output::{CommandResult, Output, complain};
use link::utc::utc;
use rustix::stdio::{dup2_stderr, dup2_stdout};
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// How long the file has to take what was said last.
const PATIENCE: Duration = Duration::from_secs(1);

/// A log that takes nothing yet.
#[derive(Debug)]
pub struct Prepared {
    writer: PipeWriter,
    nothing: File,
    thread: JoinHandle<()>,
}

/// Takes what the process says on both streams until it is dropped, when all of that is in the file, or a second later.
#[derive(Debug)]
pub struct Log {
    nothing: File,
    thread: Option<JoinHandle<()>>,
}

impl Prepared {
    /// Of this file; `nothing` takes what is said when there is no log any more.
    ///
    /// # Errors
    ///
    /// There are no more descriptors or threads.
    pub fn new(file: File, nothing: File) -> io::Result<Prepared> {
        let (reader, writer) = io::pipe()?;
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || copy(reader, file))?;
        Ok(Prepared { writer, nothing, thread })
    }

    /// What takes what is said, from before it takes standard output on.
    ///
    /// # Errors
    ///
    /// There are no more descriptors.
    pub fn writer(&self) -> io::Result<File> {
        self.writer.as_fd().try_clone_to_owned().map(File::from)
    }

    /// Takes standard output and standard error.
    ///
    /// # Errors
    ///
    /// Those of dup2(2).
    pub fn start(self) -> io::Result<Log> {
        dup2_stdout(&self.writer)?;
        dup2_stderr(&self.writer)?;
        Ok(Log { nothing: self.nothing, thread: Some(self.thread) })
    }
}

impl Log {
    /// The end of a command whose last words are for the log.
    pub fn around(self, out: &mut Output, result: CommandResult) -> CommandResult {
        // There is nobody else to be told.
        let _ = out.flush();
        match result {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                complain(&format!("{error:#}"));
                drop(self);
                // What fails once it is up, the machine lacks.
                std::process::exit(3)
            }
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Only when nobody can write any more does the thread come to an end.
        let closed = dup2_stdout(&self.nothing).and_then(|()| dup2_stderr(&self.nothing));
        if let (Ok(()), Some(thread)) = (closed, self.thread.take()) {
            // A named pipe that nobody reads may never take the rest.
            let until = Instant::now() + PATIENCE;
            while !thread.is_finished() && Instant::now() < until {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn copy(reader: PipeReader, file: impl Write) {
    let mut lines = WholeLines::new(file);
    for line in BufReader::new(reader).split(b'\n') {
        let Ok(line) = line else { return };
        let text = format!("{} {}\n", utc(SystemTime::now()), String::from_utf8_lossy(&line));
        // What a full disk does not take is lost; the next may find room.
        let _ = lines.add(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_time() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"one\ntwo\n\nno end").expect("written");
        drop(writer);
        let mut file = Vec::new();
        copy(reader, &mut file);
        let text = String::from_utf8(file).expect("text");
        let said: Vec<&str> = text.lines().map(|line| line.split_once("Z ").expect("a time").1).collect();
        assert_eq!(said, ["one", "two", "", "no end"]);
    }
}
