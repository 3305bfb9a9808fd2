//! How busy CPUs are, and which are online: `/proc/stat` and `/sys/devices/system/cpu/online`.

use crate::rebalance::Condition;
use kernel::cpu::{CpuSet, Ticks, usage_in};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The kernel counts the time of CPUs in ticks of 1 to 10 ms: shorter times say nothing.
const SPAN: Duration = Duration::from_millis(900);

type Times = BTreeMap<u32, Ticks>;

#[derive(Debug)]
pub struct Cpus {
    root: PathBuf,
    before: Option<(Instant, Times)>,
    known: BTreeMap<u32, Condition>,
}

impl Cpus {
    pub fn of_this_machine() -> Cpus {
        Cpus::below("/")
    }

    /// Those of the machine whose `proc` and `sys` lie in this folder.
    pub fn below(root: impl Into<PathBuf>) -> Cpus {
        Cpus { root: root.into(), before: None, known: BTreeMap::new() }
    }

    /// The condition of each CPU; empty where the kernel says nothing. Taken anew when 900 ms have passed.
    pub fn conditions(&mut self) -> BTreeMap<u32, Condition> {
        let is_due = self.before.as_ref().is_none_or(|(at, _)| at.elapsed() >= SPAN);
        if is_due {
            self.refresh();
        }
        self.known.clone()
    }

    fn refresh(&mut self) {
        let times: Times = usage_in(&self.root.join("proc/stat")).unwrap_or_default();
        let online = fs::read_to_string(self.root.join("sys/devices/system/cpu/online"));
        let online = online.ok().and_then(|list| CpuSet::parse_list(&list).ok());
        let empty = BTreeMap::new();
        let before = self.before.as_ref().map_or(&empty, |(_, times)| times);
        let busy = |cpu: u32| times.get(&cpu)?.since(*before.get(&cpu)?).busy();
        // /proc/stat has the CPUs that are online.
        let mut known: BTreeMap<u32, Condition> =
            times.keys().map(|&cpu| (cpu, Condition { online: true, busy: busy(cpu) })).collect();
        if let Some(online) = online {
            let offline = before.keys().chain(self.known.keys()).filter(|cpu| !online.contains(**cpu));
            known.extend(offline.map(|&cpu| (cpu, Condition { online: false, busy: None })));
        }
        self.known = known;
        self.before = Some((Instant::now(), times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_neither_idle_nor_waiting_for_a_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("proc/stat", "cpu  1 2 3\ncpu0 10 0 10 100 0 0 0 0 0 0\ncpu1 0 0 0 50 0 0 0 0 0 0\nintr 5\n");
        write("sys/devices/system/cpu/online", "0-1\n");
        let mut cpus = Cpus::below(folder.path());
        let unknown = Condition { online: true, busy: None };
        assert_eq!(cpus.conditions(), BTreeMap::from([(0, unknown), (1, unknown)]));
        write("proc/stat", "cpu0 20 0 20 140 20 0 20 0 9 9\n");
        write("sys/devices/system/cpu/online", "0\n");
        // Too soon.
        assert_eq!(cpus.conditions(), BTreeMap::from([(0, unknown), (1, unknown)]));
        cpus.refresh();
        let busy = Condition { online: true, busy: Some(0.4) };
        let offline = Condition { online: false, busy: None };
        assert_eq!(cpus.conditions(), BTreeMap::from([(0, busy), (1, offline)]));
        cpus.refresh();
        assert_eq!(cpus.conditions().get(&1), Some(&offline), "it stays offline");
    }

    #[test]
    fn a_machine_that_says_nothing_is_unknown() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Cpus::below(folder.path()).conditions().is_empty());
    }
}
