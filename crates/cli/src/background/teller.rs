//! Lines on standard output that nobody has to read: a terminal that is held up (Ctrl-S) or a pipe that is full must not hold
//! up a link.

use super::queue::Queue;
use rustix::io::dup;
use rustix::stdio::stdout;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Octets of lines that may wait: those of a hundred thousand sessions that end at once. Further lines are lost, and their number
/// is told.
const WAITING: usize = 16 << 20;

/// Writes lines in a thread of its own.
#[derive(Debug)]
pub struct Teller {
    lines: Queue,
    /// Lines that did not fit, of which nothing was said yet.
    lost: Arc<AtomicU64>,
}

impl Teller {
    /// On what is standard output now.
    ///
    /// # Errors
    ///
    /// There are no more descriptors or threads.
    pub fn new() -> io::Result<Teller> {
        Teller::on(File::from(dup(stdout())?))
    }

    /// On this file.
    ///
    /// # Errors
    ///
    /// There are no more threads.
    pub fn on(file: File) -> io::Result<Teller> {
        Teller::with(file, WAITING)
    }

    fn with(mut file: File, waiting: usize) -> io::Result<Teller> {
        let teller = Teller { lines: Queue::new(waiting), lost: Arc::default() };
        let (lines, lost) = (teller.lines.clone(), Arc::clone(&teller.lost));
        thread::Builder::new().name("teller".to_owned()).spawn(move || {
            let _writes = lines.writer();
            while let Some((line, is_last)) = lines.next() {
                // What cannot be written is no reason to end.
                let _ = file.write_all(line.as_bytes());
                if is_last {
                    tell_lost(&mut file, &lost);
                }
            }
            tell_lost(&mut file, &lost);
        })?;
        Ok(teller)
    }

    /// Hands a line over, with its line feed. Where too many wait it is lost, and that is told where it would stand.
    pub fn tell(&self, line: String) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let is_told = lost == 0 || self.lines.push(lost_lines(lost)).is_ok();
        if !is_told || self.lines.push(line).is_err() {
            let again = if is_told { 1 } else { lost + 1 };
            self.lost.fetch_add(again, Ordering::Relaxed);
        }
    }

    /// Ends: whether everything was written, which takes no longer than a second a line. If not, whatever is written next would
    /// wait as well.
    pub fn finish(self) -> bool {
        self.lines.finish().is_none()
    }
}

/// Says how many are lost, where some are.
fn tell_lost(file: &mut File, lost: &AtomicU64) {
    let count = lost.swap(0, Ordering::Relaxed);
    if count > 0 {
        let _ = file.write_all(lost_lines(count).as_bytes());
    }
}

fn lost_lines(count: u64) -> String {
    let (lines, were) = if count == 1 { ("line", "was") } else { ("lines", "were") };
    format!("{count} {lines} {were} lost here: they came faster than they can be written\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    #[test]
    fn lines_are_written_in_their_order() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let teller = Teller::on(File::from(OwnedFd::from(writer))).expect("a thread");
        ["one\n", "two\n"].into_iter().for_each(|line| teller.tell(line.to_owned()));
        assert!(teller.finish());
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text, "one\ntwo\n");
    }

    #[test]
    fn a_pipe_that_nobody_reads_holds_nobody_up() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let teller = Teller::with(File::from(OwnedFd::from(writer)), 1 << 20).expect("a thread");
        // More than any pipe holds, and than may wait.
        (0..64).for_each(|_| teller.tell("x".repeat(1 << 16)));
        assert!(!teller.finish());
        drop(reader);
    }

    /// Lines of ten octets, of which a pipe that is held up and a queue take some: all others are counted where they are missing.
    #[test]
    fn lines_that_are_lost_are_counted() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let teller = Teller::with(File::from(OwnedFd::from(writer)), 1 << 16).expect("a thread");
        let all = 100_000;
        (0..all).for_each(|number| teller.tell(format!("line {number:06}\n")));
        let read = thread::spawn(move || io::read_to_string(reader).expect("text"));
        assert!(teller.finish());
        let text = read.join().expect("no panic");
        let (told, lost): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("line "));
        let counts = lost.iter().map(|line| line.split_once(' ').expect("a number").0);
        let lost: usize = counts.map(|count| count.parse::<usize>().expect("a number")).sum();
        assert!(lost > 0 && told.len() + lost == all, "{} told, {lost} lost", told.len());
    }
}
