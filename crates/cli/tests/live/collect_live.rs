//! What `rxlane collect` takes of a machine whose private details are known.

use crate::run::BINARY;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{program, require};

#[test]
fn an_issue_has_nothing_of_what_is_private() {
    const SECRETS: [&str; 8] = [
        "10.123.45.67",
        "10.123.45.99",
        "10.123.44.",
        "fd12:3456:789a",
        "02:ab:cd:ef:12:34",
        "02:ab:cd:ef:56:78",
        "private-host-name",
        "private-comment",
    ];
    for tool in ["nft", "unshare", "ip"] {
        if require(tool, program(tool)).is_none() {
            return;
        }
    }
    let Some(()) = require("netns", probe()) else { return };
    let namespace = Namespace::new().expect("a namespace");
    crate::machine::speak_ipv6(&namespace);
    namespace.veth(&Veth::pair("lan0", "wan0")).expect("a pair");
    for arguments in [
        "link set lan0 address 02:ab:cd:ef:12:34",
        "address add 10.123.45.67/24 dev lan0",
        "address add fd12:3456:789a::1/64 dev lan0",
        "neighbour add 10.123.45.99 lladdr 02:ab:cd:ef:56:78 dev lan0",
        "route add default via 10.123.45.99",
        "route add 10.123.44.0/24 via 10.123.45.99",
    ] {
        namespace.run("ip", &arguments.split(' ').collect::<Vec<_>>()).expect(arguments);
    }
    let rules = "add table inet own; add chain inet own forward { type filter hook forward priority 0; }; \
                 add rule inet own forward ip saddr 10.123.44.0/24 accept comment \"private-comment\"";
    namespace.run("nft", &[rules]).expect("rules");
    let script = "hostname private-host-name && exec \"$0\" collect --issue --seconds 0.2";
    let output =
        namespace.command("unshare").args(["--uts", "sh", "-c", script, BINARY]).output().expect("it starts");
    let issue = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{issue}");
    assert!(issue.contains("lan0") && issue.contains("\n# end\n"), "{issue}");
    assert_eq!(issue.matches("# What this machine says").count(), 1, "{issue}");
    for secret in SECRETS {
        assert!(!issue.to_lowercase().contains(secret), "{secret} is in:\n{issue}");
    }
}
