//! Cards of workstations and small machines.

use super::{Device, Driver, NONE, PACKETS, Proof, proof};

pub(super) static DRIVERS: &[Driver] = &[
    Driver {
        names: &["r8169"],
        source: "drivers/net/ethernet/realtek/r8169_main.c: rx_missed_errors is rx_missed; no counters of rings",
        device: &[("rx_missed", Device::Overflow)],
        proof: Some(Proof {
            with: &["align_errors", "tx_single_collisions", "tx_aborted", "tx_underrun"],
            without: &["tx_octets", "rx_octets", "rx_mac_missed"],
        }),
        ..NONE
    },
    Driver {
        names: &["r8125"],
        // `rdu`: receive descriptor unavailable.
        source: "Realtek's r8125 9.016, r8125_n.c (rtl8125_gstrings): no counters of rings",
        device: &[
            ("rx_missed", Device::Overflow),
            ("rx_mac_missed", Device::Overflow),
            ("rdu", Device::Overflow),
            ("rx_frame_too_long", Device::TooLong),
        ],
        proof: proof(&["rx_mac_missed", "rx_tcam_dropped"]),
        ..NONE
    },
    Driver {
        names: &["atlantic"],
        source: "drivers/net/ethernet/aquantia/atlantic/aq_ethtool.c, hw_atl/hw_atl_utils.c: RX DMA drop counter",
        queues: &[("Queue[{n}] InPackets", PACKETS)],
        device: &[
            ("InPackets", Device::Packets),
            ("InOctets", Device::Bytes),
            ("InDroppedDma", Device::Overflow),
        ],
        proof: proof(&["InDroppedDma"]),
        ..NONE
    },
];
