//! `moderation-off`: an interrupt for every frame.

use crate::moderation::{self, Knob};
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::{Case, ENOUGH_BETWEEN, loss, steering};
use host::{Basis, Delta, Interface, Quote, Shares, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "moderation-off",
    stage: "moderate",
    page: Page {
        title: "Interrupt moderation is off",
        means: "Without moderation the device interrupts the CPU for every frame. An interrupt costs as much as several \
                frames' worth of work, so small frames at high rates leave little time for anything else: 41,000 to \
                57,000 frames a second instead of 160,000 were measured on a small router.",
        shows: "`rx-usecs: 0` with adaptive moderation off (`ethtool -c`), and as many interrupts as frames a second. \
                What a number means differs by driver: igb and its relatives take 0 as off, 1 and 3 as adaptive modes. \
                An emulated card that prints only zeros tells nothing. NetBSD's bge has levels, `hw.bge.rx_lvl`, 0 \
                being the shortest.",
        fix: "The driver's default: `ethtool -C IFACE rx-usecs 3` for igb, igc and e1000e, 1 for ixgbe. NetBSD bge: a \
              higher level, with an IP input queue that holds the longer bursts.",
        costs: "A frame may wait for some microseconds until its interrupt comes, which benchmarks of latency notice.",
    },
    judge: Judge::Device(judge),
};

/// Interrupts a frame above which every frame has its own; a few share one even without moderation, since the
/// driver polls while it is busy.
const EACH: f64 = 0.8;
/// Frames a second below which each has its interrupt whatever the moderation.
const BUSY: f64 = 10_000.0;
/// Interrupts a second of a bge at level 0 above which a level would help.
const MANY: u64 = 10_000;

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    match case.system() {
        Some(System::NetBsd) => bge(case, interface),
        Some(System::FreeBsd) => Judgement::DoesNotApply,
        Some(System::Linux) | None => ethtool(case, interface),
    }
}

fn ethtool(case: &Case<'_>, interface: &Interface) -> Judgement {
    let Some(usecs) = interface.coalesce.get("rx-usecs") else {
        return moderation::unread(case, interface);
    };
    if *usecs.get() != 0 || interface.adaptive_rx.as_ref().is_some_and(|adaptive| *adaptive.get()) {
        return Judgement::Clear;
    }
    let knob = moderation::knob(case, interface);
    let rates = Rates::of(case, interface);
    let evidence: Vec<&Quote> = std::iter::once(usecs.quote())
        .chain(interface.adaptive_rx.as_ref().map(host::Observed::quote))
        .collect();
    match (rates, knob) {
        (Some(rates), knob) if rates.is_one_each() => {
            let finding = RULE
                .finding(Some(&interface.name), Severity::Warning, evidence, rates.sentence())
                .and(&rates.quotes);
            let finding = with_default(finding, interface, knob.as_ref());
            // What 0 means to a driver without a profile, or one for which it is the default, is not known.
            if knob.is_some_and(|knob| knob.zero_is_off) { finding } else { finding.possible() }.into()
        }
        (_, Some(knob)) if knob.default == Some(0) => Judgement::Clear,
        (rates, Some(knob)) if knob.zero_is_off => {
            let load = match rates {
                Some(_) => "At the rate of this sample that costs little",
                None => "What it costs depends on the load, which this text does not show",
            };
            let explanation =
                format!("rx-usecs 0 means an interrupt for every frame with this driver. {load}.");
            RULE.finding(Some(&interface.name), Severity::Info, evidence, explanation).into()
        }
        (Some(_), _) => Judgement::Clear,
        (None, _) => Judgement::Lacks(vec![
            "cat /proc/interrupts (twice)".to_owned(),
            format!("ethtool -S {} (twice)", steering::name(interface)),
        ]),
    }
}

fn with_default(finding: Finding, interface: &Interface, knob: Option<&Knob>) -> Finding {
    let Some(default) = knob.and_then(|knob| knob.default).filter(|&default| default > 0) else {
        return finding;
    };
    finding.with(Remedy {
        os: "linux",
        what: "the driver's default moderation".to_owned(),
        commands: vec![format!("ethtool -C {} rx-usecs {default}", steering::name(interface))],
        expected: "Fewer interrupts, by ten times and more under load, and the CPU time they took; some microseconds \
                   more latency. How much throughput that gives cannot be told from the text."
            .to_owned(), modelled: None,
})
}

/// Frames and interrupts a second between the samples.
struct Rates {
    frames: f64,
    interrupts: f64,
    quotes: Vec<Quote>,
}

