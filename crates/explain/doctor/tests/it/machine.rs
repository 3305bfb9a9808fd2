//! Rules on the link, FreeBSD's netisr, the IP input queue, PPPoE in user space, stuck interfaces and wrapped counters:
//! the condition, its healthy opposite, and what each says without its inputs.

use crate::findings::*;
use crate::spread::one_each;
use host::System;
use rxlane_doctor::RULES;
use rxlane_doctor::facts::{Fact, Insufficient};
use rxlane_doctor::finding::Severity;
use rxlane_doctor::report::Outcome;
use std::collections::BTreeSet;

/// ethtool 6.1, netlink/settings.c; `partner` and `speed` in Mbit/s.
fn settings(speed: &str, duplex: &str, partner: &str) -> String {
    format!(
        "$ ethtool eth0\nSettings for eth0:\n\tSupported ports: [ TP ]\n\tSupported link modes:   10baseT/Half 10baseT/Full\n\
         \t                        100baseT/Half 100baseT/Full\n\t                        1000baseT/Full\n\
         \tSupports auto-negotiation: Yes\n\tLink partner advertised link modes:  {partner}\n\
         \tLink partner advertised auto-negotiation: Yes\n\tSpeed: {speed}\n\tDuplex: {duplex}\n\
         \tAuto-negotiation: on\n\tLink detected: yes\n"
    )
}

#[test]
fn a_slow_link_is_the_cables_or_the_partners() {
    let id = "link-speed";
    all_answer(&[
        (&settings("100Mb/s", "Full", "100baseT/Full 1000baseT/Full"), id, LIMITS, &["Speed: 100Mb/s"]),
        (&settings("100Mb/s", "Full", "10baseT/Full 100baseT/Full"), id, CALM, &["=remedies: 0"]),
        (&settings("1000Mb/s", "Full", "1000baseT/Full"), id, CLEAR, &[]),
        (&settings("Unknown!", "Unknown! (255)", "Not reported"), id, NOT_HERE, &[]),
    ]);
    quotes(&found(&report(&settings("100Mb/s", "Half", "100baseT/Half")), id)[0], "Duplex: Half");
}

/// Where no tool shows the link, the last message of its driver counts; what it can do, a message before or its profile says.
#[test]
fn a_slow_link_of_the_kernel_log() {
    let id = "link-speed";
    let igb = |words: &str| format!("[   12.1] igb 0000:01:00.0 eth0: igb: eth0 NIC Link is {words}\n");
    let r8169 = |words: &str| format!("[   12.1] r8169 0000:02:00.0 eth0: Link is {words}\n");
    let mtk = |words: &str| {
        format!("[   12.1] mtk_soc_eth 1b100000.ethernet eth0: Link is Up - {words} - flow control off\n")
    };
    let (slow, fast) = (igb("Up 100 Mbps Full Duplex"), igb("Up 1000 Mbps Full Duplex, Flow Control: RX"));
    let flaps = igb("Down").repeat(9);
    let speed = settings("1000Mb/s", "Full", "1000baseT/Full");
    all_answer(&[
        (
            &slow,
            id,
            LIMITS,
            &["SlowLink { mbps: 100, device: 1000 }", "!LinkWentDown", "ethtool -s eth0 autoneg on"],
        ),
        (
            &format!("{fast}{flaps}{slow}"),
            id,
            LIMITS,
            &["LinkWentDown { times: 9 }", "Mbps Full Duplex, Flow"],
        ),
        (&r8169("Up - 100Mbps/Half - flow control off"), id, LIMITS, &["HalfDuplex"]),
        (&format!("{}{}", mtk("1Gbps/Full"), mtk("100Mbps/Full")), id, LIMITS, &["device: 1000"]),
        (&format!("{slow}{fast}"), id, CLEAR, &[]),
        (&format!("{slow}{fast}{flaps}"), id, LACKS, &[]),
        (&mtk("100Mbps/Full"), id, CLEAR, &[]),
        (&format!("{slow}{speed}"), id, CLEAR, &[]),
        // A name that nothing else has any more.
        (&format!("{}{speed}", slow.replace("eth0", "eth7")), id, CLEAR, &[]),
    ]);
}

