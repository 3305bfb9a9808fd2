//! Network namespaces that go with their guard, and with [`sweep`] or the next run where the guard's process was killed.

mod held;
mod leftover;
mod lent;

pub use leftover::{SETTINGS, remove_of as sweep};
pub use lent::Lent;

use crate::installed::missing;
use crate::supervise::{ThreadError, started};
use held::{Held, Taken};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Where ip-netns(8) keeps the names, and where [`Folder`]s are.
const NAMES: &str = "/run/netns";
const FOLDERS: &str = "/run";
/// Counters of the interfaces of the namespace in which a thread is; `/sys` shows those of the one in which it was mounted.
const DEVICES: &str = "/proc/thread-self/net/dev";
/// Behind it stand the number of the process and a number of its own.
const PREFIX: &str = "rxlane-scene-";
/// Names that are tried: a process of another PID namespace may have the same number, and take the same ones.
const TRIES: usize = 1000;

/// Namespaces, or what is in them, could not be made.
#[derive(Debug, Error)]
pub enum SceneError {
    /// Not root.
    #[error("network namespaces and interfaces in them take root")]
    NotRoot,
    /// A program is missing; which, and how to get it.
    #[error("{0}")]
    NoProgram(String),
    /// A program failed.
    #[error("{command}: {said}")]
    Failed {
        /// What was run.
        command: String,
        /// Its words.
        said: String,
    },
    /// No thread can be started.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// Another call failed.
    #[error("{what}: {cause}")]
    System {
        /// What was being done.
        what: String,
        /// What the kernel said.
        cause: io::Error,
    },
}

impl SceneError {
    /// What helps where the machine has no more of something, by the number of the error or, of a program, by its words.
    pub(crate) fn way_out(&self) -> Option<&'static str> {
        let is = |errno: Errno| match self {
            SceneError::System { cause, .. } => cause.raw_os_error() == Some(errno.raw_os_error()),
            SceneError::Failed { said, .. } => {
                let words = io::Error::from(errno).to_string();
                words.split(" (os error").next().is_some_and(|words| said.contains(words))
            }
            _ => false,
        };
        if is(Errno::MFILE) || is(Errno::NFILE) {
            Some("`ulimit -n NUMBER` allows more")
        } else if is(Errno::AGAIN) {
            Some(
                "`ulimit -u` and the control group's pids.max say how many processes and threads there may be",
            )
        } else if is(Errno::NOSPC) {
            Some("/run is full (df /run; df -i /run), or user.max_net_namespaces is reached")
        } else {
            None
        }
    }
}

/// A network namespace, removed when this is dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// It keeps the namespace, too, until it is dropped.
    _held: Held,
}

