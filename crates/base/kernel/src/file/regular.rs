//! Regular files of bounded size.

use super::expect_trusted;
use rustix::fs::OFlags;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A regular file, open. A FIFO holds up whoever opens it until somebody writes, `/dev/zero` never ends, and opening a device may
/// start it; none of them is opened.
#[derive(Debug)]
pub struct Regular {
    file: File,
    metadata: Metadata,
}

impl Regular {
    /// Opens it for reading; a symbolic link to one will do. Error: there is none ([`NotFound`](ErrorKind::NotFound)), or it is
    /// something else. The caller adds the path.
    pub fn open(path: &Path) -> io::Result<Regular> {
        Regular::open_with(path, File::options().read(true))
    }

    /// The same of a file that nobody but root and this user can change ([`expect_trusted`]).
    pub fn open_trusted(path: &Path) -> io::Result<Regular> {
        expect_trusted(path)?;
        Regular::open(path)
    }

    /// Opens it, or makes it, with these options, whose custom flags are replaced.
    pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<Regular> {
        // Looked at before it is opened, for the sake of devices; and after, since it may be another one by then.
        match fs::metadata(path) {
            Ok(metadata) => expect_regular(metadata.file_type())?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // Without O_NONBLOCK a FIFO would wait for its writer.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let file = options.custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        expect_regular(metadata.file_type())?;
        Ok(Regular { file, metadata })
    }

    /// All that is in it from where it stands. Error: it has more than `most` bytes
    /// ([`FileTooLarge`](ErrorKind::FileTooLarge)), or cannot be read.
    pub fn read(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One of procfs says that it is empty, and one that grows has more than it said.
        (&self.file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            let limit = match most >> 20 {
                0 => format!("{most} bytes"),
                mebibytes => format!("{mebibytes} MiB"),
            };
            return Err(io::Error::new(
                ErrorKind::FileTooLarge,
                format!("it has more than {limit}, which is the most"),
            ));
        }
        Ok(bytes)
    }

    /// Whether others than its owner may read it.
    pub fn is_readable_by_others(&self) -> bool {
        self.metadata.mode() & 0o044 != 0
    }

    /// The file.
    pub fn into_file(self) -> File {
        self.file
    }
}

fn expect_regular(kind: FileType) -> io::Result<()> {
    let found = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::other(format!("it is {found}: expected a regular file, or a symbolic link to one")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::os::unix::fs::symlink;

    const MOST: u64 = 64 << 20;

    fn read(path: &Path) -> io::Result<Vec<u8>> {
        Regular::open(path)?.read(MOST)
    }

    #[test]
    fn regular_files_and_links_to_them_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "text").expect("written");
        symlink(&file, &link).expect("a link");
        assert_eq!(read(&file).expect("text"), b"text");
        assert_eq!(read(&link).expect("text"), b"text");
        assert!(!read(Path::new("/proc/self/status")).expect("text").is_empty());
        let error = Regular::open(&file).and_then(|file| file.read(3)).expect_err("too long");
        assert_eq!(error.to_string(), "it has more than 3 bytes, which is the most");
    }

    /// Attack: what never ends, and what waits for a writer that never comes.
    #[test]
    fn what_never_ends_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        mkfifoat(CWD, path("fifo"), Mode::RUSR | Mode::WUSR).expect("a FIFO");
        symlink("/dev/zero", path("link")).expect("a link");
        File::create(path("large")).expect("a file").set_len(MOST + 1).expect("a hole");
        for (name, expected) in [
            ("fifo", "it is a FIFO: expected a regular file"),
            ("link", "it is a device: expected a regular file"),
            (".", "it is a folder: expected a regular file"),
            ("large", "it has more than 64 MiB"),
            ("none", "No such file"),
        ] {
            let error = read(&path(name)).expect_err("refused").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
