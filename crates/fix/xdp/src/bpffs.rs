//! The BPF file system in which pins outlive this process.
//!
//! It is the one on `/sys/fs/bpf`, in the mount namespace that outlives the command. `ip netns exec` and many services
//! run in a mount namespace of their own, often with a `/sys` of their own, and what is mounted there goes with the
//! last process in it. So the file system is opened, and where there is none mounted, in the namespace of process 1;
//! where this process may not look at that (without CAP_SYS_PTRACE), and neither is in the same nor has the same file
//! system, in the namespace of its oldest ancestor that is in another one and that it may look at; that is kept, since
//! whoever started this process may end before it. Where it may look at none, it is refused: pins in its own would vanish
//! with it. A directory opened there is used through its file
//! descriptor, and nothing else of this process moves.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::fs::{
    FlockOperation, Mode, OFlags, StatVfsMountFlags, flock, fstat, fstatfs, fstatvfs, major, minor, open,
};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{Error, in_brackets};
use crate::permission;
use kernel::bpf;

/// Where it is mounted, here and everywhere.
pub(crate) const MOUNT_POINT: &str = "/sys/fs/bpf";

/// What stands in the place of a device in the list of mounts, so that it is known whose mount it is.
const SOURCE: &str = "rxlane";

/// `BPF_FS_MAGIC` of `include/uapi/linux/magic.h`.
const MAGIC: u32 = 0xcafe_4a11;

/// Only this process's user looks into directories of pins.
pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Opens the BPF file system's root; `None`: none is mounted.
pub(crate) fn find() -> Result<Option<OwnedFd>, Error> {
    lasting(|| mounted().map_err(unreadable))
}

/// Opens the BPF file system's root, mounting it where there is none.
pub(crate) fn find_or_mount() -> Result<OwnedFd, Error> {
    lasting(|| {
        let _lock = lock();
        match mounted().map_err(unreadable)? {
            Some(root) => Ok(root),
            None => mount_here(),
        }
    })
}

/// Keeps processes that look for a file system to put pins into, and one that takes it away, from each other: who has found it has it
/// open until there is a pin. `None`: it cannot be had, which whoever may look at the directory can bring about; a file system that is
/// empty for a moment may be taken from another process then.
fn lock() -> Option<OwnedFd> {
    let directory = open("/sys/fs", DIRECTORY, Mode::empty()).ok()?;
    for _ in 0..TRIES {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(directory),
            Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(PAUSE),
            Err(_) => return None,
        }
    }
    None
}

/// How often, and with what pause between, a lock is tried that somebody has, and a file system is unmounted that is in use: a process
/// that has just been ended closes its directories one after the other.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

