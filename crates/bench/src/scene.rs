//! Two network namespaces and the pair of interfaces between them.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use thiserror::Error;

/// Where ip-netns(8) keeps the names.
const NAMES: &str = "/run/netns";
const PREFIX: &str = "rxlane-scene-";

/// The line's interface.
pub const LINE: &str = "line0";
/// The router's interface, on which the line's frames arrive.
pub const ROUTER: &str = "wan0";

/// A scene could not be made.
#[derive(Debug, Error)]
pub enum SceneError {
    /// Not root.
    #[error("network namespaces and interfaces in them take root")]
    NotRoot,
    /// No `ip`.
    #[error("the program ip is missing (Debian: apt install iproute2)")]
    NoIp,
    /// `ip` failed.
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

/// A line and a router; removed when this is dropped.
#[derive(Debug)]
pub struct Scene {
    name: String,
}

impl Scene {
    /// Makes both namespaces and the pair [`LINE`] and [`ROUTER`] with so many queues each, both up, IPv6 off, so that
    /// nothing but the load sends frames. `mtu` in octets; a frame sent from user space with two tags takes 4 more
    /// than one without.
    ///
    /// # Errors
    ///
    /// Not root, no `ip`, or what `ip` said; nothing is left behind.
    pub fn new(queues: u16, mtu: u16) -> Result<Scene, SceneError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            return Err(SceneError::NotRoot);
        }
        remove_leftovers();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let scene = Scene { name: format!("{PREFIX}{}-{number}", std::process::id()) };
        let (line, router) = (scene.line(), scene.router());
        for namespace in [&line, &router] {
            ip(&["netns", "add", namespace])?;
        }
        for namespace in [&line, &router] {
            inside(namespace, || {
                // A kernel without IPv6 has no such files.
                for scope in ["all", "default"] {
                    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
                }
            })?;
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        }
        let (queues, mtu) = (queues.to_string(), mtu.to_string());
        let size = ["mtu", &mtu, "numrxqueues", &queues, "numtxqueues", &queues];
        let near = ["-n", &line, "link", "add", "name", LINE];
        let far = ["type", "veth", "peer", "name", ROUTER, "netns", &router];
        ip(&[&near[..], &size, &far, &size].concat())?;
        ip(&["-n", &line, "link", "set", "dev", LINE, "up"])?;
        ip(&["-n", &router, "link", "set", "dev", ROUTER, "up"])?;
        Ok(scene)
    }

    /// The line's namespace, as `ip -n` takes it.
    pub fn line(&self) -> String {
        format!("{}-line", self.name)
    }

    /// The router's namespace.
    pub fn router(&self) -> String {
        format!("{}-router", self.name)
    }

    /// A command that runs a program on the router, with `/sys` showing its interfaces (`ip netns exec`).
    pub fn on_router(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.router()]).arg(program.as_ref());
        command
    }

    /// Runs a closure on the line, in a thread of its own.
    ///
    /// # Errors
    ///
    /// The thread cannot enter the namespace.
    pub fn on_line<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
        inside(&self.line(), work)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for namespace in [self.line(), self.router()] {
            // What is gone already needs no removal.
            let _ = ip(&["netns", "del", &namespace]);
        }
    }
}

fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
    let failed = |cause: io::Error| SceneError::System { what: format!("entering {namespace}"), cause };
    let file = File::open(Path::new(NAMES).join(namespace)).map_err(failed)?;
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
    .map_err(|errno: rustix::io::Errno| failed(errno.into()))
}

fn ip(arguments: &[&str]) -> Result<(), SceneError> {
    let command = || format!("ip {}", arguments.join(" "));
    let output = Command::new("ip").args(arguments).output().map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => SceneError::NoIp,
        _ => SceneError::System { what: command(), cause },
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(SceneError::Failed { command: command(), said })
}

/// Removes scenes of processes that are no more.
fn remove_leftovers() {
    let names = fs::read_dir(NAMES).into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !PathBuf::from(format!("/proc/{pid}")).exists()) {
            let _ = ip(&["netns", "del", &name]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{netns, require};

    #[test]
    fn a_scene_has_both_ends_and_is_gone_with_its_guard() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let names = {
            let scene = Scene::new(4, 1500).expect("a scene");
            let listed = scene.on_router("ls").arg(format!("/sys/class/net/{ROUTER}/queues")).output();
            let listed = String::from_utf8(listed.expect("ls").stdout).expect("text");
            assert_eq!(listed.lines().filter(|line| line.starts_with("rx-")).count(), 4, "{listed}");
            [scene.line(), scene.router()].map(|name| Path::new(NAMES).join(name))
        };
        assert!(names.iter().all(|name| !name.exists()), "{names:?}");
    }
}
