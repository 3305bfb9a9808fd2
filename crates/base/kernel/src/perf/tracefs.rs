//! Number and format of tracepoints, from the kernel's trace file system (`Documentation/trace/events.rst`).

use crate::process::unshare_mounts;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::fs;
use std::io;
use std::path::Path;
use std::thread;

/// Where it is mounted, if it is; and before Linux 4.1.
const FOLDER: &str = "/sys/kernel/tracing";
const FORMER: &str = "/sys/kernel/debug/tracing";

/// A tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its number, which differs by kernel and boot.
    pub id: u64,
    /// Its fields and how they are printed, as the file `format` says.
    pub format: String,
}

/// Finds a tracepoint. Where the file system is not mounted, it is mounted for a moment where no other process sees it, which
/// takes CAP_SYS_ADMIN.
///
/// Errors: `PermissionDenied`: only root may read it, or lockdown forbids it; `NotFound`: it is not mounted and could not be, or
/// the kernel has no such tracepoint.
pub fn tracepoint(system: &str, name: &str) -> io::Result<Tracepoint> {
    for folder in [FOLDER, FORMER] {
        match read(Path::new(folder), system, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
    }
    thread::scope(|scope| {
        let reader = thread::Builder::new().spawn_scoped(scope, || {
            mount_privately()?;
            read(Path::new(FOLDER), system, name)
        })?;
        reader.join().unwrap_or_else(|_| Err(io::Error::other("the thread that reads it failed")))
    })
}

/// Mounts it in a mount namespace of the calling thread.
fn mount_privately() -> io::Result<()> {
    let missing = |_| io::Error::new(io::ErrorKind::NotFound, format!("{FOLDER} is not mounted"));
    unshare_mounts().map_err(missing)?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).map_err(io::Error::from).map_err(missing)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
    mount("tracefs", FOLDER, "tracefs", flags, None).map_err(io::Error::from).map_err(missing)
}

fn read(folder: &Path, system: &str, name: &str) -> io::Result<Tracepoint> {
    let point = folder.join("events").join(system).join(name);
    let id = fs::read_to_string(point.join("id"))?;
    let id = id.trim().parse().map_err(|_| io::Error::other("its number is none"))?;
    Ok(Tracepoint { id, format: fs::read_to_string(point.join("format"))? })
}