/// ifconfig(8) of FreeBSD 13 and NetBSD 9.
#[test]
fn bsd_negotiates_with_ifconfig() {
    for (first, media, os) in [
        (
            "igb0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500",
            "<half-duplex>",
            System::FreeBsd,
        ),
        (
            "igb0: flags=0x8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 1500",
            "half-duplex",
            System::NetBsd,
        ),
    ] {
        let text = format!("{first}\n\tmedia: Ethernet autoselect (100baseTX {media})\n\tstatus: active\n");
        let finding = one(&text, "link-speed");
        let [remedy] = &finding.remedies[..] else { panic!("{finding:#?}") };
        assert_eq!(
            (remedy.os, &remedy.commands[..]),
            (os, &["ifconfig igb0 media autoselect".to_owned()][..])
        );
    }
}

#[test]
fn an_interface_without_a_name_has_none_in_commands() {
    let report = report("NIC statistics:\n     rx_packets: 4294967290\n     rx_queue_0_packets: 9\n");
    let lacking: Vec<&String> = report.rules.iter().flat_map(|row| &row.lacks).collect();
    assert!(lacking.iter().any(|command| *command == "ethtool IFACE"), "{lacking:?}");
    assert!(lacking.iter().all(|command| !command.ends_with(' ') && !command.contains("  ")), "{lacking:?}");
}

/// FreeBSD 13, netstat(1) -Q.
fn netstat(threads: u32, policy: &str, bound: &str, drops: u64) -> String {
    format!(
        "$ uname -sr\nFreeBSD 14.0-RELEASE\n$ sysctl hw.ncpu\nhw.ncpu: 4\n$ netstat -Q\nConfiguration:\n\
         Setting                        Current        Limit\nThread count                  {threads:>8}            4\n\
         Default queue limit                256        10240\nDispatch policy               {policy:>8}          n/a\n\
         Threads bound to CPUs         {bound:>8}          n/a\n\nProtocols:\n\
         Name   Proto QLimit Policy Dispatch Flags\nip         1    256   flow  default   ---\n\n\
         Workstreams:\nWSID CPU   Name     Len WMark   Disp'd  HDisp'd   QDrops   Queued  Handled\n   \
         0   0   ip         0   256    53119        0 {drops:>8}    99999   153118\n"
    )
}

const MPD: &str = "$ ps -axo pid,pcpu,comm\n  PID %CPU COMMAND\n 1234  2.0 mpd5\n";

#[test]
fn netisr_limits_where_pppoe_stays_on_one_cpu() {
    let (direct, unbound) = ("netisr-direct", "netisr-unbound");
    let with_pppoe = netstat(1, "direct", "disabled", 0) + MPD;
    let dispatch = one(&with_pppoe, direct);
    assert_eq!(dispatch.severity, Severity::Warning);
    quotes(&dispatch, "Dispatch policy");
    assert_eq!(dispatch.remedies[0].commands[0], "sysctl net.isr.dispatch=deferred");
    let threads = one(&with_pppoe, unbound);
    assert!(threads.remedies[0].commands[0].contains("net.isr.maxthreads"), "{threads:#?}");
    let spread = netstat(4, "deferred", "enabled", 0) + MPD;
    all_answer(&[
        // Without PPPoE it is a remark, and nothing is offered.
        (&netstat(4, "direct", "enabled", 0), direct, CALM, &["=remedies: 0"]),
        (&spread, direct, CLEAR, &[]),
        (&spread, unbound, CLEAR, &[]),
    ]);
}

