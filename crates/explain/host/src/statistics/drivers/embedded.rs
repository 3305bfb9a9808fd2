//! Ethernet controllers of systems on a chip.

use super::{BYTES, DROPS, Device, Driver, NONE, PACKETS, Queue, proof};

pub(super) static DRIVERS: &[Driver] = &[
    Driver {
        names: &["st_gmac", "st_xgmac", "st_mac100"],
        // `mmc_rx_oversize_g` counts good frames over 1518 octets, tagged and jumbo ones among them: no loss.
        source: "drivers/net/ethernet/stmicro/stmmac/stmmac_ethtool.c; stmmac_main.c: rx_missed_errors, rx_over_errors",
        queues: &[("q{n}_rx_pkt_n", PACKETS)],
        device: &[
            ("mmc_rx_framecount_gb", Device::Packets),
            ("mmc_rx_octetcount_gb", Device::Bytes),
            ("rx_missed_cntr", Device::Overflow),
            ("rx_overflow_cntr", Device::Overflow),
            ("mmc_rx_fifo_overflow", Device::Overflow),
        ],
        proof: proof(&["rx_missed_cntr", "rx_gmac_overflow"]),
        ..NONE
    },
    Driver {
        names: &["macb"],
        source: "drivers/net/ethernet/cadence/macb.h; macb_main.c: rx_over_errors, rx_fifo_errors",
        queues: &[("q{n}_rx_packets", PACKETS), ("q{n}_rx_bytes", BYTES)],
        device: &[
            ("rx_frames", Device::Packets),
            ("rx_octets", Device::Bytes),
            ("rx_resource_errors", Device::Overflow),
            ("rx_overruns", Device::Overflow),
            ("rx_oversize_frames", Device::TooLong),
        ],
        proof: proof(&["rx_resource_errors", "rx_length_field_frame_errors"]),
        ..NONE
    },
    Driver {
        names: &["mvneta"],
        source: "drivers/net/ethernet/marvell/mvneta.c: no counters of receive queues",
        device: &[
            ("good_frames_received", Device::Packets),
            ("good_octets_received", Device::Bytes),
            ("rx_discard", Device::Overflow),
            ("rx_overrun", Device::Overflow),
            ("oversize_received", Device::TooLong),
        ],
        proof: proof(&["rx_discard", "rx_overrun", "good_frames_received"]),
        ..NONE
    },
    Driver {
        names: &["mvpp2"],
        source: "drivers/net/ethernet/marvell/mvpp2/mvpp2_main.c: queue full, early drop, no buffer in the pool",
        queues: &[
            ("rxq_{n}_desc_enqueue", PACKETS),
            ("rxq_{n}_queue_full_drops", DROPS),
            ("rxq_{n}_packets_early_drops", DROPS),
            ("rxq_{n}_packets_bm_drops", DROPS),
        ],
        device: &[
            ("unicast_frames_received", Device::PacketsPart),
            ("multicast_frames_received", Device::PacketsPart),
            ("broadcast_frames_received", Device::PacketsPart),
            ("good_octets_received", Device::Bytes),
            ("rx_fifo_overrun", Device::Overflow),
            ("rx_fifo_or_parser_overrun_drops", Device::Overflow),
            ("oversize_received", Device::TooLong),
        ],
        proof: proof(&["rx_fifo_or_parser_overrun_drops"]),
        ..NONE
    },
    Driver {
        names: &["fsl_dpaa2_eth"],
        source: "drivers/net/ethernet/freescale/dpaa2/dpaa2-ethtool.c: no counters of receive queues",
        device: &[
            ("[hw] rx frames", Device::Packets),
            ("[hw] rx bytes", Device::Bytes),
            ("[hw] rx nobuffer discards", Device::Overflow),
        ],
        proof: proof(&["[hw] rx frames"]),
        ..NONE
    },
    Driver {
        names: &["fsl_dpa"],
        // A CPU takes frames from a portal of its own: the receive queues of this device are the CPUs'.
        source: "drivers/net/ethernet/freescale/dpaa/dpaa_ethtool.c",
        queues: &[("rx packets [CPU {n}]", PACKETS)],
        device: &[
            ("rx packets [TOTAL]", Device::Packets),
            ("rx frame size error [TOTAL]", Device::NothingHere),
        ],
        proof: proof(&["qman cg_tdrop"]),
        ..NONE
    },
    Driver {
        names: &["fsl_enetc", "fsl_enetc_vf"],
        source: "drivers/net/ethernet/freescale/enetc/enetc_ethtool.c: the number takes two columns",
        queues: &[
            ("Rx ring {n} frames", PACKETS),
            ("Rx ring  {n} frames", PACKETS),
            ("Rx ring {n} discarded frames", DROPS),
            ("Rx ring  {n} discarded frames", DROPS),
        ],
        ..NONE
    },
    Driver {
        names: &["bcmgenet"],
        source: "drivers/net/ethernet/broadcom/genet/bcmgenet.c",
        queues: &[("rxq{n}_packets", PACKETS), ("rxq{n}_bytes", BYTES)],
        ..NONE
    },
    Driver {
        names: &["amd-xgbe"],
        // `rx_oversize_packets` is the register of good frames over 1518 octets (rxoversize_g): no loss.
        source: "drivers/net/ethernet/amd/xgbe/xgbe-ethtool.c",
        queues: &[("rxq_{n}_packets", PACKETS), ("rxq_{n}_bytes", BYTES)],
        device: &[("rx_fifo_overflow_errors", Device::Overflow)],
        device_if_known: &[("rx_oversize_packets", Device::NothingHere)],
        proof: proof(&["rx_buffer_unavailable", "rx_vlan_packets"]),
        ..NONE
    },
    Driver {
        names: &["ravb"],
        source: "drivers/net/ethernet/renesas/ravb_main.c",
        queues: &[("rx_queue_{n}_packets", PACKETS), ("rx_queue_{n}_bytes", BYTES)],
        ..NONE
    },
    Driver {
        names: &["lan743x"],
        source: "drivers/net/ethernet/microchip/lan743x_ethtool.c",
        queues: &[("RX Queue {n} Frames", PACKETS)],
        ..NONE
    },
    Driver {
        names: &["tsnep"],
        source: "drivers/net/ethernet/engleder/tsnep_ethtool.c",
        queues: &[
            ("rx_{n}_packets", PACKETS),
            ("rx_{n}_bytes", BYTES),
            ("rx_{n}_no_descriptor_errors", DROPS),
            ("rx_{n}_fifo_overflow_errors", DROPS),
            ("rx_{n}_buffer_too_small_errors", Queue::TooLong),
        ],
        ..NONE
    },
];
