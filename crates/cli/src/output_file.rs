//! The file that a page, a bundle or a capture goes into: written beside its place and moved there when it is whole, so that
//! an older one, or an input that carries the same name, is never lost halfway, and a full disk leaves no half of it. What a killed process left there is locked by
//! nobody, and goes when the next page is written to the same place.

use anyhow::{Context, bail};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::os::unix::ffi::OsStrExt;
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
    /// Beside `path`; `None` where `path` is no regular file, such as /dev/stderr, and is written directly.
    temporary: Option<PathBuf>,
    file: Option<File>,
}

impl OutputFile {
    /// Makes sure that the file can be written, before hours of work and not after. Errors, which name the `option`: the place
    /// is one of the inputs, or cannot be written to.
    pub fn create(option: &str, path: &Path, inputs: &[PathBuf]) -> anyhow::Result<OutputFile> {
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
            if !existing.is_file() {
                let file = open_at_once(path).with_context(cannot)?;
                return Ok(OutputFile { path: path.to_owned(), temporary: None, file });
            }
        }
        if existing.is_none() && path.is_symlink() {
            bail!("{option} {} is a link to a file that does not exist; name that file", path.display());
        }
        // Through a link, the file that it leads to is replaced, and not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().with_context(cannot)?;
        remove_left(&path, name);
        let mut own = name.to_owned();
        own.push(format!(".{}{PART}", std::process::id()));
        let temporary = path.with_file_name(own);
        let file = File::create_new(&temporary).with_context(cannot)?;
        // Where there are no locks it is as before: nothing is removed that may be somebody's.
        let _ = file.try_lock();
        if let Some(existing) = existing {
            file.set_permissions(existing.permissions()).with_context(cannot)?;
        }
        Ok(OutputFile { path, temporary: Some(temporary), file: Some(file) })
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
        match self.file.take() {
            Some(file) => Ok(file),
            None => File::options()
                .write(true)
                .open(&self.path)
                .with_context(|| format!("cannot write {}", self.path.display())),
        }
    }

    /// Puts what was written in its place.
    pub fn commit(mut self) -> anyhow::Result<()> {
        if let Some(temporary) = self.temporary.take() {
            let moved = fs::rename(&temporary, &self.path);
            if moved.is_err() {
                self.temporary = Some(temporary);
            }
            moved.with_context(|| format!("cannot write {}", self.path.display()))?;
        }
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

const PART: &str = ".part";

/// Removes what processes left beside `path` that were killed while they wrote to it: whoever lives holds a lock.
fn remove_left(path: &Path, name: &OsStr) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let other = entry.file_name();
        let number = other.as_bytes().strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"."));
        let number = number.and_then(|rest| rest.strip_suffix(PART.as_bytes()));
        let is_part =
            number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit));
        if is_part
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
        {
            let _ = fs::remove_file(entry.path());
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