impl Namespace {
    /// Makes one with the loopback interface up and IPv6 off, so that nothing but what is measured sends frames. `role` ends
    /// its name. Error: not root, no `ip`, or what `ip` said; nothing is left behind.
    pub fn new(role: &str) -> Result<Namespace, SceneError> {
        if !rustix::process::geteuid().is_root() {
            return Err(SceneError::NotRoot);
        }
        let namespace = Namespace::named(|| format!("{}-{role}", next_name()))?;
        namespace.inside(|| {
            // A kernel without IPv6 has no such files.
            for scope in ["all", "default"] {
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
            }
        })?;
        ip(&["-n", &namespace.name, "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    fn named(mut name: impl FnMut() -> String) -> Result<Namespace, SceneError> {
        let make = |name: String| {
            let was_there = Path::new(NAMES).join(&name).exists();
            match add(&name) {
                Ok(()) => {}
                Err(SceneError::Failed { .. }) if was_there => return Ok(None),
                Err(error) => return Err(error),
            }
            let held = held::take_namespace(Path::new(NAMES), &name);
            if let Ok(Taken::Own(held)) = held {
                return Ok(Some(Namespace { name, _held: held }));
            }
            // Where a sweeping process was faster, it removes it as well.
            let _ = ip(&["netns", "del", &name]);
            let failed = |cause| SceneError::System { what: format!("locking {name}"), cause };
            held.map(|_| None).map_err(failed)
        };
        free(|| make(name()))
    }

    /// Its name, as `ip -n` takes it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs a program inside, with `/sys` showing its interfaces (`ip netns exec`, which becomes the
    /// program).
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs a program inside and gives its standard output. Error: it does not start, or fails, with its words.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, SceneError> {
        let mut command = self.command(program);
        let said = output(command.args(arguments), || format!("{program} {}", arguments.join(" ")));
        // It is `ip` that does not find it, and says so in words of its own.
        said.map_err(|error| missing(program).map_or(error, SceneError::NoProgram))
    }

    /// Runs `ip` for it.
    pub fn ip(&self, arguments: &[&str]) -> Result<(), SceneError> {
        ip(&[&["-n", self.name.as_str()][..], arguments].concat())
    }

    /// Runs a closure inside, in a thread of its own; so are the threads that it starts. `/sys` shows what it did before.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
        inside(&self.name, work)
    }

    /// A pair of virtual Ethernet devices, `near` in here and `far` in there, with so many queues each, both up. `mtu` in
    /// bytes; a frame sent from user space with two tags takes 4 more than one without.
    pub fn veth(
        &self,
        near: &str,
        (there, far): (&Namespace, &str),
        queues: u16,
        mtu: u16,
    ) -> Result<(), SceneError> {
        let (queues, mtu) = (queues.to_string(), mtu.to_string());
        let size = ["mtu", &mtu, "numrxqueues", &queues, "numtxqueues", &queues];
        let this = ["link", "add", "name", near];
        let peer = ["type", "veth", "peer", "name", far, "netns", &there.name];
        self.ip(&[&this[..], &size, &peer, &size].concat())?;
        self.ip(&["link", "set", "dev", near, "up"])?;
        there.ip(&["link", "set", "dev", far, "up"])
    }

    /// Processes inside.
    pub fn pids(&self) -> Result<Vec<u32>, SceneError> {
        pids(&self.name)
    }

    /// Puts an adapter of this machine in here, set down, until what is given is dropped. Error: what `ip` said: there is no
    /// such adapter.
    pub fn borrow(&self, adapter: &str) -> Result<Lent, SceneError> {
        Lent::take(adapter, &self.name)
    }

    /// A counter of an interface: `rx_packets` or `tx_packets`.
    pub fn counter(&self, interface: &str, counter: &str) -> Result<u64, SceneError> {
        let failed =
            |cause: io::Error| SceneError::System { what: format!("{counter} of {interface}"), cause };
        let text = self.inside(|| fs::read_to_string(DEVICES))?.map_err(failed)?;
        counted(&text, interface, counter).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
    }

    /// Whether an interface is up and has a carrier.
    pub fn works(&self, interface: &str) -> Result<bool, SceneError> {
        let link = self.inside(|| kernel::netlink::link_by_name(interface))?;
        link.map(|link| link.works())
            .map_err(|cause| SceneError::System { what: format!("looking for {interface}"), cause })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What is gone already needs no removal.
        if ip(&["netns", "del", &self.name]).is_err() {
            // Where no process can be started any more: what ip-netns(8) does.
            let path = Path::new(NAMES).join(&self.name);
            let _ = unmount(&path, UnmountFlags::DETACH);
            let _ = fs::remove_file(&path);
        }
    }
}

/// A folder for what programs in namespaces keep while they run; removed when this is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _held: Held,
}

impl Folder {
    /// Makes it.
    pub fn new() -> Result<Folder, SceneError> {
        let make = || {
            let path = Path::new(FOLDERS).join(next_name());
            // Others than root could hold its lock.
            let made = match DirBuilder::new().mode(0o700).create(&path) {
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
                made => made.and_then(|()| held::take(&path)),
            };
            match made {
                Ok(Taken::Own(held)) => Ok(Some(Folder { path, _held: held })),
                Ok(Taken::Others | Taken::Gone) => Ok(None),
                Err(cause) => Err(SceneError::System { what: format!("making {}", path.display()), cause }),
            }
        };
        free(make)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// What is made under the first name that is free; `None` of `make`: another process has it.
fn free<T>(mut make: impl FnMut() -> Result<Option<T>, SceneError>) -> Result<T, SceneError> {
    for _ in 0..TRIES {
        if let Some(made) = make()? {
            return Ok(made);
        }
    }
    let cause = io::Error::new(io::ErrorKind::AlreadyExists, format!("{TRIES} of them are taken"));
    Err(SceneError::System { what: format!("names that begin with {PREFIX}"), cause })
}

/// A name that nobody has had in this process; the first sweeps what others left.
fn next_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    static SWEPT: Once = Once::new();
    SWEPT.call_once(leftover::remove);
    format!("{PREFIX}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn inside<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
    let failed = |cause: io::Error| SceneError::System { what: format!("entering {name}"), cause };
    let file = File::open(Path::new(NAMES).join(name)).map_err(failed)?;
    thread::scope(|scope| {
        let thread = started(scope, || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        })?;
        let done: Result<T, Errno> = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.map_err(|errno| failed(errno.into()))
    })
}

/// A counter in the text of [`DEVICES`], whose columns are those of `dev_seq_printf_stats` (net/core/net-procfs.c).
fn counted(text: &str, interface: &str, counter: &str) -> Option<u64> {
    let column = match counter {
        "rx_packets" => 1,
        "tx_packets" => 9,
        _ => return None,
    };
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(':'));
    let (_, counters) = lines.find(|(name, _)| name.trim() == interface)?;
    counters.split_whitespace().nth(column)?.parse().ok()
}

