//! Pins of interfaces that were removed or moved to another network namespace, and of processes killed while they attached.

use std::path::PathBuf;

use crate::error::Error;
use crate::family::Family;
use crate::pins::{self, Folder};
use kernel::bpf::LinkInfo;
use kernel::netlink;

/// Pins of which no program is on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    pub family: Family,
    /// The name that the interface had.
    pub interface: String,
    /// The inode of its network namespace.
    pub namespace: u64,
    pub why: Stale,
    /// The folder of the pins, as seen in the mount namespace that has them.
    pub folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stale {
    /// The link has no interface any more: that was removed, or a process was killed right after it had taken the
    /// program off.
    Removed,
    /// There is no link: a process was killed while it attached or detached.
    Unfinished,
}

/// Pins of a family that do nothing, of all network namespaces whose pins are in this BPF file system. Folders that a process
/// works on at this moment are left out. Empty where there is no BPF file system.
pub fn dead(family: Family) -> Result<Vec<Dead>, Error> {
    let mut found = Vec::new();
    for folder in pins::folders(family)? {
        if death(&folder)?.is_none() {
            continue;
        }
        // Only what nobody works on; it may have come to life before the lock. Others who look at the same time are in
        // nobody's way: one of them would not see what there is.
        if !folder.share() {
            continue;
        }
        if let Some(why) = death(&folder)? {
            let path = folder.path();
            let Folder { family, namespace, interface, .. } = folder;
            found.push(Dead { family, interface, namespace, why, folder: path });
        }
    }
    Ok(found)
}

/// The index, where it is now, of an interface that was attached under that name in the namespace and has left it; `None`:
/// there is none, or it takes privileges to know.
pub fn away(family: Family, name: &str, namespace: u64) -> Option<u32> {
    let folders = pins::folders(family).ok()?;
    folders
        .iter()
        .filter(|folder| folder.interface == name && folder.namespace == namespace)
        .find_map(|folder| moved(&folder.link().ok()??))
}

/// The index, where it is now, of the interface that a link holds a program on; `None`: it is here, or was removed.
pub(crate) fn moved(link: &LinkInfo) -> Option<u32> {
    let here = netlink::link_by_index(link.interface).ok().and_then(|here| here.xdp);
    let is_here = here.is_some_and(|xdp| xdp.has(link.program));
    (link.interface != 0 && !is_here).then_some(link.interface)
}

/// Whether an interface has its program still that was attached in the namespace, wherever it is now; true where it takes
/// privileges to know.
pub fn is_attached_from(family: Family, namespace: u64) -> bool {
    let Ok(folders) = pins::folders(family) else { return true };
    folders.iter().filter(|folder| folder.namespace == namespace).any(|folder| match folder.link() {
        Ok(link) => link.is_some_and(|link| link.interface != 0),
        Err(_) => true,
    })
}

/// Removes pins that [`dead`] found, if they are still dead. `false`: they are not, or a process works on them.
pub fn clear_dead(dead: &Dead) -> Result<bool, Error> {
    let Some(folder) = pins::folders(dead.family)?.into_iter().find(|folder| folder.path() == dead.folder)
    else {
        return Ok(false);
    };
    let locked = match folder.lock() {
        Ok(Some(locked)) => locked,
        Ok(None) | Err(Error::Locked { .. }) => return Ok(false),
        Err(other) => return Err(other),
    };
    if death(&locked.0)?.is_none() {
        return Ok(false);
    }
    locked.remove()?;
    Ok(true)
}

fn death(folder: &Folder) -> Result<Option<Stale>, Error> {
    Ok(match folder.link()? {
        None => Some(Stale::Unfinished),
        Some(link) if link.interface == 0 => Some(Stale::Removed),
        Some(_) => None,
    })
}
