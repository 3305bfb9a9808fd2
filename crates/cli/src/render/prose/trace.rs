//! What a trace holds, in words: reasons for drops, and the way out where something could not be opened.

use format::printable;
use host::trace::{NotOpened, Obstacle, Part};

/// What a reason of the kernel means (`include/net/dropreason-core.h`); `None` where its name says as much.
pub fn meaning(reason: &str) -> Option<&'static str> {
    const MEANINGS: [(&str, &str); 42] = [
        ("NOT_SPECIFIED", "freed without a reason: drops, and ends of normal use"),
        ("NO_SOCKET", "no socket for the port"),
        ("SOCKET_FILTER", "a socket's filter program"),
        ("SOCKET_RCVBUFF", "a socket's receive buffer is full (net.core.rmem_max, SO_RCVBUF)"),
        ("SOCKET_BACKLOG", "a socket's backlog is full"),
        ("PKT_TOO_SMALL", "shorter than its headers"),
        ("TCP_CSUM", "wrong TCP checksum"),
        ("UDP_CSUM", "wrong UDP checksum"),
        ("IP_CSUM", "wrong IP checksum"),
        ("NETFILTER_DROP", "a rule of nftables or iptables"),
        ("OTHERHOST", "addressed to another station"),
        ("IP_INHDR", "invalid IP header"),
        ("IP_RPFILTER", "reverse path filter (net.ipv4.conf.*.rp_filter)"),
        ("UNICAST_IN_L2_MULTICAST", "unicast packet in a multicast frame"),
        ("XFRM_POLICY", "an IPsec policy"),
        ("IP_NOPROTO", "no handler for the IP protocol"),
        ("PROTO_MEM", "a protocol's memory limit (net.ipv4.udp_mem, tcp_mem)"),
        ("TCP_LISTEN_OVERFLOW", "a listening socket's queue is full (net.core.somaxconn)"),
        ("IP_OUTNOROUTES", "no route for a packet to send"),
        ("IP_INNOROUTES", "no route for a received packet"),
        ("IP_INADDRERRORS", "no address here, and no forwarding"),
        ("IPV6DISABLED", "IPv6 is disabled on the interface"),
        ("NEIGH_CREATEFAIL", "the neighbour table is full (net.ipv4.neigh.default.gc_thresh3)"),
        ("NEIGH_FAILED", "no answer to ARP or neighbour discovery"),
        ("NEIGH_QUEUEFULL", "too many packets wait for ARP or neighbour discovery"),
        ("TC_EGRESS", "a tc filter on egress"),
        ("TC_INGRESS", "a tc filter on ingress"),
        ("QDISC_DROP", "a queueing discipline (tc -s qdisc)"),
        ("QDISC_OVERLIMIT", "a queueing discipline is full"),
        ("QDISC_CONGESTED", "a queueing discipline's delay limit"),
        ("CPU_BACKLOG", "a CPU's backlog is full (net.core.netdev_max_backlog)"),
        ("XDP", "an XDP program, or none that could take it"),
        ("UNHANDLED_PROTO", "no handler for the EtherType"),
        ("SKB_GSO_SEG", "segmentation in software failed"),
        ("DEV_HDR", "the device's header could not be written"),
        ("DEV_READY", "the device is down or has no carrier"),
        ("FULL_RING", "a device's ring is full"),
        ("NOMEM", "no memory"),
        ("PKT_TOO_BIG", "longer than the MTU"),
        ("FRAG_REASM_TIMEOUT", "fragments that never came"),
        ("IP_LOCALNET", "a loopback address from outside"),
        ("BRIDGE_INGRESS_STP_STATE", "a bridge port that spanning tree blocks"),
    ];
    MEANINGS.iter().find(|(name, _)| *name == reason).map(|(_, meaning)| *meaning)
}

/// What could not be opened, why, and the way out.
pub fn not_opened(lacking: &NotOpened) -> String {
    let what = match lacking.what {
        Part::DropReasons => "drop reasons (tracepoint skb:kfree_skb)",
        Part::CpuTime => "CPU time (perf events)",
        Part::FunctionNames => "names of functions (/proc/kallsyms)",
        Part::Qdiscs => "queueing disciplines",
        Part::Conntrack => "connection tracking (/proc/net/stat/nf_conntrack)",
    };
    format!("{what}: {}", obstacle(lacking))
}

fn obstacle(lacking: &NotOpened) -> String {
    match &lacking.why {
        Obstacle::Privilege { .. } => {
            format!("requires {}: run it as root (sudo rxlane doctor --trace)", privilege(lacking))
        }
        Obstacle::Lockdown => {
            "the kernel is locked down, and denies it to root as well: boot with lockdown=integrity or \
                               without Secure Boot"
                .to_owned()
        }
        Obstacle::Forbidden => {
            "denied to root as well: this is a container or a user namespace, or a security module \
                                forbids it; run it on the host"
                .to_owned()
        }
        Obstacle::NotMounted => {
            "tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing".to_owned()
        }
        Obstacle::NotInKernel => match lacking.what {
            Part::DropReasons => {
                "this kernel has no such tracepoint (CONFIG_TRACEPOINTS, CONFIG_PERF_EVENTS)"
            }
            Part::CpuTime => "this kernel has no perf events (CONFIG_PERF_EVENTS)",
            Part::FunctionNames => "this kernel has no symbols (CONFIG_KALLSYMS)",
            Part::Qdiscs => "this kernel has none (CONFIG_NET_SCHED)",
            Part::Conntrack => "this kernel has none (CONFIG_NF_CONNTRACK)",
        }
        .to_owned(),
        Obstacle::Hidden { restrict } => {
            let restrict = restrict.map_or(String::new(), |restrict| format!(" is {restrict}"));
            format!("kernel.kptr_restrict{restrict}: sysctl -w kernel.kptr_restrict=1, and root sees them")
        }
        Obstacle::Failed { error } => printable(error),
    }
}

/// What a process needs for a part.
pub fn privilege(lacking: &NotOpened) -> String {
    match (&lacking.what, &lacking.why) {
        (Part::Conntrack | Part::Qdiscs, _) => "CAP_NET_ADMIN".to_owned(),
        (_, Obstacle::Privilege { paranoid: Some(paranoid) }) => {
            format!("CAP_PERFMON, or CAP_SYS_ADMIN (kernel.perf_event_paranoid is {paranoid})")
        }
        _ => "CAP_PERFMON, or CAP_SYS_ADMIN".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_obstacle_has_a_way_out() {
        for (what, why, expected) in [
            (Part::CpuTime, Obstacle::Privilege { paranoid: Some(2) }, "kernel.perf_event_paranoid is 2"),
            (Part::DropReasons, Obstacle::Privilege { paranoid: None }, "sudo rxlane doctor --trace"),
            (Part::DropReasons, Obstacle::NotMounted, "mount -t tracefs"),
            (Part::DropReasons, Obstacle::Lockdown, "lockdown=integrity"),
            (Part::CpuTime, Obstacle::Forbidden, "on the host"),
            (Part::CpuTime, Obstacle::NotInKernel, "CONFIG_PERF_EVENTS"),
            (Part::FunctionNames, Obstacle::Hidden { restrict: Some(2) }, "sysctl -w kernel.kptr_restrict=1"),
            (Part::Conntrack, Obstacle::Failed { error: "a\u{1b}[2J".to_owned() }, r"a\u{1b}[2J"),
        ] {
            let sentence = not_opened(&NotOpened { what, why });
            assert!(sentence.contains(expected), "{sentence}");
        }
    }
}
