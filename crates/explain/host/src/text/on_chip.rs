//! Names of vectors that know a device and no interface: Ethernet devices of systems on a chip, and network cards that
//! are called by driver and bus address.
//!
//! The platform bus names a device by address and node of the device tree (`of_device_make_bus_id()` in
//! drivers/of/platform.c), and drivers call their vectors so, with or without a ring behind it: `1e100000.ethernet`
//! (mtk_eth_soc), `30be0000.ethernet` four times (fec), `c080000.ethernet:rxq0` (ipqess), `8000000.ethernet-rx0`
//! (am65-cpsw-nuss), `48484000.switch` twice (cpsw). Others have names of their own: `edma_rxdesc_0` (Qualcomm's
//! qca-nss-dp and qcom_ppe), `dpio.7` (drivers/soc/fsl/dpio/dpio-driver.c: a portal serves all interfaces of DPAA2 for
//! one CPU), `QMan portal 0` (drivers/soc/fsl/qbman/qman_portal.c, the same of DPAA), `xrx200_net_rx`, `mvneta`,
//! `Ethernet` (Cavium's octeon_ethernet).

use crate::Interrupt;

/// A device, and what the vector does for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OnChip<'a> {
    pub device: &'a str,
    pub queue: Option<u32>,
    /// Whether it serves receive traffic; `None` where the name does not say.
    pub receives: Option<bool>,
}

/// Nodes of the device tree that are Ethernet devices, or switches that move the frames themselves.
const NODES: [&str; 5] = ["ethernet", "eth", "gmac", "switch", "fec"];

/// Reads such a name; `None` for any other.
pub(super) fn read(name: &str) -> Option<OnChip<'_>> {
    let of = |device, queue, receives| Some(OnChip { device, queue, receives });
    match name {
        // drivers/net/ethernet/lantiq_xrx200.c.
        "xrx200_net_rx" => return of("xrx200_net", None, Some(true)),
        "xrx200_net_tx" => return of("xrx200_net", None, Some(false)),
        "mvneta" | "Ethernet" => return of(name, None, None),
        _ => {}
    }
    if let Some(ring) = name.strip_prefix("edma_") {
        let (receives, queue) = edma(ring)?;
        return of("edma", queue, Some(receives));
    }
    if let Some(portal) = name.strip_prefix("dpio.") {
        return portal.parse::<u32>().ok().and_then(|_| of("dpio", None, Some(true)));
    }
    if name.starts_with("QMan portal ") {
        return of("QMan", None, Some(true));
    }
    if let Some(card) = card(name) {
        return Some(card);
    }
    let (device, ring) = platform(name)?;
    let (receives, queue) = ring_of(ring);
    of(device, queue, receives)
}

/// `rxdesc_0`, `txcmpl_3`, `rxfill_0`, `misc`; `eth_rx0` of the first driver for ipq40xx. TI's DMA controllers, which are
/// called edma as well, have other words.
fn edma(ring: &str) -> Option<(bool, Option<u32>)> {
    let ring = ring.strip_prefix("eth_").unwrap_or(ring);
    let word = ring.trim_end_matches(|c: char| c.is_ascii_digit());
    let queue = ring.get(word.len()..).and_then(|number| number.parse().ok());
    match word.trim_end_matches('_') {
        "rxdesc" | "rxq" | "rx" => Some((true, queue)),
        "txcmpl" | "txq" | "tx" | "txdesc" => Some((false, queue)),
        "rxfill" | "misc" => Some((false, None)),
        _ => None,
    }
}

/// Cards whose vectors have the bus address: `mlx5_comp0@pci:0000:01:00.0`, `gve-ntfy-blk0@pci:0000:00:04.0` (half of
/// those transmit, which the name does not say), `mana_q3@pci:…`, `virtio0-input.0`.
fn card(name: &str) -> Option<OnChip<'_>> {
    if let Some((device, what)) = name.split_once('-').filter(|(device, _)| is_virtio(device)) {
        // The queues of other virtio devices (console, block) have no `.N`.
        let (receives, number) = match (what.strip_prefix("input."), what.strip_prefix("output.")) {
            (Some(number), _) => (true, number),
            (None, Some(number)) => (false, number),
            (None, None) => return None,
        };
        return Some(OnChip { device, queue: number.parse().ok(), receives: Some(receives) });
    }
    let (what, device) = name.split_once('@')?;
    let device = device.strip_prefix("pci:").unwrap_or(device);
    let (queue, receives) = if what.starts_with("mlx5_comp") || what.starts_with("mana_q") {
        let digits = what.trim_start_matches(|c: char| !c.is_ascii_digit()).trim_start_matches("5_comp");
        (digits.parse().ok(), Some(true))
    } else if what.strip_prefix("mlx4-").is_some_and(|number| number.parse::<u32>().is_ok()) {
        // An event queue of the device: several rings share one, so its number is no queue's.
        (None, Some(true))
    } else if what.starts_with("gve-ntfy-blk") {
        (None, None)
    } else if what.starts_with("mlx5_")
        || what.starts_with("mlx4-")
        || what.ends_with("-mgmnt")
        || what == "mana_hwc"
    {
        (None, Some(false))
    } else {
        return None;
    };
    Some(OnChip { device, queue, receives })
}

