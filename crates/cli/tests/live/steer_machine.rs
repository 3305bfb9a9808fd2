//! A namespace with a pair of interfaces of several queues, and the program on one of them.

use crate::load;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, open_copy, program, require, wait_until};
use traffic::{Popularity, Scenario};

/// The end that receives.
pub const WAN: &str = "wan0";
/// The end that sends.
const FAR: &str = "far0";

/// The namespace, with the folder of its journal. Whatever is steered in it goes with it.
pub struct Machine {
    namespace: Namespace,
    folder: tempfile::TempDir,
    journal: String,
    cpus: String,
}

/// Exit code; -1 for a signal.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// All that it said.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_rxlane").into()
}

/// Whether the kernel lets this process load programs.
fn bpf() -> Result<(), Missing> {
    match xdp::kernel() {
        xdp::Kernel { cpumap_programs: Some(true), .. } => Ok(()),
        xdp::Kernel { cpumap_programs: None, .. } => {
            Err(Missing("loading BPF programs requires root".to_owned()))
        }
        _ => Err(Missing("this kernel has no cpumap programs (Linux 5.9 has)".to_owned())),
    }
}

impl Machine {
    /// `None` where it cannot be made.
    pub fn new() -> Option<Machine> {
        require("ethtool", program("ethtool"))?;
        require("netns", probe())?;
        require("bpf", bpf())?;
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { queues: 4, mtu: 1600, ..Veth::pair(WAN, FAR) }).expect("a pair");
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal").to_str().expect("UTF-8").to_owned();
        let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("CPUs").trim().to_owned();
        Some(Machine { namespace, folder, journal, cpus: online })
    }

    /// The name of the namespace.
    pub fn namespace(&self) -> &str {
        self.namespace.name()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn journal(&self) -> &str {
        &self.journal
    }

    /// All CPUs, as a list.
    pub fn cpus(&self) -> &str {
        &self.cpus
    }

    /// `rxlane steer …` inside, not yet started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(binary());
        command.arg("steer").args(arguments).stdin(Stdio::null()).env("COLUMNS", "80");
        command.args(["--journal", &self.journal]);
        command
    }

    /// Another command of rxlane inside, not yet started.
    pub fn command_of(&self, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(binary());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it starts")
    }

    /// Another command of rxlane.
    pub fn rxlane(&self, arguments: &[&str]) -> Output {
        self.command_of(arguments).output().expect("it starts")
    }

    /// As a user without privilege.
    pub fn as_nobody(&self, arguments: &[&str]) -> Output {
        // The build folder may be closed to others.
        let copy = open_copy(binary().as_ref(), self.folder.path()).expect("a copy");
        let mut command = self.namespace.command("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy).arg("steer");
        command.args(arguments).stdin(Stdio::null()).env("COLUMNS", "80");
        command.args(["--journal", &self.journal]);
        command.output().expect("it starts")
    }

    pub fn status(&self, more: &[&str]) -> Value {
        let output = self.run(&[&["status", WAN, "--json"], more].concat());
        assert_eq!(code(&output), 0, "{}", said(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Without rates.
    pub fn status_of(&self, interface: &str) -> Value {
        let output = self.run(&["status", interface, "--json", "--interval", "0"]);
        assert_eq!(code(&output), 0, "{}", said(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// `rxlane steer …` in another namespace, with the same journal.
    pub fn run_in(&self, namespace: &Namespace, arguments: &[&str]) -> Output {
        let mut command = namespace.command(binary());
        command.arg("steer").args(arguments).args(["--journal", &self.journal]).stdin(Stdio::null());
        command.output().expect("it starts")
    }

    /// `rxlane steer …` inside, started by another program.
    pub fn run_by(&self, starter: &[&str], arguments: &[&str]) -> Output {
        let (first, rest) = starter.split_first().expect("a program");
        let mut command = self.namespace.command(first);
        command.args(rest).arg(binary()).arg("steer").args(arguments).args(["--journal", &self.journal]);
        command.stdin(Stdio::null()).output().expect("it starts")
    }

    /// Runs a script in a mount and process namespace without a BPF file system, where the shell is process 1; `$steer` is
    /// `rxlane steer` inside, and `$journal` has to follow its arguments.
    pub fn in_own_mounts(&self, script: &str) -> Option<Output> {
        let unshare = require("unshare", program("unshare"))?;
        let head = format!(
            "steer='ip netns exec {} {} steer'; journal='--journal {}'\n\
             while umount /sys/fs/bpf 2>/dev/null; do :; done\n",
            self.namespace.name(),
            binary().display(),
            self.journal
        );
        let mut command = Command::new(unshare);
        command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c"]).arg(head + script);
        Some(command.stdin(Stdio::null()).output().expect("it starts"))
    }

    pub fn wait_until_steered(&self) {
        wait_until("it is steered", || !self.status(&["--interval", "0"])["keeper"].is_null());
    }

    pub fn ip(&self, arguments: &[&str]) -> String {
        self.namespace.run("ip", arguments).expect("ip")
    }

    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.namespace.inside(work)
    }

    fn frames(scenario: &str) -> Vec<Vec<u8>> {
        let mut scenario = Scenario::named(scenario).expect("a scenario").with_flows(400);
        // One heavy flow would make any share possible: the key of the hash is another each time.
        scenario.popularity = Popularity::RoundRobin;
        let mut traffic = scenario.generate(7).expect("a generator");
        (0..2000).map(|_| traffic.next_frame().bytes.to_vec()).collect()
    }

    /// Sends 2,000 frames, in pieces that no queue drops, and waits until they are there.
    pub fn send(&self, scenario: &str) -> u64 {
        let frames = Machine::frames(scenario);
        for piece in frames.chunks(100) {
            self.namespace.send(FAR, piece).expect("sent");
        }
        thread::sleep(Duration::from_millis(200));
        frames.len() as u64
    }

    /// Sends while `work` runs; at most a minute.
    pub fn under_load<T>(&self, scenario: &str, work: impl FnOnce() -> T) -> T {
        load::under_load(&self.namespace, FAR, &Machine::frames(scenario), work)
    }

    /// What of the interface `up` could change.
    pub fn state(&self) -> String {
        format!("{}{}", self.state_of(WAN), self.features())
    }

    /// Flags, MTU and XDP of an interface.
    pub fn state_of(&self, interface: &str) -> String {
        self.ip(&["-d", "-o", "link", "show", "dev", interface])
    }

    pub fn features(&self) -> String {
        self.namespace.run("ethtool", &["-k", WAN]).expect("features")
    }

    /// No pins, no notes, no process; those that were told to end have a moment for it.
    pub fn assert_nothing_left(&self) {
        let what = std::fmt::from_fn(|f| write!(f, "nothing is left of {:?}", self.left()));
        wait_until(what, || self.left().is_empty());
    }

    /// Pins of this namespace, and files beside the locks.
    pub fn left(&self) -> Vec<String> {
        let namespace = fs::metadata(self.namespace.path()).expect("a namespace").ino();
        let pins = Path::new("/sys/fs/bpf/rxlane/steer").join(namespace.to_string());
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten();
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
        };
        let of_interfaces = names(&pins).into_iter().flat_map(|name| names(&pins.join(name)));
        let notes = names(Path::new(&self.journal));
        let notes = notes.into_iter().filter(|name| !["lock", "turn"].contains(&name.as_str()));
        of_interfaces.chain(notes).collect()
    }

    /// The command, with an `ethtool` that changes a feature and then does not come back; a group of its own.
    pub fn with_hanging_ethtool(&self, arguments: &[&str]) -> Command {
        let ethtool = program("ethtool").expect("asked before");
        let script = format!(
            "#!/bin/sh\n'{0}' \"$@\"\nstatus=$?\n[ \"$1\" = -K ] && exec sleep 30\nexit $status\n",
            ethtool.display()
        );
        let path = self.folder.path().join("ethtool");
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        let search =
            format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut command = self.command(arguments);
        command.env("PATH", search).process_group(0);
        command
    }

    /// Ends a process and those that it waits for.
    pub fn kill_group(&self, child: &Child) {
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args(["-9", "--", &group]).status().expect("kill").success());
    }

    pub fn signal(&self, child: &Child, signal: &str) {
        let status = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A process that stays would keep the namespace; pins outlive it.
        let _ = self.command(&["down", WAN]).output();
    }
}
