//! `ethtool -S`: what a counter means, and how samples of counters come together. Texts are made up; names are the
//! drivers' own.

use crate::{read, read_all};
use rxlane_host::statistics::{Meaning, What, drivers_with, meaning};
use rxlane_host::{Counter, Delta, Interface, Snapshot};
use std::collections::BTreeMap;

fn unnamed(text: &str) -> Interface {
    read(text).interface("").expect("counters").clone()
}

fn packets(interface: &Interface) -> Vec<(u32, Option<u64>)> {
    interface.queues.iter().map(|(&n, queue)| (n, queue.packets.as_ref().map(Counter::value))).collect()
}

fn counter(interface: &Interface, queue: u32) -> &Counter {
    interface.queues.get(&queue).and_then(|queue| queue.packets.as_ref()).expect("counted")
}

fn values(counters: &BTreeMap<String, Counter>) -> Vec<(&str, u64)> {
    counters.iter().map(|(name, counter)| (name.as_str(), counter.value())).collect()
}

#[test]
fn a_sum_that_is_cut_off_is_no_second_sample() {
    let full = "NIC statistics:\n     [0]: rx_ucast_packets: 10\n     [0]: rx_mcast_packets: 20\n     \
                [0]: rx_bcast_packets: 30\n";
    let interface =
        unnamed(&format!("{full}# sample 2 at 3\nNIC statistics:\n     [0]: rx_ucast_packets: 12\n"));
    assert_eq!((counter(&interface, 0).value(), counter(&interface, 0).delta()), (60, Delta::OneSample));
    // The cut one first: its unicast frames are all that it tells, until the whole output stands.
    let cut = "NIC statistics:\n     [0]: rx_ucast_packets: 8\n";
    assert_eq!(packets(&unnamed(cut)), [(0, Some(8))]);
    let interface = unnamed(&format!("{cut}# sample 2 at 3\n{full}"));
    assert_eq!((counter(&interface, 0).first(), counter(&interface, 0).delta()), (60, Delta::OneSample));
    // One queue cut off among others.
    let interface = unnamed(&format!("{full}     [1]: rx_ucast_packets: 12\n"));
    assert_eq!(packets(&interface), [(0, Some(60))]);
    // Without the unicast frames nothing is known of the queue's frames.
    let snapshot = read("     [0]: rx_mcast_packets: 20\n");
    assert!(snapshot.interfaces.iter().all(|interface| interface.queues.is_empty()));
}

#[test]
fn a_truncated_second_sample_leaves_the_rest_at_one() {
    let interface = unnamed(
        "rx_queue_0_packets: 10\nrx_queue_1_packets: 20\n# sample 2 at 3\nrx_queue_0_packets: 11\nrx_queue_1_pack",
    );
    assert_eq!(counter(&interface, 0).delta(), Delta::Counted(1));
    assert_eq!((counter(&interface, 1).value(), counter(&interface, 1).delta()), (20, Delta::OneSample));
}

#[test]
fn counters_belong_to_the_interface_of_the_prompt_and_quote_their_line() {
    let snapshot = read(
        "router:~# ethtool -S enp1s0 | grep rx_queue\n     rx_queue_0_packets: 5\n\
         router:~# ethtool -S enp2s0 | grep rx_queue\n     rx_queue_0_packets: 6\n",
    );
    let interface = snapshot.interface("enp2s0").expect("named");
    assert_eq!(packets(interface), [(0, Some(6))]);
    let quote = counter(interface, 0).quote();
    assert_eq!((quote.line, &*quote.text), (4, "rx_queue_0_packets: 6"));
    assert_eq!(packets(snapshot.interface("enp1s0").expect("named")), [(0, Some(5))]);
}

const NIC: &str = "NIC statistics:\n     rx_queue_0_packets: ";

/// First value and difference of the frames of queue 0.
fn frames(snapshot: &Snapshot, name: &str) -> Option<(u64, Delta)> {
    let counter = snapshot.interface(name)?.queues.get(&0)?.packets.as_ref()?;
    Some((counter.first(), counter.delta()))
}

