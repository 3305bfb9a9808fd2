//! Dropped packets by reason, function and protocol (tracepoint `skb:kfree_skb`).

use super::format::{Field, field, symbols};
use super::stage;
use super::symbols::{Function, Symbols};
use crate::trace::{Counted, DropReason, Drops};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Functions and protocols of a reason that are kept; there are a few hundred places in a kernel that drop packets.
const MOST: usize = 8;
/// Combinations of reason, function and protocol that are counted apart.
const MOST_KINDS: usize = 16_384;

/// What `NOT_SPECIFIED` is called by the kernel.
const UNSPECIFIED: &str = "NOT_SPECIFIED";
/// Not dropped (`SKB_NOT_DROPPED_YET`, `SKB_CONSUMED`): these numbers are the same in every kernel that has them, and have no
/// names in the format.
const CONSUMED: &str = "CONSUMED";

/// Events of the tracepoint, counted.
#[derive(Debug)]
pub(super) struct Counter {
    reason: Option<Field>,
    location: Option<Field>,
    protocol: Option<Field>,
    names: BTreeMap<u64, String>,
    kinds: HashMap<Kind, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    reason: Option<u64>,
    function: Option<Function>,
    protocol: u16,
}

impl Counter {
    pub(super) fn new(format: &str) -> Counter {
        Counter {
            reason: field(format, "reason"),
            location: field(format, "location"),
            protocol: field(format, "protocol"),
            names: symbols(format, "reason"),
            kinds: HashMap::new(),
        }
    }

    pub(super) fn count(&mut self, raw: &[u8], functions: Option<&Symbols>) {
        let location = self.location.and_then(|field| field.read(raw));
        let kind = Kind {
            reason: self.reason.and_then(|field| field.read(raw)),
            function: functions.zip(location).and_then(|(functions, location)| functions.at(location)),
            protocol: self.protocol.and_then(|field| field.read(raw)).unwrap_or(0) as u16,
        };
        let is_known = self.kinds.len() < MOST_KINDS || self.kinds.contains_key(&kind);
        let kind = if is_known { kind } else { Kind { function: None, protocol: 0, ..kind } };
        *self.kinds.entry(kind).or_default() += 1;
    }

    pub(super) fn finish(&self, lost: u64, functions: Option<&Symbols>) -> Drops {
        let mut by_reason: BTreeMap<String, Sums> = BTreeMap::new();
        for (kind, packets) in &self.kinds {
            let sums = by_reason.entry(self.name(kind.reason)).or_default();
            sums.packets += packets;
            if let Some((functions, function)) = functions.zip(kind.function) {
                *sums.functions.entry(functions.name(function).to_owned()).or_default() += packets;
            }
            *sums.protocols.entry(format!("0x{:04x}", kind.protocol)).or_default() += packets;
        }
        by_reason.remove(CONSUMED);
        let without_reason = by_reason.remove(UNSPECIFIED).map(|sums| sums.finish(UNSPECIFIED));
        let mut reasons: Vec<DropReason> =
            by_reason.into_iter().map(|(reason, sums)| sums.finish(&reason)).collect();
        reasons.sort_by_key(|reason| Reverse(reason.packets));
        Drops { packets: reasons.iter().map(|reason| reason.packets).sum(), reasons, without_reason, lost }
    }

    fn name(&self, reason: Option<u64>) -> String {
        match reason {
            None => UNSPECIFIED.to_owned(),
            Some(number) => match self.names.get(&number) {
                Some(name) => name.clone(),
                // Before the first named one.
                None if self.names.first_key_value().is_some_and(|(first, _)| number < *first) => {
                    CONSUMED.to_owned()
                }
                // Of a subsystem, in the upper half (`SKB_DROP_REASON_SUBSYS_SHIFT`), or newer than the names.
                None => format!("{number:#x}"),
            },
        }
    }
}

#[derive(Debug, Default)]
struct Sums {
    packets: u64,
    functions: BTreeMap<String, u64>,
    protocols: BTreeMap<String, u64>,
}

impl Sums {
    fn finish(self, reason: &str) -> DropReason {
        DropReason {
            reason: reason.to_owned(),
            stage: stage::of_reason(reason),
            packets: self.packets,
            functions: most(self.functions),
            protocols: most(self.protocols),
        }
    }
}

fn most(counts: BTreeMap<String, u64>) -> Vec<Counted> {
    let mut counts: Vec<Counted> =
        counts.into_iter().map(|(name, packets)| Counted { name, packets }).collect();
    counts.sort_by_key(|counted| Reverse(counted.packets));
    counts.truncate(MOST);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "\tfield:void * location;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned short protocol;\toffset:8;\tsize:2;\tsigned:0;\n\
        \tfield:enum skb_drop_reason reason;\toffset:12;\tsize:4;\tsigned:0;\n\
        print fmt: \"%s\", __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, { 3, \"NO_SOCKET\" }, { 64, \"QDISC_DROP\" })";

    fn event(location: u64, protocol: u16, reason: u32) -> Vec<u8> {
        let mut raw = location.to_ne_bytes().to_vec();
        raw.extend(protocol.to_ne_bytes());
        raw.extend([0, 0]);
        raw.extend(reason.to_ne_bytes());
        raw
    }

    #[test]
    fn reasons_are_counted_and_what_has_none_is_apart() {
        let functions = Symbols::parse("1000 T udp_rcv\n2000 T tbf_enqueue\n".to_owned());
        let mut counter = Counter::new(FORMAT);
        for _ in 0..3 {
            counter.count(&event(0x1010, 0x0800, 3), Some(&functions));
        }
        counter.count(&event(0x2010, 0x86dd, 64), Some(&functions));
        counter.count(&event(0x2010, 0x8864, 64), Some(&functions));
        counter.count(&event(0x2010, 0x0800, 2), Some(&functions));
        counter.count(&event(0x2010, 0x0800, 1), Some(&functions));
        counter.count(&event(0x2010, 0x0800, 0x1_0003), Some(&functions));
        let drops = counter.finish(7, Some(&functions));
        assert_eq!((drops.packets, drops.lost), (6, 7));
        let rows: Vec<_> =
            drops.reasons.iter().map(|row| (row.reason.as_str(), row.stage, row.packets)).collect();
        assert_eq!(
            rows,
            [("NO_SOCKET", Some("deliver"), 3), ("QDISC_DROP", Some("transmit"), 2), ("0x10003", None, 1)]
        );
        let counted = |name: &str, packets| Counted { name: name.to_owned(), packets };
        assert_eq!(drops.reasons[0].functions, [counted("udp_rcv", 3)]);
        assert_eq!(drops.reasons[1].protocols, [counted("0x86dd", 1), counted("0x8864", 1)]);
        let without = drops.without_reason.expect("one");
        assert_eq!((without.reason.as_str(), without.packets), ("NOT_SPECIFIED", 1));
    }

    #[test]
    fn a_kernel_without_reasons_has_functions() {
        let functions = Symbols::parse("1000 T udp_rcv\n".to_owned());
        let mut counter = Counter::new("\tfield:void * location;\toffset:0;\tsize:8;\tsigned:0;\n");
        counter.count(&event(0x1010, 0x0800, 3), Some(&functions));
        // Cut short.
        counter.count(&[1, 2], Some(&functions));
        let drops = counter.finish(0, Some(&functions));
        let without = drops.without_reason.expect("both");
        assert_eq!((drops.packets, without.packets, without.functions[0].packets), (0, 2, 1));
    }
}
