//! Two network namespaces and the pair of interfaces between them.

use crate::namespace::{Namespace, SceneError};
use std::path::Path;
use std::process::Command;

/// The line's interface.
pub const LINE: &str = "line0";
/// The router's interface, on which the line's frames arrive.
pub const ROUTER: &str = "wan0";

/// A line and a router; removed when this is dropped.
#[derive(Debug)]
pub struct Scene {
    line: Namespace,
    router: Namespace,
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
        let scene = Scene { line: Namespace::new("line")?, router: Namespace::new("router")? };
        scene.line.veth(LINE, (&scene.router, ROUTER), queues, mtu)?;
        Ok(scene)
    }

    /// The line's namespace.
    pub fn line(&self) -> &Namespace {
        &self.line
    }

    /// The router's namespace.
    pub fn router(&self) -> &Namespace {
        &self.router
    }

    /// A command that runs a program on the router, with `/sys` showing its interfaces (`ip netns exec`).
    pub fn on_router(&self, program: impl AsRef<Path>) -> Command {
        self.router.command(program.as_ref())
    }

    /// Runs a closure on the line, in a thread of its own.
    ///
    /// # Errors
    ///
    /// The thread cannot enter the namespace.
    pub fn on_line<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
        self.line.inside(work)
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
            [scene.line(), scene.router()].map(|end| Path::new("/run/netns").join(end.name()))
        };
        assert!(names.iter().all(|name| !name.exists()), "{names:?}");
    }
}
