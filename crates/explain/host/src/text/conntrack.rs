//! `conntrack -L` (libnetfilter_conntrack, `snprintf_default.c`) and `/proc/net/nf_conntrack` (`ct_seq_show()` in
//! net/netfilter/nf_conntrack_standalone.c); and what the collectors write in their place: how many entries there are of each
//! kind, without addresses, `  12 tcp ESTABLISHED [OFFLOAD] mark own`. Entries are counted, nothing of them is kept.

use super::{Line, Outcome, Section, Tool, sysctl_machine};
use crate::netfilter::{Connections, ProtocolConnections};
use crate::{Quote, Snapshot, System, redact};
use std::collections::BTreeMap;
use std::net::IpAddr;

pub(super) static TOOL: Tool = Tool {
    name: "conntrack -L",
    command: |command| {
        let is_list = command.program == "conntrack"
            && command.text.split_whitespace().any(|word| matches!(word, "-L" | "--dump"));
        is_list || command.reads("/proc/net/nf_conntrack")
    },
    heading: |line| line.contains(" src=") && Entry::parse(line).is_some(),
    open: |_| Box::new(Entries::default()),
};

/// Transport protocols by the names that are printed (`l4proto_name()`).
const PROTOCOLS: &str = "tcp udp icmp icmpv6 gre sctp dccp udplite igmp esp unknown";

/// An entry, or several that are alike.
struct Entry<'a> {
    count: u64,
    protocol: &'a str,
    is_established: bool,
    is_offloaded: bool,
    is_hardware: bool,
    is_marked: bool,
    is_helped: bool,
    /// Of the machine itself.
    is_own: bool,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Entry<'a>> {
        let mut words = line.split_ascii_whitespace().peekable();
        let count = words.next_if(|word| word.bytes().all(|digit| digit.is_ascii_digit()));
        if words.next_if(|word| matches!(*word, "ipv4" | "ipv6")).is_some() {
            words.next_if(|word| matches!(*word, "2" | "10"));
        }
        let protocol = words.next().filter(|word| super::line::is_word_of(PROTOCOLS, word))?;
        let has_address = |what: &str| {
            let value = line.split_once(what).and_then(|(_, rest)| rest.chars().next());
            value.is_some_and(|first| !first.is_whitespace())
        };
        let is_whole = has_address(" src=") && has_address(" dst=");
        // Without addresses it is a collector's, which counts.
        if is_whole != count.is_none() {
            return None;
        }
        let rest: Vec<&str> = words.collect();
        let has = |what: &str| rest.contains(&what);
        let is_hardware = has("[HW_OFFLOAD]");
        let is_offloaded = is_hardware || has("[OFFLOAD]");
        let is_established = match protocol {
            "tcp" => has("ESTABLISHED"),
            _ => !has("[UNREPLIED]"),
        } || is_offloaded;
        Some(Entry {
            count: count.map_or(Some(1), |count| count.parse().ok())?,
            protocol,
            is_established,
            is_offloaded,
            is_hardware,
            is_marked: rest
                .iter()
                .any(|word| *word == "mark" || word.starts_with("mark=") && *word != "mark=0"),
            is_own: rest.iter().any(|word| *word == "own" || is_loopback(word)),
            is_helped: rest.iter().any(|word| *word == "helper" || word.starts_with("helper=")),
        })
    }
}

/// Whether it is an address of the loopback, `src=127.0.0.53` or `dst=::1`.
fn is_loopback(word: &str) -> bool {
    let address = word.strip_prefix("src=").or_else(|| word.strip_prefix("dst="));
    address.and_then(|address| address.parse::<IpAddr>().ok()).is_some_and(|address| address.is_loopback())
}

/// The entries of one listing.
#[derive(Default)]
struct Entries {
    counted: Option<Connections>,
}

impl Entries {
    fn add(&mut self, entry: &Entry<'_>, line: &Line<'_>) {
        let quote = || redacted(line);
        let all = self.counted.get_or_insert_with(|| Connections {
            entries: 0,
            by_protocol: BTreeMap::new(),
            bypassed_marked: 0,
            bypassed_helped: 0,
            offloaded_marked: 0,
            quote: quote(),
        });
        let count = |is_such: bool| if is_such { entry.count } else { 0 };
        let add = |sum: &mut u64, is_such: bool| *sum = sum.saturating_add(count(is_such));
        add(&mut all.entries, true);
        let is_established = entry.is_established && !entry.is_own;
        let is_bypassed = is_established && !entry.is_offloaded;
        add(&mut all.bypassed_marked, is_bypassed && entry.is_marked);
        add(&mut all.bypassed_helped, is_bypassed && entry.is_helped);
        add(&mut all.offloaded_marked, entry.is_offloaded && entry.is_marked);
        let one: &mut ProtocolConnections = all.by_protocol.entry(entry.protocol.to_owned()).or_default();
        add(&mut one.established, is_established);
        add(&mut one.offloaded, entry.is_offloaded);
        add(&mut one.hardware, entry.is_hardware);
    }
}

/// The line as evidence, without addresses.
fn redacted(line: &Line<'_>) -> Quote {
    Quote::new(line.source, line.number, line.command, &redact::line(line.trimmed()))
}

impl Section for Entries {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        // `conntrack v1.4.8 (conntrack-tools): 25 flow entries have been shown.` stands anywhere.
        if text.is_empty() || text.starts_with("conntrack v") {
            return Outcome::Skipped;
        }
        let Some(entry) = Entry::parse(text) else { return Outcome::Over };
        self.add(&entry, line);
        sysctl_machine::infer(snapshot, System::Linux, &redacted(line));
        Outcome::Taken
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        if let Some(counted) = self.counted.take() {
            snapshot.netfilter.connections = Some(counted);
        }
    }
}
