//! `reta-unused-queue`: the indirection table leaves queues out.

use super::reta_uneven;
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain::{self, Strain};
use crate::{Case, steering};
use host::Interface;
use nic::schema;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "reta-unused-queue",
    stage: "queue",
    page: Page {
        title: "The indirection table names fewer queues than there are",
        means: "RSS can only reach queues that the indirection table names. The others still get frames by filter rules \
                or, with ixgbe and i40e, by Flow Director, which follows the flows that the machine itself sends. Not \
                every device can name every queue: an entry of the 82599 and X540 has 4 bits, so that RSS reaches 16 \
                queues however many rings there are. That is no fault.",
        shows: "`ethtool -x IFACE`: the heading counts the rings, the table names the queues.",
        fix: "Where the device can name more: `ethtool -X IFACE equal N`. Where somebody left queues out on purpose \
              (for a filter, or for XDP sockets), leave it so.",
        costs: "Flows move to other queues at that moment.",
    },
    judge: Judge::Device(judge),
};

/// Queues that 4-bit entries can name, as those of the 82599 and X540 (`ixgbe_store_reta()` in Linux).
const FOUR_BITS: usize = 16;

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let reta = match reta_uneven::table(case, interface) {
        Ok(reta) => reta,
        Err(judgement) => return judgement,
    };
    let named: Vec<u32> = reta_uneven::weights(reta.get()).into_keys().collect();
    let rings = reta.get().rings as usize;
    if named.len() >= rings {
        return Judgement::Clear;
    }
    let reach = reach(case, interface);
    let can = reach.map_or(rings, |reach| rings.min(reach));
    let finding = |severity, explanation: String| {
        RULE.finding(Some(&interface.name), severity, [reta.quote()], explanation)
    };
    let left_out = format!(
        "The indirection table names {} of {rings} rings (queues {})",
        named.len(),
        steering::words(&named)
    );
    if reta_uneven::only_queue(interface).is_some() {
        return finding(Severity::Info, format!("{left_out}: see `reta-uneven`.")).into();
    }
    let flow_director =
        "the other rings get frames by Flow Director or filter rules alone. Nothing is misconfigured";
    if named.len() >= can {
        return finding(
            Severity::Info,
            format!("{left_out}, which is all that this device's RSS can reach; {flow_director}."),
        )
        .into();
    }
    let is_first = named.iter().zip(0..).all(|(queue, place)| *queue == place);
    if reach.is_none() && named.len() == FOUR_BITS && is_first {
        let explanation = format!(
            "{left_out}. 16 is what 4-bit entries can name, as those of Intel's 82599 and X540: if it is one of \
             these, RSS reaches no more, and {flow_director}."
        );
        return finding(Severity::Info, explanation).possible().into();
    }
    let cpus = named.iter().filter_map(|queue| steering::cpu_of_queue(case, interface, *queue));
    let strained = cpus
        .map(|cpu| strain::of(case, Some(cpu)))
        .find(|strained| strained.strain == Strain::Full)
        .unwrap_or_else(|| strain::of(case, None));
    let severity = if strained.strain == Strain::Full { Severity::Warning } else { Severity::Info };
    let explanation = format!(
        "{left_out}: the others get no frames by RSS. It may be meant so, for filter rules or XDP sockets.{}",
        strained.sentence
    );
    let finding = finding(severity, explanation).and(&strained.quote);
    match reach.filter(|_| reta_uneven::is_settable(case, interface)) {
        Some(_) => finding
            .with(Remedy {
                os: "linux",
                what: format!("all {can} queues that RSS can reach, if none was left out on purpose"),
                commands: vec![format!("ethtool -X {} equal {can}", steering::name(interface))],
                expected: "Flows that are hashed spread over all of these queues.".to_owned(),
                modelled: None,
            })
            .into(),
        None => finding.into(),
    }
}

/// Queues that an entry of the device's table can name and its RSS can use; `None` where no profile tells.
fn reach(case: &Case<'_>, interface: &Interface) -> Option<usize> {
    let bits = case.agreed(interface, |profile| profile.int(schema::ENTRY_BITS));
    let by_bits = bits.and_then(|bits| 1_usize.checked_shl(u32::try_from(bits).ok()?));
    let queues = case.agreed(interface, |profile| profile.int(schema::RX_QUEUES));
    let by_queues = queues.and_then(|queues| usize::try_from(queues).ok());
    match (by_bits, by_queues) {
        (Some(bits), Some(queues)) => Some(bits.min(queues)),
        (reach, other) => reach.or(other),
    }
}
