//! `rxlane nics`: lists, comparisons and what is left under a stack, in their forms; errors name what is near. What devices do is
//! tested in crate `nic`.

use crate::run::{self, Ended, Report};
use serde_json::{Value, json};
use std::process::Output;

fn run(arguments: &str) -> Output {
    run::rxlane()
        .args(["nics", "--verbose"])
        .args(arguments.split_whitespace())
        .env("COLUMNS", "100")
        .output()
}

/// Standard output of a run that succeeds and says nothing else.
fn nics(arguments: &str) -> String {
    let output = run(arguments);
    assert!(output.ends(0).stderr.is_empty(), "{}", output.text());
    output.text()
}

fn json(arguments: &str) -> Value {
    run(&format!("--json {arguments}")).ends(0).json().has(json!({"schema": "rxlane.nics/1"})).clone()
}

fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .find(|line| line.split_whitespace().next() == Some(name))
        .unwrap_or_else(|| panic!("{name}: {text}"))
}

/// The word behind `label`.
fn word<'a>(text: &'a str, label: &str) -> &'a str {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(label));
    rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or_else(|| panic!("{label}: {text}"))
}

/// What is left of the features, in the order of the table.
fn features(text: &str) -> String {
    ["TX checksum", "scatter-gather", "GSO", "TSO", "RX checksum", "RSS", "RPS", "GRO"]
        .map(|label| word(text, label))
        .join(" ")
}

#[test]
fn the_list_has_every_device_and_marks_who_does_not_choose_the_queue() {
    let text = nics("");
    for name in ["82574", "82576", "i210", "i211", "i350", "i225", "82599", "x540", "x710", "e810", "i219"] {
        line(&text, name);
    }
    let i210: Vec<&str> = line(&text, "i210").split_whitespace().take(8).collect();
    assert_eq!(i210, ["i210", "igb", "4", "128", "40", "8100", "no", "sd"]);
    for name in ["veth", "virtio-net"] {
        assert!(line(&text, name).contains(" yes*"), "{text}");
    }
    let note = "\n*: headers are seen through, but the queue is chosen by the sending side";
    assert!(text.contains(note), "{text}");
    assert!(line(&nics("--can pppoe"), "veth").contains("the sending side chooses the queue"));
}

#[test]
fn one_device_shows_its_claims_by_stage_with_sources() {
    let text = nics("I210-AT");
    let stages = ["admit", "parse", "hash", "queue", "moderate", "steer", "segment", "sources"];
    let place = |stage| text.find(&format!("\n{stage}")).unwrap_or_else(|| panic!("{stage}: {text}"));
    assert!(stages.map(place).is_sorted(), "{text}");
    let pppoe = text.split("PPPoE seen through").nth(1).unwrap();
    assert!(pppoe.trim_start().starts_with("no\n"), "{pppoe}");
    assert!(pppoe.lines().nth(1).unwrap().contains("ds: 7.1.2.10"));
    assert!(text.contains("i210+double-vlan"));
    assert!(nics("8086:1533").starts_with("i210  "), "by its PCI id");
    // Several stand side by side.
    let text = nics("i210 82599");
    let row = text.lines().find(|line| line.contains("largest frame, one tag")).unwrap();
    assert!(row.contains("1532") && row.ends_with("1518") && !text.contains('…'), "{text}");
    // A driver is all of its devices.
    let text = nics("igb");
    assert!(text.contains("i210") && text.contains("82576") && text.contains("i350"), "{text}");
}

#[test]
fn can_answers_who_would_spread_such_traffic() {
    let text = nics("--can pppoe i210 e810");
    assert!(line(&text, "e810").contains("in a mode  +ddp-comms"));
    assert!(line(&text, "i210").contains("no         the parser stops at the PPPoE header"), "{text}");
    run("--can pppoe,qinq i210").ends(1).says("TCP over IPv4 in PPPoE under tags 0x88a8 0x8100");
    // A mode that no driver turns on is no yes.
    let output = run("--can qinq i210");
    let summary = "0 in a mode that can be turned on, 1 in one that no usual driver turns on";
    let text = output.ends(1).text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in theory +double-vlan") && text.contains(summary), "{text}");
}

