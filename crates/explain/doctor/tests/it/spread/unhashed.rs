//! Frames that the device cannot hash: `pppoe-unhashed`, `qinq-unhashed`.

use super::*;

/// mpd5, which ends PPPoE on FreeBSD.
const MPD: &str = "$ ps aux\nUSER   PID  %CPU %MEM   VSZ   RSS TT  STAT STARTED      TIME COMMAND\n\
                   root   812   1.0  0.1 21000  9000  -  Ss   10:00     0:01.00 /usr/local/sbin/mpd5 -b\n";

fn i210(name: &str) -> String {
    device(name, "igb", "8086:1533")
}

/// A session on an I210 whose four vectors are spread.
pub fn pppoe() -> String {
    i210("eth0") + &session("eth0") + &one_each("eth0")
}

fn stacked(outer: &str) -> String {
    let service = format!("vlan protocol {outer} id 100 <REORDER_HDR>");
    let customer = "vlan protocol 802.1Q id 200 <REORDER_HDR>";
    links(&[("eth0", 1500, ""), ("svc@eth0", 1500, &service), ("cust@svc", 1500, customer)])
}

const RPS: &str = "=Linux: echo e > /sys/class/net/eth0/queues/rx-0/rps_cpus";

#[test]
fn pppoe_and_two_tags_on_devices_that_spread_or_not() {
    let (pppoe_id, qinq_id) = ("pppoe-unhashed", "qinq-unhashed");
    let on_vlan = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35)]);
    let counted = |first| i210("eth0") + &session("eth0") + &queues("eth0", &[first, 40_000, 39_000, 40_000]);
    let busy = session("eth0") + &queues("eth0", &[9_000_000, 11, 8, 2]);
    let even = stacked("802.1Q") + &queues("eth0", &[400_000, 380_000, 390_000, 401_000]);
    all_answer(&[
        // RPS without the CPU that takes the interrupt. Its own system first; what another has follows.
        (
            &pppoe(),
            pppoe_id,
            LIMITS,
            &["=on eth0", "00002A00 02:00:00:00:00:01", RPS, "NoSample", "=remedies: 3"],
        ),
        // A session on a VLAN is its device's.
        (&(i210("eth0") + &on_vlan + &session("eth0.35")), pppoe_id, LIMITS, &["=on eth0"]),
        (&(pppoe() + &load(0, 96.0, 2.5)), pppoe_id, GRAVE, &["96.0 si"]),
        (&(pppoe() + &load(0, 8.0, 90.5)), pppoe_id, CALM, &["Load(Room", "=remedies: 0"]),
        (
            &(pppoe() + &mask("eth0", 0, "e")),
            pppoe_id,
            CALM,
            &["RpsSpreads { cpus: [1, 2, 3] }", "=remedies: 0"],
        ),
        // What is not known of the device is not claimed; one busy queue makes it possible.
        (&(session("eth0") + &one_each("eth0")), pppoe_id, LACKS, &["ethtool -i eth0", "lspci -nn"]),
        (&busy, pppoe_id, MAYBE, &["rx_queue_0_packets: 9000000"]),
        // Even queues make it a remark.
        (&counted(41_000), pppoe_id, CALM, &[]),
        (&counted(160_000), pppoe_id, LIMITS, &[]),
        // Without PPPoE, or where there is one queue, there is nothing to say.
        (&(i210("eth0") + &one_each("eth0")), pppoe_id, NOT_HERE, &[]),
        (&(device("eth0", "e1000e", "8086:15b8") + &session("eth0")), pppoe_id, NOT_HERE, &[]),
        (
            &(i210("eth0") + &stacked("802.1ad") + &one_each("eth0")),
            qinq_id,
            LIMITS,
            &["=on eth0", "id 200", RPS],
        ),
        // The counters of an unknown device show that frames spread.
        (&even, qinq_id, CLEAR, &[]),
        (&stacked("802.1Q"), qinq_id, LACKS, &[]),
        (&(i210("eth0") + &session("eth0")), qinq_id, NOT_HERE, &[]),
    ]);
    let effects = effects(&one(&pppoe(), pppoe_id));
    assert!(
        matches!(effects[..], [Effect::Rps { filter: true, .. }, Effect::Steer { .. }, Effect::Netisr]),
        "{effects:#?}"
    );
}

