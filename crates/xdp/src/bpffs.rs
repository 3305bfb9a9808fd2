//! The BPF file system in which pins outlive this process.
//!
//! It is the one on `/sys/fs/bpf`, in the mount namespace that outlives the command. `ip netns exec` and many services
//! run in a mount namespace of their own, often with a `/sys` of their own, and what is mounted there goes with the
//! last process in it. So the file system is opened, and where there is none mounted, in the namespace of process 1;
//! where this process may not look at that (inside a container whose process 1 belongs to somebody else), in the
//! namespace of its oldest ancestor that it may look at. A directory opened there is used through its file descriptor,
//! and nothing else of this process moves.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::thread;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstatfs, open};
use rustix::mount::{MountFlags, mount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::Error;
use crate::{permission, sys};

/// Where it is mounted, here and everywhere.
pub(crate) const MOUNT_POINT: &str = "/sys/fs/bpf";

/// `BPF_FS_MAGIC` of `include/uapi/linux/magic.h`.
const MAGIC: u32 = 0xcafe_4a11;

/// Only this process's user looks into directories of pins.
pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Opens the BPF file system's root; `None`: none is mounted.
pub(crate) fn find() -> Result<Option<OwnedFd>, Error> {
    lasting(|| look().map_err(unreadable))
}

/// Opens the BPF file system's root, mounting it where there is none.
pub(crate) fn find_or_mount() -> Result<OwnedFd, Error> {
    lasting(|| match look().map_err(unreadable)? {
        Some(root) => Ok(root),
        None => mount_here(),
    })
}

/// A path that leads to a name in an open directory, whatever mount namespace that is in.
pub(crate) fn path_in(directory: BorrowedFd<'_>, name: &str) -> io::Result<CString> {
    sys::c_path(&format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

/// Whether the BPF file system is on its place in the mount namespace of the calling thread.
fn look() -> io::Result<Option<OwnedFd>> {
    let root = match open(MOUNT_POINT, DIRECTORY, Mode::empty()) {
        Ok(root) => root,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let kind = fstatfs(&root)?.f_type;
    // The field's type differs by architecture, the number has 32 bits.
    Ok((kind as u32 == MAGIC).then_some(root))
}

fn unreadable(source: io::Error) -> Error {
    permission::refused(format!("look into {MOUNT_POINT}"), source)
}

/// Mounts it in the mount namespace of the calling thread.
fn mount_here() -> Result<OwnedFd, Error> {
    let failed = |problem: String| Error::Bpffs {
        problem,
        way_out: format!("`mount -t bpf bpf {MOUNT_POINT}` as root, before the command, is what it needs"),
    };
    let under = match open(MOUNT_POINT, DIRECTORY, Mode::empty()) {
        Ok(under) => under,
        Err(rustix::io::Errno::NOENT) => {
            return Err(Error::Bpffs {
                problem: format!("there is no {MOUNT_POINT} to mount it on"),
                way_out: "it takes a kernel with CONFIG_BPF_SYSCALL, and sysfs on /sys (`mount -t sysfs sysfs /sys`)"
                    .to_owned(),
            });
        }
        Err(error) => return Err(unreadable(error.into())),
    };
    // Of two processes that mount at once the second would hide the pins of the first.
    flock(&under, FlockOperation::LockExclusive).map_err(|error| failed(error.to_string()))?;
    if let Some(root) = look().map_err(unreadable)? {
        return Ok(root);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("bpf", MOUNT_POINT, "bpf", flags, Some(c"mode=0700")).map_err(|error| match error {
        rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => {
            permission::refused(format!("mount a BPF file system on {MOUNT_POINT}"), error.into())
        }
        _ => failed(format!("mounting it on {MOUNT_POINT} fails ({error})")),
    })?;
    look()
        .map_err(unreadable)?
        .ok_or_else(|| failed(format!("mounted on {MOUNT_POINT}, it is not to be seen there")))
}

/// Runs `work` in the mount namespace that outlives this process.
fn lasting<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let Some(namespace) = other_namespace() else { return work() };
    let entering = || -> io::Result<()> {
        sys::leave_shared_file_system()?;
        Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || match entering() {
            Ok(()) => work(),
            // In a namespace that gets what is mounted outside, the file system can be the same.
            Err(_) if is_from_outside() => work(),
            Err(error) => Err(stuck(&error)),
        });
        let thread = thread.map_err(|source| Error::System { doing: "start a thread".to_owned(), source })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn stuck(error: &io::Error) -> Error {
    Error::Bpffs {
        problem: format!(
            "this process is in a mount namespace of its own, with which pins would vanish, and may not enter that of \
             process 1 ({error})"
        ),
        way_out: format!(
            "give it CAP_SYS_ADMIN and CAP_SYS_CHROOT, or run it outside (`nsenter --mount=/proc/1/ns/mnt`), where \
             {MOUNT_POINT} is a BPF file system"
        ),
    }
}

/// The mount namespace that outlives this process; `None`: the calling thread is in it, or no other can be seen.
fn other_namespace() -> Option<File> {
    let identity = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
    let own = File::open("/proc/thread-self/ns/mnt").ok()?;
    let mut candidates = vec![1];
    candidates.extend(ancestors().into_iter().rev());
    // The first thread of this process, where the calling one went elsewhere.
    candidates.push(std::process::id());
    let found = candidates.into_iter().find_map(|pid| File::open(format!("/proc/{pid}/ns/mnt")).ok())?;
    (identity(&found)? != identity(&own)?).then_some(found)
}

/// Numbers of the parent, its parent, and so on.
fn ancestors() -> Vec<u32> {
    /// Deeper chains are nobody's work.
    const MOST: usize = 256;
    let mut found = Vec::new();
    let mut pid = std::process::id();
    while let Some(parent) = parent_of(pid).filter(|&parent| parent > 1 && found.len() < MOST) {
        found.push(parent);
        pid = parent;
    }
    found
}

/// The fourth field of `/proc/PID/stat`; the second, in parentheses, can hold anything.
fn parent_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Whether the BPF file system of the calling thread's mount namespace came from, or is shared with, another one: its
/// line in mountinfo has a `shared:` or `master:` tag (proc_pid_mountinfo(5)).
fn is_from_outside() -> bool {
    let Ok(text) = fs::read_to_string("/proc/thread-self/mountinfo") else { return false };
    text.lines().any(|line| {
        let Some((mount, file_system)) = line.split_once(" - ") else { return false };
        let fields: Vec<&str> = mount.split(' ').collect();
        let tags = fields.get(6..).unwrap_or_default();
        file_system.starts_with("bpf ")
            && fields.get(4) == Some(&MOUNT_POINT)
            && tags.iter().any(|tag| tag.starts_with("shared:") || tag.starts_with("master:"))
    })
}