/// Takes the BPF file system away again, where it was mounted by [`find_or_mount`] and there is nothing in it. While somebody
/// has a directory of it open, as whoever makes pins has, the kernel refuses, and it stays: the caller has closed its own.
pub(crate) fn unmount_if_own_and_empty() {
    let unmounted = lasting(|| {
        let mounts = Mounted::of("thread-self");
        let topmost = mounts.iter().rfind(|mounted| mounted.on == MOUNT_POINT);
        // The kernel puts iterators into the first one (CONFIG_BPF_PRELOAD).
        let is_kernels = |name: &OsStr| name == "maps.debug" || name == "progs.debug";
        let is_foreign =
            |entry: io::Result<fs::DirEntry>| !entry.is_ok_and(|entry| is_kernels(&entry.file_name()));
        let is_empty = || fs::read_dir(MOUNT_POINT).is_ok_and(|mut entries| !entries.any(is_foreign));
        if topmost.is_some_and(|mounted| mounted.source == SOURCE) {
            for _ in 0..TRIES {
                let lock = lock();
                // Whoever had it open may have put a pin there meanwhile.
                if !is_empty() || unmount(MOUNT_POINT, UnmountFlags::NOFOLLOW) != Err(Errno::BUSY) {
                    break;
                }
                drop(lock);
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    });
    // Where it cannot be looked at it stays, as it was.
    drop(unmounted);
}

/// Makes sure, changing nothing, that pins can be made where they outlive this process.
pub(crate) fn can_be_used() -> Result<(), Error> {
    let Some(root) = find()? else { return Ok(()) };
    let flags = fstatvfs(&root).map_err(|error| unreadable(error.into()))?.f_flag;
    if flags.contains(StatVfsMountFlags::RDONLY) {
        return Err(no_place(&format!(
            "the one on {MOUNT_POINT} is mounted read-only; `mount -o remount,rw {MOUNT_POINT}` as root makes it \
             writable; in a systemd unit, ProtectKernelTunables=no"
        )));
    }
    Ok(())
}

/// A path that leads to a name in an open directory, whatever mount namespace that is in.
pub(crate) fn path_in(directory: BorrowedFd<'_>, name: &str) -> io::Result<CString> {
    bpf::c_path(&format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

/// Whether the BPF file system is on its place in the mount namespace of the calling thread.
fn mounted() -> io::Result<Option<OwnedFd>> {
    let root = match open(MOUNT_POINT, DIRECTORY, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT) => return Ok(None),
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
    let failed = |problem: String| {
        no_place(&format!(
            "{problem}; `mount -t bpf bpf {MOUNT_POINT}` as root, before the command, is what it needs"
        ))
    };
    let under = match open(MOUNT_POINT, DIRECTORY, Mode::empty()) {
        Ok(under) => under,
        Err(Errno::NOENT) => {
            return Err(no_place(&format!(
                "there is no {MOUNT_POINT} to mount it on; it takes a kernel with CONFIG_BPF_SYSCALL, and sysfs on /sys \
                 (`mount -t sysfs sysfs /sys`)"
            )));
        }
        Err(error) => return Err(unreadable(error.into())),
    };
    // Of two processes that mount at once the second would hide the pins of the first.
    flock(&under, FlockOperation::LockExclusive).map_err(|error| failed(error.to_string()))?;
    if let Some(root) = mounted().map_err(unreadable)? {
        return Ok(root);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(SOURCE, MOUNT_POINT, "bpf", flags, Some(c"mode=0700")).map_err(|error| match error {
        Errno::PERM | Errno::ACCESS => {
            permission::refused(format!("mount a BPF file system on {MOUNT_POINT}"), error.into())
        }
        _ => failed(format!("mounting it on {MOUNT_POINT} fails ({error})")),
    })?;
    mounted()
        .map_err(unreadable)?
        .ok_or_else(|| failed(format!("mounted on {MOUNT_POINT}, it is not to be seen there")))
}

/// Runs `work` in the mount namespace that outlives this process.
fn lasting<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let (namespace, pid) = match place()? {
        Place::Here => return work(),
        Place::There { namespace, of } => (namespace, of),
    };
    let entering = || -> io::Result<()> {
        kernel::process::unshare_file_system()?;
        Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || match entering() {
            Ok(()) => work(),
            Err(_) if has_that_of(pid) => work(),
            Err(error) => Err(stuck(&format!("enter that of process {pid} ({error})"))),
        });
        thread
            .map_err(Error::system("start a thread"))?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn stuck(refused: &str) -> Error {
    let missing = permission::missing();
    if !missing.is_empty() {
        let doing =
            format!("see what is pinned on {MOUNT_POINT}, outside the mount namespace of this process");
        return Error::NotPermitted { doing, missing };
    }
    let missing = in_brackets(&permission::missing_to_move());
    no_place(&format!(
        "this process is in a mount namespace of its own, with which pins would vanish, and may not {refused}{missing}; \
         give it CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_SYS_CHROOT, or run it outside (`nsenter --mount=/proc/1/ns/mnt`), \
         where {MOUNT_POINT} is a BPF file system"
    ))
}

/// There is no BPF file system where pins would survive this process, and none could be mounted.
fn no_place(why: &str) -> Error {
    Error::Lacks(format!("no BPF file system for pins: {why}"))
}

enum Place {
    Here,
    There { namespace: File, of: u32 },
}

/// The first mount namespace of an ancestor that was found, with that ancestor's number.
static OF_ANCESTOR: OnceLock<(File, u32)> = OnceLock::new();

fn place() -> Result<Place, Error> {
    let identity = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
    let Ok(own) = File::open("/proc/thread-self/ns/mnt") else { return Ok(Place::Here) };
    let place = |namespace: File, of: u32| match identity(&namespace) == identity(&own) {
        true => Place::Here,
        false => Place::There { namespace, of },
    };
    let refused = match File::open("/proc/1/ns/mnt") {
        Ok(namespace) => return Ok(place(namespace, 1)),
        Err(refused) => refused,
    };
    // Without CAP_SYS_PTRACE only what has no more capabilities than this process is looked at that way.
    if is_in_that_of(1) || has_that_of(1) {
        return Ok(Place::Here);
    }
    // The first thread of this process, where the calling one went elsewhere.
    let others = ancestors().into_iter().rev().chain([std::process::id()]);
    let mut places =
        others.filter_map(|pid| Some(place(File::open(format!("/proc/{pid}/ns/mnt")).ok()?, pid)));
    // An ancestor in the same namespace as this process may end with it.
    let other = places.find(|place| matches!(place, Place::There { .. }));
    if let Some(Place::There { namespace, of }) = &other
        && let Ok(namespace) = namespace.try_clone()
    {
        OF_ANCESTOR.get_or_init(|| (namespace, *of));
    }
    let kept = || {
        let (namespace, of) = OF_ANCESTOR.get()?;
        Some(place(namespace.try_clone().ok()?, *of))
    };
    other.or_else(kept).ok_or_else(|| stuck(&format!("look at that of process 1 ({refused})")))
}

/// Numbers of the parent, its parent, and so on.
fn ancestors() -> Vec<u32> {
    const MOST: usize = 256;
    let mut found = Vec::new();
    let mut pid = std::process::id();
    while let Some(parent) = kernel::process::parent(pid).filter(|&parent| parent > 1 && found.len() < MOST) {
        found.push(parent);
        pid = parent;
    }
    found
}

/// Whether the calling thread is in the mount namespace of a process: the numbers of mounts are unique on the machine
/// (proc_pid_mountinfo(5)), and who may read them need not be allowed to look at the namespace.
fn is_in_that_of(pid: u32) -> bool {
    let (own, other) = (Mounted::of("thread-self"), Mounted::of(&pid.to_string()));
    own.iter().any(|mounted| other.iter().any(|theirs| theirs.number == mounted.number))
}

/// Whether the BPF file system of the calling thread's mount namespace is that of a process, in a namespace copied from
/// or shared with its own. What is mounted here is looked at itself: another mount may hide one that mountinfo lists.
fn has_that_of(pid: u32) -> bool {
    let Some(device) = mounted().ok().flatten().and_then(|root| fstat(&root).ok()).map(|found| found.st_dev)
    else {
        return false;
    };
    let device = format!("{}:{}", major(device), minor(device));
    Mounted::of(&pid.to_string()).iter().any(|theirs| theirs.on == MOUNT_POINT && theirs.device == device)
}

/// A line of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Debug, PartialEq, Eq)]
struct Mounted {
    number: String,
    /// Numbers of the file system's device: of two BPF file systems they differ.
    device: String,
    on: String,
    /// What was named as its device.
    source: String,
}

impl Mounted {
    /// Nothing where it cannot be read.
    fn of(process: &str) -> Vec<Mounted> {
        let text = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default();
        text.lines().filter_map(Mounted::read).collect()
    }

    fn read(line: &str) -> Option<Mounted> {
        let mut fields = line.split(' ').map(str::to_owned);
        let (number, _parent, device) = (fields.next()?, fields.next()?, fields.next()?);
        let (_root, on) = (fields.next()?, fields.next()?);
        // Behind a number of optional fields and a hyphen: the type, the source, the file system's options.
        let source = fields.skip_while(|field| field != "-").nth(2)?;
        Some(Mounted { number, device, on, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_read() {
        let line = "42 27 0:35 / /sys/fs/bpf rw,nosuid shared:9 master:3 - bpf rxlane rw,mode=700";
        let read = Mounted::read(line).expect("a mount");
        assert_eq!(
            [&*read.number, &read.device, &read.on, &read.source],
            ["42", "0:35", MOUNT_POINT, SOURCE]
        );
        assert_eq!(Mounted::read("42 27 0:35 /"), None);
    }

    #[test]
    fn a_process_is_in_its_own_mount_namespace() {
        assert!(is_in_that_of(std::process::id()));
    }
}
