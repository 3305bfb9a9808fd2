//! Samples of CPUs, counted by function and stage.

use super::stage::{self, STAGES};
use super::symbols::{Function, Symbols};
use crate::trace::{CpuRow, FunctionRow, StageShare};
use kernel::perf::{Mode, Sample};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Functions of a CPU that are kept.
const MOST: usize = 32;

/// What one CPU did.
#[derive(Debug, Default)]
pub(super) struct Profile {
    samples: u64,
    idle: u64,
    user: u64,
    stages: BTreeMap<&'static str, u64>,
    functions: HashMap<Row, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    function: Function,
    stage: Option<&'static str>,
    /// Of a lock.
    caller: Option<Function>,
}

impl Profile {
    pub(super) fn count(&mut self, sample: &Sample<'_>, functions: Option<&Symbols>) {
        self.samples += 1;
        if sample.mode == Mode::User {
            self.user += 1;
            return;
        }
        let Some(functions) = functions else {
            // Interrupts that the idle task serves are taken for idle time where nothing says better.
            self.idle += u64::from(sample.process == 0);
            return;
        };
        self.count_chain(sample.process, sample.address, sample.callers(), functions);
    }

    fn count_chain(
        &mut self,
        process: u32,
        address: u64,
        callers: impl Iterator<Item = u64>,
        functions: &Symbols,
    ) {
        let Some(function) = functions.at(address) else { return };
        // A return address is behind the call, which may be the last instruction of a function.
        let chain = callers.skip(1).filter_map(|address| functions.at(address.saturating_sub(1)));
        let is_lock = |function| stage::work(functions.name(function)) == Some("lock");
        let locks = is_lock(function);
        let mut row = Row { function, stage: stage::of_function(functions.name(function)), caller: None };
        let mut is_interrupt = false;
        for outer in chain {
            if locks && row.caller.is_none() && !is_lock(outer) {
                row.caller = Some(outer);
            }
            let name = functions.name(outer);
            row.stage = row.stage.or_else(|| stage::of_function(name));
            is_interrupt |= name.contains("softirq") || name.contains("irq_exit");
        }
        if process == 0 && row.stage.is_none() && !is_interrupt {
            self.idle += 1;
            return;
        }
        if let Some(stage) = row.stage {
            *self.stages.entry(stage).or_default() += 1;
        }
        *self.functions.entry(row).or_default() += 1;
    }

    pub(super) const fn samples(&self) -> u64 {
        self.samples
    }

    pub(super) fn finish(&self, cpu: u32, functions: Option<&Symbols>) -> CpuRow {
        let share = |part: u64| if self.samples > 0 { part as f64 / self.samples as f64 } else { 0.0 };
        let stages = STAGES.iter().filter_map(|stage| {
            self.stages.get(stage).map(|samples| StageShare { stage, share: share(*samples) })
        });
        let mut rows: Vec<(&Row, u64)> =
            self.functions.iter().map(|(row, samples)| (row, *samples)).collect();
        rows.sort_by_key(|(row, samples)| (Reverse(*samples), row.function, row.stage, row.caller));
        rows.truncate(MOST);
        let row = |functions: &Symbols, row: &Row, samples| FunctionRow {
            function: functions.name(row.function).to_owned(),
            module: functions.module(row.function).map(str::to_owned),
            share: share(samples),
            stage: row.stage,
            work: stage::work(functions.name(row.function)),
            caller: row.caller.map(|caller| functions.name(caller).to_owned()),
        };
        CpuRow {
            cpu,
            samples: self.samples,
            idle: share(self.idle),
            user: share(self.user),
            kernel: share(self.samples - self.idle - self.user),
            stages: stages.collect(),
            functions: functions
                .map(|functions| rows.iter().map(|(one, samples)| row(functions, one, *samples)).collect())
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of 0x100 bytes, in this order from 0x1000 on.
    const NAMES: [&str; 9] = [
        "native_queued_spin_lock_slowpath",
        "_raw_spin_lock",
        "sch_direct_xmit",
        "ip_rcv_core",
        "ip_rcv",
        "igb_poll",
        "__napi_poll",
        "handle_softirqs",
        "pv_native_safe_halt",
    ];

    fn functions() -> Symbols {
        let line = |(place, name): (usize, &&str)| format!("{:x} T {name}\n", 0x1000 + place * 0x100);
        Symbols::parse(NAMES.iter().enumerate().map(line).collect())
    }

    fn address(name: &str) -> u64 {
        let place = NAMES.iter().position(|known| *known == name).expect("known");
        0x1010 + place as u64 * 0x100
    }

    fn counted(chains: &[(u32, &[&str])]) -> CpuRow {
        let (functions, mut profile) = (functions(), Profile::default());
        for (process, chain) in chains {
            profile.samples += 1;
            let callers = chain.iter().map(|name| address(name));
            profile.count_chain(*process, address(chain[0]), callers, &functions);
        }
        profile.finish(3, Some(&functions))
    }

    #[test]
    fn a_function_works_for_the_innermost_stage_that_called_it() {
        let row = counted(&[
            (0, &["ip_rcv_core", "ip_rcv", "igb_poll", "__napi_poll", "handle_softirqs"]),
            (0, &["igb_poll", "__napi_poll", "handle_softirqs"]),
            (7, &["igb_poll", "__napi_poll", "handle_softirqs"]),
            (0, &["pv_native_safe_halt"]),
        ]);
        assert_eq!((row.cpu, row.samples, row.idle, row.user, row.kernel), (3, 4, 0.25, 0.0, 0.75));
        let stages: Vec<_> = row.stages.iter().map(|row| (row.stage, row.share)).collect();
        assert_eq!(stages, [("poll", 0.5), ("deliver", 0.25)]);
        let functions: Vec<_> =
            row.functions.iter().map(|row| (row.function.as_str(), row.stage, row.share)).collect();
        assert_eq!(functions, [("igb_poll", Some("poll"), 0.5), ("ip_rcv_core", Some("deliver"), 0.25)]);
    }

    #[test]
    fn a_lock_names_who_takes_it() {
        let row = counted(&[(
            7,
            &["native_queued_spin_lock_slowpath", "_raw_spin_lock", "sch_direct_xmit", "ip_rcv"],
        )]);
        let lock = &row.functions[0];
        assert_eq!((lock.work, lock.stage), (Some("lock"), Some("transmit")));
        assert_eq!(lock.caller.as_deref(), Some("sch_direct_xmit"));
    }

    #[test]
    fn interrupts_that_the_idle_task_serves_are_work() {
        let row = counted(&[(0, &["_raw_spin_lock", "handle_softirqs"]), (0, &["_raw_spin_lock"])]);
        assert_eq!((row.idle, row.kernel), (0.5, 0.5));
    }
}
