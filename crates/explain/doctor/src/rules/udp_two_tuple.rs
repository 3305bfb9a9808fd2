//! `udp-two-tuple`: UDP is hashed by addresses alone.

use crate::heat;
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain;
use crate::{Case, setup, steering};
use host::{Interface, Observed, System};
use nic::schema;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "udp-two-tuple",
    stage: "hash",
    page: Page {
        title: "UDP is hashed by addresses alone, so that all UDP between two addresses shares a queue",
        means: "Drivers hash TCP by addresses and ports, and many hash UDP by addresses only (`sd`), since fragments \
                carry no ports: hashed with ports, the fragments of a packet could go another way than whole packets \
                of the same flow. Between one pair of addresses (a tunnel, a game server, a measurement) all UDP then \
                lands on one queue, however many ports there are.",
        shows: "`ethtool -n IFACE rx-flow-hash udp4` lists IP SA and IP DA alone.",
        fix: "`ethtool -N IFACE rx-flow-hash udp4 sdfn`, and the same for udp6. It helps where UDP between few pairs of \
              addresses is the load, and changes nothing for TCP.",
        costs: "Fragmented UDP may arrive out of order within a flow that also sends whole packets.",
    },
    judge: Judge::Device(judge),
};

/// Flow types that the rule looks at.
const FLOWS: [&str; 2] = ["udp4", "udp6"];

/// Part of the sample's frames below which UDP is no load.
const MINOR: f64 = 0.1;

/// How much more even the queues must become for the setting to be worth it: the busiest one's share falls by a
/// tenth.
const GAIN: f64 = 0.9;

/// Whether the fields are addresses without ports.
fn is_pair(fields: &str) -> bool {
    !fields.is_empty() && !fields.contains(['f', 'n'])
}

/// Whether UDP over IPv4 is hashed by addresses alone; `None` where the text does not say.
pub(super) fn is_by_addresses(interface: &Interface) -> Option<bool> {
    interface.hash_fields.get("udp4").map(|fields| is_pair(fields.get()))
}

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let is_bsd = matches!(case.system(), Some(System::FreeBsd | System::NetBsd));
    let chooses = case.agreed(interface, |profile| {
        profile.text(schema::SELECTION).map(|word| matches!(word, "rss" | "hash"))
    });
    if is_bsd || case.queue_count(interface) == Some(1) || chooses == Some(false) {
        return Judgement::DoesNotApply;
    }
    let known: Vec<(&str, &Observed<String>)> =
        FLOWS.iter().filter_map(|flow| Some((*flow, interface.hash_fields.get(*flow)?))).collect();
    if known.is_empty() {
        return Judgement::lacks(format!("ethtool -n {} rx-flow-hash udp4", steering::name(interface)));
    }
    let pairs: Vec<(&str, &Observed<String>)> =
        known.iter().filter(|(_, fields)| is_pair(fields.get())).copied().collect();
    if pairs.is_empty() {
        return changed(interface, &known).map_or(Judgement::Clear, Judgement::from);
    }
    found(case, interface, &pairs)
}

/// The fields were addresses, and are ports, too, now: what the text shows of both.
fn changed(interface: &Interface, known: &[(&str, &Observed<String>)]) -> Option<Finding> {
    let (flow, fields, former) = known.iter().find_map(|(flow, fields)| {
        let former = fields.former().filter(|former| is_pair(&former.value))?;
        Some((flow, fields, former))
    })?;
    let explanation = format!(
        "{flow} was hashed by addresses alone (`{}`), so that all UDP between two addresses shared a queue, and is \
         hashed with ports now (`{}`). Nothing is left to do; counters from before the change still show the former \
         distribution.",
        former.value,
        fields.get()
    );
    Some(RULE.finding(Some(&interface.name), Severity::Info, [&former.quote, fields.quote()], explanation))
}

