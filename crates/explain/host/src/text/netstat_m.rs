//! `netstat -m` of FreeBSD: buffers of the network stack (usr.bin/netstat/mbuf.c).
//!
//! `1029/1479/2508/1000000 mbuf clusters in use (current/cache/total/max)`, and `0/12/0 requests for mbufs denied
//! (mbufs/clusters/mbuf+clusters)`.

use super::{Line, Outcome, Tool, sysctl_machine};
use crate::{Counter, Fact, Snapshot, System};

pub(super) static TOOL: Tool = Tool {
    name: "netstat -m",
    command: |command| command.program == "netstat" && command.has_flag('m'),
    heading: |line| parse(line).is_some_and(|(numbers, what)| numbers.len() > 1 && is_known(what)),
    open: |_| Box::new(listing),
};

/// The numbers before the first blank, and what they are of.
fn parse(line: &str) -> Option<(Vec<u64>, &str)> {
    let (numbers, what) = line.split_once(' ')?;
    let numbers: Option<Vec<u64>> =
        numbers.split('/').map(|number| number.trim_end_matches('K').parse().ok()).collect();
    Some((numbers?, what))
}

fn is_known(what: &str) -> bool {
    what.starts_with("mbuf") || what.starts_with("requests for ") || what.contains("jumbo clusters in use")
}

fn listing(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let text = line.trimmed();
    if text.is_empty() {
        return Outcome::Skipped;
    }
    let Some((numbers, what)) = parse(text) else { return Outcome::Over };
    if let Some(names) = what.strip_prefix("requests for ").and_then(|rest| rest.split_once(" denied (")) {
        let kinds = names.1.trim_end_matches(')').split('/');
        for (kind, count) in kinds.zip(numbers) {
            let denied = &mut snapshot.mbufs.denied;
            Counter::note_at(denied, kind.to_owned(), count, line.quote(), Snapshot::LINES);
        }
        sysctl_machine::infer(snapshot, System::FreeBsd, &line.quote());
    } else if let ([.., total, most], Some((kind, _))) = (&numbers[..], what.split_once(" clusters in use"))
        && what.contains("/max)")
    {
        // `4k (page size) jumbo`, `mbuf`.
        let kind = kind.split(' ').next().unwrap_or(kind);
        let kind = if kind == "mbuf" { "clusters" } else { kind };
        snapshot.mbufs.used.insert(kind.to_owned(), Fact::new((*total, *most), line.quote()));
    }
    Outcome::Taken
}
