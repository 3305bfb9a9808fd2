//! What a profile can say: every key, its kind and its meaning, by receive-path stage.
//!
//! `profiles/SCHEMA.md` is the same list for people; a test holds the two together.

use std::fmt;

/// A stage of a frame's way through the receiver, in the order in which the frame meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "`Stage::question` says what each is about")]
pub enum Stage {
    /// Not a stage: the device itself.
    Device,
    Admit,
    Parse,
    Hash,
    Queue,
    Moderate,
    Steer,
    Coalesce,
    Decap,
    Segment,
}

/// Name and question of each stage, in order.
const STAGES: [(Stage, &str, &str); 10] = [
    (Stage::Device, "device", "what it is"),
    (Stage::Admit, "admit", "is the frame let in"),
    (Stage::Parse, "parse", "which headers the hash unit sees"),
    (Stage::Hash, "hash", "which hash, over which fields"),
    (Stage::Queue, "queue", "which queue, how deep"),
    (Stage::Moderate, "moderate", "when the interrupt comes"),
    (Stage::Steer, "steer", "other ways to spread"),
    (Stage::Coalesce, "coalesce", "receive coalescing in the device"),
    (Stage::Decap, "decap", "tags taken off by the device"),
    (Stage::Segment, "segment", "checksum and segmentation under tags"),
];

impl Stage {
    /// All stages, in order.
    pub fn all() -> impl Iterator<Item = Stage> {
        STAGES.into_iter().map(|(stage, ..)| stage)
    }

