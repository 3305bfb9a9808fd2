//! Spreading in software where the device cannot: which CPUs take the work, the commands for it, and what it
//! would bring.

use crate::Case;
use crate::modelled::{self, By};
use crate::report::Remedy;
use crate::rules::netisr;
use host::{Interface, Interrupt, Shares, Xdp};
use kernel::cpu::CpuSet;
use nic::schema;
use std::collections::BTreeSet;

/// Part of a vector's interrupts that one CPU must have served to be the CPU of the vector.
pub(crate) const SERVES: f64 = 0.8;

/// CPUs by number, as far as the snapshot names or counts them, in ascending order; empty where it does not.
pub(crate) fn online(case: &Case<'_>) -> Vec<u32> {
    let cpus = &case.snapshot().cpus;
    let numbered: BTreeSet<u32> = cpus.nodes.values().flatten().copied().collect();
    if !numbered.is_empty() {
        return numbered.into_iter().collect();
    }
    (0..case.snapshot().cpu_count().unwrap_or(0)).collect()
}

/// The CPU that serves a vector: the one that took nearly all of its interrupts, else the only one that its
/// affinity allows.
pub(crate) fn cpu_of(case: &Case<'_>, interrupt: &Interrupt) -> Option<u32> {
    let by_counts = Shares::of(interrupt.counts.values(), case.snapshot().interval)
        .and_then(|shares| shares.largest())
        .filter(|(_, share)| *share >= SERVES)
        .and_then(|(place, _)| *interrupt.counts.keys().nth(place)?);
    by_counts.or_else(|| match interrupt.affinity.as_ref()?.get()[..] {
        [cpu] => Some(cpu),
        _ => None,
    })
}

/// The vector of a receive queue: the one whose name says so, or the only one of the device.
pub(crate) fn vector_of<'a>(case: &Case<'a>, interface: &Interface, queue: u32) -> Option<&'a Interrupt> {
    let vectors = case.receive_interrupts(interface);
    let named = vectors.iter().copied().find(|vector| vector.queue == Some(queue));
    named.or(match vectors[..] {
        [only] if only.queue.is_none() => Some(only),
        _ => None,
    })
}

/// The CPU that serves a receive queue.
pub(crate) fn cpu_of_queue(case: &Case<'_>, interface: &Interface, queue: u32) -> Option<u32> {
    cpu_of(case, vector_of(case, interface, queue)?)
}

/// CPUs to which the work of a queue can go: all but the one that serves it; those of its NUMA node where there
/// are any. Empty where the CPUs are not known or there is one.
pub(crate) fn others(case: &Case<'_>, serving: Option<u32>) -> Vec<u32> {
    let free =
        |cpus: &[u32]| -> Vec<u32> { cpus.iter().copied().filter(|cpu| Some(*cpu) != serving).collect() };
    let all = online(case);
    let node = serving.and_then(|serving| {
        case.snapshot().cpus.nodes.values().find(|node| node.contains(&serving)).map(|node| free(node))
    });
    let mut cpus = node.filter(|node| !node.is_empty()).unwrap_or_else(|| free(&all));
    cpus.sort_unstable();
    if all.len() < 2 { Vec::new() } else { cpus }
}

/// A CPU mask as `rps_cpus` takes it.
fn mask(cpus: &[u32]) -> Option<String> {
    CpuSet::new(cpus.iter().copied()).ok().map(|set| set.mask())
}

/// CPU numbers for a sentence: `1-3, 5`.
pub(crate) fn words(cpus: &[u32]) -> String {
    CpuSet::new(cpus.iter().copied()).map(|set| set.list().replace(',', ", ")).unwrap_or_default()
}

/// The interface's name in a command, `IFACE` where the text names none.
pub(crate) fn name(interface: &Interface) -> &str {
    if interface.name.is_empty() { "IFACE" } else { &interface.name }
}

