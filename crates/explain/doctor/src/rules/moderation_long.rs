//! `moderation-long`: interrupts are held back for longer than the ring or the next queue lasts.

use crate::loss::{self, When};
use crate::moderation::{self, FULL, SMALL, frames_in};
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::{Case, steering};
use host::{Interface, Observed, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "moderation-long",
    stage: "moderate",
    page: Page {
        title: "Interrupts are held back for longer than the ring lasts",
        means: "While an interrupt is held back, frames gather in the ring: at 1 Gbit/s up to 81 full-size ones or 1488 \
                of the smallest in a millisecond. If more can come than the ring, or the queue behind it, holds, the \
                rest is lost, although no CPU is busy. On NetBSD each level of bge interrupt mitigation doubles the \
                burst that reaches the IP input queue.",
        shows: "`rx-usecs` (`ethtool -c`) with adaptive moderation off, times the negotiated speed, gives more frames \
                than the ring (`ethtool -g`).",
        fix: "A shorter interval, or the driver's adaptive mode (`ethtool -C IFACE rx-usecs 3` for igb), or a longer ring. \
              NetBSD: a deeper `net.inet.ip.ifq.maxlen`, or a lower `hw.bge.rx_lvl`.",
        costs: "A shorter interval means more interrupts.",
    },
    judge: Judge::Device(judge),
};

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    match case.system() {
        Some(System::NetBsd) => bge(case, interface),
        Some(System::FreeBsd) => Judgement::DoesNotApply,
        Some(System::Linux) | None => ethtool(case, interface),
    }
}

fn ethtool(case: &Case<'_>, interface: &Interface) -> Judgement {
    let name = steering::name(interface);
    let Some(usecs) = interface.coalesce.get("rx-usecs") else {
        return moderation::unread(case, interface);
    };
    let is_adaptive = interface.adaptive_rx.as_ref().is_some_and(|adaptive| *adaptive.get());
    let knob = moderation::knob(case, interface);
    let is_mode =
        knob.as_ref().and_then(|knob| knob.shortest).is_some_and(|shortest| *usecs.get() < shortest);
    if *usecs.get() == 0 || is_adaptive || is_mode {
        return Judgement::Clear;
    }
    let (Some(ring), Some(speed)) = (&interface.rings.rx.current, &interface.link.speed) else {
        let ring = interface.rings.rx.current.is_none().then(|| format!("ethtool -g {name}"));
        let speed = interface.link.speed.is_none().then(|| format!("ethtool {name}"));
        return Judgement::Lacks(ring.into_iter().chain(speed).collect());
    };
    let entries = u64::from(*ring.get());
    // An interrupt that comes after so many frames comes in time, whatever the interval.
    let frames = interface.coalesce.get("rx-frames").filter(|frames| (1..=entries).contains(frames.get()));
    let most = |size| frames_in(*usecs.get(), *speed.get(), size);
    if frames.is_some() || most(SMALL) <= entries {
        return Judgement::Clear;
    }
    let quotes = [usecs.quote(), ring.quote(), speed.quote()];
    long(case, interface, Burst { usecs: *usecs.get(), speed: *speed.get(), entries }, quotes, knob.as_ref())
        .into()
}

/// What gathers while an interrupt is held back.
struct Burst {
    usecs: u64,
    speed: u32,
    entries: u64,
}

fn long(
    case: &Case<'_>,
    interface: &Interface,
    burst: Burst,
    quotes: [&Quote; 3],
    knob: Option<&moderation::Knob>,
) -> Finding {
    let Burst { usecs, speed, entries } = burst;
    let (full, small) = (frames_in(usecs, speed, FULL), frames_in(usecs, speed, SMALL));
    let arithmetic = format!(
        "In {usecs} us at {speed} Mbit/s up to {full} full-size frames come, or {small} of the smallest; the ring holds \
         {entries}."
    );
    let lost = interface.totals.overflow.iter().find_map(|(name, counter)| {
        loss::of(case, name, counter, None).filter(|loss| loss.when == When::Now)
    });
    let finding = match &lost {
        Some(loss) => RULE
            .finding(
                Some(&interface.name),
                Severity::Warning,
                quotes,
                format!("{arithmetic} And frames are lost at the ring: {}.", loss.clause()),
            )
            .and([&loss.quote])
            .possible(),
        None if full > entries => {
            RULE.finding(Some(&interface.name), Severity::Warning, quotes, arithmetic).possible()
        }
        None => {
            let explanation =
                format!("{arithmetic} Only bursts of small frames at line rate would overflow it.");
            return RULE.finding(Some(&interface.name), Severity::Info, quotes, explanation);
        }
    };
    let default = knob.and_then(|knob| knob.default).filter(|&default| default > 0 && default < usecs);
    match default {
        Some(default) => finding.with(Remedy {
            os: "linux",
            what: "the driver's default moderation".to_owned(),
            commands: vec![format!("ethtool -C {} rx-usecs {default}", steering::name(interface))],
            expected: "The ring no longer fills between two interrupts, at the price of more of them."
                .to_owned(),
            modelled: None,
        }),
        None => finding,
    }
}

/// Bursts of all bge interfaces together against the IP input queue, which they share.
fn bge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if !interface.name.starts_with("bge") {
        return Judgement::DoesNotApply;
    }
    let (Some((level, level_line)), Some((depth, depth_line))) =
        (moderation::bge_level(case), moderation::input_queue(case))
    else {
        return Judgement::Lacks(vec!["sysctl hw.bge".to_owned(), "sysctl net.inet.ip.ifq".to_owned()]);
    };
    let Some(burst) = moderation::bge_burst(level) else { return Judgement::DoesNotApply };
    let interfaces = case.devices().filter(|device| device.name.starts_with("bge")).count() as u64;
    let together = burst.saturating_mul(interfaces);
    if together <= depth {
        return Judgement::Clear;
    }
    let drops = case.snapshot().sysctls.get("net.inet.ip.ifq.drops");
    let dropped = drops.and_then(|seen| seen.get().trim().parse::<u64>().ok()).filter(|&drops| drops > 0);
    let explanation = format!(
        "At interrupt mitigation level {level} bursts of {burst} frames reach the IP input queue, from {interfaces} \
         interfaces {together} at once; it holds {depth}{}.",
        dropped.map_or(String::new(), |drops| format!(" and has dropped {drops}"))
    );
    let finding = RULE
        .finding(Some(&interface.name), Severity::Warning, [level_line, depth_line], explanation)
        .and(drops.map(Observed::quote).filter(|_| dropped.is_some()))
        .with(Remedy {
            os: "netbsd",
            what: "an IP input queue for these bursts".to_owned(),
            commands: vec![format!(
                "sysctl -w net.inet.ip.ifq.maxlen={}",
                512_u64.saturating_mul(interfaces)
            )],
            expected: "Bursts of that length survive; the moderation stays as it is.".to_owned(),
            modelled: None,
        });
    if dropped.is_some() { finding } else { finding.possible() }.into()
}