    /// The name of the stage's table in a profile.
    pub const fn name(self) -> &'static str {
        STAGES[self as usize].1
    }

    /// The question that the stage answers.
    pub const fn question(self) -> &'static str {
        STAGES[self as usize].2
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What kind of value a key takes. Every key also takes `"unknown"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "`Display` says it")]
pub enum Kind {
    /// `"yes"` or `"no"`.
    Tri,
    Int,
    Ints,
    Text,
    OneOf(&'static [&'static str]),
    /// A list of words, of these where the list is not empty.
    Words(&'static [&'static str]),
    /// A list of tag stacks (`crate::tags::TagPattern`).
    Stacks,
    /// Hash fields as `ethtool -N … rx-flow-hash` spells them.
    Fields,
    /// A list of what was so in which kernel: `VERSION:WORD`, one for each of `KERNELS` at most.
    Versions(&'static [&'static str]),
    /// The same with one or more words joined by `+`.
    VersionSets(&'static [&'static str]),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Tri => f.write_str("\"yes\", \"no\" or \"unknown\""),
            Kind::Int => f.write_str("a number"),
            Kind::Ints => f.write_str("a list of numbers"),
            Kind::Text => f.write_str("a text"),
            Kind::OneOf(words) => write!(f, "one of {}", words.join(", ")),
            Kind::Words([]) => f.write_str("a list of words"),
            Kind::Words(words) => write!(f, "a list of words out of {}", words.join(", ")),
            Kind::Stacks => {
                f.write_str("a list of tag stacks such as \"8100\", \"88a8.8100\", \"*\", \"**\"")
            }
            Kind::Fields => f.write_str("hash fields out of the letters s, d, f, n"),
            Kind::Versions(words) => {
                let (kernels, words) = (KERNELS.join(", "), words.join(", "));
                write!(f, "a list of KERNEL:WORD, each kernel once, of kernels {kernels} and words {words}")
            }
            Kind::VersionSets(words) => {
                let (kernels, words) = (KERNELS.join(", "), words.join(", "));
                write!(
                    f,
                    "a list of KERNEL:WORD+WORD, each kernel once, of kernels {kernels} and words {words}"
                )
            }
        }
    }
}

/// A key of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "profiles/SCHEMA.md has them")]
pub struct Key {
    pub stage: Stage,
    pub name: &'static str,
    pub kind: Kind,
    /// What it means, for `rxlane nics`.
    pub label: &'static str,
}

impl Key {
    /// `stage.name`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.stage, self.name)
    }
}

/// How far into a packet the hash reaches.
pub(crate) const REACH: &[&str] = &["transport", "addresses", "nothing"];
/// Hash types.
pub const TYPES: &[&str] =
    &["ip4", "tcp4", "udp4", "sctp4", "ip6", "tcp6", "udp6", "sctp6", "ip6ex", "tcp6ex", "udp6ex"];
/// Traffic whose hash fields have a name in ethtool.
pub const FLOWS: &[&str] = &["tcp4", "udp4", "sctp4", "tcp6", "udp6", "sctp6"];
/// Hash functions.
pub(crate) const FUNCTIONS: &[&str] = &["toeplitz", "symmetric-toeplitz", "xor", "crc32", "software"];
/// What chooses the queue.
pub(crate) const SELECTIONS: &[&str] = &["rss", "hash", "sender", "host", "single"];
/// Default content of the indirection table.
pub(crate) const TABLES: &[&str] = &["striped", "blocks", "device"];
/// Where a frame goes that matches no hash type.
pub(crate) const UNHASHED: &[&str] = &["entry-0", "queue-0", "spread"];

/// Kernels of which profiles say what the driver does.
pub(crate) const KERNELS: &[&str] = &["3.10", "4.7", "6.12"];
/// Features of sent frames; `ip` is both IP versions, `tso4` IPv4 alone.
pub const FEATURES: &[&str] = &["none", "hw", "ip", "ipv4", "sg", "tso", "tso4", "ctag", "stag"];
/// What a driver's check of features does with frames of several tags.
pub(crate) const CHECKS: &[&str] = &["none", "limits", "keeps"];
/// How a driver finds IP behind tags.
pub(crate) const LOOKUPS: &[&str] = &["kernel", "one-tag", "untagged", "place"];
/// What a device reports of received checksums.
pub(crate) const VERIFICATIONS: &[&str] = &["verified", "frame", "none"];
/// What becomes of the limits when the MTU is raised.
pub(crate) const BEYONDS: &[&str] = &["mtu", "max", "same"];

macro_rules! keys {
    ($( $stage:ident { $( $constant:ident $name:literal $kind:expr, $label:literal; )* } )*) => {
        $($(
            #[doc = concat!("`", $name, "`: ", $label, ".")]
            pub const $constant: Key =
                Key { stage: Stage::$stage, name: $name, kind: $kind, label: $label };
        )*)*
        /// Every key, in the order of the stages.
        pub const KEYS: &[Key] = &[ $($( $constant, )*)* ];
    };
}

keys! {
    Device {
        DRIVERS "drivers" Kind::Words(&[]), "drivers";
        SPEEDS "speeds_mbps" Kind::Ints, "link speeds, Mbit/s";
    }
    Admit {
        FRAME_UNTAGGED "frame_untagged" Kind::Int, "largest frame, untagged";
        FRAME_ONE_TAG "frame_one_tag" Kind::Int, "largest frame, one tag";
        FRAME_TWO_TAGS "frame_two_tags" Kind::Int, "largest frame, two tags";
        TAG_ALLOWANCE "tag_allowance_tpids" Kind::Ints, "outer TPIDs that are allowed the longer frame";
        OUTER_STAG "outer_stag" Kind::Tri, "receives 0x88a8 by default";
        FRAME_FOLLOWS "frame_follows" Kind::Text, "what changes the limit";
        FRAME_MAX "frame_max" Kind::Int, "largest frame it can be set to";
        FRAME_BEYOND "frame_beyond" Kind::OneOf(BEYONDS), "limits at a larger MTU follow";
        FRAME_BEYOND_MTU "frame_beyond_mtu" Kind::Int, "largest MTU that changes no limit";
    }
    Parse {
        TAGS_THROUGH "tags_through" Kind::Stacks, "tag stacks seen through";
        TAGS_STOP "tags_stop" Kind::Stacks, "tag stacks that hide IP";
        TPIDS_SETTABLE "tpids_settable" Kind::Text, "how TPIDs are set";
        PPPOE "pppoe" Kind::Tri, "PPPoE seen through";
        MPLS "mpls" Kind::Tri, "MPLS seen through";
        LLC_SNAP "llc_snap" Kind::Tri, "IP in LLC/SNAP seen";
        IPV4_OPTIONS "ipv4_options" Kind::OneOf(REACH), "IPv4 with options";
        IPV4_FRAGMENT_FIRST "ipv4_fragment_first" Kind::OneOf(REACH), "IPv4, first fragment";
        IPV4_FRAGMENT_LATER "ipv4_fragment_later" Kind::OneOf(REACH), "IPv4, later fragment";
        IPV6_EXTENSIONS "ipv6_extensions" Kind::OneOf(REACH), "IPv6 with extension headers";
        IPV6_FRAGMENT_FIRST "ipv6_fragment_first" Kind::OneOf(REACH), "IPv6, first fragment";
        IPV6_FRAGMENT_LATER "ipv6_fragment_later" Kind::OneOf(REACH), "IPv6, later fragment";
        TUNNEL_INNER "tunnel_inner" Kind::Tri, "inner packet of a tunnel hashed";
    }
    Hash {
        HASH_FUNCTIONS "functions" Kind::Words(FUNCTIONS), "hash functions";
        KEY_BYTES "key_bytes" Kind::Int, "hash key, bytes";
        KEY_DEFAULT "key_default" Kind::Text, "default key";
        KEY_READABLE "key_readable" Kind::Tri, "key readable";
        HASH_TYPES "types" Kind::Words(TYPES), "hash types possible";
        TYPES_DEFAULT "types_default" Kind::Words(TYPES), "hash types by default";
        TYPES_EXCLUSIVE "types_exclusive" Kind::Words(&[]), "hash types that exclude each other";
        FIELDS_TCP4 "fields_tcp4" Kind::Fields, "fields, TCP over IPv4";
        FIELDS_UDP4 "fields_udp4" Kind::Fields, "fields, UDP over IPv4";
        FIELDS_SCTP4 "fields_sctp4" Kind::Fields, "fields, SCTP over IPv4";
        FIELDS_TCP6 "fields_tcp6" Kind::Fields, "fields, TCP over IPv6";
        FIELDS_UDP6 "fields_udp6" Kind::Fields, "fields, UDP over IPv6";
        FIELDS_SCTP6 "fields_sctp6" Kind::Fields, "fields, SCTP over IPv6";
        FIELDS_SETTABLE "fields_settable" Kind::Words(FLOWS), "fields can be changed for";
    }
    Queue {
        SELECTION "selection" Kind::OneOf(SELECTIONS), "queue chosen by";
        RX_QUEUES "rx_queues" Kind::Int, "receive queues for RSS";
        RX_QUEUES_DEFAULT "rx_queues_default" Kind::Text, "queues by default";
        TABLE_SIZES "table_sizes" Kind::Ints, "indirection table, entries";
        INDEX_BITS "index_bits" Kind::Int, "hash bits that index it";
        ENTRY_BITS "entry_bits" Kind::Int, "bits of an entry";
        TABLE_DEFAULT "table_default" Kind::OneOf(TABLES), "default table";
        TABLE_SETTABLE "table_settable" Kind::Tri, "table settable";
        UNHASHED_FRAMES "unhashed" Kind::OneOf(UNHASHED), "frames without hash go to";
        RING_MIN "ring_min" Kind::Int, "ring, smallest";
        RING_DEFAULT "ring_default" Kind::Int, "ring, default";
        RING_MAX "ring_max" Kind::Int, "ring, largest";
    }
    Moderate {
        GRANULARITY_NS "granularity_ns" Kind::Int, "timer step, ns";
        INTERVAL_MAX_NS "interval_max_ns" Kind::Int, "longest interval, ns";
        ADAPTIVE "adaptive" Kind::Tri, "adaptive by default";
    }
    Steer {
        XDP_NATIVE "xdp_native" Kind::Tri, "XDP native";
        XDP_SINCE "xdp_since" Kind::Text, "XDP native since Linux";
        ETHERTYPE_FILTER "ethertype_filter" Kind::Tri, "queue by EtherType rule";
    }
    Coalesce {
        LRO "lro" Kind::Tri, "LRO";
    }
    Decap {
        VLAN_STRIP "vlan_strip" Kind::Tri, "strips 0x8100";
        QINQ_STRIP "qinq_strip" Kind::Tri, "strips 0x88a8";
    }
    Segment {
        RX_CHECKSUM_ONE_TAG "rx_checksum_one_tag" Kind::Tri, "RX checksum, one tag";
        RX_CHECKSUM_TWO_TAGS "rx_checksum_two_tags" Kind::Tri, "RX checksum, two tags";
        RX_CHECKSUM_PPPOE "rx_checksum_pppoe" Kind::Tri, "RX checksum, PPPoE";
        TX_CHECKSUM_ONE_TAG "tx_checksum_one_tag" Kind::Tri, "TX checksum, one tag";
        TX_CHECKSUM_TWO_TAGS "tx_checksum_two_tags" Kind::Tri, "TX checksum, two tags";
        TX_CHECKSUM_PPPOE "tx_checksum_pppoe" Kind::Tri, "TX checksum, PPPoE";
        TSO_ONE_TAG "tso_one_tag" Kind::Tri, "TSO, one tag";
        TSO_TWO_TAGS "tso_two_tags" Kind::Tri, "TSO, two tags";
        TSO_PPPOE "tso_pppoe" Kind::Tri, "TSO, PPPoE";
        RX_CHECKSUM "rx_checksum" Kind::Words(VERIFICATIONS), "RX checksum reported as";
        TX_FEATURES "tx_features" Kind::VersionSets(FEATURES), "features sent, by kernel";
        VLAN_FEATURES "vlan_features" Kind::VersionSets(FEATURES), "features for tagged frames";
        FEATURES_CHECK "features_check" Kind::Versions(CHECKS), "driver's check of features";
        CHECKSUM_LOOKUP "checksum_lookup" Kind::Versions(LOOKUPS), "IP found for checksums by";
        TSO_LOOKUP "tso_lookup" Kind::Versions(LOOKUPS), "IP found for TSO by";
    }
}

/// The key of that name in that stage.
pub fn find(stage: Stage, name: &str) -> Option<Key> {
    KEYS.iter().find(|key| key.stage == stage && key.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list for people names every key in the section of its stage, and no others.
    #[test]
    fn schema_md_lists_the_same_keys() {
        let text = include_str!("../profiles/SCHEMA.md");
        let keys = text.split("## Keys").nth(1).unwrap().split("\n## Modes").next().unwrap();
        let mut documented = Vec::new();
        for section in keys.split("\n### `[").skip(1) {
            let stage = section.split(']').next().unwrap();
            for line in section.lines().filter(|line| line.starts_with("| `")) {
                let cell = line.split('|').nth(1).unwrap();
                documented.extend(
                    cell.split_whitespace().map(|name| format!("{stage}.{}", name.trim_matches('`'))),
                );
            }
        }
        let coded: Vec<String> = KEYS.iter().map(Key::path).collect();
        assert_eq!(documented, coded);
    }
}
