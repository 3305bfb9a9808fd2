//! The indirection table: `reta-uneven`, `reta-unused-queue`.

use crate::device::Device;
use crate::distribution::Distribution;
use crate::facts::{Effect, Fact, LeftOut};
use crate::finding::{Remedy, Severity, found};
use crate::rule::Judgement;
use host::{Observed, Reta};
use nic::schema;
use std::collections::BTreeMap;

/// How much more than an even share a queue's entries may be: a table whose size is no multiple of the number of
/// queues differs by one entry, and weights below this are no more uneven than ordinary flows.
const UNEVEN: f64 = 1.5;

/// Queues that 4-bit entries can name, as those of the 82599 and X540 (`ixgbe_store_reta()` in Linux).
const FOUR_BITS: usize = 16;

/// Entries of each queue that the table names.
fn weights(reta: &Reta) -> BTreeMap<u32, usize> {
    let mut weights = BTreeMap::new();
    for queue in &reta.entries {
        *weights.entry(*queue).or_insert(0) += 1;
    }
    weights
}

/// The only queue that the table names, where there are several rings.
pub(super) fn only_queue(device: &Device<'_>) -> Option<u32> {
    let reta = device.reta.as_ref()?.get();
    let first = *reta.entries.first()?;
    (reta.rings > 1 && reta.entries.iter().all(|queue| *queue == first)).then_some(first)
}

/// Whether the table is in contiguous blocks of several entries each, as igb fills it.
pub(super) fn is_blocks(device: &Device<'_>) -> bool {
    let Some(reta) = device.reta.as_ref().map(|seen| seen.get()) else { return false };
    let queues = weights(reta).len();
    queues > 1 && reta.entries.len() > queues && reta.entries.is_sorted()
}

/// Whether all entries were read: `None` where no profile says how many there are and fewer were read than most
/// devices have.
fn is_whole(device: &Device<'_>, reta: &Reta) -> Option<bool> {
    const USUAL: usize = 128;
    let read = reta.entries.len();
    match device.case.agreed(device, |profile| profile.ints(schema::TABLE_SIZES)) {
        Some(sizes) if sizes.iter().any(|size| usize::try_from(*size) == Ok(read)) => Some(true),
        Some(sizes) if sizes.iter().all(|size| usize::try_from(*size).is_ok_and(|size| read < size)) => {
            Some(false)
        }
        _ if read >= USUAL && read.is_power_of_two() => Some(true),
        _ => None,
    }
}

/// Queues in turn instead of in blocks; `None` where the driver does not let the table be set.
pub(super) fn in_turn(device: &Device<'_>) -> Option<Remedy> {
    let queues = weights(device.reta.as_ref()?.get()).len();
    let command = format!("ethtool -X {} equal {queues}", device.word());
    is_settable(device).then(|| Remedy::linux(Effect::RetaInTurn, [command]))
}

/// Whether `ethtool -X` is not known to be refused.
fn is_settable(device: &Device<'_>) -> bool {
    device.case.agreed(device, |profile| profile.tri(schema::TABLE_SETTABLE)) != Some(false)
}

/// The table as the two rules on it judge it; else what became of them.
fn table<'d>(device: &'d Device<'_>) -> Result<&'d Observed<Reta>, Judgement> {
    let selection = |profile: &nic::Profile| profile.text(schema::SELECTION).map(|word| word == "rss");
    let chooses = device.case.agreed(device, selection);
    let Some(reta) = &device.reta else {
        let is_none = device.case.is_bsd() || chooses == Some(false) || device.channel_count() == Some(1);
        return Err(match is_none {
            true => Judgement::DoesNotApply,
            false => Judgement::lacks(format!("ethtool -x {}", device.word())),
        });
    };
    match reta.get().entries.is_empty() || is_whole(device, reta.get()) == Some(false) {
        true => Err(Judgement::lacks(format!("ethtool -x {} (all of the table)", device.word()))),
        false if reta.get().rings < 2 => Err(Judgement::DoesNotApply),
        false => Ok(reta),
    }
}

