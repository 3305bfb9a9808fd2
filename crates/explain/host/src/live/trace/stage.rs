//! Which stage of a frame's way a function of the kernel works for, and a reason for a drop belongs to.
//!
//! Names are those of Linux 5.10 to 7.0: `net/core/dev.c`, `net/core/gro.c`, `net/8021q`, `drivers/net/ppp`, `net/ipv4`,
//! `net/netfilter`, `net/sched`. Only functions at which a stage begins are listed: what they call works for them.

/// Stages in the order of a frame's way.
pub(super) const STAGES: [&str; 12] = [
    "admit", "parse", "hash", "queue", "moderate", "poll", "steer", "coalesce", "decap", "deliver",
    "segment", "transmit",
];

/// Where stages begin.
const ENTRIES: [(&str, &[&str]); 7] = [
    (
        "poll",
        &[
            "net_rx_action",
            "__napi_poll",
            "napi_poll",
            "napi_threaded_poll",
            "napi_threaded_poll_loop",
            "napi_busy_loop",
            "process_backlog",
            "napi_complete_done",
        ],
    ),
    (
        "steer",
        &[
            "get_rps_cpu",
            "netif_rx_internal",
            "enqueue_to_backlog",
            "do_xdp_generic",
            "netif_receive_generic_xdp",
            "xdp_do_redirect",
            "xdp_do_flush",
            "xdp_do_generic_redirect",
            "cpu_map_kthread_run",
            "cpu_map_enqueue",
            "cpu_map_generic_redirect",
            "bq_flush_to_queue",
        ],
    ),
    (
        "coalesce",
        &[
            "dev_gro_receive",
            "gro_receive_skb",
            "napi_gro_receive",
            "napi_gro_frags",
            "napi_gro_flush",
            "gro_flush_normal",
            "napi_gro_complete",
            "gro_complete",
            "__gro_flush",
            "gro_normal_list",
            "inet_gro_receive",
            "ipv6_gro_receive",
        ],
    ),
    (
        "decap",
        &[
            "vlan_do_receive",
            "skb_vlan_untag",
            "pppoe_rcv",
            "pppoe_rcv_core",
            "ppp_input",
            "ppp_do_recv",
            "ppp_receive_frame",
            "ppp_receive_nonmp_frame",
        ],
    ),
    (
        "deliver",
        &[
            "__netif_receive_skb",
            "__netif_receive_skb_core",
            "__netif_receive_skb_one_core",
            "__netif_receive_skb_list_core",
            "netif_receive_skb_list_internal",
            "netif_receive_skb",
            "ip_rcv",
            "ip_list_rcv",
            "ipv6_rcv",
            "ipv6_list_rcv",
            "ip_forward",
            "ip6_forward",
            "ip_local_deliver",
            "ip6_input",
            "nf_hook_slow",
            "nf_hook_slow_list",
            "nft_do_chain",
            "ipt_do_table",
            "nf_conntrack_in",
            "nf_flow_offload_ip_hook",
            "nf_flow_offload_ipv6_hook",
            "br_handle_frame",
            "packet_rcv",
            "tpacket_rcv",
            "tcp_v4_rcv",
            "tcp_v6_rcv",
            "__udp4_lib_rcv",
            "__udp6_lib_rcv",
            "sock_queue_rcv_skb_reason",
        ],
    ),
    (
        "segment",
        &[
            "__skb_gso_segment",
            "skb_mac_gso_segment",
            "skb_segment",
            "skb_segment_list",
            "skb_checksum_help",
            "validate_xmit_skb",
        ],
    ),
    (
        "transmit",
        &[
            "__dev_queue_xmit",
            "dev_hard_start_xmit",
            "sch_direct_xmit",
            "__qdisc_run",
            "net_tx_action",
            "__dev_direct_xmit",
            "ip_finish_output2",
            "ip6_finish_output2",
            "ppp_start_xmit",
            "ppp_xmit_process",
            "pppoe_xmit",
            "vlan_dev_hard_start_xmit",
        ],
    ),
];

/// The stage that begins with a function.
pub(super) fn of_function(name: &str) -> Option<&'static str> {
    let found = ENTRIES.iter().find(|(_, names)| names.contains(&name)).map(|(stage, _)| *stage);
    // Programs of XDP and of cls_bpf alike; what they do in the way of a frame is to choose where it goes.
    found.or_else(|| is_bpf_program(name).then_some("steer"))
}

