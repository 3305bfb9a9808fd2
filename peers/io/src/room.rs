//! Two network namespaces and the devices in them.
//!
//! The namespaces have no names: they are open files, and go, with all their devices, when this process ends in whatever
//! way.

use crate::sys::unshare_network;
use anyhow::{Context, ensure};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::thread;

/// One end of the pair, from which is sent. It takes super-packets, as veth does from the start.
pub const NEAR: &str = "near0";
/// The other end, in the other namespace.
pub const FAR: &str = "far0";
/// One end of a second pair, for which the kernel segments and sums.
pub const SEGMENTED: &str = "near1";
/// Its other end.
pub const FAR_SEGMENTED: &str = "far1";
/// A device that frees what it gets, behind a queueing discipline: the way to a card's driver, and no far end. It is an
/// `ifb`, which keeps nothing that was not redirected to it and counts that as received; `dummy` is not in every kernel.
pub const SINK: &str = "sink0";
/// Room for two tags and PPPoE around 1492 octets of IP (veth checks a packet socket's frames against the MTU).
const MTU: &str = "1508";

/// A network namespace.
pub struct Namespace(File);

impl Namespace {
    fn new() -> anyhow::Result<Namespace> {
        let file = thread::scope(|scope| {
            let thread = scope.spawn(|| -> anyhow::Result<File> {
                unshare_network().context("a network namespace (takes root)")?;
                // Nothing but the load sends: no neighbour discovery. A kernel without IPv6 has no such file.
                let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
                Ok(File::open("/proc/thread-self/ns/net")?)
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        Ok(Namespace(file))
    }

    /// Runs a closure in a thread inside.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter()?;
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread inside.
    pub fn enter(&self) -> anyhow::Result<()> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .context("entering a namespace")
    }

    /// Where ip(8) finds it.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs a command inside.
    pub fn run(&self, line: &str) -> anyhow::Result<()> {
        self.inside(|| {
            let mut words = line.split_whitespace();
            let output = Command::new(words.next().unwrap_or_default())
                .args(words)
                .output()
                .with_context(|| format!("{line}: the program is missing"))?;
            ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr).trim());
            Ok(())
        })
    }

    /// The number of an interface inside.
    pub fn index(&self, interface: &str) -> anyhow::Result<u32> {
        self.inside(|| {
            let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
            name_to_index(&socket, interface).with_context(|| interface.to_owned())
        })
    }

    /// Frames that an interface inside received, dropped on receipt, sent, and dropped instead of sending.
    pub fn counters(&self, interface: &str) -> anyhow::Result<[u64; 4]> {
        let text = self.inside(|| Ok(std::fs::read_to_string("/proc/thread-self/net/dev")?))?;
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))
            .with_context(|| format!("{interface} in /proc/net/dev"))?;
        let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        ensure!(numbers.len() >= 12, "/proc/net/dev: {line}");
        Ok([numbers[1], numbers[3], numbers[9], numbers[11]])
    }
}

/// Both namespaces with their devices, all up.
pub struct Room {
    pub near: Namespace,
    pub far: Namespace,
}

impl Room {
    pub fn new() -> anyhow::Result<Room> {
        let room = Room { near: Namespace::new()?, far: Namespace::new()? };
        let far = room.far.path();
        for (near, other) in [(NEAR, FAR), (SEGMENTED, FAR_SEGMENTED)] {
            room.near.run(&format!(
                "ip link add name {near} mtu {MTU} type veth peer name {other} mtu {MTU} netns {far}"
            ))?;
            room.far.run(&format!("ip link set dev {other} up"))?;
            room.near.run(&format!("ip link set dev {near} up"))?;
        }
        room.near.run(&format!("ip link add name {SINK} mtu {MTU} txqueuelen 1000 type ifb"))?;
        room.near.run(&format!("tc qdisc replace dev {SINK} root pfifo_fast"))?;
        room.near.run(&format!("ip link set dev {SINK} up"))?;
        room.near.run(&format!("ethtool -K {SEGMENTED} tso off gso on tx off"))?;
        Ok(room)
    }
}
