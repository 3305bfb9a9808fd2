//! Frame sizes, `frame-oversize` and `mtu-below-1500`.

use super::*;
use rxlane_doctor::stacked::{StackedKind, StackedRow};

fn row(report: &Report, name: &str) -> StackedRow {
    report.stacked.iter().find(|row| row.name == name).expect(name).clone()
}

fn pppoe_over_vlan(driver_name: &str, mtu: u32, ppp: u32) -> String {
    links(&[("eth0", mtu, ""), ("eth0.35@eth0", mtu, Q35), ("ppp0", ppp, "ppp")])
        + SESSION
        + &driver("eth0", driver_name)
}

#[test]
fn frames_of_vlan_qinq_and_pppoe() {
    let text = links(&[
        ("eth0", 1500, ""),
        ("eth0.35@eth0", 1500, Q35),
        ("s100@eth0", 1500, AD100),
        ("s100.7@s100", 1500, "vlan protocol 802.1Q id 7 <REORDER_HDR>"),
        ("ppp0", 1492, "ppp"),
    ]) + SESSION
        + &driver("eth0", "igb");
    let report = report(&text);

    let vlan = row(&report, "eth0.35");
    assert_eq!(
        (vlan.kind, vlan.tags, vlan.frame, vlan.frame_with_fcs),
        (StackedKind::Vlan, Some(1), Some(1518), Some(1522))
    );
    assert_eq!((vlan.standard_with_fcs, vlan.device.as_deref()), (Some(1522), Some("eth0")));

    let inner = row(&report, "s100.7");
    assert_eq!(
        (inner.kind, inner.tags, inner.frame, inner.frame_with_fcs),
        (StackedKind::Qinq, Some(2), Some(1522), Some(1526))
    );
    let chain: Vec<_> =
        inner.chain.iter().map(|layer| (layer.name.as_str(), layer.tpid.as_deref(), layer.vlan)).collect();
    assert_eq!(
        chain,
        [("s100.7", Some("0x8100"), Some(7)), ("s100", Some("0x88a8"), Some(100)), ("eth0", None, None)]
    );
    // igb lets 1532 bytes in, whatever the tags.
    assert_eq!(
        (inner.parents_accept, inner.device_accepts, inner.device_limit),
        (Some(true), Some(true), Some(1532))
    );

    // 1492 + 8 + 14 + 4.
    let ppp = row(&report, "ppp0");
    assert_eq!((ppp.kind, ppp.frame, ppp.frame_with_fcs), (StackedKind::Pppoe, Some(1518), Some(1522)));
    assert_eq!((ppp.parents_accept, ppp.device_accepts), (Some(true), Some(true)));
    assert_eq!(ppp.pppoe_1500.to_raise, ["eth0", "eth0.35"]);
    // 1508 + 14 + 4 <= 1532.
    assert_eq!((ppp.pppoe_1500.frame, ppp.pppoe_1500.works), (Some(1526), Some(true)));
    assert_eq!(found(&report, "frame-oversize"), []);
}

#[test]
fn the_outer_tpid_decides_with_ixgbe() {
    let one = |kind: &str| links(&[("eth0", 1500, ""), ("v1@eth0", 1500, kind)]) + &driver("eth0", "ixgbe");
    // 802.1Q: 1518 without FCS just fits; 802.1ad counts as untagged, 1514.
    came_to(&one(Q35), "frame-oversize", Outcome::Clear);
    let report = report(&one(AD100));
    let finding = super::weighed(&report, "frame-oversize", MAYBE);
    states(&finding, "frame: 1518, tags: 1, limit: Some(1514)");
    quotes(&finding, "802.1ad id 100");
    quotes(&finding, "driver: ixgbe");
    assert_eq!(commands(&finding, System::Linux), ["ip link set dev eth0 mtu 1504"]);
    assert_eq!(row(&report, "v1").device_accepts, Some(false));
}

