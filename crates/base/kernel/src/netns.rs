//! Network namespaces.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which network namespace: the number in `readlink /proc/PID/ns/net`. It is unique while the namespace exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NetNs(pub u64);

impl NetNs {
    /// That of the calling thread: threads of a process can be in different ones.
    pub fn current() -> io::Result<NetNs> {
        NetNs::at(Path::new("/proc/thread-self/ns/net"))
    }

    /// That of a process. Error: there is no such process, or this one is not allowed to look.
    pub fn of(pid: u32) -> io::Result<NetNs> {
        NetNs::at(&Path::new("/proc").join(pid.to_string()).join("ns/net"))
    }

    /// That of a file: in `/proc`, or in `/run/netns`. Error: there is no such file. The message names it.
    pub fn at(path: &Path) -> io::Result<NetNs> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        fs::metadata(path).map(|file| NetNs(file.ino())).map_err(named)
    }
}

impl fmt::Display for NetNs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_what_readlink_prints() {
        let own = NetNs::current().expect("procfs");
        let link = fs::read_link("/proc/self/ns/net").expect("a link");
        assert_eq!(link.to_str(), Some(format!("net:[{own}]").as_str()));
        assert_eq!(NetNs::of(std::process::id()).expect("a number"), own);
        let error = NetNs::of(u32::MAX).expect_err("no such process");
        assert!(
            error.kind() == io::ErrorKind::NotFound
                && error.to_string().starts_with("/proc/4294967295/ns/net: ")
        );
    }
}
