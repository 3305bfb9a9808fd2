//! The hand-over of a session's interface to DHCPv6 clients that ask for prefixes, with the configuration that the documentation
//! shows: Debian's dhcpcd, and systemd-networkd.

use super::delegator::{DELEGATED, Delegator};
use super::provider::{Login, Provider};
use super::{Home, guest};
use crate::until;
use rxlane_lab::{Extra, Guest, Lab};

const DOCUMENTATION: &str = include_str!("../../../../docs/pppoe/connect.md");

/// The file that the documentation shows under this name.
pub fn documented(file: &str) -> &'static str {
    let (_, behind) = DOCUMENTATION.split_once(&format!("`{file}`")).expect("it is named");
    behind.split("```").nth(1).expect("its text").trim_start()
}

/// What a machine needs in addition to the session: a network behind it, in which `eth0` of the namespace `host` is. `ip` is how commands
/// of iproute2 are run where the session is.
pub fn network_behind(guest: &Guest, ip: &str) {
    let namespace = if ip == "ip" { "1" } else { "home" };
    guest
        .sh(&format!(
            "ip netns add host; ip -n host link set lo up; ip link add eth0 netns host type veth peer name lan0 netns {namespace}; \
             {ip} link set lan0 up; ip -n host link set eth0 up"
        ))
        .expect("a network");
}

/// The subscriber's end as somebody sees it who has a session with prefixes.
pub struct Subscriber<'a> {
    pub guest: &'a Guest,
    pub ip: &'static str,
}

impl Subscriber<'_> {
    /// What the session has on its interface: addresses with their lifetimes left out, default routes.
    pub fn of_session(&self) -> Vec<String> {
        let ip = self.ip;
        let script =
            format!("{ip} -o addr show dev ppp0; {ip} -4 route show default; {ip} -6 route show default");
        let text = self.guest.sh(&script).expect("a look");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        // By number and name an address begins, and behind a backslash are its lifetimes.
        let lines = text.lines().map(|line| words(line.split('\\').next().unwrap_or_default()));
        lines.map(|line| line.split_once("ppp0 inet").map_or(line.clone(), |(_, of)| of.to_owned())).collect()
    }

    /// The session still has that.
    pub fn assert_left_alone(&self, before: &[String], log: impl Fn() -> String) {
        let now = self.of_session();
        assert!(before.iter().all(|line| now.contains(line)), "{before:#?}\n{now:#?}\n{}", log());
    }

    /// Waits for an address of the delegated prefix in the network behind, and sees that packets find it.
    pub fn await_prefix(&self, delegator: &Delegator<'_>, log: impl Fn() -> String) -> String {
        let (guest, ip) = (self.guest, self.ip);
        let is_there = format!("{ip} -6 addr show dev lan0 scope global -tentative | grep -q {DELEGATED}");
        let script = format!(
            "{}; {ip} -6 -o addr show dev lan0 scope global | sed -n 's|.* inet6 \\({DELEGATED}[^/]*\\)/64.*|\\1|p'",
            until(&is_there)
        );
        let address =
            guest.sh(&script).unwrap_or_else(|error| panic!("{error:#}\n{}\n{}", log(), delegator.log()));
        let address = address.trim().to_owned();
        guest.sh(&reach("isp", &address)).unwrap_or_else(|error| panic!("{error:#}\n{}", log()));
        address
    }
}

/// A script that waits until an address answers to a namespace.
pub fn reach(namespace: &str, address: &str) -> String {
    until(&format!("ip netns exec {namespace} busybox ping -6 -q -c 1 -W 5 {address}"))
}

#[test]
#[ignore = "make nightly"]
fn dhcpcd_gets_a_prefix_for_the_network_behind_and_leaves_the_session_alone() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let Some(lab) = Lab::require() else { return };
    let Some(installed) = lab.install(&guest, &[Extra::Dhcpcd, Extra::Dibbler, Extra::Radvd]) else {
        return;
    };
    installed.expect("installed");
    network_behind(&guest, "ip -n home");
    guest.write("/tmp/dhcpcd.conf", documented("/etc/dhcpcd.conf").as_bytes()).expect("written");
    guest
        .sh("grep -q ^dhcpcd: /etc/passwd || echo dhcpcd:x:997:65534::/usr/lib/dhcpcd:/bin/false >>/etc/passwd; \
             mkdir -p /run/dhcpcd /var/lib/dhcpcd; ip netns exec home sysctl -qw net.ipv6.conf.all.forwarding=1")
        .expect("set up");
    let words = "ip netns exec home dhcpcd -B -d -f /tmp/dhcpcd.conf";
    guest.start(&words.split(' ').collect::<Vec<_>>(), "/tmp/dhcpcd").expect("it starts");
    let _dhcpcd = Dhcpcd(&guest);
    let log = || guest.sh("tail -n 60 /tmp/dhcpcd").unwrap_or_default();

    let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
    let home = Home::connect(&guest, &rxlane, "--default-route --echo-interval 1 --echo-failures 5");
    let subscriber = Subscriber { guest: &guest, ip: "ip -n home" };
    home.await_said(": open");
    let before = subscriber.of_session();
    let delegator = Delegator::start(&guest).expect("a delegator");
    println!("{} {before:?}", subscriber.await_prefix(&delegator, log));
    subscriber.assert_left_alone(&before, log);

    // Another session: the interface is a new one.
    drop(delegator);
    provider.kill().expect("killed");
    home.await_said("closed: ");
    let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
    home.await_times(": open", 2);
    let before = subscriber.of_session();
    let delegator = Delegator::start(&guest).expect("a delegator");
    println!("{} {before:?}", subscriber.await_prefix(&delegator, log));
    subscriber.assert_left_alone(&before, log);
    drop(delegator);
    assert_eq!(home.end(), Some(0));
    provider.stop().expect("stopped");
}

/// A dhcpcd that runs, and the network behind: both go with this.
struct Dhcpcd<'a>(&'a Guest);

impl Drop for Dhcpcd<'_> {
    fn drop(&mut self) {
        let _ = self.0.sh("ip netns pids home | xargs -r kill -KILL || :; ip netns del host");
    }
}
