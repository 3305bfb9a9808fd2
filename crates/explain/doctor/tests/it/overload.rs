//! Rules about lost frames, softirq budgets and interrupt moderation. The fixtures follow the layout of ethtool 6.x,
//! `/proc/net/softnet_stat` (net/core/net-procfs.c, softnet_seq_show) and `/proc/interrupts`; their values are made
//! up except where a test names its source.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod loss;
mod moderation;

use crate::findings::*;
use std::fmt::Write;

/// Two samples, two seconds apart.
fn samples(first: &str, second: &str) -> String {
    format!(
        "# rxlane bundle 1\n# system: linux\n# sample 1 at 10.0\n{first}# sample 2 at 12.0\n{second}# end\n"
    )
}

/// `/proc/net/softnet_stat`: processed, dropped and time_squeeze of each CPU.
fn softnet(cpus: &[(u32, u32, u32)]) -> String {
    let mut text = "$ cat /proc/net/softnet_stat\n".to_owned();
    for (cpu, (processed, dropped, squeezed)) in cpus.iter().enumerate() {
        let zeros = "00000000 ".repeat(9);
        writeln!(text, "{processed:08x} {dropped:08x} {squeezed:08x} {zeros}{cpu:08x} 00000000 00000000")
            .unwrap();
    }
    text
}

/// `/proc/interrupts` of one vector a queue, queue N on CPU N.
fn interrupts(name: &str, counts: &[u64]) -> String {
    vectors((128..).zip(counts).enumerate().map(|(queue, (vector, count))| {
        let mut by_cpu = vec![0; counts.len()];
        by_cpu[queue] = *count;
        (vector, by_cpu, format!("{name}-TxRx-{queue}"))
    }))
}
