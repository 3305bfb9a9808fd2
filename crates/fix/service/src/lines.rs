//! Lines that a thread writes: whoever hands them over never waits, however slow or full the file is.

use rustix::io::dup;
use rustix::stdio::stdout;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the writer may take for one of the last lines.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long for all of them.
const LONGEST: Duration = Duration::from_secs(10);
/// Bytes of lines that may wait for standard output: those of a hundred thousand sessions that end at once.
const WAITING: usize = 16 << 20;
/// Bytes of lines from which on they are written, though others wait behind them.
const TOGETHER: usize = 8 << 10;

/// Lines that wait to be written: as many as fit a number of bytes. Clones are the same queue.
#[derive(Clone, Debug)]
pub struct Queue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Bytes that may wait.
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines that were taken so far.
    taken: u64,
    is_closed: bool,
    has_ended: bool,
}

impl Queue {
    /// A thread called `name` gives each line to `write`, and whether no other waits behind it; at the end `None`. At most this
    /// many bytes wait.
    pub fn start(
        name: &str,
        most: usize,
        mut write: impl FnMut(Option<String>, bool) + Send + 'static,
    ) -> io::Result<Queue> {
        let shared = Shared { most, state: Mutex::default(), changed: Condvar::new() };
        let queue = Queue(Arc::new(shared));
        let lines = queue.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _end = EndOfWriter(lines.clone());
            while let Some((line, is_last)) = lines.next() {
                write(Some(line), is_last);
            }
            write(None, true);
        })?;
        Ok(queue)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a line over, without waiting.
    ///
    /// # Errors
    ///
    /// The line, where it does not fit any more or nothing is taken any more.
    pub fn push(&self, line: String) -> Result<(), String> {
        let mut state = self.state();
        if state.is_closed || state.bytes + line.len() > self.0.most {
            return Err(line);
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        // One that has others before it is found behind them: the writer waits with none alone.
        if state.lines.len() == 1 {
            self.0.changed.notify_all();
        }
        Ok(())
    }

    /// The next line, and whether there are no others behind it; waits for one. `None`: there will be none.
    fn next(&self) -> Option<(String, bool)> {
        let mut state = self.state();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.len();
                state.taken += 1;
                // Nobody waits for that before the end.
                if state.is_closed {
                    self.0.changed.notify_all();
                }
                return Some((line, state.lines.is_empty()));
            }
            if state.is_closed {
                return None;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes no more, and waits until all is written, as long as it goes on. What is left then, besides a line that is perhaps
    /// just being written; `None`: everything is written.
    pub fn finish(&self) -> Option<Vec<String>> {
        let mut state = self.state();
        state.is_closed = true;
        self.0.changed.notify_all();
        let (end, mut taken, mut until) = (Instant::now() + LONGEST, state.taken, Instant::now() + PATIENCE);
        while !state.has_ended {
            let now = Instant::now();
            if state.taken != taken {
                (taken, until) = (state.taken, now + PATIENCE);
            }
            let left = until.min(end).saturating_duration_since(now);
            if left.is_zero() {
                state.bytes = 0;
                return Some(state.lines.drain(..).collect());
            }
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

/// Held by the thread that writes until it ends, however it does.
struct EndOfWriter(Queue);

impl Drop for EndOfWriter {
    fn drop(&mut self) {
        let mut state = self.0.state();
        (state.is_closed, state.has_ended) = (true, true);
        self.0.0.changed.notify_all();
    }
}

/// Lines on standard output that nobody has to read: a terminal that is held up (Ctrl-S) or a pipe that is full must not hold
/// up a link. Lines that do not fit are lost, and their number is written.
#[derive(Debug)]
pub struct LineWriter {
    lines: Queue,
    /// Lines that did not fit, of which nothing was written yet.
    lost: Arc<AtomicU64>,
}

impl LineWriter {
    pub fn new() -> io::Result<LineWriter> {
        LineWriter::on(File::from(dup(stdout())?))
    }

    pub fn on(file: File) -> io::Result<LineWriter> {
        LineWriter::with(file, WAITING)
    }

    fn with(mut file: File, waiting: usize) -> io::Result<LineWriter> {
        let lost = Arc::new(AtomicU64::new(0));
        let unwritten = Arc::clone(&lost);
        let mut text = String::new();
        let write = move |line: Option<String>, is_last| {
            text += &line.unwrap_or_default();
            let count = if is_last { unwritten.swap(0, Ordering::Relaxed) } else { 0 };
            if count > 0 {
                text += &lost_lines(count);
            }
            if is_last || text.len() >= TOGETHER {
                // What cannot be written is no reason to end.
                let _ = file.write_all(text.as_bytes());
                text.clear();
            }
        };
        Ok(LineWriter { lines: Queue::start("lines", waiting, write)?, lost })
    }

    /// Hands a line over, with its line feed. Where too many wait it is lost, and that is written where it would stand.
    pub fn write(&self, line: String) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let is_counted = lost == 0 || self.lines.push(lost_lines(lost)).is_ok();
        if !is_counted || self.lines.push(line).is_err() {
            let again = if is_counted { 1 } else { lost + 1 };
            self.lost.fetch_add(again, Ordering::Relaxed);
        }
    }

    /// Ends: whether everything was written, which takes no longer than a second a line. If not, whatever is written next would
    /// wait as well.
    pub fn finish(self) -> bool {
        self.lines.finish().is_none()
    }
}

fn lost_lines(count: u64) -> String {
    let (lines, were) = if count == 1 { ("line", "was") } else { ("lines", "were") };
    format!("{count} {lines} {were} lost here: they came faster than they can be written\n")
}

/// Whole lines at the end of a file to which others may add as well, and which may be full.
#[derive(Debug)]
pub struct WholeLines<W> {
    file: W,
    /// Whether it ends in the midst of a line.
    is_torn: bool,
}

impl WholeLines<File> {
    /// Of a file that was opened for reading and appending. What ends in the midst of a line was torn before.
    pub fn of(mut file: File) -> WholeLines<File> {
        let mut last = *b"\n";
        // One that cannot be read is taken as it is.
        let _ = file.seek(SeekFrom::End(-1)).and_then(|_| file.read(&mut last));
        WholeLines { file, is_torn: last != *b"\n" }
    }
}

impl<W: Write> WholeLines<W> {
    pub const fn new(file: W) -> WholeLines<W> {
        WholeLines { file, is_torn: false }
    }

    /// Adds a line with its line feed, by one write(2) where the file takes that. Behind what it took of one before that did
    /// not fit, the line begins anew.
    ///
    /// # Errors
    ///
    /// Those of write(2); a part of the line may be in the file.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        let text = if self.is_torn { format!("\n{line}") } else { line.to_owned() };
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    let (written, left) = rest.split_at(count.min(rest.len()));
                    self.is_torn = written.last() != Some(&b'\n');
                    rest = left;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    #[test]
    fn lines_are_written_in_their_order() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let lines = LineWriter::on(File::from(OwnedFd::from(writer))).expect("a thread");
        ["one\n", "two\n"].into_iter().for_each(|line| lines.write(line.to_owned()));
        assert!(lines.finish());
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text, "one\ntwo\n");
    }

    #[test]
    fn a_pipe_that_nobody_reads_holds_nobody_up() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let lines = LineWriter::with(File::from(OwnedFd::from(writer)), 1 << 20).expect("a thread");
        // More than any pipe holds, and than may wait.
        (0..64).for_each(|_| lines.write("x".repeat(1 << 16)));
        assert!(!lines.finish());
        drop(reader);
    }

    /// Lines of ten bytes, of which a pipe that is held up and a queue take some: all others are counted where they are missing.
    #[test]
    fn lines_that_are_lost_are_counted() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let lines = LineWriter::with(File::from(OwnedFd::from(writer)), 1 << 16).expect("a thread");
        let all = 100_000;
        (0..all).for_each(|number| lines.write(format!("line {number:06}\n")));
        let read = thread::spawn(move || io::read_to_string(reader).expect("text"));
        assert!(lines.finish());
        let text = read.join().expect("no panic");
        let (written, lost): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with("line "));
        let counts = lost.iter().map(|line| line.split_once(' ').expect("a number").0);
        let lost: usize = counts.map(|count| count.parse::<usize>().expect("a number")).sum();
        assert!(lost > 0 && written.len() + lost == all, "{} written, {lost} lost", written.len());
    }

    /// A disk with space for so many bytes.
    struct Disk {
        text: Vec<u8>,
        space: usize,
        writes: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            let count = bytes.len().min(self.space);
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.text.extend(bytes.iter().take(count));
            self.space -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_took_of_a_line_is_not_continued_by_another() {
        // Space for all of the first line and so much of the second, and a third when there is space again.
        for (space, expected) in
            [(4, "one\nthree\n"), (5, "one\nt\nthree\n"), (7, "one\ntwo\nthree\n"), (8, "one\ntwo\nthree\n")]
        {
            let mut lines = WholeLines::new(Disk { text: Vec::new(), space, writes: 0 });
            lines.add("one\n").expect("room");
            assert_eq!(lines.file.writes, 1);
            assert_eq!(lines.add("two\n").is_ok(), space == 8);
            assert!(lines.add("four\n").is_err(), "no room yet");
            lines.file.space = 100;
            lines.add("three\n").expect("room");
            assert_eq!(String::from_utf8_lossy(&lines.file.text), expected, "{space}");
        }
    }

    #[test]
    fn a_file_that_ends_in_the_midst_of_a_line_goes_on_with_another() {
        for (before, expected) in [("", "new\n"), ("old\n", "old\nnew\n"), ("ol", "ol\nnew\n")] {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(before.as_bytes()).expect("written");
            let mut lines = WholeLines::of(file);
            lines.file.seek(SeekFrom::End(0)).expect("sought");
            lines.add("new\n").expect("written");
            let mut text = String::new();
            lines.file.rewind().expect("rewound");
            lines.file.read_to_string(&mut text).expect("read");
            assert_eq!(text, expected);
        }
    }
}
