//! `rxlane-pppoe@.service` against Debian's `pppoe-server`.

use super::{INSTALLED, Unit, guest};
use crate::pppoe::provider::{Login, PASSWORD, Provider, USER};
use crate::until;
use rxlane_lab::{Extra, Guest, Lab};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub const NAME: &str = "rxlane-pppoe@wan";
const CONFIGURATION: &str = "/etc/rxlane/pppoe-wan.toml";

/// There is one line, in the namespace of systemd.
static LINE: Mutex<()> = Mutex::new(());

/// For one experiment with PPPoE at a time.
pub fn only() -> MutexGuard<'static, ()> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line from `wan0` to `line0` in the namespace `isp`, for one experiment at a time; it goes with this.
pub struct Line<'a> {
    guest: &'a Guest,
    _only: MutexGuard<'static, ()>,
}

impl<'a> Line<'a> {
    pub fn new(guest: &'a Guest) -> Line<'a> {
        let only = only();
        guest
            .sh("modprobe -a tun veth pppoe ppp_async; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; \
                 ip netns add isp; ip -n isp link set lo up; \
                 ip link add wan0 type veth peer name line0 netns isp; \
                 ip link set wan0 up; ip -n isp link set line0 up")
            .expect("a line");
        Line { guest, _only: only }
    }

    /// What the unit is to do, with these lines besides.
    pub fn configure(&self, more: &str) {
        let text = format!("interface = 'wan0'\nuser = '{USER}'\npassword-file = 'wan.password'\n{more}");
        self.guest.write(CONFIGURATION, text.as_bytes()).expect("a configuration");
        self.guest.write("/etc/rxlane/wan.password", PASSWORD.as_bytes()).expect("a password");
        self.guest.sh("chmod 600 /etc/rxlane/wan.password").expect("changed");
    }

    pub fn provider(&self) -> Provider<'a> {
        Provider::start(self.guest, "", Login::Chap).expect("a provider")
    }

    pub fn unit(&self) -> Unit<'a> {
        Unit { guest: self.guest, name: NAME }
    }

    pub fn await_open(&self) {
        let is_whole = |status: Value| status["phase"] == "open" && status["local6"].is_string();
        self.unit().wait("open", || self.status().is_some_and(is_whole));
    }

    pub fn status(&self) -> Option<Value> {
        let output = self.guest.run(&[INSTALLED, "pppoe", "status", "ppp0", "--json"]).expect("it runs");
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Ends the unit, and sees that nothing is left of the session.
    pub fn stop(&self) {
        self.guest.sh(&format!("systemctl stop {NAME}")).expect("stopped");
        assert_eq!(self.unit().property("Result"), "success", "{}", self.unit().journal());
        let left =
            "ls -d /sys/class/net/* /run/rxlane/*/* /run/rxlane/* 2>/dev/null || :; ip route; ip -6 route";
        let left = self.guest.sh(left).expect("a list");
        assert!(!left.contains("ppp") && !left.contains("resolv"), "{left}");
        assert_eq!(self.unit().property("MainPID"), "0");
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let _ = self.guest.sh(&format!(
            "systemctl stop {NAME}; ip link del wan0; ip netns pids isp | xargs -r kill; ip netns del isp"
        ));
    }
}

/// What `systemctl start` of a service with this order says within a time.
fn starts_behind(guest: &Guest, target: &str, seconds: u32) -> bool {
    let name = format!("behind-{}.service", target.replace('.', "-"));
    let text = format!(
        "[Unit]\nWants={target}\nAfter={target}\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\n"
    );
    guest.write(&format!("/etc/systemd/system/{name}"), text.as_bytes()).expect("a unit");
    guest.sh(&format!("systemctl daemon-reload; systemctl start --no-block {name}")).expect("requested");
    let script = format!("timeout {seconds} sh -c 'until systemctl -q is-active {name}; do sleep 0.2; done'");
    guest.sh(&script).is_ok()
}

/// While the line has nobody at its other end, the boot goes on but for what waits for the network to be there.
#[test]
#[ignore = "make nightly"]
fn the_unit_is_ready_with_its_session_and_ends_it_in_order() {
    let Some((guest, _turn)) = guest() else { return };
    let line = Line::new(guest);
    line.configure("default-route = true\nmetric = 4000\n");
    let unit = line.unit();
    let request = format!("systemctl enable {NAME}; systemctl start --no-block {NAME}");
    guest.sh(&request).expect("requested");
    unit.wait("begun", || line.status().is_some());
    assert_eq!(unit.property("ActiveState"), "activating");
    let wants = "/etc/systemd/system/multi-user.target.wants/rxlane-pppoe@wan.service";
    guest.sh(&format!("[ -L {wants} ]")).expect("started at boot");
    assert!(starts_behind(guest, "network.target", 290), "the boot waits for a session");
    assert!(!starts_behind(guest, "network-online.target", 3), "there is no network yet");

    let provider = line.provider();
    unit.wait("active", || unit.property("ActiveState") == "active");
    assert_eq!(unit.property("StatusText"), "ppp0 is open");
    assert!(starts_behind(guest, "network-online.target", 290), "the network is there");
    guest.sh("busybox ping -q -c 1 -W 10 198.51.100.1").expect("an answer");

    let killed = unit.property("MainPID");
    guest.sh(&format!("systemctl kill -s KILL {NAME}")).expect("killed");
    unit.await_restart(&killed);
    line.await_open();
    assert_eq!(unit.property("NRestarts"), "1");
    guest.sh("busybox ping -q -c 1 -W 10 198.51.100.1").expect("an answer");

    // PADT of the session: code 0xa7, to the concentrator.
    let session = line.status().expect("a status")["session_id"].as_u64().expect("a number");
    let filter = format!("ether proto 0x8863 and ether[15] = 0xa7 and ether[16:2] = {session}");
    let words =
        ["ip", "netns", "exec", "isp", "tcpdump", "-i", "line0", "-c", "1", "-Q", "in", "-ln", &filter];
    let seen = guest.start(&words, "/tmp/padt").expect("it starts");
    guest.sh(&until("grep -q listening /tmp/padt")).expect("it listens");
    line.stop();
    guest.sh(&until("grep -q PADT /tmp/padt")).unwrap_or_else(|error| panic!("no PADT: {error:#}"));
    let _ = guest.signal(seen, libc::SIGTERM, true);
    guest.sh(&format!("systemctl disable {NAME}; [ ! -e {wants} ]")).expect("not at boot any more");
    provider.stop().expect("stopped");
}

