//! Network devices of virtual machines and clouds, and virtual devices.

use super::super::What;
use super::{BYTES, DROPS, Device, Driver, NONE, PACKETS, Queue, proof};

pub(super) static DRIVERS: &[Driver] = &[
    Driver {
        names: &["virtio_net"],
        source: "drivers/net/virtio_net.c; rx{n}_ since Linux 6.9, _hw_ from the device (virtio 1.3, 5.1.6.5.5)",
        queues: &[
            ("rx_queue_{n}_packets", PACKETS),
            ("rx_queue_{n}_bytes", BYTES),
            ("rx_queue_{n}_drops", DROPS),
            ("rx{n}_packets", PACKETS),
            ("rx{n}_bytes", BYTES),
            ("rx{n}_drops", DROPS),
            ("rx{n}_hw_drop_overruns", DROPS),
        ],
        // Every frame that an XDP program drops is counted in `drops` as well.
        queues_if_known: &[
            ("rx_queue_{n}_xdp_drops", Queue::Counts(What::DropsByXdp)),
            ("rx{n}_xdp_drops", Queue::Counts(What::DropsByXdp)),
        ],
        proof: proof(&["rx_queue_0_kicks"]),
        ..NONE
    },
    Driver {
        names: &["vmxnet3"],
        source: "drivers/net/vmxnet3/vmxnet3_ethtool.c: OOB is out of buffers",
        queues: &[
            ("Rx Queue#", Queue::Heading { receive: true }),
            ("Tx Queue#", Queue::Heading { receive: false }),
            ("ucast pkts rx", Queue::UnderHeading(What::PacketsPart)),
            ("mcast pkts rx", Queue::UnderHeading(What::PacketsPart)),
            ("bcast pkts rx", Queue::UnderHeading(What::PacketsPart)),
            ("ucast bytes rx", Queue::UnderHeading(What::BytesPart)),
            ("mcast bytes rx", Queue::UnderHeading(What::BytesPart)),
            ("bcast bytes rx", Queue::UnderHeading(What::BytesPart)),
            ("pkts rx OOB", Queue::UnderHeading(What::Drops)),
        ],
        proof: proof(&["ucast pkts rx"]),
        ..NONE
    },
    Driver {
        names: &["ena"],
        source: "drivers/net/ethernet/amazon/ena/ena_ethtool.c",
        queues: &[("queue_{n}_rx_cnt", PACKETS), ("queue_{n}_rx_bytes", BYTES)],
        proof: proof(&["ena_admin_q_submitted_cmd"]),
        ..NONE
    },
    Driver {
        names: &["gve"],
        // Completed descriptors: a frame longer than a buffer takes several.
        source: "drivers/net/ethernet/google/gve/gve_ethtool.c, gve_rx.c",
        queues: &[
            ("rx_completed_desc[{n}]", PACKETS),
            ("rx_bytes[{n}]", BYTES),
            ("rx_no_buffers_posted[{n}]", DROPS),
            ("rx_drops_packet_over_mru[{n}]", Queue::TooLong),
        ],
        proof: proof(&["stats_report_trigger_cnt"]),
        ..NONE
    },
    Driver {
        names: &["mana"],
        source: "drivers/net/ethernet/microsoft/mana/mana_ethtool.c",
        queues: &[("rx_{n}_packets", PACKETS), ("rx_{n}_bytes", BYTES)],
        device: &[
            ("hc_rx_ucast_pkts", Device::PacketsPart),
            ("hc_rx_mcast_pkts", Device::PacketsPart),
            ("hc_rx_bcast_pkts", Device::PacketsPart),
            ("hc_rx_bytes", Device::Bytes),
            ("hc_rx_discards_no_wqe", Device::Overflow),
        ],
        proof: proof(&["hc_rx_discards_no_wqe"]),
        ..NONE
    },
    Driver {
        names: &["hv_netvsc"],
        source: "drivers/net/hyperv/netvsc_drv.c",
        queues: &[("rx_queue_{n}_packets", PACKETS), ("rx_queue_{n}_bytes", BYTES)],
        proof: proof(&["rx_comp_busy"]),
        ..NONE
    },
    Driver {
        names: &["ibmvnic"],
        source: "drivers/net/ethernet/ibm/ibmvnic.c",
        queues: &[("rx{n}_packets", PACKETS), ("rx{n}_bytes", BYTES)],
        ..NONE
    },
    Driver {
        names: &["veth"],
        // Counted where NAPI polls the queue (XDP or GRO on), socket buffers and XDP frames alike.
        source: "drivers/net/veth.c: veth_xdp_rcv, veth_stats_rx",
        queues: &[("rx_queue_{n}_drops", DROPS)],
        queues_if_known: &[("rx_queue_{n}_xdp_packets", Queue::Counts(What::PacketsWhilePolled))],
        proof: proof(&["peer_ifindex"]),
        ..NONE
    },
];
