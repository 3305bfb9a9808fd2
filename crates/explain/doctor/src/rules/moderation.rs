//! Interrupt moderation: `moderation-off`, `moderation-long`. What a number means differs by driver.

use crate::case::since;
use crate::device::Device;
use crate::facts::{DropCounter, Effect, Fact, Since, When};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::rule::Judgement;
use crate::{Case, ENOUGH_BETWEEN, loss};
use host::{Interrupt, Observed, Quote, System};
use nic::Profile;

/// Preamble, start delimiter and gap between frames, bytes (IEEE 802.3 clause 4).
const GAP: u64 = 20;
/// A full frame of MTU 1500 with FCS, and the smallest frame there is, bytes.
const FULL: u64 = 1518;
const SMALL: u64 = 64;
/// Interrupts a frame above which every frame has its own; a few share one even without moderation, since the
/// driver polls while it is busy.
const EACH: f64 = 0.8;
/// Frames a second below which each has its interrupt whatever the moderation.
const BUSY: f64 = 10_000.0;
/// Interrupts a second of a bge at level 0 above which a level would help.
const MANY: u64 = 10_000;
/// Buffers that bring an interrupt, by level (NetBSD, sys/dev/pci/if_bge.c, bge_rx_threshes).
const BGE_FRAMES: [u64; 7] = [1, 2, 4, 8, 16, 32, 46];
/// IP input queue depth that was found enough for one interface at level 4 or 5 (J. Stone, tech-net, December 2006).
const INPUT_QUEUE: u64 = 512;

const BGE_LEVEL: &str = "hw.bge.rx_lvl";
const BGE_DEPTH: &str = "net.inet.ip.ifq.maxlen";

/// What profiles say of `rx-usecs`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RxUsecs {
    /// The driver's default, where it is a number.
    default: Option<u64>,
    /// Whether 0 is an interrupt for every frame.
    zero_is_off: bool,
    /// Smallest number that is an interval in microseconds; below it are 0 and the numbers of modes.
    shortest: Option<u64>,
}

impl RxUsecs {
    fn of(profile: &Profile) -> Option<RxUsecs> {
        let knob = profile.device_options.iter().find(|knob| knob.name == "rx-usecs")?;
        let is_off =
            |value: &&nic::OptionValue| value.set == "0" && value.means.starts_with("no moderation:");
        let default = knob.default.as_deref().and_then(|text| text.split_whitespace().next());
        Some(RxUsecs {
            default: default.and_then(|number| number.parse().ok()),
            zero_is_off: knob.values.iter().any(|value| is_off(&value)),
            shortest: knob.values.iter().filter_map(|value| range_start(&value.set)).min(),
        })
    }
}

/// 10 of `10-10000` or `10 to 10000`; a single number is a mode or a switch, not an interval.
fn range_start(set: &str) -> Option<u64> {
    let (start, end) = set.split_once(" to ").or_else(|| set.split_once('-'))?;
    end.trim().parse::<u64>().ok()?;
    start.trim().parse().ok()
}

/// Frames of that size, with FCS, that arrive on a link of `mbps` in that many microseconds.
fn frames_in(microseconds: u64, mbps: u32, size: u64) -> u64 {
    // Mbit/s times microseconds is bits.
    u64::from(mbps).saturating_mul(microseconds) / ((size + GAP) * 8)
}

/// `rx-usecs` as `ethtool -c` shows it, unless moderation is adaptive or this is off; else what became of the rule. A
/// driver that has no moderation answers that it is not supported.
fn fixed<'d>(device: &'d Device<'_>, zero: bool) -> Result<&'d Observed<u64>, Judgement> {
    let command = format!("ethtool -c {}", device.word());
    let Some(usecs) = device.coalesce.get("rx-usecs") else {
        let is_refused = device.case.is_refused(&command);
        return Err(if is_refused { Judgement::DoesNotApply } else { Judgement::lacks(command) });
    };
    let is_adaptive = device.adaptive_rx.as_ref().is_some_and(|adaptive| *adaptive.get());
    if is_adaptive || (*usecs.get() == 0) != zero { Err(Judgement::Clear) } else { Ok(usecs) }
}

/// `moderation-off`: an interrupt for every frame.
pub(super) fn off(device: &Device<'_>) -> Judgement {
    match device.case.system() {
        Some(System::NetBsd) => bge_off(device),
        Some(System::FreeBsd) => Judgement::DoesNotApply,
        Some(System::Linux) | None => ethtool_off(device),
    }
}

