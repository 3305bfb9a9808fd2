//! A namespace with a pair of interfaces, and the program on one of them.

use crate::load;
use crate::run::{BINARY, Ended};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, PATIENCE, program, require, wait_for, wait_until};
use traffic::{Popularity, Scenario};

/// The end that receives.
pub const WAN: &str = "wan0";
/// The end that sends.
pub const FAR: &str = "far0";

/// The namespace, with the folder of its journal. Whatever the program does in it is undone with it.
pub struct Machine {
    pub namespace: Namespace,
    folder: tempfile::TempDir,
    journal: String,
    /// `steer`, `envelope` or `doctor`.
    kind: &'static str,
}

/// Whether the kernel lets this process load what steers.
pub fn cpumap_programs() -> Result<(), Missing> {
    is_possible(xdp::kernel().cpumap_programs, "this kernel has no cpumap programs (Linux 5.9 has)")
}

/// The same of programs for frames of several buffers.
pub fn frags() -> Result<(), Missing> {
    is_possible(xdp::kernel().frags, "this kernel has no XDP in several buffers (Linux 5.18)")
}

fn is_possible(answer: Option<bool>, without: &str) -> Result<(), Missing> {
    match answer {
        Some(true) => Ok(()),
        Some(false) => Err(Missing(without.to_owned())),
        None => Err(Missing("loading BPF programs requires root".to_owned())),
    }
}

/// A namespace with the pair, four queues at each end, received in NAPI, so that queues are counted
/// (`rx_queue_0_xdp_packets`): with GRO on here and TSO off at the end that sends (Linux drivers/net/veth.c,
/// `veth_skb_is_eligible_for_gro`).
pub fn counted_queues() -> Option<Namespace> {
    require("ethtool", program("ethtool"))?;
    require("netns", probe())?;
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { queues: 4, mtu: 1600, ..Veth::pair(WAN, FAR) }).expect("a pair");
    namespace.run("ethtool", &["-K", WAN, "gro", "on"]).expect("GRO");
    namespace.run("ethtool", &["-K", FAR, "tso", "off"]).expect("no TSO");
    Some(namespace)
}

/// The far end sends from one queue, which is the queue that receives.
pub fn send_from_one_queue(namespace: &Namespace) {
    namespace.run("ethtool", &["-L", FAR, "tx", "1"]).expect("one queue");
}

/// Whether interfaces of a process can be made.
pub fn tun() -> Result<(), Missing> {
    let opened = fs::File::options().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(|error| Missing(format!("/dev/net/tun: {error} (modprobe tun)")))
}

/// Two namespaces with a pair between them; each end is [`WAN`]. `None` where they cannot be made.
pub fn two_ends(mtu: u32, queues: u32) -> Option<(Namespace, Namespace)> {
    require("netns", probe())?;
    let (near, far) = (Namespace::new().expect("a namespace"), Namespace::new().expect("another"));
    near.veth(&Veth { mtu, queues, peer: Some(&far), ..Veth::pair(WAN, WAN) }).expect("a pair");
    Some((near, far))
}

/// New interfaces have IPv6, and their addresses are good at once.
pub fn speak_ipv6(namespace: &Namespace) {
    namespace.inside(|| {
        for (setting, value) in [("disable_ipv6", "0"), ("accept_dad", "0"), ("dad_transmits", "0")] {
            let path = format!("/proc/sys/net/ipv6/conf/default/{setting}");
            fs::write(path, value).expect("a setting");
        }
        fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0").expect("a setting");
    });
}

/// All CPUs, as a list.
pub fn online_cpus() -> String {
    fs::read_to_string("/sys/devices/system/cpu/online").expect("CPUs").trim().to_owned()
}

/// What `steer up --disable-rxvlan --rebalance` has changed at a moment, one by one.
pub const SIGNS: [&str; 5] = ["", "rx-vlan-offload: off", "link", ".plan", ".daemon"];

