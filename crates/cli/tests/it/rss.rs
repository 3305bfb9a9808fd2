//! `rxlane rss`: options reach the hash unit and the table, the output has its form, errors name the culprit.

use crate::run::{self, Command, Ended, Report};
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
    rxlane(&format!("{arguments} --json")).output().ends(0).json()
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
fn options_decide_hash_entry_and_queue() {
    let (ports, addresses) = ("0x51ccc178", "0x323e8fc2");
    for (options, expected) in [
        // Observed on hardware: vectors/rss/observed-82599.csv.
        (
            "--proto udp --queues 16 --hash-fields udp4=sd",
            json!({"hash": addresses, "queue": 2, "hash_type": "ipv4"}),
        ),
        (
            "--proto udp --queues 16 --hash-fields udp4=sdfn",
            json!({"hash": ports, "entry": 120, "queue": 8, "schema": "rxlane.rss-hash/1", "key": MICROSOFT}),
        ),
        (
            "--proto udp --types tcp-ipv4",
            json!({"hash_type": "none", "hash": "0x00000000", "entry": null, "queue": 0}),
        ),
        ("--proto udp --types none --reta 3,2,1,0 --unmatched entry-0", json!({"entry": 0, "queue": 3})),
        ("--types none --unmatched 7", json!({"queue": 7})),
        (
            "--fragment",
            json!({"hash": addresses, "hash_type": "ipv4", "why": "fragments are never hashed with ports"}),
        ),
        (
            "--nic i210",
            json!({"hash": ports, "entry": 120, "queue": 3,
                   "table_from": "in blocks over 4 queues (default of the i210)"}),
        ),
        ("--nic i210 --reta equal:4", json!({"queue": 0, "table_from": "of --reta (equal:4) over 4 queues"})),
        ("--nic i210 --proto udp", json!({"hash": addresses, "hash_type": "ipv4"})),
        (
            "--nic i210+double-vlan",
            json!({"hash_type": "none", "queue": 0, "why": "the parser expects VLAN tags, and there are none"}),
        ),
    ] {
        json(&format!("{FLOW} {options}")).has_of(&options, expected);
    }
    let text = output(&mut rxlane(&format!("{FLOW} --nic i210 --queues 2 --hash-fields udp4=sdfn")));
    for part in [
        "\ndevice     i210: ",
        "(default of the i210, then --hash-fields)\n",
        "\ntable      128 entries in blocks over 2 queues (default of the i210)\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mobile = "hash --src 2001:db8::9 --dst 3ffe:2501:200:3::1 --sport 2794 --dport 1766";
    for device in ["--types tcp-ipv6-ex", "--nic i210"] {
        json(&format!("{mobile} {device} --home-address 3ffe:2501:200:1fff::7"))
            .has_of(&device, json!({"hash": "0x40207d3d", "hash_type": "tcp-ipv6-ex"}));
        assert_ne!(json(&format!("{mobile} {device}"))["hash"], "0x40207d3d", "{device}");
    }
}

#[test]
fn a_printed_table_brings_its_key_and_is_read_again() {
    let table = output(&mut rxlane("table equal 3 --entries 24"));
    let table = table.split("\n\n").next().unwrap();
    let printed = format!("{table}\nRSS hash key:\n{}\n", ["6d:5a"; 20].join(":"));
    let answer = rxlane(&format!("{FLOW} --reta - --json")).write_stdin(printed).output().ends(0).json();
    answer.has(json!({"hash": "0x9fcc9fcc", "entries": 24, "entry": 0x9fcc_9fcc_u32 % 24}));
    let printed = output(&mut rxlane("table equal 16 --entry-bits 4"));
    assert_eq!(output(rxlane("table parse").write_stdin(printed.clone())), printed);
    rxlane("table parse --queues 63").write_stdin(printed).output().says("16-62  no entry names them");
}

/// The same flow lands on the same queue whether a command queries it or a capture has it.
#[test]
fn explain_and_hash_agree() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.pcap");
    let file = file.to_str().unwrap();
    for (nic, ip, proto) in
        [("i210", 4, "tcp"), ("i210", 6, "tcp"), ("i210", 6, "udp"), ("x710", 4, "udp"), ("82599", 6, "tcp")]
    {
        let generate = "gen --encap none --flows 1 --frames 20 --control 0 --fragments 0";
        let generate = format!("{generate} --ip {ip} --proto {proto} -o {file}");
        run::rxlane().args(generate.split(' ')).output().ends(0);
        let report = run::rxlane().args(["explain", file, "--nic", nic, "--json"]).output().ends(0).json();
        let flow = &report["top_flows"][0];
        let ends: Vec<std::net::SocketAddr> =
            flow["flow"].as_str().unwrap().split(" > ").map(|end| end.parse().unwrap()).collect();
        let [source, destination] = ends.as_slice() else { panic!("{flow}") };
        let (src, sport, dst, dport) = (source.ip(), source.port(), destination.ip(), destination.port());
        json(&format!(
            "hash --nic {nic} --proto {proto} --src {src} --sport {sport} --dst {dst} --dport {dport}"
        ))
        .has_of(flow, json!({"queue": flow["queue"], "hash_type": report["stacks"][0]["hash_type"]}));
    }
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
    json("table explicit 0 0 1 3 --queues 4").has(json!({
        "schema": "rxlane.rss-table/1", "queues": 4, "entries": [0, 0, 1, 3], "shares": [2, 1, 0, 1],
        "imbalance": {"max_over_mean": 2.0},
    }));
}

