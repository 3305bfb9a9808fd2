//! What the kernel itself has for a busy receive path, and which way leaves the busiest CPU least to do: nothing, RPS, steering, each as
//! it is, with PPPoE GRO, with a flowtable, and with both; and rxlane's fast path in the place of all of them.
//!
//! RPS and steering move work to other CPUs; GRO, a flowtable and the fast path take it away. Which is better follows from instructions counted for
//! each way ([`Measured::on`], `docs/measurements/kernel-paths.md`; [`Measured::FAST`], `docs/measurements/fastpath.md`) and the CPUs of
//! this machine.

use crate::recommend::{Costs, Evidence, WORTH, busiest_with};
use doctor::pppoe_gro::PppoeGro;
use doctor::{Case, Lookup, fast_path_commands, flowtable_commands, lookup_device};
use format::quoted;
use host::Interface;
use model::forecast::{KernelPath, Measured};
use serde::Serialize;

/// Whether something of the kernel is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    /// The kernel lacks it, or it has no part in these frames; or nobody knows.
    #[default]
    Never,
    /// It can be turned on.
    Off,
    On,
}

impl Use {
    /// The states that it can have.
    const fn states(self) -> &'static [bool] {
        match self {
            Use::Never => &[false],
            Use::Off => &[false, true],
            Use::On => &[true],
        }
    }
}

/// What the kernel has for the frames of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Means {
    pub pppoe_gro: Use,
    pub flowtable: Use,
    /// Whether the interface can have a fast path, and one is better than what the kernel has.
    pub fastpath: bool,
    /// Whether the threads that steered frames go to coalesce (Linux 6.15, `cpu_map_gro_receive()` in kernel/bpf/cpumap.c).
    pub steered_gro: bool,
}

impl Means {
    /// Those of an interface; `forwards`: the machine forwards; `takes_program`: its driver runs XDP programs, and there is none.
    pub fn of(case: &Case<'_>, interface: &Interface, forwards: bool, takes_program: bool) -> Means {
        let ends_pppoe = case.ends_pppoe(interface);
        let gro = interface.features.get("generic-receive-offload").map(|seen| *seen.get());
        let coalesces = case.pppoe_gro().is_some_and(|(PppoeGro { coalesces, .. }, _)| coalesces);
        let pppoe_gro = match gro {
            Some(gro) if coalesces && ends_pppoe && gro.on => Use::On,
            Some(gro) if coalesces && ends_pppoe && !gro.fixed => Use::Off,
            _ => Use::Never,
        };
        // What was measured are kernels that match PPPoE at the device.
        let is_possible = Lookup::of(case) == Some(Lookup::Physical);
        let flowtable = match forwards && ends_pppoe {
            true if is_offloaded(case, interface) => Use::On,
            true if is_possible => Use::Off,
            _ => Use::Never,
        };
        // A connection in a flowtable does not enter a fast path.
        let is_free = takes_program && flowtable != Use::On;
        let fastpath = forwards && is_free && case.may_have_fast_path(interface);
        Means { pppoe_gro, flowtable, fastpath, steered_gro: case.coalesces_steered() == Some(true) }
    }

    /// What a packet costs as things are, spread or not.
    pub fn measured(self, forwards: bool) -> Measured {
        match (self.flowtable, self.pppoe_gro) {
            (Use::On, _) => *Measured::on(self.now(), forwards).unwrap_or(Measured::of(forwards)),
            (_, Use::On) => Measured::coalesced(forwards, self.steered_gro),
            _ => *Measured::of(forwards),
        }
    }

    /// What is in use now.
    fn now(self) -> KernelPath {
        KernelPath { pppoe_gro: self.pppoe_gro == Use::On, flowtable: self.flowtable == Use::On }
    }

    /// Whether a way takes what is in use now, no more and no less.
    pub(crate) fn is_used(self, way: Way) -> bool {
        !way.fastpath && self.now() == KernelPath { pppoe_gro: way.pppoe_gro, flowtable: way.flowtable }
    }

    fn paths(self) -> Vec<KernelPath> {
        let flowtables = self.flowtable.states().iter();
        let both = flowtables.flat_map(|&flowtable| {
            self.pppoe_gro.states().iter().map(move |&pppoe_gro| KernelPath { pppoe_gro, flowtable })
        });
        both.collect()
    }
}

