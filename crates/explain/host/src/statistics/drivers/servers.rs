//! Server network cards.

use super::{BYTES, BYTES_PART, DROPS, Device, Driver, NONE, PACKETS, PACKETS_PART, Proof, proof};

pub(super) static DRIVERS: &[Driver] = &[
    Driver {
        names: &["bnx2x"],
        source: "drivers/net/ethernet/broadcom/bnx2x/bnx2x_ethtool.c; bnx2x_stats.c: rx_discards is no_buff_discard",
        queues: &[
            ("[{n}]: rx_ucast_packets", PACKETS_PART),
            ("[{n}]: rx_mcast_packets", PACKETS_PART),
            ("[{n}]: rx_bcast_packets", PACKETS_PART),
            ("[{n}]: rx_bytes", BYTES),
            ("[{n}]: rx_discards", DROPS),
        ],
        device: &[
            ("rx_ucast_packets", Device::PacketsPart),
            ("rx_mcast_packets", Device::PacketsPart),
            ("rx_bcast_packets", Device::PacketsPart),
            ("rx_discards", Device::Overflow),
            ("rx_brb_discard", Device::Overflow),
            ("rx_oversize_packets", Device::TooLong),
        ],
        proof: proof(&["rx_brb_discard", "rx_mf_tag_discard"]),
        ..NONE
    },
    Driver {
        names: &["bnxt_en"],
        source: "drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c; bnxt.c: rx_missed_errors is rx_discards",
        queues: &[
            ("[{n}]: rx_ucast_packets", PACKETS_PART),
            ("[{n}]: rx_mcast_packets", PACKETS_PART),
            ("[{n}]: rx_bcast_packets", PACKETS_PART),
            ("[{n}]: rx_ucast_bytes", BYTES_PART),
            ("[{n}]: rx_mcast_bytes", BYTES_PART),
            ("[{n}]: rx_bcast_bytes", BYTES_PART),
            ("[{n}]: rx_discards", DROPS),
        ],
        device: &[
            ("rx_total_frames", Device::Packets),
            ("rx_total_discard_pkts", Device::Overflow),
            ("rx_ovrsz_frames", Device::TooLong),
        ],
        proof: proof(&["rx_total_discard_pkts"]),
        ..NONE
    },
    Driver {
        names: &["bnx2"],
        source: "drivers/net/ethernet/broadcom/bnx2.c: rx_missed_errors is the sum of the three",
        device: &[
            ("rx_discards", Device::Overflow),
            ("rx_ftq_discards", Device::Overflow),
            ("rx_fw_discards", Device::Overflow),
        ],
        proof: proof(&["rx_ftq_discards", "rx_fw_discards"]),
        ..NONE
    },
    Driver {
        names: &["tg3"],
        source: "drivers/net/ethernet/broadcom/tg3.c: rx_missed_errors is rx_discards; RCVLPC_NO_RCV_BD_CNT",
        device: &[
            ("rx_octets", Device::Bytes),
            ("rx_discards", Device::Overflow),
            ("rxbds_empty", Device::Overflow),
            ("rx_frame_too_long_errors", Device::TooLong),
        ],
        proof: proof(&["rxbds_empty"]),
        ..NONE
    },
    Driver {
        names: &["mlx4_en"],
        source: "drivers/net/ethernet/mellanox/mlx4/en_ethtool.c; en_rx.c: dropped, no memory to refill",
        queues: &[("rx{n}_packets", PACKETS), ("rx{n}_bytes", BYTES), ("rx{n}_dropped", DROPS)],
        proof: proof(&["rx_novlan_packets"]),
        ..NONE
    },
    Driver {
        names: &["mlx5_core", "mlx5e_rep"],
        source: "drivers/net/ethernet/mellanox/mlx5/core/en_stats.c; en_main.c: rx_missed_errors is rx_out_of_buffer; \
                 Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst",
        queues: &[("rx{n}_packets", PACKETS), ("rx{n}_bytes", BYTES)],
        device: &[
            ("rx_out_of_buffer", Device::Overflow),
            ("rx_discards_phy", Device::Overflow),
            ("rx_oversize_pkts_phy", Device::TooLong),
            ("rx_oversize_pkts_buffer", Device::TooLong),
            ("rx_oversize_pkts_sw_drop", Device::TooLong),
        ],
        proof: proof(&["rx_discards_phy"]),
        ..NONE
    },
    Driver {
        names: &["be2net"],
        source: "drivers/net/ethernet/emulex/benet/be_ethtool.c",
        queues: &[
            ("rxq{n}: rx_pkts", PACKETS),
            ("rxq{n}: rx_bytes", BYTES),
            ("rxq{n}: rx_drops_no_frags", DROPS),
            ("rxq{n}: rx_drops_no_skbs", DROPS),
        ],
        device: &[
            ("rx_drops_no_pbuf", Device::Overflow),
            ("rx_drops_no_erx_descr", Device::Overflow),
            ("rx_input_fifo_overflow_drop", Device::Overflow),
            ("rxpp_fifo_overflow_drop", Device::Overflow),
            ("pmem_fifo_overflow_drop", Device::Overflow),
            ("rx_frame_too_long", Device::TooLong),
            ("rx_drops_mtu", Device::TooLong),
        ],
        proof: proof(&["rx_drops_no_erx_descr"]),
        ..NONE
    },
    Driver {
        names: &["sfc", "sfc_siena", "sfc-falcon"],
        source: "drivers/net/ethernet/sfc/ethtool_common.c, ef10.c: rx_length_errors is gtjumbo and length_error",
        queues: &[("rx-{n}.rx_packets", PACKETS)],
        device: &[
            ("port_rx_packets", Device::Packets),
            ("port_rx_bytes", Device::Bytes),
            ("port_rx_nodesc_drops", Device::Overflow),
            ("rx_nodesc_drops", Device::Overflow),
            ("port_rx_overflow", Device::Overflow),
            ("rx_overflow", Device::Overflow),
            ("port_rx_pm_discard_bb_overflow", Device::Overflow),
            ("port_rx_pm_discard_vfifo_full", Device::Overflow),
            ("port_rx_gtjumbo", Device::TooLong),
        ],
        proof: proof(&["port_rx_lt64"]),
        ..NONE
    },
    Driver {
        names: &["cxgb4"],
        source: "drivers/net/ethernet/chelsio/cxgb4/cxgb4_ethtool.c: frames dropped for want of buffers by group",
        device: &[
            ("rx_frames_ok", Device::Packets),
            ("rx_octets_ok", Device::Bytes),
            ("rx_bg0_frames_dropped", Device::Overflow),
            ("rx_bg1_frames_dropped", Device::Overflow),
            ("rx_bg2_frames_dropped", Device::Overflow),
            ("rx_bg3_frames_dropped", Device::Overflow),
            ("rx_frames_too_long", Device::TooLong),
        ],
        proof: proof(&["rx_bg0_frames_dropped"]),
        ..NONE
    },
    Driver {
        names: &["qede"],
        source: "drivers/net/ethernet/qlogic/qede/qede_ethtool.c; qede_main.c: rx_fifo_errors is no_buff_discards",
        queues: &[("{n}: rcv_pkts", PACKETS)],
        device: &[
            ("rx_ucast_pkts", Device::PacketsPart),
            ("rx_mcast_pkts", Device::PacketsPart),
            ("rx_bcast_pkts", Device::PacketsPart),
            ("no_buff_discards", Device::Overflow),
            ("brb_discards", Device::Overflow),
            ("rx_oversize_packets", Device::TooLong),
        ],
        proof: proof(&["no_buff_discards"]),
        ..NONE
    },
    Driver {
        names: &["qlcnic"],
        source: "drivers/net/ethernet/qlogic/qlcnic/qlcnic_ethtool.c: no counters of receive rings",
        device: &[
            ("rx_pkts", Device::Packets),
            ("ctx_rx_pkts_dropped_wo_rds", Device::Overflow),
            ("ctx_rx_pkts_drop_wo_sds_on_host", Device::Overflow),
            ("ctx_rx_osized_pkts", Device::TooLong),
            ("mac_rx_length_large", Device::TooLong),
        ],
        proof: proof(&["encap_rx_csummed"]),
        ..NONE
    },
    Driver {
        names: &["nfp", "nfp_netvf"],
        // `dev_rx_discards` mixes filtered, oversized and unbuffered frames (nfp.rst): no overflow.
        source: "drivers/net/ethernet/netronome/nfp/nfp_net_ethtool.c",
        queues: &[
            ("rxq_{n}_pkts", PACKETS),
            ("rxq_{n}_bytes", BYTES),
            // The driver's own count of the same.
            ("rvec_{n}_rx_pkts", PACKETS),
        ],
        device: &[
            ("dev_rx_pkts", Device::Packets),
            ("dev_rx_bytes", Device::Bytes),
            ("mac.rx_oversize_pkts", Device::TooLong),
            ("mac.rx_frame_too_long_errors", Device::TooLong),
        ],
        proof: proof(&["dev_rx_discards"]),
        ..NONE
    },
    Driver {
        names: &["enic"],
        source: "drivers/net/ethernet/cisco/enic/enic_ethtool.c: no counters of receive rings",
        device: &[
            ("rx_frames_ok", Device::Packets),
            ("rx_bytes_ok", Device::Bytes),
            ("rx_no_bufs", Device::Overflow),
        ],
        proof: proof(&["rx_frames_to_max"]),
        ..NONE
    },
    Driver {
        names: &["ionic"],
        source: "drivers/net/ethernet/pensando/ionic/ionic_stats.c; ionic_lif.c: rx_over_errors is rx_queue_empty",
        queues: &[("rx_{n}_pkts", PACKETS), ("rx_{n}_bytes", BYTES)],
        device: &[
            ("hw_rx_over_errors", Device::Overflow),
            ("hw_rx_missed_errors", Device::Overflow),
            ("frames_rx_oversized", Device::TooLong),
            ("frames_rx_too_long", Device::TooLong),
        ],
        proof: proof(&["hw_rx_over_errors"]),
        ..NONE
    },
    Driver {
        names: &["hns3", "hns3vf"],
        source: "drivers/net/ethernet/hisilicon/hns3/hns3_ethtool.c, hns3pf/hclge_main.c",
        queues: &[("rxq{n}_packets", PACKETS), ("rxq{n}_bytes", BYTES)],
        device: &[("mac_rx_oversize_pkt_num", Device::TooLong)],
        proof: proof(&["mac_rx_oversize_pkt_num"]),
        ..NONE
    },
    Driver {
        names: &["hns"],
        source: "drivers/net/ethernet/hisilicon/hns/hns_dsaf_rcb.c",
        queues: &[("rx_ring{n}_pkt_num", PACKETS), ("rx_ring{n}_bytes", BYTES)],
        ..NONE
    },
    Driver {
        names: &["hinic"],
        source: "drivers/net/ethernet/huawei/hinic/hinic_ethtool.c",
        queues: &[("rxq{n}_pkts", PACKETS), ("rxq{n}_bytes", BYTES)],
        ..NONE
    },
    Driver {
        names: &["bna"],
        source: "drivers/net/ethernet/brocade/bna/bnad_ethtool.c",
        queues: &[("rxq{n}_packets", PACKETS), ("rxq{n}_bytes", BYTES)],
        ..NONE
    },
    Driver {
        names: &["funeth"],
        source: "drivers/net/ethernet/fungible/funeth/funeth_ethtool.c",
        queues: &[("rx_pkts[{n}]", PACKETS), ("rx_bytes[{n}]", BYTES)],
        ..NONE
    },
    Driver {
        names: &["LiquidIO", "LiquidIO_VF"],
        source: "drivers/net/ethernet/cavium/liquidio/lio_ethtool.c",
        queues: &[("rx-{n}-packets", PACKETS), ("rx-{n}-bytes", BYTES), ("rx-{n}-dropped_nomem", DROPS)],
        ..NONE
    },
    Driver {
        names: &["nicvf"],
        source: "drivers/net/ethernet/cavium/thunder/nicvf_ethtool.c",
        queues: &[("rxq{n}: frames", PACKETS), ("rxq{n}: bytes", BYTES)],
        proof: Some(Proof { with: &["bgx_rxstat0:"], without: &[] }),
        ..NONE
    },
    Driver {
        names: &["rvu-nicpf", "rvu-nicvf"],
        source: "drivers/net/ethernet/marvell/octeontx2/nic/otx2_ethtool.c",
        queues: &[("rxq{n}: frames", PACKETS), ("rxq{n}: bytes", BYTES)],
        proof: Some(Proof { with: &["cgx_rxstat0:"], without: &[] }),
        ..NONE
    },
];
