//! The profiles that come with the program, and what becomes of broken ones.

use rxlane_nic::{Profile, builtin, lookup, schema};
use std::collections::BTreeMap;

#[test]
fn every_shipped_profile_loads() {
    let profiles = builtin().unwrap_or_else(|error| panic!("{error}"));
    assert!(!profiles.is_empty());
    for profile in profiles {
        for mode in profile.modes() {
            profile.with_mode(&mode.name).unwrap();
            assert!(!mode.is_empty(), "{} {}", profile.name(), mode.name);
        }
    }
}

#[test]
fn no_two_profiles_share_a_name_or_a_pci_id() {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for profile in builtin().unwrap() {
        let own = profile.aliases.iter().map(String::as_str).chain([profile.device()]);
        for name in own.chain(profile.pci.iter().map(String::as_str)) {
            let before = names.insert(name.to_ascii_lowercase(), profile.name());
            assert!(before.is_none(), "{name}: {before:?} and {}", profile.name());
        }
    }
}

const GOOD: &str = r#"
schema = 1
name = "x1"
title = "X One"
vendor = "X"
aliases = []
pci = []

[source.ds]
kind = "datasheet"
title = "X One Datasheet, revision 1"

[parse]
pppoe = { is = "no", source = "ds: 1.2" }
"#;

fn parsed(text: &str) -> Result<Profile, String> {
    Profile::parse("x1.toml", "x1", text).map_err(|error| error.to_string())
}

#[test]
fn the_example_is_good_and_an_explicit_unknown_is_unknown() {
    let profile = parsed(GOOD).unwrap();
    assert_eq!((profile.tri(schema::PPPOE), profile.tri(schema::MPLS)), (Some(false), None));
    let with_note = GOOD.replace("is = \"no\"", "is = \"unknown\", note = \"no source\"");
    assert_eq!(parsed(&with_note).unwrap().tri(schema::PPPOE), None);
}

