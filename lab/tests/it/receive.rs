//! What `igb` does by itself: which queue a frame lands on, what RPS makes of that, what XDP sees of tags.

use crate::{FLOWS, LONG, RATE, compiled, frames, is_even, is_on_first, land, newer, vectors};
use rxlane_lab::Guest;
use std::thread;
use std::time::{Duration, Instant};

const ALL: u64 = FLOWS as u64;

#[test]
#[ignore = "make nightly"]
fn igb_spreads_ip_behind_up_to_two_tags_and_puts_all_pppoe_on_one_queue() {
    let Some(guest) = newer() else { return };
    // The 82576 itself looks behind two tags in its double-VLAN mode only; the emulation always does.
    for encapsulation in ["none", "q:35", "ad:100,q:200"] {
        let landed = land(&guest, encapsulation).expect("landed");
        println!("{encapsulation}: queues {:?}", landed.queues);
        assert_eq!(landed.queues.iter().sum::<u64>(), ALL, "{encapsulation}: {landed:?}");
        assert!(is_even(&landed.queues, ALL), "{encapsulation}: {landed:?}");
        assert!(is_even(&landed.cpus, ALL), "{encapsulation}: {landed:?}");
    }
    for encapsulation in ["pppoe:1", "q:35,pppoe:1", "ad:100,q:200,pppoe:1"] {
        let landed = land(&guest, encapsulation).expect("landed");
        println!("{encapsulation}: queues {:?}", landed.queues);
        assert_eq!(landed.queues, [ALL, 0, 0, 0], "{encapsulation}");
        assert!(is_on_first(&landed.cpus, ALL), "{encapsulation}: {landed:?}");
    }
}

#[test]
#[ignore = "make nightly"]
fn rps_spreads_pppoe_after_the_queue() {
    let Some(guest) = newer() else { return };
    guest.sh("for queue in /sys/class/net/wan/queues/rx-*; do echo f >$queue/rps_cpus; done").expect("RPS");
    for encapsulation in ["pppoe:1", "q:35,pppoe:1", "ad:100,q:200,pppoe:1"] {
        let landed = land(&guest, encapsulation).expect("landed");
        println!("{encapsulation}: queues {:?}, CPUs {:?}", landed.queues, landed.cpus);
        assert_eq!(landed.queues, [ALL, 0, 0, 0], "{encapsulation}");
        assert!(is_even(&landed.cpus, ALL), "{encapsulation}: {landed:?}");
    }
}

#[test]
#[ignore = "make nightly"]
fn xdp_sees_no_outer_tag_while_the_adapter_strips_tags() {
    let Some(guest) = newer() else { return };
    if compiled(&guest, "tags").is_none() {
        return;
    }
    // Customer tag, service tag, PPPoE, anything else: what stands behind the MAC addresses.
    let cases = [
        ("q:35,pppoe:1", "on", [0, 0, ALL, 0]),
        ("q:35", "on", [0, 0, 0, ALL]),
        ("q:35,pppoe:1", "off", [ALL, 0, 0, 0]),
        ("q:35", "off", [ALL, 0, 0, 0]),
        ("ad:100,q:200", "off", [0, ALL, 0, 0]),
        ("pppoe:1", "off", [0, 0, ALL, 0]),
    ];
    let mut stripping = "";
    for (encapsulation, setting, expected) in cases {
        if stripping != setting {
            stripping = setting;
            guest
                .sh(&format!(
                    "bpftool net detach xdpdrv dev wan; rm -rf /sys/fs/bpf/tags; mkdir /sys/fs/bpf/tags; \
                     ethtool -K wan rxvlan {stripping}; \
                     bpftool prog loadall /tmp/tags.o /sys/fs/bpf/tags pinmaps /sys/fs/bpf/tags; \
                     bpftool net attach xdpdrv pinned /sys/fs/bpf/tags/tags dev wan"
                ))
                .expect("attached");
            guest.await_carrier("wan").expect("a carrier");
            vectors(&guest, "wan").expect("vectors");
        }
        let before = seen(&guest);
        guest
            .port("wan")
            .and_then(|port| port.inject(frames(&guest, "wan", encapsulation)?, RATE))
            .expect("injected");
        let start = Instant::now();
        let counted = loop {
            let counted: Vec<u64> =
                seen(&guest).iter().zip(&before).map(|(now, before)| now - before).collect();
            if counted.iter().sum::<u64>() >= ALL || start.elapsed() > LONG {
                break counted;
            }
            thread::sleep(Duration::from_millis(20));
        };
        println!("{encapsulation}, stripping {stripping}: {counted:?}");
        assert_eq!(counted, expected, "{encapsulation}, stripping {stripping}");
    }
}

/// The four numbers of the program `tags`.
fn seen(guest: &Guest) -> Vec<u64> {
    let text = guest.sh("bpftool -j map dump pinned /sys/fs/bpf/tags/SEEN").expect("the map");
    let entries: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |entry: &serde_json::Value| entry["formatted"]["value"].as_u64().expect("a number");
    entries.as_array().expect("entries").iter().map(number).collect()
}