#[test]
fn on_freebsd_netisr_by_what_can_be_set_at_run_time_and_what_the_loader_sets() {
    let text = "$ uname -sr\nFreeBSD 14.1-RELEASE\n$ pciconf -lv\n\
                igb0@pci0:3:0:0:\tclass=0x020000 rev=0x03 hdr=0x00 vendor=0x8086 device=0x1533 subvendor=0x17aa subdevice=0x1096\n    \
                vendor     = 'Intel Corporation'\n    device     = 'I210 Gigabit Network Connection'\n    \
                class      = network\n    subclass   = ethernet\n".to_owned() + MPD;
    // igb0 is no name of Linux's.
    answers(&text, "pppoe-unhashed", MAYBE, &["=on igb0", "mpd5", "device=0x1533", "=Linux: "]);
    let finding = one(&text, "pppoe-unhashed");
    let for_freebsd = commands(&finding, System::FreeBsd);
    for command in [
        "sysctl net.isr.dispatch=deferred",
        "echo 'net.isr.maxthreads=\"-1\"' >> /boot/loader.conf",
        "echo 'net.isr.bindthreads=\"1\"' >> /boot/loader.conf",
    ] {
        assert!(for_freebsd.iter().any(|found| found == command), "{command}: {for_freebsd:?}");
    }
    assert_eq!(finding.remedies[0].os, System::FreeBsd);
}

#[test]
fn a_traffic_sample_proves_pppoe_and_predicts_the_spread() {
    let text = format!("{}{}", i210("eth0"), one_each("eth0"));
    let finding = weighed(&reports(&[&text], Some(scenario("pppoe", 1000))), "pppoe-unhashed", LIMITS);
    quotes(&finding, "of 4,000 frames");
    let Some(Forecast::Sample { after, before, .. }) = finding.remedies[0].forecast else {
        panic!("{finding:#?}")
    };
    // The sample's flows are Zipf's: four CPUs share them, if not evenly.
    assert!(before == Some(1.0) && (0.25..0.7).contains(&after), "{finding:#?}");
    // IP alone is no PPPoE, whoever sends it.
    let plain = reports(&[&text], Some(scenario("untagged", 1000)));
    assert_eq!(found(&plain, "pppoe-unhashed").len(), 0);
}

#[test]
fn the_model_says_what_dealing_would_bring_and_what_it_assumes() {
    let finding = one(&pppoe(), "pppoe-unhashed");
    let [rps, xdp, netisr] = &finding.remedies[..] else { panic!("{finding:#?}") };
    let (of_rps, of_xdp) = (modelled(rps), modelled(xdp));
    // Four CPUs: 5,070 instructions over 2,090 and over 1,790 (docs/measurements/steering.md).
    assert!((2.2..2.6).contains(&of_rps.times), "{of_rps:?}");
    assert!((2.6..3.0).contains(&of_xdp.times), "{of_xdp:?}");
    // One reading shows neither how long a frame takes nor which flows there are.
    assert_eq!(of_rps.packets_per_second, None);
    assert!(of_rps.assumptions.contains(&Assumption::FlowsAlike), "{of_rps:?}");
    // Nobody has counted what netisr costs.
    assert_eq!(netisr.model, None, "{netisr:#?}");
    // Where CPUs are not counted, nobody knows among how many frames are distributed.
    let uncounted = one(&format!("{}{}", i210("eth0"), session("eth0")), "pppoe-unhashed");
    assert!(uncounted.remedies.iter().all(|remedy| remedy.model.is_none()), "{uncounted:#?}");
}

#[test]
fn flows_of_the_sample_decide_what_the_model_expects() {
    let text = format!("{}{}", i210("eth0"), one_each("eth0"));
    let times = |flows| {
        let finding = one(&reports(&[&text], Some(scenario("pppoe", flows))), "pppoe-unhashed");
        let modelled = modelled(&finding.remedies[0]);
        assert!(!modelled.assumptions.contains(&Assumption::FlowsAlike), "{modelled:?}");
        modelled.times
    };
    // Zipf's law: of few flows one is a large part.
    let (few, many) = (times(4), times(1000));
    assert!(few < many && (1.0..2.6).contains(&many), "{few} and {many}");
}