/// Whether a flowtable has the interface or one that stands on it, and a rule puts flows there.
fn is_offloaded(case: &Case<'_>, interface: &Interface) -> bool {
    let netfilter = &case.snapshot().netfilter;
    netfilter.flowtables.iter().any(|one| {
        let is_filled = |rule: &host::FlowRule| rule.flowtable == one.name && rule.table == one.table;
        let is_on = |device: &String| lookup_device(case, device) == interface.name;
        one.devices.iter().any(is_on) && netfilter.flow_rules.iter().any(is_filled)
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    Nothing,
    Rps,
    Steer,
}

/// A way of handling the frames, with what it is expected to cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Way {
    pub pppoe_gro: bool,
    pub flowtable: bool,
    /// `rxlane fastpath`, without any of the others.
    pub fastpath: bool,
    pub spreading: Spread,
    /// Work of the busiest CPU for an average frame, as part of what it is now.
    pub busiest: f64,
    /// Work of all CPUs, as part of that.
    pub all: f64,
}

/// How much more than the mean the busiest CPU got of the sixteen connections that were counted.
const UNEVEN: f64 = 1.3;

/// How much more than the mean the busiest CPU gets of the sample's flows; without one, of those that were counted.
fn uneven(evidence: &Evidence) -> f64 {
    let of_sample = evidence.worth.map(|worth| evidence.online.len() as f64 / worth.max(1.0));
    of_sample.unwrap_or(UNEVEN).max(1.0)
}

/// Every way that there is, with neither RPS nor steering first. Empty where the kernel has nothing besides them, or no CPU is known to
/// receive.
pub fn ways(evidence: &Evidence) -> Vec<Way> {
    let (means, uneven) = (evidence.means, uneven(evidence));
    let counted = |path| Measured::on(path, evidence.forwards).map(Costs::measured);
    let has_none = means.pppoe_gro == Use::Never && means.flowtable == Use::Never && !means.fastpath;
    if has_none || evidence.buffered {
        return Vec::new();
    }
    let Some(costs) = counted(means.now()) else { return Vec::new() };
    let Some((_, now)) = busiest_with(evidence, costs, uneven) else { return Vec::new() };
    let mut ways = Vec::new();
    for path in means.paths() {
        let Some(costs) = counted(path) else { continue };
        // Threads that do not coalesce get frames one by one.
        let steered = match path.pppoe_gro && !means.steered_gro {
            true => counted(KernelPath { pppoe_gro: false, ..path }).unwrap_or(costs),
            false => costs,
        };
        let way = |spreading, busiest: f64, all: f64| Way {
            pppoe_gro: path.pppoe_gro,
            flowtable: path.flowtable,
            fastpath: false,
            spreading,
            busiest: busiest / now,
            all: all / now,
        };
        let (Some((found, nothing)), Some((with_steering, _))) =
            (busiest_with(evidence, costs, uneven), busiest_with(evidence, steered, uneven))
        else {
            continue;
        };
        ways.push(way(Spread::Nothing, nothing, costs.now));
        ways.extend(costs.rps.zip(found.rps).map(|(rps, busiest)| way(Spread::Rps, busiest, rps.own)));
        let spread = steered.steer.stays + steered.steer.moves;
        ways.push(way(Spread::Steer, with_steering.steer, spread));
    }
    let fast = Costs { now: Measured::FAST, ..costs };
    if let Some((_, busiest)) = busiest_with(evidence, fast, uneven).filter(|_| means.fastpath) {
        ways.push(Way {
            pppoe_gro: false,
            flowtable: false,
            fastpath: true,
            spreading: Spread::Nothing,
            busiest: busiest / now,
            all: fast.now / now,
        });
    }
    ways
}

/// The commands that lead from what is in use now to another way than steering. LAN stands for the ports of the other side, which an
/// observation of one interface does not have.
pub fn commands(case: &Case<'_>, interface: &Interface, evidence: &Evidence, way: Way) -> Vec<String> {
    let now = evidence.means.now();
    let word = quoted(&interface.name);
    if way.fastpath {
        return fast_path_commands(&[interface.name.clone(), "LAN".to_owned()]).to_vec();
    }
    let mut commands = Vec::new();
    if way.pppoe_gro && !now.pppoe_gro {
        commands.push(format!("ethtool -K {word} gro on"));
    }
    if way.flowtable && !now.flowtable {
        commands.extend(flowtable_commands(case, &format!("\"{}\", LAN", interface.name)).0);
    }
    if way.spreading == Spread::Rps && !evidence.rps {
        commands.extend(rps_commands(case, interface));
    }
    commands
}

/// RPS for the queue that takes most frames.
pub fn rps_commands(case: &Case<'_>, interface: &Interface) -> Vec<String> {
    let busiest = case.spread(interface).and_then(|spread| {
        let (place, _) = spread.shares.largest()?;
        spread.queues.get(place).copied()
    });
    case.rps_commands(interface, &[busiest.unwrap_or(0)])
}

/// The way to recommend: steering where it leaves the busiest CPU with clearly less than anything else, else, of the ways that do
/// about as well as the best without it, the one with the least work in all. `steers`: the driver can run the program.
pub fn best(ways: &[Way], steers: bool) -> Option<Way> {
    let least = |ways: &mut dyn Iterator<Item = &Way>| ways.map(|way| way.busiest).min_by(f64::total_cmp);
    let is_steered = |way: &&Way| way.spreading == Spread::Steer;
    let by_kernel = least(&mut ways.iter().filter(|way| !is_steered(way)))?;
    let steered = least(&mut ways.iter().filter(is_steered)).filter(|_| steers);
    let steers = steered.is_some_and(|steered| steered * WORTH <= by_kernel);
    let limit = WORTH * if steers { steered.unwrap_or(by_kernel) } else { by_kernel };
    let good = ways.iter().filter(|way| is_steered(way) == steers && way.busiest < limit);
    good.min_by(|a, b| a.all.total_cmp(&b.all)).copied()
}
