//! Archives in the "new ASCII" cpio format that the kernel unpacks as its first file system
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`).

const MAGIC: &str = "070701";
const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const DEVICE: u32 = 0o020_600;
/// Headers, names and contents start at multiples of this many bytes.
const ALIGNMENT: usize = 4;

/// An archive that grows entry by entry.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Archive {
        Archive::default()
    }

    /// A folder, which has to come before what is in it. The path has no leading slash.
    pub fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER, (0, 0), &[]);
    }

    /// A regular file with these permission bits.
    pub fn file(&mut self, path: &str, permissions: u32, content: &[u8]) {
        self.entry(path, FILE | permissions, (0, 0), content);
    }

    /// A character device with its major and minor number.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, DEVICE, (major, minor), &[]);
    }

    /// The archive with its end mark.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    /// # Panics
    ///
    /// The content has 4 GiB or more, which the format cannot say.
    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file below 4 GiB");
        let name = path.len() as u32 + 1;
        // inode, mode, uid, gid, links, mtime, size, device of the file system (2), device (2), name, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name, 0];
        self.bytes.extend_from_slice(MAGIC.as_bytes());
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use testkit::{program, require};

    #[test]
    fn an_entry_is_a_header_a_name_and_a_content_each_aligned() {
        let mut archive = Archive::new();
        archive.file("init", 0o755, b"hello");
        let bytes = archive.finish();
        let header = "070701\
            00000001000081ed00000000000000000000000100000000\
            000000050000000000000000000000000000000000000005\
            00000000";
        assert_eq!(&bytes[..110], header.as_bytes());
        assert_eq!(&bytes[110..124], b"init\0\0hello\0\0\0");
        assert_eq!(&bytes[124..130], b"070701");
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn busybox_lists_what_was_put_in() {
        let Some(busybox) = require("busybox", program("busybox")) else { return };
        let mut archive = Archive::new();
        archive.folder("dev");
        archive.device("dev/console", 5, 1);
        archive.file("odd-length", 0o644, &[7; 4097]);
        archive.file("empty", 0o600, &[]);
        let mut list = Command::new(busybox)
            .args(["cpio", "-tv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("busybox cpio");
        list.stdin.take().expect("its input").write_all(&archive.finish()).expect("written");
        let output = list.wait_with_output().expect("its list");
        let text = String::from_utf8(output.stdout).expect("text");
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let seen = |row: &[&str]| (row[0].to_owned(), row[row.len() - 1].to_owned());
        let seen: Vec<(String, String)> = rows.iter().map(|row| seen(row)).collect();
        let expected = [
            ("drwxr-xr-x", "dev"),
            ("crw-------", "dev/console"),
            ("-rw-r--r--", "odd-length"),
            ("-rw-------", "empty"),
        ];
        assert_eq!(seen, expected.map(|(mode, name)| (mode.to_owned(), name.to_owned())), "{text}");
        assert!(text.contains("4097"), "{text}");
    }
}
