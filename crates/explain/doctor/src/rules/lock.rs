//! Locks that CPUs wait for: `lock-contention`.

use crate::Case;
use crate::facts::{Effect, Fact, Lock};
use crate::finding::{Remedy, Severity, found};
use crate::rule::Judgement;
use host::{Fact as Read, FunctionShare};

/// Functions in which a CPU does nothing but wait for a lock (kernel/locking/qspinlock.c, qrwlock.c, osq_lock.c, mutex.c;
/// arch/x86/include/asm/spinlock.h before 4.2).
const WAITS: [&str; 8] = [
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "pv_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "queued_write_lock_slowpath",
    "queued_read_lock_slowpath",
    "osq_lock",
    "__ticket_spin_lock",
];

/// Beginnings of functions that take a lock, and wait for it where the architecture has no function for that. Those that
/// give it back are where a timer's interrupt is served that came meanwhile, and say nothing.
const TAKES: [&str; 6] = [
    "_raw_spin_lock",
    "_spin_lock",
    "__raw_spin_lock",
    "_raw_read_lock",
    "_raw_write_lock",
    "do_raw_spin_lock",
];

/// Part of all samples from which waiting costs throughput, and from which it costs most of it.
const COSTS: f64 = 0.15;
const COSTS_MOST: f64 = 0.5;
/// Part from which it is worth a remark.
const REMARK: f64 = 0.05;
/// Parts from which taking locks that nobody waits for is worth either: the cache line moves all the same.
const TAKING: f64 = 0.2;

/// Which lock it is, by functions that take it.
const LOCKS: [(&[&str], Lock); 8] = [
    (
        &[
            "sch_direct_xmit",
            "__qdisc_run",
            "dev_hard_start_xmit",
            "__dev_queue_xmit",
            "dev_queue_xmit",
            "net_tx_action",
        ],
        Lock::TransmitQueue,
    ),
    (&["nf_conntrack_", "__nf_conntrack_", "nf_ct_", "__nf_ct_"], Lock::Conntrack),
    (
        &[
            "alloc_iova",
            "free_iova",
            "iommu_",
            "__iommu",
            "qi_submit_sync",
            "fq_flush",
            "intel_map",
            "amd_iommu",
        ],
        Lock::Iommu,
    ),
    (
        &["rmqueue_bulk", "free_pcppages_bulk", "get_page_from_freelist", "__free_pages", "free_unref_page"],
        Lock::Pages,
    ),
    (&["___slab_alloc", "__slab_free", "get_partial_node", "get_any_partial", "deactivate_slab"], Lock::Slab),
    (&["enqueue_to_backlog", "process_backlog", "rps_"], Lock::Backlog),
    (&["ppp_"], Lock::Ppp),
    (&["udp_", "__udp_", "tcp_", "sock_def", "__wake_up", "ep_poll_callback"], Lock::Socket),
];

fn is_unlock(function: &str) -> bool {
    function.contains("unlock")
}

/// Part of the samples, and the rows that it is made of.
fn waiting(functions: &[Read<FunctionShare>]) -> (f64, f64, Vec<&Read<FunctionShare>>) {
    let is_wait = |one: &&Read<FunctionShare>| WAITS.contains(&one.value.function.as_str());
    let is_take = |one: &&Read<FunctionShare>| {
        let name = one.value.function.as_str();
        !is_unlock(name) && TAKES.iter().any(|take| name.starts_with(take))
    };
    let share = |rows: &[&Read<FunctionShare>]| rows.iter().map(|row| row.value.share).sum::<f64>();
    let waits: Vec<_> = functions.iter().filter(is_wait).collect();
    let takes: Vec<_> = functions.iter().filter(is_take).collect();
    (share(&waits), share(&takes), waits.into_iter().chain(takes).collect())
}

/// Functions from which a call graph starts, where callers stand above what they call (`-g caller`).
const ROOTS: [&str; 8] = [
    "ret_from_fork",
    "kthread",
    "secondary_startup",
    "start_secondary",
    "cpu_startup_entry",
    "entry_SYSCALL_64",
    "asm_common_interrupt",
    "__libc_start",
];

/// Which lock it is, by the nearest caller that says so.
fn taken(callers: &[String]) -> Option<(Lock, String)> {
    let is_from_root = callers.first().is_some_and(|first| ROOTS.iter().any(|root| first.starts_with(root)));
    let of = |caller: &String| {
        let is_it = |(names, _): &&(&[&str], Lock)| names.iter().any(|name| caller.starts_with(name));
        LOCKS.iter().find(is_it).map(|(_, lock)| (*lock, caller.clone()))
    };
    if is_from_root { callers.iter().rev().find_map(of) } else { callers.iter().find_map(of) }
}

/// `lock-contention`: CPUs wait for each other at a lock.
pub(super) fn contention(case: &Case<'_>) -> Judgement {
    let functions = &case.snapshot().functions;
    if functions.is_empty() {
        return Judgement::lacks("perf top -a");
    }
    let (waits, takes, rows) = waiting(functions);
    let share = waits + takes;
    let severity = match waits {
        waits if waits >= COSTS_MOST => Severity::Critical,
        waits if waits >= COSTS || share >= TAKING + COSTS => Severity::Warning,
        waits if waits >= REMARK || takes >= TAKING => Severity::Info,
        _ => return Judgement::Clear,
    };
    let lock = rows.iter().find_map(|row| taken(&row.value.callers));
    let functions = rows.iter().map(|row| row.value.function.clone()).collect();
    let effect = lock.as_ref().map_or(Effect::FindLock, |(lock, _)| Effect::LessContention { lock: *lock });
    let commands: &[&str] = match effect {
        Effect::FindLock => &["perf record -a -g -- sleep 5", "perf report --stdio --no-children -G"],
        _ => &[],
    };
    found(severity, Fact::LockContention { share, functions, lock })
        .quotes(rows.iter().map(|row| &row.quote))
        .fix((severity != Severity::Info).then(|| Remedy::linux(effect, commands.iter().copied())))
        .into()
}
