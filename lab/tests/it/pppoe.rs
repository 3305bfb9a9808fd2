//! `rxlane pppoe connect` and `discover` against Debian's access concentrator: `pppoe-server`, which starts a `pppd` for each
//! subscriber; and `rxlane pppoe serve` for Debian's clients.

mod concentrator;
pub mod delegator;
mod earlier;
mod faults;
pub mod hand_over;
pub mod provider;
mod served;
pub mod subscriber;
mod tagged;

use crate::pool::{Pool, Taken};
use crate::until;
use provider::{Login, PASSWORD, Provider, USER};
use rxlane_lab::{Guest, Lab, Series, Spec};
use serde_json::Value;

/// Bytes behind the Ethernet header that the line has room for: four tags and PPPoE around packets of 1500.
const WIRE_MTU: u32 = 1524;

static GUESTS: Pool = Pool::of(1);

/// A guest with the namespaces `home` and `isp`, and a line of veth between them.
fn guest() -> Option<Taken> {
    guest_of(&GUESTS, Series::V6_12)
}

/// The same with this kernel.
fn guest_of(guests: &'static Pool, kernel: Series) -> Option<Taken> {
    let lab = Lab::require()?;
    Some(guests.take(|| {
        let guest = lab.boot(&Spec { cpus: 2, ..Spec::new(kernel) }).expect("a guest");
        guest
            .sh(&format!(
                "modprobe -a tun veth 8021q pppoe ppp_async; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; \
                 for n in home isp; do ip netns add $n; ip -n $n link set lo up; done; \
                 ip link add wan0 netns home type veth peer name line0 netns isp; \
                 ip -n home link set wan0 mtu {WIRE_MTU} up; ip -n isp link set line0 mtu {WIRE_MTU} up"
            ))
            .expect("namespaces");
        guest
    }))
}

/// A subscriber's end that runs.
struct Home<'a> {
    guest: &'a Guest,
    rxlane: &'a str,
    pid: Option<u32>,
}

const OUTPUT: &str = "/tmp/connect.output";

impl<'a> Home<'a> {
    fn connect(guest: &'a Guest, rxlane: &'a str, words: &str) -> Home<'a> {
        Home::connect_with(guest, rxlane, words, PASSWORD)
    }

    fn connect_with(guest: &'a Guest, rxlane: &'a str, words: &str, password: &str) -> Home<'a> {
        Home::connect_on(guest, rxlane, ("wan0", USER, password), words)
    }

    /// On an interface, as a user with a password.
    fn connect_on(guest: &'a Guest, rxlane: &'a str, who: (&str, &str, &str), words: &str) -> Home<'a> {
        let (device, user, password) = who;
        guest.write("/tmp/password", format!("{password}\n").as_bytes()).expect("written");
        guest.sh("chmod 600 /tmp/password").expect("changed");
        let fixed = ["ip", "netns", "exec", "home", rxlane, "pppoe", "connect", device, "--user", user];
        let words: Vec<&str> = words.split_whitespace().collect();
        let file = ["--password-file", "/tmp/password"];
        let pid = guest.start(&[&fixed[..], &file, &words].concat(), OUTPUT).expect("it starts");
        Home { guest, rxlane, pid: Some(pid) }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.guest.read(OUTPUT).expect("output")).into_owned()
    }

    fn await_said(&self, text: &str) {
        self.await_times(text, 1);
    }

    /// Waits until so many of its lines have the text.
    fn await_times(&self, text: &str, times: u32) {
        if await_lines(self.guest, OUTPUT, text, times).is_err() {
            panic!(
                "not `{text}` {times} times: {}\npppoe-server: {}",
                self.said(),
                provider::log(self.guest)
            );
        }
    }

    fn status(&self) -> Value {
        let words = ["ip", "netns", "exec", "home", self.rxlane, "pppoe", "status", "ppp0", "--json"];
        let output = self.guest.run(&words).expect("it runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.errors()))
    }

    /// Ends the session; the exit code of the client.
    fn end(mut self) -> Option<i32> {
        let words = ["ip", "netns", "exec", "home", self.rxlane, "pppoe", "disconnect", "ppp0"];
        let output = self.guest.run(&words).expect("it runs");
        assert_eq!(output.status, 0, "disconnect: {}{}", output.text(), output.errors());
        let left =
            self.guest.sh("ip -n home -br link; ip -n home route; ip -n home -6 route").expect("a look");
        assert!(!left.contains("ppp0"), "{left}");
        self.wait()
    }

    fn wait(&mut self) -> Option<i32> {
        self.pid.take().and_then(|pid| self.guest.signal(pid, libc::SIGTERM, true).expect("an end"))
    }
}

impl Drop for Home<'_> {
    fn drop(&mut self) {
        if let Some(pid) = self.pid.take() {
            let _ = self.guest.signal(pid, libc::SIGTERM, true);
        }
    }
}

fn ping(guest: &Guest, size: u32, far: &str) {
    ping_from(guest, "home", size, far);
}

