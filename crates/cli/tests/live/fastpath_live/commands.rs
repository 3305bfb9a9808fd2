//! What the commands print, and what they refuse.

use super::router::{FAR, LAN, PORT, Router, SERVER, WAN, at};
use super::traffic::Datagrams;
use crate::run::{BINARY, Ended, Report};
use crate::stream::Stream;
use serde_json::{Value, json};
use testkit::{Missing, program, require, wait_until};

/// Keys of an object, in their order.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn commands_print_what_is_forwarded() {
    let Some(router) = Router::translating() else { return };
    let checked = router.run(&["check", LAN, WAN]);
    checked.ends(0).says("A fast path on lan0, wan0 can come up.").says("native XDP");
    let checked = router.run(&["check", LAN, WAN, "--json"]).ends(0).json();
    checked.has(json!({"schema": "rxlane.fastpath-check/1", "can": true, "obstacles": [], "bypassed": []}));
    assert_eq!(checked["ports"][1]["name"], WAN, "{checked:#}");
    let planned = router.run(&["up", LAN, WAN, "--dry-run"]);
    planned.ends(0).says("Nothing is changed now").says("at most 262,144 connections");
    assert!(!router.has_program(LAN));
    router.run(&["up", LAN, WAN, "--dry-run", "--json"]).ends(0).json().has(json!({"can": true}));
    router.run(&["status"]).ends(1);

    let up = router.up();
    router.run(&["flows"]).ends(0).says("No connection is in the fast path.");
    let mut stream = Stream::to(&router.client, &router.server, at(SERVER, PORT), at(SERVER, PORT));
    let mut datagrams = Datagrams::through(&router, SERVER, PORT);
    datagrams.exchange();
    router.wait_for_flows(2);
    stream.carry(1 << 18);
    router.becomes_fast(&mut datagrams);
    let status = router.status();
    assert_eq!(
        keys(&status),
        [
            "bytes",
            "flows",
            "flows_most",
            "installs",
            "limited",
            "lost",
            "mode",
            "next_hops",
            "packets",
            "pid",
            "ports",
            "refusals",
            "removals",
            "schema",
            "seconds",
            "waiting"
        ]
    );
    status.has(json!({"schema": "rxlane.fastpath/1", "mode": "native", "ports": [LAN, WAN], "flows": 2}));
    assert_eq!(keys(&status["packets"]), ["fast", "fast_share", "slow"]);
    router.run(&["status"]).ends(0).says("fast path: up").says("lan0, wan0 (native)").says("2 connections");
    let flows = router.run(&["flows", "--json"]).ends(0).json();
    flows.has(json!({"schema": "rxlane.fastpath-flows/1", "all": 2}));
    let row = &flows["flows"][0];
    assert_eq!(
        keys(row),
        ["bytes", "destination", "idle", "packets", "ports", "protocol", "source", "translated"]
    );
    let text = router.run(&["flows"]);
    text.ends(0).says("lan0 > wan0").says("as 10.2.0.1:").says("> 10.2.0.2:7777");
    router
        .run(&["flush", "--json"])
        .ends(0)
        .json()
        .has(json!({"schema": "rxlane.fastpath-flush/1", "flows": 2}));
    router.wait_for_flows(2);
    let last = router.run(&["down", "--json"]).ends(0).json();
    last.has(json!({"schema": "rxlane.fastpath-down/1", "removals": {"flushed": 2}}));
    up.ended().ends(0);
}

