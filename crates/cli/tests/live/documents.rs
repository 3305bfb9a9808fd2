//! What commands brought up or removed, as JSON.

use crate::link_live::ends::{Ends, LINK, Side};
use crate::machine::{Machine, WAN, online_cpus};
use crate::pppoe_live::line::Line;
use crate::process::Process;
use crate::run::{Ended, Report};
use serde_json::{Value, json};

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
        let document =
            |is_planned| json!({"schema": schema, "interface": WAN, "mode": "native", "dry_run": is_planned});
        machine.run(&[up, &["--dry-run"]].concat()).ends(0).json().has(document(true));
        assert_eq!(machine.state(), before);
        machine.run(up).ends(0).json().has(document(false));
        let down = json!({"schema": format!("rxlane.{kind}-down/1"), "interface": WAN});
        machine.run(&["down", WAN, "--json"]).ends(0).json().has(down);
        assert_eq!(machine.state(), before);
    }
}

#[test]
fn a_link_that_came_up_or_ended_is_a_document() {
    let Some(ends) = Ends::new(1516) else { return };
    let up = |more: &[&str]| ends.up_command(Side::Near, "q:35", &[&["--json"][..], more].concat());
    let document = |is_planned| json!({"schema": "rxlane.link-up/1", "name": LINK, "interface": "tap", "mtu": 1500, "dry_run": is_planned});
    let removed = json!({"schema": "rxlane.link-down/1", "name": LINK});
    up(&["--dry-run"]).output().expect("it runs").ends(0).json().has(document(true));
    let link = Process::start(&mut up(&[]));
    link.hear("rxlane.link-up/1", 1);
    ends.rxlane(Side::Near, &["down", LINK, "--json"]).ends(0).json().has(removed.clone());
    let said = link.ended().ends(0).text();
    let documents = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().expect("JSON");
    let [first, last] = documents.as_slice() else { panic!("{said}") };
    first.has(document(false));
    last.has(removed);
}

#[test]
fn sessions_that_ended_are_a_document() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    let schema = "rxlane.pppoe-disconnect/1";
    let session = json!({"schema": "rxlane.pppoe/1", "interface": "ppp0"});
    let last = json!({"schema": schema, "sessions": 1, "last": session});
    line.near(&["disconnect", "ppp0", "--json"]).ends(0).json().has(last);
    client.ended().ends(0);
    line.wait_for_sessions(0);
    let client = line.connect("alice", &["--reconnect", "false"]);
    let of_alice = line.far(&["disconnect", "--user", "alice", "--json"]).ends(0).json();
    of_alice.has(json!({"schema": schema, "sessions": 1}));
    client.ended();
    line.wait_for_sessions(0);
    let last = line.far(&["disconnect", "--concentrator", WAN, "--json"]).ends(0).json();
    last.has(json!({"schema": schema, "concentrator": WAN, "sessions": 0}));
    serving.ended().ends(0);
}
