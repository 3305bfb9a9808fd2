//! `reta-uneven`: the indirection table gives one queue much more than its share, or everything.

use crate::heat::{self, Heat};
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain::{self, Strain};
use crate::{Case, steering};
use host::{Interface, Reta, System};
use nic::schema;
use std::collections::BTreeMap;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "reta-uneven",
    stage: "queue",
    page: Page {
        title: "The indirection table prefers some queues",
        means: "The low bits of a frame's hash choose an entry of the indirection table (RETA), and the entry names the \
                queue. A queue that stands in twice as many entries gets twice as many flows; a table that names one \
                queue sends every hashed frame there. Drivers fill the table evenly, in turn (0 1 2 3 0 1 …) or in \
                blocks (0 0 … 1 1 …): both are healthy.",
        shows: "`ethtool -x IFACE`: count how often each queue appears.",
        fix: "`ethtool -X IFACE default`, or `ethtool -X IFACE equal N` for N queues in turn.",
        costs: "Flows move to other queues at that moment, and some packets of theirs may be reordered once. Weights \
                that somebody set on purpose are lost.",
    },
    judge: Judge::Device(judge),
};

/// How much more than an even share a queue's entries may be: a table whose size is no multiple of the number of
/// queues differs by one entry, and weights below this are no more uneven than ordinary flows.
const UNEVEN: f64 = 1.5;

/// Entries of each queue that the table names.
pub(super) fn weights(reta: &Reta) -> BTreeMap<u32, usize> {
    let mut weights = BTreeMap::new();
    for queue in &reta.entries {
        *weights.entry(*queue).or_insert(0) += 1;
    }
    weights
}

/// The only queue that the table names, where there are several rings.
pub(super) fn only_queue(interface: &Interface) -> Option<u32> {
    let reta = interface.reta.as_ref()?.get();
    let first = *reta.entries.first()?;
    (reta.rings > 1 && reta.entries.iter().all(|queue| *queue == first)).then_some(first)
}

/// Whether the table is in contiguous blocks of several entries each, as igb fills it.
pub(super) fn is_blocks(interface: &Interface) -> bool {
    let Some(reta) = interface.reta.as_ref().map(|seen| seen.get()) else { return false };
    let queues = weights(reta).len();
    queues > 1 && reta.entries.len() > queues && reta.entries.is_sorted()
}

/// Whether all entries were read: `None` where no profile says how many there are and fewer were read than most
/// devices have.
pub(super) fn is_whole(case: &Case<'_>, interface: &Interface, reta: &Reta) -> Option<bool> {
    const USUAL: usize = 128;
    let read = reta.entries.len();
    match case.agreed(interface, |profile| profile.ints(schema::TABLE_SIZES)) {
        Some(sizes) if sizes.iter().any(|size| usize::try_from(*size) == Ok(read)) => Some(true),
        Some(sizes) if sizes.iter().all(|size| usize::try_from(*size).is_ok_and(|size| read < size)) => {
            Some(false)
        }
        _ if read >= USUAL && read.is_power_of_two() => Some(true),
        _ => None,
    }
}

/// Queues in turn instead of in blocks; `None` where the driver does not let the table be set.
pub(super) fn restripe(case: &Case<'_>, interface: &Interface) -> Option<Remedy> {
    let queues = weights(interface.reta.as_ref()?.get()).len();
    is_settable(case, interface).then(|| Remedy {
        os: "linux",
        what: "queues in turn instead of in blocks, which may help with few flows".to_owned(),
        commands: vec![format!("ethtool -X {} equal {queues}", steering::name(interface))],
        expected: "Cannot tell: flows whose hashes are neighbours go to different queues, which helps a few flows \
                   between neighbouring addresses by chance and many flows not at all. Frames without a hash stay \
                   where they are."
            .to_owned(), modelled: None,
})
}

/// Whether `ethtool -X` is not known to be refused.
pub(super) fn is_settable(case: &Case<'_>, interface: &Interface) -> bool {
    case.agreed(interface, |profile| profile.tri(schema::TABLE_SETTABLE)) != Some(false)
}

/// The table as the two rules on it judge it; else what became of them.
pub(super) fn table<'a>(
    case: &Case<'_>,
    interface: &'a Interface,
) -> Result<&'a host::Observed<Reta>, Judgement> {
    let is_bsd = matches!(case.system(), Some(System::FreeBsd | System::NetBsd));
    let chooses = case.agreed(interface, |profile| profile.text(schema::SELECTION).map(|word| word == "rss"));
    let Some(reta) = &interface.reta else {
        let is_none = is_bsd || chooses == Some(false) || interface.channel_count() == Some(1);
        return Err(match is_none {
            true => Judgement::DoesNotApply,
            false => Judgement::lacks(format!("ethtool -x {}", steering::name(interface))),
        });
    };
    match reta.get().entries.is_empty() || is_whole(case, interface, reta.get()) == Some(false) {
        true => Err(Judgement::lacks(format!("ethtool -x {} (all of the table)", steering::name(interface)))),
        false if reta.get().rings < 2 => Err(Judgement::DoesNotApply),
        false => Ok(reta),
    }
}

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let reta = match table(case, interface) {
        Ok(reta) => reta,
        Err(judgement) => return judgement,
    };
    let weights = weights(reta.get());
    let entries = reta.get().entries.len();
    let Some((&heaviest, &most)) = weights.iter().max_by_key(|(_, entries)| **entries) else {
        return Judgement::Clear;
    };
    let only = only_queue(interface);
    let mean = entries as f64 / weights.len() as f64;
    if only.is_none() && most as f64 <= (mean * UNEVEN).max(mean + 1.0) {
        return Judgement::Clear;
    }
    let heat = heat::of(case, interface);
    let strained = strain::of(case, steering::cpu_of_queue(case, interface, heaviest));
    let severity = match (only, &heat, strained.strain) {
        (_, _, Strain::Full) => Severity::Critical,
        // Weights may be meant so, and frames that do spread come by another way than the table.
        (None, ..) | (Some(_), Heat::Spread { .. }, _) => Severity::Info,
        (Some(_), Heat::Hot(hot), _) => hot.severity(&strained),
        (Some(_), ..) => strained.severity(Severity::Warning),
    };
    let what = match only {
        Some(queue) => format!(
            "All {entries} entries of the indirection table name queue {queue}, and there are {} rings: every frame \
             that is hashed goes there.",
            reta.get().rings
        ),
        None => format!(
            "Queue {heaviest} stands in {most} of the indirection table's {entries} entries, where an even share of \
             {} queues would be {mean:.0}.",
            weights.len()
        ),
    };
    let seen = match &heat {
        Heat::Spread { .. } if only.is_some() => {
            " The queue counters show several queues in use all the same: by filter rules, or from before the table \
             was set."
        }
        _ => "",
    };
    let mut finding = RULE
        .finding(
            Some(&interface.name),
            severity,
            [reta.quote()],
            format!("{what}{seen}{}", strained.sentence),
        )
        .and(heat.hot().map_or(&[][..], |hot| &hot.quotes))
        .and(&strained.quote);
    if is_settable(case, interface) {
        finding = finding.with(Remedy {
            os: "linux",
            what: "the driver's own table, which is even".to_owned(),
            commands: vec![format!("ethtool -X {} default", steering::name(interface))],
            expected: "Flows that are hashed spread evenly over all queues; PPPoE and other frames without a hash do \
                       not follow the table."
                .to_owned(), modelled: None,
});
    }
    match is_whole(case, interface, reta.get()) {
        Some(true) => finding.into(),
        _ => finding.possible().into(),
    }
}
