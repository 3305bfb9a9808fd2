//! What the name of an interrupt says: whose it is, of which queue, and whether it receives.
//!
//! Drivers name their vectors as they like (`request_irq` in drivers/net/ethernet/*): `eth0-rx-0` (igb, ixgbe),
//! `eth0-TxRx-0` (igb, bnxt), `i40e-eth0-TxRx-0`, `ice-eth0-TxRx-0`, `eth0-Tx-Rx-0` (ena), `eth0-rxtx-0` (vmxnet3),
//! `eth0-fp-0` (bnx2x), `eth0-q0` (be2net), `eth0-Rx0` (cxgb4) and `eth0 (queue 0)` (Chelsio's own cxgb4),
//! `eth0-0` (bnx2, sfc), `eth0:rx-0` (stmmac), `eth0-tx-0-rx-3` (qlcnic, one transmit ring after the last receive
//! ring), and names of the device alone (module `on_chip`).

use super::command::is_interface;
use super::on_chip;

/// What a vector's name says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VectorName {
    pub interface: Option<String>,
    pub queue: Option<u32>,
    /// Whether it serves receive traffic.
    pub receives: Option<bool>,
}

impl VectorName {
    fn of(interface: &str, queue: Option<u32>, receives: Option<bool>) -> VectorName {
        VectorName { interface: Some(interface.to_owned()), queue, receives }
    }
}

/// Words before a queue's number that say what is done there, longest first where one ends another.
const ROLES: [(&str, Option<bool>); 12] = [
    ("txrx", Some(true)),
    ("tx-rx", Some(true)),
    ("rxtx", Some(true)),
    ("rx", Some(true)),
    ("tx", Some(false)),
    ("fp", Some(true)),
    ("slice", Some(true)),
    ("event", Some(false)),
    ("fdir", Some(false)),
    // Half of them transmit (gve); the name does not say which.
    ("ntfy-block", None),
    ("queue", Some(true)),
    ("qp", Some(true)),
];

/// Words after the interface that name a vector without traffic.
const SIDE: [&str; 18] = [
    "sp",
    "misc",
    "mgmnt",
    "config",
    "async",
    "err",
    "notify",
    "other",
    "link",
    "ctrl",
    "mac",
    "event",
    "wol",
    "lpi",
    "sfty",
    "sfty-ce",
    "sfty-ue",
    "safety-ue",
];

/// Drivers that put their own name before the interface's.
const DRIVERS: [&str; 12] =
    ["i40e", "i40evf", "iavf", "ice", "idpf", "hns3", "hclge", "ionic", "qede", "nfp", "bnxt_en", "fm10k"];

/// Reads the actions of an interrupt line, separated by commas where devices share it. A shared line belongs to
/// the one network interface among them, and what it does is open.
pub(super) fn read(actions: &str) -> VectorName {
    let mut names = actions.split(',').map(str::trim).filter(|name| !name.is_empty()).peekable();
    let Some(first) = names.next() else { return VectorName::default() };
    if names.peek().is_none() {
        return single(first);
    }
    let mut interfaces = std::iter::once(first).chain(names).filter_map(|name| single(name).interface);
    let interface = interfaces.next();
    let is_shared = interfaces.next().is_some();
    VectorName { interface: interface.filter(|_| !is_shared), ..VectorName::default() }
}

fn single(name: &str) -> VectorName {
    if let Some(vector) = on_chip::read(name) {
        return VectorName { interface: None, queue: vector.queue, receives: vector.receives };
    }
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    if let Some((interface, queue)) = name.strip_suffix(')').and_then(|name| name.split_once(" (queue "))
        && is_interface(interface)
        && let Ok(queue) = queue.parse()
    {
        return VectorName::of(interface, Some(queue), Some(true));
    }
    if let Some(vector) = of_queue(name).or_else(|| of_channel(name)) {
        return vector;
    }
    // stmmac names `eth0:sfty-ce`.
    let parts = [name.split_once(':'), name.rsplit_once(['-', ':'])].into_iter().flatten();
    let mut side =
        parts.filter(|(_, word)| SIDE.contains(word)).map(|(interface, _)| without_driver(interface));
    if let Some(interface) = side.find(|interface| looks_like_interface(interface)) {
        return VectorName::of(interface, None, Some(false));
    }
    let interface = Some(name).filter(|name| looks_like_interface(name)).map(str::to_owned);
    VectorName { interface, ..VectorName::default() }
}

