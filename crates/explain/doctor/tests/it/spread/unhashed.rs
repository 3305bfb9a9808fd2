//! Frames that the device cannot hash: `pppoe-unhashed`, `qinq-unhashed`.

use super::*;

const I210: &str = "8086:1533";

fn i210(name: &str) -> String {
    device(name, "igb", I210)
}

#[test]
fn pppoe_on_an_i210_wants_rps_without_the_cpu_that_takes_the_interrupt() {
    let text = format!("{}{}{}", i210("enp1s0"), session("enp1s0"), one_each("enp1s0"));
    let finding = one(&text, "pppoe-unhashed");
    assert_eq!(about(&finding), (LIMITS, "enp1s0"));
    quotes(&finding, "00002A00 02:00:00:00:00:01");
    assert_eq!(commands(&finding, System::Linux), ["echo e > /sys/class/net/enp1s0/queues/rx-0/rps_cpus"]);
    // Its own system first; what another has is told, too.
    assert!(
        matches!(
            effects(&finding)[..],
            [Effect::Rps { filter: true, .. }, Effect::Steer { .. }, Effect::Netisr]
        ),
        "{finding:#?}"
    );
    offers(&finding, "NoSample");
}

#[test]
fn a_session_on_a_vlan_is_its_device_s() {
    let link = links(&[("enp1s0", 1500, ""), ("enp1s0.35@enp1s0", 1500, Q35)]);
    let text = format!("{}{link}{}", i210("enp1s0"), session("enp1s0.35"));
    assert_eq!(one(&text, "pppoe-unhashed").interface.as_deref(), Some("enp1s0"));
}

#[test]
fn the_load_of_the_queue_s_cpu_decides() {
    let text = |softirq, idle| {
        format!("{}{}{}{}", i210("eth0"), session("eth0"), one_each("eth0"), load(0, softirq, idle))
    };
    let full = weighed(&text(96.0, 2.5), "pppoe-unhashed", GRAVE);
    quotes(&full, "96.0 si");
    let idle = remark(&text(8.0, 90.5), "pppoe-unhashed");
    states(&idle, "Load(Room");
}

#[test]
fn rps_that_spreads_already_leaves_nothing_to_do() {
    let text = format!("{}{}{}{}", i210("eth0"), session("eth0"), one_each("eth0"), mask("eth0", 0, "e"));
    let finding = remark(&text, "pppoe-unhashed");
    states(&finding, "RpsSpreads { cpus: [1, 2, 3] }");
}

