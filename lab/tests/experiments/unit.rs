//! The systemd unit template under systemd.

use crate::LONG;
use crate::steer::{assert_nothing_left, rxlane, status, steer, steered};
use rxlane_lab::{First, Guest, Lab, Model, Nic, Series, Spec};
use std::thread;
use std::time::{Duration, Instant};

const UNIT: &str = "rxlane-steer@wan";
const TEMPLATE: &str = include_str!("../../../packaging/systemd/rxlane-steer@.service");

/// A guest whose process 1 is systemd, with the unit installed as `make install` and its comment say.
fn with_unit(rxlane: &str) -> Option<Guest> {
    let lab = Lab::require()?;
    let nics = vec![Nic::new("wan", Model::Igb)];
    let spec = Spec { nics, first: First::Systemd, ..Spec::new(Series::V6_12) };
    let guest = lab.boot(&spec).expect("a guest");
    guest.write("/etc/systemd/system/rxlane-steer@.service", TEMPLATE.as_bytes()).expect("the unit");
    options(&guest, "--cpus 0-3 --classes pppoe --disable-rxvlan --rebalance --metrics 9144");
    // A copy: the unit has a /tmp and a /home of its own, and the checkout may be below either.
    guest.sh(&format!("mkdir -p /usr/local/bin; cp {rxlane} /usr/local/bin/rxlane")).expect("the program");
    guest.sh("ip link set wan promisc on up; systemctl daemon-reload").expect("up");
    guest.await_carrier("wan").expect("a carrier");
    Some(guest)
}

fn options(guest: &Guest, words: &str) {
    guest.sh("mkdir -p /etc/rxlane").expect("a folder");
    guest.write("/etc/rxlane/steer-wan.conf", format!("OPTIONS={words}\n").as_bytes()).expect("options");
}

fn property(guest: &Guest, name: &str) -> String {
    let said = guest.sh(&format!("systemctl show --value -p {name} {UNIT}")).expect("a property");
    said.trim().to_owned()
}

fn wait(guest: &Guest, what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        let journal = guest.sh(&format!("journalctl --no-pager -u {UNIT} | tail -n 30")).unwrap_or_default();
        assert!(start.elapsed() < 2 * LONG, "{what}:\n{journal}");
        thread::sleep(Duration::from_millis(200));
    }
}

fn start(guest: &Guest) {
    let started = guest.run_with(&["systemctl", "start", UNIT], &[], 6 * LONG).expect("it runs");
    let journal = guest.sh(&format!("journalctl --no-pager -u {UNIT} | tail -n 30")).expect("the journal");
    assert_eq!(started.status, 0, "{}{journal}", started.errors());
}

fn strips(guest: &Guest) -> bool {
    guest.sh("ethtool -k wan | grep rx-vlan-offload").expect("a feature").contains(": on")
}

#[test]
fn the_unit_steers_survives_a_kill_and_takes_everything_back() {
    let Some(rxlane) = rxlane() else { return };
    let Some(guest) = with_unit(&rxlane) else { return };
    assert!(strips(&guest));
    start(&guest);
    assert_eq!(property(&guest, "StatusText"), "wan is steered");
    assert_eq!(status(&guest, &rxlane, "wan")["mode"], "native");
    assert!(!strips(&guest));
    let metrics = guest.sh("busybox wget -q -O - http://127.0.0.1:9144/metrics").expect("metrics");
    assert!(metrics.contains("rxlane_steer_info{interface=\"wan\",mode=\"native\"} 1"), "{metrics}");

    let killed = property(&guest, "MainPID");
    guest.sh(&format!("systemctl kill -s KILL {UNIT}")).expect("killed");
    wait(&guest, "restarted after kill -9", || {
        property(&guest, "SubState") == "running" && property(&guest, "MainPID") != killed
    });
    assert_eq!(status(&guest, &rxlane, "wan")["mode"], "native");
    assert!(!strips(&guest));

    guest.sh(&format!("systemctl stop {UNIT}")).expect("stopped");
    assert_eq!(property(&guest, "Result"), "success");
    assert_nothing_left(&guest, &rxlane, "wan");
    assert!(strips(&guest));

    // Taken down by hand it ends and stays away.
    start(&guest);
    steered(&guest, &rxlane, "down wan");
    wait(&guest, "ended", || property(&guest, "ActiveState") == "inactive");
    assert_eq!(property(&guest, "Result"), "success");
    assert_nothing_left(&guest, &rxlane, "wan");

    // Wrong usage is not tried again and again.
    options(&guest, "--cpus 99");
    let refused = guest.run(&["systemctl", "start", UNIT]).expect("it runs");
    assert_ne!(refused.status, 0);
    assert_eq!(
        (property(&guest, "ActiveState").as_str(), property(&guest, "NRestarts").as_str()),
        ("failed", "0")
    );
    options(&guest, "--cpus 0-3 --classes pppoe");

    // Its interface goes: so does it, and leaves no pins.
    start(&guest);
    guest.sh("rmmod igb").expect("unloaded");
    wait(&guest, "ended with its interface", || property(&guest, "ActiveState") == "inactive");
    assert_eq!(steer(&guest, &rxlane, "status wan").status, 2);
    assert_eq!(guest.sh("find /sys/fs/bpf -mindepth 2 -not -type d").expect("pins"), "");
}
