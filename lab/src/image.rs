//! The first file system of a guest: busybox, the modules without which the machine's files cannot be reached, and a
//! script that mounts them and hands over to the agent.

use crate::cpio::Archive;
use crate::packages::{Kernel, output};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Modules that have to be there before files are shared: the share itself, the overlay that makes it writable for the
/// guest, and the port of the agent. Everything else is loaded from the share.
const FIRST: [&str; 6] = ["virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_console", "virtio_rng"];

/// What the kernel runs first. `__MODULES__` are names of modules in their order, `__AGENT__` is a path on the machine,
/// `__FIRST__` is the word of [`First`].
const INIT: &str = include_str!("../guest/init.sh");

/// What process 1 of a guest becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum First {
    /// A shell that waits for the agent: boots fastest.
    #[default]
    Agent,
    /// The machine's systemd with udev; of its units only the agent's runs until others are started.
    Systemd,
}

impl First {
    const fn word(self) -> &'static str {
        match self {
            First::Agent => "agent",
            First::Systemd => "systemd",
        }
    }
}

/// The image for a kernel, with tools unpacked at `tools` and the agent program at `agent`. It is written into `folder`.
///
/// # Errors
///
/// A module is missing or cannot be unpacked, or the image cannot be written.
pub fn build(tools: &Path, kernel: &Kernel, agent: &Path, first: First, folder: &Path) -> Result<PathBuf> {
    let mut archive = Archive::new();
    for name in ["bin", "dev", "proc", "sys", "host", "tools", "kernel", "over", "new", "modules"] {
        archive.folder(name);
    }
    archive.device("dev/console", 5, 1);
    let busybox = tools.join("usr/bin/busybox");
    archive.file(
        "bin/busybox",
        0o755,
        &fs::read(&busybox).with_context(|| format!("{}", busybox.display()))?,
    );
    let modules = kernel.root.join("usr/lib/modules").join(&kernel.release);
    let index = modules.join("modules.dep");
    let index = fs::read_to_string(&index).with_context(|| format!("{}", index.display()))?;
    let builtin = fs::read_to_string(modules.join("modules.builtin")).context("modules.builtin")?;
    let order = in_order(&index, &builtin, &FIRST)?;
    let mut names = String::new();
    for path in order {
        let file = modules.join(path);
        let name = module_name(path);
        archive.file(&format!("modules/{name}.ko"), 0o644, &module(&file)?);
        names.push_str(&format!("{name} "));
    }
    let init = INIT
        .replace("__MODULES__", names.trim_end())
        .replace("__AGENT__", &agent.display().to_string())
        .replace("__FIRST__", first.word());
    archive.file("init", 0o755, init.as_bytes());
    let image = folder.join("initramfs");
    fs::write(&image, archive.finish()).with_context(|| format!("{}", image.display()))?;
    Ok(image)
}

/// The module in the form that any kernel loads: Debian's newer packages have them compressed.
fn module(file: &Path) -> Result<Vec<u8>> {
    if file.extension().is_some_and(|extension| extension == "xz") {
        let unpacked =
            Command::new("xz").arg("-dc").arg(file).output().context("xz (make deps installs it)")?;
        anyhow::ensure!(unpacked.status.success(), "{}: xz cannot unpack it", file.display());
        return Ok(unpacked.stdout);
    }
    fs::read(file).with_context(|| format!("{}", file.display()))
}

/// `kernel/fs/9p/9p.ko.xz` is the module `9p`; dashes and underscores are the same (depmod(8)).
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// Paths of the requested modules and of all that they need, each behind what it needs; those that are built into the
/// kernel need no file. `index` is `modules.dep`: a line says a path, a colon, and the paths that it needs, in the
/// order in which they are unloaded (modules.dep(5)).
fn in_order<'a>(index: &'a str, builtin: &str, requested: &[&str]) -> Result<Vec<&'a str>> {
    let lines = index.lines().filter_map(|line| line.split_once(':'));
    let needs: HashMap<String, (&str, &str)> =
        lines.map(|(path, needs)| (module_name(path), (path, needs))).collect();
    let mut order = Vec::new();
    for name in requested {
        let Some((path, needed)) = needs.get(*name) else {
            let is_builtin = builtin.lines().any(|path| module_name(path) == *name);
            anyhow::ensure!(is_builtin, "the kernel has no module {name}");
            continue;
        };
        for path in needed.split_whitespace().rev().chain([*path]) {
            if !order.contains(&path) {
                order.push(path);
            }
        }
    }
    Ok(order)
}

/// Checks that the agent can be run in a guest: it is there and is a program for this machine.
pub(crate) fn check_agent(agent: &Path) -> Result<()> {
    output(Command::new(agent).arg("version")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n\
        kernel/net/9p/9pnet.ko.xz: kernel/fs/netfs/netfs.ko.xz\nkernel/fs/netfs/netfs.ko.xz:\n\
        kernel/drivers/char/virtio-rng.ko:\n";

    #[test]
    fn every_module_stands_behind_what_it_needs_and_once() {
        let order = in_order(INDEX, "kernel/fs/overlay.ko\n", &["9p", "overlay", "9pnet"]).expect("an order");
        assert_eq!(
            order,
            ["kernel/fs/netfs/netfs.ko.xz", "kernel/net/9p/9pnet.ko.xz", "kernel/fs/9p/9p.ko.xz"]
        );
    }

    #[test]
    fn a_module_that_is_nowhere_is_an_error() {
        let error = in_order(INDEX, "", &["overlay"]).expect_err("no such module");
        assert_eq!(error.to_string(), "the kernel has no module overlay");
    }

    #[test]
    fn dashes_of_a_file_are_underscores_of_a_module() {
        assert_eq!(
            in_order(INDEX, "", &["virtio_rng"]).expect("found"),
            ["kernel/drivers/char/virtio-rng.ko"]
        );
        assert_eq!(module_name("kernel/a/nf-x.y.ko.zst"), "nf_x.y");
    }
}