/// An executable script of a shell.
pub fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// The search path with a folder in front of it.
pub fn search_path(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

/// Tries it with more and more of something, until that is enough. Gives how often it was not; what it said then was no panic,
/// and `check` has seen it.
pub fn until_enough(
    limits: impl Iterator<Item = u32>,
    run: impl Fn(u32) -> Output,
    mut check: impl FnMut(u32, &Output),
) -> u32 {
    for (refused, limit) in (0..).zip(limits) {
        let output = run(limit);
        if output.code() == 0 {
            return refused;
        }
        assert!((1..=3).contains(&output.omits("panicked").code()), "{limit}: {}", output.text());
        check(limit, &output);
    }
    panic!("nothing was enough");
}

/// The manager of services, as one that is started by it sees it (sd_notify(3)).
pub struct Manager {
    socket: UnixDatagram,
    pub path: PathBuf,
}

impl Manager {
    pub fn new(folder: &Path) -> Manager {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).expect("bound");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time");
        Manager { socket, path }
    }

    /// The next message.
    pub fn heard(&self) -> String {
        let mut buffer = [0; 200];
        let length = self.socket.recv(&mut buffer).expect("heard in time");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

/// Sends a signal to a process, or to a group whose number is negative.
#[track_caller]
pub fn signal(process: impl ToString, signal: &str) {
    let process = process.to_string();
    let sent = Command::new("kill").args([&format!("-{signal}"), "--", &process]).status();
    assert!(sent.expect("kill").success(), "{signal} to {process}");
}

/// Names of what is in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

impl Machine {
    /// `None` where it cannot be made.
    pub fn steer() -> Option<Machine> {
        require("ethtool", program("ethtool"))?;
        require("netns", probe())?;
        require("bpf", cpumap_programs())?;
        Some(Machine::of("steer", &Veth { queues: 4, mtu: 1600, ..Veth::pair(WAN, FAR) }))
    }

    /// The same; the far end's MTU is larger.
    pub fn envelope() -> Option<Machine> {
        require("netns", probe())?;
        require("bpf", frags())?;
        let machine = Machine::of("envelope", &Veth::pair(WAN, FAR));
        machine.ip(&["link", "set", FAR, "mtu", "2000"]);
        Some(machine)
    }

    /// Frames of one queue, until another number of queues is set.
    pub fn doctor() -> Option<Machine> {
        let namespace = counted_queues()?;
        send_from_one_queue(&namespace);
        Some(Machine::inside_of("doctor", namespace))
    }

    fn of(kind: &'static str, veth: &Veth) -> Machine {
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(veth).expect("a pair");
        Machine::inside_of(kind, namespace)
    }

    fn inside_of(kind: &'static str, namespace: Namespace) -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal").to_str().expect("UTF-8").to_owned();
        Machine { namespace, folder, journal, kind }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn journal(&self) -> &str {
        &self.journal
    }

    /// `rxlane KIND …` in a namespace, with the journal of this machine.
    pub fn command_of(&self, namespace: &Namespace, kind: &str, arguments: &[&str]) -> Command {
        let mut command = namespace.command(BINARY);
        command.arg(kind).args(arguments).args(["--journal", &self.journal]);
        command.stdin(Stdio::null()).env("COLUMNS", "80");
        command
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&self.namespace, self.kind, arguments)
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it starts")
    }

    /// In another namespace.
    pub fn run_in(&self, namespace: &Namespace, arguments: &[&str]) -> Output {
        self.command_of(namespace, self.kind, arguments).output().expect("it starts")
    }

    /// Started by another program.
    pub fn run_by(&self, starter: &[&str], arguments: &[&str]) -> Output {
        let (first, rest) = starter.split_first().expect("a program");
        let mut command = self.namespace.command(first);
        command.args(rest).arg(BINARY).arg(self.kind).args(arguments).args(["--journal", &self.journal]);
        command.stdin(Stdio::null()).output().expect("it starts")
    }

    /// Starts it and waits until it has got as far as a name of [`Machine::left`] or a part of the features; or has ended.
    pub fn start_until(&self, arguments: &[&str], sign: &str) -> Child {
        let child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        wait_until(format!("`{sign}`, or its end"), || {
            let is_there = || self.left().iter().any(|name| name.ends_with(sign));
            child.try_wait().expect("a status").is_some() || is_there() || self.features().contains(sign)
        });
        child
    }

    /// Runs a script in a mount and process namespace without a BPF file system, where the shell is process 1; `$steer` is
    /// `rxlane steer` inside, and `$journal` has to follow its arguments.
    pub fn in_own_mounts(&self, script: &str) -> Option<Output> {
        let unshare = require("unshare", program("unshare"))?;
        let head = format!(
            "steer='ip netns exec {} {BINARY} steer'; journal='--journal {}'\n\
             while umount /sys/fs/bpf 2>/dev/null; do :; done\n",
            self.namespace.name(),
            self.journal
        );
        let mut command = Command::new(unshare);
        command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c"]).arg(head + script);
        Some(command.stdin(Stdio::null()).output().expect("it starts"))
    }

    /// What `status --json` says of the interface, whatever its exit code.
    pub fn status(&self) -> Value {
        self.status_of(WAN)
    }

    pub fn status_of(&self, interface: &str) -> Value {
        let without_rates: &[&str] = if self.kind == "steer" { &["--interval", "0"] } else { &[] };
        self.run(&[&["status", interface, "--json"], without_rates].concat()).json()
    }

    pub fn wait_until_steered(&self) {
        wait_until("it is steered", || !self.status()["keeper"].is_null());
    }

    /// Arguments of `up`, with a daemon where there can be one.
    pub fn up_arguments<'a>(&self, interface: &'a str) -> [&'a str; 5] {
        match self.kind {
            "steer" => ["up", interface, "--seconds", "0", "--rebalance"],
            _ => ["up", interface, "--header", "8", "--mode=native"],
        }
    }

    pub fn up(&self, interface: &str) -> Output {
        self.run(&self.up_arguments(interface))
    }

    /// Whether all of it is up.
    pub fn is_up(&self, interface: &str) -> bool {
        let status = self.status_of(interface);
        match self.kind {
            "steer" => status["mode"] == "native" && status["keeper"]["alive"] == true,
            _ => status["state"] == "up",
        }
    }

    pub fn start_in_the_foreground(&self, more: &[&str]) -> Child {
        let up = ["up", WAN, "--seconds", "0", "--foreground"];
        let mut command = self.command(&[&up, more].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        self.wait_until_steered();
        child
    }

    pub fn ip(&self, arguments: &[&str]) -> String {
        self.namespace.run("ip", arguments).expect("ip")
    }

    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.namespace.inside(work)
    }

    /// MTU of an interface, as sysfs has it.
    pub fn mtu(&self, interface: &str) -> String {
        let path = format!("/sys/class/net/{interface}/mtu");
        self.namespace.run("cat", &[&path]).expect("an MTU").trim().to_owned()
    }

    pub fn traffic(scenario: &str) -> Vec<Vec<u8>> {
        let mut scenario = Scenario::named(scenario).expect("a scenario").with_flows(400);
        // One heavy flow would make any share possible: the key of the hash is another each time.
        scenario.popularity = Popularity::RoundRobin;
        let mut traffic = scenario.generate(7).expect("a generator");
        (0..2000).map(|_| traffic.next_frame().bytes.to_vec()).collect()
    }

    /// Sends 2,000 frames in pieces that no queue drops, and waits until no more arrive: the number of those sent.
    pub fn send_scenario(&self, scenario: &str) -> u64 {
        let frames = Machine::traffic(scenario);
        for piece in frames.chunks(100) {
            self.namespace.send(FAR, piece).expect("sent");
        }
        let sent = frames.len() as u64;
        let mut before = (Value::Null, Value::Null, 0);
        wait_until("no more frames arrive", || {
            let received = self.namespace.run("cat", &["/sys/class/net/wan0/statistics/rx_packets"]);
            let received: u64 = received.expect("a counter").trim().parse().expect("a number");
            let status = self.status();
            let rows = status["reasons"].as_array().into_iter().flatten();
            let seen = rows.filter_map(|row| row["frames"].as_u64()).sum::<u64>().max(received);
            let now = (status["reasons"].clone(), status["cpus"].clone(), received);
            let is_over = seen > sent / 2 && now == before;
            before = now;
            is_over
        });
        sent
    }

    /// Sends frames to the receiving end, and waits until so many were counted by the envelope.
    pub fn send(&self, frames: &[Vec<u8>], counted: u64) -> Value {
        self.namespace.send(FAR, frames).expect("sent");
        wait_for(format!("{counted} frames are counted"), || {
            let status = self.status();
            let rows = ["passed", "refused"].map(|list| status[list].as_array().expect("rows").clone());
            let sum: u64 = rows.iter().flatten().filter_map(|row| row["frames"].as_u64()).sum();
            (sum >= counted).then_some(status)
        })
    }

    /// Sends while `work` runs; at most a minute.
    pub fn under_load<T>(&self, scenario: &str, work: impl FnOnce() -> T) -> T {
        load::under_load(&self.namespace, FAR, &Machine::traffic(scenario), work)
    }

    /// Flags, MTU and XDP of an interface.
    pub fn state_of(&self, interface: &str) -> String {
        self.ip(&["-d", "-o", "link", "show", "dev", interface])
    }

    /// What of the interface `up`, or `--apply`, could change.
    pub fn state(&self) -> String {
        let run = |program: &str, arguments: &[&str]| self.namespace.run(program, arguments).expect(program);
        match self.kind {
            "steer" => self.state_of(WAN) + &self.features(),
            "envelope" => self.state_of(WAN),
            _ => {
                let masks = "cat /sys/class/net/wan0/queues/rx-*/rps_cpus /sys/class/net/wan0/mtu";
                self.features() + &run("ethtool", &["-l", WAN]) + &run("sh", &["-c", masks])
            }
        }
    }

    pub fn features(&self) -> String {
        self.namespace.run("ethtool", &["-k", WAN]).expect("features")
    }

    /// The folder of the pins in this namespace.
    pub fn pins(&self) -> PathBuf {
        self.pins_in(&self.namespace)
    }

    pub fn pins_in(&self, namespace: &Namespace) -> PathBuf {
        let namespace = fs::metadata(namespace.path()).expect("a namespace").ino();
        Path::new("/sys/fs/bpf/rxlane").join(self.kind).join(namespace.to_string())
    }

    /// Pins of this namespace, and records next to the locks.
    pub fn left(&self) -> Vec<String> {
        let pins = self.pins();
        let pins = names(&pins).into_iter().flat_map(|name| names(&pins.join(name)));
        let records = names(Path::new(&self.journal));
        pins.chain(records.into_iter().filter(|name| !["lock", "turn"].contains(&name.as_str()))).collect()
    }

    /// No pins, no records, no process; those that got a signal to end have a moment for it.
    pub fn assert_nothing_left(&self) {
        let what = std::fmt::from_fn(|f| write!(f, "nothing is left of {:?}", self.left()));
        wait_until(what, || self.left().is_empty());
    }

    /// Forgets what was recorded.
    pub fn forget_journal(&self) {
        fs::remove_dir_all(&self.journal).expect("removed");
    }

    /// With an `ip` that does something else, or more, where it is to set the MTU; in a process group of its own. `IP` in the
    /// script is the program, `MARK` a file that [`Machine::wait_for_mark`] waits for.
    pub fn with_ip(&self, setting: &str, arguments: &[&str]) -> Command {
        let ip = program("ip").expect("required before").display().to_string();
        let setting = setting.replace("IP", &ip).replace("MARK", &self.mark().display().to_string());
        script(&self.folder().join("ip"), &format!("[ \"$2\" = set ] && {{ {setting}; }}\nexec {ip} \"$@\""));
        // Through env(1): the namespace is entered with the `ip` of the machine.
        let mut command = self.namespace.command("env");
        command.arg(format!("PATH={}", search_path(self.folder()))).args([BINARY, self.kind]);
        command.args(arguments).args(["--journal", &self.journal]);
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
        // A daemon would keep the namespace; pins outlive it.
        let kind = if self.kind == "doctor" { "steer" } else { self.kind };
        let _ = self.command_of(&self.namespace, kind, &["down", WAN]).output();
    }
}
