//! `ethtool -S` of every driver known, two queues each (or none that it counts). Names are as the driver's source
//! prints them (Linux 6.1 where the tables say nothing else), values are made up: frames of the queues are 5 and 4,
//! whatever is no frame of a receive queue is 7 or 70.

use rxlane_host::text::Reader;
use rxlane_host::{Counter, Delta, Interface, Snapshot};

fn read(text: &str) -> Snapshot {
    let mut reader = Reader::new();
    reader.read("paste", text.as_bytes()).expect("memory");
    reader.finish()
}

/// A driver, lines that it prints (separated by semicolons), drops of the queues.
type Case = (&'static str, &'static str, &'static [u64]);

/// Drivers with counters of receive queues.
const QUEUES: &[Case] = &[
    (
        "igb",
        "rx_packets: 9; rx_long_byte_count: 70; tx_queue_0_packets: 70; rx_queue_0_packets: 5; rx_queue_0_bytes: 70; \
         rx_queue_0_drops: 2; rx_queue_0_csum_err: 7; rx_queue_0_alloc_failed: 7; rx_queue_1_packets: 4; \
         rx_queue_1_drops: 0",
        &[2, 0],
    ),
    (
        "igc",
        "tx_queue_0_packets: 70; rx_queue_0_packets: 5; rx_queue_1_packets: 4; rx_queue_1_drops: 3",
        &[3],
    ),
    (
        "ixgbe",
        "rx_packets: 9; rx_pkts_nic: 9; rx_pb_0_pxon: 7; rx_queue_0_packets: 5; rx_queue_0_bytes: 7; \
         rx_queue_1_packets: 4",
        &[],
    ),
    (
        "i40e",
        "rx-0.packets: 5; rx-0.bytes: 7; tx-0.packets: 70; rx-1.packets: 4; veb.tc_0_rx_packets: 7; \
         port.rx_size_64: 7; port.rx_priority_0_xon: 7",
        &[],
    ),
    (
        "i40e before 4.20",
        "tx-0.tx_packets: 70; rx-0.rx_packets: 5; rx-0.rx_bytes: 7; rx-1.rx_packets: 4",
        &[],
    ),
    ("iavf", "rx_bytes: 9; rx_unicast: 9; rx-0.packets: 5; rx-0.bytes: 7; rx-1.packets: 4", &[]),
    (
        "ice",
        "rx_queue_0_packets: 5; rx_queue_0_bytes: 7; rx_queue_1_packets: 4; rx_priority_0_xon.nic: 7; \
         rx_size_64.nic: 7; rx_size_127.nic: 7",
        &[],
    ),
    (
        "idpf",
        "rx_q-0_pkts: 5; rx_q-0_bytes: 7; rx_q-0_rx_gro_hw_pkts: 7; tx_q-0_pkts: 70; rx_q-1_pkts: 4",
        &[],
    ),
    (
        "fm10k",
        "tx_queue_0_packets: 70; rx_queue_0_packets: 5; rx_queue_0_bytes: 7; rx_queue_1_packets: 4",
        &[],
    ),
    (
        "bnx2x",
        "[0]: rx_bytes: 7; [0]: rx_ucast_packets: 3; [0]: rx_mcast_packets: 1; [0]: rx_bcast_packets: 1; \
         [0]: rx_discards: 6; [0]: tx_ucast_packets: 70; [0]: tpa_aggregated_frames: 70; [1]: rx_ucast_packets: 2; \
         [1]: rx_mcast_packets: 2; [1]: rx_bcast_packets: 0; [1]: rx_discards: 0; rx_ucast_packets: 5; \
         tx_64_byte_packets: 7",
        &[6, 0],
    ),
    (
        "bnxt_en",
        "[0]: rx_ucast_packets: 3; [0]: rx_mcast_packets: 1; [0]: rx_bcast_packets: 1; [0]: rx_discards: 6; \
         [0]: rx_ucast_bytes: 7; [0]: tx_ucast_packets: 70; [0]: rx_tpa_pkt: 7; [1]: rx_ucast_packets: 4; \
         [1]: rx_mcast_packets: 0; [1]: rx_bcast_packets: 0; [1]: rx_discards: 1; rx_64b_frames: 7; \
         rx_65b_127b_frames: 7",
        &[6, 1],
    ),
    (
        "mlx4_en",
        "rx_packets: 9; rx_prio_0_packets: 7; rx_prio_1_bytes: 7; tx0_packets: 70; rx0_packets: 5; rx0_bytes: 7; \
         rx0_dropped: 1; rx0_xdp_drop: 7; rx1_packets: 4; rx1_dropped: 0",
        &[1, 0],
    ),
    (
        "mlx5_core",
        "rx_packets: 9; rx_64_bytes_phy: 7; rx_65_to_127_bytes_phy: 7; rx_prio0_packets: 7; rx_prio0_buf_discard: 7; \
         ch0_poll: 7; rx0_packets: 5; rx0_bytes: 7; rx0_xdp_drop: 7; rx0_lro_packets: 7; rx0_cqe_compress_pkts: 7; \
         rx0_removed_vlan_packets: 7; rx0_xsk_packets: 7; rx1_packets: 4; tx0_packets: 70; ptp_rq0_packets: 7",
        &[],
    ),
    (
        "be2net",
        "rx_drops_mtu: 0; rxq0: rx_bytes: 7; rxq0: rx_pkts: 5; rxq0: rx_mcast_pkts: 2; rxq0: rx_compl: 7; \
         rxq0: rx_drops_no_skbs: 1; rxq0: rx_drops_no_frags: 2; rxq1: rx_pkts: 4; rxq1: rx_drops_no_frags: 0; \
         txq0: tx_pkts: 70",
        &[3, 0],
    ),
    (
        "sfc",
        "port_rx_packets: 9; port_rx_64: 7; port_rx_65_to_127: 7; port_rx_1024_to_15xx: 7; tx-0.tx_packets: 70; \
         rx-0.rx_packets: 5; rx-1.rx_packets: 4; tx-xdp-cpu-0.tx_packets: 7",
        &[],
    ),
    (
        "qede",
        "0: rcv_pkts: 5; 0: rx_hw_errors: 7; 0_0: xmit_pkts: 70; 1: rcv_pkts: 4; rx_64_byte_packets: 7",
        &[],
    ),
    (
        "nfp",
        "rvec_0_rx_pkts: 5; rvec_0_tx_pkts: 70; rvec_1_rx_pkts: 4; rxq_0_pkts: 5; rxq_0_bytes: 7; rxq_1_pkts: 4; \
         txq_0_pkts: 70; mac.rx_pkts_64_octets: 7",
        &[],
    ),
    (
        "ionic",
        "tx_0_pkts: 70; rx_0_pkts: 5; rx_0_bytes: 7; rx_0_csum_none: 7; rx_1_pkts: 4; frames_rx_64b: 7; \
         frames_rx_pri_0: 7",
        &[],
    ),
    (
        "hns3",
        "txq0_packets: 70; rxq0_packets: 5; rxq0_bytes: 7; rxq0_seg_pkt_cnt: 7; rxq1_packets: 4; \
         mac_rx_64_oct_pkt_num: 7; mac_rx_pfc_pri0_pkt_num: 7",
        &[],
    ),
    (
        "hns",
        "rx_ring0_rcb_pkt_num: 7; rx_ring0_ppe_pkt_num: 7; rx_ring0_pkt_num: 5; rx_ring0_bytes: 7; \
         rx_ring0_seg_pkt: 7; rx_ring1_pkt_num: 4",
        &[],
    ),
    ("hinic", "rxq0_pkts: 5; rxq0_bytes: 7; rxq1_pkts: 4; txq0_pkts: 70", &[]),
    ("bna", "rxf0_ucast: 7; rxq0_packets: 5; rxq0_packets_with_error: 7; rxq1_packets: 4", &[]),
    ("funeth", "rx_pkts[0]: 5; rx_bytes[0]: 7; rx_pkts[1]: 4; rx_pkts: 9; tx_pkts[0]: 70", &[]),
    (
        "LiquidIO",
        "tx-0-packets: 70; rx-0-packets: 5; rx-0-bytes: 7; rx-0-dropped_nomem: 1; rx-0-fw_pkts_received: 7; \
         rx-1-packets: 4; rx-1-dropped_nomem: 0",
        &[1, 0],
    ),
    (
        "rvu-nicpf",
        "rxq0: bytes: 7; rxq0: frames: 5; rxq1: bytes: 7; rxq1: frames: 4; txq0: frames: 70; cgx_rxstat0: : 7",
        &[],
    ),
    ("nicvf", "rx_frames_64: 7; rxq0: bytes: 7; rxq0: frames: 5; rxq1: frames: 4; bgx_rxstat0: : 7", &[]),
    (
        // Frames that XDP dropped are no loss of the ring: 3 - 2.
        "virtio_net",
        "rx_queue_0_packets: 5; rx_queue_0_bytes: 7; rx_queue_0_drops: 3; rx_queue_0_xdp_packets: 7; \
         rx_queue_0_xdp_drops: 2; rx_queue_0_kicks: 1; rx_queue_1_packets: 4; rx_queue_1_drops: 0; \
         rx_queue_1_xdp_drops: 0; tx_queue_0_packets: 70",
        &[1, 0],
    ),
    (
        "virtio_net since 6.9",
        "rx0_packets: 5; rx0_bytes: 7; rx0_drops: 0; rx0_xdp_packets: 7; rx0_hw_packets: 7; \
         rx0_hw_drop_overruns: 2; rx1_packets: 4; rx1_drops: 0; rx1_hw_drop_overruns: 0; tx0_packets: 70",
        &[2, 0],
    ),
    (
        "vmxnet3",
        "Tx Queue#: 0;   ucast pkts tx: 70;   ring full: 7; Rx Queue#: 0;   LRO pkts rx: 7;   ucast pkts rx: 3; \
         ucast bytes rx: 7;   mcast pkts rx: 1;   bcast pkts rx: 1;   pkts rx OOB: 2;   pkts rx err: 7; \
         drv dropped rx total: 7;      err: 0;      fcs: 0;   rx buf alloc fail: 7; Rx Queue#: 1; \
         ucast pkts rx: 4;   mcast pkts rx: 0;   bcast pkts rx: 0;   pkts rx OOB: 0; tx timeout count: 0",
        &[2, 0],
    ),
    (
        "ena",
        "queue_0_tx_cnt: 70; queue_0_rx_cnt: 5; queue_0_rx_bytes: 7; queue_0_rx_rx_copybreak_pkt: 7; \
         queue_0_rx_empty_rx_ring: 7; queue_1_rx_cnt: 4",
        &[],
    ),
    (
        "gve",
        "rx_packets: 9; rx_posted_desc[0]: 7; rx_completed_desc[0]: 5; rx_bytes[0]: 7; rx_queue_drop_cnt[0]: 7; \
         rx_no_buffers_posted[0]: 2; rx_completed_desc[1]: 4; rx_no_buffers_posted[1]: 0; tx_completed_desc[0]: 70",
        &[2, 0],
    ),
    ("mana", "hc_rx_bytes: 9; rx_0_packets: 5; rx_0_xdp_drop: 7; rx_1_packets: 4; tx_0_packets: 70", &[]),
    (
        "hv_netvsc",
        "vf_rx_packets: 7; rx_queue_0_packets: 5; rx_queue_0_bytes: 7; rx_queue_0_xdp_drop: 7; \
         rx_queue_1_packets: 4; cpu0_rx_packets: 7; cpu0_vf_rx_packets: 7",
        &[],
    ),
    ("ibmvnic", "rx0_packets: 5; rx0_interrupts: 7; rx1_packets: 4; tx0_dropped_packets: 70", &[]),
    (
        "atlantic",
        "InPackets: 9; InUCast: 9; InDroppedDma: 1; Queue[0] InPackets: 5; Queue[0] InJumboPackets: 7; \
         Queue[0] InLroPackets: 7; Queue[0] InErrors: 7; Queue[0] OutPackets: 70; TC0 Queue[1] InPackets: 4; \
         PTP Queue[8] InPackets: 7",
        &[],
    ),
    (
        "st_gmac",
        "mmc_rx_framecount_gb: 9; mmc_rx_64_octets_gb: 7; mmc_rx_65_to_127_octets_gb: 7; ipv4_pkt_rcvd: 7; \
         rx_pkt_n: 9; q0_tx_pkt_n: 70; q0_rx_pkt_n: 5; q0_rx_irq_n: 7; q1_rx_pkt_n: 4",
        &[],
    ),
    (
        "macb",
        "rx_octets: 9; rx_frames: 9; rx_64_byte_frames: 7; rx_65_127_byte_frames: 7; q0_rx_packets: 5; \
         q0_rx_bytes: 7; q0_rx_dropped: 7; q0_tx_packets: 70; q1_rx_packets: 4",
        &[],
    ),
    (
        "mvpp2",
        "frames_64_octets: 7; frames_65_to_127_octet: 7; txq_0_desc_enqueue: 70; rxq_0_desc_enqueue: 5; \
         rxq_0_queue_full_drops: 1; rxq_0_packets_early_drops: 2; rxq_0_packets_bm_drops: 3; \
         rxq_1_desc_enqueue: 4; rxq_1_queue_full_drops: 0",
        &[6, 0],
    ),
    (
        "fsl_dpa",
        "interrupts [CPU 0]: 7; rx packets [CPU 0]: 5; rx packets [CPU 1]: 4; rx packets [TOTAL]: 9; \
         tx packets [CPU 0]: 70; rx dropped [CPU 0]: 7",
        &[],
    ),
    (
        "fsl_enetc",
        "Rx ring  0 discarded frames: 2; Rx ring  1 discarded frames: 0; Tx ring  0 frames: 70; \
         Rx ring  0 frames: 5; Rx ring  0 alloc errors: 7; Rx ring  1 frames: 4",
        &[2, 0],
    ),
    ("bcmgenet", "rx_64_octets: 7; rx_65_127_oct: 7; rxq0_packets: 5; rxq0_errors: 7; rxq1_packets: 4", &[]),
    (
        "amd-xgbe",
        "rx_packets: 9; rx_64_byte_packets: 7; rx_1024_to_max_byte_packets: 7; rxq_0_packets: 5; rxq_0_bytes: 7; \
         rxq_1_packets: 4; txq_0_packets: 70",
        &[],
    ),
    (
        "ravb",
        "rx_queue_0_current: 7; rx_queue_0_packets: 5; rx_queue_0_mcast_packets: 7; rx_queue_1_packets: 4",
        &[],
    ),
    (
        "lan743x",
        "RX 64 Byte Frames: 7; RX 65 - 127 Byte Frames: 7; RX Queue 0 Frames: 5; RX Queue 1 Frames: 4",
        &[],
    ),
    (
        "tsnep",
        "rx_packets: 9; rx_0_packets: 5; rx_0_bytes: 7; rx_0_dropped: 7; rx_0_multicast: 7; \
         rx_0_no_descriptor_errors: 1; rx_0_fifo_overflow_errors: 2; rx_1_packets: 4; rx_1_no_descriptor_errors: 0",
        &[3, 0],
    ),
];

/// Drivers that count no frames by queue.
const TOTALS: &[(&str, &str)] = &[
    ("bnx2", "rx_bytes: 9; rx_ucast_packets: 9; rx_64_byte_packets: 7; rx_65_to_127_byte_packets: 7"),
    (
        "tg3",
        "rx_octets: 9; rx_ucast_packets: 9; rx_64_or_less_octet_packets: 7; rx_1024_to_1522_octet_packets: 7",
    ),
    ("cxgb4", "rx_frames_ok            : 9; rx_frames_64            : 7; rx_ppp0_frames          : 7"),
    ("qlcnic", "rx_pkts: 9; tx_queue_0 xmit_called: 7; mac_rx_lt_64b_pkts: 7"),
    ("enic", "rx_frames_ok: 9; rx_frames_64: 7; rx_frames_to_max: 7"),
    ("r8169", "tx_packets: 7; rx_packets: 9; rx_missed: 2; align_errors: 0; unicast: 7; multicast: 7"),
    (
        "r8125",
        "rx_packets: 9; rx_missed: 2; rx_multicast64: 7; tx_unicast64: 7; rx_frame_too_long: 1; rdu: 3",
    ),
    ("e1000e", "rx_packets: 9; rx_bytes: 9; rx_smbus: 7; rx_header_split: 0"),
    ("e1000", "rx_packets: 9; rx_bytes: 9; rx_long_byte_count: 9; alloc_rx_buff_failed: 0"),
    ("mvneta", "good_frames_received: 9; frames_64_octets: 7; rx_discard: 1"),
    ("fsl_dpaa2_eth", "[hw] rx frames: 9; [hw] rx bytes: 9; [hw] rx mcast frames: 7; [drv] rx sg frames: 7"),
];

fn lines(case: &str) -> String {
    case.split(';').map(|line| format!("     {}\n", line.trim())).collect()
}

fn packets(interface: &Interface) -> Vec<(u32, Option<u64>)> {
    interface.queues.iter().map(|(&n, queue)| (n, queue.packets.as_ref().map(Counter::value))).collect()
}

#[test]
fn every_drivers_queues_are_found_and_nothing_else_is_one() {
    for &(driver, case, drops) in QUEUES {
        let lines = lines(case);
        for text in [format!("NIC statistics:\n{lines}"), lines] {
            let snapshot = read(&text);
            let interface = snapshot.interface("").expect("counters");
            assert_eq!(packets(interface), [(0, Some(5)), (1, Some(4))], "{driver}:\n{text}");
            let dropped: Vec<u64> =
                interface.queues.values().filter_map(|queue| Some(queue.drops.as_ref()?.value())).collect();
            assert_eq!(dropped, drops, "{driver}:\n{text}");
        }
    }
}

#[test]
fn a_driver_without_such_counters_has_totals_and_no_queues() {
    for (driver, case) in TOTALS {
        let snapshot = read(&lines(case));
        let interface = snapshot.interface("").expect("counters");
        assert!(interface.queues.is_empty(), "{driver}: {:?}", interface.queues.keys());
        assert_eq!(interface.totals.packets.as_ref().map(Counter::value), Some(9), "{driver}");
    }
}

#[test]
fn a_second_output_is_the_second_sample_with_or_without_headings() {
    for (driver, case, _) in QUEUES {
        let first = lines(case);
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

#[test]
fn no_text_panics() {
    let mut seed = 7_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) as usize) % below
    };
    let all: Vec<&str> = QUEUES.iter().flat_map(|(_, case, _)| case.split(';')).collect();
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..60 {
            let mut line: Vec<char> = all[next(all.len())].trim().chars().collect();
            for _ in 0..next(4) {
                let at = next(line.len());
                line[at] = ['0', '9', ':', 'é', '[', ' ', '\u{0}', '_'][next(8)];
            }
            line.truncate(1 + next(line.len()));
            text.extend(line);
            text.push('\n');
        }
        for interface in read(&text).interfaces {
            // Damaged digits make numbers, but none beyond the bound.
            assert!(interface.queues.len() <= 60);
        }
    }
}
