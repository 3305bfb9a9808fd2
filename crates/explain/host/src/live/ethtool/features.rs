//! `ethtool -k`: offloads and other features.

use super::{Ethtool, on_off};
use crate::live::bundle::{Output, Unread, printable};
use crate::setting::output::GROUPS;
use kernel::ethtool::{Bit, Command, Generic, Get, Ioctl, StringSet, bits, bounded, words};
use kernel::netlink::Attributes;
use std::collections::BTreeSet;
use std::fmt::Write as _;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Feature {
    name: String,
    active: bool,
    requested: bool,
    /// Whether nobody can change it.
    fixed: bool,
}

impl Ethtool {
    pub(super) fn features(&mut self, name: &[u8], display_name: &str) -> Output {
        let features = self.either(|generic| by_netlink(generic, name), |ioctl| by_ioctl(ioctl, name))?;
        Ok(render(display_name, &features))
    }
}

fn by_netlink(generic: &mut Generic, name: &[u8]) -> Result<Vec<Feature>, Unread> {
    // ETHTOOL_A_FEATURES_*.
    const HARDWARE: u16 = 2;
    const WANTED: u16 = 3;
    const ACTIVE: u16 = 4;
    const NO_CHANGE: u16 = 5;
    let answer = generic.get(Get::Features, name)?;
    let list = |kind| Attributes::new(&answer).nest(kind).map(bits).unwrap_or_default();
    let set = |kind| -> BTreeSet<u32> {
        list(kind).into_iter().filter(|bit| bit.set).map(|bit: Bit| bit.index).collect()
    };
    let (requested, active, no_change) = (set(WANTED), set(ACTIVE), set(NO_CHANGE));
    // The mask of the first set has every feature that the kernel knows.
    let feature = |bit: Bit| Feature {
        active: active.contains(&bit.index),
        requested: requested.contains(&bit.index),
        fixed: !bit.set || no_change.contains(&bit.index),
        name: printable(&bit.name),
    };
    let features: Vec<Feature> = list(HARDWARE).into_iter().map(feature).collect();
    if features.is_empty() { Err(Unread("the kernel names no features".to_owned())) } else { Ok(features) }
}

fn by_ioctl(ioctl: &mut Ioctl, name: &[u8]) -> Result<Vec<Feature>, Unread> {
    let names = ioctl.strings(name, StringSet::Features)?;
    if names.is_empty() {
        return Err(Unread("the kernel names no features".to_owned()));
    }
    let blocks = u32::try_from(names.len().div_ceil(32)).unwrap_or(u32::MAX);
    // cmd, size, then blocks of available, requested, active, never_changed.
    let room = bounded(blocks)?.saturating_mul(16).saturating_add(8);
    let answer = ioctl.bytes(name, Command::Features, &[blocks], room)?;
    let blocks = words(answer.get(8..).unwrap_or_default());
    let bit = |index: usize, mask: usize| {
        blocks.get(index / 32 * 4 + mask).is_some_and(|word| word >> (index % 32) & 1 != 0)
    };
    let feature = |(index, name): (usize, Vec<u8>)| Feature {
        name: printable(&name),
        requested: bit(index, 1),
        active: bit(index, 2),
        fixed: !bit(index, 0) || bit(index, 3),
    };
    Ok(names.into_iter().enumerate().map(feature).collect())
}

fn render(display_name: &str, features: &[Feature]) -> String {
    let named: Vec<(&Feature, Option<usize>)> = features
        .iter()
        .filter(|feature| !feature.name.is_empty())
        .map(|feature| (feature, GROUPS.iter().position(|(_, pattern)| matches(&feature.name, pattern))))
        .collect();
    let mut text = format!("Features for {display_name}:\n");
    for (place, (long, _)) in GROUPS.iter().enumerate() {
        let members: Vec<&Feature> =
            named.iter().filter(|(_, group)| *group == Some(place)).map(|&(feature, _)| feature).collect();
        match members.as_slice() {
            // One feature of its own goes by the old name.
            [one] => push(&mut text, "", long, one),
            several => {
                let any = several.iter().any(|feature| feature.active);
                let _ = writeln!(text, "{long}: {}", on_off(any));
                several.iter().for_each(|feature| push(&mut text, "\t", &feature.name, feature));
            }
        }
    }
    for (feature, _) in named.iter().filter(|(_, group)| group.is_none()) {
        push(&mut text, "", &feature.name, feature);
    }
    text
}

fn push(text: &mut String, indent: &str, name: &str, feature: &Feature) {
    let remark = match (feature.fixed, feature.active == feature.requested, feature.requested) {
        (true, _, _) => " [fixed]",
        (false, true, _) => "",
        (false, false, true) => " [requested on]",
        (false, false, false) => " [requested off]",
    };
    let _ = writeln!(text, "{indent}{name}: {}{remark}", on_off(feature.active));
}

/// Whether `name` fits a pattern with at most one `*`.
fn matches(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((front, back)) => name.strip_prefix(front).is_some_and(|rest| rest.ends_with(back)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(name: &str, active: bool, requested: bool, fixed: bool) -> Feature {
        Feature { name: name.to_owned(), active, requested, fixed }
    }

    #[test]
    fn groups_go_by_ethtools_names() {
        let text = render(
            "eth0",
            &[
                feature("tx-checksum-ipv4", false, false, true),
                feature("highdma", true, true, true),
                feature("tx-checksum-ip-generic", true, true, false),
                feature("rx-gro", false, true, false),
                feature("rx-all", true, false, false),
                feature("", true, true, false),
            ],
        );
        let expected =
            "\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\ttx-checksum-ip-generic: on\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\ngeneric-receive-offload: off [requested on]\n"), "{text}");
        assert!(text.ends_with("\nhighdma: on [fixed]\nrx-all: on [requested off]\n"), "{text}");
    }

    #[test]
    fn a_pattern_has_its_ends_apart() {
        assert!(matches("tx-tcp-segmentation", "tx-tcp*-segmentation"));
        assert!(matches("tx-tcp6-segmentation", "tx-tcp*-segmentation"));
        assert!(!matches("tx-tcp", "tx-tcp*-segmentation") && !matches("rx-gro-hw", "rx-gro"));
    }
}
