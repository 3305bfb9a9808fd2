//! Adapters of this machine in a namespace.

use super::{SceneError, ip, output};
use std::process::Command;

/// An adapter of this machine that is in a namespace until this is dropped. It comes back set down, as it was.
#[derive(Debug)]
pub struct Lent {
    adapter: String,
    namespace: String,
}

impl Lent {
    pub(super) fn take(adapter: &str, namespace: &str) -> Result<Lent, SceneError> {
        ip(&["link", "set", "dev", adapter, "netns", namespace])?;
        Ok(Lent { adapter: adapter.to_owned(), namespace: namespace.to_owned() })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        give_back(&self.namespace, &self.adapter);
    }
}

/// To where this process is; a namespace that is removed would give it to that of process 1.
fn give_back(namespace: &str, adapter: &str) {
    let here = std::process::id().to_string();
    // What is gone cannot be given back.
    let _ = ip(&["-n", namespace, "link", "set", "dev", adapter, "promisc", "off", "down"]);
    let _ = ip(&["-n", namespace, "link", "set", "dev", adapter, "netns", &here]);
}

/// Every adapter in a namespace: interfaces with a device below.
pub(super) fn give_all_back(namespace: &str) {
    let list = "cd /sys/class/net && for adapter in */device; do [ ! -e \"$adapter\" ] || echo \"${adapter%/device}\"; done";
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "sh", "-c", list]);
    let listed = output(&mut command, || "ip netns exec".to_owned()).unwrap_or_default();
    for adapter in listed.lines() {
        give_back(namespace, adapter);
    }
}
