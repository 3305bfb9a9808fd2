//! `rxlane nics --stack`, run as a person runs it.

use crate::run;
use serde_json::Value;

fn nics(arguments: &[&str]) -> (i32, String, String) {
    let mut command = run::rxlane();
    let output = command.args(["nics", "--verbose"]).args(arguments).env("COLUMNS", "80").output();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The word behind `label`.
fn word<'a>(text: &'a str, label: &str) -> &'a str {
    let line = text.lines().find(|line| line.trim_start().starts_with(label));
    let line = line.unwrap_or_else(|| panic!("{label}: {text}"));
    line.trim_start()[label.len()..].split_whitespace().next().unwrap()
}

fn words(text: &str) -> [&str; 8] {
    ["TX checksum", "scatter-gather", "GSO", "TSO", "RX checksum", "RSS", "RPS", "GRO"]
        .map(|label| word(text, label))
}

#[test]
fn a_device_shows_what_is_left_and_by_which_rule() {
    let (code, text, error) = nics(&["--stack", "ad:100,q:200", "i210"]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(text.starts_with("i210: stack ad:100,q:200, under the rules of Linux 6.12"), "{text}");
    assert_eq!(words(&text), ["yes", "yes", "yes", "yes", "no", "no", "yes", "yes"]);
    assert!(text.contains("the device does not find the header (ds, ntt)"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn kernels_differ() {
    let (_, text, _) = nics(&["--stack", "ad:100,q:200", "82599", "--kernel", "3.10"]);
    assert_eq!(words(&text), ["no"; 8]);
    assert!(text.contains("a VLAN device passes no features on to a device that"), "{text}");
    let (_, text, _) = nics(&["--stack", "ad:100,q:200", "82599", "--kernel", "4.7"]);
    assert_eq!(words(&text), ["yes", "yes", "yes", "yes", "no", "no", "yes", "yes"]);
    let (_, text, _) = nics(&["--stack", "ad:100", "82599", "--kernel", "3.10"]);
    assert_eq!(word(&text, "TX checksum"), "broken");
}

/// Without a name: the table of the field report, and today's kernel beside it.
#[test]
fn kinds_of_devices_are_compared_over_kernels() {
    let (code, text, _) = nics(&["--stack", "ad:100,q:200"]);
    assert_eq!(code, 0);
    let table: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("feature"))
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected: Vec<Vec<&str>> = [
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
    ]
    .iter()
    .map(|line| line.split(' ').collect())
    .collect();
    assert_eq!(table, expected);
    assert!(text.contains("net/8021q/vlan_dev.c vlan_dev_init"), "{text}");
    let (_, text, _) = nics(&["--stack", "ad:100,q:200", "--kernel", "4.7"]);
    assert!(text.contains("feature         device   4.7\n") && !text.contains("why not"), "{text}");
}

#[test]
fn admission_says_what_is_too_long_and_which_mtu_lets_it_in() {
    let (_, text, _) = nics(&["--stack", "ad:100,q:200", "82599"]);
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    let cells = |name: &str| row(name)[name.len()..].split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(cells("full frame of this stack"), "1522 no, >1514 yes 1508");
    assert_eq!(cells("two 802.1Q tags"), "1522 no, >1518 yes 1504");
    assert_eq!(cells("802.1Q tag"), "1518 yes yes");
    assert_eq!(cells("envelope (802.3as)"), "1996 no, >1514 yes 1982");
    assert!(text.contains("ip link set IFACE mtu 1508"), "{text}");
    // Where nothing is known, nothing is proposed.
    let (_, text, _) = nics(&["--stack", "q:1", "rtl8125b"]);
    assert!(
        text.lines().any(|line| line.ends_with("?         ?")) && !text.contains("ip link set"),
        "{text}"
    );
}

#[test]
fn pppoe_ends_a_stack() {
    let (code, text, _) = nics(&["--stack", "q:35,pppoe", "i210"]);
    assert_eq!(code, 0);
    assert_eq!(words(&text), ["no", "yes", "yes", "no", "no", "no", "yes", "no"]);
    assert!(text.contains("GRO does not pass PPPoE"), "{text}");
    let (_, text, _) = nics(&["--stack", "q:35,pppoe", "i210", "--kernel", "4.7"]);
    assert_eq!(words(&text), ["no", "no", "no", "no", "no", "no", "yes", "no"]);
}

#[test]
fn ip_versions_have_a_line_each_where_they_differ() {
    let (_, text, _) = nics(&["--stack", "q:35", "rtl8125b"]);
    assert_eq!((word(&text, "TX checksum"), word(&text, "over IPv6")), ("yes", "no"));
}

#[test]
fn several_devices_stand_below_one_another() {
    let (code, text, _) = nics(&["--stack", "q:1,q:2", "i210", "bnx2x"]);
    assert_eq!(code, 0);
    assert!(text.starts_with("i210: ") && text.contains("\nbnx2x: stack q:1,q:2"), "{text}");
    assert!(text.contains("the driver's own check takes it away"), "{text}");
}

#[test]
fn json_says_the_same() {
    let (code, text, _) = nics(&["--json", "--stack", "ad:100,q:200", "82599", "qlge"]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "rxlane.nics/1");
    let stack = &json["stack"];
    assert_eq!((&stack["stack"], &stack["kernel"]["name"]), (&"ad:100,q:200".into(), &"current".into()));
    let ixgbe = &stack["answers"][0];
    let feature = |name: &str| {
        let features = ixgbe["features"].as_array().unwrap();
        features.iter().find(|feature| feature["feature"] == name).unwrap()
    };
    assert_eq!(feature("tso")["answer"], "yes");
    assert_eq!(feature("tso")["rule"], "by-place");
    assert_eq!(feature("rss")["answer"], "no");
    assert_eq!(feature("rss")["claim"], "parse.tags_through");
    assert_eq!(feature("rss")["sources"][0]["source"], "ntt");
    assert!(feature("tso")["ipv6"].is_null());
    let own = &ixgbe["admission"][0];
    assert_eq!((&own["bytes"], &own["tags"]), (&1522.into(), &"0x88a8 0x8100".into()));
    assert_eq!(own["admitted"][0]["answer"], "no");
    assert_eq!(own["admitted"][0]["limit"], 1514);
    assert_eq!(own["admitted"][1]["answer"], "yes");
    assert_eq!(own["mtu_needed"], 1508);
    assert_eq!(own["claim"], "admit.frame_untagged");
    // The driver of the second is in no current kernel: the claim that is missing is named.
    let missing = &stack["answers"][1]["features"][0];
    assert_eq!((&missing["answer"], &missing["claim"]), (&"unknown".into(), &"segment.tx_features".into()));
    let (_, text, _) = nics(&["--json", "--stack", "ad:100,q:200"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let kinds = json["stack"]["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), 6);
    assert_eq!((&kinds[1]["kind"], &kinds[1]["kernel"]["name"]), (&"IP_CSUM".into(), &"3.10".into()));
    assert_eq!(kinds[3]["features"][0]["answer"], "driver");
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_way_out() {
    for (arguments, told) in [
        (&["--stack", "q:1,mpls:3", "i210"][..], "MPLS labels are put on by routes"),
        (&["--stack", "0x9100:1", "i210"], "not of 0x9100"),
        (&["--stack", "hello"], "for example ad:100,q:200"),
        (&["--stack", "q:4095"], "a VLAN identifier is a number from 0 to 4094"),
        (&["--stack", "q:1", "i21o"], "near it are i210"),
        (&["--stack", "q:1", "--kernel", "5.4"], "there are 3.10 (Linux 3.10.105), 4.7"),
        (&["--kernel", "4.7", "i210"], "--stack <STACK>"),
        (&["--stack", "q:1", "--can", "pppoe"], "cannot be used with"),
    ] {
        let (code, text, error) = nics(arguments);
        assert_eq!((code, text.as_str()), (2, ""), "{arguments:?}");
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
}

#[test]
fn help_has_an_example() {
    let (_, text, _) = nics(&["--help"]);
    assert!(text.contains("rxlane nics --stack ad:100,q:200 i210 82599 --kernel 4.7"), "{text}");
}
