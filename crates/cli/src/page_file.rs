//! The file that a page goes into: written beside its place and moved there when it is whole, so that an
//! older page, or an input that carries the same name, is never lost halfway.

use anyhow::{Context, bail};
use std::fs::{self, File, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A page that is yet to be written.
pub struct PageFile {
    path: PathBuf,
    /// Beside `path`; `None` where `path` is no regular file, such as /dev/stderr, and is written directly.
    temporary: Option<PathBuf>,
    file: Option<File>,
}

impl PageFile {
    /// Makes sure that the page can be written, before hours of reading and not after. Errors: the place is
    /// one of the inputs, or cannot be written to.
    pub fn create(path: &Path, inputs: &[PathBuf]) -> anyhow::Result<PageFile> {
        let cannot = || format!("cannot write {}", path.display());
        let existing = fs::metadata(path).ok();
        if let Some(existing) = &existing {
            let same = |input: &&PathBuf| fs::metadata(input).is_ok_and(|input| is_same(&input, existing));
            if let Some(input) = inputs.iter().find(same) {
                bail!("--html {} is the input {}; name another file", path.display(), input.display());
            }
            if existing.is_dir() {
                bail!("--html {} is a directory; name a file in it", path.display());
            }
            if !existing.is_file() {
                return Ok(PageFile { path: path.to_owned(), temporary: None, file: None });
            }
        }
        // Through a link, the file that it leads to is replaced, and not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name = path.file_name().with_context(cannot)?.to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = File::create_new(&temporary).with_context(cannot)?;
        if let Some(existing) = existing {
            file.set_permissions(existing.permissions()).with_context(cannot)?;
        }
        Ok(PageFile { path, temporary: Some(temporary), file: Some(file) })
    }

    /// Writes the page and puts it in its place.
    pub fn write(mut self, page: &str) -> anyhow::Result<()> {
        let cannot = format!("cannot write {}", self.path.display());
        let mut file = match self.file.take() {
            Some(file) => file,
            None => File::options().write(true).open(&self.path).context(cannot.clone())?,
        };
        file.write_all(page.as_bytes()).context(cannot.clone())?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path).context(cannot)?;
            self.temporary = None;
        }
        Ok(())
    }
}

impl Drop for PageFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
