//! What `check` says of machines, from the texts of their tools.

use doctor::pppoe_gro::{Basis, PppoeGro};
use host::text::Reader;
use rxlane_steer::check::{Check, Checked, Known, Request, check};
use rxlane_steer::classes::Choice;
use rxlane_steer::expected::{Expected, expected};
use rxlane_steer::facts::{Level, MtuFits, Tagged, What};
use rxlane_steer::observation::{Observation, Sampled};
use rxlane_steer::recommend::Answer;
use rxlane_steer::ways::Spread;

/// An i350 with four queues, all frames on queue 0, whose CPU has no time left; two readings a second apart.
fn router(driver: &str, pci: &str, mtu: u32, rxvlan: &str, more: &str) -> String {
    let softirq = [(0, 97), (1, 0), (2, 0), (3, 0)];
    let interrupts = |factor: u64| {
        let line = |queue: usize| {
            let counts: Vec<String> = (0..4)
                .map(|cpu| (if cpu == queue && queue == 0 { 9000 * factor } else { 1 }).to_string())
                .collect();
            format!(
                " {}: {} PCI-MSIX-0000:02:00.0 {queue}-edge eth0-TxRx-{queue}",
                128 + queue,
                counts.join(" ")
            )
        };
        let lines: Vec<String> = (0..4).map(line).collect();
        format!("$ cat /proc/interrupts\n     CPU0 CPU1 CPU2 CPU3\n{}\n", lines.join("\n"))
    };
    let stat = |seconds: u64| {
        let line = |(cpu, busy): (u64, u64)| {
            let (busy, idle) = (busy * seconds, (100 - busy) * seconds);
            format!("cpu{cpu} 0 0 0 {idle} 0 0 {busy} 0 0 0")
        };
        let lines: Vec<String> = softirq.into_iter().map(line).collect();
        format!("$ cat /proc/stat\n{}\n", lines.join("\n"))
    };
    let counters = |frames: u64| {
        let queues: Vec<String> = (0..4)
            .map(|queue| format!("     rx_queue_{queue}_packets: {}", if queue == 0 { frames } else { 3 }))
            .collect();
        format!("$ ethtool -S eth0\nNIC statistics:\n     rx_packets: {frames}\n{}\n", queues.join("\n"))
    };
    format!(
        "# rxlane bundle 1\n# system: linux\n# sample 1 at 100.0\n{}{}{}$ uname -sr\nLinux 6.12.9\n$ nproc\n4\n\
         $ ip -d -s link\n2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc mq state UP mode DEFAULT group default qlen 1000\n    \
         link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 9216\n{more}\
         $ ethtool -i eth0\ndriver: {driver}\nbus-info: 0000:02:00.0\n\
         $ lspci -nn\n02:00.0 Ethernet controller [0200]: Some Corporation Device [{pci}]\n\
         $ ethtool -l eth0\nChannel parameters for eth0:\nPre-set maximums:\nCombined:\t4\nCurrent hardware settings:\nCombined:\t4\n\
         $ ethtool -k eth0\nFeatures for eth0:\nrx-vlan-offload: {rxvlan}\nlarge-receive-offload: off [fixed]\n\
         # sample 2 at 101.0\n{}{}{}# end\n",
        interrupts(1),
        stat(1),
        counters(100_000),
        interrupts(2),
        stat(2),
        counters(200_000)
    )
}

fn observation(text: &str) -> Observation {
    let mut reader = Reader::new();
    reader.read("text", text.as_bytes()).expect("a text");
    Observation { snapshot: reader.finish(), traffic: None, sampled: Sampled::NotPermitted }
}

fn request(interface: &str) -> Request {
    Request {
        interface: interface.to_owned(),
        cpus: None,
        generic: false,
        choice: Choice::Unspread,
        disable_rxvlan: false,
    }
}

fn checked(text: &str, request: &Request) -> Checked {
    check(request, &observation(text), &four_cpus()).expect("an answer")
}

