//! `rxlane rss`, run as a person runs it.

use crate::run::{self, Command, Ended};
use serde_json::{Value, json};

const MICROSOFT: &str = "6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:\
                         80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa";

fn rxlane(arguments: &str) -> Command {
    let mut command = run::rxlane();
    command.arg("rss").args(arguments.split_whitespace());
    command
}

fn output(command: &mut Command) -> String {
    command.output().ends(0).text()
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&output(&mut rxlane(&format!("{arguments} --json")))).unwrap()
}

/// Exit 2 and a sentence on standard error.
fn refused(arguments: &str, sentence: &str) {
    let output = rxlane(arguments).output();
    assert!(output.is(&arguments, 2, sentence).stdout.is_empty(), "{arguments}");
}

const FLOW: &str = "hash --src 66.9.149.187 --dst 161.142.100.80 --sport 2794 --dport 1766";

#[test]
fn the_hash_of_a_published_packet() {
    let text = output(&mut rxlane(&format!("{FLOW} --proto tcp --queues 16")));
    let expected = "\
packet     66.9.149.187:2794 > 161.142.100.80:1766, tcp
enabled    ipv4,tcp-ipv4,ipv6,tcp-ipv6 (assumed: no --nic, no --types)
hash type  tcp-ipv4 (the transport protocol's type wins)
fields     source address, destination address, source port, destination port
input      42 09 95 bb a1 8e 64 50 0a ea 06 e6
key        40 bytes, Microsoft's
           6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:
           d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:
           6a:42:b7:3b:be:ac:01:fa
hash       0x51ccc178
table      128 entries in turn over 16 queues (no --nic, no --reta)
entry      120 of 128 (the low 7 bits of the hash)
queue      8
";
    assert_eq!(text, expected);
}

#[test]
fn hash_fields_decide_as_on_an_82599() {
    // Observed on hardware: vectors/rss/observed-82599.csv.
    let addresses = json(&format!("{FLOW} --proto udp --queues 16 --hash-fields udp4=sd"));
    assert_eq!((&addresses["hash"], &addresses["queue"]), (&json!("0x323e8fc2"), &json!(2)));
    assert_eq!(addresses["hash_type"], "ipv4");
    let ports = json(&format!("{FLOW} --proto udp --queues 16 --hash-fields udp4=sdfn"));
    assert_eq!(
        (&ports["hash"], &ports["entry"], &ports["queue"]),
        (&json!("0x51ccc178"), &json!(120), &json!(8))
    );
    assert_eq!((&ports["schema"], &ports["key"]), (&json!("rxlane.rss-hash/1"), &json!(MICROSOFT)));
}

#[test]
fn a_packet_that_fits_no_type_has_no_hash() {
    let unmatched = json(&format!("{FLOW} --proto udp --types tcp-ipv4"));
    assert_eq!((&unmatched["hash_type"], &unmatched["hash"]), (&json!("none"), &json!("0x00000000")));
    assert_eq!((&unmatched["entry"], &unmatched["queue"]), (&Value::Null, &json!(0)));
    let table = "--reta 3,2,1,0 --unmatched entry-0";
    let entry = json(&format!("{FLOW} --proto udp --types none {table}"));
    assert_eq!((&entry["entry"], &entry["queue"]), (&json!(0), &json!(3)));
    assert_eq!(json(&format!("{FLOW} --types none --unmatched 7"))["queue"], 7);
}

#[test]
fn fragments_are_hashed_by_address() {
    let fragment = json(&format!("{FLOW} --fragment"));
    assert_eq!((&fragment["hash"], &fragment["hash_type"]), (&json!("0x323e8fc2"), &json!("ipv4")));
    assert_eq!(fragment["why"], "fragments are never hashed with ports");
}

#[test]
fn ex_types_use_the_home_address() {
    let flow = "hash --src 2001:db8::9 --dst 3ffe:2501:200:3::1 --sport 2794 --dport 1766";
    let moved = json(&format!("{flow} --types tcp-ipv6-ex --home-address 3ffe:2501:200:1fff::7"));
    assert_eq!(moved["hash"], "0x40207d3d");
    assert_ne!(json(&format!("{flow} --types tcp-ipv6-ex"))["hash"], "0x40207d3d");
}

#[test]
fn a_printed_table_brings_its_key() {
    let table = output(&mut rxlane("table equal 3 --entries 24"));
    let table = table.split("\n\n").next().unwrap();
    let printed = format!("{table}\nRSS hash key:\n{}\n", ["6d:5a"; 20].join(":"));
    let mut command = rxlane(&format!("{FLOW} --reta - --json"));
    let answer: Value = serde_json::from_str(&output(command.write_stdin(printed))).unwrap();
    assert_eq!((&answer["hash"], &answer["entries"]), (&json!("0x9fcc9fcc"), &json!(24)));
    assert_eq!(answer["entry"], 0x9fcc_9fcc_u32 % 24);
}

#[test]
fn a_device_brings_its_table_and_types() {
    let i210 = json(&format!("{FLOW} --nic i210"));
    assert_eq!(
        (&i210["hash"], &i210["entry"], &i210["queue"]),
        (&json!("0x51ccc178"), &json!(120), &json!(3))
    );
    assert_eq!(i210["table_from"], "in blocks over 4 queues (default of the i210)");
    let in_turn = json(&format!("{FLOW} --nic i210 --reta equal:4"));
    assert_eq!(
        (&in_turn["queue"], &in_turn["table_from"]),
        (&json!(0), &json!("of --reta (equal:4) over 4 queues"))
    );
    let udp = json(&format!("{FLOW} --nic i210 --proto udp"));
    assert_eq!((&udp["hash_type"], &udp["hash"]), (&json!("ipv4"), &json!("0x323e8fc2")));
    let text = output(&mut rxlane(&format!("{FLOW} --nic i210 --queues 2 --hash-fields udp4=sdfn")));
    assert!(text.contains("\ndevice     i210: "), "{text}");
    assert!(text.contains("(default of the i210, then --hash-fields)\n"), "{text}");
    assert!(
        text.contains("\ntable      128 entries in blocks over 2 queues (default of the i210)\n"),
        "{text}"
    );
    let ipv6 =
        "hash --src 3ffe:2501:200:1fff::7 --dst 3ffe:2501:200:3::1 --sport 2794 --dport 1766 --nic i210";
    assert_eq!(json(ipv6)["hash_type"], "tcp-ipv6-ex");
    let moved = "hash --src 2001:db8::9 --dst 3ffe:2501:200:3::1 --sport 2794 --dport 1766 --nic i210";
    let moved = json(&format!("{moved} --home-address 3ffe:2501:200:1fff::7"));
    assert_eq!(moved["hash"], json(ipv6)["hash"]);
    let stacked = json(&format!("{FLOW} --nic i210+double-vlan"));
    assert_eq!((&stacked["hash_type"], &stacked["queue"]), (&json!("none"), &json!(0)));
    assert_eq!(stacked["why"], "the parser expects VLAN tags, and there are none");
}

/// The same flow lands on the same queue whether it is asked about or seen in a capture.
#[test]
fn explain_and_hash_agree() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.pcap");
    let file = file.to_str().unwrap();
    for (nic, ip, proto) in [
        ("i210", "4", "tcp"),
        ("i210", "6", "tcp"),
        ("i210", "6", "udp"),
        ("x710", "4", "udp"),
        ("82599", "6", "tcp"),
    ] {
        let gen_arguments = [
            "gen",
            "--encap",
            "none",
            "--flows",
            "1",
            "--frames",
            "20",
            "--control",
            "0",
            "--fragments",
            "0",
            "--ip",
            ip,
            "--proto",
            proto,
            "-o",
            file,
        ];
        run::rxlane().args(gen_arguments).output().ends(0);
        let mut explained = run::rxlane();
        let report = output(explained.args(["explain", file, "--nic", nic, "--json"]));
        let report: Value = serde_json::from_str(&report).unwrap();
        let flow = &report["top_flows"][0];
        let ends: Vec<std::net::SocketAddr> =
            flow["flow"].as_str().unwrap().split(" > ").map(|end| end.parse().unwrap()).collect();
        let [source, destination] = ends.as_slice() else { panic!("{flow}") };
        let (src, sport, dst, dport) = (source.ip(), source.port(), destination.ip(), destination.port());
        let asked = format!(
            "hash --nic {nic} --proto {proto} --src {src} --sport {sport} --dst {dst} --dport {dport}"
        );
        let answer = json(&asked);
        assert_eq!(answer["queue"], flow["queue"], "{nic}: {flow}");
        assert_eq!(answer["hash_type"], report["stacks"][0]["hash_type"], "{nic}: {flow}");
    }
}

