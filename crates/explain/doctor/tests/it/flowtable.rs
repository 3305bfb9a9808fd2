//! Rules on nftables' flowtables: a router without one, wrong devices, connections that stay out, hardware that is not used.

use crate::findings::*;
use rxlane_doctor::facts::{Bypass, Fact, FlowFact, LookedUp};
use rxlane_doctor::finding::Finding;

const OFF: &str = "flowtable-off";
const DEVICES: &str = "flowtable-devices";
const BYPASSED: &str = "flowtable-bypassed";
const HARDWARE: &str = "hw-offload-off";

/// A full CPU of four, by procps' top.
pub const FULL: &str = "$ top -b -n 1\n%Cpu0  :  0.0 us,  1.0 sy,  0.0 ni,  2.0 id,  0.0 wa,  0.0 hi, 97.0 si,  0.0 st\n\
                    %Cpu1  :  1.0 us,  1.0 sy,  0.0 ni, 96.0 id,  0.0 wa,  0.0 hi,  2.0 si,  0.0 st\n";
pub const IDLE: &str = "$ top -b -n 1\n%Cpu0  :  0.0 us,  1.0 sy,  0.0 ni, 92.0 id,  0.0 wa,  0.0 hi,  7.0 si,  0.0 st\n\
                    %Cpu1  :  1.0 us,  1.0 sy,  0.0 ni, 96.0 id,  0.0 wa,  0.0 hi,  2.0 si,  0.0 st\n";
pub const ROUTER: &str = "$ sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 1\n";
pub const NONE: &str = "$ nft list flowtables\ntable inet filter {\n}\n$ nproc\n4\n";

/// A session over `wan` and a bridge of two ports, as iproute2 shows them.
fn links(kernel: &str) -> String {
    let mut text = format!("$ uname -sr\nLinux {kernel}\n$ ip -d link\n");
    for (number, name, more) in [
        (2, "wan", ""),
        (3, "lan1", " master br-lan"),
        (4, "lan2", " master br-lan"),
        (5, "br-lan", ""),
        (6, "wan.7@wan", ""),
        (7, "ppp0", ""),
    ] {
        let kind = match name {
            "br-lan" => "bridge forward_delay 1500 vlan_filtering 0 vlan_protocol 802.1Q ",
            "wan.7@wan" => "vlan protocol 802.1Q id 7 <REORDER_HDR> ",
            "ppp0" => "ppp ",
            _ => "",
        };
        let layer = if name == "ppp0" { "ppp " } else { "ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff" };
        text.push_str(&format!(
            "{number}: {name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq{more} state UP mode DEFAULT group default qlen 1000\n    \
             link/{layer} promiscuity 0 minmtu 68 maxmtu 9216 \n    {kind}addrgenmode eui64 numtxqueues 4 numrxqueues 4\n"
        ));
    }
    text + "$ cat /proc/net/pppoe\nId       Address              Device\n00000100 02:00:00:00:00:09    wan.7\n"
}

/// A listing with these devices, in which `br-lan` and `ppp0` are routed.
fn ruleset(devices: &str, rule: &str) -> String {
    format!(
        "$ nft list ruleset\ntable inet filter {{\n\tflowtable f {{\n\t\thook ingress priority filter\n\t\tdevices = {{ {devices} }}\n\t}}\n\
         \tchain forward {{\n\t\ttype filter hook forward priority filter; policy drop;\n\t\t{rule}\n\
         \t\tiifname \"br-lan\" oifname \"ppp0\" accept\n\t}}\n}}\n"
    )
}

const ADD: &str = "meta l4proto { tcp, udp } flow add @f";

fn facts(finding: &Finding) -> Vec<&FlowFact> {
    let flow = |fact: &'_ Fact| matches!(fact, Fact::Flow(_));
    let facts = finding.facts.iter().filter(|fact| flow(fact));
    facts.filter_map(|fact| if let Fact::Flow(fact) = fact { Some(fact) } else { None }).collect()
}