fn four_cpus() -> Known {
    Known { online: vec![0, 1, 2, 3], forwards: true, ..Known::default() }
}

fn expectation(text: &str, request: &Request) -> Expected {
    let (observation, known) = (observation(text), four_cpus());
    let checked = check(request, &observation, &known).expect("an answer");
    expected(request, &observation, &known, &checked).expect("an answer").expect("RPS is known at least")
}

fn fact(check: &Check, about: &str) -> (Level, What) {
    let fact = check
        .facts
        .iter()
        .find(|fact| fact.about == about)
        .unwrap_or_else(|| panic!("{about}: {:?}", check.facts));
    (fact.level, fact.what.clone())
}

const VLAN: &str = "3: eth0.35@eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default\n    \
     link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0\n    vlan protocol 802.1Q id 35 <REORDER_HDR>\n";

#[test]
fn a_saturated_queue_of_an_i350_is_explained() {
    let Checked { check, plan, classes, stripping, .. } =
        checked(&router("igb", "8086:1521", 1500, "off", ""), &request("eth0"));
    assert!(check.possible, "{:?}", check.facts);
    assert!(check.frames == Some(100_000) && !check.steered && check.status.is_none());
    assert_eq!((check.driver.as_deref(), check.profile.as_deref()), (Some("igb"), Some("i350")));
    let native = What::Native { driver: Some("igb".to_owned()), native: Some(true), generic: false };
    assert_eq!(fact(&check, "driver"), (Level::Good, native));
    let attaching = fact(&check, "attaching");
    assert!(
        matches!(attaching, (Level::Note, What::Attaching("igb", effect)) if effect.contains("closes and opens"))
    );
    assert_eq!(fact(&check, "gro").0, Level::Note);
    let selected: Vec<&str> = check.classes.iter().filter(|row| row.selected).map(|row| row.class).collect();
    assert_eq!(selected, ["qinq", "pppoe", "mpls"]);
    assert_eq!(classes, 0b11100);
    assert!(stripping.is_empty());
    assert_eq!((check.receiving[0].cpu, check.receiving[0].idle), (0, Some(3.0)));
    assert!(check.receiving[0].share > 0.99);
    let plan = plan.expect("a plan");
    assert!(plan.weights.iter().all(|weight| weight.cpu != 0 || weight.share < 0.25), "{:?}", plan.weights);
    assert_eq!(check.queues[0].cpus, [0]);
    // Four CPUs: what steering gains over RPS is what was measured, and too little.
    assert_eq!(check.recommendation.answer, Answer::Rps, "{:?}", check.recommendation);
    let eight = Known { online: (0..8).collect(), forwards: true, ..Known::default() };
    let text = router("igb", "8086:1521", 1500, "off", "");
    let check =
        rxlane_steer::check::check(&request("eth0"), &observation(&text), &eight).expect("an answer").check;
    assert_eq!(check.recommendation.answer, Answer::Steer, "{:?}", check.recommendation);
}

#[test]
fn the_model_expects_what_the_costs_that_were_counted_allow() {
    let text = router("igb", "8086:1521", 1500, "off", "");
    let found = expectation(&text, &request("eth0"));
    let (rps, steer) = (found.rps.expect("RPS"), found.steer.expect("steering"));
    // 5,070 over 2,090 and over 1,790.
    assert!((2.2..2.6).contains(&rps.times) && (2.6..3.0).contains(&steer.times), "{found:?}");
    // 97 % of a second for 100,000 frames.
    let now = found.packets_per_second.expect("load and frames are known");
    assert!((98_000.0..107_000.0).contains(&now), "{now}");
    assert!((steer.packets_per_second.expect("as well") / now - steer.times).abs() < 1e-6, "{found:?}");
    assert!(found.assumptions.iter().any(|clause| clause.contains("9.70 µs")), "{found:?}");
    assert!(found.assumptions.iter().any(|clause| clause.contains("many and alike")), "{found:?}");
}

