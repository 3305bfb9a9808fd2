//! systemd-networkd on the interface of a session: it gets a prefix for the network behind, and leaves the session alone.

use super::guest;
use super::pppoe::{Line, NAME};
use crate::pppoe::delegator::{DELEGATED, Delegator, OPERATOR};
use crate::pppoe::hand_over::{Subscriber, documented, network_behind, reach};
use crate::until;
use rxlane_lab::{Extra, Lab};

#[test]
#[ignore = "make nightly"]
fn networkd_gets_a_prefix_for_the_network_behind_and_leaves_the_session_alone() {
    let Some((guest, _turn)) = guest() else { return };
    let Some(lab) = Lab::require() else { return };
    let Some(installed) = lab.install(guest, &[Extra::Dibbler, Extra::Radvd]) else { return };
    installed.expect("installed");
    let line = Line::new(guest);
    line.configure("default-route = true\nmetric = 4000\necho-interval = 1\necho-failures = 5\n");
    network_behind(guest, "ip");
    for file in ["/etc/systemd/network/ppp0.network", "/etc/systemd/network/lan0.network"] {
        guest.write(file, documented(file).as_bytes()).expect("written");
    }
    guest
        .sh("sysctl -qw net.ipv6.conf.all.forwarding=1; ip netns exec host sysctl -qw net.ipv6.conf.all.forwarding=0; \
             systemctl start systemd-networkd")
        .expect("networkd");
    let log = || guest.sh("journalctl --no-pager -u systemd-networkd | tail -n 60").unwrap_or_default();
    let subscriber = Subscriber { guest, ip: "ip" };
    let mut provider = line.provider();
    line.unit().start();
    line.await_open();
    for round in 1..=2 {
        let before = subscriber.of_session();
        let delegator = Delegator::start(guest).expect("a delegator");
        println!("{} {before:?}", subscriber.await_prefix(&delegator, log));
        subscriber.assert_left_alone(&before, log);
        // A station of the network behind has an address, and reaches the operator.
        let station = format!(
            "{}; {}",
            until(&format!("ip -n host -6 addr show dev eth0 scope global -tentative | grep -q {DELEGATED}")),
            reach("host", OPERATOR)
        );
        guest.sh(&station).unwrap_or_else(|error| panic!("{error:#}\n{}", log()));
        if round == 1 {
            // Another session: the interface is a new one.
            drop(delegator);
            provider.kill().expect("killed");
            let is_removed = || !guest.sh("ls /sys/class/net").expect("a list").contains("ppp0");
            line.unit().wait("closed", is_removed);
            provider = line.provider();
            line.await_open();
        }
    }
    line.stop();
    provider.stop().expect("stopped");
    guest
        .sh(&format!(
            "systemctl stop systemd-networkd.socket systemd-networkd; rm /etc/systemd/network/*0.network; ip netns del host; \
             systemctl reset-failed {NAME} || :"
        ))
        .expect("removed");
}