impl Rates {
    fn of(case: &Case<'_>, interface: &Interface) -> Option<Rates> {
        let snapshot = case.snapshot();
        let seconds = snapshot.interval?.as_secs_f64();
        let (frames, mut quotes) = frames(case, interface)?;
        let device = snapshot.interface(&interface.name)?;
        let vectors = case.receive_interrupts(device);
        let counters: Vec<_> = vectors.iter().flat_map(|vector| vector.counts.values()).collect();
        let shares = Shares::of(counters, snapshot.interval)?;
        if !matches!(shares.basis, Basis::Between(_)) {
            return None;
        }
        quotes.extend(vectors.iter().map(|vector| vector.quote.clone()));
        Some(Rates { frames: frames as f64 / seconds, interrupts: shares.total() as f64 / seconds, quotes })
    }

    fn is_one_each(&self) -> bool {
        self.frames >= BUSY && self.interrupts >= self.frames * EACH
    }

    fn sentence(&self) -> String {
        format!(
            "{:.0} interrupts a second for {:.0} frames: about one a frame. Moderation is off (rx-usecs 0), and each \
             interrupt costs as much time as several frames.",
            self.interrupts, self.frames
        )
    }
}

/// Frames received between the samples, of the interface or of all its queues.
fn frames(case: &Case<'_>, interface: &Interface) -> Option<(u64, Vec<Quote>)> {
    if let Some(received) = loss::received(interface)
        && let Delta::Counted(frames) | Delta::Wrapped(frames) = received.delta()
    {
        return (frames >= ENOUGH_BETWEEN).then(|| (frames, vec![received.quote().clone()]));
    }
    let spread = case.spread(interface)?;
    let is_between = matches!(spread.shares.basis, Basis::Between(_)) && spread.is_enough();
    is_between.then(|| (spread.shares.total(), spread.quotes))
}

/// NetBSD's bge at its shortest moderation, under load.
fn bge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if !interface.name.starts_with("bge") {
        return Judgement::DoesNotApply;
    }
    let Some((level, quote)) = moderation::bge_level(case) else { return Judgement::lacks("sysctl hw.bge") };
    if level > 0 {
        return Judgement::Clear;
    }
    let Some((rate, line, is_named)) = busiest(case, interface) else { return Judgement::lacks("vmstat -i") };
    if rate < MANY {
        return Judgement::Clear;
    }
    let explanation = format!(
        "{rate} interrupts a second at interrupt mitigation level 0: an interrupt for nearly every frame. Each level about \
         halves them and doubles the burst that reaches the IP input queue."
    );
    let finding =
        RULE.finding(Some(&interface.name), Severity::Warning, [quote, line], explanation).with(Remedy {
            os: "netbsd",
            what: "interrupt mitigation level 4, with an IP input queue for the longer bursts".to_owned(),
            commands: moderation::bge_commands(case, 4),
            expected:
                "About a sixteenth of the receive interrupts. Bursts of 16 frames reach the IP input queue."
                    .to_owned(),
            modelled: None,
        });
    if is_named { finding } else { finding.possible() }.into()
}

/// The interface's busiest vector: rate, line, and whether the line names it. NetBSD prints where an interrupt
/// arrives (`ioapic0 pin 16`, `msi0 vec 0`), not which device it is from.
fn busiest<'a>(case: &Case<'a>, interface: &Interface) -> Option<(u64, &'a Quote, bool)> {
    let of = |is_one: &dyn Fn(&host::Interrupt) -> bool| {
        let vectors = case.snapshot().interrupts.iter().filter(|vector| is_one(vector));
        vectors.filter_map(|vector| rate(case, vector)).max_by_key(|(rate, _)| *rate)
    };
    if let Some((rate, line)) = of(&|vector| vector.interface.as_deref() == Some(&interface.name)) {
        return Some((rate, line, true));
    }
    let (rate, line) = of(&|vector| {
        vector.interface.is_none() && [" pin ", " vec "].iter().any(|place| vector.quote.text.contains(place))
    })?;
    Some((rate, line, false))
}

/// Interrupts a second, between the samples or since boot.
fn rate<'a>(case: &Case<'_>, vector: &'a host::Interrupt) -> Option<(u64, &'a Quote)> {
    let shares = Shares::of(vector.counts.values(), case.snapshot().interval)?;
    let between = shares.per_second(shares.total()).map(|rate| rate as u64);
    let rate = between.or_else(|| vector.rate.as_ref().map(|rate| rate.value))?;
    Some((rate, &vector.quote))
}
