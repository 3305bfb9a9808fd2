//! What a machine did for some seconds: where it dropped packets and why, and in which functions its CPUs spent their time.
//!
//! Facts, as [`live::trace`](crate::live::trace) gathers them. Tracepoints and samples are of the whole machine, whatever the
//! network namespace; counters are of the namespace and interfaces that were chosen.

#![expect(missing_docs, reason = "keys of the JSON answer; what its name does not say has a comment")]

use serde::Serialize;
use std::collections::BTreeMap;

/// Some seconds of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trace {
    /// How long it took.
    pub seconds: f64,
    /// Dropped packets by the kernel's reason, of the whole machine; absent where the tracepoint could not be opened.
    pub drops: Option<Drops>,
    /// Counters of lost packets that rose meanwhile. One packet can be counted at several places.
    pub counters: Vec<DropCounter>,
    /// Where CPU time went, of the whole machine; absent where it could not be sampled.
    pub cpu_time: Option<CpuTime>,
    /// What could not be opened, and why.
    pub not_opened: Vec<NotOpened>,
}

/// Socket buffers that were freed as dropped (tracepoint `skb:kfree_skb`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drops {
    /// Packets with a reason.
    pub packets: u64,
    /// The most frequent reason first.
    pub reasons: Vec<DropReason>,
    /// Buffers freed without one: `NOT_SPECIFIED`, and all on kernels before 5.17. Drops are among them, and ends of normal use.
    pub without_reason: Option<DropReason>,
    /// Events that came too fast to be read.
    pub lost: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DropReason {
    /// As the running kernel names it (`include/net/dropreason-core.h`): `NO_SOCKET`; a number where it has no name.
    pub reason: String,
    /// Stage of a frame's way, where the reason says.
    pub stage: Option<&'static str>,
    pub packets: u64,
    /// Functions that dropped them, the most frequent first.
    pub functions: Vec<Counted>,
    /// EtherTypes (`0x0800`), the most frequent first.
    pub protocols: Vec<Counted>,
}

/// A name and how many times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub name: String,
    pub packets: u64,
}

/// Where a counter of lost packets is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// `ethtool -S`.
    Driver,
    /// `ip -s link`.
    Interface,
    /// `/proc/net/softnet_stat`.
    Softnet,
    /// `tc -s qdisc`.
    Qdisc,
    /// `/proc/net/stat/nf_conntrack`.
    Conntrack,
}

/// A counter of lost packets that rose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DropCounter {
    pub place: Place,
    /// An interface, or a CPU (`CPU 1`); absent where it is one counter for all.
    pub of: Option<String>,
    /// Its name there (`rx_missed_errors`).
    pub counter: String,
    /// By how much it rose.
    pub packets: u64,
}

/// Samples of what CPUs executed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuTime {
    /// Samples a second of each CPU.
    pub hertz: u64,
    pub samples: u64,
    /// Samples that came too fast to be read.
    pub lost: u64,
    /// By number.
    pub cpus: Vec<CpuRow>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuRow {
    pub cpu: u32,
    pub samples: u64,
    /// Parts of the samples, 0 to 1.
    pub idle: f64,
    pub user: f64,
    pub kernel: f64,
    /// The part in stages of a frame's way, in their order.
    pub stages: Vec<StageShare>,
    /// Functions of the kernel, the busiest first; empty where their names are not known.
    pub functions: Vec<FunctionRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageShare {
    pub stage: &'static str,
    /// Part of the CPU's samples, 0 to 1.
    pub share: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionRow {
    pub function: String,
    /// The module that it belongs to; absent of the kernel itself.
    pub module: Option<String>,
    /// Part of the CPU's samples in it, 0 to 1; what it calls counts for that.
    pub share: f64,
    /// Stage of a frame's way that it works for, by the functions that called it.
    pub stage: Option<&'static str>,
    /// What it does: `lock`, `copy`, `checksum`, `memory`, `this trace`.
    pub work: Option<&'static str>,
    /// Of a lock, the function that takes it.
    pub caller: Option<String>,
}

/// Something that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotOpened {
    pub what: Part,
    #[serde(flatten)]
    pub why: Obstacle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// `skb:kfree_skb`.
    DropReasons,
    /// Samples of CPUs.
    CpuTime,
    /// `/proc/kallsyms`.
    FunctionNames,
    Qdiscs,
    Conntrack,
}

/// Why something could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum Obstacle {
    /// It takes CAP_PERFMON (`kernel.perf_event_paranoid` is in the way).
    Privilege {
        paranoid: Option<i32>,
    },
    /// The kernel is locked down for confidentiality (kernel_lockdown(7)).
    Lockdown,
    /// Root is refused: a container's seccomp filter, or a security module.
    Forbidden,
    /// tracefs is not mounted, and could not be.
    NotMounted,
    /// The kernel has no perf events (`CONFIG_PERF_EVENTS`), or not that tracepoint.
    NotInKernel,
    /// Addresses are hidden (`kernel.kptr_restrict`).
    Hidden {
        restrict: Option<i32>,
    },
    Failed {
        error: String,
    },
}

