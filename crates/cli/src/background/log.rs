//! The log of a process in the background: whatever it says, line by line behind the time.

use crate::output::{CommandResult, Output, complain};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

fn copy(reader: PipeReader, mut file: impl Write) {
    for line in BufReader::new(reader).split(b'\n') {
        let Ok(line) = line else { return };
        let mut text = utc(SystemTime::now()).into_bytes();
        text.push(b' ');
        text.extend(line);
        text.push(b'\n');
        // What a full disk does not take is lost; the next may find room.
        let _ = file.write_all(&text);
    }
}

/// `2026-01-31T23:59:59Z` (RFC 3339 section 5.6).
fn utc(time: SystemTime) -> String {
    const DAY: u64 = 86_400;
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / DAY);
    let [hour, minute, second] = [seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60];
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of so many days since 1970-01-01, in the Gregorian calendar. Years are counted from March here, so
/// that the day which some of them lack is their last.
fn date(days: u64) -> (u64, u64, u64) {
    /// Days of 400 years, 100 and 4; from 0000-03-01 to 1970-01-01.
    const AGES: [u64; 3] = [146_097, 36_524, 1_461];
    const BEFORE: u64 = 719_468;
    let [age, century, leap] = AGES;
    let days = days + BEFORE;
    let of_age = days % age;
    let year_of_age = (of_age - of_age / (leap - 1) + of_age / century - of_age / (age - 1)) / 365;
    let of_year = of_age - (365 * year_of_age + year_of_age / 4 - year_of_age / 100);
    // Months from March on have 153 days in every five.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (days / age * 400 + year_of_age + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_date_prints_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_799, "2024-02-28T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_383_296, "2026-11-22T21:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

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