/// Replacements in the good profile and what is said of it then; `…` stands for any words.
const REFUSED: &[(&str, &str, &str)] = &[
    (r#", source = "ds: 1.2""#, "", "parse.pppoe: the key `source` is missing; a claim is {CLAIM}"),
    (
        r#""ds: 1.2""#,
        r#""ds""#,
        "parse.pppoe.source: expected \"KEY: place\", or a list of such texts; a claim is {CLAIM}",
    ),
    (r#""ds: 1.2""#, "[]", "parse.pppoe.source: expected \"KEY: place\", found an empty list"),
    (
        r#""ds: 1.2""#,
        r#""dss: 1.2""#,
        "parse.pppoe.source: names `dss`, which no [source.dss] declares; did you mean `ds`?",
    ),
    (
        "[parse]",
        "[source.other]\nkind = \"driver\"\ntitle = \"t\"\n[parse]",
        "source.other: is declared and no claim uses it",
    ),
    (
        r#""datasheet""#,
        r#""rumour""#,
        "source.ds.kind: unknown word `rumour`, expected one of `datasheet`, `driver`, `documentation`, `field-report`, \
         `measurement`",
    ),
    ("pppoe =", "ppoe =", "parse.ppoe: is no key of this stage; did you mean `pppoe`?"),
    ("pppoe =", "rx_queues =", "parse.rx_queues: is no key of this stage; it belongs to [queue]"),
    (
        "[parse]",
        "[pars]",
        "unknown key `pars`, expected one of `schema`…or a stage: device, admit, parse, hash, queue, moderate, steer, \
         coalesce, decap, segment",
    ),
    (
        ", source =",
        r#", sauce = "", source ="#,
        "parse.pppoe: unknown key `sauce`, expected one of `is`, `source`, `note`; a claim is…",
    ),
    (
        r#"is = "no""#,
        "is = false",
        "parse.pppoe.is: expected \"yes\", \"no\" or \"unknown\", found false (write \"yes\" or \"no\" in quotes)",
    ),
    (
        r#"pppoe = { is = "no""#,
        r#"tags_through = { is = ["0x8100"]"#,
        "parse.tags_through.is: `0x8100` is no tag stack: write TPIDs of four hex digits joined by dots, `*` for any one \
         tag, `**` at the end for one or more, or `untagged`",
    ),
    (
        r#"pppoe = { is = "no""#,
        r#"ipv4_options = { is = "ports""#,
        "parse.ipv4_options.is: expected one of transport, addresses, nothing, found \"ports\"",
    ),
    (PARSE, "[queue]\nrx_queues = { is = -1", "queue.rx_queues.is: expected a number, found -1"),
    (
        PARSE,
        "[hash]\nfields_udp4 = { is = \"nfds\"",
        "hash.fields_udp4.is: expected hash fields out of the letters s, d, f, n, found \"nfds\"",
    ),
    (
        r#"{ is = "no", source = "ds: 1.2" }"#,
        r#""no""#,
        "parse.pppoe: expected a table, found \"no\"; a claim is {CLAIM}",
    ),
    (r#"is = "no", "#, "", "parse.pppoe: the key `is` is missing; a claim is {CLAIM}"),
    (PARSE, "[admit]\nframe_beyond = { is = \"max\"", "admit.frame_beyond: `max` needs admit.frame_max"),
    (r#"is = "no""#, r#"is = "unknown""#, "parse.pppoe.note: is missing…"),
    ("schema = 1", "schema = 2", "schema: expected 1, found the number 2"),
    ("schema = 1", "schema = ", "line 2: …"),
    (r#"vendor = "X""#, "", "the key `vendor` is missing"),
    (r#"name = "x1""#, r#"name = "x2""#, "name: …found \"x2\" in x1.toml"),
    ("pci = []", r#"pci = ["8086:15F3"]"#, "pci: …lower-case hex digits each, found \"8086:15F3\""),
    (
        "[parse]",
        "[queue]\nrx_queues = { is = 16, source = \"ds: 1\" }\nentry_bits = { is = 3, source = \"ds: 1\" }\n[parse]",
        "queue.entry_bits: 3 bits cannot name 16 queues",
    ),
    (
        "[parse]",
        "[queue]\ntable_sizes = { is = [128], source = \"ds: 1\" }\nindex_bits = { is = 6, source = \"ds: 1\" }\n[parse]",
        "queue.index_bits: 6 bits do not index 128 entries",
    ),
    (
        "[parse]",
        "[queue]\ntable_sizes = { is = [128], source = \"ds: 1\" }\nindex_bits = { is = 64, source = \"ds: 1\" }\n[parse]",
        "queue.index_bits: 64 bits do not index 128 entries",
    ),
];

const PARSE: &str = "[parse]\npppoe = { is = \"no\"";
const CLAIM: &str = r#"{ is = VALUE, source = "KEY: place" }, VALUE "yes", "no" or "unknown""#;

#[test]
fn broken_profiles_are_refused_with_key_and_reason() {
    for (old, new, expected) in REFUSED {
        assert!(GOOD.contains(old), "{old}");
        let text = parsed(&GOOD.replace(old, new)).unwrap_err();
        let expected = expected.replace("{CLAIM}", CLAIM);
        let problem = text.strip_prefix("x1.toml: ").expect("the file's name");
        match expected.split_once('…') {
            None => assert_eq!(problem, expected, "{new}"),
            Some((begin, end)) => {
                assert!(problem.starts_with(begin) && problem.ends_with(end), "{new}: {problem}");
            }
        }
    }
}

#[test]
fn what_was_so_in_which_kernel_is_checked() {
    let claim =
        |name: &str, is: &str| parsed(&GOOD.replace(PARSE, &format!("[segment]\n{name} = {{ is = {is}")));
    let with = |is: &str| claim("tx_features", is);
    for good in [r#"["3.10:ip+sg", "6.12:hw+sg+tso?"]"#, r#"["4.7:none"]"#, "[]"] {
        assert!(with(good).is_ok(), "{good}: {:?}", with(good).err());
    }
    for wrong in ["5.4:hw", "6.12", "6.12:", "6.12:hw+", "6.12:csum", "6.12:none+sg", "6.12:hw??", "6.12:?"] {
        let error = with(&format!("[\"{wrong}\"]")).unwrap_err();
        let rule = "x1.toml: segment.tx_features.is: expected a list of KERNEL:WORD+WORD, each kernel once";
        assert!(
            error.starts_with(rule) && error.ends_with(&format!("found \"{wrong}\"")),
            "{wrong}: {error}"
        );
    }
    assert!(with(r#"["6.12:hw", "6.12:ip"]"#).is_err(), "a kernel twice");
    // One word, and no doubt, where a driver does one thing.
    let check = |is: &str| claim("features_check", &format!("[\"{is}\"]")).is_ok();
    assert!(check("6.12:limits") && !check("6.12:limits+keeps") && !check("6.12:limits?"));
}

#[test]
fn modes_override_and_are_checked() {
    let mode = r#"pppoe = { is = "no", source = "ds: 1.2" }
[[mode]]
name = "other"
title = "another"
enable = "a register"
source = "ds: 3"
[mode.parse]
pppoe = { is = "yes", source = "ds: 4" }"#;
    let text = GOOD.replace("pppoe = { is = \"no\", source = \"ds: 1.2\" }", mode);
    let profile = parsed(&text).unwrap();
    let other = profile.with_mode("other").unwrap();
    assert_eq!((profile.tri(schema::PPPOE), other.tri(schema::PPPOE)), (Some(false), Some(true)));
    assert_eq!(other.name(), "x1+other");
    assert_eq!(profile.with_mode("thrid").unwrap_err().to_string(), "x1 has no mode `thrid`; it has other");
    assert!(other.with_mode("other").is_err());
    let broken = text.replace("is = \"yes\"", "is = \"perhaps\"");
    let error = parsed(&broken).unwrap_err();
    assert!(error.starts_with("x1.toml: mode other.parse.pppoe.is: expected"), "{error}");
}

#[test]
fn devices_are_found_by_name_alias_mode_and_path() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/i210.toml");
    let with_mode = format!("{path}+double-vlan");
    for (text, name) in [
        ("i210", "i210"),
        ("I210-at", "i210"),
        ("i210+double-vlan", "i210+double-vlan"),
        (path, "i210"),
        (&with_mode, "i210+double-vlan"),
        ("8086:1533", "i210"),
        ("[8086:1533]", "i210"),
        ("8086:1533+double-vlan", "i210+double-vlan"),
    ] {
        assert_eq!(lookup(text).unwrap().name(), name, "{text}");
    }
    assert_eq!(lookup("15B3:1017").unwrap().device(), lookup("15b3:1017").unwrap().device());
    assert!(lookup("8086:ffff").is_err());
    let error = lookup("i21o").unwrap_err().to_string();
    assert!(error.contains("no NIC is called `i21o`") && error.contains("i210"), "{error}");
    let error = lookup("igb").unwrap_err().to_string();
    assert!(error.contains("i210"), "{error}");
    let error = lookup("./nowhere.toml").unwrap_err().to_string();
    assert!(error.starts_with("./nowhere.toml: cannot be read"), "{error}");
}
