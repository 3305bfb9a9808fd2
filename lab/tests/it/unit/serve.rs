//! `rxlane-pppoe-serve@.service` with Debian's `pppd` for subscribers.

use super::{INSTALLED, Unit, guest};
use crate::pppoe::provider::{PASSWORD, USER};
use crate::pppoe::subscriber::{Mode, Subscriber};
use rxlane_lab::Guest;
use serde_json::Value;

const NAME: &str = "rxlane-pppoe-serve@acc0";
const SECRETS: &str = "/etc/rxlane/subscribers";
const ACCOUNTING: &str = "/var/log/rxlane/acc0.accounting";

/// A line from `acc0` to `wan0` in the namespace `home`, which goes with this.
struct Line<'a>(&'a Guest);

impl<'a> Line<'a> {
    fn new(guest: &'a Guest) -> Line<'a> {
        guest
            .sh("modprobe -a tun veth pppoe ppp_async; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; \
                 ip netns add home; ip -n home link set lo up; \
                 ip link add acc0 type veth peer name wan0 netns home; \
                 ip link set acc0 up; ip -n home link set wan0 up")
            .expect("a line");
        Line(guest)
    }

    fn secrets(&self, password: &str) {
        let text = format!("{USER} * \"{password}\" *\n");
        self.0.write(SECRETS, text.as_bytes()).expect("written");
        self.0.sh(&format!("chmod 600 {SECRETS}")).expect("changed");
    }

    /// A subscriber connects, and the unit's concentrator answers it.
    fn connect(&self, password: &str, more: &[&str]) -> Subscriber<'a> {
        let subscriber = Subscriber::connect(self.0, Mode::Kernel, "wan0", password, more);
        subscriber.await_addresses();
        self.0
            .sh("ip netns exec home busybox ping -q -c 2 -W 20 198.51.100.1")
            .unwrap_or_else(|error| panic!("{error:#}\n{}", subscriber.log()));
        subscriber
    }

    fn sessions(&self) -> usize {
        let output = self.0.run(&[INSTALLED, "pppoe", "sessions", "acc0", "--json"]).expect("it runs");
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        status["sessions"].as_array().map_or(0, Vec::len)
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let _ = self.0.sh(&format!(
            "systemctl stop {NAME}; ip link del acc0; ip netns pids home | xargs -r kill; ip netns del home"
        ));
    }
}

#[test]
#[ignore = "make nightly"]
fn the_unit_serves_reads_its_secrets_again_and_ends_in_order() {
    let Some((guest, _turn)) = guest() else { return };
    let _only = super::pppoe::only();
    let line = Line::new(guest);
    let unit = Unit { guest, name: NAME };
    unit.options(
        "pppoe-serve-acc0.conf",
        &format!(
            "--secrets {SECRETS} --local 198.51.100.1 --pool 198.51.100.10-198.51.100.13 --accounting {ACCOUNTING}"
        ),
    );
    line.secrets(PASSWORD);
    unit.start();
    line.connect(PASSWORD, &[]).hang_up();
    unit.wait("without sessions", || line.sessions() == 0);

    // Another password, read by the same process.
    let before = unit.property("MainPID");
    line.secrets("another word");
    guest.sh(&format!("systemctl reload {NAME}")).expect("reloaded");
    let subscriber = line.connect("another word", &[]);
    assert_eq!(unit.property("MainPID"), before);
    assert!(guest.sh(&format!("cat {ACCOUNTING}")).expect("accounting").contains(USER));

    guest.sh(&format!("systemctl kill -s KILL {NAME}")).expect("killed");
    unit.await_restart(&before);
    subscriber.kill();
    let subscriber = line.connect("another word", &[]);

    guest.sh(&format!("systemctl stop {NAME}")).expect("stopped");
    assert_eq!(unit.property("Result"), "success", "{}", unit.journal());
    subscriber.await_said("Connection terminated");
    let left = guest.sh("ls -d /sys/class/net/* /run/rxlane/*/* 2>/dev/null || :; ip route").expect("a list");
    assert!(!left.contains("pppoe"), "{left}");
}

