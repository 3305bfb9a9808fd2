//! Network namespaces that tests make for themselves.
//!
//! ```no_run
//! use rxlane_testkit::netns::{Namespace, Veth, probe};
//! use rxlane_testkit::require;
//!
//! # fn test() -> std::io::Result<()> {
//! let Some(()) = require("netns", probe()) else { return Ok(()) };
//! let namespace = Namespace::new()?;
//! namespace.veth(&Veth { queues: 4, ..Veth::pair("wan0", "peer0") })?;
//! namespace.send("peer0", [[0_u8; 60]])?;
//! let counted = namespace.inside(|| std::fs::read_to_string("/sys/class/net/wan0/statistics/rx_packets"))?;
//! assert_eq!(counted.trim(), "1");
//! # Ok(())
//! # }
//! ```
//!
//! Names are `rxlane-PID-NUMBER`. A namespace is removed when its [`Namespace`] is dropped, also by a panic; what a
//! killed test left is removed by the next one that makes any. IPv6 is off inside, so that nothing but the test sends
//! frames.

use crate::{Missing, program};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kernel::netns::NAMES;
use kernel::socket::Transmit;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

const PREFIX: &str = "rxlane-";

/// Whether namespaces can be made here: tried out. Error: what is missing: `ip`, root, or what the kernel said.
pub fn probe() -> Result<(), Missing> {
    program("ip")?;
    if !rustix::process::geteuid().is_root() {
        return Err(Missing("network namespaces take root (run the tests as root)".to_owned()));
    }
    let tried = Namespace::new().and_then(|namespace| namespace.try_inside(|| ()));
    tried.map_err(|error| Missing(format!("no network namespace can be made: {error}")))
}

/// Two namespaces with a line between them: `wan0` with 10.7.0.1/24 in the first, `far0` with 10.7.0.2/24 in the second.
pub fn addressed_pair() -> io::Result<[Namespace; 2]> {
    let [near, far] = [Namespace::new()?, Namespace::new()?];
    near.veth(&Veth { peer: Some(&far), ..Veth::pair("wan0", "far0") })?;
    for (namespace, name, address) in [(&near, "wan0", "10.7.0.1/24"), (&far, "far0", "10.7.0.2/24")] {
        namespace.run("ip", &["address", "add", address, "dev", name])?;
    }
    Ok([near, far])
}

/// A network namespace, removed when this is dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

/// A pair of virtual Ethernet devices.
#[derive(Clone, Copy, Debug)]
pub struct Veth<'a> {
    /// Name of the end in the namespace.
    pub near: &'a str,
    /// Name of the other end.
    pub far: &'a str,
    /// Receive and transmit queues of each end.
    pub queues: u32,
    /// MTU of both, bytes. A frame with two VLAN tags takes 4 more than that of an untagged one to be sent.
    pub mtu: u32,
    /// Where the other end is; `None`: in the same namespace.
    pub peer: Option<&'a Namespace>,
}

impl<'a> Veth<'a> {
    /// A pair with one queue and MTU 1500, both in the same namespace.
    pub const fn pair(near: &'a str, far: &'a str) -> Veth<'a> {
        Veth { near, far, queues: 1, mtu: 1500, peer: None }
    }
}

impl Namespace {
    /// Makes a namespace, with the loopback interface up and IPv6 off. Error: `ip` is not there or fails; the message is what
    /// it said.
    pub fn new() -> io::Result<Namespace> {
        static SWEPT: Once = Once::new();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        SWEPT.call_once(remove_leftovers);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = Namespace { name: format!("{PREFIX}{}-{number}", std::process::id()) };
        kernel::netns::create(&namespace.name)?;
        ip(&["-n", &namespace.name, "link", "set", "lo", "up"])?;
        namespace.try_inside(|| {
            for scope in ["all", "default"] {
                // A kernel without IPv6 has no such file.
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
            }
        })?;
        Ok(namespace)
    }

    /// Its name, as `ip -n` takes it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file, as `nsenter --net=` takes it.
    pub fn path(&self) -> PathBuf {
        Path::new(NAMES).join(&self.name)
    }

    /// A command that runs the program inside, with `/sys` showing this namespace (`ip netns exec`).
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs a program inside and gives its standard output. Error: it does not start, or fails; the message is what it said.
    pub fn run(&self, program: &str, arguments: &[&str]) -> io::Result<String> {
        output(self.command(program).args(arguments))
    }