/// RPS over the CPUs that do not serve these queues, for Linux.
pub(crate) fn rps(case: &Case<'_>, interface: &Interface, queues: &[u32]) -> Remedy {
    let queues = rps_queues(interface, queues);
    let file = |queue: u32| format!("/sys/class/net/{}/queues/rx-{queue}/rps_cpus", name(interface));
    let mut targets: BTreeSet<u32> = BTreeSet::new();
    let commands: Vec<String> = queues
        .iter()
        .filter_map(|&(queue, taken_by)| {
            let cpus = others(case, cpu_of_queue(case, interface, taken_by));
            targets.extend(&cpus);
            let mask = mask(&cpus).filter(|_| !cpus.is_empty())?;
            Some(format!("echo {mask} > {}", file(queue)))
        })
        .collect();
    let targets: Vec<u32> = targets.into_iter().collect();
    let what = match queues.first() {
        Some(&(queue, _)) if targets.is_empty() => format!(
            "RPS: hash the inner header in software and deal flows to the other CPUs; the mask of CPUs goes into {}",
            file(queue)
        ),
        _ => format!(
            "RPS: hash the inner header in software and deal flows to CPU{} {}",
            if targets.len() == 1 { "" } else { "s" },
            words(&targets)
        ),
    };
    let dealt_to = u16::try_from(targets.len()).ok().filter(|&cpus| cpus > 0);
    let expected = expected_over(case, interface, dealt_to);
    let remedy = Remedy { os: "linux", what, commands, expected, modelled: None };
    let taken_by = queues.first().map_or(0, |(_, taken_by)| *taken_by);
    if queues.len() == 1 { modelled::with(remedy, case, interface, taken_by, By::Rps) } else { remedy }
}

/// The queues whose RPS mask decides about frames of these, each with one that takes the frames. tg3 does not note
/// in a frame which queue it came by, so that the first queue's mask holds for all (`tg3_rx()` in
/// drivers/net/ethernet/broadcom/tg3.c, `get_rps_cpu()` in net/core/dev.c); its vectors number the receive rings
/// from 1.
fn rps_queues(interface: &Interface, queues: &[u32]) -> Vec<(u32, u32)> {
    match queues.first() {
        Some(&queue) if interface.driver.as_ref().is_some_and(|driver| driver.value == "tg3") => {
            vec![(0, queue)]
        }
        _ => queues.iter().map(|&queue| (queue, queue)).collect(),
    }
}

/// Steering in XDP, by this program. `None` where the driver does not run XDP programs: in generic mode the socket buffer is
/// made before the program runs, which takes the gain away.
pub(crate) fn xdp(case: &Case<'_>, interface: &Interface) -> Option<Remedy> {
    if interface.steering.as_ref().is_some_and(|steering| *steering.mode.get() != Xdp::Off) {
        return None;
    }
    let native = match case.agreed(interface, |profile| profile.tri(schema::XDP_NATIVE)) {
        Some(true) => " The driver runs XDP programs itself.",
        Some(false) => return None,
        None => "",
    };
    Some(Remedy {
        os: "linux",
        what: format!(
            "or steer by the inner header in XDP, before the socket buffer is made: the CPU that takes the interrupt \
             then does less than with RPS.{native} The first command says what it would bring here, and changes nothing"
        ),
        commands: ["check", "up"].map(|action| format!("rxlane steer {action} {}", name(interface))).into(),
        expected: format!(
            "Flows are dealt to CPUs as with RPS; what differs is that the first CPU does less for each frame. \
             `rxlane steer down {}` takes it back.",
            name(interface)
        ),
        modelled: None,
    })
}

/// The same with what the model expects where it deals the frames of this queue.
pub(crate) fn xdp_of(case: &Case<'_>, interface: &Interface, queue: u32) -> Option<Remedy> {
    Some(modelled::with(xdp(case, interface)?, case, interface, queue, By::Steering))
}

/// Effective CPUs below which a sample that is dealt by flow is one flow's: 1.3 are reached when the busiest CPU has
/// 86 % of the frames.
const ONE_FLOW: f64 = 1.3;

/// Frames of a sample below which their distribution says nothing.
const ENOUGH: u64 = 1000;

/// Whether dealing the traffic sample by flow leaves it on one CPU all the same. `false` without a sample.
pub(crate) fn is_undivided(case: &Case<'_>, interface: &Interface) -> bool {
    case.steered(interface, None).is_some_and(|steered| {
        let frames: u64 = steered.per_cpu.iter().map(|row| row.frames).sum();
        steered.cpus > 1 && frames >= ENOUGH && steered.effective_queues < ONE_FLOW
    })
}

