//! Network namespaces: which one, and those with a name, which are mounted on a file as ip-netns(8) does it.

use crate::process::unshare_network;
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

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

/// Where `ip netns` looks for names.
pub const NAMES: &str = "/run/netns";

/// Makes an empty namespace with this name. Error: there is one already (`AlreadyExists`), or this process may not.
pub fn create(name: &str) -> io::Result<()> {
    let (folder, path) = (Path::new(NAMES), Path::new(NAMES).join(name));
    fs::create_dir_all(folder)?;
    // What one process mounts or unmounts there, those of other mount namespaces see, too.
    let share = || mount_change(folder, MountPropagationFlags::SHARED | MountPropagationFlags::REC);
    if let Err(Errno::INVAL) = share() {
        mount_bind(folder, folder)?;
        share()?;
    }
    File::options().write(true).create_new(true).mode(0o400).open(&path)?;
    in_thread(|| {
        unshare_network()?;
        Ok(mount_bind("/proc/thread-self/ns/net", &path)?)
    })
    .inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })
}

/// Takes a name from its namespace, which lives on as long as a process is inside.
pub fn remove(name: &str) -> io::Result<()> {
    let path = Path::new(NAMES).join(name);
    match unmount(&path, UnmountFlags::DETACH) {
        // Nothing is mounted there.
        Ok(()) | Err(Errno::INVAL) => fs::remove_file(&path),
        Err(error) => Err(error.into()),
    }
}

/// Runs `work` in a thread of its own inside a namespace with a name. A panic goes on in the caller. (`/sys` still shows the
/// namespace in which it was mounted.)
pub fn inside<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let file = File::open(Path::new(NAMES).join(name))?;
    in_thread(|| {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(work())
    })
}

fn in_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
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

    #[test]
    fn a_namespace_has_its_name_until_that_is_removed() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let name = format!("rxlane-kernel-{}", std::process::id());
        // Where this may not be done, the probe of crate testkit says so.
        let Ok(()) = create(&name) else { return };
        assert_eq!(create(&name).expect_err("it is there").kind(), io::ErrorKind::AlreadyExists);
        let (seen, loopback) =
            inside(&name, || (NetNs::current(), crate::netlink::link_by_name("lo"))).expect("inside");
        assert_eq!(seen.expect("procfs"), NetNs::at(&Path::new(NAMES).join(&name)).expect("a name"));
        assert!(!loopback.expect("every namespace has it").is_up());
        remove(&name).expect("removed");
        assert_eq!(inside(&name, || ()).expect_err("removed").kind(), io::ErrorKind::NotFound);
    }
}