/// What the documentation adds to the unit for programs in XDP.
fn drop_in() -> &'static str {
    let page = include_str!("../../../../docs/pppoe/serve.md");
    let block = page.split("```\n").find(|block| block.contains("SystemCallFilter=bpf"));
    block.expect("a drop-in")
}

/// The drop-in, and `up0` to the namespace `world`, which go with this.
struct Uplink<'a>(&'a Guest);

impl<'a> Uplink<'a> {
    const FOLDER: &'static str = "/etc/systemd/system/rxlane-pppoe-serve@acc0.service.d";

    fn new(guest: &'a Guest) -> Uplink<'a> {
        let folder = Uplink::FOLDER;
        guest.sh(&format!("mkdir -p {folder}")).expect("a folder");
        guest.write(&format!("{folder}/xdp.conf"), drop_in().as_bytes()).expect("written");
        guest
            .sh("systemctl daemon-reload; modprobe veth; ip netns add world; \
                 ip link add up0 type veth peer name up0 netns world; \
                 ip link set up0 up; ip -n world link set up0 up; ip address add 203.0.113.1/24 dev up0; \
                 ip -n world address add 203.0.113.2/24 dev up0; ip -n world route add 198.51.100.0/24 via 203.0.113.1; \
                 ethtool -K up0 rxvlan off; ip netns exec world ethtool -K up0 tx off; \
                 sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.up0.rp_filter=0")
            .expect("an uplink");
        Uplink(guest)
    }
}

impl Drop for Uplink<'_> {
    fn drop(&mut self) {
        let folder = Uplink::FOLDER;
        let _ = self
            .0
            .sh(&format!("ip link del up0; ip netns del world; rm -r {folder}; systemctl daemon-reload"));
    }
}

#[test]
#[ignore = "make nightly"]
fn the_unit_forwards_in_xdp_and_goes_on_after_a_kill() {
    let Some((guest, _turn)) = guest() else { return };
    let _only = super::pppoe::only();
    let _uplink = Uplink::new(guest);
    let line = Line::new(guest);
    guest.sh("ethtool -K acc0 rxvlan off").expect("tags");
    let unit = Unit { guest, name: NAME };
    unit.options(
        "pppoe-serve-acc0.conf",
        &format!(
            "--secrets {SECRETS} --local 198.51.100.1 --pool 198.51.100.10-198.51.100.13 --datapath xdp --uplink up0"
        ),
    );
    line.secrets(PASSWORD);
    unit.start();
    // An emulated CPU takes its time for the next process.
    let subscriber = line.connect(PASSWORD, &["lcp-echo-failure", "0"]);
    guest.sh("ip -n home route replace default dev ppp0").expect("a route");
    let answers = || {
        guest
            .sh("ip netns exec world busybox ping -q -c 3 -W 20 198.51.100.10")
            .unwrap_or_else(|error| panic!("{error:#}\n{}\n{}", subscriber.log(), unit.journal()));
    };
    let sent = || {
        let output = guest.run(&[INSTALLED, "pppoe", "sessions", "acc0", "--json"]).expect("it runs");
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        status.pointer("/xdp/sent/packets").and_then(Value::as_u64).expect("a number")
    };
    answers();
    answers();
    assert!(sent() >= 3, "{}", unit.journal());
    let pins =
        || guest.sh("ls /sys/fs/bpf/rxlane/pppoe/*/acc0/link /sys/fs/bpf/rxlane/pppoe/*/up0/link").is_ok();
    assert!(pins());
    let before = unit.property("MainPID");
    guest.sh(&format!("systemctl kill -s KILL {NAME}")).expect("killed");
    // Programs and interface do not wait for the next process.
    let forwards = guest.sh("ip netns exec world busybox ping -q -c 1 -W 5 198.51.100.10");
    println!("while none lives, or the next one does: {forwards:?}");
    unit.await_restart(&before);
    answers();
    assert!(sent() >= 3 && line.sessions() == 1, "{}", unit.journal());
    assert!(unit.journal().contains("1 session of a process that was killed"), "{}", unit.journal());
    guest.sh(&format!("systemctl stop {NAME}")).expect("stopped");
    assert_eq!(unit.property("Result"), "success", "{}", unit.journal());
    assert!(!pins());
}