#[test]
fn a_shaper_is_not_bypassed_by_accident() {
    let Some(router) = Router::translating() else { return };
    if require("tc", program("tc")).is_none() {
        return;
    }
    let shaper =
        ["qdisc", "add", "dev", WAN, "root", "tbf", "rate", "100mbit", "burst", "64k", "latency", "50ms"];
    router.router.run("tc", &shaper).expect("a shaper");
    router.run(&["check", LAN, WAN]).ends(1).says("cannot come up").says("wan0").says("tbf");
    let checked = router.run(&["check", LAN, WAN, "--json"]).ends(1).json();
    checked.has(json!({"can": false, "bypassed": [{"kind": "shaper", "interface": WAN, "qdisc": "tbf"}]}));
    router.refused(&["up", LAN, WAN]).ends(1).says("wan0").says("tbf").says("--bypass-qdisc");
    assert!(!router.has_program(LAN) && !router.has_program(WAN));
    router.run(&["check", LAN, WAN, "--bypass-qdisc"]).ends(0).says("the shaper tbf of wan0");
    let up = router.up_on(&[LAN, WAN], &["--bypass-qdisc"]);
    up.interrupted().ends(0);
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let Some(router) = Router::translating() else { return };
    for command in ["check", "up"] {
        router.refused(&[command, LAN, "nothing0"]).is(&command, 2, "no interface `nothing0`");
        router.refused(&[command, LAN]).is(&command, 2, "at least two ports");
        router.refused(&[command, LAN, "lo"]).is(&command, 2, "lo");
        router.refused(&[command, LAN, WAN, "--flows", "0"]).is(&command, 2, "--flows");
        router.refused(&[command, LAN, WAN, "--limit-upload", "fast"]).is(&command, 2, "`fast`");
    }
    for command in ["status", "flows", "flush", "down"] {
        router.run(&[command]).ends(1);
    }
    let up = router.up();
    router.refused(&["up", LAN, WAN]).is(&"twice", 1, "a fast path is up in this network namespace already");
    assert_eq!(router.status()["ports"], json!([LAN, WAN]));
    router.run(&["check", LAN, WAN]).ends(1);
    up.interrupted().ends(0);
    assert!(!router.has_program(LAN) && !router.has_program(WAN));
    let Some(setpriv) = require("setpriv", program("setpriv")) else { return };
    let mut command = router.router.command(&setpriv);
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--", BINARY, "fastpath", "up", LAN, WAN]);
    command.args(["--state-dir", &router.state()]);
    command.output().expect("it starts").is(&"without root", 3, "root");
    assert!(!router.has_program(LAN) && !router.has_program(WAN));
}

#[test]
fn generic_xdp_forwards_too() {
    let Some(router) = Router::translating() else { return };
    let up = router.up_on(&[LAN, WAN], &["--generic"]);
    let mut datagrams = router.fast_datagrams(SERVER);
    assert_eq!(router.status()["mode"], "generic");
    let [_, mut outside] = router.sniffers();
    router.becomes_fast(&mut datagrams);
    // With right checksums, as every packet that a sniffer gives.
    assert!(!outside.packets().is_empty());
    up.interrupted().ends(0);
}

/// veth loses what XDP sends out of it while its other end has neither a program nor GRO (`veth_xdp_xmit()` of drivers/net/veth.c).
#[test]
fn a_port_that_loses_redirected_frames_is_refused_and_left_to_the_kernel() {
    let Some(mut router) = Router::translating() else { return };
    let says =
        router.router.inside(|| kernel::netlink::xdp_features(WAN)).ok_or(Missing("Linux 6.3".to_owned()));
    let Some(_) = require("xdp-features", says) else { return };
    router.stop_receivers();
    let gro = |on: &str| {
        for end in [&router.client, &router.server] {
            end.run("ethtool", &["-K", FAR, "gro", on]).expect("a setting");
        }
    };
    router.run(&["check", LAN, WAN]).ends(1).says("ethtool -K NAME gro on");
    router.run(&["up", LAN, WAN]).ends(1).says("lan0 loses what XDP sends out of it");
    assert!(!router.has_program(LAN) && !router.has_program(WAN));
    gro("on");
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    gro("off");
    let mut is_left = || {
        datagrams.exchange();
        router.slow("no-next-hop") > 0
    };
    wait_until("packets are the kernel's", &mut is_left);
    gro("on");
    router.becomes_fast(&mut datagrams);
    up.interrupted();
}
