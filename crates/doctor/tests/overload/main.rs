//! Rules about lost frames, softirq budgets and interrupt moderation. The fixtures follow the layout of ethtool 6.x,
//! `/proc/net/softnet_stat` (net/core/net-procfs.c, softnet_seq_show) and `/proc/interrupts`; their values are made
//! up except where a test names its source.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod loss;
mod moderation;

use rxlane_doctor::report::{Certainty, Finding, Outcome, Severity};
use rxlane_doctor::{Case, Report, diagnose};
use std::fmt::Write;

fn report(text: &str) -> Report {
    let mut reader = host::text::Reader::new();
    reader.read("paste", text.as_bytes()).expect("memory");
    let snapshot = reader.finish();
    diagnose(&Case::new(&snapshot, None, None).expect("profiles"))
}

/// The finding of that id, which there is once.
fn one(report: &Report, id: &str) -> Finding {
    let mut findings = report.findings.iter().filter(|finding| finding.id == id);
    let finding = findings.next().unwrap_or_else(|| panic!("{id}: {:#?}", report.rules)).clone();
    assert!(findings.next().is_none(), "{id} twice");
    finding
}

/// What became of a rule, and what it lacks.
fn outcome(report: &Report, id: &str) -> (Outcome, Vec<String>) {
    let row = report.rules.iter().find(|row| row.id == id).expect(id);
    (row.outcome, row.lacks.clone())
}

fn weight(finding: &Finding) -> (Severity, Certainty) {
    (finding.severity, finding.certainty)
}

/// The commands of a finding for an operating system. Those for Linux are ones that `--apply` understands.
fn commands(finding: &Finding, os: &str) -> Vec<String> {
    let remedies = finding.remedies.iter().filter(|remedy| remedy.os == os);
    let commands: Vec<String> = remedies.flat_map(|remedy| remedy.commands.clone()).collect();
    for command in commands.iter().filter(|_| os == "linux") {
        let setting: host::setting::Setting =
            command.parse().unwrap_or_else(|error| panic!("{command}: {error}"));
        assert_eq!(setting.to_string(), *command);
    }
    commands
}

fn quotes(finding: &Finding, part: &str) -> bool {
    finding.evidence.iter().any(|evidence| evidence.text.contains(part))
}

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
