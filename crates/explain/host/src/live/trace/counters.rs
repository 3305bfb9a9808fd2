//! Counters of lost packets before and after: driver, interface, backlog, queueing discipline, connection tracking.

use super::super::ethtool::Ethtool;
use super::super::files;
use super::super::links::Links;
use crate::text::proc_softnet::rows;
use crate::trace::{DropCounter, NotOpened, Obstacle, Part, Place};
use std::collections::{BTreeMap, BTreeSet};

/// Words of counters of `ethtool -S` that count lost packets. That only those are printed that rise keeps out what is none.
const LOSSES: [&str; 16] = [
    "drop",
    "discard",
    "miss",
    "no_buf",
    "nobuf",
    "no_desc",
    "overflow",
    "overrun",
    "fifo_err",
    "no_dma",
    "out_of_buffer",
    "alloc_fail",
    "exceeded",
    "crc_err",
    "length_err",
    "timeout",
];

/// Columns of `/proc/net/stat/nf_conntrack` (`ct_cpu_seq_show()` in net/netfilter/nf_conntrack_standalone.c).
const CONNTRACK: [&str; 4] = ["drop", "insert_failed", "early_drop", "chaintoolong"];

/// Counters at one time.
#[derive(Debug, Default)]
pub(super) struct Counters {
    values: BTreeMap<(Place, Option<String>, String), u64>,
    pub(super) not_opened: Vec<NotOpened>,
}

impl Counters {
    /// Those of an interface and what it stands on, `None` of all interfaces; and those of the machine.
    pub(super) fn read(only: Option<&str>) -> Counters {
        let mut counters = Counters::default();
        let links = Links::with_sessions();
        let around = only.and_then(|name| links.around(&[name.to_owned()]).ok());
        let is_chosen =
            |name: &Vec<u8>| around.as_ref().is_none_or(|around: &BTreeSet<_>| around.contains(name));
        let mut ethtool = Ethtool::open();
        let mut names = BTreeMap::new();
        for link in links.links.iter().filter(|link| is_chosen(&link.name)) {
            let name = link.display_name();
            names.insert(link.index, name.clone());
            for (counter, value) in link.losses() {
                counters.add(Place::Interface, Some(&name), counter, value);
            }
            if let (_, Ok(text)) = ethtool.statistics(&link.name) {
                counters.add_driver(&name, &text);
            }
        }
        counters.add_qdiscs(&names);
        counters.add_softnet();
        counters.add_conntrack();
        counters
    }

    fn add(&mut self, place: Place, of: Option<&str>, counter: &str, value: u64) {
        let sum = self.values.entry((place, of.map(str::to_owned), counter.to_owned())).or_default();
        *sum = sum.saturating_add(value);
    }

    /// `     rx_missed_errors: 12`.
    fn add_driver(&mut self, name: &str, text: &str) {
        for line in text.lines() {
            let Some((counter, value)) = line.rsplit_once(':') else { continue };
            let (counter, value) = (counter.trim(), value.trim().parse());
            let lower = counter.to_ascii_lowercase();
            if let Ok(value) = value
                && LOSSES.iter().any(|word| lower.contains(word))
            {
                self.add(Place::Driver, Some(name), counter, value);
            }
        }
    }

    fn add_qdiscs(&mut self, names: &BTreeMap<u32, String>) {
        let qdiscs = match kernel::netlink::qdiscs() {
            Ok(qdiscs) => qdiscs,
            Err(refusal) => return self.lack(Part::Qdiscs, &refusal.error),
        };
        // The sum of its children, one for each queue (sch_mq.c, sch_mqprio.c).
        for qdisc in qdiscs.iter().filter(|qdisc| !matches!(qdisc.kind.as_str(), "mq" | "mqprio")) {
            let Some(name) = names.get(&qdisc.interface) else { continue };
            let counter = match qdisc.handle {
                0 => qdisc.kind.clone(),
                handle => format!("{} {handle:x}:", qdisc.kind),
            };
            self.add(Place::Qdisc, Some(name), &format!("{counter} drops"), qdisc.drops.into());
        }
    }