#[test]
fn a_router_with_a_full_cpu_and_no_flowtable() {
    let linux = format!("{}{ROUTER}{NONE}{FULL}", links("6.12.9"));
    let finding = weighed(&linux, OFF, LIMITS);
    quotes(&finding, "net.ipv4.ip_forward = 1");
    quotes(&finding, "2.0 id");
    let commands = &finding.remedies[0].commands;
    assert_eq!(
        commands[1],
        "nft 'add flowtable inet rxlane fast { hook ingress priority filter; devices = { lan1, lan2, wan }; }'"
    );
    assert!(commands[2].contains("priority filter + 1"), "{commands:?}");
    // OpenWrt's own words come first.
    for openwrt in [
        "# uci show firewall\nfirewall.@defaults[0]=defaults\nfirewall.@defaults[0].input='REJECT'\n",
        "config defaults\n\toption flow_offloading '0'\n\noption x y\n",
        "$ uci show firewall.@defaults[0]\nfirewall.cfg01e63d=defaults\nfirewall.cfg01e63d.flow_offloading='0'\n",
    ] {
        let finding = weighed(&format!("{openwrt}{FULL}"), OFF, LIMITS);
        assert_eq!(finding.remedies[0].commands[0], "uci set firewall.@defaults[0].flow_offloading=1");
        assert_eq!(finding.remedies.len(), 2, "{finding:#?}");
    }
    let thread = "$ top -b -n 1\n  PID USER %CPU COMMAND\n   12 root 99.7 ksoftirqd/0\n";
    let json = "$ nft -j list ruleset\n{\"nftables\": [{\"metainfo\": {\"version\": \"1.0.2\"}}]}\n";
    answers(&format!("{ROUTER}{json}{thread}"), OFF, LIMITS, &["devices = { LAN, WAN }"]);
    all_answer(&[
        (&format!("{NONE}{FULL}"), OFF, MAYBE, &["ForwardsUnknown"]),
        (&format!("{ROUTER}{NONE}{IDLE}"), OFF, CLEAR, &[]),
        (&format!("{ROUTER}{}{FULL}", ruleset("lan1, wan", ADD)), OFF, CLEAR, &[]),
        (&format!("$ uci get firewall.@defaults[0].flow_offloading\n1\n{FULL}"), OFF, CLEAR, &[]),
        // firewall3 has it in iptables.
        (
            &format!("{ROUTER}{NONE}$ uci get firewall.@defaults[0].flow_offloading\non\n{FULL}"),
            OFF,
            CLEAR,
            &[],
        ),
        // Errors that went elsewhere, a family, what is not whole.
        (&format!("{ROUTER}$ nft list flowtables 2>/dev/null\n{FULL}"), OFF, LACKS, &["nft list flowtables"]),
        (&format!("{ROUTER}$ nft list ruleset inet\ntable inet a {{\n}}\n{FULL}"), OFF, LACKS, &[]),
        (
            &format!(
                "{ROUTER}$ nft list ruleset\ntable inet a {{\n}}\nnetlink: Error: Permission denied\n{FULL}"
            ),
            OFF,
            LACKS,
            &[],
        ),
        (&format!("$ sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 0\n{NONE}{FULL}"), OFF, NOT_HERE, &[]),
        (&format!("{ROUTER}{FULL}"), OFF, LACKS, &["nft list flowtables"]),
        (&format!("{ROUTER}{NONE}"), OFF, LACKS, &["mpstat -P ALL 1 1"]),
        (FULL, OFF, LACKS, &["sysctl net.ipv4.ip_forward"]),
    ]);
}