#[test]
fn a_name_that_is_none_is_never_the_interface_before() {
    for asked in [
        "ethtool -S w\u{e4}n0",
        "ethtool -S averyverylongname0",
        "sudo ethtool --statistics eth0+",
        "ethtool -S eth0:1",
        "cat /sys/class/net/w\u{e4}n0/mtu",
        "ip -s link show dev w\u{e4}n0",
        "ifconfig w\u{e4}n0",
    ] {
        let snapshot = read(&format!("$ ethtool -S eth0\n{NIC}5\n$ {asked}\n{NIC}9\n"));
        assert_eq!(frames(&snapshot, "eth0"), Some((5, Delta::OneSample)), "{asked}");
        let names: Vec<&str> = snapshot.interfaces.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["eth0"], "{asked}");
        let is_noted = snapshot.unread.iter().any(|unread| unread.why == "interface name not understood");
        assert!(is_noted, "{asked}");
    }
    let snapshot = read(&format!("$ ethtool -S eth0\n{NIC}5\n$ ethtool -S 6in4-wan\n{NIC}9\n"));
    assert_eq!(frames(&snapshot, "6in4-wan"), Some((9, Delta::OneSample)));
    assert_eq!(frames(&snapshot, "eth0"), Some((5, Delta::OneSample)));
    let fields = "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n";
    let snapshot = read(&format!("$ ethtool eth0\n$ ethtool -n w\u{e4}n rx-flow-hash udp4\n{fields}"));
    assert!(snapshot.interfaces.iter().all(|one| one.hash_fields.is_empty()), "{:?}", snapshot.interfaces);
}

#[test]
fn outputs_of_a_loop_are_no_samples_of_one_interface() {
    for asked in [
        "$ for i in eth0 eth1; do ethtool -S $i; done",
        "root@router:~# for i in eth0 eth1; do ethtool -S \"$i\"; done",
        "$ ls /sys/class/net | xargs -n1 ethtool -S",
        "$ ethtool -S eth0; ethtool -S eth1",
        "$ ethtool -S $i",
        "$ ssh router ethtool -S eth0",
        "$ for i in eth0 eth1\n> do\n> ethtool -S $i\n> done",
    ] {
        let snapshot = read(&format!("$ ethtool -g eth9\n{asked}\n{NIC}5\n{NIC}9\n"));
        assert_eq!(frames(&snapshot, ""), Some((5, Delta::OneSample)), "{asked}");
        assert_eq!(frames(&snapshot, "eth9"), None, "{asked}");
        assert!(snapshot.unread.iter().any(|unread| unread.why.contains("a second time")), "{asked}");
        assert_eq!(snapshot.omitted, 1, "{asked}");
    }
    // Nobody sees where the second interface begins.
    let filtered =
        "$ for i in eth0 eth1; do ethtool -S $i | grep rx_; done\nrx_packets: 5\nrx_queue_0_packets: 9\n";
    assert_eq!(read(filtered).interfaces.len(), 0);
    // What the text names elsewhere may be either.
    let snapshot =
        read(&format!("Settings for eth1:\n\tPort: MII\n$ for i in a b; do ethtool -S $i; done\n{NIC}5\n"));
    assert_eq!(frames(&snapshot, "eth1"), None);
}

#[test]
fn a_second_sample_without_a_name_is_announced() {
    let one = (5, Delta::OneSample);
    let two = (5, Delta::Counted(4));
    assert_eq!(frames(&read(&format!("{NIC}5\n{NIC}9\n")), ""), Some(one));
    assert_eq!(frames(&read("rx_queue_0_packets: 5\nrx_queue_0_packets: 9\n"), ""), Some(one));
    assert_eq!(frames(&read(&format!("# sample 1 at 1\n{NIC}5\n# sample 2 at 4\n{NIC}9\n")), ""), Some(two));
    assert_eq!(frames(&read(&format!("$ ./counters\n{NIC}5\n$ ./counters\n{NIC}9\n")), ""), Some(two));
    assert_eq!(frames(&read(&format!("$ ./counters\n{NIC}5\n$ ./others\n{NIC}9\n")), ""), Some(one));
    assert_eq!(frames(&read(&format!("$ ethtool -S $i\n{NIC}5\n$ ethtool -S $i\n{NIC}9\n")), ""), Some(one));
    assert_eq!(frames(&read_all(&[&format!("{NIC}5\n"), &format!("{NIC}9\n")]), ""), Some(two));
    // With a name a repeated output is one.
    let named = format!("$ ethtool -S eth0; sleep 5; ethtool -S eth0\n{NIC}5\n{NIC}9\n");
    assert_eq!(frames(&read(&named), "eth0"), Some(two));
}