/// `reta-uneven`: the indirection table gives one queue much more than its share, or everything.
pub(super) fn uneven(device: &Device<'_>) -> Judgement {
    let reta = match table(device) {
        Ok(reta) => reta,
        Err(judgement) => return judgement,
    };
    let weights = weights(reta.get());
    let entries = reta.get().entries.len();
    let Some((&queue, &most)) = weights.iter().max_by_key(|(_, entries)| **entries) else {
        return Judgement::Clear;
    };
    let only = only_queue(device);
    let mean = entries as f64 / weights.len() as f64;
    if only.is_none() && most as f64 <= (mean * UNEVEN).max(mean + 1.0) {
        return Judgement::Clear;
    }
    let distribution = device.distribution();
    let load = device.load_of(queue);
    let severity = match (only, &distribution) {
        _ if load.is_full() => Severity::Critical,
        // Weights may be meant so, and frames that do spread arrive by another way than the table.
        (None, _) | (Some(_), Distribution::Spread { .. }) => Severity::Info,
        (Some(_), Distribution::OneQueue(busy)) => busy.severity(&load),
        (Some(_), _) => load.severity(Severity::Warning),
    };
    let fact = match only {
        Some(queue) => Fact::RetaNamesOne { queue, entries, rings: reta.get().rings },
        None => Fact::RetaPrefers { queue, most, entries, queues: weights.len(), mean },
    };
    let all_the_same = only.is_some() && matches!(distribution, Distribution::Spread { .. });
    let command = format!("ethtool -X {} default", device.word());
    found(severity, fact)
        .says(all_the_same.then_some(Fact::RetaSpreadsAllTheSame))
        .quotes([reta.quote()])
        .quotes(distribution.quotes())
        .load(&load)
        .fix(is_settable(device).then(|| Remedy::linux(Effect::RetaDefault, [command])))
        .possible_if(is_whole(device, reta.get()) != Some(true))
        .into()
}

/// `reta-unused-queue`: the indirection table leaves queues out.
pub(super) fn unused_queue(device: &Device<'_>) -> Judgement {
    let reta = match table(device) {
        Ok(reta) => reta,
        Err(judgement) => return judgement,
    };
    let queues: Vec<u32> = weights(reta.get()).into_keys().collect();
    let rings = reta.get().rings as usize;
    if queues.len() >= rings {
        return Judgement::Clear;
    }
    let reach = reach(device);
    let can = reach.map_or(rings, |reach| rings.min(reach));
    let is_first = queues.iter().zip(0..).all(|(queue, place)| *queue == place);
    let why = if only_queue(device).is_some() {
        LeftOut::NamesOne
    } else if queues.len() >= can {
        LeftOut::Reach
    } else if reach.is_none() && queues.len() == FOUR_BITS && is_first {
        LeftOut::FourBits
    } else {
        LeftOut::Chosen
    };
    let full = device
        .full_cpu(queues.iter().filter_map(|queue| device.cpu_of(*queue)))
        .filter(|_| why == LeftOut::Chosen);
    let severity = if full.is_some() { Severity::Warning } else { Severity::Info };
    let command = format!("ethtool -X {} equal {can}", device.word());
    let is_fixable = why == LeftOut::Chosen && reach.is_some() && is_settable(device);
    let finding = found(severity, Fact::RetaLeavesOut { queues, rings, why }).quotes([reta.quote()]);
    full.iter()
        .fold(finding, |finding, load| finding.load(load))
        .fix(is_fixable.then(|| Remedy::linux(Effect::RetaAll { queues: can }, [command])))
        .possible_if(why == LeftOut::FourBits)
        .into()
}

/// Queues that an entry of the device's table can name and its RSS can use; `None` where no profile says.
fn reach(device: &Device<'_>) -> Option<usize> {
    let bits = device.case.agreed(device, |profile| profile.int(schema::ENTRY_BITS));
    let by_bits = bits.and_then(|bits| 1_usize.checked_shl(u32::try_from(bits).ok()?));
    let queues = device.case.agreed(device, |profile| profile.int(schema::RX_QUEUES));
    let by_queues = queues.and_then(|queues| usize::try_from(queues).ok());
    by_bits.into_iter().chain(by_queues).min()
}
