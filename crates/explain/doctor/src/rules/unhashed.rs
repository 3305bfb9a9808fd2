//! Frames that the device cannot hash: `pppoe-unhashed`, `qinq-unhashed`.

use super::{netisr, offloads, queues};
use crate::Case;
use crate::case::Carries;
use crate::device::Device;
use crate::distribution::{Distribution, NEARLY_ALL};
use crate::facts::{Carried, Effect, Fact, Forecast, Model};
use crate::finding::{Evidence, Finding, Remedy, Severity, found};
use crate::remedies;
use crate::rule::Judgement;
use crate::software::{Software, State};
use format::thousands;
use host::{Counter, Kind, Quote, System};
use nic::schema;
use nic::spread::{self, Traffic, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Part of the sample's frames below which such frames are no load.
const MINOR: f64 = 0.1;

/// Part of the PPPoE work within which the frames that no other protocol accounts for must lie to be it.
const CLOSE: f64 = 0.1;

/// 802.1ad, and two tags of 802.1Q.
const USUAL: [&str; 2] = ["88a8.8100", "8100.8100"];

/// Processes that carry PPPoE, or may.
const CLIENTS: [&str; 7] = ["mpd5", "mpd", "ppp", "pppoed", "pppd", "pppoe", "rp-pppoe"];

/// Whether the device hashes such traffic; `None` where no profile fits, one does not say, or two differ.
/// `traffic` is spelt as for `rxlane nics --can`.
fn is_hashed(device: &Device<'_>, traffic: &str) -> Option<bool> {
    let traffic: Traffic = traffic.parse().ok()?;
    device.case.agreed(device, |profile| match spread::judge(profile, &traffic) {
        Verdict::Yes(_) => Some(true),
        Verdict::No(_) => Some(false),
        Verdict::Unknown(_) => None,
    })
}

/// Frames that a device carries, with what is the same of both rules.
struct Unhashed<'d> {
    device: &'d Device<'d>,
    what: Carried,
    carries: Carries,
}

