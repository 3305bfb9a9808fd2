//! A namespace with a pair of interfaces, and an envelope on one of them.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, program, require, wait_for, wait_until};

/// The end that receives.
pub const WAN: &str = "wan0";
/// The end that sends; its MTU is larger.
const FAR: &str = "far0";

/// The namespace, with the folder of its journal.
pub struct Machine {
    pub namespace: Namespace,
    folder: tempfile::TempDir,
    journal: String,
}

/// Exit code; -1 for a signal.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// All that it said.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_rxlane").into()
}

/// Whether the kernel lets this process load programs for frames of several buffers.
fn bpf() -> Result<(), Missing> {
    match xdp::kernel().frags {
        Some(true) => Ok(()),
        Some(false) => Err(Missing("this kernel has no XDP in several buffers (Linux 5.18)".to_owned())),
        None => Err(Missing("loading BPF programs requires root".to_owned())),
    }
}

impl Machine {
    /// `None` where it cannot be made.
    pub fn new() -> Option<Machine> {
        require("netns", probe())?;
        require("bpf", bpf())?;
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth::pair(WAN, FAR)).expect("a pair");
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal").to_str().expect("UTF-8").to_owned();
        let machine = Machine { namespace, folder, journal };
        machine.ip(&["link", "set", FAR, "mtu", "2000"]);
        Some(machine)
    }

    /// `rxlane COMMAND …` in a namespace, with this journal.
    pub fn command_in(&self, namespace: &Namespace, command: &str, arguments: &[&str]) -> Command {
        let mut all = namespace.command(binary());
        all.arg(command).args(arguments).args(["--journal", &self.journal]);
        all.stdin(Stdio::null()).env("COLUMNS", "80");
        all
    }

    /// `rxlane envelope …` inside.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command_in(&self.namespace, "envelope", arguments).output().expect("it starts")
    }

    /// The same, and its exit code is this.
    #[track_caller]
    pub fn expect(&self, expected: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(code(&output), expected, "{arguments:?}: {}", said(&output));
        said(&output)
    }

    /// As a user without privilege.
    pub fn as_nobody(&self, arguments: &[&str]) -> Output {
        // The build folder may be closed to others. A copy that this process wrote could not be run as long as a child of
        // another thread has it open.
        let copy = self.folder.path().join("rxlane");
        assert!(Command::new("cp").arg(binary()).arg(&copy).status().expect("cp").success());
        for path in [self.folder.path(), &copy] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("open to others");
        }
        let mut command = self.namespace.command("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy).arg("envelope");
        command.args(arguments).args(["--journal", &self.journal]).stdin(Stdio::null());
        command.output().expect("it starts")
    }

    /// What `status --json` says, whatever its exit code.
    pub fn status(&self) -> Value {
        let output = self.run(&["status", WAN, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
    }

    pub fn ip(&self, arguments: &[&str]) -> String {
        self.namespace.run("ip", arguments).expect("ip")
    }

    /// MTU of an interface, as sysfs has it.
    pub fn mtu(&self, interface: &str) -> String {
        self.namespace
            .run("cat", &[&format!("/sys/class/net/{interface}/mtu")])
            .expect("an MTU")
            .trim()
            .to_owned()
    }

    /// Flags, MTU and XDP.
    pub fn state(&self) -> String {
        self.ip(&["-d", "-o", "link", "show", "dev", WAN])
    }

    /// Sends frames to the receiving end, and waits until so many were counted.
    pub fn send(&self, frames: &[Vec<u8>], counted: u64) -> Value {
        self.namespace.send(FAR, frames).expect("sent");
        wait_for(format!("{counted} frames are counted"), || {
            let status = self.status();
            let sum = |list: &str| -> u64 {
                let rows = status[list].as_array().expect("rows");
                rows.iter().map(|row| row["frames"].as_u64().expect("a number")).sum()
            };
            (sum("passed") + sum("refused") >= counted).then_some(status)
        })
    }

    /// The folder of the pins in this namespace.
    pub fn pins(&self) -> PathBuf {
        let namespace = fs::metadata(self.namespace.path()).expect("a namespace").ino();
        Path::new("/sys/fs/bpf/rxlane/envelope").join(namespace.to_string())
    }

    /// No pins, and no notes beside the locks.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten();
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
        };
        let notes = names(Path::new(&self.journal));
        let notes = notes.into_iter().filter(|name| !["lock", "turn"].contains(&name.as_str()));
        assert_eq!(names(&self.pins()).into_iter().chain(notes).collect::<Vec<_>>(), Vec::<String>::new());
    }

    /// Forgets what was noted.
    pub fn forget_journal(&self) {
        fs::remove_dir_all(&self.journal).expect("removed");
    }

    /// Deletes the namespace, with what is in it. Gives the folder of the journal.
    pub fn delete_namespace(&self) -> PathBuf {
        let status = Command::new("ip").args(["netns", "del", self.namespace.name()]).status();
        assert!(status.expect("ip").success());
        PathBuf::from(&self.journal)
    }

    /// `rxlane envelope …` inside, with another journal.
    pub fn command_with(&self, journal: &Path, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(binary());
        command.arg("envelope").args(arguments).arg("--journal").arg(journal).stdin(Stdio::null());
        command
    }

    /// `rxlane envelope …` with an `ip` that does something else, or more, where it is to set the MTU; in a process group of its own.
    /// `IP` in the script is the program, `MARK` a file that [`Machine::wait_for_mark`] waits for.
    pub fn with_ip(&self, setting: &str, arguments: &[&str]) -> Command {
        let ip = program("ip").expect("asked before");
        let script = setting.replace("IP", &ip.display().to_string());
        let script = script.replace("MARK", &self.mark().display().to_string());
        let path = self.folder.path().join("ip");
        let script =
            format!("#!/bin/sh\n[ \"$2\" = set ] && {{ {script}; }}\nexec {} \"$@\"\n", ip.display());
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        let search =
            format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut command = self.namespace.command("env");
        command.arg(format!("PATH={search}")).arg(binary());
        command.arg("envelope").args(arguments).args(["--journal", &self.journal]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("mark")
    }

    /// Waits until the script has come to its mark, which it then has not.
    pub fn wait_for_mark(&self, child: &mut Child) {
        wait_until("the script comes to its mark", || {
            assert!(child.try_wait().expect("a status").is_none(), "it ended without a mark");
            self.mark().exists()
        });
        fs::remove_file(self.mark()).expect("removed");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Pins outlive the namespace.
        let _ = self.run(&["down", WAN]);
    }
}
