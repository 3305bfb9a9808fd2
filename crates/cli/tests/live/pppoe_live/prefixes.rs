//! IPv6 prefixes of subscribers, as a kernel and Debian's dhcpcd request them.

use super::line::Line;
use crate::process::Process;
use crate::run::{Ended, Report};
use serde_json::json;
use testkit::netns::Namespace;
use testkit::{program, require, wait_for};

/// An address, and a prefix of which the network behind has a part.
const CLIENT: &str = "nodev\nallowinterfaces ppp0 lan0\nipv6only\nnoipv6rs\nscript /bin/true\n\
    interface ppp0\nnogateway\nipv6rs\niaid 1\nia_na 1\nia_pd 2/::/56 lan0/1/64\n";

/// A global address of an interface, this one or one that begins so (with a colon at the end), once it is there.
fn address(namespace: &Namespace, interface: &str, start: &str) -> String {
    wait_for(format!("an address {start} of {interface}"), || {
        let arguments = ["-6", "-o", "addr", "show", "dev", interface, "scope", "global", "-tentative"];
        let text = namespace.run("ip", &arguments).ok()?;
        let addresses = text.split_whitespace().filter_map(|word| word.split_once('/'));
        let is_it = |address: &String| address == start || start.ends_with(':') && address.starts_with(start);
        addresses.map(|(address, _)| address.to_owned()).find(is_it)
    })
}

#[test]
fn a_kernel_and_dhcpcd_get_the_prefixes_of_their_session() {
    let Some(line) = Line::new() else { return };
    let Some(dhcpcd) = require("dhcpcd", program("dhcpcd")) else { return };
    let more = ["--prefix", "fd00:64::/48", "--delegate", "fd00:6400::/40,56", "--dns", "fd00:64::53"];
    let serving = line.serve(&[&more[..], &["--accounting", &line.text("accounts")]].concat());
    line.ip(&["link", "add", "lan0", "type", "veth", "peer", "name", "lan1"]);
    line.ip(&["link", "set", "lan0", "up"]);
    line.ip(&["link", "set", "lan1", "up"]);
    let client = line.connect("alice", &["--default-route"]);
    line.sessions()[0].has(json!({"prefix": "fd00:64::/64", "delegated": "fd00:6400::/56"}));
    serving.hear("fd00:64::/64, fd00:6400::/56", 1);
    // By the kernel alone.
    let own = address(&line.near, "ppp0", "fd00:64::");
    line.ping(&line.far, &own, 1492);

    let config = line.write("dhcpcd.conf", CLIENT).display().to_string();
    // Its leases and its socket are not those of the machine.
    let script =
        "mount -t tmpfs none /run && mount -t tmpfs none /var/lib/dhcpcd && exec \"$0\" -B -d -f \"$1\"";
    let mut command = line.near.command("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(&dhcpcd).arg(&config);
    let dhcp = Process::start(&mut command);
    // The one that DHCPv6 assigns, and one of the prefix that is delegated.
    for (interface, start) in [("ppp0", "fd00:64::1"), ("lan0", "fd00:6400:0:1:")] {
        let address = address(&line.near, interface, start);
        line.ping(&line.far, &address, 1492);
    }
    let counters = line.concentrator()["counters"].clone();
    assert!(counters["dhcpv6_answers"].as_u64() >= Some(2), "{counters}");
    assert_eq!(counters["configuration_ignored"], 0);
    dhcp.interrupted();
    client.interrupted().ends(0);
    line.wait_for_sessions(0);
    serving.interrupted().ends(0);
    let accounts = std::fs::read_to_string(line.path("accounts")).expect("records");
    assert!(
        accounts.lines().count() == 2 && accounts.contains(r#""delegated":"fd00:6400::/56""#),
        "{accounts}"
    );
}