#[test]
fn queues_processes_interfaces_and_counters() {
    let netbsd = |drops: u64| {
        format!(
            "$ uname -sr\nNetBSD 9.3\n$ sysctl net.inet.ip.ifq\nnet.inet.ip.ifq.len = 0\n\
             net.inet.ip.ifq.maxlen = 256\nnet.inet.ip.ifq.drops = {drops}\n"
        )
    };
    let top = |cpu: &str, name: &str| {
        format!(
            "$ uname -sr\nLinux 6.1.0\n$ top -b -n 1\n    PID USER      %CPU COMMAND\n   1618 root      {cpu} {name}\n"
        )
    };
    let watchdog = "$ dmesg\n[ 12.5] NETDEV WATCHDOG: eth0 (r8169): transmit queue 0 timed out\n";
    let up = "$ dmesg\n[ 1.0] r8169 0000:01:00.0 eth0: Link is Up - 1Gbps/Full - flow control off\n";
    let missed = |missed| statistics("eth0", &[("rx_packets", 5000), ("rx_missed_errors", missed)]);
    let received = |count| statistics("eth0", &[("rx_queue_0_packets", count), ("rx_queue_1_packets", 100)]);
    all_answer(&[
        (&netstat(4, "deferred", "enabled", 77), "input-queue-shallow", LIMITS, &["drops: 77"]),
        (&netbsd(0), "input-queue-shallow", CLEAR, &[]),
        // A process that carries PPPoE is the limit at a saturated CPU. pppd negotiates; frames pass the kernel.
        (&top("99.7", "pppoe"), "user-space-pppoe", GRAVE, &[]),
        (&top("3.0", "pppoe"), "user-space-pppoe", CALM, &[]),
        (&top("99.7", "pppd"), "user-space-pppoe", CLEAR, &[]),
        (watchdog, "transmit-hang", LIMITS, &["=on eth0", "NETDEV WATCHDOG", "times: 1"]),
        (up, "interface-wedged", CLEAR, &[]),
        (&received(1_000), "counter-wrap", LACKS, &[]),
    ]);
    // The driver has reset it: what ends the hangs comes first, and down and up is one line for a device that stays silent.
    let e1000e = "Nov 20 04:11:09 gw kernel: e1000e 0000:00:1f.6 eno1: Detected Hardware Unit Hang:\n";
    let igc =
        "[48219.1] igc 0000:03:00.0 eth1: NETDEV WATCHDOG: CPU: 1: transmit queue 3 timed out 8192 ms\n";
    let by_r8169 = |kernel: &str| format!("{watchdog}# uname -r\n{kernel}\n");
    let restart = |name: &str| format!("=Linux: ip link set dev {name} down && ip link set dev {name} up");
    let divided = |name: &str| {
        format!(
            "Linux: ethtool -K {name} tso off gso off && ip link set dev {name} down && ip link set dev {name} up"
        )
    };
    for (text, first, line) in [
        (e1000e, "NoSegmentation", divided("eno1")),
        (igc, "TransmitCause", restart("eth1").split_off(1)),
        (&by_r8169("4.19.0-27-amd64"), "NoSegmentation", divided("eth0")),
        (&by_r8169("6.1.0-28-amd64"), "TransmitCause", restart("eth0").split_off(1)),
    ] {
        let finding = one(text, "transmit-hang");
        let commands: Vec<&str> =
            finding.remedies.iter().flat_map(|one| &one.commands).map(String::as_str).collect();
        assert_eq!(format!("Linux: {}", commands.join(" && ")), line);
        assert!(commands.last().is_some_and(|last| last.contains("down && ip link")), "{commands:?}");
        offers(&finding, first);
    }
    let twice = |first: &str, second: &str| reports(&[first, second], None);
    let raised = ["new: Some(5000)", "=NetBsd: sysctl -w net.inet.ip.ifq.maxlen=512"];
    answers(&twice(&netbsd(10), &netbsd(5010)), "input-queue-shallow", GRAVE, &raised);
    answers(&twice(&missed(1), &missed(900)), "interface-wedged", GRAVE, &["lost: 899"]);
    // What fell from beyond 2^31 wrapped.
    let wrapped = twice(&received(4_294_967_000), &received(1_000));
    answers(&wrapped, "counter-wrap", CALM, &["rx_queue_0_packets: 1000"]);
    answers(&twice(&received(1_000), &received(2_000)), "counter-wrap", CLEAR, &[]);
}