/// Whether a symbol is a compiled eBPF program: `bpf_prog_`, its tag of 16 hexadecimal digits, then its name (`bpf_get_prog_name()` in
/// `kernel/bpf/core.c`). The kernel's own functions that load programs, `bpf_prog_load()` for one, have no tag.
fn is_bpf_program(name: &str) -> bool {
    name.strip_prefix("bpf_prog_")
        .and_then(|rest| rest.get(..16))
        .is_some_and(|tag| tag.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// What a function does, where that is not its own stage's work.
pub(super) fn work(name: &str) -> Option<&'static str> {
    const LOCKS: [&str; 6] =
        ["_raw_spin_lock", "_raw_read_lock", "_raw_write_lock", "mutex_spin", "osq_lock", "rwsem_spin"];
    const COPIES: [&str; 12] = [
        "memcpy",
        "__memcpy",
        "memmove",
        "__memmove",
        "copy_user",
        "_copy_to_iter",
        "_copy_from_iter",
        "rep_movs",
        "__arch_copy",
        "skb_copy_",
        "csum_partial_copy",
        "copy_page",
    ];
    const CHECKSUMS: [&str; 3] = ["csum_partial", "do_csum", "__skb_checksum"];
    const MEMORY: [&str; 16] = [
        "kmem_cache_",
        "kmalloc",
        "__kmalloc",
        "kfree",
        "__kfree",
        "__slab_",
        "___slab_",
        "page_pool_",
        "__alloc_",
        "alloc_pages",
        "free_",
        "__free_",
        "skb_release_",
        "build_skb",
        "__build_skb",
        "napi_alloc_",
    ];
    // What a trace itself costs.
    const TRACING: [&str; 5] =
        ["perf_", "__perf_", "trace_event_", "__traceiter_kfree_skb", "get_perf_callchain"];
    let begins = |names: &[&str]| names.iter().any(|known| name.starts_with(known));
    if name.contains("lock_slowpath") || begins(&LOCKS) {
        Some("lock")
    } else if begins(&COPIES) {
        Some("copy")
    } else if begins(&CHECKSUMS) {
        Some("checksum")
    } else if begins(&MEMORY) {
        Some("memory")
    } else if begins(&TRACING) {
        Some("this trace")
    } else {
        None
    }
}

/// The stage at which a frame is dropped for a reason (`include/net/dropreason-core.h`).
pub(super) fn of_reason(reason: &str) -> Option<&'static str> {
    const EXACT: [(&str, &str); 25] = [
        ("OTHERHOST", "admit"),
        ("MAC_INVALID_SOURCE", "admit"),
        ("CPU_BACKLOG", "steer"),
        ("XDP", "steer"),
        ("DEV_HDR", "decap"),
        ("UNHANDLED_PROTO", "deliver"),
        ("NO_SOCKET", "deliver"),
        ("NETFILTER_DROP", "deliver"),
        ("UNICAST_IN_L2_MULTICAST", "deliver"),
        ("PROTO_MEM", "deliver"),
        ("TC_INGRESS", "deliver"),
        ("UDP_CSUM", "deliver"),
        ("ICMP_CSUM", "deliver"),
        ("DUP_FRAG", "deliver"),
        ("PACKET_SOCK_ERROR", "deliver"),
        ("SKB_CSUM", "segment"),
        ("SKB_GSO_SEG", "segment"),
        ("PKT_TOO_BIG", "transmit"),
        ("IP_OUTNOROUTES", "transmit"),
        ("TC_EGRESS", "transmit"),
        ("BPF_CGROUP_EGRESS", "transmit"),
        ("CAKE_FLOOD", "transmit"),
        ("DUALPI2_STEP_DROP", "transmit"),
        ("DEV_READY", "transmit"),
        ("FULL_RING", "transmit"),
    ];
    const BEGINNINGS: [(&str, &str); 9] = [
        ("SOCKET_", "deliver"),
        ("TCP_", "deliver"),
        ("IP_", "deliver"),
        ("IPV6", "deliver"),
        ("XFRM_", "deliver"),
        ("FRAG_", "deliver"),
        ("NEIGH_", "transmit"),
        ("QDISC_", "transmit"),
        ("FQ_", "transmit"),
    ];
    let exact = EXACT.iter().find(|(known, _)| *known == reason);
    exact.or_else(|| BEGINNINGS.iter().find(|(known, _)| reason.starts_with(known))).map(|(_, stage)| *stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_one_of_a_frames_way() {
        for (stage, names) in ENTRIES {
            assert!(STAGES.contains(&stage) && !names.is_empty(), "{stage}");
            assert!(names.iter().all(|name| of_function(name) == Some(stage)), "{stage}");
        }
        for reason in
            ["NO_SOCKET", "QDISC_DROP", "SOCKET_RCVBUFF", "CPU_BACKLOG", "NEIGH_FAILED", "PKT_TOO_BIG"]
        {
            assert!(of_reason(reason).is_some_and(|stage| STAGES.contains(&stage)), "{reason}");
        }
        assert_eq!((of_reason("QUEUE_PURGE"), of_function("schedule")), (None, None));
        assert_eq!(of_function("bpf_prog_6deef7357e7b4530_steer"), Some("steer"));
        assert_eq!(of_function("bpf_prog_6deef7357e7b4530"), Some("steer"));
        assert_eq!(of_function("bpf_prog_load"), None);
        assert_eq!(of_function("bpf_prog_select_runtime"), None);
    }

    #[test]
    fn work_is_what_a_function_does() {
        for (name, expected) in [
            ("native_queued_spin_lock_slowpath", Some("lock")),
            ("__pv_queued_spin_lock_slowpath", Some("lock")),
            ("_raw_spin_lock_bh", Some("lock")),
            ("rep_movs_alternative", Some("copy")),
            ("memcpy_orig", Some("copy")),
            ("csum_partial", Some("checksum")),
            ("csum_partial_copy_generic", Some("copy")),
            ("kmem_cache_alloc_node_noprof", Some("memory")),
            ("perf_swevent_event", Some("this trace")),
            ("ip_rcv_core", None),
        ] {
            assert_eq!(work(name), expected, "{name}");
        }
    }
}