/// FreeBSD's netisr, as far as it is not set up yet: deferred dispatch at run time, threads bound to all CPUs from
/// the next start. `net.isr.dispatch` can be set at any time (`CTLFLAG_RWTUN`), `net.isr.maxthreads` and
/// `net.isr.bindthreads` only by the loader (`CTLFLAG_RDTUN`; sys/net/netisr.c). `None` where all is set.
pub(crate) fn netisr(case: &Case<'_>) -> Option<Remedy> {
    let snapshot = case.snapshot();
    let threads = snapshot.netisr.as_ref().and_then(|netisr| netisr.threads.as_ref()).map(|seen| *seen.get());
    let max_threads = snapshot.sysctls.get("net.isr.maxthreads").map(|seen| seen.get().as_str());
    let all_cpus = max_threads == Some("-1")
        || matches!((threads, snapshot.cpu_count()), (Some(threads), Some(cpus)) if threads >= cpus);
    let mut commands = Vec::new();
    if !matches!(netisr::dispatch(snapshot), Some(("deferred", _))) {
        commands.push("sysctl net.isr.dispatch=deferred".to_owned());
        commands.push("echo 'net.isr.dispatch=deferred' >> /etc/sysctl.conf".to_owned());
    }
    if !all_cpus {
        commands.push("echo 'net.isr.maxthreads=\"-1\"' >> /boot/loader.conf".to_owned());
    }
    if !matches!(netisr::bound(snapshot), Some((true, _))) {
        commands.push("echo 'net.isr.bindthreads=\"1\"' >> /boot/loader.conf".to_owned());
    }
    if commands.is_empty() {
        return None;
    }
    Some(Remedy {
        os: "freebsd",
        what: "netisr: hand packets to the threads of other CPUs (net.isr.dispatch works at once; maxthreads and \
               bindthreads are loader tunables and need a restart)"
            .to_owned(),
        commands,
        expected: NETISR_SPREADS.to_owned(), modelled: None,
})
}

/// What deferred dispatch can spread: a packet without a flow id, as of a frame that the device did not hash, is dealt
/// by its interface (`netisr_select_cpuid()` in sys/net/netisr.c); `options RSS` makes IP compute the hash itself
/// (`rss_soft_m2cpuid_v4()` in sys/netinet/in_rss.c).
pub(crate) const NETISR_SPREADS: &str = "IP, firewall and forwarding leave the CPU of the queue, which still takes off \
                                         the PPPoE header. What spreads by flow are packets that the device hashed. \
                                         Packets that it did not hash, as all of PPPoE, are dealt by their interface: \
                                         several sessions with an interface each can go to several CPUs, and one \
                                         session stays on one CPU, though another than the queue's, unless the kernel \
                                         was built with `options RSS`. What the model expects of it is unknown: nobody has \
                                         counted what the hand-over costs there.";

/// What dealing by the inner flow to all CPUs would bring.
pub(crate) fn expected(case: &Case<'_>, interface: &Interface) -> String {
    expected_over(case, interface, None)
}

/// The same for so many CPUs.
fn expected_over(case: &Case<'_>, interface: &Interface, cpus: Option<u16>) -> String {
    let Some(steered) = case.steered(interface, cpus) else {
        return "Cannot tell without a traffic sample (rxlane doctor --traffic CAPTURE): as many CPUs as there are \
                busy flows can share the work; one flow stays on one CPU."
            .to_owned();
    };
    let share = |most: Option<u64>, all: u64| most.unwrap_or(0) as f64 * 100.0 / all.max(1) as f64;
    let by_cpu: u64 = steered.per_cpu.iter().map(|row| row.frames).sum();
    let after = share(steered.per_cpu.iter().map(|row| row.frames).max(), by_cpu);
    // Where the device is not known, nor is the queue of a frame.
    let queues = case.mix(interface).map_or(&[][..], |mix| &mix.queues);
    let by_queue: u64 = queues.iter().map(|row| row.frames).sum();
    let before = share(queues.iter().map(|row| row.frames).max(), by_queue);
    let now = if by_queue > 0 {
        format!(" where the busiest queue takes {before:.0} % now")
    } else {
        String::new()
    };
    format!(
        "In the traffic sample, dealing flows by the inner header over {} CPUs leaves {after:.0} % of the frames on \
         the busiest{now}: worth {:.1} evenly loaded CPUs.",
        steered.cpus, steered.effective_queues
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_in_words() {
        assert_eq!(words(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(words(&[]), "");
    }
}
