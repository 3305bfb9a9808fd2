//! A command for an interface above a NIC answers for the NIC.

use super::line::{Line, WAN};
use crate::run::{BINARY, Ended, Report};
use serde_json::json;
use std::process::Output;
use testkit::netns::Namespace;

/// A command of the program with the state folder of the line.
fn run(line: &Line, namespace: &Namespace, arguments: &[&str]) -> Output {
    let mut command = namespace.command(BINARY);
    command.args(arguments).args(["--state-dir", &line.text("state")]).env("COLUMNS", "80");
    command.output().expect("it runs")
}

#[test]
fn the_nic_below_a_session_a_link_or_a_vlan_is_meant() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    let _client = line.connect("alice", &[]);
    let link = ["link", "up", WAN, "--ifname", "sub0", "--vlan", "35", "--daemon"];
    run(&line, &line.near, &link).ends(0);
    let mut above = vec![(&line.near, "ppp0"), (&line.near, "sub0"), (&line.far, "pppoe0")];
    // Not every kernel has the module.
    let vlan = ["link", "add", "link", WAN, "name", "vlan7", "type", "vlan", "id", "7"];
    if line.near.run("ip", &vlan).is_ok() {
        above.push((&line.near, "vlan7"));
    }
    for (namespace, above) in above {
        let note = format!("{above} stands on {WAN}, and the answer is for {WAN}");
        let check = run(&line, namespace, &["steer", "check", above, "--seconds", "0", "--json"]);
        check.says(&note).json().has_of(&above, json!({"interface": WAN}));
        let top = run(&line, namespace, &["top", above, "--once", "--interval", "0.2", "--json"]);
        top.json().has_of(&above, json!({"device": WAN}));
    }
    run(&line, &line.near, &["link", "down", "sub0"]).ends(0);
}