#[test]
fn what_is_left_under_a_stack_depends_on_device_and_kernel() {
    for (arguments, expected, part) in [
        (
            "ad:100,q:200 i210",
            "yes yes yes yes no no yes yes",
            "the device does not find the header (ds, ntt)",
        ),
        (
            "ad:100,q:200 82599 --kernel 3.10",
            "no no no no no no no no",
            "a VLAN device passes no features on to a device that",
        ),
        ("ad:100,q:200 82599 --kernel 4.7", "yes yes yes yes no no yes yes", "82599: stack ad:100,q:200"),
        ("q:35,pppoe i210", "no yes yes no no no yes no", "GRO does not pass PPPoE"),
    ] {
        let text = nics(&format!("--stack {arguments}"));
        assert_eq!(features(&text), expected, "{arguments}: {text}");
        assert!(text.contains(part) && !text.contains('\u{1b}'), "{arguments}: {text}");
    }
    assert_eq!(word(&nics("--stack ad:100 82599 --kernel 3.10"), "TX checksum"), "broken");
    // IP versions have a line each where they differ.
    let text = nics("--stack q:35 rtl8125b");
    assert_eq!((word(&text, "TX checksum"), word(&text, "over IPv6")), ("yes", "no"));
    let text = nics("--stack q:1,q:2 i210 bnx2x");
    assert!(text.starts_with("i210: ") && text.contains("\nbnx2x: stack q:1,q:2"), "{text}");
    assert!(text.contains("the driver's own check takes it away"), "{text}");
}

/// Without a name: the table of the field report, and today's kernel next to it.
#[test]
fn kinds_of_devices_are_compared_over_kernels() {
    let text = nics("--stack ad:100,q:200");
    let table =
        text.lines().skip_while(|line| !line.starts_with("feature")).take_while(|line| !line.is_empty());
    let table: Vec<String> =
        table.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "feature device 3.10 4.7 current",
        "TX checksum HW_CSUM no yes yes",
        "IP_CSUM no driver driver",
        "scatter-gather any no yes yes",
        "GSO any no yes yes",
        "TSO any no driver driver",
        "RX checksum HW_CSUM yes yes yes",
        "IP_CSUM device device device",
        "RSS any device device device",
        "RPS any no yes yes",
        "GRO any no yes yes",
    ];
    assert_eq!(table, expected);
    assert!(text.contains("net/8021q/vlan_dev.c vlan_dev_init"), "{text}");
    let text = nics("--stack ad:100,q:200 --kernel 4.7");
    assert!(text.contains("feature         device   4.7\n") && !text.contains("why not"), "{text}");
}

#[test]
fn admission_says_what_is_too_long_and_which_mtu_lets_it_in() {
    let text = nics("--stack ad:100,q:200 82599");
    for (name, expected) in [
        ("full frame of this stack", "1522 no, >1514 yes 1508"),
        ("two 802.1Q tags", "1522 no, >1518 yes 1504"),
        ("802.1Q tag", "1518 yes yes"),
        ("envelope (802.3as)", "1996 no, >1514 yes 1982"),
    ] {
        let row = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{name}");
    }
    assert!(text.contains("ip link set IFACE mtu 1508"), "{text}");
    // Where nothing is known, nothing is proposed.
    let text = nics("--stack q:1 rtl8125b");
    assert!(
        text.lines().any(|line| line.ends_with("?         ?")) && !text.contains("ip link set"),
        "{text}"
    );
}

#[test]
fn eighty_columns_are_enough() {
    let arguments = [
        "",
        "i210",
        "i210 x710",
        "i210 x710 rtl8125b",
        "i210 x710 rtl8125b e810 82599",
        "--can qinq",
        "--can pppoe,udp",
        "--stack ad:100,q:200",
        "--stack ad:100,q:200 i210 rtl8125b",
        "--stack q:35,pppoe 82599 --kernel 3.10",
        "--stack none e810",
    ];
    for (columns, arguments) in [40, 60, 80, 100].into_iter().flat_map(|n| arguments.map(|a| (n, a))) {
        let mut command = run::rxlane();
        command.args(["nics", "--verbose"]).args(arguments.split_whitespace());
        let text = command.env("COLUMNS", columns.to_string()).output().text();
        for line in text.lines() {
            // Names, ids and links are not broken, and a list has seven columns.
            let fits = line.chars().count() <= columns.max(80) || line.contains("://");
            assert!(fits && !line.trim_start().starts_with(','), "{columns} {arguments}: {line}");
        }
    }
}