#[test]
fn totals_and_losses_are_told_apart() {
    let igc = unnamed(
        "NIC statistics:\n     rx_packets: 729954\n     rx_bytes: 867670928\n     rx_missed_errors: 3\n     \
         rx_no_buffer_count: 4\n     rx_long_length_errors: 5\n     rx_long_byte_count: 867670928\n     \
         rx_errors: 6\n",
    );
    assert_eq!(igc.totals.packets.as_ref().map(Counter::value), Some(729_954));
    assert_eq!(igc.totals.bytes.as_ref().map(Counter::value), Some(867_670_928));
    assert_eq!(values(&igc.totals.overflow), [("rx_missed_errors", 3), ("rx_no_buffer_count", 4)]);
    assert_eq!(values(&igc.totals.too_long), [("rx_long_length_errors", 5)]);

    let mlx5 = unnamed("rx_out_of_buffer: 1\nrx_discards_phy: 2\nrx_oversize_pkts_phy: 3\n");
    assert_eq!(values(&mlx5.totals.overflow), [("rx_discards_phy", 2), ("rx_out_of_buffer", 1)]);
    assert_eq!(values(&mlx5.totals.too_long), [("rx_oversize_pkts_phy", 3)]);

    let tg3 = unnamed("rx_ucast_packets: 1\nrx_mcast_packets: 2\nrx_bcast_packets: 3\nrxbds_empty: 4\n");
    assert_eq!(tg3.totals.packets.as_ref().map(Counter::value), Some(6));
    assert_eq!(tg3.driver.as_ref().map(|driver| driver.value.as_str()), Some("tg3"));

    let dpaa2 = unnamed("[hw] rx frames: 9\n[hw] rx nobuffer discards: 2\n");
    assert_eq!(values(&dpaa2.totals.overflow), [("[hw] rx nobuffer discards", 2)]);
}

#[test]
fn a_name_that_drivers_use_differently_waits_for_the_driver() {
    // Good frames over 1518 bytes to amd-xgbe, errors to bnx2x.
    let xgbe = unnamed("rx_oversize_packets: 7\nrx_vlan_packets: 1\nrx_buffer_unavailable: 0\n");
    assert!(xgbe.totals.too_long.is_empty());
    let other = unnamed("rx_oversize_packets: 7\n");
    assert_eq!(values(&other.totals.too_long), [("rx_oversize_packets", 7)]);
    // altera_tse counts frames of 64 bytes so, mana its 65th queue.
    assert_eq!(meaning("rx_64_bytes", None), Meaning::Other);
    assert_eq!(meaning("rx_64_bytes", Some("igb")), Meaning::Other);
    assert_eq!(meaning("rx_64_bytes", Some("mana")), Meaning::Queue { queue: 64, what: What::Bytes });
    assert_eq!(meaning("rx_3_bytes", None), Meaning::Queue { queue: 3, what: What::Bytes });
    assert_eq!(meaning("rx_dropped", None), Meaning::Other);
    assert_eq!(meaning("rx_dropped", Some("ice")), Meaning::Overflow);
}

#[test]
fn queues_of_veth_count_only_while_they_are_polled() {
    let text = |first: u64| {
        format!(
            "NIC statistics:\n     peer_ifindex: 4\n     rx_queue_0_xdp_packets: {first}\n     \
             rx_queue_0_drops: 0\n     rx_queue_1_xdp_packets: 0\n     rx_queue_1_drops: 0\n"
        )
    };
    assert_eq!(packets(&unnamed(&text(0))), [(0, None), (1, None)]);
    assert_eq!(packets(&unnamed(&text(7))), [(0, Some(7)), (1, Some(0))]);
    // To virtio_net it is a share of the frames.
    assert_eq!(meaning("rx_queue_0_xdp_packets", Some("virtio_net")), Meaning::Other);
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
fn outputs_of_two_devices_without_names_are_not_mixed() {
    let snapshot = read(
        "NIC statistics:\n     [0]: rx_ucast_packets: 5\n     rx_brb_discard: 0\n     rx_mf_tag_discard: 0\n\
         NIC statistics:\n     rx_bytes: 7\n     rx_ftq_discards: 0\n     rx_fw_discards: 0\n",
    );
    let interface = snapshot.interface("").expect("the first");
    assert_eq!(interface.driver.as_ref().map(|driver| driver.value.as_str()), Some("bnx2x"));
    assert_eq!(interface.totals.bytes, None);
    assert_eq!(snapshot.omitted, 1);
}

#[test]
fn a_freebsd_sysctl_is_none_of_ethtools() {
    let snapshot = read("NIC statistics:\n     rx_packets: 1\ndev.igb.0.queue0.rx_packets: 7\n");
    assert_eq!(snapshot.interface("").map(packets), Some(Vec::new()));
    assert_eq!(meaning("dev.igb.0.queue0.rx_packets", None), Meaning::Other);
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
