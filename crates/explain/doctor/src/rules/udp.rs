//! `udp-two-tuple`: UDP is hashed by addresses alone.

use crate::device::Device;
use crate::facts::{Effect, Fact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::load;
use crate::rule::Judgement;
use crate::setup;
use host::Observed;
use nic::schema;

const FLOWS: [&str; 2] = ["udp4", "udp6"];

/// Part of the sample's frames below which UDP is no load.
const MINOR: f64 = 0.1;

/// How much more even the queues must become for the setting to be worth it: the busiest one's share falls by a
/// tenth.
const GAIN: f64 = 0.9;

/// A flow type with the fields that are hashed.
type Fields<'d> = (&'d str, &'d Observed<String>);

/// Whether the fields are addresses without ports.
fn is_pair(fields: &str) -> bool {
    !fields.is_empty() && !fields.contains(['f', 'n'])
}

/// Whether UDP over IPv4 is hashed by addresses alone; `None` where the text does not say.
pub(super) fn is_by_addresses(device: &Device<'_>) -> Option<bool> {
    device.hash_fields.get("udp4").map(|fields| is_pair(fields.get()))
}

pub(super) fn two_tuple(device: &Device<'_>) -> Judgement {
    let selection =
        |profile: &nic::Profile| profile.text(schema::SELECTION).map(|word| matches!(word, "rss" | "hash"));
    let chooses = device.case.agreed(device, selection);
    if device.case.queue_count(device) == Some(1) || chooses == Some(false) {
        return Judgement::DoesNotApply;
    }
    let fields = |flow: &&'static str| Some((*flow, device.interface.hash_fields.get(*flow)?));
    let known: Vec<Fields<'_>> = FLOWS.iter().filter_map(fields).collect();
    if known.is_empty() {
        return Judgement::lacks(format!("ethtool -n {} rx-flow-hash udp4", device.word()));
    }
    let pairs: Vec<Fields<'_>> = known.iter().filter(|(_, fields)| is_pair(fields.get())).copied().collect();
    match pairs.is_empty() {
        true => changed(&known).map_or(Judgement::Clear, Judgement::from),
        false => by_addresses(device, &pairs),
    }
}

/// The fields were addresses, and are ports, too, now: what the text shows of both.
fn changed(known: &[Fields<'_>]) -> Option<Finding> {
    let (flow, fields, former) = known.iter().find_map(|(flow, fields)| {
        let former = fields.former().filter(|former| is_pair(&former.value))?;
        Some((flow, fields, former))
    })?;
    let fact = Fact::UdpChanged {
        flow: (*flow).to_owned(),
        former: former.value.clone(),
        now: fields.get().clone(),
    };
    Some(found(Severity::Info, fact).quotes([&former.quote, fields.quote()]))
}

fn by_addresses(device: &Device<'_>, pairs: &[Fields<'_>]) -> Judgement {
    let flows: Vec<&str> = pairs.iter().map(|(flow, _)| *flow).collect();
    let sample = sample(device, &flows);
    if matches!(sample, Some(Sample::NoGain)) {
        return Judgement::Clear;
    }
    let distribution = device.distribution();
    let busy = distribution.one_queue();
    let load = busy.map_or_else(|| load::of(device.case, None), |busy| device.load_of(busy.queue));
    let (severity, is_possible) = match (&sample, busy) {
        (Some(Sample::Gain(..)), Some(busy)) => (busy.severity(&load), false),
        (Some(Sample::Gain(..)), None) => (Severity::Warning, false),
        (_, Some(busy)) => (busy.severity(&load).max(Severity::Warning), true),
        (_, None) => (Severity::Info, false),
    };
    let because = busy.map_or(Fact::UdpUsual, |busy| Fact::UdpMayBe { queue: busy.queue, share: busy.share });
    found(severity, Fact::UdpByAddresses { flows: flows.iter().map(|&flow| flow.to_owned()).collect() })
        .says([because])
        .quotes(pairs.iter().map(|(_, fields)| fields.quote()))
        .quotes(distribution.quotes())
        .load(&load)
        .fix(hash_ports(device, &flows, sample))
        .possible_if(is_possible)
        .into()
}

/// What the setting does for the traffic sample.
enum Sample {
    /// The busiest queue's share of the frames, before and after.
    Gain(f64, f64),
    /// Nothing, or there is hardly any UDP.
    NoGain,
}

/// `None` without a sample, or where the device's profile does not say where its frames land.
fn sample(device: &Device<'_>, flows: &[&str]) -> Option<Sample> {
    let case = device.case;
    let udp = case.share_of(device, |stack| stack.split('/').any(|word| word == "udp"))?;
    if udp < MINOR {
        return Some(Sample::NoGain);
    }
    let [profile] = case.profiles(device)[..] else { return None };
    let mut changed = setup(device, case);
    let fields = flows.iter().filter_map(|flow| format!("{flow}=sdfn").parse::<rss::FlowHash>().ok());
    changed.fields.extend(fields);
    let busiest = |mix: &explain::Report| {
        let all: u64 = mix.queues.iter().map(|row| row.frames).sum();
        let most = mix.queues.iter().map(|row| row.frames).max()?;
        (all > 0).then(|| most as f64 / all as f64)
    };
    let before = busiest(case.mix(device)?)?;
    let after = busiest(&case.traffic()?.with(profile, &changed)?)?;
    Some(if after <= before * GAIN { Sample::Gain(before, after) } else { Sample::NoGain })
}

/// The setting, unless the driver refuses it.
fn hash_ports(device: &Device<'_>, flows: &[&str], sample: Option<Sample>) -> Option<Remedy> {
    let settable = device.case.agreed(device, |profile| profile.words(schema::FIELDS_SETTABLE));
    let is_settable = |flow: &&&str| settable.is_none_or(|words| words.iter().any(|word| word == **flow));
    let command = |flow: &&str| format!("ethtool -N {} rx-flow-hash {flow} sdfn", device.word());
    let commands: Vec<String> = flows.iter().filter(is_settable).map(command).collect();
    let sample = match sample {
        Some(Sample::Gain(before, after)) => Some((before, after)),
        _ => None,
    };
    (!commands.is_empty()).then(|| Remedy::linux(Effect::HashPorts { sample }, commands))
}
