//! `cpuset -g -x IRQ`: the CPUs that FreeBSD lets an interrupt run on, `irq 264 mask: 0, 1` (`printaffinity()`,
//! usr.bin/cpuset/cpuset.c). `vmstat -i` calls that vector `irq264`.

use super::{Fate, Line, Section, Tool, cpu_list, sysfs};
use crate::{Fact, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "cpuset -g -x",
    command: |command| command.program == "cpuset" && command.has_flag('x'),
    heading: |line| affinity(line).is_some(),
    open: |_| Box::new(Masks),
};

struct Masks;

impl Section for Masks {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let Some((vector, cpus)) = affinity(line.trimmed()) else {
            return if line.trimmed().is_empty() { Fate::Skipped } else { Fate::Over };
        };
        sysfs::note_affinity(&format!("irq{vector}"), &Fact::new(cpus, line.quote()), false, snapshot);
        Fate::Taken
    }
}

/// Number and CPUs.
fn affinity(line: &str) -> Option<(u32, Vec<u32>)> {
    let (vector, cpus) = line.strip_prefix("irq ")?.split_once(" mask: ")?;
    Some((vector.parse().ok()?, cpu_list::list(cpus)?))
}

#[cfg(test)]
mod tests {
    use crate::text::read;

    #[test]
    fn affinities_join_the_vectors_before_and_after() {
        let masks = "$ cpuset -g -x 264\nirq 264 mask: 0\n$ cpuset -g -x 265\nirq 265 mask: 1, 2, 3\n\
                     $ cpuset -g -x 99\ncpuset: getaffinity: No such process\n";
        let table = "$ vmstat -i\ninterrupt                          total       rate\n\
                     irq264: igb0:rxq0              889032238        103\nirq265: igb0:rxq1          12          0\n\
                     Total                          889032250        103\n";
        for text in [format!("{masks}{table}"), format!("{table}{masks}")] {
            let snapshot = read(&text);
            let read: Vec<_> = snapshot
                .interrupts
                .iter()
                .map(|one| {
                    (
                        one.vector.as_str(),
                        one.action.as_str(),
                        one.affinity.as_ref().map(|cpus| cpus.get().len()),
                    )
                })
                .collect();
            assert_eq!(read, [("irq264", "igb0:rxq0", Some(1)), ("irq265", "igb0:rxq1", Some(3))], "{text}");
            assert!(snapshot.interrupts.iter().all(|one| one.interface.as_deref() == Some("igb0")), "{text}");
            assert!(snapshot.interrupts.iter().all(|one| one.counts.len() == 1), "{text}");
        }
    }
}
