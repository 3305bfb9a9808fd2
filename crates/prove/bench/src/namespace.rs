//! Network namespaces that go with their guard, and with [`sweep`] or the next run where the guard's process was killed.

mod process_folder;

pub use process_folder::{SETTINGS, sweep};

use crate::installed::missing;
use kernel::netlink;
use kernel::netns;
use process_folder::{ProcessFolder, processes_in};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use thiserror::Error;

/// Counters of the interfaces of the namespace in which a thread is; `/sys` shows those of the one in which it was mounted.
const DEVICES: &str = "/proc/thread-self/net/dev";

/// Namespaces, or what is in them, could not be made.
#[derive(Debug, Error)]
pub enum TopologyError {
    #[error("network namespaces and interfaces in them require root")]
    NotRoot,
    #[error("{0}")]
    NoProgram(String),
    #[error("{command}: {said}")]
    Failed { command: String, said: String },
    #[error("{what}: {cause}")]
    System { what: String, cause: io::Error },
}

impl TopologyError {
    /// What helps where the machine has no more of something, by the number of the error or, of a program, by its words.
    pub(crate) fn way_out(&self) -> Option<&'static str> {
        let is = |errno: Errno| match self {
            TopologyError::System { cause, .. } => cause.raw_os_error() == Some(errno.raw_os_error()),
            TopologyError::Failed { said, .. } => {
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
    _process_folder: Arc<ProcessFolder>,
}

impl Namespace {
    /// Makes one with the loopback interface up and IPv6 off, so that nothing but what is measured sends frames. `role` ends
    /// its name. Error: not root, or what the kernel said; nothing is left behind.
    pub fn new(role: &str) -> Result<Namespace, TopologyError> {
        if !rustix::process::geteuid().is_root() {
            return Err(TopologyError::NotRoot);
        }
        let process_folder = ProcessFolder::of_this_process()?;
        let name = format!("{}-{role}", process_folder.next_name());
        let failed =
            |cause| TopologyError::System { what: format!("making the network namespace {name}"), cause };
        netns::create(&name).map_err(failed)?;
        let namespace = Namespace { name, _process_folder: process_folder };
        namespace.inside(|| {
            // A kernel without IPv6 has no such files.
            for scope in ["all", "default"] {
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
            }
        })?;
        namespace.ip(&["link", "set", "lo", "up"])?;
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

    /// Runs a program inside and gives its standard output. Error: it does not start, or fails, with its words.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, TopologyError> {
        let said = output(self.command(program).args(arguments), program, arguments);
        // It is `ip` that does not find it, and says so in words of its own.
        said.map_err(|error| missing(program).map_or(error, TopologyError::NoProgram))
    }

    pub fn ip(&self, arguments: &[&str]) -> Result<(), TopologyError> {
        ip(&self.name, arguments)
    }

    /// Runs a closure inside, in a thread of its own; so are the threads that it starts. `/sys` shows what it did before.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, TopologyError> {
        let failed = |cause| TopologyError::System { what: format!("entering {}", self.name), cause };
        netns::inside(&self.name, work).map_err(failed)
    }

    /// A pair of virtual Ethernet devices, `near` in here and `far` in there, with so many queues each, both up. `mtu` in
    /// bytes; a frame sent from user space with two tags takes 4 more than one without.
    pub fn veth(
        &self,
        near: &str,
        (there, far): (&Namespace, &str),
        queues: u16,
        mtu: u16,
    ) -> Result<(), TopologyError> {
        let (queues, mtu) = (queues.to_string(), mtu.to_string());
        let size = ["mtu", &mtu, "numrxqueues", &queues, "numtxqueues", &queues];
        let this = ["link", "add", "name", near];
        let peer = ["type", "veth", "peer", "name", far, "netns", &there.name];
        self.ip(&[&this[..], &size, &peer, &size].concat())?;
        self.ip(&["link", "set", "dev", near, "up"])?;
        there.ip(&["link", "set", "dev", far, "up"])
    }

    pub fn pids(&self) -> Vec<u32> {
        processes_in(&self.name).map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    /// Puts a NIC of this machine in here, set down, until what is given is dropped.
    pub fn borrow(&self, nic: &str) -> Result<BorrowedNic, TopologyError> {
        output(
            Command::new("ip").args(["link", "set", "dev", nic, "netns", &self.name]),
            "ip",
            &["link", "set", nic],
        )?;
        Ok(BorrowedNic { nic: nic.to_owned(), namespace: self.name.clone() })
    }

    /// A counter of an interface: `rx_packets` or `tx_packets`.
    pub fn counter(&self, interface: &str, counter: &str) -> Result<u64, TopologyError> {
        let failed =
            |cause: io::Error| TopologyError::System { what: format!("{counter} of {interface}"), cause };
        let text = self.inside(|| fs::read_to_string(DEVICES))?.map_err(failed)?;
        counted(&text, interface, counter).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
    }

    /// Whether an interface is up and has a carrier.
    pub fn works(&self, interface: &str) -> Result<bool, TopologyError> {
        let link = self.inside(|| netlink::link_by_name(interface))?;
        link.map(|link| link.works())
            .map_err(|cause| TopologyError::System { what: format!("looking for {interface}"), cause })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = netns::remove(&self.name);
    }
}

/// A NIC of this machine that is in a namespace until this is dropped. It comes back set down, as it was.
#[derive(Debug)]
pub struct BorrowedNic {
    nic: String,
    namespace: String,
}

impl Drop for BorrowedNic {
    fn drop(&mut self) {
        give_back(&self.namespace, &self.nic);
    }
}

/// To where this process is; a namespace that is removed would give it to that of process 1.
fn give_back(namespace: &str, nic: &str) {
    let here = std::process::id().to_string();
    // What is removed cannot be given back.
    let _ = ip(namespace, &["link", "set", "dev", nic, "promisc", "off", "down"]);
    let _ = ip(namespace, &["link", "set", "dev", nic, "netns", &here]);
}

/// A folder for what programs in namespaces keep while they run; removed when this is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _process_folder: Arc<ProcessFolder>,
}

impl Folder {
    pub fn new() -> Result<Folder, TopologyError> {
        let process_folder = ProcessFolder::of_this_process()?;
        let path = process_folder.next_path();
        let failed = |cause| TopologyError::System { what: format!("making {}", path.display()), cause };
        fs::create_dir(&path).map_err(failed)?;
        Ok(Folder { path, _process_folder: process_folder })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
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

fn ip(namespace: &str, arguments: &[&str]) -> Result<(), TopologyError> {
    output(Command::new("ip").args(["-n", namespace]).args(arguments), "ip", arguments).map(drop)
}

/// What a program says. ^C of a terminal does not reach it: this process ends when it has taken back what it did.
fn output(command: &mut Command, program: &str, arguments: &[&str]) -> Result<String, TopologyError> {
    let line = || format!("{program} {}", arguments.join(" "));
    let output = command.process_group(0).output().map_err(|cause| match missing("ip") {
        Some(why) if cause.kind() == io::ErrorKind::NotFound => TopologyError::NoProgram(why),
        _ => TopologyError::System { what: line(), cause },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TopologyError::Failed { command: line(), said })
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
        assert!(matches!(namespace.run("ip", &["nonsense"]), Err(TopologyError::Failed { .. })));
        assert!(namespace.works("lo").expect("it is there") && namespace.counter("lo", "rx_packets").is_ok());
        assert!(namespace.works("eth99").is_err() && namespace.counter("eth99", "rx_packets").is_err());
    }
}