#[test]
fn the_hash_refuses_with_a_sentence() {
    refused("hash --src 1.2.3.4 --dst ::1 --proto icmp", "different IP versions");
    refused("hash --src 1.2.3.4 --dst 1.2.3.5", "give --sport and --dport");
    refused("hash --src 1.2.3.4 --dst 1.2.3.5 --sport 1 --dport 2 --proto icmp", "not to icmp");
    refused("hash --src 1.2.3.4 --dst 1.2.3.5 --proto xyz", "neither a protocol number");
    refused(&format!("{FLOW} --home-address ::1"), "belong to IPv6");
    refused(&format!("{FLOW} --key 6d:5x"), "'x' at character 5");
    refused(&format!("{FLOW} --key 0102030405060708"), "need a key of 40");
    refused(&format!("{FLOW} --hash-fields udp4=sdx"), "'x' at position 3");
    refused(&format!("{FLOW} --hash-fields tcp4=vsd"), "only addresses and ports");
    refused(&format!("{FLOW} --types tcp4"), "\"tcp4\" is no hash type");
    refused(&format!("{FLOW} --reta 0,1,x"), "\"x\" is no queue number");
    refused(&format!("{FLOW} --reta /nowhere/at-all"), "/nowhere/at-all");
    refused(&format!("{FLOW} --reta equal:9 --queues 4"), "equal:9 names 9 queues, and --queues says 4");
    refused(&format!("{FLOW} --nic i210 --reta equal:9"), "equal:9 names 9 queues, the i210 has 4 in use");
    refused(&format!("{FLOW} --nic i21o"), "no NIC is called `i21o`");
    refused(&format!("{FLOW} --nic virtio-net"), "no indirection table");
    refused(&format!("{FLOW} --nic i219"), "one receive queue");
    refused(&format!("{FLOW} --nic i210 --types ipv4"), "cannot be used with");
    refused(&format!("{FLOW} --queues 0"), "equal 0 leaves no queue");
    refused(&format!("{FLOW} --table-size 0"), "0 entries");
}