#[test]
fn what_was_not_counted_is_unknown_to_the_model() {
    let found = expectation(&router("veth", "8086:1521", 1500, "off", ""), &request("eth0"));
    assert!(found.steer.is_none() && found.rps.is_some(), "{found:?}");
    assert!(found.assumptions.iter().any(|clause| clause.contains("unknown")), "{found:?}");
    let generic = Request { generic: true, ..request("eth0") };
    let found = expectation(&router("igb", "8086:1521", 1500, "off", ""), &generic);
    assert!(found.steer.is_none());
}

#[test]
fn tags_that_would_be_lost_stop_it_unless_they_are_kept() {
    let text = router("igb", "8086:1521", 1500, "on", VLAN);
    let refused = checked(&text, &request("eth0"));
    let tags = |tagged, disable| What::TagsStripped { set: "rxvlan", fixed: false, tagged, disable };
    assert_eq!(fact(&refused.check, "tags"), (Level::Stops, tags(Tagged::Devices, false)));
    assert!(!refused.check.possible && !refused.check.lacks());
    let agreed = checked(&text, &Request { disable_rxvlan: true, ..request("eth0") });
    assert!(agreed.check.possible, "{:?}", agreed.check.facts);
    assert_eq!(agreed.stripping, ["rxvlan"]);
    // Without anything tagged there is nothing to lose, and it is said.
    let untagged = checked(&router("igb", "8086:1521", 1500, "on", ""), &request("eth0"));
    assert!(untagged.check.possible);
    assert_eq!(fact(&untagged.check, "tags"), (Level::Note, tags(Tagged::Unseen, false)));
}

#[test]
fn drivers_that_cannot_are_named_with_the_way_out() {
    let check = checked(&router("e1000e", "8086:10d3", 1500, "off", ""), &request("eth0")).check;
    assert_eq!(fact(&check, "driver").0, Level::Stops);
    assert!(check.lacks() && !check.is_yes());
    let generic = checked(
        &router("e1000e", "8086:10d3", 1500, "off", ""),
        &Request { generic: true, ..request("eth0") },
    )
    .check;
    assert!(generic.possible, "{:?}", generic.facts);
    let jumbo = checked(&router("igc", "8086:15f3", 1508, "off", ""), &request("eth0")).check;
    assert_eq!(fact(&jumbo, "mtu"), (Level::Stops, What::Mtu(1508, MtuFits::UpTo("igc", 1500))));
    let unknown = checked(&router("fancy", "ffff:0001", 1500, "off", ""), &request("eth0")).check;
    assert_eq!(fact(&unknown, "driver").0, Level::Unknown);
    assert_eq!(fact(&unknown, "attaching").0, Level::Unknown);
    assert!(unknown.possible);
}

#[test]
fn what_stands_on_a_device_is_steered_there() {
    let text = router("igb", "8086:1521", 1500, "off", VLAN);
    let check = checked(&text, &request("eth0.35")).check;
    let above = What::Above { ppp: false, below: Some("eth0".to_owned()) };
    assert_eq!(fact(&check, "place"), (Level::Stops, above));
}

#[test]
fn an_old_kernel_stops_steering() {
    let text = router("igb", "8086:1521", 1500, "off", "").replace("Linux 6.12.9", "Linux 5.4.0");
    let check = checked(&text, &request("eth0")).check;
    assert_eq!(fact(&check, "kernel"), (Level::Stops, What::KernelTooOld("5.4.0".to_owned())));
    assert!(check.lacks());
}

/// A session of the kernel, and GRO of the interface; then what shows the kernel.
fn pppoe_router(gro: &str, kernel: &str) -> String {
    let text = router("igb", "8086:1521", 1500, "off", "")
        .replace("rx-vlan-offload: off\n", &format!("rx-vlan-offload: off\ngeneric-receive-offload: {gro}\n"))
        .replace("Linux 6.12.9\n", kernel);
    text.replace(
        "$ nproc\n",
        "$ cat /proc/net/pppoe\nId       Address              Device\n00000D00 (mac)    eth0\n$ nproc\n",
    )
}