/// `netstat -Q` of the if_pppoe project's test fixtures, counters restated: the difference of ether on CPU 0 is what
/// the PPPoE protocol worked off on CPUs 2 and 3.
#[test]
fn netisr_shows_pppoe_delivered_on_one_cpu() {
    let sample = |ether: [u64; 4], ip: [u64; 4], pppoe: [u64; 4]| {
        let mut text = String::from(
            "Configuration:\nSetting                        Current        Limit\n\
             Thread count                         4            4\nDefault queue limit                256        10240\n\
             Dispatch policy                 direct          n/a\nThreads bound to CPUs          enabled          n/a\n\n\
             Protocols:\nName   Proto QLimit Policy Dispatch Flags\nip         1    256   flow  default   ---\n\
             ether      5    256 source   direct   ---\npppoe     11   1000    cpu   hybrid   C--\n\n\
             Workstreams:\nWSID CPU   Name     Len WMark   Disp'd  HDisp'd   QDrops   Queued  Handled\n",
        );
        for cpu in 0..4 {
            for (name, handled) in [("ip", ip[cpu]), ("ether", ether[cpu]), ("pppoe", pppoe[cpu])] {
                writeln!(text, "   {cpu}   {cpu}   {name:<6}     0     0 {handled:>8}        0        0        0 {handled:>8}")
                    .unwrap();
            }
        }
        text
    };
    let before = sample([28749, 1939, 40, 150_373], [1038, 1779, 31, 149_118], [22248, 0, 21, 8]);
    let after = sample(
        [641_019, 54409, 28098, 3_698_609],
        [53119, 52280, 26911, 3_696_368],
        [22267, 0, 399_297, 165_034],
    );
    let parts = ["PppoeOnOneCpu { cpu: 0, frames: 560189", "workers: [2, 3], of: 4", "641019", "399297"];
    answers(&reports(&[&before, &after], None), "pppoe-unhashed", HINT, &parts);
    // The first sample alone: nearly all of so little was done before PPPoE had its own protocol.
    assert!(
        found(&report(&before), "pppoe-unhashed").iter().all(|finding| finding.severity == Severity::Info)
    );
}

/// A capture on a PPP interface, or on another port, does not unsay the sessions.
#[test]
fn a_sample_without_pppoe_does_not_outweigh_a_session() {
    let tags = i210("eth0") + &stacked("802.1ad") + &one_each("eth0");
    let other = |text: &str| reports(&[text], Some(scenario("untagged", 1000)));
    let parts = ["InSample { what: Pppoe, share: 0.0 }", "00002A00", "!0 % of", RPS, "OtherSample"];
    answers(&other(&pppoe()), "pppoe-unhashed", LIMITS, &parts);
    let finding = one(&other(&pppoe()), "pppoe-unhashed");
    assert!(finding.remedies.iter().all(|remedy| remedy.model.is_none()));
    answers(&other(&tags), "qinq-unhashed", LIMITS, &["InSample { what: Qinq, share: 0.0 }"]);
}

#[test]
fn one_flow_of_pppoe_is_offered_no_spreading() {
    let text = pppoe() + &queues("eth0", &[9_000_000, 1, 2, 3]) + &mask("eth0", 0, "0");
    let report = reports(&[&text], Some(scenario("pppoe", 1)));
    for id in ["pppoe-unhashed", "one-queue-hot"] {
        let finding = one(&report, id);
        assert!(finding.remedies.is_empty(), "{finding:#?}");
        states(&finding, "LoadIsOneFlow");
    }
    answers(&report, "rps-off", CLEAR, &[]);
    let many = reports(&[&text], Some(scenario("pppoe", 1000)));
    assert!(!one(&many, "pppoe-unhashed").remedies.is_empty());
    assert!(!has_fact(&one(&many, "one-queue-hot"), "LoadIsOneFlow"));
}

