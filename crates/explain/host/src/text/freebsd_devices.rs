//! FreeBSD's `dev.*`: what a network driver says about a device, its queues and its losses.
//!
//! Names of queues and counters are those of the drivers' `*_add_hw_stats` and the like in `sys/dev`:
//!
//! * igb up to 11, ix: `queue0.rx_packets`, `queue0.rx_bytes`; ix `queue0.rx_discarded`
//! * igb, em, igc on iflib (12 and later): `queue_rx_0.*` and `iflib.rxq0.*`, without counts of frames
//! * ixl: `pf.que0.rx_packets` (drivers before iflib), `pf.rxq00.packets`; iavf: `vsi.rxq00.packets`
//! * mlx5en: `rxstat0.packets`; vtnet: `rxq0.ipackets`, `rxq0.iqdrops`; ena: `queue0.rx_ring.count`
//! * e1000 `mac_stats.missed_packets`, `mac_stats.recv_no_buff`, `mac_stats.recv_oversize`; ix
//!   `mac_stats.rx_missed_packets`, `mac_stats.recv_oversized`; ixl `pf.rx_discards`, `pf.mac.rx_oversized`; bge
//!   `stats.NoMoreRxBDs`, `stats.rx.FramesTooLong`; mlx5en `vstats.rx_out_of_buffer`

use super::line::is_word_of;
use super::{freebsd_nics, pciconf, sysctl_machine};
use crate::{Counter, Fact, Interface, Kind, Quote, Snapshot, System};

/// Counters of frames lost for want of a buffer, by the last part of their names.
const OVERFLOW: &str = "missed_packets recv_no_buff rx_missed_packets rx_overruns rx_out_of_buffer rx_discards \
     NoMoreRxBDs";

/// Counters of frames dropped as too long.
const TOO_LONG: &str = "recv_oversize recv_oversized rx_oversized FramesTooLong";

/// Notes what a setting `dev.igb.0.…` says about the interface `igb0`.
pub(super) fn note(name: &str, value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let mut parts = name.splitn(4, '.');
    let (Some("dev"), Some(driver), Some(unit), Some(rest)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let is_unit = !unit.is_empty() && unit.len() <= 4 && unit.bytes().all(|c| c.is_ascii_digit());
    if !is_unit || !freebsd_nics::is_driver(driver) {
        return;
    }
    sysctl_machine::infer(snapshot, System::FreeBsd, quote);
    let Some(interface) = snapshot.interface_mut(&format!("{driver}{unit}"), quote) else { return };
    interface.kind.get_or_insert_with(|| Fact::new(Kind::Device, quote.clone()));
    interface.driver.get_or_insert_with(|| Fact::new(driver.to_owned(), quote.clone()));
    if rest.starts_with('%') {
        identity(interface, rest, value, quote);
    } else if let Some(place) = Place::of(rest) {
        snapshot.omitted += u64::from(!at_queue(interface, &place, value, quote));
    } else {
        total(interface, rest, value, quote);
    }
}

fn identity(interface: &mut Interface, rest: &str, value: &str, quote: &Quote) {
    let bus = || value.split_whitespace().find_map(|word| word.strip_prefix("dbsf="));
    let (slot, text) = match rest {
        "%desc" => (&mut interface.model, Some(value.to_owned()).filter(|name| !name.is_empty())),
        "%pnpinfo" => (&mut interface.pci, pciconf::ids(value)),
        "%location" => (&mut interface.bus, bus().map(str::to_owned)),
        _ => return,
    };
    if let Some(text) = text {
        slot.get_or_insert_with(|| Fact::new(text, quote.clone()));
    }
}

/// A name below a receive queue.
struct Place<'a> {
    queue: u32,
    /// The names there are of received frames alone (`rxq0.packets`), not of both directions.
    is_rx: bool,
    leaf: &'a str,
}

impl<'a> Place<'a> {
    fn of(rest: &'a str) -> Option<Place<'a>> {
        let mut before = rest.split('.');
        // The queue is the first part, or the second below `iflib`, `pf` or `vsi`.
        for depth in 0..2 {
            let part = before.next()?;
            let found =
                [("queue_rx_", true), ("rxstat", true), ("rxq", true), ("queue", false), ("que", false)]
                    .into_iter()
                    .find_map(|(prefix, is_rx)| {
                        let number = part.strip_prefix(prefix)?;
                        let is_number =
                            (1..=4).contains(&number.len()) && number.bytes().all(|c| c.is_ascii_digit());
                        Some((number.parse().ok().filter(|_| is_number)?, is_rx))
                    });
            if let Some((queue, is_rx)) = found {
                let at: usize = rest.split('.').take(depth + 1).map(|part| part.len() + 1).sum();
                return Some(Place { queue, is_rx, leaf: rest.get(at..)? });
            }
        }
        None
    }
}

/// Whether there was room for the queue.
fn at_queue(interface: &mut Interface, place: &Place<'_>, value: &str, quote: &Quote) -> bool {
    // `queue0` may be one of the transmit side alone.
    if !place.is_rx && !place.leaf.starts_with("rx") {
        return true;
    }
    let Some(queue) = interface.queue_mut(place.queue) else { return false };
    let Ok(value) = value.parse::<u64>() else { return true };
    let slot = match (place.leaf, place.is_rx) {
        ("rx_packets" | "rx_ring.count", _) | ("packets" | "ipackets", true) => &mut queue.packets,
        ("rx_bytes" | "rx_ring.bytes", _) | ("bytes" | "ibytes", true) => &mut queue.bytes,
        ("rx_discarded", _) | ("iqdrops", true) => &mut queue.drops,
        _ => return true,
    };
    Counter::note(slot, value, quote);
    true
}

fn total(interface: &mut Interface, rest: &str, value: &str, quote: &Quote) {
    let leaf = rest.rsplit('.').next().unwrap_or(rest);
    let Ok(value) = value.parse() else { return };
    let names = if is_word_of(OVERFLOW, leaf) {
        &mut interface.totals.overflow
    } else if is_word_of(TOO_LONG, leaf) {
        &mut interface.totals.too_long
    } else {
        return;
    };
    Counter::note_at(names, rest.to_owned(), value, quote.clone(), Snapshot::LINES);
}
