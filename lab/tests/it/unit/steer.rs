//! `rxlane-steer@.service`.

use super::{INSTALLED, Unit, guest};
use crate::steer::{assert_nothing_left, status, steer, steered};
use rxlane_lab::Guest;

const FILE: &str = "steer-wan.conf";

fn strips(guest: &Guest) -> bool {
    guest.sh("ethtool -k wan | grep rx-vlan-offload").expect("a feature").contains(": on")
}

#[test]
#[ignore = "make nightly"]
fn the_unit_steers_survives_a_kill_and_takes_everything_back() {
    let Some((guest, _turn)) = guest() else { return };
    let rxlane = INSTALLED;
    guest.sh("ip link set wan promisc on up").expect("up");
    guest.await_carrier("wan").expect("a carrier");
    let unit = Unit { guest, name: "rxlane-steer@wan" };
    unit.options(FILE, "--cpus 0-3 --classes pppoe --disable-rxvlan --rebalance --metrics 9144");
    assert!(strips(guest));
    unit.start();
    assert_eq!(unit.property("StatusText"), "wan is steered");
    assert_eq!(status(guest, rxlane, "wan")["mode"], "native");
    assert!(!strips(guest));
    let metrics = guest.sh("busybox wget -q -O - http://127.0.0.1:9144/metrics").expect("metrics");
    assert!(metrics.contains("rxlane_steer_info{interface=\"wan\",mode=\"native\"} 1"), "{metrics}");

    let killed = unit.property("MainPID");
    guest.sh(&format!("systemctl kill -s KILL {}", unit.name)).expect("killed");
    unit.await_restart(&killed);
    assert_eq!(status(guest, rxlane, "wan")["mode"], "native");
    assert!(!strips(guest));

    guest.sh(&format!("systemctl stop {}", unit.name)).expect("stopped");
    assert_eq!(unit.property("Result"), "success");
    assert_nothing_left(guest, rxlane, "wan");
    assert!(strips(guest));

    // Taken down by hand it ends and stays away.
    unit.start();
    steered(guest, rxlane, "down wan");
    unit.wait("ended", || unit.property("ActiveState") == "inactive");
    assert_eq!(unit.property("Result"), "success");
    assert_nothing_left(guest, rxlane, "wan");

    // Wrong usage is not tried again and again.
    unit.options(FILE, "--cpus 99");
    let refused = guest.run(&["systemctl", "start", unit.name]).expect("it runs");
    assert_ne!(refused.status, 0);
    assert_eq!((unit.property("ActiveState").as_str(), unit.property("NRestarts").as_str()), ("failed", "0"));
    unit.options(FILE, "--cpus 0-3 --classes pppoe --seconds 0");

    // Its interface goes: so does it, and leaves no pins.
    unit.start();
    guest.sh("rmmod igb").expect("unloaded");
    unit.wait("ended with its interface", || unit.property("ActiveState") == "inactive");
    assert_eq!(steer(guest, rxlane, "status wan").status, 2);
    assert_eq!(guest.sh("find /sys/fs/bpf -mindepth 2 -not -type d").expect("pins"), "");
    guest.name_adapters().expect("the adapter as after boot");
}