#[test]
fn json_says_the_same() {
    let report = json("i210 82599");
    report["nics"][0].has(json!({
        "name": "i210",
        "claims": {"parse": {"pppoe": {"is": "no"}}, "queue": {"rx_queues": {"is": 4}}},
    }));
    assert_eq!(report["nics"][0]["claims"]["parse"]["pppoe"]["sources"][0]["source"], "ds");
    assert_eq!(report["nics"][0]["knobs"][0]["name"], "rx-usecs");
    assert!(report["nics"][1]["claims"]["parse"]["mpls"].is_null());
    let answers = &json("--can pppoe i210 e810")["can"]["answers"];
    answers[0].has(json!({"name": "e810"}));
    assert_eq!(answers[0]["modes"][0]["name"], "ddp-comms");
    answers[1].has(json!({"answer": "no", "claim": "parse.pppoe"}));

    let stack = &json("--stack ad:100,q:200 82599 qlge")["stack"];
    stack.has(json!({"stack": "ad:100,q:200", "kernel": {"name": "current"}}));
    let features = stack["answers"][0]["features"].as_array().unwrap();
    let feature = |name: &str| features.iter().find(|feature| feature["feature"] == name).unwrap();
    feature("tso").has(json!({"answer": "yes", "rule": "by-place"}));
    assert!(feature("tso")["ipv6"].is_null());
    feature("rss").has(json!({"answer": "no", "claim": "parse.tags_through"}));
    assert_eq!(feature("rss")["sources"][0]["source"], "ntt");
    stack["answers"][0]["admission"][0].has(json!({
        "bytes": 1522, "tags": "0x88a8 0x8100", "mtu_needed": 1508, "claim": "admit.frame_untagged",
        "admitted": [{"answer": "no", "limit": 1514}, {"answer": "yes"}],
    }));
    // The driver of the second is in no current kernel: the claim that is missing is named.
    stack["answers"][1]["features"][0].has(json!({"answer": "unknown", "claim": "segment.tx_features"}));
    let kinds = json("--stack ad:100,q:200")["stack"]["kinds"].clone();
    assert_eq!(kinds.as_array().map(Vec::len), Some(6));
    kinds[1].has(json!({"kind": "IP_CSUM", "kernel": {"name": "3.10"}}));
    assert_eq!(kinds[3]["features"][0]["answer"], "driver");
}

#[test]
fn what_cannot_be_answered_is_refused_with_a_way_out() {
    for (arguments, sentence) in [
        ("i21o", "no NIC is called `i21o`; near it are i210"),
        ("i210+stacked", "i210 has no mode `stacked`; it has double-vlan"),
        ("--can pppo", "`pppo` is no kind of traffic; known are vlan, qinq"),
        ("--stack q:1,mpls:3 i210", "MPLS labels are put on by routes"),
        ("--stack 0x9100:1 i210", "not of 0x9100"),
        ("--stack hello", "for example ad:100,q:200"),
        ("--stack q:4095", "a VLAN identifier is a number from 0 to 4094"),
        ("--stack q:1 i21o", "near it are i210"),
        ("--stack q:1 --kernel 5.4", "there are 3.10 (Linux 3.10.105), 4.7"),
        ("--kernel 4.7 i210", "--stack <STACK>"),
        ("--stack q:1 --can pppoe", "cannot be used with"),
    ] {
        let output = run(arguments);
        assert!(output.is(&arguments, 2, sentence).stdout.is_empty(), "{arguments}: {}", output.text());
    }
}

#[test]
fn a_profile_of_ones_own_is_checked_and_displayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let good = "schema = 1\nname = \"mine\"\ntitle = \"Mine\"\nvendor = \"Me\"\naliases = []\npci = []\n\
                [source.ds]\nkind = \"datasheet\"\ntitle = \"Mine, revision 1\"\n\
                [parse]\npppoe = { is = \"yes\", source = \"ds: 3\" }\n";
    std::fs::write(&path, good).unwrap();
    assert!(nics(path.to_str().unwrap()).starts_with("mine  Mine"));
    std::fs::write(&path, good.replace(", source = \"ds: 3\"", "")).unwrap();
    run(path.to_str().unwrap()).ends(2).says("mine.toml: parse.pppoe: the key `source` is missing");
}