    /// Runs a closure in a thread of its own inside, with `/sys` showing this namespace, and so are programs that it
    /// starts. A panic of the closure goes on in the caller. (`/proc/self` is still the process; the thread has
    /// `/proc/thread-self`.)
    ///
    /// # Panics
    ///
    /// The thread cannot enter the namespace.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.try_inside(work).unwrap_or_else(|error| panic!("entering {}: {error}", self.name))
    }

    /// Binds a socket inside; again for some seconds while its address is in use. A program that another test has forked off
    /// holds sockets that were closed since until it becomes itself.
    pub fn bound<T: Send>(&self, bind: impl Fn() -> io::Result<T> + Send) -> io::Result<T> {
        self.inside(move || {
            let until = Instant::now() + Duration::from_secs(10);
            loop {
                match bind() {
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < until => {
                        thread::sleep(Duration::from_millis(10));
                    }
                    result => return result,
                }
            }
        })
    }

    fn try_inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        kernel::netns::inside(&self.name, || {
            kernel::process::unshare_mounts()?;
            // As ip-netns(8) does: a sysfs shows the namespace in which it was mounted.
            mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)?;
            mount("rxlane", "/sys", "sysfs", MountFlags::empty(), None)?;
            Ok(work())
        })?
    }

    /// Makes a pair of virtual Ethernet devices, both up and ready to send. Error: `ip` fails: a name is taken, for example. Or
    /// the kernel has not noticed a carrier after a minute.
    pub fn veth(&self, pair: &Veth<'_>) -> io::Result<()> {
        let peer = pair.peer.unwrap_or(self);
        let (queues, mtu) = (pair.queues.to_string(), pair.mtu.to_string());
        let size = ["mtu", &mtu, "numrxqueues", &queues, "numtxqueues", &queues];
        let near = ["-n", &self.name, "link", "add", "name", pair.near];
        let far = ["type", "veth", "peer", "name", pair.far, "netns", &peer.name];
        ip(&[&near[..], &size, &far, &size].concat())?;
        ip(&["-n", &self.name, "link", "set", "dev", pair.near, "up"])?;
        ip(&["-n", &peer.name, "link", "set", "dev", pair.far, "up"])?;
        self.await_carrier(pair.near)?;
        peer.await_carrier(pair.far)
    }

    /// Until the kernel has noticed its carrier (net/core/link_watch.c), a second later at most where many links change, an
    /// interface drops what it is to send.
    fn await_carrier(&self, interface: &str) -> io::Result<()> {
        let until = Instant::now() + Duration::from_mins(1);
        while !ip(&["-n", &self.name, "link", "show", "dev", interface])?.contains(" state UP ") {
            if Instant::now() >= until {
                let message = format!("{interface} has no carrier after a minute");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Sends Ethernet frames, from the destination address on and without FCS, out of an interface inside; the other end of a
    /// veth pair receives them. Gives their number. Error: there is no such interface, it is down (`ENETDOWN`), or a frame is
    /// too long for its MTU (`EMSGSIZE`); the message says which.
    pub fn send(
        &self,
        interface: &str,
        frames: impl IntoIterator<Item = impl AsRef<[u8]>> + Send,
    ) -> io::Result<u64> {
        self.inside(|| {
            let mut transmit = Transmit::open(interface).map_err(|error| {
                io::Error::new(error.cause.kind(), format!("{interface}: {}", error.cause))
            })?;
            let mut sent = 0;
            for frame in frames {
                let bytes = frame.as_ref();
                transmit.send(&[bytes]).map_err(|error| {
                    let message =
                        format!("{interface}, frame {sent} of {} bytes: {}", bytes.len(), error.cause);
                    io::Error::new(error.cause.kind(), message)
                })?;
                sent += 1;
            }
            Ok(sent)
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A name that was removed already is no reason to panic in a panic.
        let _ = kernel::netns::remove(&self.name);
    }
}

/// Removes the namespaces of processes that are no more.
fn remove_leftovers() {
    let Ok(names) = fs::read_dir(NAMES) else { return };
    for name in names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let Some((pid, number)) = owner else { continue };
        if is_number(pid) && is_number(number) && !Path::new("/proc").join(pid).exists() {
            let _ = kernel::netns::remove(&name);
        }
    }
}

fn ip(arguments: &[&str]) -> io::Result<String> {
    output(Command::new("ip").args(arguments))
}

fn output(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {}: {}", output.status, said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require;
    use std::panic;
    use std::process::Stdio;

    #[test]
    fn a_namespace_is_removed_with_its_guard_also_by_a_panic() {
        let Some(()) = require("netns", probe()) else { return };
        let mut path = PathBuf::new();
        let panicked = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            let namespace = Namespace::new().expect("a namespace");
            path = namespace.path();
            assert!(path.exists());
            namespace.inside(|| panic!("inside"));
        }));
        let message = panicked.expect_err("a panic");
        assert_eq!(message.downcast_ref(), Some(&"inside"));
        assert!(path.starts_with(NAMES) && !path.exists());
    }

    #[test]
    fn leftovers_of_dead_processes_are_removed_and_no_others() {
        let Some(()) = require("netns", probe()) else { return };
        let mut child = Command::new("true").stdin(Stdio::null()).spawn().expect("a process");
        let dead = format!("{PREFIX}{}-0", child.id());
        child.wait().expect("its end");
        let own = Namespace::new().expect("a namespace");
        kernel::netns::create(&dead).expect("a leftover");
        remove_leftovers();
        assert!(!Path::new(NAMES).join(dead).exists() && own.path().exists());
    }

    #[test]
    fn frames_go_from_one_end_to_the_other() {
        let Some(()) = require("netns", probe()) else { return };
        let (left, right) = (Namespace::new().expect("a namespace"), Namespace::new().expect("another"));
        let pair = Veth { queues: 3, peer: Some(&right), ..Veth::pair("left0", "right0") };
        left.veth(&pair).expect("a pair");
        let queues = right.run("ls", &["/sys/class/net/right0/queues"]).expect("a list");
        assert_eq!(
            queues.split_whitespace().collect::<Vec<_>>(),
            ["rx-0", "rx-1", "rx-2", "tx-0", "tx-1", "tx-2"]
        );
        assert_eq!(left.send("left0", vec![[1_u8; 60]; 7]).expect("sent"), 7);
        let counter = "/sys/class/net/right0/statistics/rx_packets";
        let counted = right.inside(|| fs::read_to_string(counter)).expect("a counter");
        assert_eq!(counted, "7\n");
        let error = left.send("left0", [[1_u8; 2000]]).expect_err("too long");
        assert!(error.to_string().starts_with("left0, frame 0 of 2000 bytes: "), "{error}");
        assert!(left.send("nothing0", [[1_u8; 60]]).is_err());
    }
}
