//! What commands brought up or removed, as JSON.

use crate::link_live::ends::{Ends, LINK, Side};
use crate::machine::{Machine, WAN, online_cpus};
use crate::pppoe_live::line::Line;
use crate::process::Process;
use crate::run::Ended;
use serde_json::{Value, json};

/// Members of a document.
fn members(document: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| document[*name].clone()).collect()
}

#[test]
fn what_an_interface_got_or_lost_is_a_document() {
    let cpus = online_cpus();
    type Row<'a> = (&'a str, fn() -> Option<Machine>, &'a [&'a str]);
    let kinds: [Row<'_>; 2] = [
        ("envelope", Machine::envelope, &["up", WAN, "--json", "--header", "8"]),
        ("steer", Machine::steer, &["up", WAN, "--json", "--seconds", "0", "--cpus", &cpus]),
    ];
    for (kind, machine, up) in kinds {
        let Some(machine) = machine() else { continue };
        let before = machine.state();
        let schema = format!("rxlane.{kind}-up/1");
        let names = ["schema", "interface", "mode", "dry_run"];
        let planned = machine.run(&[up, &["--dry-run"]].concat()).ends(0).json();
        assert_eq!(members(&planned, &names), json!([schema, WAN, "native", true]));
        assert_eq!(machine.state(), before);
        let done = machine.run(up).ends(0).json();
        assert_eq!(members(&done, &names), json!([schema, WAN, "native", false]));
        let down = machine.run(&["down", WAN, "--json"]).ends(0).json();
        assert_eq!(members(&down, &["schema", "interface"]), json!([format!("rxlane.{kind}-down/1"), WAN]));
        assert_eq!(machine.state(), before);
    }
}

#[test]
fn a_link_that_came_up_or_ended_is_a_document() {
    let Some(ends) = Ends::new(1516) else { return };
    let up = |more: &[&str]| ends.up_command(Side::Near, "q:35", &[&["--json"][..], more].concat());
    let names = ["schema", "name", "interface", "mtu", "dry_run"];
    let planned = up(&["--dry-run"]).output().expect("it runs").ends(0).json();
    assert_eq!(members(&planned, &names), json!(["rxlane.link-up/1", LINK, "tap", 1500, true]));
    let link = Process::start(&mut up(&[]));
    link.hear("rxlane.link-up/1", 1);
    let down = ends.rxlane(Side::Near, &["down", LINK, "--json"]).ends(0).json();
    assert_eq!(members(&down, &["schema", "name"]), json!(["rxlane.link-down/1", LINK]));
    let said = link.ended().ends(0).text();
    let documents = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().expect("JSON");
    let [first, last] = documents.as_slice() else { panic!("{said}") };
    assert_eq!(members(first, &names), json!(["rxlane.link-up/1", LINK, "tap", 1500, false]));
    assert_eq!(members(last, &["schema", "name"]), json!(["rxlane.link-down/1", LINK]));
}

#[test]
fn sessions_that_ended_are_a_document() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    let names = ["schema", "sessions"];
    let expected = json!(["rxlane.pppoe-disconnect/1", 1]);
    let last = line.near(&["disconnect", "ppp0", "--json"]).ends(0).json();
    assert_eq!(members(&last, &names), expected);
    assert_eq!(members(&last["last"], &["schema", "interface"]), json!(["rxlane.pppoe/1", "ppp0"]));
    client.ended().ends(0);
    line.wait_for_sessions(0);
    let client = line.connect("alice", &["--reconnect", "false"]);
    assert_eq!(
        members(&line.far(&["disconnect", "--user", "alice", "--json"]).ends(0).json(), &names),
        expected
    );
    client.ended();
    line.wait_for_sessions(0);
    let last = line.far(&["disconnect", "--concentrator", WAN, "--json"]).ends(0).json();
    assert_eq!(members(&last, &["schema", "concentrator", "sessions"]), json!([expected[0], WAN, 0]));
    serving.ended().ends(0);
}