impl<'d> Unhashed<'d> {
    fn of(device: &'d Device<'d>, what: Carried) -> Option<Unhashed<'d>> {
        let carries = match what {
            Carried::Pppoe => device.case.carries_pppoe(device),
            Carried::Qinq => device.case.carries_qinq(device),
        };
        Some(Unhashed { device, what, carries: carries? })
    }

    /// Whether the sample holds none of the frames that the machine says to carry.
    fn is_elsewhere(&self) -> bool {
        self.carries.share == Some(0.0) && !self.carries.quotes.is_empty()
    }

    /// Whether the sample shows that few of the frames are such. A sample without any of what the machine says to carry
    /// was taken elsewhere, and shows nothing.
    fn is_minor(&self) -> bool {
        self.carries.share.is_some_and(|share| share < MINOR) && !self.is_elsewhere()
    }

    /// Whether such frames are one flow's, by a sample that holds them.
    fn is_one_flow(&self) -> bool {
        !self.is_elsewhere() && queues::is_one_flow(self.device)
    }

    /// The stacks that arrive, as `rxlane nics --can` spells them.
    fn stacks(&self) -> BTreeSet<String> {
        match self.what {
            Carried::Pppoe => BTreeSet::from(["pppoe".to_owned()]),
            Carried::Qinq => tag_stacks(self.device),
        }
    }

    /// Whether all stacks that arrive are hashed, or none is; `None` where the profile does not say, or they differ.
    fn is_hashed(&self) -> Option<bool> {
        let mut answers = self.stacks().into_iter().map(|stack| is_hashed(self.device, &stack));
        let first = answers.next()??;
        answers.all(|answer| answer == Some(first)).then_some(first)
    }

    /// Whether such frames are a load that the device's profile says it cannot hash.
    fn is_proven(&self) -> bool {
        !self.is_minor() && self.is_hashed() == Some(false)
    }

    /// A finding on the queue where such frames land.
    fn found(&self, fact: Fact, distribution: &Distribution, seen: Option<Fact>) -> Finding {
        let device = self.device;
        let busy = distribution.one_queue();
        let queue = busy.map_or(0, |busy| busy.queue);
        let load = device.load_of(queue);
        let is_pppoe = self.what == Carried::Pppoe;
        let software = device
            .software(queue, Some(if is_pppoe { "pppoe" } else { "qinq" }))
            .or_else(|| netisr_threads(device.case).filter(|_| is_pppoe));
        let severity = distribution.unhashed(&load);
        let severity = software.as_ref().map_or(severity, |software| software.severity(&load, severity));
        let in_sample = self.carries.share.map(|share| Fact::InSample { what: self.what, share });
        let mut finding = found(severity, fact)
            .says(seen)
            .says(in_sample)
            .quotes(&self.carries.quotes)
            .quotes(device.identity())
            .quotes(distribution.quotes())
            .load(&load)
            .says(self.is_one_flow().then_some(Fact::LoadIsOneFlow));
        finding.evidence.extend(self.sampled());
        match software {
            Some(software) => software.into_finding(finding),
            None if is_pppoe && load.is_no_limit() => finding,
            None => finding.fix(self.remedies(queue, severity)),
        }
    }

    /// The traffic sample as evidence that part of it is such.
    fn sampled(&self) -> Option<Evidence> {
        let share = self.carries.share.filter(|share| *share > 0.0)?;
        let mix = self.device.case.mix(self.device)?;
        let frames = thousands(mix.stacks.iter().map(|row| row.frames).sum());
        let what = if self.what == Carried::Pppoe { "PPPoE" } else { "two tags or more" };
        Some(Evidence {
            from: format!("traffic sample ({})", mix.source.files.join(", ")),
            text: format!("{what}: {:.0} % of {frames} frames", share * 100.0),
        })
    }

    /// What helps. The machine's own system first; what the others have is the same for every machine, and people
    /// choose a system for a router by it.
    fn remedies(&self, queue: u32, severity: Severity) -> Vec<Remedy> {
        let case = self.device.case;
        if self.is_one_flow() {
            return Vec::new();
        }
        if self.what == Carried::Qinq {
            let software = !case.is_bsd() && severity != Severity::Info;
            let software = if software { self.in_software(queue) } else { Vec::new() };
            return software.into_iter().chain(self.modes()).collect();
        }
        let gro = self.coalesced().into_iter();
        let mut linux: Vec<Remedy> = gro.chain(self.in_software(queue)).chain(self.modes()).collect();
        let freebsd = remedies::netisr(case);
        if case.system() == Some(System::FreeBsd) {
            // Names of interfaces and numbers of queues are Linux's own.
            linux.iter_mut().for_each(|remedy| remedy.commands.clear());
            freebsd.into_iter().chain(linux).collect()
        } else {
            linux.into_iter().chain(freebsd).collect()
        }
    }

    /// GRO, where the kernel coalesces PPPoE and it is off: it takes work away that the others only move.
    fn coalesced(&self) -> Option<Remedy> {
        let (gro, _) = self.device.case.feature(self.device, "generic-receive-offload")?;
        let (kernel, _) = self.device.case.pppoe_gro()?;
        (kernel.coalesces && !gro.on && !gro.fixed).then(|| offloads::gro_on(self.device, true))
    }

    /// RPS and steering in XDP. A sample that was taken elsewhere does not say what they would bring.
    fn in_software(&self, queue: u32) -> Vec<Remedy> {
        let device = self.device;
        let mut rps = device.rps(&[queue]);
        if let Effect::Rps { filter, .. } = &mut rps.effect {
            *filter = self.what == Carried::Pppoe
                && device.case.agreed(device, |profile| profile.tri(schema::ETHERTYPE_FILTER)) == Some(true);
        }
        if self.is_elsewhere() {
            rps = Remedy { forecast: Some(Forecast::OtherSample), model: None, ..rps };
            return [rps].into_iter().chain(device.steer()).collect();
        }
        let is_coalesced = self.what == Carried::Pppoe && device.case.coalesces_pppoe(device);
        let steer = device.steer_queue(queue).filter(|steer| !is_coalesced || is_better(steer, &rps));
        [rps].into_iter().chain(steer).collect()
    }

    /// Modes of the device in which it would hash them, and that an unmodified driver can be set to use.
    fn modes(&self) -> Vec<Remedy> {
        let [profile] = &self.device.case.profiles(self.device)[..] else { return Vec::new() };
        let forecast = if self.is_elsewhere() { Forecast::OtherSample } else { self.device.forecast(None) };
        let of_stack = |stack: String| {
            let modes = stack.parse::<Traffic>().map(|traffic| spread::answer(profile, &traffic).modes);
            let modes = modes.unwrap_or_default().into_iter().filter(|mode| mode.available == Some(true));
            let remedies = modes.map(move |mode| {
                let stack = (self.what == Carried::Qinq).then(|| stack.clone());
                let effect =
                    Effect::DeviceMode { title: mode.title.clone(), enable: mode.enable.clone(), stack };
                Remedy { forecast: Some(forecast), ..Remedy::linux(effect, [""; 0]) }
            });
            remedies.collect::<Vec<_>>()
        };
        self.stacks().into_iter().flat_map(of_stack).collect()
    }
}