#[test]
fn two_tags_do_not_fit_e1000e() {
    let text = links(&[
        ("eth0", 1500, ""),
        ("eth0.35@eth0", 1500, Q35),
        ("eth0.35.7@eth0.35", 1500, "vlan protocol 802.1Q id 7 <REORDER_HDR>"),
    ]) + &driver("eth0", "e1000e");
    let arithmetic = weighed(&text, "frame-oversize", MAYBE);
    states(&arithmetic, r#"chain: "eth0.35.7 on eth0.35 on eth0", frame: 1522, tags: 2"#);
    let remedy = &arithmetic.remedies[0];
    assert_eq!(remedy.commands, ["ip link set dev eth0 mtu 1504"]);
    offers(&arithmetic, "mtu: 1504");

    // Counted: certain. Rising: critical, with the rate.
    let counted =
        |dropped| statistics("eth0", &[("rx_packets", 1_000_000), ("rx_long_length_errors", dropped)]);
    weighed(&(text.clone() + &counted(900)), "frame-oversize", LIMITS);
    let twice = text.clone()
        + "# sample 1 at 10.0\n"
        + &statistics("eth0", &[("rx_packets", 1_000_000), ("rx_long_length_errors", 900)])
        + "# sample 2 at 12.0\n"
        + &statistics("eth0", &[("rx_packets", 1_010_000), ("rx_long_length_errors", 1900)]);
    let rising = weighed(&twice, "frame-oversize", GRAVE);
    states(
        &rising,
        r#"TooLong(Loss { counter: Named("rx_long_length_errors"), frames: 1000, when: Now, per_second: Some(500.0), share: Some(0.0909"#,
    );
    // Zero among a million: nothing of the kind came.
    weighed(&(text + &counted(0)), "frame-oversize", HINT);
}

#[test]
fn a_byte_counter_is_no_error_and_few_long_frames_are_a_remark() {
    let text = driver("eth0", "igc")
        + &statistics(
            "eth0",
            &[("rx_packets", 729_954), ("rx_long_byte_count", 867_670_928), ("rx_long_length_errors", 0)],
        );
    came_to(&text, "frame-oversize", Outcome::Clear);
    let few =
        driver("eth0", "igc") + &statistics("eth0", &[("rx_packets", 729_954), ("rx_long_length_errors", 3)]);
    weighed(&few, "frame-oversize", CALM);
}

#[test]
fn unknown_devices_stay_unknown() {
    let text = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35)]);
    let report = report(&text);
    insufficient(&report, "frame-oversize", &["ethtool -S eth0", "ethtool -i eth0"]);
    let row = row(&report, "eth0.35");
    assert_eq!(
        (row.frame, row.device_accepts, row.device_limit, row.pppoe_1500.works),
        (Some(1518), None, None, None)
    );
    assert!(report.findings.iter().any(|finding| finding.id == "insufficient-data"));
}