#[test]
fn devices_are_those_at_which_the_kernel_looks() {
    let judged = |kernel: &str, devices: &str| format!("{}{}", links(kernel), ruleset(devices, ADD));
    let physical = "lan1, lan2, wan";
    all_answer(&[
        (&judged("6.12.9", physical), DEVICES, CLEAR, &[]),
        (&judged("6.1.90-1-amd64", "lan1, lan2, wan, ppp0"), DEVICES, CLEAR, &[]),
        (&judged("5.4.0", "br-lan, ppp0"), DEVICES, CLEAR, &[]),
        (&judged("5.15.137", "lan1, lan2, ppp0"), DEVICES, CLEAR, &[]),
        (&judged("6.12.9", "br-lan, wan"), DEVICES, CLEAR, &[]),
        (
            &judged("6.12.9", "lan1, wan"),
            DEVICES,
            LIMITS,
            &["LeavesOut", "add flowtable inet filter f", "{ lan2 }"],
        ),
        (&judged("6.12.9", "lan1, lan2"), DEVICES, LIMITS, &["LeavesOut", "{ wan }"]),
        (&judged("6.12.9", "lan1, lan2, ppp0"), DEVICES, CALM, &["Below", "{ wan }"]),
        (&judged("5.4.0", "br-lan, wan"), DEVICES, LIMITS, &["TooOld", "{ ppp0 }"]),
        (&judged("6.1.87", physical), DEVICES, LIMITS, &["MissesPppoe", "delete flowtable", "{ ppp0 }"]),
        (&judged("6.7.12", physical), DEVICES, LIMITS, &["MissesPppoe"]),
    ]);
    let finding = one(&judged("6.1.87", physical), DEVICES);
    let [FlowFact::OtherDevice { named, needed, why, .. }] = facts(&finding)[..] else {
        panic!("{finding:#?}")
    };
    assert_eq!((&**named, &**needed, *why), ("wan", "ppp0", LookedUp::MissesPppoe));
    // The flowtable alone, of which nobody knows what stands on what; and none at all.
    let alone = "flowtable ft {\n\thook ingress priority filter\n\tdevices = { eth1, ppp0 }\n}\n";
    let below_unknown = judged("6.12.9", physical);
    let below_unknown = below_unknown.replace("00000100 02:00:00:00:00:09    wan.7\n", "");
    all_answer(&[
        (&below_unknown, DEVICES, LACKS, &["cat /proc/net/pppoe"]),
        (alone, DEVICES, LACKS, &["ip -d link"]),
        ("$ nproc\n4\n", DEVICES, LACKS, &["nft list flowtables"]),
        (NONE, DEVICES, NOT_HERE, &[]),
    ]);
}

/// Ports without an address, by which nothing is routed, and containers, whose interfaces come and go.
#[test]
fn a_flowtable_names_ports_that_forward() {
    let one = |number: u32, name: &str, more: &str, lines: &str| {
        format!(
            "{number}: {name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq{more} state UP group default qlen 1000\n    \
             link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n{lines}"
        )
    };
    let address = |name: &str| format!("    inet 192.0.2.{}/24 scope global {name}\n", name.len());
    let local = "    inet6 fe80::1/64 scope link \n";
    let links = |command: &str, lines: &dyn Fn(&str) -> String| {
        let mut text = format!("$ uname -sr\nLinux 6.12.9\n$ {command}\n");
        for (number, name, more) in [
            (2, "enp1s0", ""),
            (3, "enp2s0", " master br0"),
            (4, "enp3s0", ""),
            (5, "br0", ""),
            (6, "docker0", ""),
            (7, "veth1a2b3c4@if2", " master docker0"),
        ] {
            let mut all = lines(name);
            all += match name {
                "br0" | "docker0" => "    bridge forward_delay 1500 \n",
                "veth1a2b3c4@if2" => "    veth \n",
                _ => "",
            };
            text += &one(number, name, more, &all);
        }
        text
    };
    let none = |_: &str| String::new();
    let of_routers = |name: &str| match name {
        "enp1s0" | "br0" | "docker0" => address(name),
        _ => local.to_owned(),
    };
    let session = "8: ppp0: <POINTOPOINT,UP,LOWER_UP> mtu 1492 state UNKNOWN\n    link/ppp \n    inet 203.0.113.9 peer 203.0.113.1/32 scope global ppp0\n";
    let carrier =
        "$ cat /proc/net/pppoe\nId       Address              Device\n00000100 02:00:00:00:00:09    enp3s0\n";
    let named = |text: &str| format!("{ROUTER}{text}{NONE}{FULL}");
    all_answer(&[
        (&named(&links("ip -d link", &none)), OFF, LIMITS, &["devices = { enp1s0, enp2s0, enp3s0 }"]),
        (&named(&links("ip -d addr", &of_routers)), OFF, LIMITS, &["devices = { enp1s0, enp2s0 }"]),
        (
            &named(
                &links("ip addr", &of_routers)
                    .replace("    veth \n", "")
                    .replace("    bridge forward_delay 1500 \n", ""),
            ),
            OFF,
            LIMITS,
            &["devices = { enp1s0, enp2s0 }"],
        ),
        // What carries a session has no address of its own, and any port may where nobody knows which.
        (
            &named(&format!("{}{session}{carrier}", links("ip -d addr", &of_routers))),
            OFF,
            LIMITS,
            &["devices = { enp1s0, enp2s0, enp3s0 }"],
        ),
        (
            &named(&format!("{}{session}", links("ip -d addr", &of_routers))),
            OFF,
            LIMITS,
            &["devices = { enp1s0, enp2s0, enp3s0 }"],
        ),
    ]);
}