/// How much more a remedy has to bring than another to be offered along with it: less is a tie.
const BETTER: f64 = 1.3;

/// Whether the model expects clearly more of a remedy than of another.
fn is_better(remedy: &Remedy, other: &Remedy) -> bool {
    let times = |remedy: &Remedy| match &remedy.model {
        Some(Model::Expected(modelled)) => Some(modelled.times),
        _ => None,
    };
    matches!((times(remedy), times(other)), (Some(times), Some(other)) if times >= BETTER * other)
}

/// The stacks of tags that arrive, as far as VLAN devices say; both usual ones where they do not.
fn tag_stacks(device: &Device<'_>) -> BTreeSet<String> {
    let (case, snapshot) = (device.case, device.case.snapshot());
    let tag = |name: &str| match snapshot.interface(name)?.kind.as_ref()?.value {
        Kind::Vlan { tpid, .. } => Some(tpid),
        _ => None,
    };
    let mut stacks = BTreeSet::new();
    for inner in snapshot.interfaces.iter().filter(|inner| case.physical(&inner.name) == device.name) {
        let Some(parent) = inner.parent.as_ref() else { continue };
        match (tag(&parent.value), tag(&inner.name)) {
            (Some(Some(outer)), Some(Some(inner))) => {
                stacks.insert(format!("{outer:x}.{inner:x}"));
            }
            (Some(_), Some(_)) => stacks.extend(USUAL.map(str::to_owned)),
            _ => {}
        }
    }
    if stacks.is_empty() { USUAL.map(str::to_owned).into() } else { stacks }
}

/// The frames that the device carries and its profile says that it cannot hash.
pub(super) fn proven(device: &Device<'_>, what: Carried) -> Option<Carries> {
    Unhashed::of(device, what).filter(Unhashed::is_proven).map(|unhashed| unhashed.carries)
}

/// Whether the sample holds none of the encapsulation that the machine says to carry.
pub(super) fn is_sampled_elsewhere(device: &Device<'_>) -> bool {
    let carried = [Carried::Pppoe, Carried::Qinq].map(|what| Unhashed::of(device, what));
    carried.iter().flatten().any(Unhashed::is_elsewhere)
}

/// Commands that show which device it is.
fn who(device: &Device<'_>) -> Vec<String> {
    let linux = vec![format!("ethtool -i {}", device.word()), "lspci -nn".to_owned()];
    device.case.by_system(linux, vec!["pciconf -lv".to_owned()], vec!["dmesg".to_owned()])
}

/// `qinq-unhashed`: stacked VLAN tags arrive on a device whose parser stops before the IP header behind them.
pub(super) fn qinq(device: &Device<'_>) -> Judgement {
    let Some(qinq) = Unhashed::of(device, Carried::Qinq) else { return Judgement::DoesNotApply };
    if device.case.queue_count(device) == Some(1) {
        return Judgement::DoesNotApply;
    }
    if qinq.is_minor() {
        return Judgement::Clear;
    }
    let distribution = device.distribution();
    let seen = distribution.one_queue().map(|busy| busy.took());
    let title = device.title();
    match (qinq.is_hashed(), &distribution) {
        (Some(true), _) => Judgement::Clear,
        (Some(false), _) => qinq.found(Fact::QinqUnhashed { device: title }, &distribution, seen).into(),
        (None, Distribution::OneQueue(_)) => {
            qinq.found(Fact::QinqUnknown { device: title }, &distribution, seen).possible_if(true).into()
        }
        // A device that spreads such frames needs no profile to say so.
        (None, Distribution::Spread { .. }) => Judgement::Clear,
        (None, _) => Judgement::Lacks(who(device)),
    }
}

/// `pppoe-unhashed`: PPPoE arrives on a device whose hash stops at the PPPoE header.
pub(super) fn pppoe(case: &Case<'_>) -> Judgement {
    let (mut findings, mut lacks, mut is_clear) = (Vec::new(), Vec::new(), false);
    for device in case.devices() {
        match pppoe_of(&device) {
            Judgement::Found(more) => {
                findings.extend(more.into_iter().map(|finding| finding.about(&device.name)));
            }
            Judgement::Lacks(more) => lacks.extend(more),
            Judgement::Clear => is_clear = true,
            Judgement::DoesNotApply => {}
        }
    }
    if !findings.is_empty() || !lacks.is_empty() || is_clear {
        return Judgement::of(findings, lacks);
    }
    by_netisr(case).map_or_else(|| unplaced(case), Judgement::from)
}

