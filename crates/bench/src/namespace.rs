//! Network namespaces that go with their guard, and with the next run where the guard's process was killed.

mod leftover;
mod lent;

pub use leftover::SETTINGS;
pub use lent::Lent;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use thiserror::Error;

/// Where ip-netns(8) keeps the names, and where [`Folder`]s are.
const NAMES: &str = "/run/netns";
const FOLDERS: &str = "/run";
/// Behind it stand the number of the process and a number of its own.
const PREFIX: &str = "rxlane-scene-";

/// Namespaces, or what is in them, could not be made.
#[derive(Debug, Error)]
pub enum SceneError {
    /// Not root.
    #[error("network namespaces and interfaces in them take root")]
    NotRoot,
    /// No `ip`.
    #[error("the program ip is missing (Debian: apt install iproute2)")]
    NoIp,
    /// A program failed.
    #[error("{command}: {said}")]
    Failed {
        /// What was run.
        command: String,
        /// Its words.
        said: String,
    },
    /// Another call failed.
    #[error("{what}: {cause}")]
    System {
        /// What was being done.
        what: String,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// A network namespace, removed when this is dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one with the loopback interface up and IPv6 off, so that nothing but what is measured sends frames. `role` ends
    /// its name.
    ///
    /// # Errors
    ///
    /// Not root, no `ip`, or what `ip` said; nothing is left behind.
    pub fn new(role: &str) -> Result<Namespace, SceneError> {
        if !rustix::process::geteuid().is_root() {
            return Err(SceneError::NotRoot);
        }
        let namespace = Namespace { name: format!("{}-{role}", next_name()) };
        ip(&["netns", "add", &namespace.name])?;
        namespace.inside(|| {
            // A kernel without IPv6 has no such files.
            for scope in ["all", "default"] {
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
            }
        })?;
        ip(&["-n", &namespace.name, "link", "set", "lo", "up"])?;
        Ok(namespace)
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

    /// Runs a program inside and gives its standard output.
    ///
    /// # Errors
    ///
    /// It does not start, or fails, with its words.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, SceneError> {
        let mut command = self.command(program);
        output(command.args(arguments), || format!("{program} {}", arguments.join(" ")))
    }

    /// Runs `ip` for it.
    ///
    /// # Errors
    ///
    /// As [`Namespace::run`].
    pub fn ip(&self, arguments: &[&str]) -> Result<(), SceneError> {
        ip(&[&["-n", self.name.as_str()][..], arguments].concat())
    }

    /// Runs a closure inside, in a thread of its own; so are the threads that it starts. `/sys` shows what it did before.
    ///
    /// # Errors
    ///
    /// The thread cannot enter.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
        inside(&self.name, work)
    }

    /// A pair of virtual Ethernet devices, `near` in here and `far` in there, with so many queues each, both up. `mtu` in
    /// octets; a frame sent from user space with two tags takes 4 more than one without.
    ///
    /// # Errors
    ///
    /// What `ip` said.
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
    ///
    /// # Errors
    ///
    /// What `ip` said.
    pub fn pids(&self) -> Result<Vec<u32>, SceneError> {
        pids(&self.name)
    }

    /// Puts an adapter of this machine in here, set down, until what is given is dropped.
    ///
    /// # Errors
    ///
    /// What `ip` said: there is no such adapter.
    pub fn borrow(&self, adapter: &str) -> Result<Lent, SceneError> {
        Lent::take(adapter, &self.name)
    }

    /// A counter of an interface, such as `tx_packets`.
    ///
    /// # Errors
    ///
    /// There is no such interface or counter.
    pub fn counter(&self, interface: &str, counter: &str) -> Result<u64, SceneError> {
        let path = format!("/sys/class/net/{interface}/statistics/{counter}");
        let text = self.run("cat", &[&path])?;
        text.trim().parse().map_err(|_| SceneError::Failed { command: format!("cat {path}"), said: text })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What is gone already needs no removal.
        let _ = ip(&["netns", "del", &self.name]);
    }
}

/// A folder for what programs in namespaces keep while they run; removed when this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes it.
    ///
    /// # Errors
    ///
    /// It cannot be made below `/run`.
    pub fn new() -> Result<Folder, SceneError> {
        let path = Path::new(FOLDERS).join(next_name());
        match fs::create_dir(&path) {
            Ok(()) => Ok(Folder(path)),
            Err(cause) => Err(SceneError::System { what: format!("making {}", path.display()), cause }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
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
        let thread = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
    .map_err(|errno: rustix::io::Errno| failed(errno.into()))
}

fn pids(name: &str) -> Result<Vec<u32>, SceneError> {
    let listed =
        output(Command::new("ip").args(["netns", "pids", name]), || format!("ip netns pids {name}"))?;
    Ok(listed.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

fn ip(arguments: &[&str]) -> Result<(), SceneError> {
    output(Command::new("ip").args(arguments), || format!("ip {}", arguments.join(" "))).map(drop)
}

/// What a program says. ^C of a terminal does not reach it: this process ends when it has taken back what it did.
fn output(command: &mut Command, shown: impl Fn() -> String) -> Result<String, SceneError> {
    let output = command.process_group(0).output().map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => SceneError::NoIp,
        _ => SceneError::System { what: shown(), cause },
    })?;
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
    fn a_folder_is_gone_with_its_guard() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let folder = Folder::new().expect("a folder");
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "x").expect("a file in it");
        drop(folder);
        assert!(!path.exists());
    }
}
