//! Lines on standard output that nobody has to read: a terminal that is held up (Ctrl-S) or a pipe that is full must not hold
//! up a link.

use rustix::io::dup;
use rustix::stdio::stdout;
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// Lines that may wait; further ones are lost.
const WAITING: usize = 64;
/// How long the last lines have until they are written.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes lines in a thread of its own.
#[derive(Debug)]
pub struct Teller {
    lines: SyncSender<String>,
    /// Ends when all is written.
    written: Receiver<()>,
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
    pub fn on(mut file: File) -> io::Result<Teller> {
        let (lines, taken) = sync_channel::<String>(WAITING);
        let (writes, written) = channel();
        thread::Builder::new().name("teller".to_owned()).spawn(move || {
            let _writes = writes;
            for line in taken {
                // What cannot be written is no reason to end.
                let _ = file.write_all(line.as_bytes());
            }
        })?;
        Ok(Teller { lines, written })
    }

    /// Hands a line over, with its line feed.
    pub fn tell(&self, line: String) {
        let _ = self.lines.try_send(line);
    }

    /// Ends: whether everything was written within a second. If not, whatever is written next would wait as well.
    pub fn finish(self) -> bool {
        drop(self.lines);
        !matches!(self.written.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout))
    }
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
        let teller = Teller::on(File::from(OwnedFd::from(writer))).expect("a thread");
        // More than any pipe holds, and than may wait.
        (0..4 * WAITING).for_each(|_| teller.tell("x".repeat(1 << 16)));
        assert!(!teller.finish());
        drop(reader);
    }
}