/// What the machine has without a session.
const BEFORE: &str = "nameserver 192.0.2.1";

/// The name servers of the session are the machine's as long as it is open, before and after a kill.
#[test]
#[ignore = "make nightly"]
fn name_servers_of_the_unit_are_kept_by_whoever_keeps_those_of_the_machine() {
    let Some((guest, _turn)) = guest() else { return };
    let Some(lab) = Lab::require() else { return };
    let line = Line::new(guest);
    line.configure("dns = true\n");
    let provider = line.provider();
    let unit = line.unit();
    for keeper in Keeper::ALL {
        println!("{keeper:?}");
        let Some(()) = keeper.install(&lab, guest) else { return };
        let before = keeper.servers(guest);
        assert_eq!(before.trim(), if keeper == Keeper::Resolved { "" } else { BEFORE });
        unit.start();
        line.await_open();
        // A session that is open does not wait for a program that is slow to set them.
        unit.wait("with its name servers", || keeper.servers(guest) == keeper.expected());
        let killed = unit.property("MainPID");
        guest.sh(&format!("systemctl kill -s KILL {NAME}")).expect("killed");
        unit.await_restart(&killed);
        line.await_open();
        unit.wait("with its name servers again", || keeper.servers(guest) == keeper.expected());
        line.stop();
        assert_eq!(keeper.servers(guest), before, "not given back:\n{}", unit.journal());
        keeper.remove(guest);
    }
    provider.stop().expect("stopped");
}

/// Who keeps the machine's name servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    Nobody,
    Resolvconf,
    Openresolv,
    Resolved,
}

impl Keeper {
    const ALL: [Keeper; 4] = [Keeper::Nobody, Keeper::Resolvconf, Keeper::Openresolv, Keeper::Resolved];

    /// What its package does when it is installed, and what a machine has then that had a name server before.
    fn install(self, lab: &Lab, guest: &Guest) -> Option<()> {
        let (extra, script) = match self {
            Keeper::Nobody => (None, ""),
            Keeper::Resolvconf => (
                Some(Extra::Resolvconf),
                "systemd-tmpfiles --create resolvconf.conf; cp /etc/resolv.conf /etc/resolvconf/resolv.conf.d/base; \
                 resolvconf -u; ln -sf ../run/resolvconf/resolv.conf /etc/resolv.conf",
            ),
            // It makes the copy itself, when it is allowed to write next to the file.
            Keeper::Openresolv => (Some(Extra::Openresolv), "cp /etc/resolv.conf /etc/resolv.conf.bak"),
            Keeper::Resolved => (
                Some(Extra::Resolved),
                "systemd-sysusers systemd-resolve.conf; systemctl daemon-reload; systemctl start dbus.service; \
                 ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf; systemctl start systemd-resolved",
            ),
        };
        lab.install(guest, extra.as_slice())?.expect("installed");
        guest
            .sh(&format!("rm -f /etc/resolv.conf; echo {BEFORE} >/etc/resolv.conf; {script}"))
            .expect("set up");
        Some(())
    }

    /// The lines that name servers to programs.
    fn servers(self, guest: &Guest) -> String {
        let file = match self {
            // The other file names systemd-resolved itself.
            Keeper::Resolved => "/run/systemd/resolve/resolv.conf",
            _ => "/etc/resolv.conf",
        };
        guest.sh(&format!("grep ^nameserver {file} || :")).expect("a file")
    }

    /// Those that are named while the session is open.
    fn expected(self) -> String {
        let both = "nameserver 198.51.100.53\nnameserver 198.51.100.54\n";
        // Its base is always a part.
        if self == Keeper::Resolvconf { format!("{both}{BEFORE}\n") } else { both.to_owned() }
    }

    fn remove(self, guest: &Guest) {
        let script = match self {
            Keeper::Nobody => return,
            Keeper::Resolvconf | Keeper::Openresolv => {
                "rm -rf /usr/sbin/resolvconf /run/resolvconf /etc/resolv.conf.bak"
            }
            Keeper::Resolved => {
                "systemctl stop systemd-resolved; rm -f /usr/sbin/resolvconf /usr/bin/resolvectl"
            }
        };
        guest
            .sh(&format!("{script}; rm -f /etc/resolv.conf; echo {BEFORE} >/etc/resolv.conf"))
            .expect("removed");
    }
}