impl CpuTime {
    /// The functions with those that take locks, as `perf report --stdio -g` prints them: parts of the samples of all CPUs.
    pub fn perf_report(&self) -> String {
        let mut shares: BTreeMap<&str, (f64, BTreeMap<&str, f64>)> = BTreeMap::new();
        for cpu in &self.cpus {
            let part = cpu.samples as f64 / self.samples.max(1) as f64;
            for row in &cpu.functions {
                let (share, callers) = shares.entry(&row.function).or_default();
                *share += part * row.share;
                if let Some(caller) = &row.caller {
                    *callers.entry(caller).or_default() += part * row.share;
                }
            }
        }
        let mut rows: Vec<_> = shares.into_iter().collect();
        rows.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
        let mut text =
            format!("# Samples: {} of event 'cpu-clock'\n# Overhead  Shared Object  Symbol\n", self.samples);
        for (function, (share, callers)) in rows {
            text.push_str(&format!("{:10.2}%  [kernel]       [k] {function}\n", 100.0 * share));
            let mut callers: Vec<_> = callers.into_iter().collect();
            callers.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            for (caller, share) in callers {
                text.push_str(&format!("            |--{:.2}%--{caller}\n", 100.0 * share));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Reader;

    fn row(function: &str, share: f64, caller: Option<&str>) -> FunctionRow {
        FunctionRow {
            function: function.to_owned(),
            module: None,
            share,
            stage: None,
            work: None,
            caller: caller.map(str::to_owned),
        }
    }

    #[test]
    fn a_report_is_read_as_that_of_perf() {
        let slow = "native_queued_spin_lock_slowpath";
        let busy = [
            row(slow, 0.5, Some("sch_direct_xmit")),
            row(slow, 0.1, Some("dev_hard_start_xmit")),
            row("ip_rcv", 0.2, None),
        ];
        let cpus = vec![
            CpuRow { cpu: 0, samples: 300, functions: busy.into(), ..CpuRow::default() },
            CpuRow { cpu: 1, samples: 100, functions: vec![row("ip_rcv", 1.0, None)], ..CpuRow::default() },
        ];
        let time = CpuTime { hertz: 997, samples: 400, lost: 0, cpus };
        let mut reader = Reader::new();
        let text = format!("$ perf report --stdio\n{}", time.perf_report());
        reader.read("trace", text.as_bytes()).expect("memory");
        let snapshot = reader.finish();
        let read = |name: &str| {
            let found = snapshot.functions.iter().find(|one| one.value.function == name);
            found.unwrap_or_else(|| panic!("no {name}: {snapshot:#?}")).value.clone()
        };
        assert!((read(slow).share - 0.45).abs() < 1e-4 && (read("ip_rcv").share - 0.4).abs() < 1e-4);
        assert_eq!(read(slow).callers, ["sch_direct_xmit", "dev_hard_start_xmit"]);
    }
}