/// The kernel refuses another priority, and takes a flag away that is not repeated; words of nft stand in quotes.
#[test]
fn a_flowtable_keeps_its_priority_and_its_flags() {
    let own = ruleset("lan1", ADD).replace(
        "hook ingress priority filter\n",
        "hook ingress priority filter + 5\n\t\tflags offload\n\t\tcounter\n",
    );
    let text = format!("{}{own}", links("6.12.9"));
    let finding = weighed(&text, DEVICES, LIMITS);
    assert_eq!(
        finding.remedies[0].commands,
        [
            "nft 'add flowtable inet filter f { hook ingress priority filter + 5; devices = { lan2, wan }; flags offload; counter; }'"
        ]
    );
    let json = "$ nft -j list ruleset\n{\"nftables\": [{\"flowtable\": {\"family\": \"inet\", \"name\": \"f\", \"table\": \"filter\", \
                \"handle\": 1, \"hook\": \"ingress\", \"prio\": -5, \"flags\": [\"counter\"], \"dev\": [\"lan1\"]}}]}\n";
    let finding = one(&format!("{ROUTER}{}{json}", links("6.12.9")), DEVICES);
    assert!(finding.remedies[0].commands[0].contains("priority -5; devices = "), "{finding:#?}");
    assert!(finding.remedies[0].commands[0].contains("; counter; }"), "{finding:#?}");
}

/// firewalld's chain at the hook `forward` has the priority filter + 10.
#[test]
fn chains_of_rxlane_come_after_those_of_the_firewall() {
    let firewalld = "$ nft list ruleset\ntable inet firewalld {\n\tchain filter_FORWARD {\n\t\ttype filter hook forward priority filter + 10; \
                     policy accept;\n\t\tct state established,related accept\n\t}\n}\n";
    let finding = one(&format!("{ROUTER}{firewalld}{FULL}"), OFF);
    assert!(finding.remedies[0].commands[2].contains("priority filter + 11"), "{finding:#?}");
}

/// A switch's ports are where the kernel's way down ends.
#[test]
fn a_switch_port_is_named_and_not_the_device_behind_it() {
    let links = "$ uname -sr\nLinux 6.6.86\n$ ip link\n2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1504 qdisc mq state UP\n\
                 3: lan1@eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master br-lan state UP\n\
                 4: lan2@eth0: <NO-CARRIER,BROADCAST,UP> mtu 1500 qdisc noqueue master br-lan state LOWERLAYERDOWN\n\
                 5: wan@eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\n";
    let uci = "$ uci show firewall\nfirewall.@defaults[0]=defaults\n";
    let finding = one(&format!("{links}{uci}{FULL}"), OFF);
    assert!(finding.remedies[1].commands[1].contains("devices = { lan1, wan }"), "{finding:#?}");
}

