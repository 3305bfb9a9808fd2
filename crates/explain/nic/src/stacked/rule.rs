//! The rules that decide, as sentences with the place where each is written.

use std::fmt;

/// What decided about a feature.
#[expect(missing_docs, reason = "`entry` has the sentence of each")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    NotOffered,
    NotForTagged,
    InheritsNothing,
    NeedsScatterGather,
    NeedsChecksum,
    StackLimit,
    MiddleLimit,
    DriverLimit,
    ByPlace,
    LookupFinds,
    LookupEnds,
    PassedOn,
    SoftwareSegments,
    PppOffersNot,
    PppOffers,
    SumSurvives,
    PppDropsSum,
    DeviceParses,
    DeviceStops,
    DissectorPasses,
    DissectorEnds,
    TagTakenOff,
    GroPassesTags,
    GroEnds,
    GroEndsAtPppoe,
    NoTags,
}

impl Rule {
    /// A name for scripts.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// Where it is written, `file function`; empty where a claim of the profile decides.
    pub fn place(self) -> &'static str {
        self.entry().1
    }

    /// Name, place and sentence.
    fn entry(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Rule::NotOffered => ("not-offered", "", "the device does not offer it, tags or not"),
            Rule::NotForTagged => ("not-for-tagged", "", "the driver does not offer it for tagged frames"),
            Rule::InheritsNothing => (
                "inherits-nothing",
                "net/8021q/vlan_dev.c vlan_dev_init",
                "a VLAN device passes no features on to a device that stands on it",
            ),
            Rule::NeedsScatterGather => (
                "needs-scatter-gather",
                "net/core/dev.c netdev_fix_features",
                "it needs scatter-gather, which is missing",
            ),
            Rule::NeedsChecksum => (
                "needs-checksum",
                "net/core/dev.c netdev_fix_features",
                "it needs the checksum, which is missing",
            ),
            Rule::StackLimit => (
                "stack-limit",
                "net/core/dev.c netif_skb_features; since 4.1 dflt_features_check",
                "of frames with several tags the kernel leaves a driver without a check of its own only \
                 scatter-gather and HW_CSUM",
            ),
            Rule::MiddleLimit => (
                "middle-limit",
                "net/core/dev.c dflt_features_check",
                "a VLAN device in the middle of the stack sees several tags already, and has no check of its own",
            ),
            Rule::DriverLimit => (
                "driver-limit",
                "include/linux/if_vlan.h vlan_features_check",
                "the driver's own check takes it away from frames with several tags",
            ),
            Rule::ByPlace => (
                "by-place",
                "net/core/dev.c netif_skb_features",
                "no look-up is needed: the driver gives the device the place, or finds the header itself",
            ),
            Rule::LookupFinds => (
                "lookup-finds",
                "include/linux/if_vlan.h vlan_get_protocol",
                "the driver looks for IP behind the tags and finds it",
            ),
            Rule::LookupEnds => (
                "lookup-ends",
                "include/linux/if_vlan.h vlan_get_protocol before 3.19, or the driver's own look-up",
                "the driver looks for IP behind fewer tags than there are: such frames leave wrong",
            ),
            Rule::PassedOn => (
                "passed-on",
                "net/8021q/vlan_dev.c vlan_dev_init",
                "each VLAN device passes on what its parent offers for tagged frames",
            ),
            Rule::SoftwareSegments => (
                "software-segments",
                "net/core/dev.c validate_xmit_skb",
                "the kernel segments right above the driver where the device does not",
            ),
            Rule::PppOffersNot => (
                "ppp-offers-not",
                "drivers/net/ppp/ppp_generic.c ppp_setup",
                "a PPP device does not offer it, so that the kernel does the work above it",
            ),
            Rule::PppOffers => (
                "ppp-offers",
                "drivers/net/ppp/ppp_generic.c ppp_setup",
                "a PPP device has scatter-gather (by a patch of November 2025: 6.12.117 has it, 6.12.95 has not)",
            ),
            Rule::SumSurvives => (
                "sum-survives",
                "net/core/skbuff.c skb_pull_rcsum in vlan_untag",
                "the device gives a sum over the whole frame, and the kernel takes the tags out of it",
            ),
            Rule::PppDropsSum => (
                "ppp-drops-sum",
                "drivers/net/ppp/ppp_generic.c ppp_receive_frame",
                "PPP throws the device's sum over the frame away",
            ),
            Rule::DeviceParses => ("device-parses", "", "the device finds the header"),
            Rule::DeviceStops => ("device-stops", "", "the device does not find the header"),
            Rule::DissectorPasses => (
                "dissector-passes",
                "net/core/flow_dissector.c",
                "the kernel finds the header behind what is in the bytes, and hashes it itself",
            ),
            Rule::DissectorEnds => (
                "dissector-ends",
                "net/core/flow_dissector.c",
                "the kernel's flow dissector does not know TPID 0x88a8",
            ),
            Rule::TagTakenOff => (
                "tag-taken-off",
                "net/core/dev.c dev_gro_receive",
                "the device takes the only tag off, and GRO compares it",
            ),
            Rule::GroPassesTags => {
                ("gro-passes-tags", "net/8021q vlan_gro_receive", "GRO passes the tags in the bytes")
            }
            Rule::GroEnds => (
                "gro-ends",
                "net/8021q (vlan_gro_receive came later)",
                "GRO does not pass a tag that is in the bytes",
            ),
            Rule::GroEndsAtPppoe => (
                "gro-ends-at-pppoe",
                "drivers/net/ppp/pppoe.c (no packet_offload)",
                "GRO does not pass PPPoE (Linux 7.2 and later do)",
            ),
            Rule::NoTags => ("no-tags", "", "nothing is in the way"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().2)
    }
}
