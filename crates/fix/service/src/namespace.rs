//! Network namespaces that go away while something is up in them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often a daemon checks whether its network namespace was deleted.
const INTERVAL: Duration = Duration::from_secs(2);

/// The names of a network namespace (ip-netns(8)).
#[derive(Clone, Debug, Default)]
pub struct Names {
    namespace: u64,
    paths: Vec<PathBuf>,
}

impl Names {
    pub fn here() -> Names {
        let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |own| own.ino());
        let mut names = Names { namespace, paths: Vec::new() };
        names.paths = named().filter(|path| names.has(path)).collect();
        names
    }

    fn has(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| found.ino() == self.namespace)
    }

    /// Whether it had names and has lost them all: somebody deleted it, and only the processes in it keep it.
    pub fn are_removed(&self) -> bool {
        !self.paths.is_empty() && !self.paths.iter().any(|path| self.has(path))
    }

    /// Calls this once they are removed, from a thread of its own.
    pub fn on_removal(self, call: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let watch = move || {
            while !self.are_removed() {
                thread::sleep(INTERVAL);
            }
            call();
        };
        thread::Builder::new().name("namespace".to_owned()).spawn(watch).map(drop)
    }
}

fn named() -> impl Iterator<Item = PathBuf> {
    fs::read_dir("/run/netns").into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether `/proc` has the processes of the whole machine: this one is in the first PID namespace, which has a number of its
/// own (`PROC_PID_INIT_INO` in include/linux/proc_ns.h).
pub fn sees_all_processes() -> bool {
    const FIRST: u64 = 0xEFFF_FFFC;
    fs::metadata("/proc/self/ns/pid").is_ok_and(|found| found.ino() == FIRST)
}

/// Whether a network namespace has a name, or a thread, an open file or a mount that keeps it; true where that cannot be
/// seen. Looks at all processes.
pub fn exists(namespace: u64) -> bool {
    if named().any(|path| fs::metadata(path).is_ok_and(|found| found.ino() == namespace)) {
        return true;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let link = format!("net:[{namespace}]");
    let mut mounts = BTreeSet::new();
    processes.flatten().map(|entry| entry.path()).filter(|path| is_number(path)).any(|process| {
        let mounts_here = fs::metadata(process.join("ns/mnt")).map_or(0, |found| found.ino());
        let keeps_mount = || {
            let table = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
            table.lines().any(|line| line.split(' ').nth(3) == Some(&link))
        };
        let leads_there = |path: PathBuf| fs::read_link(path).is_ok_and(|to| to.as_os_str() == link.as_str());
        mounts.insert(mounts_here) && keeps_mount()
            || within(&process.join("task")).any(|thread| leads_there(thread.join("ns/net")))
            || within(&process.join("fd")).any(leads_there)
    })
}

fn is_number(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// What is in a folder; nothing of one that has been removed meanwhile.
fn within(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