const BACKPORTED: &str = "Linux 6.6.93\n$ grep pppoe_ /proc/kallsyms\n00000000 t pppoe_rcv\t[pppoe]\n\
                          00000000 t pppoe_gro_receive\t[pppoe]\n";

#[test]
fn whether_pppoe_is_coalesced_is_a_fact_with_its_source() {
    let release = |coalesces| PppoeGro { coalesces, basis: Basis::Release };
    for (kernel, level, expected) in [
        ("Linux 6.12.9\n", Level::Unknown, release(false)),
        ("Linux 7.3.4+deb13-amd64\n", Level::Good, release(true)),
        (BACKPORTED, Level::Good, PppoeGro { coalesces: true, basis: Basis::Kallsyms }),
    ] {
        let check = checked(&pppoe_router("on", kernel), &request("eth0")).check;
        let facts: Vec<_> = check.facts.iter().filter(|fact| fact.about == "gro").collect();
        let found = facts.iter().find(|fact| fact.what == What::PppoeGro(Some(expected)));
        assert_eq!(found.map(|fact| fact.level), Some(level), "{kernel}: {facts:?}");
    }
    // Without a session of the kernel it has no part in the matter.
    let check = checked(&router("igb", "8086:1521", 1500, "off", ""), &request("eth0")).check;
    assert!(!check.facts.iter().any(|fact| matches!(fact.what, What::PppoeGro(_))));
}

fn without_native(kernel: &str) -> String {
    pppoe_router("on", kernel).replace("igb", "e1000e").replace("8086:1521", "8086:10d3")
}

/// The answer, the way, and the commands, where so many CPUs forward or deliver.
fn way(text: &str, cpus: u32, forwards: bool) -> (Answer, Option<(bool, bool, Spread)>, Vec<String>) {
    let known = Known { online: (0..cpus).collect(), forwards, ..Known::default() };
    let check = check(&request("eth0"), &observation(text), &known).expect("an answer").check;
    let way = check.recommendation.way.map(|way| (way.pppoe_gro, way.flowtable, way.spreading));
    (check.recommendation.answer, way, check.commands)
}

#[test]
fn the_answer_follows_from_what_the_kernel_has() {
    let (old, new) = ("Linux 6.12.9\n", "Linux 7.3.4\n");
    // A router whose kernel does not join what PPPoE carries: the fast path, and without native XDP a flowtable.
    let (answer, _, commands) = way(&pppoe_router("on", old), 4, true);
    let up = ["rxlane fastpath check eth0 LAN", "rxlane fastpath up eth0 LAN --daemon"];
    assert_eq!((answer, commands), (Answer::Fastpath, up.map(str::to_owned).to_vec()));
    let shaped = pppoe_router("on", old).replacen("qdisc mq", "qdisc cake", 1);
    let routers = [new, BACKPORTED].map(|kernel| pppoe_router("on", kernel));
    for router in routers.into_iter().chain([without_native(old), shaped]) {
        let (answer, way, commands) = way(&router, 4, true);
        assert_eq!(answer, Answer::Kernel, "{router}");
        assert!(
            way.is_some_and(|(_, flowtable, spreading)| flowtable && spreading != Spread::Steer),
            "{way:?}"
        );
        assert!(
            commands.iter().any(|command| command.contains("add flowtable inet rxlane fast { hook ingress")),
            "{commands:?}"
        );
    }
    // An end of connections: RPS before, GRO with it or without it since.
    let rps = "echo e > /sys/class/net/eth0/queues/rx-0/rps_cpus";
    assert_eq!(way(&pppoe_router("on", old), 4, false), (Answer::Rps, None, vec![rps.to_owned()]));
    let (answer, found, commands) = way(&pppoe_router("off", new), 2, false);
    assert_eq!((answer, found), (Answer::Kernel, Some((true, false, Spread::Nothing))));
    assert_eq!(commands, ["ethtool -K eth0 gro on"]);
    // It is on already, and two CPUs leave nothing to gain by spreading.
    let (answer, found, commands) = way(&pppoe_router("on", new), 2, false);
    assert_eq!((answer, found), (Answer::Nothing, Some((true, false, Spread::Nothing))));
    assert!(commands.is_empty());
}

