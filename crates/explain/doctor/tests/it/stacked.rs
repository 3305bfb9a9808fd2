//! Rules and rows about VLAN, QinQ and PPPoE interfaces. The fixtures follow the layout of iproute2 6.x
//! (`ip -d link`), ethtool 6.x and the kernel's `/proc/net/pppoe` (drivers/net/ppp/pppoe.c, pppoe_seq_show); their
//! values are made up.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod frame_size;
mod offloads;
mod xdp;

use crate::findings::*;
use rxlane_doctor::Report;
use std::fmt::Write;

/// A VLAN in a VLAN.
fn two_tags() -> String {
    links(&[("eth0", 1500, ""), ("eth0.35@eth0", 1500, Q35), ("eth0.35.7@eth0.35", 1500, Q7)])
}

/// `ethtool -k` with the features named, all of them of the groups that matter here.
fn features(name: &str, features: &[(&str, &str)]) -> String {
    let mut text = format!("$ ethtool -k {name}\nFeatures for {name}:\n");
    for (feature, state) in features {
        writeln!(text, "{feature}: {state}").unwrap();
    }
    text
}

/// One PPPoE session of the kernel on a VLAN device.
const SESSION: &str =
    "$ cat /proc/net/pppoe\nId       Address              Device\n00000001 02:00:00:00:00:02  eth0.35\n";
