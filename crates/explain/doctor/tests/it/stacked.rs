//! Rules and rows about VLAN, QinQ and PPPoE interfaces. The fixtures follow the layout of iproute2 6.x
//! (`ip -d link`), ethtool 6.x and the kernel's `/proc/net/pppoe` (drivers/net/ppp/pppoe.c, pppoe_seq_show); their
//! values are made up.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod frame_size;
mod offloads;
mod xdp;

use crate::findings::{commands, offers, one, outcome, quotes, report, states, weight};
use host::System;
use rxlane_doctor::Report;
use rxlane_doctor::finding::{Certainty, Finding, Severity};
use rxlane_doctor::report::Outcome;
use std::fmt::Write;

/// The findings of that id.
fn found(report: &Report, id: &str) -> Vec<Finding> {
    report.findings.iter().filter(|finding| finding.id == id).cloned().collect()
}

/// An interface in `ip -d link`.
fn link(text: &mut String, name: &str, mtu: u32, kind: &str) {
    let number = text.lines().count() + 2;
    let (layer, most) = if kind == "ppp" {
        ("link/ppp ", 65_535)
    } else {
        ("link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff", 9216)
    };
    writeln!(
        text,
        "{number}: {name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc mq state UP mode DEFAULT group default qlen 1000\n    \
         {layer} promiscuity 0 allmulti 0 minmtu 68 maxmtu {most} \n    {kind} addrgenmode eui64 numtxqueues 4 numrxqueues 4 \
         gso_max_size 65536 gso_max_segs 65535"
    )
    .unwrap();
}

/// `ip -d link` of a device and what stands on it.
fn links(interfaces: &[(&str, u32, &str)]) -> String {
    let mut text = "$ uname -sr\nLinux 6.12.9\n$ ip -d -s link\n".to_owned();
    for (name, mtu, kind) in interfaces {
        link(&mut text, name, *mtu, kind);
    }
    text
}

/// `ethtool -i`.
fn driver(name: &str, driver: &str) -> String {
    format!(
        "$ ethtool -i {name}\ndriver: {driver}\nversion: 6.12.9\nfirmware-version: 1.63\nexpansion-rom-version: \n\
         bus-info: 0000:01:00.0\nsupports-statistics: yes\nsupports-test: yes\nsupports-eeprom-access: yes\n\
         supports-register-dump: yes\nsupports-priv-flags: yes\n"
    )
}

/// `ethtool -k` with the features named, all of them of the groups that matter here.
fn features(name: &str, features: &[(&str, &str)]) -> String {
    let mut text = format!("$ ethtool -k {name}\nFeatures for {name}:\n");
    for (feature, state) in features {
        writeln!(text, "{feature}: {state}").unwrap();
    }
    text
}

/// `ethtool -S`.
fn statistics(name: &str, counters: &[(&str, u64)]) -> String {
    let mut text = format!("$ ethtool -S {name}\nNIC statistics:\n");
    for (counter, value) in counters {
        writeln!(text, "     {counter}: {value}").unwrap();
    }
    text
}

const Q35: &str = "vlan protocol 802.1Q id 35 <REORDER_HDR>";
const AD100: &str = "vlan protocol 802.1ad id 100 <REORDER_HDR>";
/// One PPPoE session of the kernel on a VLAN device.
const SESSION: &str =
    "$ cat /proc/net/pppoe\nId       Address              Device\n00000001 02:00:00:00:00:02  eth0.35\n";
