//! `offload-lost`, `checksum-double-tag`, `gro-off`.

use super::*;

const ON: [(&str, &str); 6] = [
    ("rx-checksumming", "on"),
    ("tx-checksumming", "on"),
    ("scatter-gather", "on"),
    ("tcp-segmentation-offload", "on"),
    ("generic-segmentation-offload", "on"),
    ("generic-receive-offload", "on"),
];

/// `ON` with some changed.
fn with(changed: &[(&str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    ON.iter()
        .map(|(name, state)| {
            (*name, changed.iter().find(|(other, _)| other == name).map_or(*state, |(_, state)| *state))
        })
        .collect()
}

fn qinq(kernel: &str) -> String {
    links(&[
        ("eth0", 1500, ""),
        ("eth0.35@eth0", 1500, Q35),
        ("eth0.35.7@eth0.35", 1500, "vlan protocol 802.1Q id 7 <REORDER_HDR>"),
    ])
    .replacen("Linux 6.12.9", kernel, 1)
}

#[test]
fn segmentation_lost_behind_a_second_tag() {
    let lost = with(&[
        ("rx-checksumming", "off [fixed]"),
        ("tcp-segmentation-offload", "off"),
        ("generic-segmentation-offload", "off"),
    ]);
    let text = qinq("Linux 6.12.9")
        + &driver("eth0", "igb")
        + &features("eth0", &ON)
        + &features("eth0.35", &ON)
        + &features("eth0.35.7", &lost);
    let report = report(&text);
    let finding = one(&report, "offload-lost");
    assert_eq!(about(&finding), (LIMITS, "eth0.35.7"));
    states(&finding, r#"can: ["tcp-segmentation-offload"], tags: Some(2)"#);
    assert_eq!(
        commands(&finding, System::Linux),
        ["ethtool -K eth0.35.7 tso on", "ethtool -K eth0.35.7 gso on"]
    );
    quotes(&finding, "tcp-segmentation-offload: off");
    quotes(&finding, "tcp-segmentation-offload: on");
    let row = report.stacked.iter().find(|row| row.name == "eth0.35.7").unwrap();
    let rows: Vec<_> = row.offloads.iter().map(|row| (row.feature, row.lost, row.device_can)).collect();
    assert!(rows.contains(&("tcp-segmentation-offload", true, Some(true))));
    assert!(rows.contains(&("tx-checksumming", false, Some(true))));
    assert!(rows.contains(&("rx-checksumming", true, None)));
}

#[test]
fn nothing_lost_that_the_driver_cannot_do_or_a_vlan_device_never_has() {
    let healthy = with(&[("rx-checksumming", "off [fixed]"), ("generic-receive-offload", "off")]);
    let text = qinq("Linux 6.12.9")
        + &driver("eth0", "igb")
        + &features("eth0", &ON)
        + &features("eth0.35", &healthy)
        + &features("eth0.35.7", &healthy);
    came_to(&text, "offload-lost", Outcome::Clear);
    // tg3 has neither checksums nor TSO behind two tags.
    let none = with(&[("tx-checksumming", "off"), ("tcp-segmentation-offload", "off")]);
    let text = qinq("Linux 6.12.9")
        + &driver("eth0", "tg3")
        + &features("eth0", &ON)
        + &features("eth0.35", &ON)
        + &features("eth0.35.7", &none);
    came_to(&text, "offload-lost", Outcome::Clear);
}

#[test]
fn an_unknown_driver_makes_it_a_remark_and_fixed_features_get_no_command() {
    let lost = with(&[("tcp-segmentation-offload", "off [fixed]")]);
    let base = qinq("Linux 6.12.9")
        + &features("eth0", &ON)
        + &features("eth0.35", &ON)
        + &features("eth0.35.7", &lost);
    let finding = one(&base, "offload-lost");
    assert_eq!((finding.severity, finding.remedies.len()), (Severity::Info, 0));
    let finding = one(&(base + &driver("eth0", "igb")), "offload-lost");
    assert_eq!((finding.severity, commands(&finding, System::Linux).len()), (Severity::Warning, 0));
    offers(&finding, "Offloads { fixed: true }");
}

#[test]
fn offloads_that_were_not_read() {
    let report = report(&(qinq("Linux 6.12.9") + &features("eth0.35", &ON)));
    insufficient(&report, "offload-lost", &["ethtool -k eth0", "ethtool -k eth0.35.7"]);
}

#[test]
fn a_logged_partial_checksum() {
    let log = "$ dmesg\n[ 1234.567890] ixgbe 0000:04:00.0 eth0: partial checksum but proto=8100!\n";
    let finding = weighed(&(qinq("Linux 3.10.103") + log), "checksum-double-tag", GRAVE);
    quotes(&finding, "partial checksum but proto=8100");
    assert_eq!(commands(&finding, System::Linux), ["ethtool -K eth0.35.7 tx off"]);
    // The line alone, with nothing stacked in the text.
    let alone = one(log, "checksum-double-tag");
    assert_eq!((weight(&alone), commands(&alone, System::Linux).len()), (LIMITS, 0));
}

#[test]
fn an_old_kernel_with_two_tags() {
    let finding = one(&qinq("Linux 3.10.103"), "checksum-double-tag");
    assert_eq!(about(&finding), (MAYBE, "eth0.35.7"));
    quotes(&finding, "Linux 3.10.103");
    came_to(&qinq("Linux 3.19.0"), "checksum-double-tag", Outcome::Clear);
    let soft = qinq("Linux 3.10.103") + &features("eth0.35.7", &with(&[("tx-checksumming", "off")]));
    came_to(&soft, "checksum-double-tag", Outcome::Clear);
    let unknown = qinq("Linux 6.12.9").replacen("$ uname -sr\nLinux 6.12.9\n", "", 1);
    insufficient(&unknown, "checksum-double-tag", &["uname -r"]);
    let single = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35)]).replacen("6.12.9", "3.10.103", 1);
    came_to(&single, "checksum-double-tag", Outcome::DoesNotApply);
}

#[test]
fn receive_offload_off() {
    let off = with(&[("generic-receive-offload", "off")]);
    let finding = one(&(driver("eth0", "igb") + &features("eth0", &off)), "gro-off");
    assert_eq!(
        (weight(&finding), commands(&finding, System::Linux)),
        (CALM, vec!["ethtool -K eth0 gro on".to_owned()])
    );
    quotes(&finding, "generic-receive-offload: off");
    came_to(&features("eth0", &ON), "gro-off", Outcome::Clear);
    let lro = [("large-receive-offload", "on"), ("generic-receive-offload", "off")];
    came_to(&features("eth0", &lro), "gro-off", Outcome::Clear);
    insufficient(&driver("eth0", "igb"), "gro-off", &["ethtool -k eth0"]);

    let pppoe = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35), ("ppp0", 1492, "ppp")])
        + SESSION
        + &features("eth0", &off);
    let finding = one(&pppoe, "gro-off");
    states(&finding, "GroPppoe");
}

#[test]
fn vlans_that_lost_the_same_are_one_finding() {
    let lost = with(&[("tcp-segmentation-offload", "off")]);
    let text = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35), ("eth0.36@eth0", 1500, Q35)])
        + &driver("eth0", "igb")
        + &features("eth0", &ON)
        + &features("eth0.35", &lost)
        + &features("eth0.36", &lost);
    let finding = one(&text, "offload-lost");
    states(&finding, r#"SameFor { names: ["eth0.36"] }"#);
    assert_eq!(commands(&finding, System::Linux), ["ethtool -K eth0.35 tso on", "ethtool -K eth0.36 tso on"]);
}
