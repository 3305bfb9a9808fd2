//! Spreading in software where the device cannot: which CPUs take the work, the commands for it, and what it would
//! bring.

use crate::cores::Cores;
use crate::device::{self, Device};
use crate::facts::{Effect, Fact, Forecast};
use crate::fast_path;
use crate::finding::{Finding, Remedy, Severity};
use crate::modelled::{self, By};
use crate::placement::Placement;
use crate::rules::{netisr, sharing};
use crate::{Case, ENOUGH_BETWEEN};
use host::{Interface, System, Xdp};
use kernel::cpu::CpuSet;
use std::collections::BTreeSet;

/// Effective CPUs below which a sample that is spread by flow is one flow's: 1.3 are reached when the busiest CPU has
/// 86 % of the frames.
const ONE_FLOW: f64 = 1.3;

/// CPUs to which the work of a queue can go: all but the one that serves it; those of its NUMA node where there
/// are any, and among them those that serve no other busy device nor are to, big ones where there are little ones. Empty where the CPUs are not known or there is one.
fn others(case: &Case<'_>, serving: Option<u32>) -> Vec<u32> {
    let free =
        |cpus: &[u32]| -> Vec<u32> { cpus.iter().copied().filter(|cpu| Some(*cpu) != serving).collect() };
    let all = device::online(case);
    let node = serving.and_then(|serving| {
        case.snapshot().cpus.nodes.values().find(|node| node.contains(&serving)).map(|node| free(node))
    });
    let mut cpus = node.filter(|node| !node.is_empty()).unwrap_or_else(|| free(&all));
    cpus.sort_unstable();
    let taken: BTreeSet<u32> =
        sharing::busy_cpus(case).into_iter().chain(Placement::of(case).cpus()).collect();
    let idle: Vec<u32> = cpus.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
    if !idle.is_empty() {
        cpus = idle;
    }
    if let Some(cores) = Cores::of(case) {
        let big: Vec<u32> = cpus.iter().copied().filter(|cpu| cores.big.contains(cpu)).collect();
        cpus = if big.is_empty() { cpus } else { big };
    }
    if all.len() < 2 { Vec::new() } else { cpus }
}

/// The queues whose RPS mask decides about frames of these, each with one that takes the frames. tg3 does not note
/// in a frame which queue it arrived on, so that the first queue's mask holds for all (`tg3_rx()` in
/// drivers/net/ethernet/broadcom/tg3.c, `get_rps_cpu()` in net/core/dev.c); its vectors number the receive rings
/// from 1.
fn rps_queues(device: &Device<'_>, queues: &[u32]) -> Vec<(u32, u32)> {
    match queues.first() {
        Some(&queue) if device.driver_name() == Some("tg3") => vec![(0, queue)],
        _ => queues.iter().map(|&queue| (queue, queue)).collect(),
    }
}

