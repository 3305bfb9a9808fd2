//! `rxlane fastpath`: one that is up and bypassed, or works, and a router that could have one.

use crate::findings::*;
use crate::flowtable::{FULL, IDLE, NONE, ROUTER};

const BYPASSED: &str = "fastpath-bypassed";
const OFF: &str = "flowtable-off";
const RPS: &str = "rps-off";

/// The status of a fast path on `lan0` and `wan0`.
fn status(fast: u64, slow: &str, refusals: &str) -> String {
    format!(
        "$ rxlane fastpath status --json\n{{\"schema\":\"rxlane.fastpath/1\",\"ports\":[\"lan0\",\"wan0\"],\"mode\":\"native\",\
         \"packets\":{{\"fast\":{fast},\"slow\":{{{slow}}},\"fast_share\":0.5}},\"flows\":2,\"flows_most\":64,\
         \"refusals\":{{{refusals}}},\"seconds\":25.0,\"pid\":7}}\n"
    )
}

/// Two ports of a driver with native XDP, and PPPoE in a VLAN on one of them.
fn ports(kernel: &str, qdisc: &str, driver_name: &str) -> String {
    let mut text = format!("$ uname -sr\nLinux {kernel}\n$ ip -d link\n");
    for (number, name, kind) in [
        (2, "lan0", ""),
        (3, "wan0", ""),
        (4, "wan0.7@wan0", "vlan protocol 802.1Q id 7 <REORDER_HDR> "),
        (5, "ppp0", "ppp "),
    ] {
        let layer = if name == "ppp0" { "ppp " } else { "ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff" };
        let qdisc = if name == "ppp0" { qdisc } else { "mq" };
        text.push_str(&format!(
            "{number}: {name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc {qdisc} state UP mode DEFAULT group default qlen 1000\n    \
             link/{layer} promiscuity 0 minmtu 68 maxmtu 9216 \n    {kind}addrgenmode eui64 numtxqueues 4 numrxqueues 4\n"
        ));
    }
    text.push_str(
        "$ cat /proc/net/pppoe\nId       Address              Device\n00000100 02:00:00:00:00:09    wan0.7\n",
    );
    text + &driver("lan0", driver_name) + &driver("wan0", driver_name)
}

#[test]
fn one_that_works_or_is_idle_or_is_not_there_is_no_finding() {
    all_answer(&[
        (&status(900_000, "\"no-entry\":100000", "\"local\":9"), BYPASSED, CLEAR, &[]),
        (&status(12, "\"no-entry\":400", ""), BYPASSED, CLEAR, &[]),
        ("$ nproc\n4\n", BYPASSED, NOT_HERE, &[]),
        (
            "$ rxlane fastpath status --json\n# not read: the process 7 of the fast path is stopped\n",
            BYPASSED,
            LACKS,
            &["rxlane fastpath status --json"],
        ),
    ]);
}

