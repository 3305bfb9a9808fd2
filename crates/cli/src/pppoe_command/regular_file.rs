//! Files that an operator names (secrets, a password, options, accounts): regular ones of bounded size.
//!
//! A FIFO holds up whoever opens it until somebody writes, `/dev/zero` never ends, and opening a device may set it going. A
//! concentrator reads its secrets again while sessions wait for the answers to their echoes.

use anyhow::{Context, bail};
use rustix::fs::OFlags;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The largest file that is read, bytes: as much as a million subscribers take.
const LARGEST: u64 = 64 << 20;

/// A regular file that is open for reading.
#[derive(Debug)]
pub struct RegularFile {
    /// Where reading begins.
    pub file: File,
    metadata: Metadata,
}

impl RegularFile {
    /// Opens it; a symbolic link to one will do.
    ///
    /// # Errors
    ///
    /// There is none, or it is something else. The caller puts before it what was wanted of which file.
    pub fn open(path: &Path) -> anyhow::Result<RegularFile> {
        RegularFile::open_with(path, File::options().read(true))
    }

    fn open_with(path: &Path, options: &mut OpenOptions) -> anyhow::Result<RegularFile> {
        // Looked at before it is opened, for the sake of devices; and after, since it may be another one by then.
        match fs::metadata(path) {
            Ok(metadata) => expect_regular(metadata.file_type())?,
            // What opening it makes of that, it says itself.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        // Without O_NONBLOCK a FIFO would wait for its writer.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let file = options.custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        expect_regular(metadata.file_type())?;
        Ok(RegularFile { file, metadata })
    }

    /// All that is in it.
    ///
    /// # Errors
    ///
    /// It is larger than 64 MiB, or cannot be read.
    pub fn read(self) -> anyhow::Result<Vec<u8>> {
        let mut octets = Vec::new();
        // One of procfs says that it is empty, and one that grows has more than it said.
        self.file.take(LARGEST + 1).read_to_end(&mut octets)?;
        if octets.len() as u64 > LARGEST {
            bail!("it has more than {} MiB, which is the most", LARGEST >> 20);
        }
        Ok(octets)
    }

    /// Whether others than its owner may read it.
    pub fn is_open_to_others(&self) -> bool {
        self.metadata.mode() & 0o044 != 0
    }
}

/// All that is in a regular file.
///
/// # Errors
///
/// As [`RegularFile::open`] and [`RegularFile::read`], with the name of the file.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let octets = RegularFile::open(path).and_then(RegularFile::read);
    octets.with_context(|| format!("cannot read {}", path.display()))
}

/// Opens a regular file for reading and for adding to it; makes it where there is none.
///
/// # Errors
///
/// It is something else, or cannot be opened. The caller puts before it what was wanted of which file.
pub fn append(path: &Path) -> anyhow::Result<File> {
    let opened =
        RegularFile::open_with(path, File::options().read(true).append(true).create(true).mode(0o640));
    opened.map(|regular| regular.file)
}

fn expect_regular(kind: FileType) -> anyhow::Result<()> {
    let found = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    bail!("it is {found}: expected a regular file, or a symbolic link to one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::os::unix::fs::symlink;

    #[test]
    fn regular_files_and_links_to_them_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "text").expect("written");
        symlink(&file, &link).expect("a link");
        assert_eq!(read(&file).expect("text"), b"text");
        assert_eq!(read(&link).expect("text"), b"text");
        assert!(!read(Path::new("/proc/self/status")).expect("text").is_empty());
    }

    /// Attack: what never ends, and what waits for a writer that never comes.
    #[test]
    fn what_never_ends_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        mkfifoat(CWD, path("fifo"), Mode::RUSR | Mode::WUSR).expect("a FIFO");
        symlink("/dev/zero", path("link")).expect("a link");
        let large = File::create(path("large")).expect("a file");
        large.set_len(LARGEST + 1).expect("a hole");
        for (name, expected) in [
            ("fifo", "it is a FIFO: expected a regular file"),
            ("link", "it is a device: expected a regular file"),
            (".", "it is a folder: expected a regular file"),
            ("large", "it has more than 64 MiB"),
            ("none", "No such file"),
        ] {
            let error = format!("{:#}", read(&path(name)).expect_err("refused"));
            assert!(error.starts_with("cannot read ") && error.contains(expected), "{error}");
        }
    }
}
