//! The words of `rxlane fastpath`: its status, and the rules of the doctor on it.

use super::facts::parts::over;
use doctor::facts::{FastEffect, FastFact};
#[cfg(target_os = "linux")]
use fastpath::Obstacle;
use format::{plural, thousands};

/// What the fact states.
pub fn sentence(fact: &FastFact) -> String {
    match fact {
        FastFact::Bypassed { fast, all, since } => format!(
            "The fast path is up and has forwarded {} of {} packets {}: the kernel has the work of the others as before.",
            if *fast == 0 { "none".to_owned() } else { thousands(*fast) },
            thousands(*all),
            over(*since, "since it is up")
        ),
        FastFact::Left { reason, share } => format!(
            "It left {:.0} % of them to the kernel for {reason}{}.",
            share * 100.0,
            bracketed(passed(reason))
        ),
        FastFact::Refused { reason, connections, of } => {
            #[cfg(target_os = "linux")]
            let words = Obstacle::ALL.into_iter().find(|one| one.name() == reason).map_or("", obstacle);
            #[cfg(not(target_os = "linux"))]
            let words = "";
            format!(
                "{} of {} that it did not take: {reason}{}.",
                thousands(*connections),
                plural(*of, "connection"),
                bracketed(words)
            )
        }
        FastFact::NoneRefused => "It has refused no connection: the packets are of connections that nobody has answered yet, of \
                                  protocols other than TCP and UDP inside a tunnel, or of more connections than were taken over when it \
                                  came up."
            .into(),
        FastFact::Forwards { share, since } => format!(
            "The fast path forwards {:.0} % of the packets of its ports {}, before RPS or steering could spread them.",
            share * 100.0,
            over(*since, "since it is up")
        ),
        FastFact::Shaped { interface, qdisc } => format!(
            "`rxlane fastpath` would leave the CPU less to do, and would send past the shaper of {interface} ({qdisc}): it is for lines \
             without one, or with --limit-upload and --limit-download in its place."
        ),
    }
}

/// ` (words)`; nothing for none.
fn bracketed(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" ({words})") }
}

/// What it brings, as it was counted on Linux 6.12 (docs/measurements/fastpath.md).
const COUNTED: &str = "Counted with igb on Linux 6.12, PPPoE in a VLAN with masquerade and a filter, four CPUs: the busiest CPU has 4.2 times \
                       less to do than by the kernel alone, 2.0 times less than with a flowtable, 1.3 times less than with RPS, and 1.2 \
                       times less than with both, whose work on all CPUs is twice as much (docs/measurements/fastpath.md). Packets of \
                       established connections pass no rule, no counter of ppp0 or a VLAN device and no queueing discipline; the first \
                       command reports which there are and changes nothing. `rxlane fastpath down` ends it.";
const UNCOUNTED: &str = "Unknown: it was counted with PPPoE alone, which this kernel does not join; GRO joins TCP segments of a VLAN or plain \
                         Ethernet before they are forwarded, which a fast path does without. The first command reports what it would send \
                         past, and changes nothing. `rxlane fastpath down` ends it.";
const AGAIN: &str = "While it is down the kernel forwards. Other options have to be given again; where the unit rxlane-fastpath starts it, they \
                     belong into /etc/rxlane/fastpath.conf.";