fn is_virtio(device: &str) -> bool {
    device.strip_prefix("virtio").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The device and what follows it in `c080000.ethernet:rxq0`.
fn platform(name: &str) -> Option<(&str, &str)> {
    let (address, rest) = name.split_once('.')?;
    let is_hex = !address.is_empty() && address.bytes().all(|c| c.is_ascii_hexdigit());
    let node = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (node, ring) = rest.split_at_checked(node)?;
    let device = name.get(..address.len() + 1 + node.len())?;
    (is_hex && NODES.contains(&node)).then_some((device, ring))
}

/// Whether a ring receives, and its number: `:rxq0`, `-rx0`, ` RX 3`, `-tx1-4.6`, `:ch0:rx_be`.
fn ring_of(ring: &str) -> (Option<bool>, Option<u32>) {
    let ring = ring.trim_start_matches([':', '-', '_', ' ']).to_ascii_lowercase();
    // ravb of R-Car: the first channels are receive queues, in their order.
    if let Some((number, what)) = ring.strip_prefix("ch").and_then(|channel| channel.split_once(':')) {
        let receives = what.starts_with("rx");
        return (Some(receives), number.parse().ok().filter(|_| receives));
    }
    let receives = match ring.get(..2) {
        Some("rx") => Some(true),
        Some("tx") => Some(false),
        _ if ring.is_empty() => None,
        // `mac`, `link`, `ptp`.
        _ => Some(false),
    };
    let number = ring.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    (receives, number.get(..end).and_then(|number| number.parse().ok()).filter(|_| receives.is_some()))
}

impl Interrupt {
    /// The network device that it serves, by a name that knows no interface: `1e100000.ethernet`, `edma`, `virtio0`, and
    /// `mvneta 36`, since vectors of several such devices have only the driver's name.
    pub fn network_device(&self) -> Option<String> {
        let device = read(self.action.trim())?.device;
        Some(if device == "mvneta" { format!("mvneta {}", self.vector) } else { device.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_their_rings() {
        let (yes, no) = (Some(true), Some(false));
        for (name, device, queue, receives) in [
            ("1e100000.ethernet", "1e100000.ethernet", None, None),
            // drivers/net/ethernet/freescale/fec_main.c.
            ("30be0000.ethernet", "30be0000.ethernet", None, None),
            // ipq40xx, as in github.com/openwrt/openwrt issue 16818.
            ("c080000.ethernet:rxq2", "c080000.ethernet", Some(2), yes),
            ("c080000.ethernet:txq12", "c080000.ethernet", Some(12), no),
            // ath79, as in github.com/openwrt/openwrt pull request 1299.
            ("19000000.eth", "19000000.eth", None, None),
            // drivers/net/ethernet/ti/am65-cpsw-nuss.c and cpsw.c.
            ("8000000.ethernet-rx0", "8000000.ethernet", Some(0), yes),
            ("8000000.ethernet-tx7", "8000000.ethernet", Some(7), no),
            ("48484000.switch", "48484000.switch", None, None),
            // ravb_setup_irq() in drivers/net/ethernet/renesas/ravb_main.c.
            ("e6800000.ethernet:ch1:rx_nc", "e6800000.ethernet", Some(1), yes),
            ("e6800000.ethernet:ch18:tx_be", "e6800000.ethernet", None, no),
            ("e6800000.ethernet:ch24:emac", "e6800000.ethernet", None, no),
            ("15100000.ethernet RX 3", "15100000.ethernet", Some(3), yes),
            // Qualcomm's qca-nss-dp, and the first driver of ipq40xx.
            ("edma_rxdesc_0", "edma", Some(0), yes),
            ("edma_txcmpl_11", "edma", Some(11), no),
            ("edma_misc", "edma", None, no),
            ("edma_eth_rx2", "edma", Some(2), yes),
            ("dpio.16", "dpio", None, yes),
            ("QMan portal 3", "QMan", None, yes),
            ("xrx200_net_rx", "xrx200_net", None, yes),
            ("xrx200_net_tx", "xrx200_net", None, no),
            ("mlx5_comp3@pci:0000:01:00.0", "0000:01:00.0", Some(3), yes),
            ("mlx5_async_eq@pci:0000:01:00.0", "0000:01:00.0", None, no),
            ("mlx4-5@0000:04:00.0", "0000:04:00.0", None, yes),
            ("ena-mgmnt@pci:0000:00:05.0", "0000:00:05.0", None, no),
            ("gve-ntfy-blk1@pci:0000:00:04.0", "0000:00:04.0", None, None),
            ("mana_q4@pci:7870:00:00.0", "7870:00:00.0", Some(4), yes),
            ("mana_hwc@pci:7870:00:00.0", "7870:00:00.0", None, no),
            ("virtio0-input.1", "virtio0", Some(1), yes),
            ("virtio0-output.0", "virtio0", Some(0), no),
        ] {
            assert_eq!(read(name), Some(OnChip { device, queue, receives }), "{name}");
        }
    }

    #[test]
    fn other_devices() {
        for name in [
            "1e000600.gpio-bank0",
            "my.ethernet",
            ".ethernet",
            "eth0",
            "virtio1-input",
            "virtio0-config",
            "virtio2-req.0",
            "49000000.edma_ccint",
            "edma_ccerrint",
            "dpni.9",
            "ff1f0000.dma-controller",
            "nvme0q1",
            "ahci[0000:00:11.0]",
            "",
        ] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}
