//! `.link` files of udev (systemd.link(5)).
//!
//! udev applies the first file that matches, and no other. So this one has the `[Link]` section of the file that is in charge
//! now, without which the interface would lose its name and address policy.

use crate::machine::{Identity, Interface, LinkFile};
use crate::plan::Plan;
use crate::{File, Lasting, Origin};
use host::setting::{Amount, ChannelKind, Setting};
use std::fmt::Write;

/// Before all others in the alphanumeric order in which udev looks.
pub(crate) const PREFIX: &str = "00-rxlane-";
const FOLDER: &str = "/etc/systemd/network";
/// The lines between which a file of rxlane has what it took over.
pub(crate) const TAKEN_OVER: &str = "# From ";
pub(crate) const OWN: &str = "# What helped:";

/// The option for a setting, its value, and the first version of systemd that has it ("Added in version" of systemd.link(5), and
/// NEWS of systemd).
///
/// Features are those of which `ethtool -K` and systemd change the same (`netdev_feature_table` in src/shared/ethtool-util.c):
/// `tso` of ethtool stands for more than `TCPSegmentationOffload=`.
pub(crate) fn option(setting: &Setting) -> Option<(&'static str, String, u32)> {
    let switch = |on: bool| if on { "yes" } else { "no" }.to_owned();
    Some(match setting {
        Setting::Channels { kind, count, .. } if *count > 0 => {
            let key = match kind {
                ChannelKind::Combined => "CombinedChannels",
                ChannelKind::Rx => "RxChannels",
                ChannelKind::Tx => "TxChannels",
            };
            (key, count.to_string(), 239)
        }
        Setting::Ring { rx, .. } if *rx > 0 => ("RxBufferSize", rx.to_string(), 244),
        Setting::Mtu { mtu, .. } => ("MTUBytes", mtu.to_string(), 211),
        Setting::Coalesce { name, value: Amount::Switch(on), .. } => {
            let key = match name.as_str() {
                "adaptive-rx" => "UseAdaptiveRxCoalesce",
                "adaptive-tx" => "UseAdaptiveTxCoalesce",
                _ => return None,
            };
            (key, switch(*on), 250)
        }
        Setting::Coalesce { name, value: Amount::Number(number), .. } => {
            let (key, unit) = match name.as_str() {
                "rx-usecs" => ("RxCoalesceSec", "us"),
                "rx-usecs-irq" => ("RxCoalesceIrqSec", "us"),
                "tx-usecs" => ("TxCoalesceSec", "us"),
                "tx-usecs-irq" => ("TxCoalesceIrqSec", "us"),
                "rx-frames" => ("RxMaxCoalescedFrames", ""),
                "rx-frames-irq" => ("RxMaxCoalescedIrqFrames", ""),
                "tx-frames" => ("TxMaxCoalescedFrames", ""),
                "tx-frames-irq" => ("TxMaxCoalescedIrqFrames", ""),
                _ => return None,
            };
            (key, format!("{number}{unit}"), 250)
        }
        Setting::Feature { name, on, .. } => {
            let (key, since) = match name.as_str() {
                "gro" | "generic-receive-offload" | "rx-gro" => ("GenericReceiveOffload", 232),
                "gso" | "generic-segmentation-offload" | "tx-generic-segmentation" => {
                    ("GenericSegmentationOffload", 232)
                }
                "lro" | "large-receive-offload" | "rx-lro" => ("LargeReceiveOffload", 232),
                "tx-tcp-segmentation" => ("TCPSegmentationOffload", 232),
                "tx-tcp6-segmentation" => ("TCP6SegmentationOffload", 235),
                "rx" | "rx-checksumming" | "rx-checksum" => ("ReceiveChecksumOffload", 245),
                "rx-gro-hw" => ("GenericReceiveOffloadHardware", 250),
                "rxvlan" | "rx-vlan-offload" | "rx-vlan-hw-parse" => {
                    ("ReceiveVLANCTAGHardwareAcceleration", 250)
                }
                "txvlan" | "tx-vlan-offload" | "tx-vlan-hw-insert" => {
                    ("TransmitVLANCTAGHardwareAcceleration", 250)
                }
                "ntuple" | "ntuple-filters" | "rx-ntuple-filter" => ("NTupleFilter", 250),
                _ => return None,
            };
            (key, switch(*on), since)
        }
        _ => return None,
    })
}

/// Adds the file, and gives the settings that it has no option for.
pub(crate) fn file<'s>(
    plan: &mut Plan,
    interface: &Interface,
    settings: &[&'s Lasting],
    (version, base): (u32, &LinkFile),
    origin: &Origin,
) -> Vec<&'s Lasting> {
    let is_found = match interface.identity {
        // An older one takes a file without a line that it knows below [Match] for one of all interfaces.
        Identity::PermanentAddress(_) => version >= 245,
        Identity::Path(_) | Identity::Name => true,
        Identity::Renamed => false,
    };
    let is_first = base.path.file_name().is_some_and(|name| name.as_encoded_bytes() > PREFIX.as_bytes());
    let mut lines: Vec<(&str, String)> = Vec::new();
    let mut rest = Vec::new();
    for lasting in settings {
        match option(&lasting.setting) {
            Some((key, value, since)) if version >= since && is_first && is_found => lines.push((key, value)),
            _ => rest.push(*lasting),
        }
    }
    if lines.is_empty() {
        return rest;
    }
    let mut text = format!(
        "# {}\n[Match]\n{}\n\n[Link]\n{TAKEN_OVER}{}, which this file takes the place of:\n",
        origin.line(),
        matching(interface),
        base.path.display()
    );
    let is_own = |line: &str| lines.iter().any(|(key, _)| line.split('=').next() == Some(key));
    for line in base.link.iter().filter(|line| !is_own(line)) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{OWN}");
    for (key, value) in &lines {
        let _ = writeln!(text, "{key}={value}");
    }
    plan.files.push(File::text(format!("{FOLDER}/{PREFIX}{}.link", interface.name), 0o644, text));
    rest
}

/// The line by which udev finds the interface again, whatever its name is before udev has given it one.
fn matching(interface: &Interface) -> String {
    match &interface.identity {
        Identity::PermanentAddress(address) => format!("PermanentMACAddress={address}"),
        Identity::Path(path) => format!("Path={path}"),
        Identity::Name | Identity::Renamed => format!("OriginalName={}", interface.name),
    }
}
