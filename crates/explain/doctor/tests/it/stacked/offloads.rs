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
    let now = |name| changed.iter().find(|(other, _)| *other == name).map(|(_, state)| *state);
    ON.iter().map(|&(name, state)| (name, now(name).unwrap_or(state))).collect()
}

/// Two tags, on a kernel.
fn qinq(kernel: &str) -> String {
    two_tags().replacen("Linux 6.12.9", kernel, 1)
}

/// Features of the device, of its VLAN, and of the VLAN within.
fn three(device: &[(&str, &str)], outer: &[(&str, &str)], inner: &[(&str, &str)]) -> String {
    features("eth0", device) + &features("eth0.35", outer) + &features("eth0.35.7", inner)
}

#[test]
fn offloads_lost_behind_tags() {
    let id = "offload-lost";
    let qinq = qinq("Linux 6.12.9");
    let with_driver = |name| qinq.clone() + &driver("eth0", name);
    let lost = with(&[
        ("rx-checksumming", "off [fixed]"),
        ("tcp-segmentation-offload", "off"),
        ("generic-segmentation-offload", "off"),
    ]);
    let healthy = with(&[("rx-checksumming", "off [fixed]"), ("generic-receive-offload", "off")]);
    let none = with(&[("tx-checksumming", "off"), ("tcp-segmentation-offload", "off")]);
    let fixed = three(&ON, &ON, &with(&[("tcp-segmentation-offload", "off [fixed]")]));
    let no_tso = with(&[("tcp-segmentation-offload", "off")]);
    let two_vlans = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35), ("eth0.36@eth0", 1500, Q35)])
        + &driver("eth0", "igb")
        + &features("eth0", &ON)
        + &features("eth0.35", &no_tso)
        + &features("eth0.36", &no_tso);
    let igb = with_driver("igb") + &three(&ON, &ON, &lost);
    all_answer(&[
        (
            &igb,
            id,
            LIMITS,
            &[
                "=on eth0.35.7",
                r#"can: ["tcp-segmentation-offload"], tags: Some(2)"#,
                "=Linux: ethtool -K eth0.35.7 tso on && ethtool -K eth0.35.7 gso on",
                "tcp-segmentation-offload: off",
                "tcp-segmentation-offload: on",
            ],
        ),
        // What a VLAN device never has is not lost, nor what the driver cannot do: tg3 has neither checksums nor TSO
        // behind two tags.
        (&(with_driver("igb") + &three(&ON, &healthy, &healthy)), id, CLEAR, &[]),
        (&(with_driver("tg3") + &three(&ON, &ON, &none)), id, CLEAR, &[]),
        // An unknown driver makes it a remark, and fixed features get no command.
        (&(qinq.clone() + &fixed), id, CALM, &["=remedies: 0"]),
        (&(with_driver("igb") + &fixed), id, LIMITS, &["=Linux: ", "offers Offloads { fixed: true }"]),
        (
            &(qinq.clone() + &features("eth0.35", &ON)),
            id,
            LACKS,
            &["ethtool -k eth0", "ethtool -k eth0.35.7"],
        ),
        // VLANs that lost the same are one finding.
        (
            &two_vlans,
            id,
            LIMITS,
            &[
                r#"SameFor { names: ["eth0.36"] }"#,
                "=Linux: ethtool -K eth0.35 tso on && ethtool -K eth0.36 tso on",
            ],
        ),
    ]);
    let report = report(&igb);
    let row = report.stacked.iter().find(|row| row.name == "eth0.35.7").unwrap();
    let rows: Vec<_> = row.offloads.iter().map(|row| (row.feature, row.lost, row.device_can)).collect();
    for expected in [
        ("tcp-segmentation-offload", true, Some(true)),
        ("tx-checksumming", false, Some(true)),
        ("rx-checksumming", true, None),
    ] {
        assert!(rows.contains(&expected), "{expected:?}: {rows:?}");
    }
}

#[test]
fn checksums_behind_two_tags() {
    let id = "checksum-double-tag";
    let log = "$ dmesg\n[ 1234.567890] ixgbe 0000:04:00.0 eth0: partial checksum but proto=8100!\n";
    let old = qinq("Linux 3.10.103");
    let soft = features("eth0.35.7", &with(&[("tx-checksumming", "off")]));
    let unknown = qinq("Linux 6.12.9").replacen("$ uname -sr\nLinux 6.12.9\n", "", 1);
    let single = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35)]).replacen("6.12.9", "3.10.103", 1);
    all_answer(&[
        (
            &(old.clone() + log),
            id,
            GRAVE,
            &["partial checksum but proto=8100", "=Linux: ethtool -K eth0.35.7 tx off"],
        ),
        // The line alone, with nothing stacked in the text.
        (log, id, LIMITS, &["=Linux: "]),
        (&old, id, MAYBE, &["=on eth0.35.7", "Linux 3.10.103"]),
        (&qinq("Linux 3.19.0"), id, CLEAR, &[]),
        (&(old.clone() + &soft), id, CLEAR, &[]),
        (&unknown, id, LACKS, &["uname -r"]),
        (&single, id, NOT_HERE, &[]),
    ]);
}

const KERNEL_7: &str =
    "$ uname -a\nLinux gw 7.3.4+deb13-amd64 #1 SMP PREEMPT_DYNAMIC Debian x86_64 GNU/Linux\n";
const SYMBOL: &str = "root@OpenWrt:~# grep pppoe_gro /proc/kallsyms\n80601420 t pppoe_gro_receive\t[pppoe]\n";
const TYPES: &str = "[128123] FUNC 'pppoe_gro_receive' type_id=128122 linkage=static\n";

#[test]
fn receive_offload_off() {
    let id = "gro-off";
    let off = features("eth0", &with(&[("generic-receive-offload", "off")]));
    let lro = features("eth0", &[("large-receive-offload", "on"), ("generic-receive-offload", "off")]);
    let pppoe = links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35), ("ppp0", 1492, "ppp")]) + SESSION;
    all_answer(&[
        (
            &(driver("eth0", "igb") + &off),
            id,
            CALM,
            &["=Linux: ethtool -K eth0 gro on", "generic-receive-offload: off"],
        ),
        (&features("eth0", &ON), id, CLEAR, &[]),
        (&lro, id, CLEAR, &[]),
        (&driver("eth0", "igb"), id, LACKS, &["ethtool -k eth0"]),
        (&(pppoe.replace("Linux 6.12.9", "Linux") + &off), id, CALM, &["PppoeGro(None)", "!GroPppoe"]),
        (
            &(pppoe.clone() + &off),
            id,
            CALM,
            &["GroPppoe", "coalesces: false, basis: Release", "Linux 6.12.9"],
        ),
        (
            &(pppoe.clone() + &off + KERNEL_7),
            id,
            CALM,
            &["coalesces: true, basis: Release", "Gro { pppoe: true }"],
        ),
        (
            &(pppoe.clone() + &off + SYMBOL),
            id,
            CALM,
            &["coalesces: true, basis: Kallsyms", "pppoe_gro_receive"],
        ),
        (&(pppoe + &off + TYPES), id, CALM, &["coalesces: true, basis: Btf"]),
    ]);
}
