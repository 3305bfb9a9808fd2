//! `pppoe-unhashed`: PPPoE comes in by a device whose hash stops at the PPPoE header.

use super::{netisr, one_flow, unhashed};
use crate::dealt::{self, Dealt};
use crate::heat::{self, Heat};
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain;
use crate::{Carries, Case, steering};
use host::{Counter, Interface, Kind, Quote, Shares, System};
use nic::schema;
use std::collections::BTreeMap;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "pppoe-unhashed",
    stage: "parse",
    page: Page {
        title: "The device cannot hash PPPoE, so that all of it comes in on one queue",
        means: "Receive-side scaling hashes IP addresses and ports to choose a queue. In a PPPoE session the IP header \
                stands 8 octets further on, behind the PPPoE and PPP headers, and most devices do not look there. Such \
                a frame matches no hash type, has hash 0 and goes to the default queue, in hardware, whatever the \
                driver. Neither the indirection table nor the hash fields change that.",
        shows: "PPPoE sessions or PPP interfaces on the device (`/proc/net/pppoe`, `ip -d link`, a capture with \
                EtherType 0x8864), a profile that says the parser stops at PPPoE (`rxlane nics NAME`), and one queue's \
                counter that grows while the others stand still.",
        fix: "Spread in software, by the inner header. Linux: RPS on that queue, with a mask of the other CPUs, or \
              steering in XDP (`rxlane steer`). FreeBSD: `net.isr.dispatch=deferred` at run time, with \
              `net.isr.maxthreads=\"-1\"` and `net.isr.bindthreads=\"1\"` in /boot/loader.conf. An EtherType filter \
              (`ethtool -N IFACE flow-type ether proto 0x8864 action N`) only moves all of it to another queue. Some \
              devices learn PPPoE by other firmware (`rxlane nics --can pppoe` lists which).",
        costs: "RPS pays for the socket buffer on the first CPU and for an interrupt to another. Deferred netisr queues \
                each packet. Where one CPU is fast enough for the line, both cost more than they bring.",
    },
    judge: Judge::Machine(judge),
};

/// Whether PPPoE comes in by the device and its profile says that it is not hashed.
pub(super) fn is_proven(case: &Case<'_>, interface: &Interface) -> bool {
    let is_some = |carries: &Carries| !unhashed::is_minor(carries);
    unhashed::is_hashed(case, interface, "pppoe") == Some(false)
        && case.carries_pppoe(interface).as_ref().is_some_and(is_some)
}

fn judge(case: &Case<'_>) -> Judgement {
    let mut found: Vec<Finding> = Vec::new();
    let mut lacks: Vec<String> = Vec::new();
    let mut is_clear = false;
    for interface in case.devices() {
        match device(case, interface) {
            Judgement::Found(more) => found.extend(more),
            Judgement::Lacks(more) => lacks.extend(more),
            Judgement::Clear => is_clear = true,
            Judgement::DoesNotApply => {}
        }
    }
    if found.is_empty() && lacks.is_empty() && !is_clear {
        found.extend(by_netisr(case));
    }
    if found.is_empty() && lacks.is_empty() && !is_clear {
        match unplaced(case) {
            Judgement::Found(more) => found.extend(more),
            Judgement::Lacks(more) => lacks.extend(more),
            Judgement::Clear | Judgement::DoesNotApply => {}
        }
    }
    match (found.is_empty(), lacks.is_empty(), is_clear) {
        (false, ..) => Judgement::Found(found),
        (_, false, _) => Judgement::Lacks(lacks),
        (.., true) => Judgement::Clear,
        _ => Judgement::DoesNotApply,
    }
}

