//! The file that a page, a bundle or a capture goes into: replaced as a whole ([`Replacement`]), so that an older one, or an input that
//! carries the same name, is never lost halfway, and a full disk leaves no half of it.

use anyhow::{Context, bail};
use kernel::file::Replacement;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Standard output, for a capture. Error: it is a terminal.
pub fn standard_output() -> anyhow::Result<StdoutLock<'static>> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        bail!(
            "a capture is binary, and standard output is a terminal; name a file or put a program behind it"
        );
    }
    Ok(stdout.lock())
}

/// A file that is yet to be written.
pub struct OutputFile {
    path: PathBuf,
    place: Place,
}

enum Place {
    Regular(Replacement),
    /// What is no regular file, such as /dev/stderr, is written directly; `None`: it is opened when the content is there.
    Other(Option<File>),
}

impl OutputFile {
    /// Makes sure that the file can be written, before hours of work and not after. Errors, which name the `option`: the place
    /// is one of the inputs, or cannot be written to.
    pub fn create(option: &str, path: &Path, inputs: &[PathBuf]) -> anyhow::Result<OutputFile> {
        OutputFile::create_by(option, path, inputs, |path| Replacement::create(path, 0o666))
    }

    /// The same, of a file that its owner alone may read.
    pub fn create_private(option: &str, path: &Path) -> anyhow::Result<OutputFile> {
        OutputFile::create_by(option, path, &[], Replacement::create_private)
    }

    fn create_by(
        option: &str,
        path: &Path,
        inputs: &[PathBuf],
        create: impl FnOnce(&Path) -> io::Result<Replacement>,
    ) -> anyhow::Result<OutputFile> {
        let cannot = || format!("cannot write {}", path.display());
        let existing = fs::metadata(path).ok();
        if let Some(existing) = &existing {
            let same = |input: &&PathBuf| fs::metadata(input).is_ok_and(|input| is_same(&input, existing));
            if let Some(input) = inputs.iter().find(same) {
                bail!("{option} {} is the input {}; name another file", path.display(), input.display());
            }
            if existing.is_dir() {
                bail!("{option} {} is a directory; name a file in it", path.display());
            }
        }
        if existing.is_none() && path.is_symlink() {
            bail!("{option} {} is a link to a file that does not exist; name that file", path.display());
        }
        let place = match existing {
            Some(existing) if !existing.is_file() => Place::Other(open_at_once(path).with_context(cannot)?),
            _ => Place::Regular(create(path).with_context(cannot)?),
        };
        Ok(OutputFile { path: path.to_owned(), place })
    }

    pub fn write(self, text: &str) -> anyhow::Result<()> {
        self.write_with(|mut file| file.write_all(text.as_bytes()))
    }

    pub fn write_with<T>(mut self, write: impl FnOnce(File) -> io::Result<T>) -> anyhow::Result<T> {
        let file = self.open()?;
        let written = write(file).with_context(|| format!("cannot write {}", self.path.display()))?;
        self.commit()?;
        Ok(written)
    }

    /// The file, empty, for content that is written bit by bit.
    pub fn open(&mut self) -> anyhow::Result<File> {
        let file = match &mut self.place {
            Place::Regular(replacement) => replacement.file().try_clone(),
            Place::Other(file) => match file.take() {
                Some(file) => Ok(file),
                None => File::options().write(true).open(&self.path),
            },
        };
        file.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Puts what was written in its place.
    pub fn commit(self) -> anyhow::Result<()> {
        match self.place {
            Place::Regular(replacement) => {
                replacement.commit().with_context(|| format!("cannot write {}", self.path.display()))
            }
            Place::Other(_) => Ok(()),
        }
    }
}

/// What is no regular file, opened without waiting for anybody: a pipe without a reader would keep the process for ever, behind
/// the measurement, and no signal would end it. `None` where it is opened when the page is there.
fn open_at_once(path: &Path) -> anyhow::Result<Option<File>> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = match File::options().write(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            bail!("nobody reads from the other end: start the reader first")
        }
        // The standard streams have names that cannot be opened, where they are sockets.
        Err(_) => return Ok(None),
    };
    // Who reads slowly is waited for.
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(Some(file))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