impl Device<'_> {
    /// RPS over the CPUs that do not serve these queues, for Linux.
    pub fn rps(&self, queues: &[u32]) -> Remedy {
        let queues = rps_queues(self, queues);
        let mut targets: BTreeSet<u32> = BTreeSet::new();
        let command = |&(queue, taken_by): &(u32, u32)| {
            let cpus = others(self.case, self.cpu_of(taken_by));
            targets.extend(&cpus);
            let mask = CpuSet::new(cpus).ok().filter(|set| !set.list().is_empty())?.mask();
            Some(format!("echo {mask} > {}", self.rps_file(queue)))
        };
        let commands: Vec<String> = queues.iter().filter_map(command).collect();
        let cpus: Vec<u32> = targets.into_iter().collect();
        let spread_over = u16::try_from(cpus.len()).ok().filter(|&cpus| cpus > 0);
        let (first, taken_by) = queues.first().copied().unwrap_or_default();
        let effect = Effect::Rps { cpus, file: self.rps_file(first), conditional: false, filter: false };
        let remedy = Remedy { forecast: Some(self.forecast(spread_over)), ..Remedy::linux(effect, commands) };
        if queues.len() == 1 { modelled::with(remedy, self, taken_by, By::Rps) } else { remedy }
    }

    /// Steering in XDP, by this program. `None` where the driver does not run XDP programs: in generic mode the socket
    /// buffer is made before the program runs, which takes the gain away; or a fast path has its program there.
    pub fn steer(&self) -> Option<Remedy> {
        let has_fast_path = fast_path::is_port(self.case, &self.name);
        if has_fast_path || self.steering.as_ref().is_some_and(|steering| *steering.mode.get() != Xdp::Off) {
            return None;
        }
        let native = self.case.native_xdp(self);
        let commands = ["check", "up"].map(|action| format!("rxlane steer {action} {}", self.word()));
        let remedy = || Remedy::linux(Effect::Steer { native: native == Some(true) }, commands);
        (native != Some(false)).then(remedy)
    }

    /// The same with what the model expects where it spreads the frames of this queue.
    pub fn steer_queue(&self, queue: u32) -> Option<Remedy> {
        Some(modelled::with(self.steer()?, self, queue, By::Steering))
    }

    /// What spreading by the inner flow would come to, over so many CPUs or all.
    pub fn forecast(&self, cpus: Option<u16>) -> Forecast {
        let Some(steered) = self.case.steered(self, cpus) else { return Forecast::NoSample };
        let share = |most: Option<u64>, all: u64| most.unwrap_or(0) as f64 / all.max(1) as f64;
        let by_cpu: u64 = steered.per_cpu.iter().map(|row| row.frames).sum();
        let after = share(steered.per_cpu.iter().map(|row| row.frames).max(), by_cpu);
        // Where the device is not known, nor is the queue of a frame; nor do a few of known queue stand for all.
        let mix = self.case.mix(self).filter(|mix| mix.is_mostly_placed());
        let queues = mix.map_or(&[][..], |mix| &mix.queues);
        let by_queue: u64 = queues.iter().map(|row| row.frames).sum();
        let before = (by_queue > 0).then(|| share(queues.iter().map(|row| row.frames).max(), by_queue));
        Forecast::Sample { cpus: steered.cpus, after, before, effective: steered.effective_queues }
    }

    /// Whether spreading the traffic sample by flow leaves it on one CPU all the same. `false` without a sample.
    pub fn sample_stays_on_one_cpu(&self) -> bool {
        self.case.steered(self, None).is_some_and(|steered| {
            let frames: u64 = steered.per_cpu.iter().map(|row| row.frames).sum();
            steered.cpus > 1 && frames >= ENOUGH_BETWEEN && steered.effective_queues < ONE_FLOW
        })
    }
}

impl Case<'_> {
    /// The commands of RPS for these queues of an interface, to CPUs that do not serve them.
    pub fn rps_commands(&self, interface: &Interface, queues: &[u32]) -> Vec<String> {
        Device { case: self, interface }.rps(queues).commands
    }
}

/// The first release of OpenWrt whose `packet_steering` has the value 2, and the kernel that it has.
const STEERS_TO_ALL: ((u32, u32), (u32, u32)) = ((24, 10), (6, 6));

/// OpenWrt's packet steering, where it can do more than it does. Since 24.10, 1 is one other CPU for each device, and 2 is all
/// CPUs (package/network/config/netifd/files/usr/libexec/network/packet-steering.uc); before, 1 is all CPUs, and 2 is
/// off (packet-steering.sh there).
pub(crate) fn packet_steering(case: &Case<'_>) -> Option<Remedy> {
    let snapshot = case.snapshot();
    if !snapshot.is_openwrt() {
        return None;
    }
    let known = snapshot.distribution.as_ref().and_then(|known| known.value.release.as_deref());
    let release = known.and_then(|release| {
        let mut numbers = release.split(['.', '-']).map(|number| number.parse().ok());
        if release.starts_with("SNAPSHOT") {
            Some((u32::MAX, 0))
        } else {
            Some((numbers.next()??, numbers.next()??))
        }
    });
    let by_release = release.map(|release| release >= STEERS_TO_ALL.0);
    let has_all = by_release.or_else(|| case.kernel().map(|kernel| kernel >= STEERS_TO_ALL.1)) == Some(true);
    let value = if has_all { "2" } else { "1" };
    let now = snapshot.uci.get("network.globals.packet_steering").map(|seen| seen.get().as_str());
    if now == Some(value) {
        return None;
    }
    let set = format!("uci set network.globals.packet_steering='{value}'");
    let commands = [set, "uci commit network".to_owned(), "/etc/init.d/packet_steering restart".to_owned()];
    Some(Remedy::linux(Effect::PacketSteering { all: has_all }, commands))
}

