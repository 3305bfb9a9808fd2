//! `rxlane-link@.service`: two instances at once, one with packet sockets and one with XDP sockets.

use super::{INSTALLED, Unit, guest};
use rxlane_lab::Guest;
use serde_json::Value;

/// Unit, interface, VLAN, and the way out.
const LINKS: [(&str, &str, u8, &str); 2] =
    [("rxlane-link@sub35", "sub35", 35, "af-packet"), ("rxlane-link@sub36", "sub36", 36, "af-xdp")];
/// The parent is removed without a word before it is looked for again: as the comment in the unit says.
const BOUND: &str = "[Unit]\nBindsTo=sys-subsystem-net-devices-line0.device\n\
    After=sys-subsystem-net-devices-line0.device\n[Install]\nWantedBy=sys-subsystem-net-devices-line0.device\n";

/// Before systemd reads its units, which takes it seconds.
pub fn bind(guest: &Guest) {
    for (name, ..) in LINKS {
        let file = format!("/etc/systemd/system/{name}.service.d/parent.conf");
        guest.write(&file, BOUND.as_bytes()).expect("a part");
    }
    systemctl(guest, "enable --no-reload");
}

/// The parent, and at its other end in the namespace `far` VLAN devices of the kernel.
fn plug(guest: &Guest) {
    let mut script = "ip link add line0 type veth peer name line1 netns far; ip link set line0 up; \
                      ip -n far link set line1 up; "
        .to_owned();
    for (_, _, vid, _) in LINKS {
        script.push_str(&format!(
            "ip -n far link add link line1 name tag{vid} type vlan id {vid}; \
             ip -n far addr add 10.{vid}.0.2/24 dev tag{vid}; ip -n far link set tag{vid} up; "
        ));
    }
    guest.sh(&script).expect("a line");
}

fn units(guest: &Guest) -> [Unit<'_>; 2] {
    LINKS.map(|(name, ..)| Unit { guest, name })
}

fn systemctl(guest: &Guest, words: &str) {
    let [(one, ..), (other, ..)] = LINKS;
    guest.sh(&format!("systemctl {words} {one} {other}")).expect("systemctl");
}

/// Both are up as requested, and the other end answers.
fn assert_up(guest: &Guest) {
    for (_, interface, vid, io) in LINKS {
        let said = guest.sh(&format!("{INSTALLED} link status {interface} --json --interval 0"));
        let status: Value = serde_json::from_str(&said.expect("a status")).expect("JSON");
        assert_eq!((&status["datapath"], &status["io"]), (&"batch".into(), &io.into()), "{status}");
        guest.sh(&format!("busybox ping -q -c 1 -W 10 10.{vid}.0.2")).expect("an answer");
    }
}

/// No interface, and no socket by which a link takes requests.
fn assert_none_left(guest: &Guest) {
    let left = guest.sh("ls -d /sys/class/net/sub* /run/rxlane/*/* 2>/dev/null || :").expect("a list");
    assert_eq!(left, "");
}

/// They have ended for good, having been restarted so often since they were started, if that is known.
fn await_end(guest: &Guest, results: &[&str], expected: Option<&str>) {
    for unit in units(guest) {
        unit.wait("ended", || ["inactive", "failed"].contains(&unit.property("ActiveState").as_str()));
        let (result, restarts) = (unit.property("Result"), unit.property("NRestarts"));
        let is_expected = expected.is_none_or(|expected| restarts == expected);
        assert!(results.contains(&result.as_str()) && is_expected, "{result}, {restarts} restarts");
    }
    assert_none_left(guest);
}

#[test]
#[ignore = "make nightly"]
fn the_unit_is_a_link_survives_a_kill_and_goes_with_its_parent() {
    let Some((guest, _turn)) = guest() else { return };
    guest.sh("ip netns add far").expect("a namespace");
    for (unit, (_, interface, vid, io)) in units(guest).iter().zip(LINKS) {
        unit.options(
            &format!("link-{interface}.conf"),
            &format!("--parent line0 --vlan {vid} --address 10.{vid}.0.1/24 --datapath batch --io {io}"),
        );
    }
    plug(guest);
    for (unit, (_, interface, ..)) in units(guest).iter().zip(LINKS) {
        unit.start();
        assert_eq!(unit.property("StatusText"), format!("{interface} is up"));
    }
    assert_up(guest);

    // The parent may have started them before, while it was still being set up.
    let before = units(guest).map(|unit| (unit.property("MainPID"), unit.restarts()));
    systemctl(guest, "kill -s KILL");
    for (unit, (killed, restarts)) in units(guest).iter().zip(&before) {
        unit.await_restart(killed);
        assert_eq!(unit.restarts(), restarts + 1, "{}", unit.journal());
    }
    assert_up(guest);

    systemctl(guest, "stop");
    await_end(guest, &["success"], None);

    // Taken down by hand they end and stay away.
    systemctl(guest, "start");
    for (_, interface, ..) in LINKS {
        guest.sh(&format!("{INSTALLED} link down {interface}")).expect("down");
    }
    await_end(guest, &["success"], Some("0"));

    // They go with their parent and come back with it.
    systemctl(guest, "start");
    assert_up(guest);
    guest.sh("ip link del line0").expect("removed");
    // Who is first: systemd, which ends them, or they, which end with exit code 1 (the unit has failed then) and are
    // restarted until systemd knows that what they are bound to is removed.
    await_end(guest, &["success", "exit-code"], None);
    plug(guest);
    for unit in units(guest) {
        unit.wait("up with its parent", || unit.property("SubState") == "running");
    }
    assert_up(guest);
    systemctl(guest, "stop");
    await_end(guest, &["success"], None);
    guest.sh("ip netns del far").expect("removed");
}
