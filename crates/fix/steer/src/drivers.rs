//! What drivers do when an XDP program is put on them, and what they refuse: facts of their sources, which the kernel
//! does not report beforehand. All were read in one tree, Linux 6.12-rc4; what later kernels are known to do otherwise is
//! said.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// As `ethtool -i` names it.
    pub name: &'static str,
    /// What attaching and detaching does to the interface, as the end of a sentence that begins with the driver.
    pub attaching: &'static str,
    pub loses: bool,
    /// The largest MTU with a native program, whatever the program says of frags; `None`: none that a program with
    /// frags would meet, or none that is known.
    pub mtu_most: Option<u32>,
    /// Where both are written: kernel, file and function.
    pub source: &'static str,
}

// What the drivers reckon with, by the kernel's names, on machines with pages of 4 KiB, cache lines of 64 bytes and
// NET_IP_ALIGN 0, as x86-64 has.
const PAGE_SIZE: u32 = 4096;
const ETH_HLEN: u32 = 14;
const ETH_FCS_LEN: u32 = 4;
const ETH_DATA_LEN: u32 = 1500;
const VLAN_HLEN: u32 = 4;
const XDP_PACKET_HEADROOM: u32 = 256;
/// `SKB_DATA_ALIGN(sizeof(struct skb_shared_info))` with `CONFIG_MAX_SKB_FRAGS` 17, the default.
const SHARED_INFO: u32 = 320;

