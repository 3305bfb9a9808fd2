//! Link modes: their names and how ethtool lists them.

use crate::live::bundle::printable;
use kernel::ethtool::Bit;
use std::collections::BTreeSet;

/// Bits that are no link mode (`ETHTOOL_LINK_MODE_*_BIT`): how a mode's bit is distinguished from the rest.
pub(super) const AUTONEG: u32 = 6;
const PAUSE: u32 = 13;
const ASYM_PAUSE: u32 = 14;
const PORTS: [u32; 6] = [7, 8, 9, 10, 11, 16];
const FEC: [u32; 4] = [49, 50, 51, 74];

/// What a bit stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A speed with a medium and a duplex.
    Mode,
    /// A kind of port.
    Port,
    Fec,
    Other,
}

fn class(index: u32) -> Class {
    match index {
        AUTONEG | PAUSE | ASYM_PAUSE => Class::Other,
        index if PORTS.contains(&index) => Class::Port,
        index if FEC.contains(&index) => Class::Fec,
        _ => Class::Mode,
    }
}

/// Names of the first bits (`net/ethtool/common.c`): kernels before 5.6, which alone are queried without names,
/// know no more.
const NAMES: [&str; 75] = [
    "10baseT/Half",
    "10baseT/Full",
    "100baseT/Half",
    "100baseT/Full",
    "1000baseT/Half",
    "1000baseT/Full",
    "Autoneg",
    "TP",
    "AUI",
    "MII",
    "FIBRE",
    "BNC",
    "10000baseT/Full",
    "Pause",
    "Asym_Pause",
    "2500baseX/Full",
    "Backplane",
    "1000baseKX/Full",
    "10000baseKX4/Full",
    "10000baseKR/Full",
    "10000baseR_FEC",
    "20000baseMLD2/Full",
    "20000baseKR2/Full",
    "40000baseKR4/Full",
    "40000baseCR4/Full",
    "40000baseSR4/Full",
    "40000baseLR4/Full",
    "56000baseKR4/Full",
    "56000baseCR4/Full",
    "56000baseSR4/Full",
    "56000baseLR4/Full",
    "25000baseCR/Full",
    "25000baseKR/Full",
    "25000baseSR/Full",
    "50000baseCR2/Full",
    "50000baseKR2/Full",
    "100000baseKR4/Full",
    "100000baseSR4/Full",
    "100000baseCR4/Full",
    "100000baseLR4_ER4/Full",
    "50000baseSR2/Full",
    "1000baseX/Full",
    "10000baseCR/Full",
    "10000baseSR/Full",
    "10000baseLR/Full",
    "10000baseLRM/Full",
    "10000baseER/Full",
    "2500baseT/Full",
    "5000baseT/Full",
    "None",
    "RS",
    "BASER",
    "50000baseKR/Full",
    "50000baseSR/Full",
    "50000baseCR/Full",
    "50000baseLR_ER_FR/Full",
    "50000baseDR/Full",
    "100000baseKR2/Full",
    "100000baseSR2/Full",
    "100000baseCR2/Full",
    "100000baseLR2_ER2_FR2/Full",
    "100000baseDR2/Full",
    "200000baseKR4/Full",
    "200000baseSR4/Full",
    "200000baseLR4_ER4_FR4/Full",
    "200000baseDR4/Full",
    "200000baseCR4/Full",
    "100baseT1/Full",
    "1000baseT1/Full",
    "400000baseKR8/Full",
    "400000baseSR8/Full",
    "400000baseLR8_ER8_FR8/Full",
    "400000baseDR8/Full",
    "400000baseCR8/Full",
    "LLRS",
];

/// A set of modes, ports and flags by bit, with their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkModes(Vec<(u32, String)>);

impl LinkModes {
    /// The bits that `keep` keeps.
    pub(super) fn of(bits: &[Bit], keep: impl Fn(&Bit) -> bool) -> LinkModes {
        let named = |bit: &Bit| (bit.index, Some(printable(&bit.name)).filter(|name| !name.is_empty()));
        LinkModes::named(bits.iter().filter(|bit| keep(bit)).map(named))
    }