/// A machine of each system of which next to nothing is known.
const BARE: [&str; 6] = [
    // One busy queue, and PPPoE, of a card that nothing names.
    "$ ethtool -S eth0\n     rx_queue_0_packets: 2000000000\n     rx_queue_1_packets: 0\n",
    "$ uname -sr\nLinux 6.12.9\n$ ethtool -i eth0\ndriver: igb\nbus-info: 0000:01:00.0\n",
    // Stacked devices, of a kernel and a card that nothing names.
    "$ ethtool -g eth0\nRing parameters for eth0:\nCurrent hardware settings:\nRX:\t\t256\n$ cat /proc/net/pppoe\nId       Address              Device\n\
     00000100 00:00:5e:00:53:01        eth0.35\n$ ethtool -i eth0.35\ndriver: 802.1Q VLAN Support\n\
     $ cat /proc/net/vlan/config\nVLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n\
     eth0.35        | 35  | eth0\neth0.35.7      | 7  | eth0.35\n$ ip link\n\
     9: ppp0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> qdisc fq_codel state UNKNOWN\n    link/ppp\n",
    // A fast path that does not answer.
    "$ rxlane fastpath status --json\n# not read: the process 7 of the fast path is stopped\n",
    "$ uname -sr\nFreeBSD 14.0-RELEASE\n$ ifconfig igb0\nigb0: flags=8843<UP,BROADCAST,RUNNING> metric 0 mtu 1500\n",
    "$ uname -sr\nNetBSD 9.3\n$ ifconfig bge0\nbge0: flags=8843<UP,BROADCAST,RUNNING> mtu 1500\n",
];

#[test]
fn every_rule_says_when_it_lacks_its_inputs() {
    let mut insufficient = BTreeSet::new();
    for text in BARE {
        let report = report(text);
        assert_ne!(report.verdict, rxlane_doctor::report::Verdict::Healthy, "{text}");
        let rows = report.rules.iter().filter(|row| row.outcome == Outcome::InsufficientData);
        for row in rows {
            assert!(!row.lacks.is_empty(), "{} does not say what it lacks", row.id);
            insufficient.insert(row.id);
        }
    }
    let silent: Vec<&str> = RULES
        .iter()
        .map(|rule| rule.id)
        .filter(|id| *id != "insufficient-data" && !insufficient.contains(id))
        .collect();
    assert!(silent.is_empty(), "never say that they lack data: {silent:?}");
}

/// Found by hostile pastes: sums that overflowed, and a search over four thousand million MTUs.
#[test]
fn numbers_beyond_all_measure_are_judged_at_once() {
    let counters = format!(
        "$ cat /proc/interrupts\n           CPU0       CPU1\n  30: {0} 0  PCI-MSI 1-edge  eth0-rx-0\n  31: {0} 7  PCI-MSI 2-edge  eth0-rx-1\n\
         $ ethtool -S eth0\n     rx_queue_0_packets: {0}\n     rx_queue_1_packets: {0}\n",
        u64::MAX
    );
    let links = "$ ip -d link\n2: eth0: <UP,LOWER_UP> mtu 1500 qdisc mq state UP\n    link/ether 00:00:5e:00:53:01 minmtu 68 maxmtu 9216\n\
                 3: eth0.7@eth0: <UP,LOWER_UP> mtu 4294967295 qdisc noqueue state UP\n    link/ether 00:00:5e:00:53:01\n    \
                 vlan protocol 802.1Q id 7 <REORDER_HDR>\n$ ethtool -i eth0\ndriver: e1000e\n";
    for text in [counters.as_str(), links] {
        assert!(report(text).findings.iter().all(|finding| !finding.evidence.is_empty()));
    }
}

/// A thread of threaded NAPI in BusyBox's top, of which one word or another may be missing.
#[test]
fn a_thread_that_polls_is_full_or_not() {
    let id = "napi-thread";
    let top = |share: u32| {
        format!(
            "Mem: 70188K used, 179844K free, 19188K shrd, 0K buff, 19188K cached\n\
             CPU:   0% usr  34% sys   0% nic  31% idle   0% io   0% irq  33% sirq\n\
             Load average: 1.78 1.91 1.21 4/90 6172\n  PID  PPID USER     STAT   VSZ %VSZ %CPU COMMAND\n  \
             200     2 root     RW       0   0%  {share}% [napi/mtk_eth-6]\n  552     2 root     SW       0   0%  16% [mt76-tx phy0]\n"
        )
    };
    let four = "           CPU0       CPU1       CPU2       CPU3\n 23:   11584496          0          0          0  MIPS GIC  10  1e100000.ethernet\n";
    let procps = "%Cpu0  :  0.5 us,  1.0 sy,  0.0 ni,  2.0 id,  0.0 wa,  0.0 hi, 96.5 si,  0.0 st\n\
                  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n\
                  200 root      20   0       0      0      0 R  99.7   0.0   2:11.11 napi/eth0-6\n";
    all_answer(&[
        (&(top(25) + four), id, GRAVE, &["napi/mtk_eth-6", "share: Some(100.0)"]),
        (&top(25), id, MAYBE, &["if_cpus: Some(4)"]),
        (&top(16), id, CLEAR, &[]),
        (&(top(16) + four), id, CLEAR, &[]),
        (procps, id, GRAVE, &["napi/eth0-6"]),
        ("       200     2 root     RW       0   0%  25% [napi/mtk_eth-6]\n", id, MAYBE, &["if_cpus"]),
    ]);
}