fn device(case: &Case<'_>, interface: &Interface) -> Judgement {
    let Some(carries) = case.carries_pppoe(interface) else { return Judgement::DoesNotApply };
    if case.queue_count(interface) == Some(1) || is_single(case, interface) {
        return Judgement::DoesNotApply;
    }
    if unhashed::is_minor(&carries) {
        return Judgement::Clear;
    }
    match unhashed::is_hashed(case, interface, "pppoe") {
        Some(true) => Judgement::Clear,
        Some(false) => proven(case, interface, &carries).into(),
        None => match heat::of(case, interface) {
            Heat::Hot(hot) => {
                let explanation = format!(
                    "PPPoE comes in by {}, and queue {} takes {:.0} % of all frames. Whether {} can hash PPPoE is not \
                     known; most cannot.{}{}",
                    steering::name(interface),
                    hot.queue,
                    hot.share * 100.0,
                    unhashed::device(case, interface),
                    share(&carries),
                    undivided(case, interface, &carries)
                );
                let strained = strain::of(case, steering::cpu_of_queue(case, interface, hot.queue));
                let dealt = dealt::of(case, interface, hot.queue, CLASS);
                let severity = hot.severity(&strained);
                let severity = dealt.as_ref().map_or(severity, |dealt| dealt.severity(&strained, severity));
                let mut finding = RULE
                    .finding(Some(&interface.name), severity, &carries.quotes, explanation)
                    .and(&hot.quotes)
                    .possible();
                match dealt {
                    Some(dealt) => finding = dealt.into_finding(finding),
                    None => finding.remedies = remedies(case, interface, hot.queue, &carries),
                }
                finding.into()
            }
            _ => Judgement::Lacks(unhashed::who(case, interface)),
        },
    }
}

/// What steering calls these frames, whatever tags they have.
const CLASS: Option<&str> = Some("pppoe");

fn is_single(case: &Case<'_>, interface: &Interface) -> bool {
    case.agreed(interface, |profile| profile.text(schema::SELECTION).map(|word| word == "single"))
        == Some(true)
}

fn proven(case: &Case<'_>, interface: &Interface, carries: &Carries) -> Finding {
    let heat = heat::of(case, interface);
    let queue = heat.hot().map_or(0, |hot| hot.queue);
    let strained = strain::of(case, steering::cpu_of_queue(case, interface, queue));
    let dealt = dealt::of(case, interface, queue, CLASS).or_else(|| by_threads(case));
    let severity = heat.unhashed(&strained);
    let severity = dealt.as_ref().map_or(severity, |dealt| dealt.severity(&strained, severity));
    let seen = match &heat {
        Heat::Hot(hot) => format!(" Queue {} took {:.1} % of all frames.", hot.queue, hot.share * 100.0),
        Heat::Spread { .. } => {
            " The queue counters show other traffic besides, which does spread.".to_owned()
        }
        Heat::TooFew | Heat::Uncounted => String::new(),
    };
    let explanation = format!(
        "PPPoE comes in by {}, and {} cannot hash it: its parser stops at the PPPoE header, so that every frame of \
         every session goes to one queue and one CPU.{seen}{}{}{}",
        steering::name(interface),
        unhashed::device(case, interface),
        share(carries),
        strained.sentence,
        undivided(case, interface, carries)
    );
    let mut finding = RULE
        .finding(Some(&interface.name), severity, &carries.quotes, explanation)
        .and(&unhashed::identity(interface))
        .and(heat.hot().map_or(&[][..], |hot| &hot.quotes))
        .and(&strained.quote);
    finding.evidence.extend(unhashed::sampled(case, interface, "PPPoE", carries.share));
    match dealt {
        Some(dealt) => return dealt.into_finding(finding),
        None if strained.is_no_limit() => {}
        None => finding.remedies = remedies(case, interface, queue, carries),
    }
    finding
}

/// What the traffic sample says, with a blank before it.
fn share(carries: &Carries) -> String {
    match carries.share {
        Some(share) if share > 0.0 => {
            format!(" In the traffic sample {:.0} % of the frames are PPPoE.", share * 100.0)
        }
        Some(_) => {
            " The traffic sample holds no PPPoE: perhaps it was taken on another interface, or above PPPoE."
                .to_owned()
        }
        None => String::new(),
    }
}

