//! `cpuset -g -x IRQ`: the CPUs that FreeBSD lets an interrupt run on, `irq 264 mask: 0, 1` (`printaffinity()`,
//! usr.bin/cpuset/cpuset.c). `vmstat -i` calls that vector `irq264`.

use super::{Line, Outcome, Tool, cpu_list, sysfs};
use crate::{Fact, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "cpuset -g -x",
    command: |command| command.program == "cpuset" && command.has_flag('x'),
    heading: |line| affinity(line).is_some(),
    open: |_| Box::new(mask),
};

fn mask(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let Some((vector, cpus)) = affinity(line.trimmed()) else {
        return if line.trimmed().is_empty() { Outcome::Skipped } else { Outcome::Over };
    };
    sysfs::note_affinity(&format!("irq{vector}"), &Fact::new(cpus, line.quote()), false, snapshot);
    Outcome::Taken
}

/// Number and CPUs.
fn affinity(line: &str) -> Option<(u32, Vec<u32>)> {
    let (vector, cpus) = line.strip_prefix("irq ")?.split_once(" mask: ")?;
    Some((vector.parse().ok()?, cpu_list::list(cpus)?))
}
