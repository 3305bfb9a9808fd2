//! `ethtool -S`: what a counter means, and the counters of every driver known (`statistics_drivers.txt`). What whole
//! outputs say: `texts/ethtool_statistics.txt`.

use crate::{read, read_all};
use rxlane_host::statistics::{Meaning, What, drivers_with, meaning};
use rxlane_host::{Counter, Delta, Snapshot};

#[test]
fn another_text_is_another_sample() {
    let texts = [5, 9].map(|count| format!("NIC statistics:\n     rx_queue_0_packets: {count}\n"));
    let snapshot = read_all(&[&texts[0], &texts[1]]);
    let queue = &snapshot.interface("").expect("counters").queues[&0];
    let packets = queue.packets.as_ref().expect("counted");
    assert_eq!((packets.first(), packets.delta()), (5, Delta::Counted(4)));
}

#[test]
fn a_name_that_drivers_use_differently_waits_for_the_driver() {
    for (name, driver, expected) in [
        // altera_tse counts frames of 64 bytes so, mana its 65th queue.
        ("rx_64_bytes", None, Meaning::Other),
        ("rx_64_bytes", Some("igb"), Meaning::Other),
        ("rx_64_bytes", Some("mana"), Meaning::Queue { queue: 64, what: What::Bytes }),
        ("rx_3_bytes", None, Meaning::Queue { queue: 3, what: What::Bytes }),
        ("rx_dropped", None, Meaning::Other),
        ("rx_dropped", Some("ice"), Meaning::Overflow),
        // To virtio_net it is a share of the frames.
        ("rx_queue_0_xdp_packets", Some("virtio_net"), Meaning::Other),
        ("dev.igb.0.queue0.rx_packets", None, Meaning::Other),
        // A queue has no leading zeros.
        ("rx_queue_3_packets", None, Meaning::Queue { queue: 3, what: What::Packets }),
        ("rx_queue_03_packets", None, Meaning::Other),
    ] {
        assert_eq!(meaning(name, driver), expected, "{name} of {driver:?}");
    }
}

#[test]
fn the_driver_is_named_where_the_names_prove_it() {
    assert_eq!(drivers_with(["rx_packets", "rx_smbus", "rx_header_split"]), Some("e1000e"));
    assert_eq!(drivers_with(["rx_smbus", "rx_csum_offload_errors", "alloc_rx_buff_failed"]), Some("e1000"));
    assert_eq!(drivers_with(["rx_packets", "rx_queue_0_packets"]), None);
    let r8169 = "tx_packets rx_packets tx_errors rx_errors rx_missed align_errors tx_single_collisions \
                 tx_multi_collisions unicast broadcast multicast tx_aborted tx_underrun";
    assert_eq!(drivers_with(r8169.split(' ')), Some("r8169"));
    let r8125 = ["tx_octets", "rx_mac_missed", "rx_tcam_dropped"];
    assert_eq!(drivers_with(r8169.split(' ').chain(r8125)), Some("r8125"));
}