fn ethtool_off(device: &Device<'_>) -> Judgement {
    let usecs = match fixed(device, true) {
        Ok(usecs) => usecs,
        Err(judgement) => return judgement,
    };
    let known = device.case.agreed(device, RxUsecs::of);
    let evidence = |finding: Finding| {
        finding.quotes([usecs.quote()]).quotes(device.adaptive_rx.as_ref().map(Observed::quote))
    };
    let (default, zero_is_off) = known.map_or((None, false), |known| (known.default, known.zero_is_off));
    match rates(device) {
        Some((frames, interrupts, quotes)) if frames >= BUSY && interrupts >= frames * EACH => {
            let finding = evidence(found(Severity::Warning, Fact::InterruptEach { interrupts, frames }));
            // What 0 means to a driver without a profile, or one for which it is the default, is not known.
            finding
                .quotes(&quotes)
                .fix(set_default(device, default, Effect::Moderation))
                .possible_if(!zero_is_off)
                .into()
        }
        _ if default == Some(0) => Judgement::Clear,
        rates if zero_is_off => {
            evidence(found(Severity::Info, Fact::ModerationOff { idle: rates.is_some() })).into()
        }
        Some(_) => Judgement::Clear,
        None => Judgement::Lacks(vec![
            "cat /proc/interrupts (twice)".to_owned(),
            format!("ethtool -S {} (twice)", device.word()),
        ]),
    }
}

/// The driver's default, where that is an interval.
fn set_default(device: &Device<'_>, default: Option<u64>, effect: Effect) -> Option<Remedy> {
    let default = default.filter(|&default| default > 0)?;
    Some(Remedy::linux(effect, [format!("ethtool -C {} rx-usecs {default}", device.word())]))
}

/// Frames and interrupts a second between the samples, with their lines.
fn rates(device: &Device<'_>) -> Option<(f64, f64, Vec<Quote>)> {
    let seconds = device.case.snapshot().interval?.as_secs_f64();
    let (frames, mut quotes) = frames(device)?;
    let vectors = device.case.receive_interrupts(device);
    let shares = device.case.shares(vectors.iter().flat_map(|vector| vector.counts.values()))?;
    quotes.extend(vectors.iter().map(|vector| vector.quote.clone()));
    let is_between = since(shares.basis) == Since::Sample;
    is_between.then(|| (frames as f64 / seconds, shares.total() as f64 / seconds, quotes))
}

/// Frames received between the samples, of the interface or of all its queues.
fn frames(device: &Device<'_>) -> Option<(u64, Vec<Quote>)> {
    if let Some(received) = loss::received(device)
        && let Some(frames) = received.counted()
    {
        return (frames >= ENOUGH_BETWEEN).then(|| (frames, vec![received.quote().clone()]));
    }
    let spread = device.case.spread(device)?;
    let is_between = since(spread.shares.basis) == Since::Sample && spread.is_enough();
    is_between.then(|| (spread.shares.total(), spread.quotes))
}

/// NetBSD's bge at its shortest moderation, under load.
fn bge_off(device: &Device<'_>) -> Judgement {
    if !device.name.starts_with("bge") {
        return Judgement::DoesNotApply;
    }
    let Some((level, quote)) = device.case.sysctl(BGE_LEVEL) else {
        return Judgement::lacks("sysctl hw.bge");
    };
    if level > 0 {
        return Judgement::Clear;
    }
    let Some((rate, line, is_named)) = busiest(device) else { return Judgement::lacks("vmstat -i") };
    if rate < MANY {
        return Judgement::Clear;
    }
    let depth = device.case.sysctl(BGE_DEPTH).map(|(depth, _)| depth);
    let needed = INPUT_QUEUE.saturating_mul(bges(device.case).max(1));
    let deepen = depth.filter(|&depth| depth < needed).map(|_| format!("sysctl -w {BGE_DEPTH}={needed}"));
    let commands = deepen.into_iter().chain([format!("sysctl -w {BGE_LEVEL}=4")]);
    found(Severity::Warning, Fact::BgeInterrupts { rate })
        .quotes([quote, line])
        .fix([Remedy::new(System::NetBsd, Effect::BgeLevel, commands)])
        .possible_if(!is_named)
        .into()
}

fn bges(case: &Case<'_>) -> u64 {
    case.devices().filter(|device| device.name.starts_with("bge")).count() as u64
}

/// The interface's busiest vector: rate, line, and whether the line names it. NetBSD prints where an interrupt
/// arrives (`ioapic0 pin 16`, `msi0 vec 0`), not which device it is from.
fn busiest<'c>(device: &Device<'c>) -> Option<(u64, &'c Quote, bool)> {
    let case = device.case;
    let of = |is_one: &dyn Fn(&Interrupt) -> bool| {
        let vectors = case.snapshot().interrupts.iter().filter(|vector| is_one(vector));
        vectors.filter_map(|vector| rate(case, vector)).max_by_key(|(rate, _)| *rate)
    };
    let named = of(&|vector| vector.interface.as_deref() == Some(&device.name));
    let by_place = || {
        of(&|vector| {
            let places = [" pin ", " vec "];
            vector.interface.is_none() && places.iter().any(|place| vector.quote.text.contains(place))
        })
    };
    let is_named = named.is_some();
    named.or_else(by_place).map(|(rate, line)| (rate, line, is_named))
}

/// Interrupts a second, between the samples or since boot.
fn rate<'c>(case: &Case<'_>, vector: &'c Interrupt) -> Option<(u64, &'c Quote)> {
    let shares = case.shares(vector.counts.values())?;
    let between = shares.per_second(shares.total()).map(|rate| rate as u64);
    let rate = between.or_else(|| vector.rate.as_ref().map(|rate| rate.value))?;
    Some((rate, &vector.quote))
}

