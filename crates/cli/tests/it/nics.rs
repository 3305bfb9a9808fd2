//! `rxlane nics`, run as a person runs it.

use crate::run;
use serde_json::Value;

fn nics(arguments: &[&str]) -> (i32, String, String) {
    let output = run::rxlane().args(["nics", "--verbose"]).args(arguments).output();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .find(|line| line.split_whitespace().next() == Some(name))
        .unwrap_or_else(|| panic!("{name}: {text}"))
}

#[test]
fn the_list_has_every_device_in_a_hundred_columns() {
    let (code, text, error) = nics(&[]);
    assert_eq!((code, error.as_str()), (0, ""));
    for name in ["82574", "82576", "i210", "i211", "i350", "i225", "82599", "x540", "x710", "e810", "i219"] {
        line(&text, name);
    }
    let i210: Vec<&str> = line(&text, "i210").split_whitespace().take(8).collect();
    assert_eq!(i210, ["i210", "igb", "4", "128", "40", "8100", "no", "sd"]);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 100, "{widest}");
}

#[test]
fn one_device_shows_its_claims_by_stage_with_sources() {
    let (code, text, _) = nics(&["I210-AT"]);
    assert_eq!(code, 0);
    let places: Vec<usize> =
        ["\nadmit", "\nparse", "\nhash", "\nqueue", "\nmoderate", "\nsteer", "\nsegment", "\nsources"]
            .iter()
            .map(|stage| text.find(stage).unwrap_or_else(|| panic!("{stage}: {text}")))
            .collect();
    assert!(places.is_sorted(), "{places:?}");
    let pppoe = text.split("PPPoE seen through").nth(1).unwrap();
    assert!(pppoe.trim_start().starts_with("no\n"), "{pppoe}");
    assert!(pppoe.lines().nth(1).unwrap().contains("ds: 7.1.2.10"));
    assert!(text.contains("i210+double-vlan"));
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn several_stand_side_by_side() {
    let (code, text, _) = nics(&["i210", "82599"]);
    assert_eq!(code, 0);
    let row = text.lines().find(|line| line.contains("largest frame, one tag")).unwrap();
    assert!(row.contains("1532") && row.ends_with("1518"), "{row}");
    assert!(!text.contains('…'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn can_answers_who_would_spread_such_traffic() {
    let (code, text, _) = nics(&["--can", "pppoe", "i210", "e810"]);
    assert_eq!(code, 0);
    assert!(line(&text, "e810").contains("in a mode  +ddp-comms"));
    assert!(line(&text, "i210").contains("no         the parser stops at the PPPoE header"), "{text}");
    let (code, text, _) = nics(&["--can", "pppoe,qinq", "i210"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("TCP over IPv4 in PPPoE under tags 0x88a8 0x8100"));
    let (code, _, error) = nics(&["--can", "pppo"]);
    assert_eq!(code, 2);
    assert!(error.contains("`pppo` is no kind of traffic; known are vlan, qinq"), "{error}");
}

#[test]
fn a_mode_that_no_driver_turns_on_is_no_yes() {
    let (code, text, _) = nics(&["--can", "qinq", "i210"]);
    assert_eq!(code, 1, "{text}");
    assert!(line(&text, "i210").contains("in theory  +double-vlan"), "{text}");
    let told = text.split("\n\n").last().unwrap().replace('\n', " ");
    assert!(
        told.contains("0 in a mode that can be turned on, 1 in one that no usual driver turns on"),
        "{told}"
    );
}

#[test]
fn a_pci_id_names_a_device() {
    let (code, text, _) = nics(&["8086:1533"]);
    assert_eq!(code, 0);
    assert!(text.starts_with("i210  "), "{text}");
}

#[test]
fn who_does_not_choose_the_queue_is_marked() {
    let (_, text, _) = nics(&[]);
    for name in ["veth", "virtio-net"] {
        assert!(line(&text, name).contains(" yes*"), "{text}");
    }
    assert!(
        text.contains("\n*: headers are seen through, but the queue is chosen by the sending side"),
        "{text}"
    );
    assert!(line(&nics(&["--can", "pppoe"]).1, "veth").contains("the sending side chooses the queue"));
}

#[test]
fn eighty_columns_are_enough() {
    let arguments: [&[&str]; 11] = [
        &[],
        &["i210"],
        &["i210", "x710"],
        &["i210", "x710", "rtl8125b"],
        &["i210", "x710", "rtl8125b", "e810", "82599"],
        &["--can", "qinq"],
        &["--can", "pppoe,udp"],
        &["--stack", "ad:100,q:200"],
        &["--stack", "ad:100,q:200", "i210", "rtl8125b"],
        &["--stack", "q:35,pppoe", "82599", "--kernel", "3.10"],
        &["--stack", "none", "e810"],
    ];
    for (columns, arguments) in [40, 60, 80, 100].into_iter().flat_map(|n| arguments.map(|a| (n, a))) {
        let mut command = run::rxlane();
        command.args(["nics", "--verbose"]).args(arguments).env("COLUMNS", columns.to_string());
        let text = String::from_utf8(command.output().stdout).unwrap();
        for line in text.lines() {
            // Names, ids and links are not broken, and a list has seven columns.
            let widest = if columns < 80 { 80 } else { columns };
            assert!(
                line.chars().count() <= widest || line.contains("://"),
                "{columns} {arguments:?}: {line}"
            );
            assert!(!line.trim_start().starts_with(','), "{columns} {arguments:?}: {line}");
        }
    }
}

#[test]
fn json_says_the_same() {
    let (code, text, _) = nics(&["--json", "i210", "82599"]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "rxlane.nics/1");
    let i210 = &json["nics"][0];
    assert_eq!(i210["name"], "i210");
    assert_eq!(i210["claims"]["parse"]["pppoe"]["is"], "no");
    assert_eq!(i210["claims"]["parse"]["pppoe"]["sources"][0]["source"], "ds");
    assert_eq!(i210["claims"]["queue"]["rx_queues"]["is"], 4);
    assert_eq!(i210["knobs"][0]["name"], "rx-usecs");
    assert!(json["nics"][1]["claims"]["parse"]["mpls"].is_null());
    let (code, text, _) = nics(&["--json", "--can", "pppoe", "i210", "e810"]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["can"]["answers"][0]["name"], "e810");
    assert_eq!(json["can"]["answers"][0]["modes"][0]["name"], "ddp-comms");
    assert_eq!(json["can"]["answers"][1]["answer"], "no");
    assert_eq!(json["can"]["answers"][1]["claim"], "parse.pppoe");
}

#[test]
fn an_unknown_name_lists_what_is_near() {
    let (code, text, error) = nics(&["i21o"]);
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(error.contains("no NIC is called `i21o`; near it are i210"), "{error}");
    let (code, _, error) = nics(&["i210+stacked"]);
    assert_eq!(code, 2);
    assert!(error.contains("i210 has no mode `stacked`; it has double-vlan"), "{error}");
}

#[test]
fn a_profile_of_ones_own_is_checked_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let good = "schema = 1\nname = \"mine\"\ntitle = \"Mine\"\nvendor = \"Me\"\naliases = []\npci = []\n\
                [source.ds]\nkind = \"datasheet\"\ntitle = \"Mine, revision 1\"\n\
                [parse]\npppoe = { is = \"yes\", source = \"ds: 3\" }\n";
    std::fs::write(&path, good).unwrap();
    let (code, text, _) = nics(&[path.to_str().unwrap()]);
    assert_eq!(code, 0);
    assert!(text.starts_with("mine  Mine"), "{text}");
    std::fs::write(&path, good.replace(", source = \"ds: 3\"", "")).unwrap();
    let (code, _, error) = nics(&[path.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(error.contains("mine.toml: parse.pppoe: the key `source` is missing"), "{error}");
}