#[test]
fn on_freebsd_netisr_by_what_can_be_set_at_run_time_and_what_the_loader_sets() {
    let text = "$ uname -sr\nFreeBSD 14.1-RELEASE\n$ pciconf -lv\n\
                igb0@pci0:3:0:0:\tclass=0x020000 rev=0x03 hdr=0x00 vendor=0x8086 device=0x1533 subvendor=0x17aa subdevice=0x1096\n    \
                vendor     = 'Intel Corporation'\n    device     = 'I210 Gigabit Network Connection'\n    \
                class      = network\n    subclass   = ethernet\n\
                $ ps aux\nUSER   PID  %CPU %MEM   VSZ   RSS TT  STAT STARTED      TIME COMMAND\n\
                root   812   1.0  0.1 21000  9000  -  Ss   10:00     0:01.00 /usr/local/sbin/mpd5 -b\n";
    let finding = weighed(text, "pppoe-unhashed", MAYBE);
    assert_eq!(finding.interface.as_deref(), Some("igb0"));
    quotes(&finding, "mpd5");
    quotes(&finding, "device=0x1533");
    let for_freebsd = commands(&finding, System::FreeBsd);
    for command in [
        "sysctl net.isr.dispatch=deferred",
        "echo 'net.isr.maxthreads=\"-1\"' >> /boot/loader.conf",
        "echo 'net.isr.bindthreads=\"1\"' >> /boot/loader.conf",
    ] {
        assert!(for_freebsd.iter().any(|found| found == command), "{command}: {for_freebsd:?}");
    }
    assert_eq!(finding.remedies[0].os, System::FreeBsd);
    assert!(commands(&finding, System::Linux).is_empty(), "igb0 is no name of Linux's: {finding:#?}");
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
    let text = format!("{}{}{}", i210("eth0"), session("eth0"), one_each("eth0"));
    let finding = one(&text, "pppoe-unhashed");
    let [rps, xdp, netisr] = &finding.remedies[..] else { panic!("{finding:#?}") };
    let (of_rps, of_xdp) = (modelled(rps), modelled(xdp));
    // Four CPUs: 5,070 instructions over 2,090 and over 1,790 (docs/measurements/steering.md).
    assert!((2.2..2.6).contains(&of_rps.times), "{of_rps:?}");
    assert!((2.6..3.0).contains(&of_xdp.times), "{of_xdp:?}");
    // One reading tells neither how long a frame takes nor which flows there are.
    assert_eq!(of_rps.packets_per_second, None);
    assert!(of_rps.assumptions.contains(&Assumption::FlowsAlike), "{of_rps:?}");
    // Nobody has counted what netisr costs.
    assert_eq!(netisr.model, None, "{netisr:#?}");
    // Where CPUs are not counted, there is no telling between how many frames are dealt.
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

#[test]
fn what_is_not_known_of_the_device_is_not_claimed() {
    let unknown = format!("{}{}", session("eth0"), one_each("eth0"));
    insufficient(&unknown, "pppoe-unhashed", &["ethtool -i eth0", "lspci -nn"]);
    // One hot queue makes it possible.
    let text = format!("{}{}", session("eth0"), queues("eth0", &[9_000_000, 11, 8, 2]));
    let finding = weighed(&text, "pppoe-unhashed", MAYBE);
    quotes(&finding, "rx_queue_0_packets: 9000000");
}

#[test]
fn even_queues_make_it_a_remark() {
    for (first, weight) in [(41_000, CALM), (160_000, LIMITS)] {
        let queues = queues("eth0", &[first, 40_000, 39_000, 40_000]);
        weighed(&(i210("eth0") + &session("eth0") + &queues), "pppoe-unhashed", weight);
    }
}

#[test]
fn nothing_to_say_without_pppoe_or_where_there_is_one_queue() {
    for text in [i210("eth0") + &one_each("eth0"), device("eth0", "e1000e", "8086:15b8") + &session("eth0")] {
        came_to(&text, "pppoe-unhashed", Outcome::DoesNotApply);
    }
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
    let finding = weighed(&reports(&[&before, &after], None), "pppoe-unhashed", HINT);
    states(&finding, "PppoeOnOneCpu { cpu: 0, frames: 560189");
    states(&finding, "workers: [2, 3], of: 4");
    quotes(&finding, "641019");
    quotes(&finding, "399297");
    // The first sample alone: nearly all of so little was done before PPPoE had its own protocol.
    assert_eq!(
        found(&report(&before), "pppoe-unhashed").iter().filter(|f| f.severity != Severity::Info).count(),
        0
    );
}

fn stacked(outer: &str) -> String {
    let service = format!("vlan protocol {outer} id 100 <REORDER_HDR>");
    let customer = "vlan protocol 802.1Q id 200 <REORDER_HDR>";
    links(&[("eth0", 1500, ""), ("svc@eth0", 1500, &service), ("cust@svc", 1500, customer)])
}

#[test]
fn two_tags_on_an_i210() {
    let text = format!("{}{}{}", i210("eth0"), stacked("802.1ad"), one_each("eth0"));
    let finding = one(&text, "qinq-unhashed");
    assert_eq!(about(&finding), (LIMITS, "eth0"));
    quotes(&finding, "id 200");
    assert_eq!(commands(&finding, System::Linux), ["echo e > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
}

#[test]
fn two_tags_on_a_device_that_spreads_are_no_finding() {
    // The counters of an unknown device show that frames spread.
    let text = format!("{}{}", stacked("802.1Q"), queues("eth0", &[400_000, 380_000, 390_000, 401_000]));
    came_to(&text, "qinq-unhashed", Outcome::Clear);
    came_to(&stacked("802.1Q"), "qinq-unhashed", Outcome::InsufficientData);
    came_to(&(i210("eth0") + &session("eth0")), "qinq-unhashed", Outcome::DoesNotApply);
}

/// A capture on a PPP interface, or on another port, does not unsay the sessions.
#[test]
fn a_sample_without_pppoe_does_not_outweigh_a_session() {
    let text = format!("{}{}{}", i210("eth0"), session("eth0"), one_each("eth0"));
    let finding = weighed(&reports(&[&text], Some(scenario("untagged", 1000))), "pppoe-unhashed", LIMITS);
    states(&finding, "InSample { what: Pppoe, share: 0.0 }");
    quotes(&finding, "00002A00");
    assert!(finding.evidence.iter().all(|line| !line.text.contains("0 % of")), "{finding:#?}");
    assert_eq!(commands(&finding, System::Linux), ["echo e > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
    offers(&finding, "OtherSample");
    assert!(finding.remedies.iter().all(|remedy| remedy.model.is_none()));
    let tags = format!("{}{}{}", i210("eth0"), stacked("802.1ad"), one_each("eth0"));
    let finding = weighed(&reports(&[&tags], Some(scenario("untagged", 1000))), "qinq-unhashed", LIMITS);
    states(&finding, "InSample { what: Qinq, share: 0.0 }");
}

#[test]
fn one_flow_of_pppoe_is_offered_no_spreading() {
    let text = format!(
        "{}{}{}{}{}",
        i210("eth0"),
        session("eth0"),
        queues("eth0", &[9_000_000, 1, 2, 3]),
        one_each("eth0"),
        mask("eth0", 0, "0")
    );
    let report = reports(&[&text], Some(scenario("pppoe", 1)));
    for id in ["pppoe-unhashed", "one-queue-hot"] {
        let finding = one(&report, id);
        assert!(finding.remedies.is_empty(), "{finding:#?}");
        states(&finding, "LoadIsOneFlow");
    }
    came_to(&report, "rps-off", Outcome::Clear);
    let many = reports(&[&text], Some(scenario("pppoe", 1000)));
    assert!(!one(&many, "pppoe-unhashed").remedies.is_empty());
    assert!(!has_fact(&one(&many, "one-queue-hot"), "LoadIsOneFlow"));
}

/// Steering in XDP repeats no figure of RPS, and is not offered to a driver without XDP.
#[test]
fn xdp_is_told_by_what_differs() {
    let text = format!("{}{}", i210("eth0"), one_each("eth0"));
    let finding = one(&reports(&[&text], Some(scenario("pppoe", 1000))), "pppoe-unhashed");
    let is_steering = |remedy: &&Remedy| matches!(remedy.effect, Effect::Steer { .. });
    let xdp = finding.remedies.iter().find(is_steering).unwrap();
    assert_eq!(xdp.forecast, None, "{xdp:#?}");
    assert_eq!(xdp.commands, ["rxlane steer check eth0", "rxlane steer up eth0"]);
    let tg3 = format!("{}{}", device("eth0", "tg3", "14e4:165f"), queues("eth0", &[9_000_000, 1, 2, 3]));
    let hot = one(&tg3, "one-queue-hot");
    assert!(!hot.remedies.is_empty());
    assert!(!hot.remedies.iter().any(|remedy| is_steering(&remedy)), "{hot:#?}");
}

/// Queue counters as FreeBSD's igb shows them (sys/dev/e1000/if_em.c, iflib's rxq nodes).
#[test]
fn on_freebsd_nothing_of_ethtool() {
    let text = "$ uname -sr\nFreeBSD 14.1-RELEASE\n$ sysctl dev.igb.0\n\
                dev.igb.0.%desc: Intel(R) I210 Flashless (Copper)\n\
                dev.igb.0.%pnpinfo: vendor=0x8086 device=0x1533 subvendor=0x17aa subdevice=0x1096 class=0x020000\n\
                dev.igb.0.queue_rx_0.rx_packets: 9000000\ndev.igb.0.queue_rx_1.rx_packets: 12\n\
                $ ps aux\nUSER   PID  %CPU %MEM   VSZ   RSS TT  STAT STARTED      TIME COMMAND\n\
                root   812   1.0  0.1 21000  9000  -  Ss   10:00     0:01.00 /usr/local/sbin/mpd5 -b\n";
    let report_of = report(text);
    let hot = one(&report_of, "one-queue-hot");
    assert!(!format!("{:?}", report_of.rules).contains("ethtool"), "{:#?}", report_of.rules);
    assert!(effects(&hot).contains(&Effect::Netisr), "{hot:#?}");
    // Nor a figure by flow, which netisr does not reach for one session.
    let sampled = reports(&[text], Some(scenario("pppoe", 1000)));
    let freebsd = sampled.findings.iter().flat_map(|finding| &finding.remedies);
    let freebsd: Vec<_> = freebsd.filter(|remedy| remedy.os == System::FreeBsd).collect();
    assert!(!freebsd.is_empty());
    assert!(freebsd.iter().all(|remedy| remedy.forecast.is_none()), "{freebsd:#?}");
}