fn found(case: &Case<'_>, interface: &Interface, pairs: &[(&str, &Observed<String>)]) -> Judgement {
    let flows: Vec<&str> = pairs.iter().map(|(flow, _)| *flow).collect();
    let sample = sample(case, interface, &flows);
    if matches!(sample, Some(Sample::NoGain)) {
        return Judgement::Clear;
    }
    let heat = heat::of(case, interface);
    let hot = heat.hot();
    let strained = strain::of(case, hot.and_then(|hot| steering::cpu_of_queue(case, interface, hot.queue)));
    let (severity, is_possible) = match (&sample, hot) {
        (Some(Sample::Gain { .. }), Some(hot)) => (hot.severity(&strained), false),
        (Some(Sample::Gain { .. }), None) => (Severity::Warning, false),
        (_, Some(hot)) => (hot.severity(&strained).max(Severity::Warning), true),
        (_, None) => (Severity::Info, false),
    };
    let because = match hot {
        Some(hot) => format!(
            " Queue {} takes {:.0} % of the frames: if they are UDP between few pairs of addresses, this is why.{}",
            hot.queue,
            hot.share * 100.0,
            strained.sentence
        ),
        None => " That is the usual default; it matters only where UDP between few pairs of addresses is the load."
            .to_owned(),
    };
    let explanation = format!(
        "{} is hashed by addresses alone, without ports: all UDP between two addresses shares one queue.{because}",
        flows.join(" and ")
    );
    let mut finding = RULE
        .finding(Some(&interface.name), severity, pairs.iter().map(|(_, fields)| fields.quote()), explanation)
        .and(hot.map_or(&[][..], |hot| &hot.quotes))
        .and(hot.and(strained.quote.as_ref()));
    finding.remedies.extend(remedy(case, interface, &flows, sample));
    if is_possible { finding.possible().into() } else { finding.into() }
}

/// What the setting does for the traffic sample.
enum Sample {
    /// The busiest queue's share of the frames, before and after.
    Gain { before: f64, after: f64 },
    /// Nothing, or there is hardly any UDP.
    NoGain,
}

/// `None` without a sample, or where the device's profile does not tell where its frames land.
fn sample(case: &Case<'_>, interface: &Interface, flows: &[&str]) -> Option<Sample> {
    let udp = case.share_of(interface, |stack| stack.split('/').any(|word| word == "udp"))?;
    if udp < MINOR {
        return Some(Sample::NoGain);
    }
    let [profile] = case.profiles(interface)[..] else { return None };
    let mut changed = setup(interface, case);
    changed
        .fields
        .extend(flows.iter().filter_map(|flow| format!("{flow}=sdfn").parse::<rss::FlowHash>().ok()));
    let busiest = |mix: &explain::Report| {
        let all: u64 = mix.queues.iter().map(|row| row.frames).sum();
        let most = mix.queues.iter().map(|row| row.frames).max()?;
        (all > 0).then(|| most as f64 / all as f64)
    };
    let before = busiest(case.mix(interface)?)?;
    let after = busiest(&case.traffic()?.with(profile, &changed)?)?;
    Some(if after <= before * GAIN { Sample::Gain { before, after } } else { Sample::NoGain })
}

/// The setting, unless the driver refuses it.
fn remedy(case: &Case<'_>, interface: &Interface, flows: &[&str], sample: Option<Sample>) -> Option<Remedy> {
    let settable = case.agreed(interface, |profile| profile.words(schema::FIELDS_SETTABLE));
    let commands: Vec<String> = flows
        .iter()
        .filter(|flow| settable.is_none_or(|settable| settable.iter().any(|word| word == *flow)))
        .map(|flow| format!("ethtool -N {} rx-flow-hash {flow} sdfn", steering::name(interface)))
        .collect();
    if commands.is_empty() {
        return None;
    }
    let expected = match sample {
        Some(Sample::Gain { before, after }) => format!(
            "In the traffic sample the busiest queue's share of the frames falls from {:.0} % to {:.0} %.",
            before * 100.0,
            after * 100.0
        ),
        _ => "Cannot tell without a traffic sample (rxlane doctor --traffic CAPTURE): UDP flows between the same \
              addresses that differ in ports go to different queues; TCP, PPPoE and single flows stay as they are."
            .to_owned(),
    };
    Some(Remedy {
        os: "linux",
        what: "hash UDP by ports, too".to_owned(),
        commands,
        expected,
        modelled: None,
    })
}