    /// The bits set in a mask, by `names` where it has one.
    pub(super) fn of_mask(mask: &[u32], names: &[String]) -> LinkModes {
        let bits = mask.iter().zip((0u32..).step_by(32)).flat_map(|(&word, first)| {
            (0..32).filter(move |bit| word >> bit & 1 != 0).map(move |bit| first + bit)
        });
        let name = |bit: u32| names.get(usize::try_from(bit).ok()?).filter(|name| !name.is_empty()).cloned();
        LinkModes::named(bits.map(|bit| (bit, name(bit))))
    }

    fn named(bits: impl Iterator<Item = (u32, Option<String>)>) -> LinkModes {
        let known = |bit: u32| NAMES.get(usize::try_from(bit).ok()?).map(|&name| name.to_owned());
        LinkModes(
            bits.map(|(bit, name)| (bit, name.or_else(|| known(bit)).unwrap_or_else(|| format!("BIT{bit}"))))
                .collect(),
        )
    }

    /// Whether nothing is set.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is negotiation.
    pub(super) fn autoneg(&self) -> bool {
        self.0.iter().any(|&(bit, _)| bit == AUTONEG)
    }

    /// ethtool's words for the pause frames.
    pub(super) fn pause(&self) -> &'static str {
        let bits: BTreeSet<u32> = self.0.iter().map(|&(bit, _)| bit).collect();
        match (bits.contains(&PAUSE), bits.contains(&ASYM_PAUSE)) {
            (true, true) => "Symmetric Receive-only",
            (true, false) => "Symmetric",
            (false, true) => "Transmit-only",
            (false, false) => "No",
        }
    }

    fn of_class(&self, kind: Class) -> Vec<&(u32, String)> {
        self.0.iter().filter(|&&(bit, _)| class(bit) == kind).collect()
    }

    /// Ports or error corrections on one line.
    pub(super) fn line(&self, kind: Class) -> String {
        self.of_class(kind).iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Modes behind a label, one a line, a full-duplex mode next to its half-duplex one.
    pub(super) fn paragraph(&self, label: &str) -> String {
        let mut text = format!("\t{label}");
        let mut former: Option<&(u32, String)> = None;
        for mode in self.of_class(Class::Mode) {
            match former {
                None => {}
                Some((bit, name)) if bit.checked_add(1) == Some(mode.0) && name.ends_with("/Half") => {
                    text.push(' ');
                }
                Some(_) => text.push_str(&format!("\n\t{:width$}", "", width = label.len())),
            }
            text.push_str(&mode.1);
            former = Some(mode);
        }
        text.push_str(if former.is_none() { "Not reported\n" } else { "\n" });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_stand_as_ethtool_lists_them() {
        // 10/100/1000BASE-T with negotiation, twisted pair and symmetric pause: 0b10_0000_1110_1111.
        let modes = LinkModes::of_mask(&[0x20ef], &[]);
        assert_eq!(
            modes.paragraph("Supported link modes:   "),
            "\tSupported link modes:   10baseT/Half 10baseT/Full\n\
             \t                        100baseT/Half 100baseT/Full\n\
             \t                        1000baseT/Full\n"
        );
        assert_eq!(
            (modes.line(Class::Port).as_str(), modes.pause(), modes.autoneg()),
            ("TP", "Symmetric", true)
        );
        assert_eq!(
            LinkModes::default().paragraph("Advertised link modes:  "),
            "\tAdvertised link modes:  Not reported\n"
        );
    }

    #[test]
    fn a_bit_without_a_name_goes_by_its_number() {
        let modes = LinkModes::of_mask(&[0, 0, 0, 0x8000_0000], &[String::new()]);
        assert_eq!(modes.paragraph("x: "), "\tx: BIT127\n");
    }
}