#[test]
fn a_table_prints_as_ethtool_does() {
    let expected = "\
RX flow hash indirection table for eth1 with 2 RX ring(s):
    0:      0     0     0     0     0     0     0     0
    8:      0     0     0     0     1     1     1     1

queue  entries    share
    0       12   75.0 %  ████████████████████████████████████████
    1        4   25.0 %  ██████████████
busiest queue over mean 1.50; as even as 1.60 queues
";
    assert_eq!(output(&mut rxlane("table weight 3 1 --entries 16 --interface eth1")), expected);
}

#[test]
fn a_printed_table_is_read_again() {
    let printed = output(&mut rxlane("table equal 16 --entry-bits 4"));
    let read = output(rxlane("table parse").write_stdin(printed.clone()));
    assert_eq!(read, printed);
    let more = output(rxlane("table parse --queues 63").write_stdin(printed));
    assert!(more.contains("16-62  no entry names them"), "{more}");
}

#[test]
fn a_table_as_json() {
    let table = json("table explicit 0 0 1 3 --queues 4");
    assert_eq!(table["entries"], json!([0, 0, 1, 3]));
    assert_eq!(table["shares"], json!([2, 1, 0, 1]));
    assert_eq!((&table["schema"], &table["queues"]), (&json!("rxlane.rss-table/1"), &json!(4)));
    assert_eq!(table["imbalance"]["max_over_mean"], 2.0);
}

#[test]
fn the_table_refuses_with_a_sentence() {
    refused("table equal 9 --entry-bits 3", "queue 8 in entry 8 does not fit into 3 bits");
    refused("table equal 0", "at least 1");
    refused("table weight 0 0", "above zero");
    refused("table weight 100 100", "add up to 200");
    refused("table explicit 0 1 --entries 4", "2 entries given, the table has 4");
    refused("table equal 8 --queues 4", "names queue 4, and there are 4");
    rxlane("table parse").write_stdin("nothing of the kind\n").output().ends(2).says("output of ethtool -x");
}

#[test]
fn keys() {
    let text = output(&mut rxlane("key microsoft"));
    assert_eq!(text.lines().next(), Some(MICROSOFT));
    assert!(text.contains("inputs of 36 bytes (288 bits)") && text.contains("symmetric  no"), "{text}");
    assert!(output(&mut rxlane("key symmetric --bytes 8")).contains("symmetric  not to be told"));
    let symmetric = json("key symmetric --bytes 52");
    assert_eq!((&symmetric["octets"], &symmetric["input_bits"]), (&json!(52), &json!(384)));
    assert_eq!(symmetric["symmetric"], json!({"ipv4": true, "ipv6": true}));
    assert_eq!(json("key random --seed 1"), json("key random --seed 1"));
    assert_ne!(json("key random --seed 1"), json("key random --seed 2"));
    assert_ne!(json("key random"), json("key random"));
    refused("key 6d:5a:6x", "'x' at character 8");
    refused("key 6d:5a", "2 bytes; a key has 8 to 256");
    refused("key microsoft --bytes 52", "length of its own");
    refused("key microsoft --seed 1", "--seed belongs to a random key");
    refused("key random --bytes 5000", "5000 bytes");
}