#[test]
fn what_goes_by_the_kernel_has_its_reason_and_what_helps() {
    let entry =
        |refusals: &str| format!("{}{FULL}", status(40, "\"no-entry\":90000,\"tcp-flags\":9", refusals));
    let left =
        |reason: &str| format!("{}{FULL}", status(40, &format!("\"{reason}\":90000,\"no-entry\":9"), ""));
    all_answer(&[
        (
            &entry("\"no-port\":30"),
            BYPASSED,
            LIMITS,
            &[
                "fast: 40, all: 90049",
                "reason: \"no-entry\"",
                "MorePorts { known: false }",
                "\"no-port\": 30",
            ],
        ),
        (
            &entry("\"full\":90,\"local\":2"),
            BYPASSED,
            LIMITS,
            &["up lan0 wan0 --flows 128 --daemon", "rxlane fastpath down"],
        ),
        (&entry("\"helper\":7"), BYPASSED, LIMITS, &["NoHelper"]),
        (&entry("\"mark\":7"), BYPASSED, LIMITS, &["SavedMark"]),
        (&entry("\"vlan-filtering\":7"), BYPASSED, LIMITS, &["NoVlanFiltering"]),
        // Without a flowtable it is a zone of conntrack.
        (&entry("\"elsewhere\":7"), BYPASSED, CALM, &["=remedies: 0"]),
        // Connections are counted, and not what each sends.
        (&entry("\"mark\":7,\"local\":7"), BYPASSED, MAYBE, &["reason: \"local\"", "SavedMark"]),
        (&entry("\"local\":700"), BYPASSED, CALM, &["=remedies: 0"]),
        (&entry("\"interface\":3"), BYPASSED, CALM, &["=remedies: 0"]),
        (&entry(""), BYPASSED, HINT, &["NoneRefused"]),
        (&left("daemon-silent"), BYPASSED, LIMITS, &["Restart", "rxlane fastpath up lan0 wan0 --daemon"]),
        (&left("too-long"), BYPASSED, LIMITS, &["ShorterPackets", "size set rt mtu", "!NoneRefused"]),
        (&left("checksum"), BYPASSED, LIMITS, &["CompleteChecksums"]),
        (&left("fragment"), BYPASSED, CALM, &["=remedies: 0"]),
        // Also while no CPU is the limit: who brings one up wants it to forward.
        (&format!("{}{IDLE}", status(40, "\"too-long\":90000", "")), BYPASSED, LIMITS, &["ShorterPackets"]),
    ]);
}

#[test]
fn what_is_missing_is_named() {
    let text = status(40, "\"no-entry\":90000", "\"no-port\":30").replace("\"lan0\",", "");
    let text = format!("{ROUTER}{}{text}{FULL}", ports("6.12.9", "mq", "igb"));
    answers(&text, BYPASSED, LIMITS, &["rxlane fastpath up wan0 lan0 --daemon"]);
    let elsewhere = status(40, "\"no-entry\":90000", "\"elsewhere\":30");
    let own = "$ nft list ruleset\ntable inet rxlane {\n\tflowtable fast {\n\t\thook ingress priority filter\n\t\tdevices = { lan0, wan0 }\n\t}\n}\n";
    answers(&format!("{elsewhere}{own}{FULL}"), BYPASSED, LIMITS, &["nft 'delete table inet rxlane'"]);
    let uci = "$ uci get firewall.@defaults[0].flow_offloading\n1\n";
    answers(&format!("{elsewhere}{uci}{FULL}"), BYPASSED, LIMITS, &["flow_offloading=0", "firewall restart"]);
    let other = own.replace("inet rxlane", "inet fw");
    answers(&format!("{elsewhere}{other}{FULL}"), BYPASSED, LIMITS, &["NoFlowtable", "=Linux: "]);
}

/// Between two samples, and not since it is up.
#[test]
fn two_samples_say_what_is_so_now() {
    let sample = |number: u32, fast: u64, slow: &str| {
        format!("# sample {number} at {}.0\n{}", 10 * number, status(fast, slow, "\"helper\":3"))
    };
    let begin = "# rxlane bundle 1\n";
    let now_fast = sample(1, 10, "\"no-entry\":900000") + &sample(2, 90_010, "\"no-entry\":900100");
    answers(&format!("{begin}{now_fast}"), BYPASSED, CLEAR, &[]);
    let now_slow = sample(1, 900_000, "\"ttl\":1") + &sample(2, 900_100, "\"ttl\":1,\"no-entry\":5000");
    answers(
        &format!("{begin}{now_slow}"),
        BYPASSED,
        LIMITS,
        &["fast: 100, all: 5100, since: Sample", "NoHelper"],
    );
}

