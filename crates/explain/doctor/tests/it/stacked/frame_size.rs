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
        ("s100.7@s100", 1500, Q7),
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
fn frames_that_devices_refuse() {
    let id = "frame-oversize";
    let vlan = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35)]);
    let ixgbe = |kind: &str| links(&[("eth0", 1500, ""), ("v1@eth0", 1500, kind)]) + &driver("eth0", "ixgbe");
    let two_tags = two_tags() + &driver("eth0", "e1000e");
    let counted =
        |packets, long| statistics("eth0", &[("rx_packets", packets), ("rx_long_length_errors", long)]);
    let rising = format!(
        "{two_tags}# sample 1 at 10.0\n{}# sample 2 at 12.0\n{}",
        counted(1_000_000, 900),
        counted(1_010_000, 1900)
    );
    let igc = |long| driver("eth0", "igc") + &counted(729_954, long);
    let too_long = r#"TooLong(Loss { counter: Named("rx_long_length_errors"), frames: 1000, when: Now, per_second: Some(500.0), share: Some(0.0909"#;
    all_answer(&[
        // 802.1Q: 1518 without FCS just fits; 802.1ad counts as untagged, 1514.
        (&ixgbe(Q35), id, CLEAR, &[]),
        (
            &ixgbe(AD100),
            id,
            MAYBE,
            &[
                "frame: 1518, tags: 1, limit: Some(1514)",
                "802.1ad id 100",
                "driver: ixgbe",
                "=Linux: ip link set dev eth0 mtu 1504",
            ],
        ),
        (
            &two_tags,
            id,
            MAYBE,
            &[
                r#"chain: "eth0.35.7 on eth0.35 on eth0", frame: 1522, tags: 2"#,
                "=Linux: ip link set dev eth0 mtu 1504",
                "mtu: 1504",
            ],
        ),
        // Counted: certain. Rising: critical, with the rate. Zero among a million: nothing of the kind came.
        (&(two_tags.clone() + &counted(1_000_000, 900)), id, LIMITS, &[]),
        (&rising, id, GRAVE, &[too_long]),
        (&(two_tags.clone() + &counted(1_000_000, 0)), id, HINT, &[]),
        // A byte counter is no error; few long frames are a remark.
        (&(igc(0) + "     rx_long_byte_count: 867670928\n"), id, CLEAR, &[]),
        (&igc(3), id, CALM, &[]),
        (&vlan, id, LACKS, &["ethtool -S eth0", "ethtool -i eth0"]),
        (&vlan, "insufficient-data", CALM, &[]),
        // PPP packets that the device below does not carry.
        (
            &pppoe_over_vlan("igb", 1500, 1500),
            id,
            LIMITS,
            &[
                "=on ppp0",
                r#"packet: 1508, below: "eth0.35", mtu: 1500"#,
                "=Linux: ip link set dev ppp0 mtu 1492",
            ],
        ),
    ]);
    assert_eq!(row(&report(&ixgbe(AD100)), "v1").device_accepts, Some(false));
    assert_eq!(row(&report(&pppoe_over_vlan("igb", 1500, 1500)), "ppp0").parents_accept, Some(false));
    let row = row(&report(&vlan), "eth0.35");
    assert_eq!(
        (row.frame, row.device_accepts, row.device_limit, row.pppoe_1500.works),
        (Some(1518), None, None, None)
    );
}

#[test]
fn pppoe_at_1492_is_a_remark_with_the_way_to_1500() {
    let id = "mtu-below-1500";
    let raised = "=Linux: ip link set dev eth0 mtu 1508 && ip link set dev eth0.35 mtu 1508";
    let refused = pppoe_over_vlan("e1000e", 1500, 1492).replacen("maxmtu 9216", "maxmtu 1500", 1);
    let unknown = "$ uname -sr\nLinux 6.12.9\n".to_owned() + &links(&[("ppp0", 1492, "ppp")]);
    let small_vlan = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1496, Q35)]);
    all_answer(&[
        // igb takes 1532 bytes at MTU 1500 as well: MTU 1508 changes nothing about what gets in.
        (
            &pppoe_over_vlan("igb", 1500, 1492),
            id,
            CALM,
            &[
                "=on ppp0",
                "ppp0: ",
                "mtu 1492",
                "1526)), works: Some(true)",
                raised,
                "frame: 1522, already: true",
            ],
        ),
        // ixgbe: the limit follows the MTU, untagged frames of 1522 bytes get in.
        (&pppoe_over_vlan("ixgbe", 1500, 1492), id, CALM, &["frame: 1522, already: false"]),
        // Below is ready: only pppd is left to set.
        (&pppoe_over_vlan("igb", 1508, 1492), id, CALM, &["=Linux: ", "offers Pppoe1500 { raised: None }"]),
        (&pppoe_over_vlan("igb", 1508, 1500), id, CLEAR, &[]),
        // A driver that refuses 1508 is not offered it.
        (&refused, id, CALM, &["works: Some(false)", "=remedies: 0"]),
        (&unknown, id, CALM, &["FullPppoe { below: None", "=Linux: "]),
        // A VLAN device with a smaller MTU shortens nothing that arrives.
        (&small_vlan, id, CALM, &["VlanMtu", "=remedies: 0"]),
    ]);
    assert_eq!(row(&report(&refused), "ppp0").pppoe_1500.works, Some(false));
    let row = row(&report(&unknown), "ppp0");
    assert_eq!((row.kind, row.frame, row.tags, row.device), (StackedKind::Ppp, None, None, None));
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
    let raised = "=Linux: ip link set dev eth0 mtu 1508 && ip link set dev eth0.35 mtu 1508";
    answers(&report, "mtu-below-1500", CALM, &[r#"SameFor { names: ["ppp1", "ppp2""#, raised]);
    assert_eq!(row(&report, "ppp299").frame, Some(1518));
}

/// Layout of FreeBSD 14's ifconfig (sbin/ifconfig/ifvlan.c, vlan_status).
#[test]
fn freebsd_gets_its_own_commands() {
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
    for id in ["frame-oversize", "ring-overflow"] {
        answers(&report, id, LACKS, &["sysctl dev.igb.0"]);
    }
    for id in
        ["offload-lost", "gro-off", "tags-hidden", "xdp-generic-only", "checksum-double-tag", "time-squeeze"]
    {
        answers(&report, id, NOT_HERE, &[]);
    }
}