fn pids(name: &str) -> Result<Vec<u32>, SceneError> {
    let listed =
        output(Command::new("ip").args(["netns", "pids", name]), || format!("ip netns pids {name}"))?;
    Ok(listed.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

/// Makes a namespace. ip-netns(8) waits for a lock on the folder of the names, which everybody can open, and so hold for ever.
fn add(name: &str) -> Result<(), SceneError> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let shown = || format!("ip netns add {name}");
    let failed = |cause| SceneError::System { what: shown(), cause };
    let mut command = Command::new("ip");
    command.args(["netns", "add", name]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn().map_err(|cause| not_started(&shown, cause))?;
    let start = Instant::now();
    while child.try_wait().map_err(failed)?.is_none() {
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            let seconds = PATIENCE.as_secs();
            let said = format!(
                "has not ended after {seconds} s: somebody may hold a lock on {NAMES} (lslocks, or fuser -v {NAMES}, says who)"
            );
            return Err(SceneError::Failed { command: shown(), said });
        }
        thread::sleep(Duration::from_millis(1));
    }
    said(child.wait_with_output().map_err(failed)?, shown).map(drop)
}

fn ip(arguments: &[&str]) -> Result<(), SceneError> {
    output(Command::new("ip").args(arguments), || format!("ip {}", arguments.join(" "))).map(drop)
}

/// What a program says. ^C of a terminal does not reach it: this process ends when it has taken back what it did.
fn output(command: &mut Command, shown: impl Fn() -> String) -> Result<String, SceneError> {
    let output = command.process_group(0).output().map_err(|cause| not_started(&shown, cause))?;
    said(output, shown)
}

fn not_started(shown: &impl Fn() -> String, cause: io::Error) -> SceneError {
    match cause.kind() {
        io::ErrorKind::NotFound => {
            SceneError::NoProgram(missing("ip").unwrap_or_else(|| format!("{}: {cause}", shown())))
        }
        _ => SceneError::System { what: shown(), cause },
    }
}

fn said(output: Output, shown: impl Fn() -> String) -> Result<String, SceneError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(SceneError::Failed { command: shown(), said })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{netns, require};

    #[test]
    fn a_counter_is_that_of_the_interface_and_column() {
        let text = "Inter-|   Receive                  |  Transmit\n face |bytes packets errs|bytes packets\n\
                    wan0: 10 11 0 0 0 0 0 0 20 21 0 0 0 0 0 0\n wan0.5:1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n";
        assert_eq!(counted(text, "wan0", "rx_packets"), Some(11));
        assert_eq!(counted(text, "wan0.5", "tx_packets"), Some(4));
        for (interface, counter) in [("wan", "rx_packets"), ("wan0", "rx_errors")] {
            assert_eq!(counted(text, interface, counter), None);
        }
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let namespace = Namespace::new("line").expect("a namespace");
        let error = namespace.run("no-such-program", &[]).expect_err("it is missing");
        assert_eq!(error.to_string(), "the program no-such-program is missing");
        assert!(matches!(namespace.run("ip", &["nonsense"]), Err(SceneError::Failed { .. })));
        assert!(namespace.works("lo").expect("it is there") && namespace.counter("lo", "rx_packets").is_ok());
        assert!(namespace.works("eth99").is_err() && namespace.counter("eth99", "rx_packets").is_err());
    }

    #[test]
    fn a_folder_is_gone_with_its_guard() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let folder = Folder::new().expect("a folder");
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "x").expect("a file in it");
        drop(folder);
        assert!(!path.exists());
    }
}
