//! Files of records: regular ones and nothing else, read up to a bound.

use super::Error;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Octets of a record that are read.
const LONGEST: u64 = 1 << 20;

/// Opens a record; `None`: there is none.
pub(super) fn existing(path: &Path) -> Result<Option<File>, Error> {
    match regular(OpenOptions::new().read(true), path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::File { what: "read", path: path.to_owned(), source }),
    }
}

/// Opens a regular file and nothing else: a FIFO or a device could keep its reader for ever.
pub(super) fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// What is in a record, up to a bound.
pub(super) fn octets(file: &File) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    file.take(LONGEST).read_to_end(&mut octets)?;
    Ok(octets)
}

/// Removes a record, if there is one.
pub(super) fn remove(path: PathBuf) -> Result<(), Error> {
    let is_record = |metadata: fs::Metadata| match metadata.is_file() {
        true => fs::remove_file(&path),
        false => Err(io::Error::other("it is no regular file")),
    };
    match fs::symlink_metadata(&path).and_then(is_record) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::File { what: "remove", path, source })
        }
        _ => Ok(()),
    }
}