/// `eth0-rx-0`, `eth0-q0`, `eth0-0`.
fn of_queue(name: &str) -> Option<VectorName> {
    let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let queue = name.get(head.len()..).filter(|digits| !digits.is_empty());
    let queue = queue.map(str::parse::<u32>).transpose().ok()?;
    let bare = if queue.is_some() { head.trim_end_matches(['-', '.', '_', ':']) } else { head };
    for (word, receives) in ROLES {
        let Some(rest) = strip_suffix_ignoring_case(bare, word) else { continue };
        let Some(interface) = rest.strip_suffix(['-', ':', '_']) else { continue };
        let interface = match receives {
            Some(true) => interface.strip_suffix("-tx-0").unwrap_or(interface),
            _ => interface,
        };
        let is_filter = interface.ends_with("-fdir");
        let interface = without_driver(interface.trim_end_matches("-fdir"));
        if !is_interface(interface) || (queue.is_none() && !looks_like_interface(interface)) {
            continue;
        }
        let receives = if is_filter { Some(false) } else { receives };
        return Some(VectorName::of(interface, queue, receives));
    }
    // bnx2 and sfc number their vectors, be2net and others write `q` before: only for what is surely an
    // interface, since disks number theirs, too.
    let is_numbered = queue.is_some() && bare.len() < head.len();
    let interface = match strip_suffix_ignoring_case(head, "-q") {
        Some(interface) => interface,
        None if is_numbered => bare,
        None => return None,
    };
    let interface = Some(without_driver(interface)).filter(|name| looks_like_interface(name))?;
    queue.map(|queue| VectorName::of(interface, Some(queue), Some(true)))
}

/// `eth0:ch0:rx_be`, `eth0:ch18:tx_be`, `eth0:ch24:emac` (ravb of R-Car): the first channels are receive queues, in their order.
fn of_channel(name: &str) -> Option<VectorName> {
    let (interface, channel) = name.split_once(":ch").filter(|(name, _)| looks_like_interface(name))?;
    let (number, what) = channel.split_once(':')?;
    let receives = what.starts_with("rx");
    Some(VectorName::of(interface, number.parse().ok().filter(|_| receives), Some(receives)))
}

fn strip_suffix_ignoring_case<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let at = text.len().checked_sub(suffix.len())?;
    let (head, tail) = (text.get(..at)?, text.get(at..)?);
    tail.eq_ignore_ascii_case(suffix).then_some(head)
}

fn without_driver(name: &str) -> &str {
    match name.split_once('-') {
        Some((driver, interface)) if DRIVERS.contains(&driver) => interface,
        _ => name,
    }
}