#[test]
fn a_router_that_can_have_one_is_offered_it() {
    let router = |kernel: &str, qdisc: &str, driver: &str| {
        format!("{ROUTER}{}{NONE}{FULL}", ports(kernel, qdisc, driver))
    };
    let up = "rxlane: rxlane fastpath check lan0 wan0 && rxlane fastpath up lan0 wan0 --daemon";
    let first = "offers Fast(Up { measured: true })";
    all_answer(&[
        (
            &router("6.12.9", "fq_codel", "igb"),
            OFF,
            LIMITS,
            &[&format!("={up}"), first, "nft 'add flowtable"],
        ),
        // What it would send past.
        (
            &router("6.12.9", "cake", "igb"),
            OFF,
            LIMITS,
            &["Shaped { interface: \"ppp0\", qdisc: \"cake\" }", "=rxlane: ", "cake"],
        ),
        // No XDP, none that is known, too old, and a kernel that joins what PPPoE carries.
        (&router("6.12.9", "mq", "e1000e"), OFF, LIMITS, &["=rxlane: ", "!Shaped"]),
        (&router("6.12.9", "mq", "unheard_of"), OFF, LIMITS, &["=rxlane: "]),
        (&router("5.10.0", "mq", "igb"), OFF, LIMITS, &["=rxlane: "]),
        (&router("7.3.4", "mq", "igb"), OFF, LIMITS, &["=rxlane: "]),
        (
            &format!("{}$ lscpu\nArchitecture: mips64\n", router("6.12.9", "mq", "igb")),
            OFF,
            LIMITS,
            &["=rxlane: "],
        ),
    ]);
    // Which of several sessions is whose the kernel does not say.
    let session = "00000100 02:00:00:00:00:09    wan0.7\n";
    let sessions = router("6.12.9", "mq", "igb")
        .replace(session, &format!("{session}00000101 02:00:00:00:00:09    wan0.7\n"));
    answers(&sessions, OFF, LIMITS, &["=rxlane: "]);
    // Another program is there.
    let taken = router("6.12.9", "mq", "igb").replacen("mtu 1500 qdisc", "mtu 1500 xdp qdisc", 1);
    answers(&taken, OFF, LIMITS, &["=rxlane: "]);
    // Without PPPoE it was not measured: behind what was.
    let plain = router("6.12.9", "mq", "igb");
    let plain = plain.replace("ppp0: <BROADCAST,MULTICAST,UP,LOWER_UP>", "ppp0: <BROADCAST,MULTICAST>");
    let (before, after) = plain.split_once("$ cat /proc/net/pppoe").expect("a listing");
    let after = after.split_once("$ ethtool").expect("drivers").1;
    let before = before.split_once("5: ppp0").expect("a session").0;
    let plain = format!("{before}$ ethtool{after}");
    answers(&plain, OFF, LIMITS, &[&format!("={up}"), "offers Flow(Nft { known: true })"]);
}

#[test]
fn where_one_works_nothing_else_is_offered() {
    let machine = |fast: u64| {
        let slow = "\"no-entry\":10000";
        format!(
            "{ROUTER}{}{NONE}{FULL}{}$ cat /sys/class/net/wan0/queues/rx-0/rps_cpus\n0\n{}{}{}",
            ports("6.12.9", "mq", "igb"),
            status(fast, slow, "\"helper\":30"),
            statistics("lan0", &[("rx_queue_0_packets", 5_000_000), ("rx_queue_1_packets", 5_000_000)]),
            statistics("wan0", &[("rx_queue_0_packets", 9_000_000), ("rx_queue_1_packets", 3)]),
            vectors([(128, [9_000_000, 0, 0, 0], "wan0-TxRx-0"), (129, [0, 3, 0, 0], "wan0-TxRx-1")]),
        )
    };
    all_answer(&[
        (&machine(190_000), OFF, CLEAR, &[]),
        (&machine(190_000), RPS, CLEAR, &[]),
        // Half of it is not all.
        (&machine(10_000), OFF, CLEAR, &[]),
        (&machine(10_000), RPS, GRAVE, &["rps_cpus"]),
        // One that does nothing is no reason to leave the rest as it is; another one is not offered.
        (&machine(10), OFF, LIMITS, &["=rxlane: ", "nft 'add flowtable"]),
        (&machine(10), RPS, GRAVE, &["rps_cpus"]),
        // Its program is where that of steering would be.
        (&machine(10), "one-queue-hot", GRAVE, &["rps_cpus", "=rxlane: "]),
    ]);
    let busy = one(&machine(190_000), "one-queue-hot");
    states(&busy, "Forwards");
    assert!(busy.remedies.is_empty(), "{busy:#?}");
}