static DRIVERS: [Driver; 15] = [
    Driver {
        name: "igb",
        attaching: "closes and opens the interface: frames are lost until the link is up again",
        loses: true,
        // IGB_RXBUFFER_3072 less IGB_ETH_PKT_HDR_PAD. The private flag legacy-rx makes the buffers smaller (2048).
        mtu_most: Some(3072 - (ETH_HLEN + ETH_FCS_LEN + 2 * VLAN_HLEN)),
        source: "Linux 6.12-rc4: igb_main.c igb_xdp_setup",
    },
    Driver {
        name: "igc",
        // Commit be324b790368 (Linux 6.15, and offered to stable kernels) spares the link.
        attaching: "closes and opens the interface (newer kernels only stop its queues): frames are lost meanwhile",
        loses: true,
        mtu_most: Some(ETH_DATA_LEN),
        source: "Linux 6.12-rc4: igc_xdp.c igc_xdp_set_prog",
    },
    Driver {
        name: "ixgbe",
        attaching: "closes and opens the interface with queues made anew: frames are lost until the link is up \
                    again",
        loses: true,
        // IXGBE_RXBUFFER_3K; attaching reckons with one tag, ixgbe_change_mtu() with two. The private flag legacy-rx
        // makes the buffers smaller (2048).
        mtu_most: Some(3072 - (ETH_HLEN + ETH_FCS_LEN + VLAN_HLEN)),
        source: "Linux 6.12-rc4: ixgbe_main.c ixgbe_xdp_setup",
    },
    Driver {
        name: "i40e",
        attaching: "resets the adapter: frames are lost meanwhile",
        loses: true,
        // i40e_max_vsi_frame_size() gives a program with frags what the device gives anyway.
        mtu_most: None,
        source: "Linux 6.12-rc4: i40e_main.c i40e_xdp_setup",
    },
    Driver {
        name: "ice",
        attaching: "takes its queues down and up: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "Linux 6.12-rc4: ice_main.c ice_xdp_setup_prog",
    },
    Driver {
        name: "mlx5_core",
        attaching: "makes its channels anew: frames are lost meanwhile",
        loses: true,
        // mlx5e_params_validate_xdp(): with frags, all that still counts is whether the device has fitting strides.
        mtu_most: None,
        source: "Linux 6.12-rc4: en_main.c mlx5e_xdp_set",
    },
    Driver {
        name: "mlx4_en",
        attaching: "stops and starts the port: frames are lost meanwhile",
        loses: true,
        // MLX4_EN_MAX_XDP_MTU.
        mtu_most: Some(PAGE_SIZE - ETH_HLEN - 2 * VLAN_HLEN - XDP_PACKET_HEADROOM - SHARED_INFO),
        source: "Linux 6.12-rc4: en_netdev.c mlx4_xdp_set",
    },
    Driver {
        name: "bnxt_en",
        attaching: "closes and opens the interface: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "Linux 6.12-rc4: bnxt_xdp.c bnxt_xdp_set",
    },
    Driver {
        name: "ena",
        attaching: "takes its queues down and up: frames are lost meanwhile",
        loses: true,
        // ENA_XDP_MAX_MTU, where ENA_PAGE_SIZE is PAGE_SIZE up to 16 KiB.
        mtu_most: Some(PAGE_SIZE - ETH_HLEN - ETH_FCS_LEN - VLAN_HLEN - XDP_PACKET_HEADROOM - SHARED_INFO),
        source: "Linux 6.12-rc4: ena_xdp.c ena_xdp_set",
    },
    Driver {
        name: "vmxnet3",
        attaching: "resets the device: frames are lost meanwhile",
        loses: true,
        // VMXNET3_XDP_MAX_MTU.
        mtu_most: Some(
            PAGE_SIZE - XDP_PACKET_HEADROOM - SHARED_INFO - ETH_HLEN - 2 * VLAN_HLEN - ETH_FCS_LEN,
        ),
        source: "Linux 6.12-rc4: vmxnet3_xdp.c vmxnet3_xdp_set",
    },
    Driver {
        name: "mvneta",
        attaching: "stops and opens the interface: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "Linux 6.12-rc4: mvneta.c mvneta_xdp_setup",
    },
    Driver {
        name: "virtio_net",
        // receive_small_xdp() and mergeable_xdp_get_buf() drop them: the host gets a request to send none, but some may wait.
        attaching: "pauses its queues (when the program comes, frames in them that the host merged or left \
                    without a checksum are lost)",
        loses: true,
        mtu_most: None,
        source: "Linux 6.12-rc4: virtio_net.c virtnet_xdp_set",
    },
    Driver {
        name: "sfc",
        attaching: "takes the program without a reset",
        loses: false,
        // efx_xdp_max_mtu(): EFX_MAX_FRAME_LEN(0), which is Ethernet, a tag, FCS and EFX_FRAME_PAD (16), rounded up to
        // eights; struct efx_rx_page_state, a cache line; ES_DZ_RX_PREFIX_SIZE; EFX_XDP_HEADROOM; EFX_XDP_TAILROOM.
        mtu_most: Some(PAGE_SIZE - 40 - 64 - 14 - 128 - SHARED_INFO),
        source: "Linux 6.12-rc4: efx.c efx_xdp_setup_prog",
    },
    Driver {
        name: "tun",
        attaching: "takes the program without a reset",
        loses: false,
        mtu_most: None,
        source: "Linux 6.12-rc4: tun.c tun_xdp_set",
    },
    Driver {
        name: "veth",
        // veth_napi_del_range() frees them.
        attaching: "takes the program without a reset (when it goes, frames in its queues are lost unless GRO is \
                    on)",
        loses: true,
        // Limited is the peer's MTU, with frags to MAX_SKB_FRAGS pages more than one page, which is above any MTU.
        mtu_most: None,
        source: "Linux 6.12-rc4: veth.c veth_xdp_set",
    },
];

pub fn driver(name: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_driver_stands_once_and_says_whether_frames_are_lost() {
        for (place, one) in DRIVERS.iter().enumerate() {
            assert_eq!(DRIVERS.iter().position(|other| other.name == one.name), Some(place), "{}", one.name);
            assert_eq!(one.loses, one.attaching.contains("lost"), "{}", one.name);
            assert!(one.source.starts_with("Linux ") && one.source.contains(".c "), "{}", one.source);
            // `steer check` indents it by 18 columns, and does not break it.
            assert!(one.source.len() <= 80 - 18, "{}", one.source);
        }
        assert_eq!(driver("e1000e"), None);
    }

    #[test]
    fn largest_mtus_are_those_that_the_drivers_reckon() {
        let limited = [
            ("igb", 3046),
            ("igc", 1500),
            ("ixgbe", 3050),
            ("mlx4_en", 3498),
            ("ena", 3498),
            ("vmxnet3", 3494),
            ("sfc", 3530),
        ];
        for one in &DRIVERS {
            let most = limited.iter().find(|(name, _)| *name == one.name).map(|(_, most)| *most);
            assert_eq!(one.mtu_most, most, "{}", one.name);
        }
    }
}
