//! Folders of pins: `/sys/fs/bpf/rxlane/steer/NAMESPACE/INTERFACE/{link,steer,arrive,BUCKETS,…}`, of envelopes
//! `/sys/fs/bpf/rxlane/envelope/NAMESPACE/INTERFACE/{link,envelope,ENVELOPE,…}`, and of concentrators
//! `/sys/fs/bpf/rxlane/pppoe/NAMESPACE/INTERFACE/{link,SESSIONS,CONTROL}`.
//!
//! NAMESPACE is the inode of the network namespace, INTERFACE the name at the time of attaching. bpffs keeps names with
//! dots for itself (`bpf_lookup` in `kernel/bpf/inode.c`), so the dots of `eth0.35` become colons, which no interface's
//! name has. Where the name is taken by an attachment whose interface was renamed since, a space and the index follow.
//!
//! A folder with a link that has an interface is an attachment; any other is what a killed process or a removed
//! interface left. Whoever changes a folder holds flock(2) on it, so leftovers differ from work in progress; whoever looks for
//! leftovers shares it meanwhile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, flock, fstat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::bpffs::{self, DIRECTORY, MOUNT_POINT};
use crate::error::Error;
use crate::family::Family;
use crate::interface::Interface;
use crate::permission::refused;
use kernel::bpf::{self, LinkInfo};
use kernel::netlink::Xdp;

/// Names of pins besides those of the maps in [`layout::map`](crate::layout::map).
pub(crate) const LINK: &str = "link";
/// The program of the map of CPUs.
pub(crate) const ARRIVE: &str = "arrive";
/// The map that says how the programs were attached.
pub(crate) const RECORD: &str = "ABOUT";

/// The folder with all pins, in which each family has its own.
const OUTER: &str = "rxlane";

/// How often a lock is tried for, and the pause between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub struct Folder {
    pub(crate) family: Family,
    /// Inode of the network namespace, from the folder's path.
    pub(crate) namespace: u64,
    pub(crate) interface: String,
    name: String,
    above: OwnedFd,
    directory: OwnedFd,
}

/// A folder that no other process changes while this lives.
#[derive(Debug)]
pub(crate) struct Locked(pub(crate) Folder);

fn folder_name(interface: &str) -> String {
    interface.replace('.', ":")
}

fn interface_name(folder: &str) -> String {
    folder.split(' ').next().unwrap_or_default().replace(':', ".")
}

impl Folder {
    /// Its path in the mount namespace that has it.
    pub(crate) fn path(&self) -> PathBuf {
        let mut path = PathBuf::from(MOUNT_POINT);
        path.extend([OUTER, self.family.name()]);
        path.push(self.namespace.to_string());
        path.push(&self.name);
        path
    }

    /// A path by which the kernel finds a name in it, from any mount namespace.
    pub(crate) fn kernel_path(&self, name: &str) -> io::Result<String> {
        let path = bpffs::path_in(self.directory.as_fd(), name)?;
        path.into_string().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
    }