#[test]
fn frame_sizes_and_priorities_are_never_queues() {
    const NAMES: &str = "port_rx_64 port_rx_65_to_127 port_rx_1024_to_15xx port.rx_size_64 rx_size_1522.nic \
        rx_64_bytes_phy rx_65_to_127_bytes_phy rx_8192_to_10239_bytes_phy rx_pkt_64 rx_size_64 rx_64 rx_64_packets \
        rx_64_bytes rx_64_pkts rx_frames_64 rx_frames_65_to_127 rx_64b_frames rx_1024b_1518b_frames \
        rx_64_byte_packets rx_65_to_127_octet_packets rx_64B_or_less_packets rx_64_octets rx_65_127_oct \
        mmc_rx_64_octets_gb frames_64_octets frames_rx_64b frames_rx_8192b_9215b mac.rx_pkts_64_octets \
        mac_rx_64_oct_pkt_num mac_rx_lt_127b_pkts rx_prio0_packets rx_prio_0_bytes rx_prio7_discards \
        veb.tc_0_rx_packets veb.tc_7_rx_bytes rx_pause_prio_0 rx_ppp0_frames rx_priority_0_xon.nic rx_pb_0_pxon \
        frames_rx_pri_0 rx_frames_prio_0 rx_octets_prio_0 xdp_queue_0_packets rx_queue_0_xdp_packets rx0_xdp_tx \
        rx0_xdp_packets tx_queue_0_packets tx-0.tx_packets tx0_packets queue_0_tx_cnt txq0_packets q0_tx_packets \
        cpu0_rx_packets vf_rx_packets rx_packets_phy rx_0_xdp_drop rx_queue_0_csum_err rxq0_errors rx_queue_0_kicks";
    for name in NAMES.split_whitespace() {
        assert_eq!(meaning(name, None), Meaning::Other, "{name}");
        for driver in
            ["igb", "i40e", "mlx5_core", "sfc", "bnx2x", "virtio_net", "ena", "hns3", "macb", "unheard-of"]
        {
            assert_eq!(meaning(name, Some(driver)), Meaning::Other, "{driver}: {name}");
        }
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let text: String = (0..5000).map(|n| format!("rx_queue_{n}_packets: 1\n")).collect();
    let snapshot = read(&text);
    assert_eq!(snapshot.interface("").map(|one| one.queues.len()), Some(Snapshot::QUEUES));
    assert_eq!(snapshot.omitted, 5000 - Snapshot::QUEUES as u64);
}

/// What a driver prints.
struct Case {
    driver: &'static str,
    /// Drops of the queues; `None` where the driver counts no frames by queue.
    drops: Option<Vec<u64>>,
    lines: Vec<&'static str>,
}

impl Case {
    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("     {line}\n")).collect()
    }
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let lines = include_str!("statistics_drivers.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(more) = line.strip_prefix("  ") {
            cases.last_mut().expect("a driver").lines.extend(more.split(';').map(str::trim));
            continue;
        }
        let (driver, drops) = line.split_once(':').expect("a driver");
        let numbers = drops.split_whitespace().map(|drops| drops.parse().expect("a number"));
        let drops = (drops.trim() != "totals").then(|| numbers.collect());
        cases.push(Case { driver, drops, lines: Vec::new() });
    }
    cases
}

#[test]
fn every_drivers_queues_are_found_and_nothing_else_is_one() {
    for case in cases() {
        for text in [format!("NIC statistics:\n{}", case.text()), case.text()] {
            let (driver, snapshot) = (case.driver, read(&text));
            let interface = snapshot.interface("").expect("counters");
            let queues = interface.queues.iter();
            let packets: Vec<_> =
                queues.map(|(&n, queue)| (n, queue.packets.as_ref().map(Counter::value))).collect();
            let drops = interface.queues.values().filter_map(|queue| Some(queue.drops.as_ref()?.value()));
            let drops: Vec<u64> = drops.collect();
            match &case.drops {
                Some(expected) => {
                    assert_eq!(packets, [(0, Some(5)), (1, Some(4))], "{driver}:\n{text}");
                    assert_eq!(&drops, expected, "{driver}:\n{text}");
                }
                // Without such counters there are totals and no queues.
                None => {
                    assert!(packets.is_empty(), "{driver}: {packets:?}");
                    assert_eq!(interface.totals.packets.as_ref().map(Counter::value), Some(9), "{driver}");
                }
            }
        }
    }
}

#[test]
fn a_second_output_is_the_second_sample_with_or_without_headings() {
    for case in cases().into_iter().filter(|case| case.drops.is_some()) {
        let (driver, first) = (case.driver, case.text());
        let later: String = first.lines().map(|line| format!("{}\n", hundred_more(line))).collect();
        for text in [
            format!("NIC statistics:\n{first}# sample 2 at 3.0\nNIC statistics:\n{later}"),
            format!("{first}# sample 2 at 3.0\n{later}"),
            format!("$ ethtool -S eth0\n{first}$ ethtool -S eth0\n{later}"),
        ] {
            for queue in read(&text).interfaces.first().expect("one").queues.values() {
                let delta = queue.packets.as_ref().expect("counted").delta();
                // A sum has three parts.
                let is_right = matches!(delta, Delta::Counted(100 | 300));
                assert!(is_right, "{driver}: {delta:?}\n{text}");
            }
        }
    }
}

fn hundred_more(line: &str) -> String {
    let (name, value) = line.rsplit_once(':').expect("a counter");
    // A heading's value is the number of the queue.
    let more = if name.ends_with('#') { 0 } else { 100 };
    format!("{name}: {}", value.trim().parse::<u64>().expect("a number") + more)
}