#[test]
fn a_flowtable_in_use_is_not_made_again() {
    let rules = |devices: &str, rule: &str| {
        format!(
            "$ nft list ruleset\ntable inet fw4 {{\n\tflowtable ft {{\n\t\thook ingress priority filter\n\t\tdevices = {{ {devices} }}\n\
             \t}}\n\n\tchain forward {{\n\t\ttype filter hook forward priority filter; policy drop;\n\t\t{rule}\n\t}}\n}}\n$ nproc\n"
        )
    };
    let add = "meta l4proto { tcp, udp } flow add @ft";
    // Without native XDP, so that there is no fast path; and one that is in use keeps connections out of that.
    let native = pppoe_router("on", "Linux 6.12.9\n").replace("$ nproc\n", &rules("eth0, eth1", add));
    assert_eq!(way(&native, 4, true).0, Answer::Kernel);
    let text = without_native("Linux 6.12.9\n");
    for (rules, expected) in [
        (rules("\"eth0\", \"eth1\"", add), false),
        (rules("eth0, eth1", add), false),
        // The PPP interface is no device of the hook that matters, and without a rule nothing is put there.
        (rules("\"eth1\", \"ppp0\"", add), true),
        (rules("eth0, eth1", "counter packets 3 bytes 180"), true),
    ] {
        let (answer, _, commands) = way(&text.replace("$ nproc\n", &rules), 4, true);
        assert_eq!(answer, Answer::Kernel, "{rules}");
        assert_eq!(
            commands.iter().any(|command| command.contains("flowtable")),
            expected,
            "{rules}: {commands:?}"
        );
        assert!(commands.iter().any(|command| command.contains("rps_cpus")), "{commands:?}");
    }
}

/// One flow cannot be spread, and the work for it can be less; steering has to be better than the fast path, too.
#[test]
fn the_fast_path_leaves_the_busiest_cpu_a_quarter() {
    let known = |cpus: u32| Known { online: (0..cpus).collect(), forwards: true, ..Known::default() };
    for cpus in [2, 4, 8, 64] {
        let text = pppoe_router("on", "Linux 6.12.9\n");
        let found = check(&request("eth0"), &observation(&text), &known(cpus)).expect("an answer").check;
        let found = found.recommendation;
        let way = found.way.expect("a way");
        assert!(way.fastpath && (way.busiest - 0.24).abs() < 0.001 && way.all == way.busiest, "{way:?}");
        assert_eq!(found.answer, Answer::Fastpath, "{cpus}");
        assert!(found.ways.iter().filter(|way| way.fastpath).count() == 1, "{:?}", found.ways);
    }
}

#[test]
fn threads_that_do_not_coalesce_make_steering_worse() {
    let with = |kernel: &str| {
        let known = Known { online: (0..8).collect(), forwards: false, ..Known::default() };
        let text = pppoe_router("on", kernel);
        let found =
            check(&request("eth0"), &observation(&text), &known).expect("an answer").check.recommendation;
        let steered = found.ways.iter().find(|way| way.pppoe_gro && way.spreading == Spread::Steer);
        (found.answer, steered.expect("steering").busiest)
    };
    let ((_, new), (_, backported)) = (with("Linux 7.3.4\n"), with(BACKPORTED));
    assert!(new < backported, "{new} {backported}");
}