/// Whether a word alone is surely an Ethernet interface's name: `eth0`, and the predictable names (`enp4s0`,
/// `eno1`, `ens3f0`, `end0`, `em1`, `p2p1`). Other names are recognised once another output names the interface.
pub(super) fn looks_like_interface(word: &str) -> bool {
    let numbered = |prefix: &str| {
        word.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    is_interface(word)
        && (["eth", "enp", "eno", "ens", "enP", "end", "em", "lan", "wan"].into_iter().any(numbered)
            || word.strip_prefix("enx").is_some_and(|rest| rest.len() == 12)
            || word.strip_prefix('p').and_then(|rest| rest.split_once('p')).is_some_and(|(slot, port)| {
                slot.parse::<u32>().is_ok() && port.starts_with(|c: char| c.is_ascii_digit())
            }))
}

/// The bus address or device in a vector's name, or the name itself: what an interface may be known by.
pub(super) fn device(name: &str) -> Option<&str> {
    if let Some((_, device)) = name.split_once('@') {
        return Some(device.strip_prefix("pci:").unwrap_or(device));
    }
    if name.starts_with("virtio") {
        return name.split('-').next();
    }
    if let Some(vector) = on_chip::read(name) {
        return Some(vector.device);
    }
    // `i40e-0000:02:00.0:misc`
    let address = name.split_once('-').map(|(_, rest)| rest).and_then(|rest| rest.get(..12));
    address.filter(|address| is_bus_address(address)).or(Some(name))
}

/// The bus address in a chip's name, `IR-PCI-MSIX-0000:01:00.0`.
pub(super) fn bus_of_chip(word: &str) -> Option<&str> {
    let (_, address) = word.rsplit_once("-").filter(|(chip, _)| chip.contains("PCI-MSI"))?;
    is_bus_address(address).then_some(address)
}

/// `0000:03:00.0`: domain, bus, device, function.
pub(super) fn is_bus_address(text: &str) -> bool {
    text.len() >= 12
        && text.bytes().all(|c| c.is_ascii_hexdigit() || matches!(c, b':' | b'.'))
        && text.matches(':').count() == 2
        && text.matches('.').count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> (Option<String>, Option<u32>, Option<bool>) {
        let vector = read(name);
        (vector.interface, vector.queue, vector.receives)
    }

    // Names as the drivers of Linux 6.x make them (snprintf before request_irq).
    #[test]
    fn queues_of_every_driver() {
        let both = Some(true);
        for (name, interface, queue, receives) in [
            ("eth0-rx-3", "eth0", 3, both),
            ("enp4s0-tx-1", "enp4s0", 1, Some(false)),
            ("eth0-TxRx-11", "eth0", 11, both),
            ("i40e-eth0-TxRx-5", "eth0", 5, both),
            ("iavf-ens5-TxRx-0", "ens5", 0, both),
            ("ice-enp1s0f0-TxRx-1", "enp1s0f0", 1, both),
            ("i40e-eth0-fdir-TxRx-0", "eth0", 0, Some(false)),
            ("eth0-Tx-Rx-0", "eth0", 0, both),
            ("eth0-rxtx-2", "eth0", 2, both),
            ("eth0-txrx-1", "eth0", 1, both),
            ("eth0-fp-2", "eth0", 2, both),
            ("eth0-q0", "eth0", 0, both),
            ("eth0-Q3", "eth0", 3, both),
            ("eth0-Rx0", "eth0", 0, both),
            ("eth0-0", "eth0", 0, both),
            ("eth0:rx-0", "eth0", 0, both),
            ("ens5-ntfy-block.3", "ens5", 3, None),
            ("br-lan-rx-1", "br-lan", 1, both),
            // drivers/net/ethernet/qlogic/qlcnic, as in github.com/strizhechenko/netutils-linux,
            // tests/server-info-show.tests/2xE5-2687W.2xQLogic.L3_manual.
            ("eth0-tx-0-rx-3", "eth0", 3, both),
            ("eth1-rx-2", "eth1", 2, both),
            // drivers/net/ethernet/renesas/ravb_main.c.
            ("eth0:ch0:rx_be", "eth0", 0, both),
            // Chelsio's own driver, as in github.com/Irqbalance/irqbalance issue 202.
            ("enp5s0f4d1 (queue 11)", "enp5s0f4d1", 11, both),
        ] {
            assert_eq!(parts(name), (Some(interface.to_owned()), Some(queue), receives), "{name}");
        }
    }

    #[test]
    fn devices_without_an_interface() {
        assert_eq!(parts("mlx5_comp3@pci:0000:01:00.0"), (None, Some(3), Some(true)));
        assert_eq!(parts("mlx5_async_eq@pci:0000:01:00.0"), (None, None, Some(false)));
        assert_eq!(parts("mlx4-5@0000:04:00.0"), (None, None, Some(true)));
        assert_eq!(parts("ena-mgmnt@pci:0000:00:05.0"), (None, None, Some(false)));
        assert_eq!(parts("virtio0-input.1"), (None, Some(1), Some(true)));
        assert_eq!(parts("virtio0-output.0"), (None, Some(0), Some(false)));
        assert_eq!(parts("virtio1-input"), (None, None, None));
        assert_eq!(parts("c080000.ethernet:rxq2"), (None, Some(2), Some(true)));
        assert_eq!(device("c080000.ethernet:rxq2"), Some("c080000.ethernet"));
        assert_eq!(device("15100000.ethernet"), Some("15100000.ethernet"));
        assert_eq!(device("mlx5_comp3@pci:0000:01:00.0"), Some("0000:01:00.0"));
        assert_eq!(device("mlx4-5@0000:04:00.0"), Some("0000:04:00.0"));
        assert_eq!(device("virtio0-input.0"), Some("virtio0"));
        assert_eq!(device("i40e-0000:02:00.0:misc"), Some("0000:02:00.0"));
        assert_eq!(device("sfp1"), Some("sfp1"));
        assert_eq!(bus_of_chip("IR-PCI-MSIX-0000:01:00.0"), Some("0000:01:00.0"));
        assert_eq!(bus_of_chip("PCI-MSI-edge"), None);
    }

    #[test]
    fn plain_names_and_shared_lines() {
        assert_eq!(parts("eth1"), (Some("eth1".into()), None, None));
        assert_eq!(parts("end0"), (Some("end0".into()), None, None));
        for name in ["eth0-sp", "eth0:mac", "eth0:sfty-ce", "eth0:lpi", "eth0-link"] {
            assert_eq!(parts(name), (Some("eth0".into()), None, Some(false)), "{name}");
        }
        assert_eq!(parts("usb3, eth1"), (Some("eth1".into()), None, None));
        assert_eq!(parts("eth0, eth1"), (None, None, None));
        for name in
            ["timer", "usb3", "nvme0q1", "hpsa6-msix0", "ahci", "rtc0", "ehci_hcd:usb1", "xhci_hcd", ""]
        {
            assert_eq!(parts(name), (None, None, None), "{name}");
        }
    }
}
