//! The rules of a kernel that decide what is left of a device's features under tags.
//!
//! Three kernels were read: 3.10.105, 4.7.4 (the field report compares 3.10.103 with 4.7.4) and 6.12.117. A set
//! of rules need not be one of them: the fields are independent, so that one rule can be changed alone.

use super::features::Features;

/// TPID of a customer tag (IEEE 802.1Q).
pub(crate) const CUSTOMER: u16 = 0x8100;
/// TPID of a service tag (IEEE 802.1ad).
pub(crate) const SERVICE: u16 = 0x88a8;

/// How far somebody walks who looks for the protocol behind the tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Not at all: what the first two bytes behind the addresses say.
    Untagged,
    /// Behind one tag of TPID 0x8100, and behind none where a tag travels out of band.
    OneCustomerTag,
    /// Behind any number of tags, 0x8100 and 0x88a8.
    EveryTag,
}

impl Walk {
    /// The TPID at which the walk ends, `None` where it gets behind all tags. `tpids` are the tags of the frame,
    /// outermost first; the outermost is not among the bytes where it travels `out_of_band`, for the device to
    /// insert.
    pub fn stops_at(self, tpids: &[u16], out_of_band: bool) -> Option<u16> {
        let in_bytes = tpids.get(usize::from(out_of_band)..).unwrap_or_default();
        match self {
            Walk::Untagged => in_bytes.first().copied(),
            Walk::OneCustomerTag if !out_of_band && in_bytes.first() == Some(&CUSTOMER) => {
                in_bytes.get(1).copied()
            }
            Walk::OneCustomerTag => in_bytes.first().copied(),
            Walk::EveryTag => in_bytes.iter().copied().find(|tpid| ![CUSTOMER, SERVICE].contains(tpid)),
        }
    }
}

/// Who applies the limit for frames with several tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagLimit {
    /// The stack, for every driver.
    Always,
    /// The stack, unless the driver checks features itself (`ndo_features_check`).
    UnlessDriverChecks,
}

/// What a kernel does with features and tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRules {
    /// As `--kernel` spells it, and as profiles do.
    pub name: &'static str,
    /// What was read.
    pub read: &'static str,
    /// The word under which a profile says what its driver did in that kernel.
    pub version: &'static str,
    /// A VLAN device passes its parent's `vlan_features` on to a device that stands on it.
    pub inherits: bool,
    /// A VLAN device offers software segmentation whatever its parent can.
    pub soft_segmentation: bool,
    /// A VLAN device shows a checksum by place where its parent has one by IP version.
    pub generic_checksum: bool,
    /// Sets are intersected so that a checksum by place covers those by IP version.
    pub intersects: bool,
    /// Who applies the limit for several tags.
    pub tag_limit: TagLimit,
    /// The limit lets checksums by IP version pass (an effect of that intersection, taken back later).
    pub limit_keeps_ip: bool,
    /// `vlan_get_protocol`, by which drivers look for IP.
    pub protocol_walk: Walk,
    /// TPIDs that the flow dissector passes, by which RPS hashes.
    pub dissects: &'static [u16],
    /// GRO passes tags that are among the bytes.
    pub gro_tags: bool,
    /// What a PPP device offers.
    pub ppp_features: Features,
    /// PPP drops a checksum over the whole frame (`CHECKSUM_COMPLETE`).
    pub ppp_drops_complete: bool,
}

impl KernelRules {
    /// Linux 3.10, the first with 802.1ad devices.
    pub const fn v3_10() -> KernelRules {
        KernelRules {
            name: "3.10",
            read: "Linux 3.10.105",
            version: "3.10",
            inherits: false,
            soft_segmentation: false,
            generic_checksum: false,
            intersects: false,
            tag_limit: TagLimit::Always,
            limit_keeps_ip: false,
            protocol_walk: Walk::OneCustomerTag,
            dissects: &[CUSTOMER],
            gro_tags: false,
            ppp_features: Features::NONE,
            ppp_drops_complete: false,
        }
    }

    /// Linux 4.7.
    pub const fn v4_7() -> KernelRules {
        KernelRules {
            name: "4.7",
            read: "Linux 4.7.4",
            version: "4.7",
            inherits: true,
            soft_segmentation: true,
            generic_checksum: false,
            intersects: true,
            tag_limit: TagLimit::UnlessDriverChecks,
            limit_keeps_ip: true,
            protocol_walk: Walk::EveryTag,
            dissects: &[CUSTOMER, SERVICE],
            gro_tags: true,
            ppp_features: Features::NONE,
            ppp_drops_complete: true,
        }
    }

    /// Linux 6.12, which the drivers' claims in the profiles are about.
    pub const fn current() -> KernelRules {
        KernelRules {
            name: "current",
            read: "Linux 6.12.117",
            version: "6.12",
            generic_checksum: true,
            limit_keeps_ip: false,
            ppp_features: Features::SG,
            ..KernelRules::v4_7()
        }
    }

    /// All of them, the oldest first.
    pub const ALL: [KernelRules; 3] = [KernelRules::v3_10(), KernelRules::v4_7(), KernelRules::current()];

    /// The rules of that name or version: `3.10`, `4.7`, `current` or `6.12`.
    pub fn named(name: &str) -> Option<KernelRules> {
        KernelRules::ALL.into_iter().find(|rules| rules.name == name || rules.version == name)
    }

    /// What two sets of features have in common.
    pub(crate) fn common(&self, one: Features, other: Features) -> Features {
        if self.intersects { one.intersect(other) } else { one & other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The look-ups of the field report: one tag of 0x8100, and since 3.19 any number.
    #[test]
    fn walks_end_where_the_drivers_did() {
        let (one, every) = (Walk::OneCustomerTag, Walk::EveryTag);
        for (walk, tags, is_inserted, expected) in [
            (one, &[][..], false, None),
            (one, &[CUSTOMER], false, None),
            (one, &[CUSTOMER], true, None),
            (one, &[SERVICE], false, Some(SERVICE)),
            (one, &[SERVICE, CUSTOMER], false, Some(SERVICE)),
            (one, &[CUSTOMER, CUSTOMER], false, Some(CUSTOMER)),
            (one, &[CUSTOMER, CUSTOMER], true, Some(CUSTOMER)),
            (every, &[], false, None),
            (every, &[SERVICE], false, None),
            (every, &[SERVICE, CUSTOMER], false, None),
            (every, &[CUSTOMER; 5], false, None),
            (every, &[SERVICE, 0x9100, CUSTOMER], false, Some(0x9100)),
            (Walk::Untagged, &[CUSTOMER], true, None),
            (Walk::Untagged, &[CUSTOMER], false, Some(CUSTOMER)),
        ] {
            assert_eq!(walk.stops_at(tags, is_inserted), expected, "{walk:?} {tags:x?} {is_inserted}");
        }
    }

    #[test]
    fn kernels_are_found_by_name() {
        assert_eq!(KernelRules::named("4.7"), Some(KernelRules::v4_7()));
        assert_eq!(KernelRules::named("4.8"), None);
    }
}
