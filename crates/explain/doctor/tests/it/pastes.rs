//! Outputs of other tools that people paste with a complaint: profiles, buffers and threads of FreeBSD, a cloud's counters.
//! Laid out as the tools print them; the values are made up.

use crate::findings::*;

#[test]
fn cpus_that_wait_at_a_lock() {
    let id = "lock-contention";
    let top = |share: f64, function: &str| {
        format!(
            "# perf top -a\n   PerfTop:   31337 irqs/sec  kernel:98.2%  exact:  0.0% [4000Hz cycles],  (all, 16 CPUs)\n\n\
             {share:>9.2}%  [kernel]                [k] {function}\n     5.14%  [kernel]                [k] fib_table_lookup\n"
        )
    };
    let slow = "native_queued_spin_lock_slowpath";
    let report = |caller: &str| {
        format!(
            "# Overhead  Command      Shared Object      Symbol\n# ........  ...........  .................  ........\n#\n    \
             38.10%  ksoftirqd/3  [kernel.kallsyms]  [k] queued_spin_lock_slowpath\n            |\n            \
             ---queued_spin_lock_slowpath\n               |\n               |--31.90%--_raw_spin_lock\n               |          |\n               \
             |           --31.50%--{caller}\n               |                     net_rx_action\n\n     4.10%  swapper      [kernel.kallsyms]  [k] queued_spin_lock_slowpath\n"
        )
    };
    let from_root = "    43.11%  ksoftirqd/2      [kernel.vmlinux]               [k] native_queued_spin_lock_slowpath.part.0\n            |\n            \
                     |--40.02%--ret_from_fork\n            |          run_ksoftirqd\n            |          net_rx_action\n            \
                     |          __dev_queue_xmit\n            |          __nf_conntrack_confirm\n            |          _raw_spin_lock\n";
    let old = "-  33,97%  [kernel]             [k] _spin_lock\n   - _spin_lock\n      - 37,64% dev_queue_xmit\n      - 17,95% task_rq_lock\n";
    all_answer(&[
        (&top(61.05, slow), id, GRAVE, &["share: 0.61", "FindLock", "perf record -a -g -- sleep 5"]),
        (&top(22.5, slow), id, LIMITS, &["lock: None"]),
        (&top(7.0, slow), id, CALM, &["=remedies: 0"]),
        (&top(3.9, slow), id, CLEAR, &[]),
        // The lock of another architecture, in two rows, with callers.
        (
            &report("sch_direct_xmit"),
            id,
            LIMITS,
            &["share: 0.422", "TransmitQueue, \"sch_direct_xmit\"", "LessContention"],
        ),
        (&report("__nf_conntrack_confirm"), id, LIMITS, &["Conntrack"]),
        (&report("alloc_iova_fast"), id, LIMITS, &["Iommu"]),
        (&report("ppp_channel_push"), id, LIMITS, &["Ppp"]),
        // Callers above what they call: the nearest is the last.
        (from_root, id, LIMITS, &["Conntrack, \"__nf_conntrack_confirm\""]),
        (old, id, CALM, &["TransmitQueue"]),
        (&top(22.0, "_raw_spin_lock_bh"), id, CALM, &[]),
        (&(top(22.0, "_raw_spin_lock") + "    16.00%  [kernel]  [k] _raw_spin_lock_bh\n"), id, LIMITS, &[]),
        // Interrupts that waited are served there.
        (&top(61.05, "_raw_spin_unlock_irqrestore"), id, CLEAR, &[]),
        (&statistics("eth0", &[("rx_packets", 5)]), id, LACKS, &["perf top -a"]),
    ]);
}

fn netstat_m(clusters: &str, denied: &str) -> String {
    format!(
        "# netstat -m\n1030/3740/4770 mbufs in use (current/cache/total)\n{clusters} mbuf clusters in use (current/cache/total/max)\n\
         0/12/12/524288 4k (page size) jumbo clusters in use (current/cache/total/max)\n{denied} requests for mbufs denied \
         (mbufs/clusters/mbuf+clusters)\n0/0/0 requests for mbufs delayed (mbufs/clusters/mbuf+clusters)\n"
    )
}

#[test]
fn buffers_that_freebsd_does_not_have() {
    let id = "mbufs-denied";
    let at_limit = "25029/1300/26329/26368";
    let both = format!("{}ping: sendto: No buffer space available\n", netstat_m(at_limit, "0/8812/8811"));
    let jumbo = "0/3/0/124370 9k jumbo clusters in use (current/cache/total/max)\n0/77/0 requests for jumbo clusters denied (4k/9k/16k)\n";
    all_answer(&[
        (
            &both,
            id,
            LIMITS,
            &[
                "kind: \"clusters\", count: 8812",
                "=FreeBsd: sysctl kern.ipc.nmbclusters=52736 && echo 'kern.ipc.nmbclusters=\"52736\"' >> /boot/loader.conf",
                "=Linux: ",
            ],
        ),
        // Memory, not the limit.
        (&netstat_m("1029/1479/2508/1000000", "0/9/9"), id, LIMITS, &["=remedies: 0"]),
        (
            "25/0/0 requests for mbufs denied (mbufs/clusters/mbuf+clusters)\n",
            id,
            LIMITS,
            &["kern.ipc.nmbufs", "=FreeBsd: "],
        ),
        (jumbo, id, LIMITS, &["kind: \"9k\""]),
        (&netstat_m(at_limit, "0/0/0"), id, CLEAR, &[]),
        (
            "ping: sendto: No buffer space available\n# uname -sr\nFreeBSD 14.1-RELEASE\n",
            id,
            LACKS,
            &["netstat -m"],
        ),
        ("# uname -sr\nLinux 6.1.0\n", id, NOT_HERE, &[]),
    ]);
    let later = netstat_m(at_limit, "0/9000/9000");
    answers(&reports(&[&netstat_m(at_limit, "0/8812/8811"), &later], None), id, GRAVE, &["count: 189"]);
}