fn pppoe_of(device: &Device<'_>) -> Judgement {
    let Some(pppoe) = Unhashed::of(device, Carried::Pppoe) else { return Judgement::DoesNotApply };
    if !has_queues(device) {
        return Judgement::DoesNotApply;
    }
    let distribution = device.distribution();
    match pppoe.is_hashed() {
        _ if pppoe.is_minor() => Judgement::Clear,
        Some(true) => Judgement::Clear,
        Some(false) => {
            let seen = match &distribution {
                Distribution::OneQueue(busy) => Some(busy.took()),
                Distribution::Spread { .. } => Some(Fact::OthersSpread),
                Distribution::TooFew | Distribution::Uncounted => None,
            };
            pppoe.found(Fact::PppoeUnhashed { device: device.title() }, &distribution, seen).into()
        }
        None => match distribution.one_queue() {
            Some(busy) => {
                let fact = Fact::PppoeUnknown { queue: busy.queue, share: busy.share };
                let unknown = Fact::PppoeDeviceUnknown { device: device.title() };
                pppoe.found(fact, &distribution, Some(unknown)).possible_if(true).into()
            }
            None => Judgement::Lacks(who(device)),
        },
    }
}

/// Whether the device has several queues, or may.
fn has_queues(device: &Device<'_>) -> bool {
    let selection = |profile: &nic::Profile| profile.text(schema::SELECTION).map(|word| word == "single");
    device.case.queue_count(device) != Some(1) && device.case.agreed(device, selection) != Some(true)
}

/// FreeBSD's netisr, where it hands packets on to other CPUs.
fn netisr_threads(case: &Case<'_>) -> Option<Software> {
    let snapshot = case.snapshot();
    let (policy, quote) = netisr::dispatch(snapshot)?;
    let threads = netisr::threads(snapshot).map_or(1, |(threads, _)| threads);
    let is_bound = netisr::bound(snapshot).is_some_and(|(bound, _)| bound);
    (policy == "deferred" && threads > 1 && is_bound)
        .then(|| Software::new(State::Spreads, Fact::NetisrSpreads { threads }, [quote]))
}

/// PPPoE of which the text does not say on which device it arrives: where one device alone comes into question,
/// or on FreeBSD, whose remedy is the same for all.
fn unplaced(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let ppp = case.stacked().filter_map(|interface| {
        let kind = interface.kind.as_ref().filter(|kind| kind.value == Kind::Ppp)?;
        (case.physical(&interface.name) == interface.name).then_some(&kind.quote)
    });
    let clients = snapshot.processes.iter().filter(|process| CLIENTS.contains(&process.name.as_str()));
    let quotes: Vec<&Quote> = ppp.chain(clients.map(|process| &process.quote)).chain(by_name(case)).collect();
    if quotes.is_empty() {
        return Judgement::DoesNotApply;
    }
    let is_candidate = |device: &Device<'_>| is_hashed(device, "pppoe") == Some(false) && has_queues(device);
    let mut devices: Vec<Device<'_>> = case.devices().filter(is_candidate).collect();
    let is_busy = |device: &Device<'_>| device.distribution().one_queue().is_some();
    if devices.iter().any(is_busy) {
        devices.retain(is_busy);
    }
    let severity = match devices.len() {
        0 => return lacks_device(case),
        1 => Severity::Warning,
        _ if case.system() == Some(System::FreeBsd) => Severity::Info,
        _ => return Judgement::lacks("cat /proc/net/pppoe"),
    };
    let names = devices.iter().map(|device| device.name.clone()).collect();
    let mut finding = found(severity, Fact::PppoeSomewhere { devices: names })
        .quotes(quotes)
        .quotes(devices.iter().filter_map(Device::identity))
        .possible_if(true);
    if let [only] = &devices[..] {
        finding = finding.about(&only.name);
    }
    if let Some(device) = devices.first() {
        let queue = device.distribution().one_queue().map_or(0, |busy| busy.queue);
        // Whether it carries PPPoE is not known, nor what a sample says of it.
        let carries = Carries { quotes: Vec::new(), share: None };
        finding = finding.fix(Unhashed { device, what: Carried::Pppoe, carries }.remedies(queue, severity));
    }
    finding.into()
}

