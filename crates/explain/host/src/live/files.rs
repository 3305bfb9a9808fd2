//! Files of procfs and sysfs as they are, with a bound: what `cat` would print.

use super::bundle::{Output, Unread, printable};
use kernel::cpu::CpuSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of one file that are read: `/proc/interrupts` of a machine with hundreds of CPUs takes a few million.
const MOST: u64 = 64 << 20;

/// A file's text.
pub(super) fn text(path: &Path) -> Output {
    Ok(printable_lines(&bytes(path)?))
}

/// A file below `/proc/net`, as its path below: of this thread's network namespace, which `/proc/net` need not show
/// (it is that of the process' first thread).
pub(super) fn of_this_namespace(name: &str) -> PathBuf {
    Path::new("/proc/thread-self/net").join(name)
}

/// A file's bytes.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(Unread(format!("longer than {MOST} bytes")));
    }
    Ok(bytes)
}

/// A file of one short line, without the blanks around it; `None` where it cannot be read.
pub(super) fn word(path: &Path) -> Option<String> {
    text(path).ok().map(|text| text.trim().to_owned())
}

/// Whether a file is missing, as against unreadable.
pub(super) fn is_missing(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The command that shows a file.
pub(super) fn cat(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    format!("cat {}", printable(path.as_os_str().as_bytes()))
}

fn printable_lines(bytes: &[u8]) -> String {
    // Nearly always UTF-8 as it is; only names of devices and processes can be anything else.
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.split(|&byte| byte == b'\n').map(|line| printable(line) + "\n").collect(),
    }
}

/// CPU lists as the kernel writes them (`0-3,8`): how many CPUs they name.
pub(super) fn cpus_in_list(list: &str) -> Option<usize> {
    CpuSet::parse_list(list).ok().map(|cpus| cpus.len())
}

/// Entries of a folder whose names are `prefix` and a number, by that number.
pub(super) fn numbered(folder: &Path, prefix: &str) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: String| Some((name.strip_prefix(prefix)?.parse().ok()?, name));
    let mut found: Vec<(u32, String)> =
        entries.filter_map(|entry| number(entry.file_name().into_string().ok()?)).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_counted() {
        assert_eq!(cpus_in_list("0-3,8,10-11\n"), Some(7));
        assert_eq!(cpus_in_list("\n"), Some(0));
        assert_eq!(
            (cpus_in_list("3-1"), cpus_in_list("x"), cpus_in_list("0-4294967295")),
            (None, None, None)
        );
    }

    #[test]
    fn a_missing_file_is_reported_in_the_systems_words() {
        let path = Path::new("/proc/nonexistent");
        assert_eq!(text(path), Err(Unread("No such file or directory".to_owned())));
        assert!(is_missing(path) && !is_missing(Path::new("/proc/self")));
        assert_eq!(cat(path), "cat /proc/nonexistent");
    }
}