#[test]
fn a_thread_of_freebsd_is_full_and_others_are_not() {
    let id = "queue-thread";
    let top = |threads: &str| {
        format!(
            "last pid: 18538;  load averages:  1.54,  1.27,  0.67  up 0+08:43:56  09:34:58\n957 threads:   17 running, 896 sleeping, 43 waiting\n\
             CPU 0:   0.0% user,  0.0% nice,  0.4% system,  0.0% interrupt, 99.6% idle\n\
             CPU 1:   0.0% user,  0.0% nice,  0.4% system, 99.1% interrupt,  0.5% idle\n\
             Mem: 38M Active, 13M Inact, 519M Wired, 5338M Free\n\n  \
             PID USERNAME    PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND\n{threads}"
        )
    };
    let tqg =
        "    0 root        -60    -     0B  1888K CPU1     1  21:26  99.12% [kernel{{if_io_tqg_1}}]\n   \
               11 root        187 ki31     0B    64K RUN      0 499:15  98.97% [idle{{idle: cpu0}}]\n    \
               0 root        -60    -     0B  1888K -        0   1:00   3.01% [kernel{{if_io_tqg_0}}]\n"
            .replace("{{", "{")
            .replace("}}", "}");
    let irq = "   12 root     -92    -     0K   432K CPU1    1  41:31  96.88% intr{irq264: igb0:que 1}\n";
    let netisr = "   12 root     -72    -     0K   432K CPU1    1  41:31  93.02% intr{swi1: netisr 1}\n";
    all_answer(&[
        (&top(&tqg), id, GRAVE, &["if_io_tqg_1", "sysctl net.isr.dispatch=deferred", "=Linux: "]),
        (&top(irq), id, GRAVE, &["irq264: igb0:que 1"]),
        (&top(netisr), id, GRAVE, &["swi1: netisr 1"]),
        (&top(&tqg.replace("99.12%", "41.00%")), id, CLEAR, &[]),
        ("# uname -sr\nFreeBSD 14.1-RELEASE\n", id, LACKS, &["top -aSHP"]),
        ("# uname -sr\nLinux 6.1.0\n", id, NOT_HERE, &[]),
    ]);
}

/// virtio 1.3, 5.1.6.5.6: what a host's rate limit dropped; Linux 6.9 names it.
#[test]
fn a_hosts_rate_limit() {
    let virtio = |count: u64| {
        driver("eth0", "virtio_net")
            + &statistics(
                "eth0",
                &[
                    ("rx0_packets", 1_000_000),
                    ("rx0_hw_ratelimit_packets", count),
                    ("tx0_hw_ratelimit_packets", 0),
                ],
            )
    };
    all_answer(&[
        (&virtio(44_000), "cloud-allowance", LIMITS, &["rx0_hw_ratelimit_packets", "count: 44000"]),
        (&virtio(0), "cloud-allowance", CLEAR, &[]),
        (
            &statistics("eth0", &[("tx1_hw_ratelimit_packets", 912)]),
            "cloud-allowance",
            LIMITS,
            &["tx1_hw_ratelimit_packets"],
        ),
    ]);
}

/// pfSense's prompt, behind which the table has no title.
#[test]
fn vectors_behind_the_prompt_of_pfsense() {
    let prompt = "[2.7.2-RELEASE][admin@fw.example.org]/root: ";
    let mut text = format!("{prompt}vmstat -i | grep igc\n");
    for (queue, count) in [981_723_411_u64, 31_221, 29_877, 30_110].into_iter().enumerate() {
        text += &format!("irq{}: igc0:rxq{queue}{count:>23}{:>11}\n", 129 + queue, count / 188_000);
    }
    answers(&text, "one-queue-hot", LACKS, &["sysctl dev.igc.0"]);
}

/// The last line of `top` without its end: the CPU is full all the same.
#[test]
fn a_full_cpu_of_a_cut_line() {
    let text = "$ cat /proc/interrupts\n           CPU0       CPU1       CPU2\n\
                104:          3          0  771233112   ITS-MSI 570949632 Edge      eth1\n\
                105:          0          0  702231191   ITS-MSI 571473920 Edge      eth2\n$ top -b -n1\n\
                %Cpu0  :  0.0 us,  1.0 sy,  0.0 ni, 92.9 id,  0.0 wa,  0.0 hi,  6.1 si,  0.0 st\n\
                %Cpu2  :  0.0 us,  1.9 sy,  0.0 ni,  0.0 id,  0.0 wa,  0.0 hi, 98.1 s";
    answers(text, "cpu-shared", GRAVE, &["0.0 id"]);
    answers(text, "softirq-one-cpu", GRAVE, &["98.1 s"]);
}
