//! A folder that stands for a machine: files of procfs and sysfs, and programs that keep their settings in files.

use host::setting::{Setting, Tree};
use rxlane_service::StateDir;
use rxlane_service::journal::Journal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The machine. Its `eth0` has two channels and a table of halves.
pub struct Machine {
    folder: TempDir,
}

const FILES: [(&str, &str); 14] = [
    ("proc/sys/kernel/random/boot_id", "6cf6f7b6-0000-4000-8000-000000000001"),
    ("proc/thread-self/ns/net", ""),
    ("proc/irq/128/smp_affinity_list", "0-3"),
    ("proc/sys/net/core/netdev_budget", "300"),
    ("sys/class/net/eth0/ifindex", "2"),
    ("sys/class/net/eth0/mtu", "1500"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000000"),
    ("state/channels", "2"),
    ("state/reta", "0 0 0 0 1 1 1 1"),
    ("state/udp4", "sd"),
    ("state/ring", "256"),
    ("state/adaptive-rx", "on"),
    ("state/rx-usecs", "3"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456"),
];

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/journal_machine");

impl Machine {
    pub fn new() -> Machine {
        let machine = Machine { folder: TempDir::new().expect("a folder") };
        for (file, text) in FILES {
            machine.write(file, text);
        }
        // Links, not copies: a file that this process has written may still be open for writing in a program that
        // another thread is just starting, and cannot be run then (ETXTBSY).
        fs::create_dir_all(machine.path("usr/sbin")).expect("made");
        for program in ["ethtool", "ip"] {
            let link = machine.path("usr/sbin").join(program);
            symlink(Path::new(PROGRAMS).join(program), link).expect("a link");
        }
        machine
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub fn tree(&self) -> Tree {
        Tree::at(self.folder.path())
    }

    pub fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, format!("{text}\n")).expect("written");
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("a file").trim().to_owned()
    }

    /// Every setting there is.
    pub fn state(&self) -> BTreeMap<&'static str, String> {
        // The width of a mask, and whether blanks or tabs stand between numbers, is not part of a value.
        let value = |file: &str| self.read(file).replace("00000000,00000000", "0").replace('\t', " ");
        FILES.iter().map(|(file, _)| (*file, value(file))).collect()
    }

    pub fn directory(&self) -> PathBuf {
        self.path("run-rxlane")
    }

    pub fn journal_file(&self) -> PathBuf {
        self.directory().join("journal")
    }

    pub fn journal(&self) -> Journal {
        Journal::open(&StateDir::at(self.directory()), &self.tree()).expect("a journal")
    }
}

pub fn setting(command: &str) -> Setting {
    command.parse().unwrap_or_else(|error| panic!("{command}: {error}"))
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}
