//! Sets of offload features, and the two operations on them that are more than a bitwise one.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};

/// Offload features of a network interface, as far as tags touch them. The names are those of the kernel's
/// `NETIF_F_…` without the prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u16);

impl Features {
    /// Nothing.
    pub const NONE: Features = Features(0);
    /// Checksums of anything, described by their place in the frame.
    pub const HW_CSUM: Features = Features(1);
    /// Checksums of TCP and UDP over IPv4; the driver has to find the header.
    pub const IP_CSUM: Features = Features(1 << 1);
    /// Checksums of TCP and UDP over IPv6.
    pub(crate) const IPV6_CSUM: Features = Features(1 << 2);
    /// Scatter-gather: a frame from several pieces of memory.
    pub(crate) const SG: Features = Features(1 << 3);
    /// TCP segmentation, IPv4.
    pub const TSO: Features = Features(1 << 4);
    /// TCP segmentation, IPv6.
    pub const TSO6: Features = Features(1 << 5);
    /// Segmentation by the kernel, right above the driver.
    pub const GSO: Features = Features(1 << 6);
    /// A tag 0x8100 is inserted by the device.
    pub(crate) const CTAG_TX: Features = Features(1 << 7);
    /// A tag 0x88a8 is inserted by the device.
    pub(crate) const STAG_TX: Features = Features(1 << 8);

    /// Both checksums that depend on the IP version.
    pub(crate) const BY_VERSION: Features = Features(Features::IP_CSUM.0 | Features::IPV6_CSUM.0);
    /// Every checksum.
    pub const CHECKSUMS: Features = Features(Features::HW_CSUM.0 | Features::BY_VERSION.0);
    /// TCP segmentation of both IP versions.
    pub(crate) const ALL_TSO: Features = Features(Features::TSO.0 | Features::TSO6.0);
    /// Tags inserted by the device.
    pub(crate) const TAG_TX: Features = Features(Features::CTAG_TX.0 | Features::STAG_TX.0);

    /// Whether all of `other` are there.
    pub const fn has(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// What both have, where a device that can checksum anything can also checksum IPv4 and IPv6
    /// (`netdev_intersect_features`).
    pub(crate) fn intersect(self, other: Features) -> Features {
        let generous =
            |set: Features| if set.has(Features::HW_CSUM) { set | Features::BY_VERSION } else { set };
        match self.has(Features::HW_CSUM) == other.has(Features::HW_CSUM) {
            true => self & other,
            false => generous(self) & generous(other),
        }
    }

    /// Without what needs something that is missing (`netdev_fix_features`): TSO needs scatter-gather and the
    /// checksum of its IP version, GSO needs scatter-gather.
    pub fn fixed(self) -> Features {
        let mut fixed = self;
        if !fixed.has(Features::SG) {
            fixed = fixed & !(Features::ALL_TSO | Features::GSO);
        }
        for family in [Family::V4, Family::V6] {
            if !fixed.checksums(family) {
                fixed = fixed & !family.tso();
            }
        }
        fixed
    }

    /// Whether TCP checksums over that IP version can be left to the device (`can_checksum_protocol`).
    pub fn checksums(self, family: Family) -> bool {
        self.has(Features::HW_CSUM) || self.has(family.checksum())
    }

    /// The words of a profile joined by `+`: `hw+sg+tso+ctag`, or `none`. What some devices of the family have, with
    /// `?` behind it, comes second.
    pub fn parse(text: &str) -> Option<(Features, Features)> {
        if text == "none" {
            return Some((Features::NONE, Features::NONE));
        }
        text.split('+').try_fold((Features::NONE, Features::NONE), |(all, some), word| {
            let (name, certain) = word.strip_suffix('?').map_or((word, true), |name| (name, false));
            let (_, features) = WORDS.iter().find(|(known, _)| *known == name)?;
            Some(if certain { (all | *features, some) } else { (all, some | *features) })
        })
    }
}

/// How profiles spell features.
const WORDS: &[(&str, Features)] = &[
    ("hw", Features::HW_CSUM),
    ("ip", Features::BY_VERSION),
    ("ipv4", Features::IP_CSUM),
    ("sg", Features::SG),
    ("tso", Features::ALL_TSO),
    ("tso4", Features::TSO),
    ("ctag", Features::CTAG_TX),
    ("stag", Features::STAG_TX),
];

impl BitOr for Features {
    type Output = Features;
    fn bitor(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }
}

impl BitAnd for Features {
    type Output = Features;
    fn bitand(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }
}

impl Not for Features {
    type Output = Features;
    fn not(self) -> Features {
        Features(!self.0)
    }
}

/// The IP version that a TCP segment is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The checksum that is made for this version alone.
    pub const fn checksum(self) -> Features {
        match self {
            Family::V4 => Features::IP_CSUM,
            Family::V6 => Features::IPV6_CSUM,
        }
    }

    /// TCP segmentation of this version.
    pub const fn tso(self) -> Features {
        match self {
            Family::V4 => Features::TSO,
            Family::V6 => Features::TSO6,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HW: Features = Features::HW_CSUM;
    const IP: Features = Features::BY_VERSION;

    #[test]
    fn who_can_checksum_anything_can_checksum_ip() {
        assert_eq!((HW | Features::SG).intersect(IP), IP);
        assert_eq!(IP.intersect(HW | Features::SG), IP);
        assert_eq!(Features::IP_CSUM.intersect(HW), Features::IP_CSUM);
        assert_eq!(HW.intersect(HW), HW);
        assert_eq!(IP.intersect(Features::SG), Features::NONE);
    }

    #[test]
    fn segmentation_needs_scatter_gather_and_checksums() {
        let all = HW | Features::SG | Features::ALL_TSO | Features::GSO;
        assert_eq!(all.fixed(), all);
        assert_eq!((all & !Features::SG).fixed(), HW);
        assert_eq!((all & !HW).fixed(), Features::SG | Features::GSO);
        let v4 = Features::IP_CSUM | Features::SG | Features::ALL_TSO;
        assert_eq!(v4.fixed(), Features::IP_CSUM | Features::SG | Features::TSO);
    }

    #[test]
    fn words_of_profiles() {
        let sure = |features| Some((features, Features::NONE));
        assert_eq!(Features::parse("none"), sure(Features::NONE));
        assert_eq!(Features::parse("ipv4+sg+tso4"), sure(Features::IP_CSUM | Features::SG | Features::TSO));
        assert_eq!(Features::parse("ip+ctag"), sure(IP | Features::CTAG_TX));
        assert_eq!(Features::parse("hw+tso?"), Some((HW, Features::ALL_TSO)));
        for wrong in ["", "hw+", "csum", "none+sg", "HW", "?", "hw??"] {
            assert_eq!(Features::parse(wrong), None, "{wrong}");
        }
    }
}