#[test]
fn ppp_packets_that_the_device_below_does_not_carry() {
    let report = report(&pppoe_over_vlan("igb", 1500, 1500));
    let finding = one(&report, "frame-oversize");
    assert_eq!(about(&finding), (LIMITS, "ppp0"));
    states(&finding, r#"packet: 1508, below: "eth0.35", mtu: 1500"#);
    assert_eq!(commands(&finding, System::Linux), ["ip link set dev ppp0 mtu 1492"]);
    assert_eq!(row(&report, "ppp0").parents_accept, Some(false));
}

#[test]
fn pppoe_at_1492_is_a_remark_with_the_way_to_1500() {
    let finding = one(&pppoe_over_vlan("igb", 1500, 1492), "mtu-below-1500");
    assert_eq!(about(&finding), (CALM, "ppp0"));
    quotes(&finding, "ppp0: ");
    quotes(&finding, "mtu 1492");
    states(&finding, "1526)), works: Some(true)");
    assert_eq!(
        commands(&finding, System::Linux),
        ["ip link set dev eth0 mtu 1508", "ip link set dev eth0.35 mtu 1508"]
    );
    // igb takes 1532 bytes at MTU 1500 as well: MTU 1508 changes nothing about what gets in.
    offers(&finding, "frame: 1522, already: true");

    // ixgbe: the limit follows the MTU, untagged frames of 1522 bytes get in.
    let finding = one(&pppoe_over_vlan("ixgbe", 1500, 1492), "mtu-below-1500");
    offers(&finding, "frame: 1522, already: false");

    // Below is ready: only pppd is left to tell.
    let ready = one(&pppoe_over_vlan("igb", 1508, 1492), "mtu-below-1500");
    assert_eq!(commands(&ready, System::Linux), [] as [&str; 0]);
    offers(&ready, "Pppoe1500 { raised: None }");
    came_to(&pppoe_over_vlan("igb", 1508, 1500), "mtu-below-1500", Outcome::Clear);
}

#[test]
fn a_driver_that_refuses_1508_is_not_offered_it() {
    let text = pppoe_over_vlan("e1000e", 1500, 1492).replacen("maxmtu 9216", "maxmtu 1500", 1);
    let report = report(&text);
    let finding = one(&report, "mtu-below-1500");
    states(&finding, "works: Some(false)");
    assert_eq!(finding.remedies, []);
    assert_eq!(row(&report, "ppp0").pppoe_1500.works, Some(false));
}

#[test]
fn ppp_over_something_unknown() {
    let text = "$ uname -sr\nLinux 6.12.9\n".to_owned() + &links(&[("ppp0", 1492, "ppp")]);
    let report = report(&text);
    let row = row(&report, "ppp0");
    assert_eq!((row.kind, row.frame, row.tags, row.device), (StackedKind::Ppp, None, None, None));
    let finding = one(&report, "mtu-below-1500");
    states(&finding, "FullPppoe { below: None");
    assert_eq!(commands(&finding, System::Linux), [] as [&str; 0]);
}

#[test]
fn a_vlan_device_with_a_smaller_mtu_shortens_nothing_that_comes() {
    let report = report(&links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1496, Q35)]));
    let finding = one(&report, "mtu-below-1500");
    assert_eq!((finding.severity, finding.remedies.len()), (Severity::Info, 0));
    states(&finding, "VlanMtu");
}

#[test]
fn a_thousand_subscribers_are_one_finding() {
    let names: Vec<String> = (0..300).map(|number| format!("ppp{number}")).collect();
    let mut interfaces = vec![("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35)];
    interfaces.extend(names.iter().map(|name| (name.as_str(), 1492, "ppp")));
    let mut text = links(&interfaces) + &driver("eth0", "igb");
    text.push_str("$ cat /proc/net/pppoe\nId       Address              Device\n");
    (1..=300).for_each(|id| writeln!(text, "{id:08X} 02:00:00:00:00:02  eth0.35").unwrap());
    let report = report(&text);
    let finding = one(&report, "mtu-below-1500");
    states(&finding, r#"SameFor { names: ["ppp1", "ppp2""#);
    assert_eq!(
        commands(&finding, System::Linux),
        ["ip link set dev eth0 mtu 1508", "ip link set dev eth0.35 mtu 1508"]
    );
    assert_eq!(row(&report, "ppp299").frame, Some(1518));
}

/// Layout of FreeBSD 14's ifconfig (sbin/ifconfig/ifvlan.c, vlan_status).
#[test]
fn freebsd_is_told_its_own_commands() {
    let interface = |name: &str, mtu: u32, rest: &str| {
        format!(
            "{name}: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu {mtu}\n\tether 02:00:00:00:00:01\n{rest}"
        )
    };
    let text = "$ uname -sr\nFreeBSD 14.1-RELEASE\n$ ifconfig\n".to_owned()
        + &interface(
            "igb0",
            1500,
            "\tmedia: Ethernet autoselect (1000baseT <full-duplex>)\n\tstatus: active\n",
        )
        + &interface(
            "igb0.35",
            1496,
            "\tgroups: vlan\n\tvlan: 35 vlanproto: 802.1q vlanpcp: 0 parent interface: igb0\n",
        );
    let report = report(&text);
    assert_eq!(row(&report, "igb0.35").frame, Some(1514));
    // The limits of Linux drivers say nothing about FreeBSD's.
    assert_eq!(row(&report, "igb0.35").device_accepts, None);
    insufficient(&report, "frame-oversize", &["sysctl dev.igb.0"]);
    insufficient(&report, "ring-overflow", &["sysctl dev.igb.0"]);
    for id in
        ["offload-lost", "gro-off", "tags-hidden", "xdp-generic-only", "checksum-double-tag", "time-squeeze"]
    {
        came_to(&report, id, Outcome::DoesNotApply);
    }
}
