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
    fn connect(&self, password: &str) -> Subscriber<'a> {
        let subscriber = Subscriber::connect(self.0, Mode::Kernel, "wan0", password, &[]);
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
    line.connect(PASSWORD).hang_up();
    unit.wait("without sessions", || line.sessions() == 0);

    // Another password, read by the same process.
    let before = unit.property("MainPID");
    line.secrets("another word");
    guest.sh(&format!("systemctl reload {NAME}")).expect("reloaded");
    let subscriber = line.connect("another word");
    assert_eq!(unit.property("MainPID"), before);
    assert!(guest.sh(&format!("cat {ACCOUNTING}")).expect("accounting").contains(USER));

    guest.sh(&format!("systemctl kill -s KILL {NAME}")).expect("killed");
    unit.await_restart(&before);
    subscriber.kill();
    let subscriber = line.connect("another word");

    guest.sh(&format!("systemctl stop {NAME}")).expect("stopped");
    assert_eq!(unit.property("Result"), "success", "{}", unit.journal());
    subscriber.await_said("Connection terminated");
    let left = guest.sh("ls -d /sys/class/net/* /run/rxlane/*/* 2>/dev/null || :; ip route").expect("a list");
    assert!(!left.contains("pppoe"), "{left}");
}