/// With OpenWrt's packet steering before RPS, whose masks that service writes anew when an interface changes.
pub(crate) fn by_uci(case: &Case<'_>, mut finding: Finding) -> Finding {
    let place = |is_it: fn(&Effect) -> bool| finding.remedies.iter().position(|remedy| is_it(&remedy.effect));
    let rps = place(|effect| matches!(effect, Effect::Rps { .. }));
    let is_there = place(|effect| matches!(effect, Effect::PacketSteering { .. })).is_some();
    if let Some((at, remedy)) = rps.filter(|_| !is_there).zip(packet_steering(case)) {
        finding.remedies.insert(at, remedy);
    }
    finding
}

/// A finding on a machine whose CPUs are all full: what would only move work between them is not offered, and what nothing else
/// helps is no more than a remark.
pub(crate) fn without_spreading(mut finding: Finding) -> Finding {
    let moves = |remedy: &Remedy| {
        matches!(
            remedy.effect,
            Effect::Rps { .. }
                | Effect::RpsAtEach
                | Effect::Steer { .. }
                | Effect::PacketSteering { .. }
                | Effect::SpreadPolled
                | Effect::Netisr
                | Effect::NetisrDispatch
                | Effect::NetisrThreads
        )
    };
    if !finding.remedies.iter().any(moves) {
        return finding;
    }
    finding.remedies.retain(|remedy| !moves(remedy));
    if finding.remedies.is_empty() {
        finding.severity = Severity::Info;
    }
    finding.says([Fact::SpreadingUseless])
}

pub(crate) const DEFERRED: [&str; 2] =
    ["sysctl net.isr.dispatch=deferred", "echo 'net.isr.dispatch=deferred' >> /etc/sysctl.conf"];
pub(crate) const THREADS: &str = "echo 'net.isr.maxthreads=\"-1\"' >> /boot/loader.conf";
pub(crate) const BOUND: &str = "echo 'net.isr.bindthreads=\"1\"' >> /boot/loader.conf";

/// FreeBSD's netisr, as far as it is not set up yet: deferred dispatch at run time, threads bound to all CPUs from
/// the next start. `net.isr.dispatch` can be set at any time (`CTLFLAG_RWTUN`), `net.isr.maxthreads` and
/// `net.isr.bindthreads` only by the loader (`CTLFLAG_RDTUN`; sys/net/netisr.c). `None` where all is set.
///
/// What it can spread: a packet without a flow id, as of a frame that the device did not hash, goes to the CPU of its
/// interface (`netisr_select_cpuid()` in sys/net/netisr.c); `options RSS` makes IP compute the hash itself
/// (`rss_soft_m2cpuid_v4()` in sys/netinet/in_rss.c).
pub(crate) fn netisr(case: &Case<'_>) -> Option<Remedy> {
    let snapshot = case.snapshot();
    let threads = snapshot.netisr.as_ref().and_then(|netisr| netisr.threads.as_ref()).map(|seen| *seen.get());
    let max_threads = snapshot.sysctls.get("net.isr.maxthreads").map(|seen| seen.get().as_str());
    let all_cpus = max_threads == Some("-1")
        || matches!((threads, snapshot.cpu_count()), (Some(threads), Some(cpus)) if threads >= cpus);
    let mut commands = Vec::new();
    if !matches!(netisr::dispatch(snapshot), Some(("deferred", _))) {
        commands.extend(DEFERRED);
    }
    if !all_cpus {
        commands.push(THREADS);
    }
    if !matches!(netisr::bound(snapshot), Some((true, _))) {
        commands.push(BOUND);
    }
    (!commands.is_empty()).then(|| Remedy::new(System::FreeBsd, Effect::Netisr, commands))
}