/// Steering in XDP repeats no figure of RPS, and is not offered to a driver without XDP.
#[test]
fn xdp_is_recognised_by_what_differs() {
    let text = format!("{}{}", i210("eth0"), one_each("eth0"));
    let finding = one(&reports(&[&text], Some(scenario("pppoe", 1000))), "pppoe-unhashed");
    let is_steering = |remedy: &&Remedy| matches!(remedy.effect, Effect::Steer { .. });
    let xdp = finding.remedies.iter().find(is_steering).unwrap();
    assert_eq!(xdp.forecast, None, "{xdp:#?}");
    assert_eq!(xdp.commands, ["rxlane steer check eth0", "rxlane steer up eth0"]);
    let tg3 = format!("{}{}", device("eth0", "tg3", "14e4:165f"), queues("eth0", &[9_000_000, 1, 2, 3]));
    let finding = one(&tg3, "one-queue-hot");
    assert!(!finding.remedies.is_empty());
    assert!(!finding.remedies.iter().any(|remedy| is_steering(&remedy)), "{finding:#?}");
}

/// Queue counters as FreeBSD's igb shows them (sys/dev/e1000/if_em.c, iflib's rxq nodes).
#[test]
fn on_freebsd_nothing_of_ethtool() {
    let text = "$ uname -sr\nFreeBSD 14.1-RELEASE\n$ sysctl dev.igb.0\n\
                dev.igb.0.%desc: Intel(R) I210 Flashless (Copper)\n\
                dev.igb.0.%pnpinfo: vendor=0x8086 device=0x1533 subvendor=0x17aa subdevice=0x1096 class=0x020000\n\
                dev.igb.0.queue_rx_0.rx_packets: 9000000\ndev.igb.0.queue_rx_1.rx_packets: 12\n".to_owned() + MPD;
    let report_of = report(&text);
    let finding = one(&report_of, "one-queue-hot");
    assert!(!format!("{:?}", report_of.rules).contains("ethtool"), "{:#?}", report_of.rules);
    assert!(effects(&finding).contains(&Effect::Netisr), "{finding:#?}");
    // Nor a figure by flow, which netisr does not reach for one session.
    let sampled = reports(&[&text], Some(scenario("pppoe", 1000)));
    let freebsd = sampled.findings.iter().flat_map(|finding| &finding.remedies);
    let freebsd: Vec<_> = freebsd.filter(|remedy| remedy.os == System::FreeBsd).collect();
    assert!(!freebsd.is_empty());
    assert!(freebsd.iter().all(|remedy| remedy.forecast.is_none()), "{freebsd:#?}");
}

/// PPPoE that a process, a rule or a name shows, on a device of which nothing is known.
#[test]
fn pppoe_on_a_device_that_the_text_does_not_show() {
    let id = "pppoe-unhashed";
    let top = "root@OpenWrt:~# top -b -n 1\nCPU:   0% usr   1% sys   0% nic  24% idle   0% io   0% irq  74% sirq\n  PID  PPID USER     STAT   VSZ %VSZ %CPU COMMAND\n \
               1830     1 root     S     1740   1%   0% /usr/sbin/pppd nodetach ipparam wan ifname pppoe-wan plugin pppoe.so nic-eth0.2\n";
    let rule = |name: &str| {
        format!(
            "# nft list ruleset\ntable ip nat {{\n\tchain postrouting {{\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\
             \t\toifname \"{name}\" masquerade\n\t}}\n}}\n"
        )
    };
    let bsd = "# uname -sr\nFreeBSD 14.1-RELEASE\n".to_owned() + MPD;
    all_answer(&[
        (top, id, LACKS, &["ethtool -i eth0", "ethtool -S eth0"]),
        (&rule("ppp0"), id, LACKS, &["cat /proc/net/pppoe", "ethtool -i IFACE", "ethtool -S IFACE"]),
        (&rule("pppoe-wan"), id, LACKS, &[]),
        (&bsd, id, LACKS, &["pciconf -lv", "vmstat -i"]),
        (&rule("eth1"), id, NOT_HERE, &[]),
        (&(top.to_owned() + "root@OpenWrt:~# nproc\n1\n"), id, NOT_HERE, &[]),
        // A device of which the driver is not known.
        (&(top.to_owned() + &queues("eth0", &[900, 1000])), id, LACKS, &["ethtool -i eth0", "lspci -nn"]),
    ]);
}
