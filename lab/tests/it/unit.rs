//! The systemd unit templates under systemd.

mod link;
mod networkd;
mod pppoe;
mod serve;
mod steer;

use crate::LONG;
use crate::pool::Turn;
use crate::steer::rxlane;
use rxlane_lab::{First, Guest, Lab, Model, Nic, Series, Spec};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

const TEMPLATES: [(&str, &str); 4] = [
    ("rxlane-steer@.service", include_str!("../../../packaging/systemd/rxlane-steer@.service")),
    ("rxlane-link@.service", include_str!("../../../packaging/systemd/rxlane-link@.service")),
    ("rxlane-pppoe-serve@.service", include_str!("../../../packaging/systemd/rxlane-pppoe-serve@.service")),
    ("rxlane-pppoe@.service", include_str!("../../../packaging/systemd/rxlane-pppoe@.service")),
];
/// Where the units find the program.
const INSTALLED: &str = "/usr/local/bin/rxlane";

static GUEST: OnceLock<Guest> = OnceLock::new();

/// A guest whose process 1 is systemd, with the units installed as `make install` does; booted once. The experiments
/// have nothing in common but systemd, and run at the same time.
fn guest() -> Option<(&'static Guest, Turn)> {
    let (lab, rxlane) = (Lab::require()?, rxlane()?);
    let turn = Turn::take();
    let guest = GUEST.get_or_init(|| {
        let nics = vec![Nic::new("wan", Model::Igb)];
        let spec = Spec { nics, first: First::Systemd, ..Spec::new(Series::V6_12) };
        let guest = lab.boot(&spec).expect("a guest");
        for (name, text) in TEMPLATES {
            guest.write(&format!("/etc/systemd/system/{name}"), text.as_bytes()).expect("a unit");
        }
        // What systemd waits for by itself is the time of a machine that is not emulated.
        let patient = format!("[Service]\nTimeoutStartSec={0}\nTimeoutStopSec={0}\n", LONG.as_secs());
        guest.sh("mkdir -p /etc/systemd/system/service.d").expect("a folder");
        guest.write("/etc/systemd/system/service.d/patient.conf", patient.as_bytes()).expect("limits");
        link::bind(&guest);
        // A copy: the units have a /tmp and a /home of their own, and the checkout may be below either.
        guest
            .sh(&format!(
                "mkdir -p /usr/local/bin /etc/rxlane; cp {rxlane} {INSTALLED}; systemctl daemon-reload"
            ))
            .expect("installed");
        guest
    });
    Some((guest, turn))
}

/// An instance of a template.
struct Unit<'a> {
    guest: &'a Guest,
    name: &'static str,
}

impl Unit<'_> {
    /// The words of its configuration, in a file of this name.
    fn options(&self, file: &str, words: &str) {
        let text = format!("OPTIONS={words}\n");
        self.guest.write(&format!("/etc/rxlane/{file}"), text.as_bytes()).expect("options");
    }

    fn property(&self, name: &str) -> String {
        let said = self.guest.sh(&format!("systemctl show --value -p {name} {}", self.name));
        said.expect("a property").trim().to_owned()
    }

    /// How often it was restarted since somebody started it.
    fn restarts(&self) -> u32 {
        self.property("NRestarts").parse().expect("a number")
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < LONG, "{}: {what}:\n{}", self.name, self.journal());
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until it runs again, as another process.
    fn await_restart(&self, killed: &str) {
        self.wait("restarted", || {
            let now = self.guest.sh(&format!("systemctl show --value -p SubState -p MainPID {}", self.name));
            let now = now.expect("its state");
            now.lines().any(|line| line == "running") && !now.lines().any(|line| line == killed)
        });
    }

    fn start(&self) {
        let started =
            self.guest.run_with(&["systemctl", "start", self.name], &[], 2 * LONG).expect("it runs");
        assert_eq!(started.status, 0, "{}{}", started.errors(), self.journal());
    }

    fn journal(&self) -> String {
        let said = self.guest.sh(&format!("journalctl --no-pager -u {} | tail -n 30", self.name));
        said.unwrap_or_default()
    }
}
