//! Rules about lost frames, softirq budgets and interrupt moderation. The fixtures follow the layout of ethtool 6.x,
//! `/proc/net/softnet_stat` (net/core/net-procfs.c, softnet_seq_show) and `/proc/interrupts`; their values are made
//! up except where a test names its source.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod loss;
mod moderation;

use crate::findings::{commands, offers, one, outcome, quotes, report, states, weight};
use host::System;
use rxlane_doctor::finding::{Certainty, Severity};
use rxlane_doctor::report::Outcome;
use std::fmt::Write;

fn driver(name: &str, driver: &str) -> String {
    format!(
        "$ ethtool -i {name}\ndriver: {driver}\nversion: 6.12.9\nbus-info: 0000:01:00.0\nsupports-statistics: yes\n"
    )
}

fn statistics(name: &str, counters: &[(&str, u64)]) -> String {
    let mut text = format!("$ ethtool -S {name}\nNIC statistics:\n");
    for (counter, value) in counters {
        writeln!(text, "     {counter}: {value}").unwrap();
    }
    text
}

fn rings(name: &str, most: u32, now: u32) -> String {
    format!(
        "$ ethtool -g {name}\nRing parameters for {name}:\nPre-set maximums:\nRX:\t\t{most}\nRX Mini:\tn/a\nRX Jumbo:\tn/a\n\
         TX:\t\t{most}\nCurrent hardware settings:\nRX:\t\t{now}\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t{now}\n"
    )
}

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
    let mut text = "$ cat /proc/interrupts\n      ".to_owned();
    (0..counts.len()).for_each(|cpu| write!(text, "      CPU{cpu}").unwrap());
    for (queue, count) in counts.iter().enumerate() {
        write!(text, "\n {}:", 128 + queue).unwrap();
        (0..counts.len())
            .for_each(|cpu| write!(text, " {:10}", if cpu == queue { *count } else { 0 }).unwrap());
        write!(text, "  IR-PCI-MSIX-0000:01:00.0    {}-edge      {name}-TxRx-{queue}", queue + 1).unwrap();
    }
    text + "\n"
}