/// Rules and interfaces whose names are those that pppd and OpenWrt give PPP interfaces (`ppp0`, `pppoe-wan`).
fn by_name<'c>(case: &Case<'c>) -> impl Iterator<Item = &'c Quote> {
    let is_ppp = |name: &str| {
        let unit = name.strip_prefix("pppoe-").map(|_| true);
        unit.or_else(|| Some(name.strip_prefix("ppp")?.parse::<u32>().is_ok())) == Some(true)
    };
    let snapshot = case.snapshot();
    let routed = snapshot.netfilter.routed.iter().filter(move |(name, _)| is_ppp(name));
    let open = snapshot.interfaces.iter().filter(move |one| one.kind.is_none() && is_ppp(&one.name));
    routed.map(|(_, quote)| quote).chain(open.map(|one| &one.seen))
}

/// What would show on which device PPPoE arrives, and whether that hashes it: nothing where the text has all of that.
fn lacks_device(case: &Case<'_>) -> Judgement {
    if case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let is_open = |device: &Device<'_>| has_queues(device) && is_hashed(device, "pppoe").is_none();
    if let Some(device) = case.devices().find(is_open) {
        return Judgement::Lacks(who(&device));
    }
    if case.devices().next().is_some() {
        return Judgement::DoesNotApply;
    }
    // pppd's plugin names the interface, `nic-eth0.2`.
    let nic = case.snapshot().processes.iter().find_map(|process| {
        let word = process.quote.text.split_whitespace().find_map(|word| word.strip_prefix("nic-"))?;
        let name = word.split('.').next()?;
        (!name.is_empty()).then(|| format::quoted(name))
    });
    let session = nic.is_none().then(|| "cat /proc/net/pppoe".to_owned());
    let name = nic.unwrap_or_else(|| "IFACE".to_owned());
    let linux = session.into_iter().chain(["-i", "-S"].map(|option| format!("ethtool {option} {name}")));
    let bsd = |first: &str| vec![first.to_owned(), "vmstat -i".to_owned()];
    Judgement::Lacks(case.by_system(linux.collect(), bsd("pciconf -lv"), bsd("dmesg")))
}

/// Where FreeBSD's netisr counts PPPoE as a protocol of its own: the frames that each CPU took from Ethernet, less
/// those that went to another protocol there, are the PPPoE frames that the device delivered to it.
fn by_netisr(case: &Case<'_>) -> Option<Finding> {
    let netisr = case.snapshot().netisr.as_ref()?;
    let protocol = netisr.protocols.get("pppoe")?;
    let handled = |protocols: &[&str]| -> Option<BTreeMap<u32, u64>> {
        let streams = netisr.workstreams.iter();
        let chosen: Vec<(u32, &Counter)> = streams
            .filter(|((_, name), _)| protocols.contains(&name.as_str()))
            .map(|((cpu, _), work)| (*cpu, &work.handled))
            .collect();
        let shares = case.shares(chosen.iter().map(|(_, counter)| *counter))?;
        let mut by_cpu = BTreeMap::new();
        for ((cpu, _), count) in chosen.iter().zip(shares.counts) {
            let sum = by_cpu.entry(*cpu).or_insert(0_u64);
            *sum = sum.saturating_add(count);
        }
        Some(by_cpu)
    };
    let ether = handled(&["ether"])?;
    let plain = handled(&["ip", "ip6", "arp"]).unwrap_or_default();
    let pppoe = handled(&["pppoe"])?;
    let packets = pppoe.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let rest = |cpu: &u32, frames: &u64| frames.saturating_sub(plain.get(cpu).copied().unwrap_or(0));
    let taken: BTreeMap<u32, u64> = ether.iter().map(|(cpu, frames)| (*cpu, rest(cpu, frames))).collect();
    let (&cpu, &frames) = taken.iter().max_by_key(|(_, frames)| **frames)?;
    let is_close = (frames as f64 - packets as f64).abs() <= CLOSE * packets as f64;
    let is_one = frames as f64 >= NEARLY_ALL * taken.values().sum::<u64>() as f64;
    if packets < crate::ENOUGH_BETWEEN || ether.len() < 2 || !is_close || !is_one {
        return None;
    }
    let busy = |(_, frames): &(&u32, &u64)| frames.saturating_mul(100) >= packets;
    let workers: Vec<u32> = pppoe.iter().filter(busy).map(|(cpu, _)| *cpu).collect();
    let line = |cpu: u32, name: &str| {
        netisr.workstreams.get(&(cpu, name.to_owned())).map(|work| work.handled.quote())
    };
    let quotes: Vec<&Quote> =
        line(cpu, "ether").into_iter().chain(workers.iter().filter_map(|cpu| line(*cpu, "pppoe"))).collect();
    let fact = Fact::PppoeOnOneCpu { cpu, frames, packets, workers, of: ether.len() };
    Some(found(Severity::Info, fact).quotes(quotes).quotes([&protocol.quote]).possible_if(true))
}
