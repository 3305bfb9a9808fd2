//! The log of a daemon: whatever it says, line by line behind the time.
//!
//! # Contract
//!
//! * Everything that the process writes to standard output and standard error is in the file, or counted there as missing.
//! * A file that takes nothing (a full disk) holds nobody up. [`failure`] says so for as long as that is so, for `status` and the
//!   service manager; when there is space again, the number of missing lines is written where they would stand.

use crate::lines::WholeLines;
use format::utc;
use rustix::stdio::{dup2_stderr, dup2_stdout};
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// How long the file has to take what was said last.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why the log of this process takes nothing.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

/// Why the log of this process takes nothing now, and how many lines are missing; `None`: it takes them, or there is none.
pub fn failure() -> Option<String> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

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
    pub fn new(file: File, nothing: File) -> io::Result<Prepared> {
        let (reader, writer) = io::pipe()?;
        let report = |failure: Option<String>| {
            if let Some(failure) = &failure {
                let _ = crate::notify::status(failure);
            }
            *FAILURE.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        };
        let thread =
            thread::Builder::new().name("log".to_owned()).spawn(move || copy(reader, file, report))?;
        Ok(Prepared { writer, nothing, thread })
    }

    /// What takes what is said, from before it takes standard output on.
    pub fn writer(&self) -> io::Result<File> {
        self.writer.as_fd().try_clone_to_owned().map(File::from)
    }

    pub fn start(self) -> io::Result<Log> {
        dup2_stdout(&self.writer)?;
        dup2_stderr(&self.writer)?;
        Ok(Log { nothing: self.nothing, thread: Some(self.thread) })
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

fn copy(reader: PipeReader, file: impl Write, report: impl Fn(Option<String>)) {
    let (mut lines, mut missing) = (WholeLines::new(file), 0_u64);
    for line in BufReader::new(reader).split(b'\n') {
        let Ok(line) = line else { return };
        let now = utc(SystemTime::now());
        let text = format!("{now} {}\n", String::from_utf8_lossy(&line));
        let gap = match missing {
            0 => String::new(),
            _ => format!("{now} {missing} lines are missing here: the file took nothing\n"),
        };
        match lines.add(&(gap + &text)) {
            Ok(()) if missing > 0 => {
                missing = 0;
                report(None);
            }
            Ok(()) => {}
            Err(error) => {
                missing += 1;
                report(Some(format!("the log takes nothing ({error}): {missing} lines are missing")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    fn copied(file: &mut impl Write, text: &[u8], report: impl Fn(Option<String>)) {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(text).expect("written");
        drop(writer);
        copy(reader, file, report);
    }

    fn texts(log: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(log).into_owned();
        text.lines().map(|line| line.split_once("Z ").expect("a time").1.to_owned()).collect()
    }

    #[test]
    fn every_line_has_its_time() {
        let mut file = Vec::new();
        copied(&mut file, b"one\ntwo\n\nno end", |_| panic!("nothing is lost"));
        assert_eq!(texts(&file), ["one", "two", "", "no end"]);
    }

    /// Refuses so many writes.
    struct Full(u32, Vec<u8>);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 > 0 {
                self.0 -= 1;
                return Err(ErrorKind::StorageFull.into());
            }
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_when_it_happens_and_what_is_missing_is_counted() {
        let (mut file, reports) = (Full(2, Vec::new()), Mutex::new(Vec::new()));
        copied(&mut file, b"one\ntwo\nthree\nfour\n", |report| reports.lock().expect("reports").push(report));
        assert_eq!(texts(&file.1), ["2 lines are missing here: the file took nothing", "three", "four"]);
        let reports = reports.into_inner().expect("reports");
        let [Some(first), Some(second), None] = &reports[..] else { panic!("{reports:?}") };
        assert!(first.contains("no storage space") && second.ends_with("2 lines are missing"), "{reports:?}");
    }
}