#[test]
fn a_transmit_ring_that_is_not_emptied() {
    let ring = |state: &str| {
        format!(
            "dev.igc.0.iflib.txq0.ring_state: pidx_head: 1590 pidx_tail: 1590 cidx: 1592 state: {state}\n\
             ping: sendto: No buffer space available\n"
        )
    };
    let id = "transmit-hang";
    all_answer(&[
        (
            &ring("STALLED"),
            id,
            MAYBE,
            &["=on igc0", "queue: \"txq0\"", "=FreeBsd: ifconfig igc0 down && ifconfig igc0 up"],
        ),
        (&ring("IDLE"), id, LACKS, &["dmesg"]),
    ]);
}

#[test]
fn what_a_clouds_host_does_not_let_through() {
    let id = "cloud-allowance";
    let text = |pps: u64| {
        format!(
            "NIC statistics:\n     bw_in_allowance_exceeded: 10\n     pps_allowance_exceeded: {pps}\n     queue_0_rx_cnt: 900000000\n     \
             queue_1_rx_cnt: 910000000\n"
        )
    };
    all_answer(&[
        (&text(48_211_932), id, LIMITS, &["pps_allowance_exceeded", "48211932"]),
        (&text(11), id, CALM, &[]),
        // Little of all frames, and much of a burst.
        (&text(1_471_223), id, MAYBE, &["pps_allowance_exceeded", "1471223"]),
        (&text(0).replace("exceeded: 10", "exceeded: 0"), id, CLEAR, &[]),
    ]);
}

/// A connection that failed is no part of the frames that others received; each counter has a direction of its own.
#[test]
fn connections_and_directions_of_an_allowance() {
    let id = "cloud-allowance";
    let ena = |counters: &[(&str, u64)]| {
        let received = [("queue_0_rx_cnt", 912_341_234), ("queue_1_rx_cnt", 900_341_234)];
        statistics("eth0", &[counters, &received[..]].concat())
    };
    let connections = "conntrack_allowance_exceeded";
    let bare =
        format!("     {connections}: 8812\n     queue_0_rx_cnt: 912341234\n     queue_1_rx_cnt: 900341234\n");
    all_answer(&[
        (&ena(&[(connections, 8812)]), id, LIMITS, &["count: 8812, share: None", "of: Connections"]),
        (&format!("NIC statistics:\n{bare}"), id, LIMITS, &["of: Connections"]),
        (&ena(&[(connections, 3)]), id, CALM, &[]),
        (&ena(&[("linklocal_allowance_exceeded", 912)]), id, LIMITS, &["of: LinkLocal"]),
        (
            &ena(&[
                ("bw_in_allowance_exceeded", 18_126_824),
                ("bw_out_allowance_exceeded", 7),
                ("pps_allowance_exceeded", 3),
            ]),
            id,
            LIMITS,
            &[
                "share: Some(0.00999",
                "bw_out_allowance_exceeded: 7",
                "of: Sent",
                "pps_allowance_exceeded: 3",
                "of: Both",
            ],
        ),
    ]);
    let twice = reports(&[&ena(&[(connections, 8812)]), &ena(&[(connections, 8813)])], None);
    answers(&twice, id, LIMITS, &["count: 1"]);
}