#[test]
fn connections_that_stay_out_have_their_reason() {
    let counts = |outside: u64, inside: u64, word: &str| {
        format!("$ cat /proc/net/nf_conntrack\n{outside:7} tcp ESTABLISHED{word}\n{inside:7} tcp [OFFLOAD]\n")
    };
    let text = |rule: &str, counted: &str| format!("{ROUTER}{}{counted}", ruleset("lan1, wan", rule));
    let before = format!("ct state established,related accept\n\t\t{ADD}");
    let helped = " helper";
    all_answer(&[
        (
            &text(&before, &counts(800, 0, "")),
            BYPASSED,
            LIMITS,
            &["RuleOrder", "insert rule inet filter forward"],
        ),
        (&text("ct state new flow add @f", &counts(800, 0, "")), BYPASSED, LIMITS, &["OnlyNew"]),
        (&text("meta mark 0x1 flow add @f", &counts(800, 3, "")), BYPASSED, LIMITS, &["NeedsMark"]),
        (&text("meta l4proto udp flow add @f", &counts(800, 3, "")), BYPASSED, LIMITS, &["OnlyProtocols"]),
        (
            &text("counter", &counts(800, 0, "")),
            BYPASSED,
            LIMITS,
            &["NoRule", "add chain inet filter rxlane"],
        ),
        (&text(ADD, &counts(800, 3, helped)), BYPASSED, LIMITS, &["Helper", "=remedies: 1"]),
        (&text(ADD, &counts(800, 3, " mark")), BYPASSED, MAYBE, &["Marked"]),
        (&text(ADD, &counts(800, 0, "")), BYPASSED, MAYBE, &["=remedies: 0"]),
        // Idle ones have left it.
        (&text(ADD, &counts(800, 30, "")), BYPASSED, CLEAR, &[]),
        (&text(&before, &counts(100, 90, "")), BYPASSED, CLEAR, &[]),
        (&text(ADD, &counts(7, 0, "")), BYPASSED, CLEAR, &[]),
        // Connections of the machine itself enter no flowtable.
        (&text(ADD, &counts(800, 0, " own")), BYPASSED, CLEAR, &[]),
        (&text(ADD, ""), BYPASSED, LACKS, &["conntrack -L"]),
        (NONE, BYPASSED, NOT_HERE, &[]),
    ]);
    let bridge = "$ sysctl net.bridge.bridge-nf-call-iptables\nnet.bridge.bridge-nf-call-iptables = 1\n";
    let finding = one(&format!("{}{bridge}", text(ADD, &counts(800, 0, ""))), BYPASSED);
    assert!(facts(&finding).contains(&&FlowFact::Bypass(Bypass::Bridged)), "{finding:#?}");
}

/// The rules alone say that nothing can enter; where they do not, connections do.
#[test]
fn rules_by_which_no_connection_enters() {
    let before = format!("ct state established,related accept\n\t\t{ADD}");
    let map = format!("ct state vmap {{ established : accept, related : accept }}\n\t\t{ADD}");
    let json = "$ nft -j list ruleset\n{\"nftables\": [{\"flowtable\": {\"family\": \"inet\", \"name\": \"f\", \"table\": \"filter\", \
                \"hook\": \"ingress\", \"prio\": 0, \"dev\": [\"lan1\", \"wan\"]}}, {\"chain\": {\"family\": \"inet\", \"table\": \"filter\", \
                \"name\": \"forward\", \"type\": \"filter\", \"hook\": \"forward\", \"prio\": 0, \"policy\": \"drop\"}}]}\n";
    all_answer(&[
        (
            &ruleset("lan1, wan", &before),
            BYPASSED,
            LIMITS,
            &["Unreached", "RuleOrder", "insert rule inet filter forward"],
        ),
        (&ruleset("lan1, wan", &map), BYPASSED, LIMITS, &["RuleOrder"]),
        (&ruleset("lan1, wan", "ct state new flow add @f"), BYPASSED, LIMITS, &["OnlyNew"]),
        (json, BYPASSED, LIMITS, &["NoRule"]),
        (&format!("{}{IDLE}", ruleset("lan1, wan", &before)), BYPASSED, CALM, &["RuleOrder"]),
        (&ruleset("lan1, wan", "meta mark 0x1 flow add @f"), BYPASSED, LACKS, &["conntrack -L"]),
        // Another rule does what one does not.
        (&ruleset("lan1, wan", &format!("{before}\n\t}}\n\tchain b {{\n\t\t{ADD}")), BYPASSED, LACKS, &[]),
    ]);
    let next = one(&ruleset("lan1, wan", ADD), "insufficient-data");
    assert!(format!("{:?}", next.facts).contains("commands: [\"conntrack -L\""), "{next:#?}");
}

