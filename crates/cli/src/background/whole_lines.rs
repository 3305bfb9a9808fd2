//! Whole lines at the end of a file to which others may add as well, and which may be full.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

/// See the [module](self).
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
    /// Of something that ends with a line.
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

    /// A disk with room for so many octets.
    struct Disk {
        text: Vec<u8>,
        room: usize,
        writes: usize,
    }

    impl Write for Disk {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            let count = octets.len().min(self.room);
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.text.extend(octets.iter().take(count));
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_took_of_a_line_is_not_continued_by_another() {
        // Room for all of the first line and so much of the second, and a third when there is room again.
        for (room, expected) in
            [(4, "one\nthree\n"), (5, "one\nt\nthree\n"), (7, "one\ntwo\nthree\n"), (8, "one\ntwo\nthree\n")]
        {
            let mut lines = WholeLines::new(Disk { text: Vec::new(), room, writes: 0 });
            lines.add("one\n").expect("room");
            assert_eq!(lines.file.writes, 1);
            assert_eq!(lines.add("two\n").is_ok(), room == 8);
            assert!(lines.add("four\n").is_err(), "no room yet");
            lines.file.room = 100;
            lines.add("three\n").expect("room");
            assert_eq!(String::from_utf8_lossy(&lines.file.text), expected, "{room}");
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
