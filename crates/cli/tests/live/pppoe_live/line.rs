//! A line: a subscriber's and a concentrator's network namespace with a veth pair between them.

pub use crate::machine::WAN;
use crate::machine::{speak_ipv6, tun, two_ends};
use crate::process::Process;
use crate::run::{BINARY, Ended};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use testkit::netns::Namespace;
use testkit::{program, require, wait_until};

/// The concentrator's own address.
pub const GATEWAY: &str = "10.64.0.1";

const SECRETS: &str = "\
[[subscriber]]\nuser = 'alice'\npassword = 'wonderland'\n\n\
[[subscriber]]\nuser = 'bob'\npassword = 'the builder'\n";

pub struct Line {
    pub near: Namespace,
    pub far: Namespace,
    folder: tempfile::TempDir,
}

impl Line {
    /// `None` where it cannot be made.
    pub fn new() -> Option<Line> {
        require("tun", tun())?;
        require("ping", program("ping"))?;
        // Room for two tags.
        let (near, far) = two_ends(1508, 1)?;
        for namespace in [&near, &far] {
            speak_ipv6(namespace);
        }
        let line = Line { near, far, folder: tempfile::tempdir().expect("a folder") };
        line.write("secrets", SECRETS);
        line.write("alice", "wonderland\n");
        line.write("bob", "the builder\n");
        Some(line)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file that nobody else may read.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        path
    }

    pub fn command(&self, namespace: &Namespace, arguments: &[&str]) -> Command {
        let mut command = namespace.command(BINARY);
        command.arg("pppoe").args(arguments).args(["--state", &self.text("state")]).env("COLUMNS", "80");
        command
    }

    /// `rxlane pppoe` at the subscriber's end.
    pub fn near(&self, arguments: &[&str]) -> Output {
        self.command(&self.near, arguments).output().expect("it runs")
    }

    /// `rxlane pppoe` at the concentrator's end.
    pub fn far(&self, arguments: &[&str]) -> Output {
        self.command(&self.far, arguments).output().expect("it runs")
    }

    /// `serve` with a pool of ten addresses.
    pub fn serve_command(&self, more: &[&str]) -> Command {
        let secrets = self.text("secrets");
        let mut arguments = vec!["serve", WAN, "--secrets", &secrets];
        for (option, value) in [("--local", GATEWAY), ("--pool", "10.64.0.2-10.64.0.11")] {
            if !more.contains(&option) {
                arguments.extend([option, value]);
            }
        }
        self.command(&self.far, &[&arguments, more].concat())
    }

    /// Starts it and waits until it serves.
    pub fn serve(&self, more: &[&str]) -> Process {
        let serving = Process::start(&mut self.serve_command(more));
        serving.hear("disconnect --concentrator", 1);
        serving
    }

    /// `serve` that is to end at once, with what it says.
    pub fn serve_in_vain(&self, more: &[&str]) -> Output {
        Process::start(&mut self.serve_command(more)).ended()
    }

    /// `connect` of a user whose password is in the file of that name.
    pub fn connect_command(&self, user: &str, more: &[&str]) -> Command {
        let file = self.text(user);
        let usual = ["connect", WAN, "--user", user, "--password-file", &file];
        self.command(&self.near, &[&usual, more].concat())
    }

    /// Starts it and waits until a session is open.
    pub fn connect(&self, user: &str, more: &[&str]) -> Process {
        let client = self.start_to_connect(user, more);
        client.hear(": open", 1);
        client
    }

    pub fn start_to_connect(&self, user: &str, more: &[&str]) -> Process {
        Process::start(&mut self.connect_command(user, more))
    }

    /// One try that fails.
    pub fn connect_in_vain(&self, user: &str, more: &[&str]) -> Output {
        let tried = self.start_to_connect(user, &[more, &["--reconnect", "false"]].concat()).ended();
        // The reason of the end is said once.
        let said = tried.ends(1).omits("closed: ").text();
        assert_eq!(said.matches("rxlane: ").count(), 1, "{said}");
        tried
    }

    pub fn status(&self, name: &str) -> Value {
        self.near(&["status", name, "--json"]).json()
    }

    /// The same of a client that may not have begun yet.
    pub fn status_if_any(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(&self.near(&["status", name, "--json"]).stdout).ok()
    }

    /// The concentrator and its sessions.
    pub fn concentrator(&self) -> Value {
        self.far(&["sessions", WAN, "--json"]).ends(0).json()
    }

    pub fn sessions(&self) -> Vec<Value> {
        self.concentrator()["sessions"].as_array().expect("a list").clone()
    }

    /// Waits until the concentrator has so many sessions.
    pub fn wait_for_sessions(&self, count: usize) {
        wait_until(format!("{count} sessions"), || self.sessions().len() == count);
    }

    /// Whether the subscriber's end has an interface.
    pub fn has(&self, interface: &str) -> bool {
        self.near.run("ip", &["link", "show", interface]).is_ok()
    }

    pub fn ip(&self, arguments: &[&str]) -> String {
        self.near.run("ip", arguments).expect("ip")
    }

    /// Whole packets of so many bytes both ways.
    pub fn ping(&self, from: &Namespace, address: &str, bytes: usize) {
        let headers = if address.contains(':') { 48 } else { 28 };
        let size = (bytes - headers).to_string();
        // One answer at a time, which is waited for: behind the last of several packets ping(8) waits no longer than twice what
        // an earlier one took, which on a busy machine is less than the last one takes.
        let arguments = ["-c", "1", "-w", "60", "-M", "do", "-s", &size, address];
        for _ in 0..3 {
            from.run("ping", &arguments).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Waits until the gateway answers again.
    pub fn wait_until_it_answers(&self) {
        wait_until("the gateway answers", || {
            self.near.run("ping", &["-c", "1", "-W", "1", "-i", "0.2", GATEWAY]).is_ok()
        });
    }
}