/// Why nothing is offered, where the sample says so, with a blank before it.
fn undivided(case: &Case<'_>, interface: &Interface, carries: &Carries) -> &'static str {
    if unhashed::is_undivided(case, interface, carries) { one_flow::UNDIVIDED } else { "" }
}

/// FreeBSD's netisr, where it hands packets on to other CPUs.
fn by_threads(case: &Case<'_>) -> Option<Dealt> {
    let snapshot = case.snapshot();
    let (policy, quote) = netisr::dispatch(snapshot)?;
    let threads = netisr::threads(snapshot).map_or(1, |(threads, _)| threads);
    let is_bound = netisr::bound(snapshot).is_some_and(|(bound, _)| bound);
    (policy == "deferred" && threads > 1 && is_bound)
        .then(|| Dealt::on(format!(" netisr hands packets on to {threads} bound threads."), quote.clone()))
}

/// The machine's own system first. What the others have is the same for every machine, and people choose a system
/// for a router by it.
fn remedies(case: &Case<'_>, interface: &Interface, queue: u32, carries: &Carries) -> Vec<Remedy> {
    if unhashed::is_undivided(case, interface, carries) {
        return Vec::new();
    }
    let mut linux = on_linux(case, interface, queue, carries);
    let freebsd = steering::netisr(case);
    match case.system() {
        Some(System::FreeBsd) => {
            // Names of interfaces and numbers of queues are Linux's own.
            linux.iter_mut().for_each(|remedy| remedy.commands.clear());
            freebsd.into_iter().chain(linux).collect()
        }
        _ => linux.into_iter().chain(freebsd).collect(),
    }
}

fn on_linux(case: &Case<'_>, interface: &Interface, queue: u32, carries: &Carries) -> Vec<Remedy> {
    let mut rps = unhashed::rps(case, interface, queue, carries);
    if case.agreed(interface, |profile| profile.tri(schema::ETHERTYPE_FILTER)) == Some(true) {
        rps.what.push_str("; an EtherType filter for 0x8864 would only move all PPPoE to another queue");
    }
    let modes = unhashed::modes(case, interface, "pppoe").into_iter().map(|mode| Remedy {
        os: "linux",
        what: format!("or let the device hash PPPoE: {mode}"),
        commands: Vec::new(),
        expected: unhashed::expected(case, interface, carries),
        modelled: None,
    });
    [rps].into_iter().chain(unhashed::xdp(case, interface, queue, carries)).chain(modes).collect()
}

/// Processes that carry PPPoE, or may.
const CLIENTS: [&str; 7] = ["mpd5", "mpd", "ppp", "pppoed", "pppd", "pppoe", "rp-pppoe"];

/// PPPoE of which the text does not say by which device it comes in: where one device alone comes into question,
/// or on FreeBSD, whose remedy is the same for all.
fn unplaced(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let ppp = case.stacked().filter_map(|interface| {
        let kind = interface.kind.as_ref().filter(|kind| kind.value == Kind::Ppp)?;
        (case.physical(&interface.name) == interface.name).then_some(&kind.quote)
    });
    let clients = snapshot.processes.iter().filter(|process| CLIENTS.contains(&process.name.as_str()));
    let quotes: Vec<&Quote> = ppp.chain(clients.map(|process| &process.quote)).collect();
    if quotes.is_empty() {
        return Judgement::DoesNotApply;
    }
    let candidates: Vec<&Interface> = case
        .devices()
        .filter(|device| unhashed::is_hashed(case, device, "pppoe") == Some(false))
        .filter(|device| case.queue_count(device) != Some(1) && !is_single(case, device))
        .collect();
    let hot: Vec<&Interface> =
        candidates.iter().copied().filter(|device| heat::of(case, device).hot().is_some()).collect();
    let chosen = if hot.is_empty() { &candidates } else { &hot };
    let is_bsd = matches!(case.system(), Some(System::FreeBsd));
    let names: Vec<&str> = chosen.iter().map(|device| steering::name(device)).collect();
    let (interface, severity) = match &chosen[..] {
        [] => return Judgement::DoesNotApply,
        [only] => (Some(*only), Severity::Warning),
        _ if is_bsd => (None, Severity::Info),
        _ => return Judgement::lacks("cat /proc/net/pppoe"),
    };
    let explanation = format!(
        "This machine carries PPP, over PPPoE as it seems, though the text does not say by which device. {} cannot \
         hash PPPoE: what comes in by it goes to one queue and one CPU.",
        names.join(" or ")
    );
    let identities: Vec<Quote> = chosen.iter().flat_map(|device| unhashed::identity(device)).collect();
    let mut finding = RULE
        .finding(interface.map(|device| device.name.as_str()), severity, quotes, explanation)
        .and(&identities)
        .possible();
    if let Some(first) = chosen.first() {
        let queue = heat::of(case, first).hot().map_or(0, |hot| hot.queue);
        // Whether it carries PPPoE is not known, nor what a sample says of it.
        finding.remedies = remedies(case, first, queue, &Carries { quotes: Vec::new(), share: None });
    }
    finding.into()
}

/// Part of the PPPoE work within which the frames that no other protocol accounts for must lie to be it.
const CLOSE: f64 = 0.1;

/// Where FreeBSD's netisr counts PPPoE as a protocol of its own: the frames that each CPU took from Ethernet, less
/// those that went to another protocol there, are the PPPoE frames that the device delivered to it.
fn by_netisr(case: &Case<'_>) -> Option<Finding> {
    let snapshot = case.snapshot();
    let netisr = snapshot.netisr.as_ref()?;
    let protocol = netisr.protocols.get("pppoe")?;
    let handled = |wanted: &dyn Fn(&str) -> bool| -> Option<BTreeMap<u32, u64>> {
        let chosen: Vec<(u32, &Counter)> = netisr
            .workstreams
            .iter()
            .filter(|((_, name), _)| wanted(name))
            .map(|((cpu, _), work)| (*cpu, &work.handled))
            .collect();
        let shares = Shares::of(chosen.iter().map(|(_, counter)| *counter), snapshot.interval)?;
        let mut by_cpu = BTreeMap::new();
        for ((cpu, _), count) in chosen.iter().zip(shares.counts) {
            let sum = by_cpu.entry(*cpu).or_insert(0_u64);
            *sum = sum.saturating_add(count);
        }
        Some(by_cpu)
    };
    let ether = handled(&|name| name == "ether")?;
    let plain = handled(&|name| matches!(name, "ip" | "ip6" | "arp")).unwrap_or_default();
    let pppoe = handled(&|name| name == "pppoe")?;
    let total = pppoe.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let taken: BTreeMap<u32, u64> = ether
        .iter()
        .map(|(cpu, frames)| (*cpu, frames.saturating_sub(plain.get(cpu).copied().unwrap_or(0))))
        .collect();
    let (&cpu, &most) = taken.iter().max_by_key(|(_, frames)| **frames)?;
    let is_close = (most as f64 - total as f64).abs() <= CLOSE * total as f64;
    let is_one = most as f64 >= heat::HOT * taken.values().sum::<u64>() as f64;
    if total < crate::ENOUGH_BETWEEN || ether.len() < 2 || !is_close || !is_one {
        return None;
    }
    let busy = |(_, frames): &(&u32, &u64)| frames.saturating_mul(100) >= total;
    let workers: Vec<u32> = pppoe.iter().filter(busy).map(|(cpu, _)| *cpu).collect();
    let line = |cpu: u32, name: &str| {
        let work = netisr.workstreams.get(&(cpu, name.to_owned()))?;
        Some(work.handled.quote())
    };
    let explanation = format!(
        "CPU {cpu} took {most} frames from Ethernet that no other protocol accounts for, and {total} PPPoE packets \
         were worked off on CPU{} {} of {}: the device seems to deliver all PPPoE on one CPU, and software spreads \
         it from there. That it reaches no more CPUs may be a matter of few flows, or of the CPUs that it is \
         allowed.",
        if workers.len() == 1 { "" } else { "s" },
        steering::words(&workers),
        ether.len()
    );
    let quotes = line(cpu, "ether").into_iter().chain(workers.iter().filter_map(|cpu| line(*cpu, "pppoe")));
    Some(RULE.finding(None, Severity::Info, quotes, explanation).and([&protocol.quote]).possible())
}