/// Pings from a namespace: two, the second when the first has been answered.
fn ping_from(guest: &Guest, namespace: &str, size: u32, far: &str) {
    guest
        .sh(&format!("ip netns exec {namespace} busybox ping -q -A -c 2 -W 10 -s {size} {far}"))
        .unwrap_or_else(|error| panic!("{size} bytes from {namespace} to {far}: {error:#}"));
}

/// Waits until so many lines of a file of the guest have the text.
fn await_lines(guest: &Guest, file: &str, text: &str, times: u32) -> anyhow::Result<()> {
    guest.sh(&until(&format!("[ \"$(grep -c \"{text}\" {file})\" -ge {times} ]"))).map(drop)
}

#[test]
#[ignore = "make nightly"]
fn pppoe_server_is_discovered() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    for (line, words) in [("", ""), ("ad:100,q:200", "--vlan 100.200")] {
        let provider = Provider::start(&guest, line, Login::Chap).expect("a provider");
        let fixed =
            ["ip", "netns", "exec", "home", &rxlane, "pppoe", "discover", "wan0", "--json", "--seconds", "2"];
        let output = guest
            .run(&fixed.into_iter().chain(words.split_whitespace()).collect::<Vec<_>>())
            .expect("it runs");
        assert_eq!(output.status, 0, "{}{}", output.text(), output.errors());
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        println!("{found}");
        assert!(found.to_string().contains("\"concentrator\""), "{found}");
        assert!(found.to_string().contains("\"internet\""), "{found}");
        provider.stop().expect("stopped");
    }
}

/// Every method of authentication, on every kind of line: both protocols are up, whole packets pass, the end leaves nothing.
#[test]
fn a_session_with_pppoe_server_carries_both_protocols() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    for (login, line, words) in [
        (Login::Chap, "", "--default-route"),
        (Login::Pap, "q:35", "--vlan 35 --datapath simple"),
        (Login::MsChapV2, "ad:100,q:200", "--vlan 100.200"),
    ] {
        let provider = Provider::start(&guest, line, login).expect("a provider");
        let home = Home::connect(&guest, &rxlane, words);
        home.await_said(": open");
        let status = home.status();
        println!("{login:?} {line}: {status}");
        assert_eq!(
            (status["phase"].as_str(), status["local"].as_str(), status["peer"].as_str()),
            (Some("open"), Some("198.51.100.10"), Some("198.51.100.1"))
        );
        assert_eq!(status["mtu"], 1492);
        assert_eq!(status["dns"][0], "198.51.100.53");
        ping(&guest, 1464, "198.51.100.1");
        home.guest.sh(&until("ip -n home addr show dev ppp0 | grep -q fe80")).expect("IPv6");
        let far = home.status()["peer6"].as_str().expect("IPv6").to_owned();
        ping(&guest, 1444, &format!("{far}%ppp0"));
        assert_eq!(home.end(), Some(0));
        provider.stop().expect("stopped");
    }
}

#[test]
#[ignore = "make nightly"]
fn a_wrong_password_is_reported_in_words() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    for login in [Login::Chap, Login::Pap, Login::MsChapV2] {
        let provider = Provider::start(&guest, "", login).expect("a provider");
        let mut home = Home::connect_with(&guest, &rxlane, "--reconnect=false", "a wrong one");
        home.await_said("authentication failed");
        let said = home.said();
        println!("{login:?}: {said}");
        assert_eq!(home.wait(), Some(1), "{said}");
        provider.stop().expect("stopped");
    }
}

/// RFC 4638: with room on the line whole packets of Ethernet pass.
#[test]
#[ignore = "make nightly"]
fn packets_of_1500_octets_pass_where_both_ends_have_room() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    for (below, expected) in [(WIRE_MTU, 1500), (1500, 1492)] {
        guest.sh(&format!("ip -n isp link set line0 mtu {below}")).expect("set");
        let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
        let home = Home::connect(&guest, &rxlane, "--mtu 1500");
        home.await_said(": open");
        println!("{}", home.said());
        assert_eq!(home.status()["mtu"], expected);
        ping(&guest, expected - 28, "198.51.100.1");
        assert_eq!(home.end(), Some(0));
        provider.stop().expect("stopped");
    }
    guest.sh(&format!("ip -n isp link set line0 mtu {WIRE_MTU}")).expect("set");
}

/// The provider dies without a word and comes back; the line is cut and comes back.
#[test]
#[ignore = "make nightly"]
fn a_session_comes_back() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
    let home = Home::connect(&guest, &rxlane, "--echo-interval 1 --echo-failures 5 --default-route");
    home.await_said(": open");
    provider.kill().expect("killed");
    home.await_said("closed: ");
    println!("{}", home.said());
    let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
    home.await_times(": open", 2);
    ping(&guest, 1000, "198.51.100.1");
    guest.sh("ip -n isp link set line0 down").expect("cut");
    home.await_times("closed: ", 2);
    guest.sh("ip -n isp link set line0 up").expect("whole again");
    home.await_times(": open", 3);
    println!("{}", home.said());
    ping(&guest, 1000, "198.51.100.1");
    assert_eq!(home.end(), Some(0));
    provider.stop().expect("stopped");
}
