//! Interrupt moderation as drivers spell it: what a number means, and how many frames wait for an interrupt.

use crate::rule::Judgement;
use crate::{Case, steering};
use host::{Interface, Quote};
use nic::Profile;

/// Preamble, start delimiter and gap between frames, bytes (IEEE 802.3 clause 4).
const GAP: u64 = 20;
/// A full frame of MTU 1500 with FCS, and the smallest frame there is, bytes.
pub(crate) const FULL: u64 = 1518;
/// The smallest frame with FCS, bytes.
pub(crate) const SMALL: u64 = 64;

/// What profiles say of `rx-usecs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Knob {
    /// The driver's default, where it is a number.
    pub default: Option<u64>,
    /// Whether 0 is an interrupt for every frame.
    pub zero_is_off: bool,
    /// Smallest number that is an interval in microseconds; below it are 0 and the numbers of modes.
    pub shortest: Option<u64>,
}

/// `rx-usecs` of the device, where the profiles that fit agree.
pub(crate) fn knob(case: &Case<'_>, interface: &Interface) -> Option<Knob> {
    case.agreed(interface, of_profile)
}

fn of_profile(profile: &Profile) -> Option<Knob> {
    let knob = profile.knobs().iter().find(|knob| knob.name == "rx-usecs")?;
    let zero_is_off =
        knob.values.iter().any(|value| value.set == "0" && value.means.starts_with("no moderation:"));
    let shortest = knob.values.iter().filter_map(|value| range_start(&value.set)).min();
    let default =
        knob.default.as_deref().and_then(|text| text.split_whitespace().next()).and_then(|n| n.parse().ok());
    Some(Knob { default, zero_is_off, shortest })
}

/// 10 of `10-10000` or `10 to 10000`; a single number is a mode or a switch, not an interval.
fn range_start(set: &str) -> Option<u64> {
    let (start, end) = set.split_once(" to ").or_else(|| set.split_once('-'))?;
    end.trim().parse::<u64>().ok()?;
    start.trim().parse().ok()
}

/// Frames of that size, with FCS, that a link of `mbps` brings in that many microseconds.
pub(crate) fn frames_in(microseconds: u64, mbps: u32, size: u64) -> u64 {
    // Mbit/s times microseconds is bits.
    u64::from(mbps).saturating_mul(microseconds) / ((size + GAP) * 8)
}

/// What a rule about moderation says where `ethtool -c` shows nothing: a driver that has no moderation answers that
/// it is not supported.
pub(crate) fn unread(case: &Case<'_>, interface: &Interface) -> Judgement {
    let command = format!("ethtool -c {}", steering::name(interface));
    match case.is_refused(&command) {
        true => Judgement::DoesNotApply,
        false => Judgement::lacks(command),
    }
}

/// Buffers that bring an interrupt, by level (NetBSD, sys/dev/pci/if_bge.c, bge_rx_threshes).
const BGE_FRAMES: [u64; 7] = [1, 2, 4, 8, 16, 32, 46];

/// Interrupt mitigation level of NetBSD's bge driver.
pub(crate) fn bge_level<'a>(case: &Case<'a>) -> Option<(u64, &'a Quote)> {
    let seen = case.snapshot().sysctls.get("hw.bge.rx_lvl")?;
    Some((seen.get().trim().parse().ok()?, seen.quote()))
}

/// Frames that reach the IP input queue at once at that level.
pub(crate) fn bge_burst(level: u64) -> Option<u64> {
    BGE_FRAMES.get(usize::try_from(level).ok()?).copied()
}

/// IP input queue depth that was found enough for one interface at level 4 or 5 (J. Stone, tech-net, December 2006).
const INPUT_QUEUE: u64 = 512;

/// Sets a level, and the input queue first where it is known to be shorter than that needs.
pub(crate) fn bge_commands(case: &Case<'_>, level: u64) -> Vec<String> {
    let depth = input_queue(case).map(|(depth, _)| depth);
    let interfaces = case.devices().filter(|device| device.name.starts_with("bge")).count() as u64;
    let wanted = INPUT_QUEUE.saturating_mul(interfaces.max(1));
    let deepen =
        depth.filter(|&depth| depth < wanted).map(|_| format!("sysctl -w net.inet.ip.ifq.maxlen={wanted}"));
    deepen.into_iter().chain([format!("sysctl -w hw.bge.rx_lvl={level}")]).collect()
}

/// Depth of NetBSD's IP input queue, packets.
pub(crate) fn input_queue<'a>(case: &Case<'a>) -> Option<(u64, &'a Quote)> {
    let seen = case.snapshot().sysctls.get("net.inet.ip.ifq.maxlen")?;
    Some((seen.get().trim().parse().ok()?, seen.quote()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate() {
        // 1.488 million frames a second of 64 bytes at 1 Gbit/s, 81 thousand of 1518.
        assert_eq!(frames_in(1_000_000, 1000, SMALL), 1_488_095);
        assert_eq!(frames_in(1_000_000, 1000, FULL), 81_274);
        assert_eq!(frames_in(0, 1000, FULL), 0);
    }

    #[test]
    fn what_numbers_mean_to_drivers() {
        let knob = |name: &str| of_profile(&nic::lookup(name).expect("a profile"));
        let igb = Knob { default: Some(3), zero_is_off: true, shortest: Some(10) };
        assert_eq!(knob("i210"), Some(igb.clone()));
        assert_eq!(knob("i219"), Some(igb));
        assert_eq!(knob("82599"), Some(Knob { default: Some(1), zero_is_off: true, shortest: Some(2) }));
        assert_eq!(knob("virtio-net").map(|knob| (knob.default, knob.zero_is_off)), Some((Some(0), false)));
        assert_eq!(knob("x710").map(|knob| (knob.default, knob.shortest)), Some((Some(50), Some(2))));
        assert_eq!(knob("veth"), None);
    }
}
