//! Receiving: checksums, RSS, RPS, GRO.

use super::adapter::Adapter;
use super::kernel::KernelRules;
use super::rule::Rule;
use super::{Decision, Verdict};
use crate::schema::{self, Key};

/// Received checksums are verified by the device.
pub(crate) fn checksum(adapter: &Adapter, rules: &KernelRules, tpids: &[u16], pppoe: bool) -> Decision {
    if adapter.verifies == Some(true) {
        return Decision::new(Verdict::Yes, Rule::DeviceParses);
    }
    let dropped = pppoe && rules.ppp_drops_complete;
    match adapter.sums_frames {
        Some(true) if !dropped => Decision::new(Verdict::Yes, Rule::SumSurvives),
        Some(true) if adapter.is_kind => Decision::new(Verdict::No, Rule::PppDropsSum),
        _ => by_device(adapter, adapter.verifies, verification_key(tpids, pppoe)),
    }
}

pub(crate) fn verification_key(tpids: &[u16], pppoe: bool) -> Key {
    match (tpids.len(), pppoe) {
        (_, true) => schema::RX_CHECKSUM_PPPOE,
        (0, _) => schema::RX_CHECKSUM,
        (1, _) => schema::RX_CHECKSUM_ONE_TAG,
        _ => schema::RX_CHECKSUM_TWO_TAGS,
    }
}

/// Frames are spread by the device.
pub(crate) fn rss(adapter: &Adapter, pppoe: bool) -> Decision {
    by_device(adapter, adapter.spreads, if pppoe { schema::PPPOE } else { schema::TAGS_THROUGH })
}

fn by_device(adapter: &Adapter, answer: Option<bool>, key: Key) -> Decision {
    match answer {
        Some(true) => Decision { key: Some(key), ..Decision::new(Verdict::Yes, Rule::DeviceParses) },
        Some(false) => Decision { key: Some(key), ..Decision::new(Verdict::No, Rule::DeviceStops) },
        None => Decision::lacking(if adapter.is_kind { Verdict::Device } else { Verdict::Unknown }, key),
    }
}

/// The kernel spreads frames by their header, before it has taken tags off (`get_rps_cpu`). PPPoE has been dissected
/// in each of the kernels.
pub(crate) fn rps(adapter: &Adapter, rules: &KernelRules, tpids: &[u16]) -> Decision {
    by_tags(adapter, tpids, |in_bytes| match in_bytes.iter().all(|tpid| rules.dissects.contains(tpid)) {
        true => (Verdict::Yes, Rule::DissectorPasses),
        false => (Verdict::No, Rule::DissectorEnds),
    })
}

/// Received segments are merged.
pub(crate) fn gro(adapter: &Adapter, rules: &KernelRules, tpids: &[u16], pppoe: bool) -> Decision {
    if pppoe {
        return Decision::new(Verdict::No, Rule::GroEndsAtPppoe);
    }
    by_tags(adapter, tpids, |in_bytes| match (tpids, in_bytes) {
        ([], _) => (Verdict::Yes, Rule::NoTags),
        (_, []) => (Verdict::Yes, Rule::TagTakenOff),
        _ if rules.gro_tags => (Verdict::Yes, Rule::GroPassesTags),
        _ => (Verdict::No, Rule::GroEnds),
    })
}

/// The answer by the tags that are left in the bytes; where it is not known whether the device takes the outer one off, the
/// answer of both cases if they agree.
fn by_tags(adapter: &Adapter, tpids: &[u16], judge: impl Fn(&[u16]) -> (Verdict, Rule)) -> Decision {
    if let Some(in_bytes) = adapter.tags_in_bytes(tpids) {
        let (verdict, rule) = judge(in_bytes);
        return Decision::new(verdict, rule);
    }
    let (kept, taken) = (judge(tpids), judge(tpids.get(1..).unwrap_or_default()));
    match kept.0 == taken.0 {
        true => Decision::new(kept.0, kept.1),
        false => {
            let service = tpids.first() == Some(&super::kernel::SERVICE);
            let key = if service { schema::QINQ_STRIP } else { schema::VLAN_STRIP };
            Decision::lacking(if adapter.is_kind { Verdict::Device } else { Verdict::Unknown }, key)
        }
    }
}