#[test]
fn keys() {
    let text = output(&mut rxlane("key microsoft"));
    assert_eq!(text.lines().next(), Some(MICROSOFT));
    assert!(text.contains("inputs of 36 bytes (288 bits)") && text.contains("symmetric  no"), "{text}");
    assert!(output(&mut rxlane("key symmetric --bytes 8")).contains("symmetric  unknown"));
    json("key symmetric --bytes 52")
        .has(json!({"octets": 52, "input_bits": 384, "symmetric": {"ipv4": true, "ipv6": true}}));
    assert_eq!(json("key random --seed 1"), json("key random --seed 1"));
    assert_ne!(json("key random --seed 1"), json("key random --seed 2"));
    assert_ne!(json("key random"), json("key random"));
    // No device has a key of zeros; by hand it may be computed with.
    json(&format!("{FLOW} --key {}", ["00"; 40].join(":"))).has(json!({"hash": "0x00000000"}));
}

/// Exit 2 and a sentence; what the library says of a wrong word is tried once for each option.
#[test]
fn what_is_wrong_is_refused_with_a_sentence() {
    let cases = [
        ("--home-address ::1", "belong to IPv6"),
        ("--key 6d:5x", "'x' at character 5"),
        ("--key 0102030405060708", "need a key of 40"),
        ("--hash-fields udp4=sdx", "'x' at position 3"),
        ("--hash-fields tcp4=vsd", "only addresses and ports"),
        ("--types tcp4", "\"tcp4\" is no hash type"),
        ("--reta 0,1,x", "\"x\" is no queue number"),
        ("--reta /nowhere/at-all", "/nowhere/at-all"),
        ("--reta equal:9 --queues 4", "equal:9 names 9 queues, and --queues says 4"),
        ("--nic i210 --reta equal:9", "equal:9 names 9 queues, the i210 has 4 in use"),
        ("--nic i21o", "no NIC is called `i21o`"),
        ("--nic virtio-net", "no indirection table"),
        ("--nic i219", "one receive queue"),
        ("--nic i210 --types ipv4", "cannot be used with"),
        ("--queues 0", "equal 0 leaves no queue"),
        ("--table-size 0", "0 entries"),
    ];
    let of_flow = cases.map(|(options, sentence)| (format!("{FLOW} {options}"), sentence));
    let others = [
        ("hash --src 1.2.3.4 --dst ::1 --proto icmp", "different IP versions"),
        ("hash --src 1.2.3.4 --dst 1.2.3.5", "give --sport and --dport"),
        ("hash --src 1.2.3.4 --dst 1.2.3.5 --sport 1 --dport 2 --proto icmp", "not to icmp"),
        ("hash --src 1.2.3.4 --dst 1.2.3.5 --proto xyz", "neither a protocol number"),
        ("table equal 9 --entry-bits 3", "queue 8 in entry 8 does not fit into 3 bits"),
        ("table equal 0", "at least 1"),
        ("table weight 0 0", "above zero"),
        ("table weight 100 100", "add up to 200"),
        ("table explicit 0 1 --entries 4", "2 entries given, the table has 4"),
        ("table equal 8 --queues 4", "names queue 4, and there are 4"),
        ("table parse", "output of ethtool -x"),
        ("key 6d:5a:6x", "'x' at character 8"),
        ("key 6d:5a", "2 bytes; a key has 8 to 256"),
        ("key microsoft --bytes 52", "length of its own"),
        ("key microsoft --seed 1", "--seed belongs to a random key"),
        ("key random --bytes 5000", "5000 bytes"),
    ];
    let others = others.map(|(arguments, sentence)| (arguments.to_owned(), sentence));
    for (arguments, sentence) in of_flow.into_iter().chain(others) {
        let output = rxlane(&arguments).write_stdin("nothing of the kind\n").output();
        assert!(output.is(&arguments, 2, sentence).stdout.is_empty(), "{arguments}");
    }
}