/// FreeBSD's top, as `-P` prints it, of a router that is full, and of one that is not.
#[test]
fn where_all_cpus_are_full_nothing_is_to_be_spread() {
    let id = "cpus-full";
    let cpu = |number: u32, interrupt: f64, idle: f64| {
        format!(
            "CPU {number}:  0.0% user,  0.0% nice,  {:.1}% system, {interrupt:.1}% interrupt,  {idle:.1}% idle\n",
            100.0 - interrupt - idle
        )
    };
    let text = |last: String| cpu(0, 97.3, 0.0) + &cpu(1, 93.3, 0.7) + &cpu(2, 63.8, 7.4) + &last;
    let full = text(cpu(3, 55.0, 11.4));
    all_answer(&[
        (&full, id, GRAVE, &["cpus: Some(4)", "offers LessWork"]),
        (&text(cpu(3, 20.0, 79.0)), id, CLEAR, &[]),
        (&cpu(0, 97.0, 1.0), id, LACKS, &["top -aSP"]),
    ]);
    assert!(report(&full).rules.iter().flat_map(|row| &row.lacks).all(|command| !command.contains("/proc/")));
}

/// Outputs one after the other, without the commands.
#[test]
fn outputs_without_commands_are_not_requested_again() {
    let statistics = "NIC statistics:\n     rx_packets: 5000000\n     rx_queue_0_packets: 1300000\n     \
                      rx_queue_1_packets: 1200000\n     rx_queue_2_packets: 1300000\n     rx_queue_3_packets: 1200000\n";
    let link = |index: u32, name: &str| {
        format!(
            "{index}: {name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n    \
             link/ether 00:11:22:33:44:5{index} brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 9216\n"
        )
    };
    let two = format!("{statistics}{}{}{}", one_each("eth0"), link(2, "eth0"), link(3, "eth1"));
    // Whose counters they are is not known, and the command of the output would say it.
    let finding = one(&two, "insufficient-data");
    let Some(Fact::Insufficient(Insufficient { commands, unnamed, .. })) = finding.facts.first() else {
        panic!("{finding:#?}");
    };
    assert_eq!(unnamed.as_deref(), Some("ethtool -S eth1"));
    assert!(commands.iter().all(|command| !command.starts_with("ethtool -S")), "{commands:?}");
    assert!(commands.iter().all(|command| !command.contains("IFACE")), "{commands:?}");
    // A command for a named interface and the same for IFACE are one.
    let lacks = outcome(&two, "ring-small").1;
    assert_eq!(lacks, ["ethtool -g eth0", "ethtool -g eth1"]);
    let lacks = outcome(&two, "rps-same-cpu").1;
    assert_eq!(lacks, ["eth0", "eth1"].map(|name| format!("cat /sys/class/net/{name}/queues/rx-0/rps_cpus")));
    // The only interface has the output, or no interface has a name.
    let no_queues = "NIC statistics:\n     rx_packets: 5000000\n     rx_errors: 0\n";
    let one_name = format!("{no_queues}{}{}", one_each("eth0"), link(2, "eth0"));
    for text in [&one_name, no_queues] {
        let finding = one(text, "insufficient-data");
        let Some(Fact::Insufficient(Insufficient { commands, unnamed: None, .. })) = finding.facts.first()
        else {
            panic!("{finding:#?}");
        };
        assert!(commands.iter().all(|command| !command.starts_with("ethtool -S")), "{commands:?}");
    }
}

#[test]
fn a_link_without_speed_lacks_nothing() {
    let id = "link-speed";
    let ethtool = "$ ethtool eth0\nSettings for eth0:\n\tSupported ports: [  ]\n\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\t\
                   Auto-negotiation: off\n\tLink detected: yes\n";
    let file = "$ cat /sys/class/net/eth0/speed\n-1\n";
    all_answer(&[
        (&(one_each("eth0") + ethtool), id, NOT_HERE, &[]),
        (&(one_each("eth0") + file), id, NOT_HERE, &[]),
        (&one_each("eth0"), id, LACKS, &["ethtool eth0"]),
        (&(one_each("eth0") + &ethtool.replace("Unknown!\n", "1000Mb/s\n")), id, CLEAR, &[]),
    ]);
}

#[test]
fn a_sample_without_frames_is_a_sample() {
    let writer = |_| {
        let resolution = capture::Resolution::Microseconds;
        capture::Writer::pcap(Vec::new(), capture::LinkType::Ethernet, resolution).unwrap()
    };
    let empty = writer(()).finish().unwrap();
    let mut full = writer(());
    full.write(0, &[0; 60], 60).unwrap();
    let full = full.finish().unwrap();
    for (sample, expected) in [(None, None), (Some(empty), Some(false)), (Some(full), Some(true))] {
        assert_eq!(reports(&[&one_each("eth0")], sample).summary.sample, expected);
    }
}