    fn add_softnet(&mut self) {
        let Ok(text) = files::text(&files::of_this_namespace("softnet_stat")) else { return };
        for (cpu, columns) in rows(&text) {
            let cpu = format!("CPU {cpu}");
            for (counter, place) in [("dropped", 1), ("flow_limit_count", 10)] {
                let value = columns.get(place).copied().unwrap_or(0);
                self.add(Place::Softnet, Some(&cpu), counter, value.into());
            }
        }
    }

    fn add_conntrack(&mut self) {
        let path = files::of_this_namespace("stat/nf_conntrack");
        // Without connection tracking there is nothing to count.
        if files::is_missing(&path) {
            return;
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => self.add_conntrack_text(&text),
            Err(error) => self.lack(Part::Conntrack, &error),
        }
    }

    /// A heading, and a row of hexadecimal numbers for each CPU.
    fn add_conntrack_text(&mut self, text: &str) {
        let mut lines = text.lines();
        let columns: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
        for line in lines {
            for (column, value) in columns.iter().zip(line.split_whitespace()) {
                if CONNTRACK.contains(column)
                    && let Ok(value) = u64::from_str_radix(value, 16)
                {
                    self.add(Place::Conntrack, None, column, value);
                }
            }
        }
    }

    fn lack(&mut self, what: Part, error: &std::io::Error) {
        let why = match error.kind() {
            std::io::ErrorKind::Unsupported => Obstacle::NotInKernel,
            std::io::ErrorKind::PermissionDenied => Obstacle::Privilege { paranoid: None },
            _ => Obstacle::Failed { error: error.to_string() },
        };
        self.not_opened.push(NotOpened { what, why });
    }

    /// What rose since `before`, by place, the most first. Counters of 32 bits that begin again are passed over.
    pub(super) fn since(&self, before: &Counters) -> Vec<DropCounter> {
        let mut rows: Vec<DropCounter> = Vec::new();
        for ((place, of, counter), value) in &self.values {
            let former = before.values.get(&(*place, of.clone(), counter.clone()));
            let Some(packets) = former.and_then(|former| value.checked_sub(*former)) else { continue };
            if packets > 0 {
                rows.push(DropCounter { place: *place, of: of.clone(), counter: counter.clone(), packets });
            }
        }
        rows.sort_by_key(|row| (row.place, std::cmp::Reverse(row.packets)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(place: Place, of: Option<&str>, counter: &str, packets: u64) -> DropCounter {
        DropCounter { place, of: of.map(str::to_owned), counter: counter.to_owned(), packets }
    }

    #[test]
    fn only_losses_that_rise_are_rows() {
        let (mut before, mut after) = (Counters::default(), Counters::default());
        before.add_driver(
            "eth0",
            "NIC statistics:\n     rx_packets: 10\n     rx_missed_errors: 1\n     rx_queue_0_drops: 2\n",
        );
        after.add_driver(
            "eth0",
            "NIC statistics:\n     rx_packets: 99\n     rx_missed_errors: 8\n     rx_queue_0_drops: 2\n",
        );
        // Linux 5.10, two CPUs; Linux 6.x has fewer columns.
        before.add_conntrack_text(
            "entries  searched found new invalid ignore delete delete_list insert insert_failed drop early_drop icmp_error\n\
             00000005  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000002 00000000 0\n\
             00000005  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000002 00000000 0\n",
        );
        after.add_conntrack_text("entries drop insert_failed\n00000005 00000014 00000002\n");
        let expected = [
            row(Place::Driver, Some("eth0"), "rx_missed_errors", 7),
            row(Place::Conntrack, None, "drop", 16),
        ];
        assert_eq!(after.since(&before), expected);
        assert!(before.since(&Counters::default()).is_empty(), "a counter that was not there before");
    }

    #[test]
    fn this_machine_has_counters() {
        let counters = Counters::read(None);
        assert!(counters.values.keys().any(|(place, ..)| *place == Place::Softnet), "{counters:?}");
        assert!(counters.values.keys().any(|(place, ..)| *place == Place::Interface), "{counters:?}");
        assert!(counters.since(&counters).is_empty());
    }
}
