//! The words of the rules on nftables' flowtables.

use super::named;
use doctor::facts::{Bypass, FlowEffect, FlowFact, LookedUp};
use format::thousands;

/// What the packets of a flow in a flowtable pass no longer (Documentation/networking/nf_flowtable.rst). An ingress shaper comes
/// before the flowtable and its packets do not come to it (`skip_classify` in `__netif_receive_skb_core()`,
/// net/core/dev.c).
const BYPASSES: &str = "Packets of established TCP and UDP connections then bypass the rules and counters of the forward chain, and the \
                        queueing discipline of a PPP or VLAN interface: a shaper (SQM) has to be on the physical device, and one that \
                        receives through ifb keeps its packets out of the flowtable. Conntrack counts on where the flowtable has \
                        `counter`. The first packets of a connection, fragments, packets above the MTU and connections with a helper go \
                        the usual way.";

/// What ends helpers.
pub const NO_HELPER: &str = "no helper for connections that do not need one: rules with `ct helper set`, on OpenWrt the zone's `option auto_helper 0`";

/// What the fact states.
pub fn sentence(fact: &FlowFact) -> String {
    match fact {
        FlowFact::Off { setting: true } => {
            "Software flow offloading is off, and a CPU is the limit: every forwarded packet passes all rules, routing and NAT anew.".into()
        }
        FlowFact::Off { setting: false } => {
            "There is no flowtable, and a CPU is the limit: every forwarded packet passes all rules, routing and NAT anew.".into()
        }
        FlowFact::ForwardsUnknown => {
            "Whether this machine forwards the text does not say; what ends here takes no flowtable.".into()
        }
        FlowFact::ForwardsLittle { packets } => format!(
            "The counters of its forward chains have no more than {} packets since they were loaded: it is not forwarding that fills \
             the CPU, unless they were loaded just now.",
            thousands(*packets)
        ),
        FlowFact::Unreached { flowtable } => {
            format!("By its rules no connection enters flowtable {flowtable}: every packet passes all of them.")
        }
        FlowFact::LeavesOut { flowtable, devices } => format!(
            "Flowtable {flowtable} leaves out {}: packets that arrive there pass all rules, also those of connections that are in it.",
            named(devices)
        ),
        FlowFact::OtherDevice { flowtable, named, needed, why } => match why {
            LookedUp::TooOld => format!(
                "Flowtable {flowtable} names {named}, and this kernel sees through neither VLAN tags nor PPPoE (Linux 5.13 does): it \
                 has to be {needed}."
            ),
            LookedUp::MissesPppoe => format!(
                "Flowtable {flowtable} names {named}, where this kernel searches for the PPPoE packets of {needed} and misses them (fixed \
                 in Linux 6.9, 6.8.8, 6.6.29, 6.1.88 and 5.15.157): what arrives passes all rules."
            ),
            LookedUp::Below => format!(
                "Flowtable {flowtable} names {named}, and this kernel can match its packets at {needed} before it takes the headers \
                 off; {named} is lost from the flowtable whenever it is created anew."
            ),
        },
        FlowFact::Bypassed { established, offloaded } => format!(
            "Of {} established connections of TCP and UDP, {} are in the flowtable.",
            thousands(*established),
            if *offloaded == 0 { "none".to_owned() } else { thousands(*offloaded) }
        ),
        FlowFact::Bypass(bypass) => reason(bypass),
        FlowFact::IdleLeave { seconds } => {
            format!("A TCP connection that is idle for {seconds} s leaves the flowtable, which is no fault.")
        }
        FlowFact::HardwareOff { driver, flowtable } => format!(
            "The device of {driver} can forward flows without the CPU, and {}.",
            match flowtable {
                true => "the flowtable has no `flags offload`",
                false => "hardware flow offloading is off",
            }
        ),
    }
}

fn reason(bypass: &Bypass) -> String {
    match bypass {
        Bypass::NoRule => "No rule of a forward chain has `flow add`, so that nothing enters it.".into(),
        Bypass::RuleOrder { chain } => format!(
            "In chain {chain} a rule accepts established packets before `flow add`: the latter sees first packets alone, and these \
             cannot enter."
        ),
        Bypass::OnlyNew { chain } => format!(
            "The rule with `flow add` in chain {chain} is for new connections alone, and a connection enters when it is established."
        ),
        Bypass::NeedsMark { chain } => {
            format!("The rule with `flow add` in chain {chain} is for packets with a mark alone.")
        }
        Bypass::OnlyProtocols { protocols } => format!(
            "The rule with `flow add` is for {} alone, and most connections are of another protocol.",
            named(protocols)
        ),
        Bypass::Helper { connections } => format!(
            "{} of those outside have a helper (FTP, SIP), which keeps a connection out of every flowtable.",
            thousands(*connections)
        ),
        Bypass::Marked { connections } => format!(
            "{} of those outside have a mark, and none inside has: a rule may leave marked connections out.",
            thousands(*connections)
        ),
        Bypass::Bridged => {
            "Bridged packets pass the forward chain, too (net.bridge.bridge-nf-call-iptables), and count as connections.".into()
        }
    }
}

/// What the commands of a remedy do, and what to expect of it.
pub fn words(effect: &FlowEffect) -> (String, String) {
    let (what, expected) = match effect {
        FlowEffect::Nft { known } => (
            format!(
                "a flowtable in a table of its own, behind the firewall's rules{} (`nft delete table inet rxlane` undoes it)",
                match known {
                    true => "",
                    false => "; LAN and WAN are placeholders for the physical devices, or the ports of a switch, which `ip -d link` shows",
                }
            ),
            BYPASSES,
        ),
        FlowEffect::Uci { hardware } => (
            match hardware {
                true => "OpenWrt's flow offloading, in the device's hardware".into(),
                false => "OpenWrt's software flow offloading".into(),
            },
            BYPASSES,
        ),
        FlowEffect::Devices { openwrt } => (
            match openwrt {
                true => "the devices at which this kernel matches packets, until the firewall is started anew: OpenWrt chooses them itself (fw4)".into(),
                false => "the devices at which this kernel matches packets".into(),
            },
            "Packets of connections that enter from now on are found in both directions; those that are in it already stay as they are.",
        ),
        FlowEffect::Rule { is_there } => (
            match is_there {
                true => "a rule before the others that puts established connections into the flowtable: if the present one has \
                         conditions that matter (interfaces, marks, addresses), add them"
                    .into(),
                false => "a rule that puts every established connection into the flowtable".into(),
            },
            "Connections enter with their next packet, and pass none of the rules of forward chains from then on.",
        ),
        FlowEffect::NoBridgeCalls => (
            "if nothing filters bridged packets: leave them to the bridge".into(),
            "Bridged packets cost less, and no longer count as connections of the router.",
        ),
        FlowEffect::NoHelper => (
            NO_HELPER.into(),
            "New connections enter the flowtable.",
        ),
        FlowEffect::Hardware => (
            "`flags offload;` in the flowtable, where its rule set is written, and that loaded anew".into(),
            BYPASSES,
        ),
    };
    (what, expected.to_owned())
}
