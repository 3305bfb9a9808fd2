//! Intel Ethernet.

use super::{BYTES, DROPS, Device, Driver, NONE, PACKETS, Proof, Queue, proof};

/// igb, igc, ixgbe, ice, fm10k and many others.
const RX_QUEUE: [(&str, Queue); 2] = [("rx_queue_{n}_packets", PACKETS), ("rx_queue_{n}_bytes", BYTES)];

/// igb and igc: `drops` is the queue's RQDPC register, frames that found no free descriptor.
const RX_QUEUE_DROPS: [(&str, Queue); 3] = [RX_QUEUE[0], RX_QUEUE[1], ("rx_queue_{n}_drops", DROPS)];

/// Registers of the e1000 family: RNBC counts frames that found no buffer in the host (they may still have been
/// kept in the FIFO), ROC frames longer than the device receives.
const E1000: [(&str, Device); 2] =
    [("rx_no_buffer_count", Device::Overflow), ("rx_long_length_errors", Device::TooLong)];

pub(super) static DRIVERS: &[Driver] = &[
    Driver {
        names: &["igb"],
        source: "drivers/net/ethernet/intel/igb/igb_ethtool.c",
        queues: &RX_QUEUE_DROPS,
        device: &E1000,
        ..NONE
    },
    Driver {
        names: &["igc"],
        source: "drivers/net/ethernet/intel/igc/igc_ethtool.c",
        queues: &RX_QUEUE_DROPS,
        device: &E1000,
        proof: proof(&["os2bmc_rx_by_bmc", "tx_lpi_counter"]),
        ..NONE
    },
    Driver {
        names: &["e1000e"],
        source: "drivers/net/ethernet/intel/e1000e/ethtool.c",
        device: &E1000,
        proof: proof(&["rx_header_split", "rx_smbus"]),
        ..NONE
    },
    Driver {
        names: &["e1000"],
        source: "drivers/net/ethernet/intel/e1000/e1000_ethtool.c",
        device: &E1000,
        // Where e1000e prints `rx_header_split`, between these two, e1000 prints nothing.
        proof: Some(Proof {
            with: &["rx_csum_offload_errors", "alloc_rx_buff_failed", "rx_smbus"],
            without: &["rx_header_split"],
        }),
        ..NONE
    },
    Driver {
        names: &["ixgbe"],
        source: "drivers/net/ethernet/intel/ixgbe/ixgbe_ethtool.c; ixgbe_main.c: QPRDC of all queues",
        queues: &RX_QUEUE,
        device: &[E1000[0], E1000[1], ("rx_no_dma_resources", Device::Overflow)],
        proof: proof(&["rx_no_dma_resources", "fdir_match"]),
        ..NONE
    },
    Driver {
        names: &["ixgbevf", "igbvf"],
        source: "drivers/net/ethernet/intel/ixgbevf/ethtool.c",
        queues: &RX_QUEUE,
        ..NONE
    },
    Driver {
        names: &["i40e"],
        source: "drivers/net/ethernet/intel/i40e/i40e_ethtool.c; i40e_main.c: GLPRT_RDPC and GLPRT_ROC",
        queues: &[
            ("rx-{n}.packets", PACKETS),
            ("rx-{n}.bytes", BYTES),
            // Before Linux 4.20.
            ("rx-{n}.rx_packets", PACKETS),
            ("rx-{n}.rx_bytes", BYTES),
        ],
        device: &[("port.rx_dropped", Device::Overflow), ("port.rx_oversize", Device::TooLong)],
        proof: proof(&["port.rx_dropped"]),
        ..NONE
    },
    Driver {
        names: &["iavf", "i40evf"],
        source: "drivers/net/ethernet/intel/iavf/iavf_ethtool.c; GLV_RDPC",
        queues: &[("rx-{n}.packets", PACKETS), ("rx-{n}.bytes", BYTES)],
        device: &[("rx_discards", Device::Overflow)],
        proof: Some(Proof { with: &["rx_discards", "rx_unknown_protocol"], without: &["rx_packets"] }),
        ..NONE
    },
    Driver {
        names: &["ice"],
        source: "drivers/net/ethernet/intel/ice/ice_ethtool.c; ice_main.c: rx_missed_errors is rx_dropped.nic",
        queues: &RX_QUEUE,
        device: &[
            ("rx_unicast", Device::PacketsPart),
            ("rx_multicast", Device::PacketsPart),
            ("rx_broadcast", Device::PacketsPart),
            ("rx_dropped.nic", Device::Overflow),
            ("rx_oversize.nic", Device::TooLong),
        ],
        // The function's share of the same register; elsewhere `rx_dropped` is anything.
        device_if_known: &[("rx_dropped", Device::Overflow)],
        proof: proof(&["rx_dropped.nic"]),
        ..NONE
    },
    Driver {
        names: &["idpf"],
        source: "drivers/net/ethernet/intel/idpf/idpf_ethtool.c (Linux 6.7)",
        queues: &[("rx_q-{n}_pkts", PACKETS), ("rx_q-{n}_bytes", BYTES)],
        ..NONE
    },
    Driver {
        names: &["fm10k"],
        source: "drivers/net/ethernet/intel/fm10k/fm10k_ethtool.c; fm10k_pci.c: QPRDC of all queues",
        queues: &RX_QUEUE,
        device: &[("rx_drops_nic", Device::Overflow)],
        proof: proof(&["rx_overrun_pf"]),
        ..NONE
    },
];