/// Docker sets `net.ipv4.ip_forward`, and its rules count what its containers send and receive.
#[test]
fn a_host_of_containers_forwards_next_to_nothing() {
    let docker = |packets: u64| {
        format!(
            "$ nft list ruleset\ntable ip filter {{\n\tchain FORWARD {{\n\t\ttype filter hook forward priority filter; policy drop;\n\
             \t\toifname \"docker0\" ct state related,established counter packets {packets} bytes 91231 accept\n\
             \t\tiifname \"docker0\" oifname != \"docker0\" counter packets 331 bytes 41231 accept\n\t}}\n}}\n{FULL}"
        )
    };
    let jump = "$ nft list ruleset\ntable ip filter {\n\tchain DOCKER-USER {\n\t\tcounter packets 743 bytes 132462 return\n\t}\n\tchain FORWARD {\n\
                \t\ttype filter hook forward priority filter; policy accept;\n\t\tcounter packets 743 bytes 132462 jump DOCKER-USER\n\
                \t\tiifname \"docker0\" accept\n\t}\n}\n";
    let json = "$ nft -j list ruleset\n{\"nftables\": [{\"chain\": {\"family\": \"ip\", \"table\": \"filter\", \"name\": \"FORWARD\", \"type\": \"filter\", \
                \"hook\": \"forward\", \"prio\": 0, \"policy\": \"drop\"}}, {\"rule\": {\"family\": \"ip\", \"table\": \"filter\", \"chain\": \"FORWARD\", \
                \"expr\": [{\"match\": {\"op\": \"==\", \"left\": {\"meta\": {\"key\": \"iifname\"}}, \"right\": \"docker0\"}}, \
                {\"counter\": {\"packets\": 412, \"bytes\": 91231}}, {\"accept\": null}]}}]}\n";
    let uncounted = docker(412).replace(" counter packets 331 bytes 41231", "");
    all_answer(&[
        (&docker(412), OFF, HINT, &["ForwardsLittle { packets: 743 }", "packets 412", "=remedies: 0"]),
        (&format!("{jump}{FULL}"), OFF, HINT, &["ForwardsLittle { packets: 743 }"]),
        (&format!("{json}{FULL}"), OFF, HINT, &["ForwardsLittle { packets: 412 }"]),
        (&docker(899_123_111), OFF, LIMITS, &["!ForwardsLittle"]),
        (&uncounted, OFF, LIMITS, &["!ForwardsLittle"]),
    ]);
}

#[test]
fn hardware_that_could_forward() {
    let mtk = driver("eth0", "mtk_soc_eth");
    let table = |flags: &str| {
        format!(
            "$ nft list flowtables\ntable inet fw4 {{\n\tflowtable ft {{\n\t\thook ingress priority filter\n\t\tdevices = {{ lan1, wan }}\n{flags}\t}}\n}}\n"
        )
    };
    let uci = |hardware: &str| {
        format!(
            "$ uci show firewall\nfirewall.@defaults[0]=defaults\nfirewall.@defaults[0].flow_offloading='1'\n{hardware}"
        )
    };
    let on = "firewall.@defaults[0].flow_offloading_hw='1'\n";
    let soc = "$ cat /proc/interrupts\n           CPU0       CPU1\n 22:  899123111          0  MIPS GIC  10  1e100000.ethernet\n";
    all_answer(&[
        (
            &format!("{mtk}{}", table("")),
            HARDWARE,
            CALM,
            &["uci set firewall.@defaults[0].flow_offloading_hw=1"],
        ),
        // What is on already is not set again.
        (&format!("{mtk}{}{FULL}", uci("")), HARDWARE, LIMITS, &["HardwareOff", "!flow_offloading=1"]),
        (&format!("{mtk}{}", table("\t\tflags offload\n")), HARDWARE, CLEAR, &[]),
        (&format!("{mtk}{}", uci(on)), HARDWARE, CLEAR, &[]),
        (&format!("{}{}", driver("eth0", "igb"), table("")), HARDWARE, NOT_HERE, &[]),
        (&format!("{soc}{}", uci("")), HARDWARE, CALM, &["1e100000.ethernet", "!flow_offloading=1"]),
        (&mtk, HARDWARE, LACKS, &["nft list flowtables"]),
        (&statistics("eth0", &[("rx_packets", 9)]), HARDWARE, LACKS, &["ethtool -i eth0"]),
    ]);
}
