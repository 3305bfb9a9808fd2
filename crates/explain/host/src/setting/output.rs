//! What ethtool prints of a value, in the form of its source (version 6.1: common.c, rxclass.c, netlink/*.c).

use super::{Amount, ChannelKind};
use crate::text::ethtool_flow_hash::FIELDS;
use crate::text::line::one_of_two;
use rss::HashFields;

/// A feature as `ethtool -k` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureLine<'a> {
    pub name: &'a str,
    /// Whether it is on.
    pub on: bool,
    /// Whether it is on as far as the administrator decides (`[requested on]` where something else keeps it off).
    pub requested: bool,
    /// Whether nobody can change it.
    pub fixed: bool,
    /// Whether it is listed as a part of the one above.
    pub part: bool,
}

/// Names that `ethtool -K` takes for those that `ethtool -k` prints (`off_flag_def` in ethtool.c).
const SHORT: [(&str, &str); 12] = [
    ("rx", "rx-checksumming"),
    ("tx", "tx-checksumming"),
    ("sg", "scatter-gather"),
    ("tso", "tcp-segmentation-offload"),
    ("ufo", "udp-fragmentation-offload"),
    ("gso", "generic-segmentation-offload"),
    ("gro", "generic-receive-offload"),
    ("lro", "large-receive-offload"),
    ("rxvlan", "rx-vlan-offload"),
    ("txvlan", "tx-vlan-offload"),
    ("ntuple", "ntuple-filters"),
    ("rxhash", "receive-hashing"),
];

/// Names that ethtool gave to groups of features before the kernel named each: the long name, and the pattern of
/// the kernel's names in it (at most one `*`), in ethtool's order.
pub(crate) const GROUPS: [(&str, &str); 11] = [
    ("rx-checksumming", "rx-checksum"),
    ("tx-checksumming", "tx-checksum-*"),
    ("scatter-gather", "tx-scatter-gather*"),
    ("tcp-segmentation-offload", "tx-tcp*-segmentation"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-vlan-offload", "rx-vlan-hw-parse"),
    ("tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple-filters", "rx-ntuple-filter"),
    ("receive-hashing", "rx-hashing"),
];

/// The feature of that name in the output of `ethtool -k`, and the parts that it stands for.
pub fn feature<'a>(text: &'a str, name: &str) -> Option<(FeatureLine<'a>, Vec<FeatureLine<'a>>)> {
    let kernel = GROUPS.iter().map(|(printed, kernel)| (kernel, printed));
    let mut names = SHORT.iter().map(|(short, printed)| (short, printed)).chain(kernel);
    let printed = names.find(|(other, _)| **other == name).map_or(name, |(_, printed)| *printed);
    let mut lines = text.lines().filter_map(feature_line);
    let feature = lines.find(|line| line.name == printed)?;
    let parts = if feature.part { Vec::new() } else { lines.take_while(|line| line.part).collect() };
    Some((feature, parts))
}

fn feature_line(line: &str) -> Option<FeatureLine<'_>> {
    let (name, state) = line.trim().split_once(": ")?;
    let mut words = state.split(' ');
    let on = switch(words.next()?)?;
    let rest = state.split_once(' ').map_or("", |(_, rest)| rest);
    let requested = match rest {
        "[requested on]" => true,
        "[requested off]" => false,
        _ => on,
    };
    Some(FeatureLine { name, on, requested, fixed: rest == "[fixed]", part: line.starts_with('\t') })
}

/// `on` or `off`.
pub(super) fn switch(word: &str) -> Option<bool> {
    one_of_two(word, "on", "off")
}

/// The current number of channels in the output of `ethtool -l`; `None` where the driver does not say.
pub fn channels(text: &str, kind: ChannelKind) -> Option<u32> {
    current(
        text,
        match kind {
            ChannelKind::Combined => "Combined",
            ChannelKind::Rx => "RX",
            ChannelKind::Tx => "TX",
        },
    )
}

/// The entries of a receive ring in the output of `ethtool -g`.
pub(crate) fn ring_rx(text: &str) -> Option<u32> {
    current(text, "RX")
}

fn current(text: &str, label: &str) -> Option<u32> {
    let lines = text.lines().skip_while(|line| !line.starts_with("Current hardware settings"));
    let mut values = lines.filter_map(|line| line.split_once(':'));
    values.find(|(found, _)| *found == label)?.1.trim().parse().ok()
}

/// A coalescing parameter in the output of `ethtool -c`. The lines with a pair are `Adaptive RX: off  TX: on` and
/// `CQE mode RX: off  TX: n/a`.
pub fn coalesce(text: &str, name: &str) -> Option<Amount> {
    let (heading, first) = match name {
        "adaptive-rx" => ("Adaptive RX:", true),
        "adaptive-tx" => ("Adaptive RX:", false),
        "cqe-mode-rx" => ("CQE mode RX:", true),
        "cqe-mode-tx" => ("CQE mode RX:", false),
        _ => {
            let mut values = text.lines().filter_map(|line| line.split_once(':'));
            return values.find(|(found, _)| *found == name)?.1.trim().parse().ok().map(Amount::Number);
        }
    };
    let pair = text.lines().find_map(|line| line.strip_prefix(heading))?;
    let (rx, tx) = pair.split_once("TX:")?;
    switch(if first { rx.trim() } else { tx.trim() }).map(Amount::Switch)
}