/// What the commands of a remedy do, and what to expect of it.
pub fn words(effect: &FastEffect) -> (String, String) {
    let (what, expected) = match effect {
        FastEffect::Up { measured: true } => (
            "a fast path: established connections forwarded in XDP, PPPoE, VLAN and NAT included, before the socket buffer (skb) is \
             allocated"
                .into(),
            COUNTED,
        ),
        FastEffect::Up { measured: false } => {
            ("or a fast path: established connections forwarded in XDP, VLAN and NAT included".into(), UNCOUNTED)
        }
        FastEffect::Restart => (
            "start its daemon anew, which did not run for two seconds; where CPUs are so busy that it gets no time, give its unit a higher \
             priority (`Nice=`, `CPUSchedulingPolicy=`)"
                .into(),
            AGAIN,
        ),
        FastEffect::ShorterPackets => (
            "an MSS that fits the MTU of the way out, for TCP in either direction (`nft delete table inet rxlane_mss` undoes it)".into(),
            "New TCP connections send packets that fit. Longer ones of UDP go on to the kernel, which fragments them or reports the MTU.",
        ),
        FastEffect::CompleteChecksums => (
            "checksums that the sender completes itself: `ethtool -K PEER tx off` at the other end of the veth pair, or in the container".into(),
            "Its packets can be forwarded; what is damaged stays with the kernel.",
        ),
        FastEffect::MorePorts { known: true } => ("all ports between which packets are forwarded".into(), AGAIN),
        FastEffect::MorePorts { known: false } => (
            "the port that is missing: `rxlane fastpath down`, and `up` with all interfaces between which packets are forwarded".into(),
            AGAIN,
        ),
        FastEffect::MoreFlows { flows: Some(flows) } => (format!("room for {} connections", thousands(*flows)), AGAIN),
        FastEffect::MoreFlows { flows: None } => ("room for more connections: `--flows N`".into(), AGAIN),
        FastEffect::NoHelper => (super::flow::NO_HELPER.into(), "New connections enter the fast path."),
        FastEffect::NoFlowtable => (
            "no flowtable beside it: what is in one is left to the kernel".into(),
            "Connections enter the fast path when they leave the flowtable (30 s without a packet), and new ones at once.",
        ),
        FastEffect::SavedMark => (
            "the mark in the connection, too: behind the rule that sets it `ct mark set meta mark`".into(),
            "The fast path queries routes with the mark of the connection; new connections enter it.",
        ),
        FastEffect::NoVlanFiltering => (
            "VLAN devices on the ports, in the place of a bridge that filters VLANs (`vlan_filtering 1`)".into(),
            "Connections by these ports enter the fast path.",
        ),
    };
    (what, expected.to_owned())
}

/// Why the fast path leaves packets to the kernel, by the word of its status; nothing for an unknown one.
pub fn passed(reason: &str) -> &'static str {
    match reason {
        "no-entry" => "no connection that is installed",
        "stale" => "being resolved anew",
        "daemon-silent" => "the daemon was stopped",
        "not-addressed" => "to another MAC address",
        "no-next-hop" => "next station unknown, or its port does not send",
        "too-long" => "longer than the MTU",
        "fragment" => "fragments",
        "ip-options" => "IP options",
        "other-protocol" => "neither TCP nor UDP",
        "ttl" => "TTL or hop limit at its end",
        "tcp-flags" => "SYN, FIN or RST",
        "control" => "PPPoE and PPP control",
        "pppoe" => "a PPPoE header that does not fit",
        "not-ip" => "no IP",
        "malformed" => "a header that does not fit",
        "checksum" => "a checksum that is not complete",
        "no-room" => "no room for headers",
        _ => "",
    }
}

/// Why connections are left to the kernel.
#[cfg(target_os = "linux")]
pub fn obstacle(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Local => "to or from this machine",
        Obstacle::Multicast => "multicast or broadcast",
        Obstacle::Helper => "a helper reads them (FTP, SIP)",
        Obstacle::Elsewhere => "in a conntrack zone or a flowtable",
        Obstacle::TranslatedIpv6 => "IPv6 with translated addresses",
        Obstacle::Ipsec => "an IPsec policy",
        Obstacle::NoRoute => "no route, or not forwarded",
        Obstacle::Asymmetric => "answers take another way",
        Obstacle::Mark => "rules route by a mark that is not known",
        Obstacle::Tos => "rules or routes decide by TOS (DSCP)",
        Obstacle::NoNeighbour => "a station without MAC address, as yet",
        Obstacle::NoBridgePort => "a station behind no known bridge port, as yet",
        Obstacle::VlanFiltering => "a bridge that filters VLANs",
        Obstacle::NoPort => "by an interface on none of the ports",
        Obstacle::Interface => "by a tunnel, bond or unknown PPP interface",
        Obstacle::Tags => "more than two tags",
        Obstacle::TagPriority => "a VLAN device that sets priorities",
        Obstacle::Full => "no place: --flows gives more",
        Obstacle::Moved => "translated, and by another interface from now on",
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use doctor::facts::Since;
    use xdp::forward_layout::Pass;

    #[test]
    fn every_reason_has_its_words() {
        for reason in Pass::ALL.map(Pass::name) {
            assert!(!passed(reason).is_empty(), "{reason}");
        }
        let left = FastFact::Left { reason: "too-long".to_owned(), share: 0.75 };
        assert_eq!(sentence(&left), "It left 75 % of them to the kernel for too-long (longer than the MTU).");
        let unknown = FastFact::Refused { reason: "later".to_owned(), connections: 3, of: 4 };
        assert_eq!(sentence(&unknown), "3 of 4 connections that it did not take: later.");
        let none = FastFact::Bypassed { fast: 0, all: 5000, since: Since::Start };
        assert!(sentence(&none).contains("none of 5,000 packets"), "{}", sentence(&none));
    }
}
