//! Why a flow is left to the kernel.

use serde::{Deserialize, Serialize};

/// Why a flow is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// One end is this machine.
    Local,
    /// It goes to several stations.
    Multicast,
    /// A helper of conntrack reads what it carries (FTP, SIP).
    Helper,
    /// It is in a conntrack zone, or in nftables' flowtable.
    Elsewhere,
    /// IPv6 addresses are translated.
    TranslatedIpv6,
    /// An IPsec policy is for such packets.
    Ipsec,
    /// There is no route, or it leads nowhere (blackhole, prohibit), or what arrives there is not forwarded.
    NoRoute,
    /// Answers leave by another interface than that of the requests.
    Asymmetric,
    /// The routes of packets with the marks that rules know differ, and nothing shows which mark its packets have.
    Mark,
    /// Rules or routes lead packets with another TOS or traffic class elsewhere.
    Tos,
    /// The next hop has no MAC address yet.
    NoNeighbour,
    /// The bridge has not learned yet behind which port the next hop is, or that port does not forward (STP).
    NoBridgePort,
    /// The bridge filters VLANs.
    VlanFiltering,
    /// It leaves or arrives by an interface that stands on none of the ports.
    NoPort,
    /// It leaves or arrives by an interface of which the frames are not known here (a tunnel, a bond, an unknown PPP interface).
    Interface,
    /// There are more tags than two.
    Tags,
    /// A VLAN device puts priorities into tags.
    TagPriority,
    /// There is no place for another flow or next hop.
    Full,
    /// Its source is translated, and its packets leave by another interface from now on. A masquerade ends with the next of them that
    /// the kernel sees; nobody reports which translation is one, so that others stay with the kernel, too.
    Moved,
}

impl Obstacle {
    /// All of them.
    pub const ALL: [Obstacle; 19] = [
        Obstacle::Local,
        Obstacle::Multicast,
        Obstacle::Helper,
        Obstacle::Elsewhere,
        Obstacle::TranslatedIpv6,
        Obstacle::Ipsec,
        Obstacle::NoRoute,
        Obstacle::Asymmetric,
        Obstacle::Mark,
        Obstacle::Tos,
        Obstacle::NoNeighbour,
        Obstacle::NoBridgePort,
        Obstacle::VlanFiltering,
        Obstacle::NoPort,
        Obstacle::Interface,
        Obstacle::Tags,
        Obstacle::TagPriority,
        Obstacle::Full,
        Obstacle::Moved,
    ];

    /// Whether it may go by itself, without a change of routes or interfaces.
    pub const fn is_temporary(self) -> bool {
        matches!(self, Obstacle::NoNeighbour | Obstacle::NoBridgePort | Obstacle::Full)
    }

    /// Whether a change of interfaces, routes, rules or policies may remove it.
    pub const fn may_change(self) -> bool {
        matches!(
            self,
            Obstacle::Ipsec
                | Obstacle::NoRoute
                | Obstacle::Asymmetric
                | Obstacle::Mark
                | Obstacle::Tos
                | Obstacle::VlanFiltering
                | Obstacle::NoPort
                | Obstacle::Interface
                | Obstacle::Tags
                | Obstacle::TagPriority
        )
    }

    /// The word of reports.
    pub const fn name(self) -> &'static str {
        match self {
            Obstacle::Local => "local",
            Obstacle::Multicast => "multicast",
            Obstacle::Helper => "helper",
            Obstacle::Elsewhere => "elsewhere",
            Obstacle::TranslatedIpv6 => "translated-ipv6",
            Obstacle::Ipsec => "ipsec",
            Obstacle::NoRoute => "no-route",
            Obstacle::Asymmetric => "asymmetric",
            Obstacle::Mark => "mark",
            Obstacle::Tos => "tos",
            Obstacle::NoNeighbour => "no-neighbour",
            Obstacle::NoBridgePort => "no-bridge-port",
            Obstacle::VlanFiltering => "vlan-filtering",
            Obstacle::NoPort => "no-port",
            Obstacle::Interface => "interface",
            Obstacle::Tags => "tags",
            Obstacle::TagPriority => "tag-priority",
            Obstacle::Full => "full",
            Obstacle::Moved => "moved",
        }
    }
}
