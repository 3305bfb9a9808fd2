//! Files that an operator names (secrets, a password, options, accounts): regular ones of bounded size.
//!
//! A concentrator reads its secrets again while sessions wait for the answers to their echoes: nothing may hold it up.

use anyhow::Context;
use kernel::file::Regular;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The largest file that is read, bytes: as much as a million subscribers take.
pub const LARGEST: u64 = 64 << 20;

/// All that is in a regular file.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = Regular::open(path).and_then(|file| file.read(LARGEST));
    bytes.with_context(|| format!("cannot read {}", path.display()))
}

/// Opens a regular file for reading and for adding to it; makes it where there is none.
pub fn append(path: &Path) -> io::Result<File> {
    let opened = Regular::open_with(path, File::options().read(true).append(true).create(true).mode(0o640));
    opened.map(Regular::into_file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::fs;
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