    /// Opens what is pinned under a name; `None`: nothing is.
    pub(crate) fn get(&self, name: &str) -> io::Result<Option<OwnedFd>> {
        let path = bpffs::path_in(self.directory.as_fd(), name)?;
        match bpf::get(&path) {
            Ok(fd) => Ok(Some(fd)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn pin(&self, fd: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
        let path = bpffs::path_in(self.directory.as_fd(), name);
        path.and_then(|path| bpf::pin(fd, &path))
            .map_err(|source| refused(format!("pin {}", self.path().join(name).display()), source))
    }

    /// What the kernel says of the pinned link; `None`: there is none.
    pub(crate) fn link(&self) -> Result<Option<LinkInfo>, Error> {
        let link = || self.get(LINK)?.map_or(Ok(None), |link| bpf::link_info(link.as_fd()));
        link().map_err(|source| refused(format!("open the pin {}", self.path().join(LINK).display()), source))
    }

    fn entries(&self) -> io::Result<Vec<String>> {
        entries(self.directory.as_fd())
    }

    /// Whether the folder still has its name, and not another of the same name in its place.
    fn is_in_place(&self) -> bool {
        let found = statat(&self.above, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let own = fstat(&self.directory);
        found.ok().zip(own.ok()).is_some_and(|(found, own)| found.st_ino == own.st_ino)
    }

    /// Waits a moment for the lock. `None`: the folder was removed.
    pub(crate) fn lock(self) -> Result<Option<Locked>, Error> {
        for _ in 0..TRIES {
            match flock(&self.directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if self.is_in_place() => return Ok(Some(Locked(self))),
                Ok(()) => return Ok(None),
                Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(PAUSE),
                Err(error) => {
                    return Err(refused(format!("lock {}", self.path().display()), error.into()));
                }
            }
        }
        Err(Error::Locked { interface: self.interface })
    }

    /// Takes a share of the lock, which whoever only looks holds with others, for as long as this lives. `false`: somebody
    /// changes the folder, or it was removed.
    pub(crate) fn share(&self) -> bool {
        flock(&self.directory, FlockOperation::NonBlockingLockShared).is_ok() && self.is_in_place()
    }
}

impl Locked {
    pub(crate) fn unlock(self) -> Result<Folder, Error> {
        let unlocked = flock(&self.0.directory, FlockOperation::Unlock);
        unlocked.map_err(|error| refused(format!("unlock {}", self.0.path().display()), error.into()))?;
        Ok(self.0)
    }

    /// Removes what is in the folder, a link without an interface included.
    pub(crate) fn empty(&self) -> Result<(), Error> {
        let folder = &self.0;
        let remains = |what: PathBuf, source: io::Error| Error::Remains {
            family: folder.family,
            interface: folder.interface.clone(),
            what,
            source,
        };
        let mut names = folder.entries().map_err(|source| remains(folder.path(), source))?;
        // The link's pin goes first: a folder without it is a leftover for everybody.
        names.sort_by_key(|name| name != LINK);
        for name in names {
            match unlinkat(&folder.directory, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(remains(folder.path().join(name), error.into())),
            }
        }
        Ok(())
    }

    /// Pins an object under a name, in the place of another.
    pub(crate) fn replace(&self, fd: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
        match unlinkat(&self.0.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => self.0.pin(fd, name),
            Err(error) => {
                Err(refused(format!("remove the pin {}", self.0.path().join(name).display()), error.into()))
            }
        }
    }

    /// Whether there is no attachment in it: `false`, there is one of an interface that had this name once.
    fn is_free_for(&self, interface: &Interface) -> Result<bool, Error> {
        let Some(link) = self.0.link()?.filter(|link| link.interface != 0) else { return Ok(true) };
        if interface.link()?.xdp.is_some_and(|xdp| xdp.has(link.program)) {
            let Folder { family, interface: attached, .. } = &self.0;
            let (family, interface, attached) = (*family, interface.name.clone(), attached.clone());
            return Err(Error::Attached { family, interface, attached });
        }
        Ok(false)
    }

    fn remove_if_empty(self) {
        let folder = self.0;
        if unlinkat(&folder.above, &folder.name, AtFlags::REMOVEDIR).is_ok() {
            let (family, namespace) = (folder.family, folder.namespace);
            // What is open keeps the file system mounted.
            drop(folder);
            remove_empty(family, namespace);
        }
    }

    /// Takes the program off the interface, if there is a link, and removes all pins and the folder.
    pub(crate) fn remove(self) -> Result<(), Error> {
        let folder = &self.0;
        // First, so that the program is off before the maps that others watch are removed. A link without an interface
        // cannot be detached, which is no error.
        if let Ok(Some(link)) = folder.get(LINK) {
            let _ = bpf::link_detach(link.as_fd());
        }
        self.empty()?;
        unlinkat(&folder.above, &folder.name, AtFlags::REMOVEDIR).map_err(|error| Error::Remains {
            family: folder.family,
            interface: folder.interface.clone(),
            what: folder.path(),
            source: error.into(),
        })?;
        let (family, namespace) = (folder.family, folder.namespace);
        // What is open keeps the file system mounted.
        drop(self);
        remove_empty(family, namespace);
        Ok(())
    }
}

/// Removes the folders above a removed one, as far as they are empty, and then the file system, where it is this program's. Others
/// may be making theirs at the same time: they try again (see [`create`]).
fn remove_empty(family: Family, namespace: u64) {
    let Ok(Some(root)) = bpffs::find() else { return };
    let (outer, inner) = (OUTER, family.name());
    let Ok(outer_fd) = openat(&root, outer, DIRECTORY, Mode::empty()) else { return };
    let Ok(inner_fd) = openat(&outer_fd, inner, DIRECTORY, Mode::empty()) else { return };
    let _ = unlinkat(&inner_fd, namespace.to_string(), AtFlags::REMOVEDIR);
    let _ = unlinkat(&outer_fd, inner, AtFlags::REMOVEDIR);
    let is_last = unlinkat(&root, outer, AtFlags::REMOVEDIR).is_ok();
    drop((root, outer_fd, inner_fd));
    if is_last {
        bpffs::unmount_if_own_and_empty();
    }
}

/// Makes the folder of an interface and locks it. What is in it already is a leftover.
pub(crate) fn create(family: Family, interface: &Interface) -> Result<Locked, Error> {
    let root = bpffs::find_or_mount()?;
    let plain = folder_name(&interface.name);
    let numbered = format!("{plain} {}", interface.index);
    // Another process may remove folders while they are empty.
    for _ in 0..TRIES {
        for name in [&plain, &numbered] {
            let made = create_in(root.as_fd(), family, interface.namespace, name);
            let folder = match made {
                Ok(folder) => folder,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
                Err(source) => {
                    return Err(refused(format!("make a folder for pins in {MOUNT_POINT}"), source));
                }
            };
            let Some(locked) = folder.lock()? else { break };
            match locked.is_free_for(interface) {
                Ok(true) => return Ok(locked),
                Ok(false) => {}
                Err(error) => {
                    locked.remove_if_empty();
                    return Err(error);
                }
            }
        }
    }
    Err(Error::Locked { interface: interface.name.clone() })
}

fn create_in(root: BorrowedFd<'_>, family: Family, namespace: u64, name: &str) -> io::Result<Folder> {
    let outer = subfolder(root, OUTER)?;
    let inner = subfolder(outer.as_fd(), family.name())?;
    let above = subfolder(inner.as_fd(), &namespace.to_string())?;
    let directory = subfolder(above.as_fd(), name)?;
    Ok(Folder { family, namespace, interface: interface_name(name), name: name.to_owned(), above, directory })
}

/// Opens a folder, making it where it is not there.
fn subfolder(above: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(above, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(openat(above, name, DIRECTORY, Mode::empty())?),
        Err(error) => Err(error.into()),
    }
}

/// All folders of pins of a family, of all network namespaces; none where there is no BPF file system.
pub(crate) fn folders(family: Family) -> Result<Vec<Folder>, Error> {
    let Some(root) = bpffs::find()? else { return Ok(Vec::new()) };
    let mut above = root;
    for name in [OUTER, family.name()] {
        match openat(&above, name, DIRECTORY, Mode::empty()) {
            Ok(next) => above = next,
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(error) => return Err(refused(format!("look into {MOUNT_POINT}/rxlane"), error.into())),
        }
    }
    let unreadable = |source| refused(format!("look into {MOUNT_POINT}/rxlane/{}", family.name()), source);
    let mut found = Vec::new();
    for namespace in entries(above.as_fd()).map_err(unreadable)? {
        // What other tools may have put there is not ours.
        let Ok(number) = namespace.parse::<u64>() else { continue };
        match in_namespace(above.as_fd(), family, number) {
            Ok(folders) => found.extend(folders),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(source) => return Err(unreadable(source)),
        }
    }
    Ok(found)
}

fn in_namespace(above: BorrowedFd<'_>, family: Family, namespace: u64) -> io::Result<Vec<Folder>> {
    let above = openat(above, namespace.to_string(), DIRECTORY, Mode::empty())?;
    let mut found = Vec::new();
    for name in entries(above.as_fd())? {
        match openat(&above, &name, DIRECTORY, Mode::empty()) {
            Ok(directory) => {
                let interface = interface_name(&name);
                let above = above.try_clone()?;
                found.push(Folder { family, namespace, interface, name, above, directory });
            }
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

fn entries(directory: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        // bpffs names are those that this program gave.
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// The folder of a family whose program an interface has.
///
/// Programs are compared and not indexes: they are the same after the interface was renamed or went to another
/// namespace.
pub(crate) fn attached_with(family: Family, xdp: &Xdp) -> Result<Option<(Folder, LinkInfo)>, Error> {
    for folder in folders(family)? {
        // A folder of which a pin cannot be opened, or not any more, is not the one.
        if let Ok(Some(link)) = folder.link()
            && link.interface != 0
            && xdp.has(link.program)
        {
            return Ok(Some((folder, link)));
        }
    }
    Ok(None)
}

/// What remains of an interface under its name and without its program: for [`Locked::remove`].
pub(crate) fn leftovers(family: Family, interface: &Interface) -> Result<Vec<Folder>, Error> {
    let mut found = Vec::new();
    for folder in folders(family)? {
        let is_its = folder.namespace == interface.namespace && folder.interface == interface.name;
        if is_its && folder.link()?.is_none_or(|link| link.interface == 0) {
            found.push(folder);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{folder_name, interface_name};

    #[test]
    fn names_of_interfaces_survive_the_way_through_names_of_folders() {
        for name in ["eth0", "eth0.35", "a..b.", "enp1s0f0np0.100"] {
            let folder = folder_name(name);
            assert!(!folder.contains('.'), "{folder}");
            assert_eq!(interface_name(&folder), name);
            assert_eq!(interface_name(&format!("{folder} 7")), name);
        }
    }
}
