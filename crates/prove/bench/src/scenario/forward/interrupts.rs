//! Interrupts of adapters, from `/proc/interrupts`.

use std::fs;

/// Interrupts so far, of all CPUs and of all vectors that bear the name of one of these interfaces; `None`: no vector does.
pub fn of(interfaces: &[&str]) -> Option<u64> {
    counted(&fs::read_to_string("/proc/interrupts").ok()?, interfaces)
}

fn counted(text: &str, interfaces: &[&str]) -> Option<u64> {
    let cpus = text.lines().next()?.split_whitespace().count();
    let is_its = |line: &&str| {
        let name = line.split_whitespace().last().unwrap_or_default();
        // `wan0` alone, or with a queue behind a dash, as most drivers name their vectors.
        interfaces.iter().any(|interface| {
            name.strip_prefix(interface).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    };
    let count = |line: &str| -> u64 {
        line.split_whitespace().skip(1).take(cpus).filter_map(|word| word.parse::<u64>().ok()).sum()
    };
    let counts: Vec<u64> = text.lines().skip(1).filter(is_its).map(count).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_found_by_their_names() {
        let text = "            CPU0       CPU1\n \
            24:         10          1   PCI-MSIX-0000:00:02.0   0-edge      wan0\n \
            25:        100          2   PCI-MSIX-0000:00:02.0   1-edge      wan0-TxRx-0\n \
            26:       1000          4   PCI-MSIX-0000:00:04.0   1-edge      wan01-TxRx-0\n\
            LOC:          7          7   Local timer interrupts\n";
        assert_eq!(counted(text, &["wan0"]), Some(113));
        assert_eq!(counted(text, &["wan0", "wan01"]), Some(1117));
        assert_eq!(counted(text, &["out0"]), None);
        assert_eq!(counted("", &["out0"]), None);
    }
}