/// `moderation-long`: interrupts are held back for longer than the ring or the next queue lasts.
pub(super) fn long(device: &Device<'_>) -> Judgement {
    match device.case.system() {
        Some(System::NetBsd) => bge_long(device),
        Some(System::FreeBsd) => Judgement::DoesNotApply,
        Some(System::Linux) | None => ethtool_long(device),
    }
}

fn ethtool_long(device: &Device<'_>) -> Judgement {
    let seen = match fixed(device, false) {
        Ok(usecs) => usecs,
        Err(judgement) => return judgement,
    };
    let usecs = *seen.get();
    let known = device.case.agreed(device, RxUsecs::of);
    if known.as_ref().and_then(|known| known.shortest).is_some_and(|shortest| usecs < shortest) {
        return Judgement::Clear;
    }
    let (Some(ring), Some(speed)) = (&device.rings.rx.current, &device.link.speed) else {
        let name = device.word();
        let ring = device.rings.rx.current.is_none().then(|| format!("ethtool -g {name}"));
        let speed = device.link.speed.is_none().then(|| format!("ethtool {name}"));
        return Judgement::Lacks(ring.into_iter().chain(speed).collect());
    };
    let (entries, mbps) = (u64::from(*ring.get()), *speed.get());
    // An interrupt that comes after so many frames comes in time, whatever the interval.
    let by_frames =
        device.coalesce.get("rx-frames").is_some_and(|frames| (1..=entries).contains(frames.get()));
    let (full, small) = (frames_in(usecs, mbps, FULL), frames_in(usecs, mbps, SMALL));
    if by_frames || small <= entries {
        return Judgement::Clear;
    }
    let lost = device.totals.overflow.iter().find_map(|(name, drops)| {
        let lost = loss::of(device.case, DropCounter::Named(name.clone()), drops, None)?;
        (lost.loss.when == When::Now).then_some(lost)
    });
    let is_long = lost.is_some() || full > entries;
    let severity = if is_long { Severity::Warning } else { Severity::Info };
    let default = known.and_then(|known| known.default).filter(|&default| is_long && default < usecs);
    found(severity, Fact::Burst { usecs, mbps, full, small, entries })
        .says((!is_long).then_some(Fact::BurstOfSmall))
        .quotes([seen.quote(), ring.quote(), speed.quote()])
        .quotes(lost.as_ref().map(|lost| lost.quote))
        .says(lost.map(|lost| Fact::BurstLost(lost.loss)))
        .fix(set_default(device, default, Effect::ShorterModeration))
        .possible_if(is_long)
        .into()
}

/// Bursts of all bge interfaces together against the IP input queue, which they share.
fn bge_long(device: &Device<'_>) -> Judgement {
    let case = device.case;
    if !device.name.starts_with("bge") {
        return Judgement::DoesNotApply;
    }
    let (Some((level, level_line)), Some((depth, depth_line))) =
        (case.sysctl(BGE_LEVEL), case.sysctl(BGE_DEPTH))
    else {
        return Judgement::Lacks(["sysctl hw.bge", "sysctl net.inet.ip.ifq"].map(str::to_owned).into());
    };
    let Some(&burst) = usize::try_from(level).ok().and_then(|level| BGE_FRAMES.get(level)) else {
        return Judgement::DoesNotApply;
    };
    let interfaces = bges(case);
    let together = burst.saturating_mul(interfaces);
    if together <= depth {
        return Judgement::Clear;
    }
    let drops = case.sysctl("net.inet.ip.ifq.drops").filter(|(drops, _)| *drops > 0);
    let dropped = drops.map(|(drops, _)| drops);
    let command = format!("sysctl -w {BGE_DEPTH}={}", INPUT_QUEUE.saturating_mul(interfaces));
    found(Severity::Warning, Fact::BgeBurst { level, burst, interfaces, together, depth, dropped })
        .quotes([level_line, depth_line])
        .quotes(drops.map(|(_, quote)| quote))
        .fix([Remedy::new(System::NetBsd, Effect::BgeQueue, [command])])
        .possible_if(dropped.is_none())
        .into()
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
        for (name, expected) in [
            ("i210", Some((Some(3), true, Some(10)))),
            ("i219", Some((Some(3), true, Some(10)))),
            ("82599", Some((Some(1), true, Some(2)))),
            ("veth", None),
        ] {
            let known = RxUsecs::of(&nic::lookup(name).expect("a profile"));
            let known = known.map(|known| (known.default, known.zero_is_off, known.shortest));
            assert_eq!(known, expected, "{name}");
        }
        let of = |name| RxUsecs::of(&nic::lookup(name).expect("a profile")).expect("rx-usecs");
        assert_eq!((of("virtio-net").default, of("virtio-net").zero_is_off), (Some(0), false));
        assert_eq!((of("x710").default, of("x710").shortest), (Some(50), Some(2)));
    }
}
