//! What drivers do when an XDP program is put on them, and what they refuse: facts of their sources (Linux 6.12), which
//! the kernel does not tell beforehand.

/// What is known of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// As `ethtool -i` names it.
    pub name: &'static str,
    /// What attaching and detaching does to the interface, as the end of a sentence that begins with the driver.
    pub attaching: &'static str,
    /// Whether frames are lost by that.
    pub loses: bool,
    /// The largest MTU with a native program, whatever the program says of frags; `None`: none that a program with
    /// frags would meet, or none that is known.
    pub mtu_most: Option<u32>,
    /// Where both are written: file and function.
    pub source: &'static str,
}

/// MTUs are those of machines with pages of 4 KiB.
static DRIVERS: [Driver; 15] = [
    Driver {
        name: "igb",
        attaching: "closes and opens the interface: frames are lost until the link is up again, and its counters \
                    start anew",
        loses: true,
        // A ring of large buffers (3072 octets) less Ethernet header, FCS and two tags.
        mtu_most: Some(3046),
        source: "igb_main.c igb_xdp_setup",
    },
    Driver {
        name: "igc",
        attaching: "closes and opens the interface: frames are lost until the link is up again, and its counters \
                    start anew",
        loses: true,
        mtu_most: Some(1500),
        source: "igc_xdp.c igc_xdp_set_prog",
    },
    Driver {
        name: "ixgbe",
        attaching: "sets its queues up anew: frames are lost until the link is up again",
        loses: true,
        mtu_most: Some(3050),
        source: "ixgbe_main.c ixgbe_xdp_setup",
    },
    Driver {
        name: "i40e",
        attaching: "resets the adapter: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "i40e_main.c i40e_xdp_setup",
    },
    Driver {
        name: "ice",
        attaching: "takes its queues down and up: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "ice_main.c ice_xdp_setup_prog",
    },
    Driver {
        name: "mlx5_core",
        attaching: "makes its channels anew: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "en_main.c mlx5e_xdp_set",
    },
    Driver {
        name: "mlx4_en",
        attaching: "stops and starts the port: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "en_netdev.c mlx4_xdp_set",
    },
    Driver {
        name: "bnxt_en",
        attaching: "closes and opens the interface: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "bnxt_xdp.c bnxt_xdp_set",
    },
    Driver {
        name: "ena",
        attaching: "takes its queues down and up: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "ena_xdp.c ena_xdp_set",
    },
    Driver {
        name: "vmxnet3",
        attaching: "resets the device: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "vmxnet3_xdp.c vmxnet3_xdp_set",
    },
    Driver {
        name: "mvneta",
        attaching: "stops and opens the interface: frames are lost meanwhile",
        loses: true,
        mtu_most: None,
        source: "mvneta.c mvneta_xdp_setup",
    },
    Driver {
        name: "virtio_net",
        attaching: "pauses its queues, which keep their frames",
        loses: false,
        mtu_most: None,
        source: "virtio_net.c virtnet_xdp_set",
    },
    Driver {
        name: "sfc",
        attaching: "takes the program without a reset",
        loses: false,
        mtu_most: None,
        source: "efx.c efx_xdp_setup_prog",
    },
    Driver {
        name: "tun",
        attaching: "takes the program without a reset",
        loses: false,
        mtu_most: None,
        source: "tun.c tun_xdp_set",
    },
    Driver {
        name: "veth",
        attaching: "takes the program without a reset",
        loses: false,
        mtu_most: None,
        source: "veth.c veth_xdp_set",
    },
];

/// What is known of the driver of this name.
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
            assert!(one.source.contains(".c "), "{}", one.source);
        }
        assert_eq!(driver("e1000e"), None);
    }
}