/// The hash fields in the output of `ethtool -n … rx-flow-hash …`; `Some(None)`: none.
pub fn hash_fields(text: &str) -> Option<Option<HashFields>> {
    if text.contains("All matching flows discarded on RX") {
        return Some(Some(HashFields::DISCARD));
    }
    let mut lines = text.lines().skip_while(|line| !line.ends_with("for computing Hash flow key:")).skip(1);
    let mut letters = String::new();
    for line in lines.by_ref().map(str::trim).take_while(|line| !line.is_empty()) {
        if line == "None" {
            return Some(None);
        }
        letters.push(FIELDS.iter().find(|(field, _)| *field == line)?.1);
    }
    letters.parse().ok().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEATURES: &str = "Features for eth0:\n\
        rx-checksumming: on\n\
        tcp-segmentation-offload: on\n\
        \ttx-tcp-segmentation: on\n\
        \ttx-tcp-mangleid-segmentation: off\n\
        \ttx-tcp6-segmentation: off [requested on]\n\
        generic-receive-offload: on\n\
        large-receive-offload: off [fixed]\n\
        rx-gro-list: off\n";

    #[test]
    fn features_have_short_names_and_parts() {
        let line = |name, on, part| FeatureLine { name, on, requested: on, fixed: false, part };
        let (tso, parts) = feature(FEATURES, "tso").expect("listed");
        assert_eq!(tso, line("tcp-segmentation-offload", true, false));
        let ipv6 = FeatureLine { requested: true, ..line("tx-tcp6-segmentation", false, true) };
        let mangleid = line("tx-tcp-mangleid-segmentation", false, true);
        assert_eq!(parts, [line("tx-tcp-segmentation", true, true), mangleid, ipv6]);
        for name in ["gro", "rx-gro", "generic-receive-offload"] {
            let (gro, parts) = feature(FEATURES, name).expect("listed");
            assert_eq!((gro, parts.len()), (line("generic-receive-offload", true, false), 0));
        }
        assert!(feature(FEATURES, "lro").expect("listed").0.fixed);
        assert_eq!(feature(FEATURES, "tx-tcp-segmentation").expect("listed").1, []);
        assert_eq!(feature(FEATURES, "bogus"), None);
        assert_eq!(feature("", "gro"), None);
    }

    #[test]
    fn only_current_settings_are_read() {
        let text = "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\t8\nTX:\t\t8\nCombined:\tn/a\n\
            Current hardware settings:\nRX:\t\t2\nTX:\t\tn/a\nOther:\t\t1\nCombined:\tn/a\n";
        assert_eq!(channels(text, ChannelKind::Rx), Some(2));
        assert_eq!(channels(text, ChannelKind::Tx), None);
        assert_eq!(channels(text, ChannelKind::Combined), None);
        let text = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nCurrent hardware settings:\n\
            RX Mini:\tn/a\nRX Jumbo:\t7\nRX Buf Len:\tn/a\nRX:\t\t256\nTX:\t\t512\n";
        assert_eq!(ring_rx(text), Some(256));
        assert_eq!(ring_rx("Pre-set maximums:\nRX: 4096\n"), None);
    }

    #[test]
    fn coalescing_has_pairs_and_numbers() {
        let text = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: on\nstats-block-usecs: n/a\n\
            rx-usecs: 3\nrx-frames: 0\nCQE mode RX: n/a  TX: n/a\n";
        assert_eq!(coalesce(text, "adaptive-rx"), Some(Amount::Switch(false)));
        assert_eq!(coalesce(text, "adaptive-tx"), Some(Amount::Switch(true)));
        assert_eq!(coalesce(text, "rx-usecs"), Some(Amount::Number(3)));
        assert_eq!(coalesce(text, "stats-block-usecs"), None);
        assert_eq!(coalesce(text, "cqe-mode-rx"), None);
        assert_eq!(coalesce("", "adaptive-rx"), None);
    }

    #[test]
    fn hash_fields_are_lines() {
        let heading = "UDP over IPV4 flows use these fields for computing Hash flow key:\n";
        let fields = |lines: &str| hash_fields(&format!("{heading}{lines}\n"));
        assert_eq!(fields("IP SA\nIP DA\n"), Some(Some(HashFields::ADDRESSES)));
        let ports = "L4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n";
        assert_eq!(fields(&format!("IP SA\nIP DA\n{ports}")), Some(Some(HashFields::ADDRESSES_AND_PORTS)));
        assert_eq!(fields("None\n"), Some(None));
        assert_eq!(fields("GTP TEID\n"), None);
        assert_eq!(hash_fields("All matching flows discarded on RX\n"), Some(Some(HashFields::DISCARD)));
        assert_eq!(hash_fields(""), None);
    }
}
