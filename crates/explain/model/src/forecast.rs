//! How many packets a second a receive path carries without loss, and how many where software spreads them to other CPUs: what
//! `rxlane doctor` and `rxlane steer check` expect of RPS and of steering.
//!
//! # What is assumed
//!
//! How the work for a frame divides is known from one device and kernel: instructions counted for PPPoE TCP, stock `igb`, Linux 6.12
//! ([`Measured`]; `docs/measurements/steering.md`). Another machine is taken to divide it alike, and to need as long for a frame as
//! somebody measured there; where nobody did, only ratios are known. Frames arrive as a Poisson process, flows do not move,
//! rings and the queues behind the driver hold 256 frames. Caches, locks and power states are
//! as in `nic::model`: not there.

use crate::plan::{
    Arrivals, Cost, Costs, Driver, FlowPlan, Goal, Input, Moderation, Plan, Port, Queue, Source,
};
use crate::{SECOND, Time, run};
use traffic::{Popularity, Sizes};

/// Work for a frame that software spreads to a CPU, in any unit; only ratios matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// What the CPU that receives it does where it goes to another one. D in the documentation.
    pub stays: f64,
    /// What that other one does. S in the documentation.
    pub moves: f64,
    /// All work for a frame that is spread to the CPU that receives it. L in the documentation.
    pub own: f64,
}

/// Work for a frame as it was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Where software spreads nothing.
    pub now: f64,
    /// With steering in XDP.
    pub steer: Work,
    /// With RPS, which puts a frame into the backlog of its CPU also where that is the one it is on.
    pub rps: Work,
}

/// What takes work away from a packet on its way through the kernel, whichever CPU it is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelPath {
    /// GRO joins the TCP segments that PPPoE carries (`pppoe_gro_receive`, Linux 7.2).
    pub pppoe_gro: bool,
    /// Packets of established flows bypass the stack (nftables flowtable).
    pub flowtable: bool,
}

impl Measured {
    /// A frame that is forwarded: instructions for one of PPPoE TCP with 1,400 bytes, Linux 6.12 and `igb` on an emulated 82576
    /// (`docs/measurements/steering.md`).
    pub const FORWARDED: Measured = Measured {
        now: 5070.0,
        steer: Work { stays: 980.0, moves: 6600.0, own: 5300.0 },
        rps: Work { stays: 2090.0, moves: 4100.0, own: 6190.0 },
    };

    /// A frame that is delivered to a socket of the machine: the same for 16 TCP connections.
    pub(crate) const DELIVERED: Measured = Measured {
        now: 5700.0,
        steer: Work { stays: 950.0, moves: 6300.0, own: 6100.0 },
        rps: Work { stays: 2050.0, moves: 5200.0, own: 7250.0 },
    };

    /// A packet of a download that a router forwards with masquerade: instructions for one of 16 TCP connections over PPPoE, Linux
    /// 7.3 and `igb` on an emulated 82576 (`docs/measurements/kernel-paths.md`).
    const ROUTED: Measured = Measured {
        now: 8570.0,
        steer: Work { stays: 1850.0, moves: 10_500.0, own: 8750.0 },
        rps: Work { stays: 2620.0, moves: 8340.0, own: 10_960.0 },
    };

    /// The same where GRO joins what is in PPPoE.
    const ROUTED_COALESCED: Measured = Measured {
        now: 5740.0,
        steer: Work { stays: 1500.0, moves: 8000.0, own: 5850.0 },
        rps: Work { stays: 3030.0, moves: 5000.0, own: 8030.0 },
    };

    /// The same as the first with a flowtable.
    const OFFLOADED: Measured = Measured {
        now: 4620.0,
        steer: Work { stays: 1600.0, moves: 6200.0, own: 4560.0 },
        rps: Work { stays: 2540.0, moves: 4190.0, own: 6730.0 },
    };

    /// The same with both.
    const OFFLOADED_COALESCED: Measured = Measured {
        now: 4070.0,
        steer: Work { stays: 1500.0, moves: 6950.0, own: 4240.0 },
        rps: Work { stays: 3060.0, moves: 2770.0, own: 5830.0 },
    };

    /// A packet of such a download that `rxlane fastpath` forwards, on the CPU that receives it: 0.24 of what the kernel alone
    /// takes there, stock `igb`, Linux 6.12 (1,782 of 7,515 instructions with 16 TCP connections, 1,830 of 7,633 where the driver
    /// is always behind; `docs/measurements/fastpath.md`). No other CPU has work for it.
    pub const FAST: f64 = 0.24 * Measured::ROUTED.now;

    /// A packet that is delivered, where GRO joins what is in PPPoE.
    const DELIVERED_COALESCED: Measured = Measured {
        now: 3330.0,
        steer: Work { stays: 1030.0, moves: 3450.0, own: 3600.0 },
        rps: Work { stays: 2350.0, moves: 2600.0, own: 4950.0 },
    };

    /// A packet on a kernel's path that takes work away: forwarded with masquerade, or delivered. `None`: there is no such path, since a
    /// flowtable has no part in what is delivered.
    pub const fn on(path: KernelPath, forwards: bool) -> Option<&'static Measured> {
        match (forwards, path.flowtable, path.pppoe_gro) {
            (true, false, false) => Some(&Measured::ROUTED),
            (true, false, true) => Some(&Measured::ROUTED_COALESCED),
            (true, true, false) => Some(&Measured::OFFLOADED),
            (true, true, true) => Some(&Measured::OFFLOADED_COALESCED),
            (false, false, false) => Some(&Measured::DELIVERED),
            (false, false, true) => Some(&Measured::DELIVERED_COALESCED),
            (false, true, _) => None,
        }
    }

    /// A packet with PPPoE GRO on. Frames that are steered to threads that do not coalesce (before Linux 6.15) go through the stack one
    /// by one.
    pub fn coalesced(forwards: bool, threads_coalesce: bool) -> Measured {
        let (with, without) = match forwards {
            true => (Measured::ROUTED_COALESCED, Measured::ROUTED),
            false => (Measured::DELIVERED_COALESCED, Measured::DELIVERED),
        };
        if threads_coalesce { with } else { Measured { steer: without.steer, ..with } }
    }

    /// Those of a machine that forwards, or does not.
    pub const fn of(forwards: bool) -> &'static Measured {
        if forwards { &Measured::FORWARDED } else { &Measured::DELIVERED }
    }
}

/// What spreads frames over CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spreading<'a> {
    /// A frame stays on the CPU that receives it.
    Nothing,
    /// RPS, with the part of the frames that each CPU is spread.
    Rps(&'a [f64]),
    /// Steering in XDP, with the same.
    Steer(&'a [f64]),
}

/// The share that the one CPU that receives should be spread among so many by steering, and that of each other one: so that all have
/// the same to do (`docs/measurements/steering.md`).
pub fn shares(work: Work, cpus: usize) -> (f64, f64) {
    if cpus < 2 {
        return (1.0, 0.0);
    }
    let others = (cpus - 1) as f64;
    let own = (work.moves - others * work.stays) / (work.moves + others * (work.own - work.stays));
    let own = own.clamp(0.0, 1.0);
    (own, (1.0 - own) / others)
}

/// Part of the frames that may be lost where none is said to be.
const NONE: f64 = 0.001;
/// Frames of a trial. A load of 102 % puts 600 more into the queues than they serve, twice what a ring holds.
const FRAMES: u64 = 30_000;
/// Depth of rings, as Intel's 1 Gbit/s drivers have them (`IGB_DEFAULT_RXD`), and of the queues behind the driver. Deeper ones lose
/// later where a CPU has too much to do, and no less.
const DEPTH: u32 = 256;
/// Halvings of the interval in which the rate lies: half of the bound that the busiest CPU sets, and a little more than it.
const HALVINGS: u32 = 6;

/// Frames a second that CPUs carry without loss, of which each receives the part `received`. `seconds` is how long a frame takes
/// where nothing spreads it. `None` where that is no time, or nobody receives.
pub fn transferred(
    measured: &Measured,
    seconds: f64,
    received: &[f64],
    spreading: Spreading<'_>,
) -> Option<f64> {
    let unit = seconds * SECOND as f64 / measured.now;
    let is_share = |share: &f64| share.is_finite() && *share >= 0.0;
    let spread = match spreading {
        Spreading::Nothing => received,
        Spreading::Rps(spread) | Spreading::Steer(spread) => spread,
    };
    let together = |shares: &[f64]| shares.iter().all(is_share) && shares.iter().sum::<f64>() > 0.0;
    if !(1.0..=1e9).contains(&(unit * measured.now)) || received.len() != spread.len() {
        return None;
    }
    if !together(received) || !together(spread) {
        return None;
    }
    let path = Path { measured, unit, received: Shares::of(received), spread: Shares::of(spread), spreading };
    let bound = path.bound();
    let (mut low, mut high) = (bound / 2.0, bound * 1.02);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if path.loses(middle) { high = middle } else { low = middle }
    }
    Some(low)
}

/// Parts of a whole, with the sums up to each.
struct Shares {
    parts: Vec<f64>,
    sums: Vec<f64>,
}

impl Shares {
    fn of(parts: &[f64]) -> Shares {
        let whole: f64 = parts.iter().sum();
        let parts: Vec<f64> = parts.iter().map(|part| part / whole).collect();
        let sums = parts.iter().scan(0.0, |sum, part| {
            *sum += part;
            Some(*sum)
        });
        Shares { sums: sums.collect(), parts }
    }

    /// The part in which a number of 0 to 1 lies.
    fn at(&self, place: f64) -> usize {
        let last = self.parts.iter().rposition(|part| *part > 0.0).unwrap_or(0);
        self.sums.partition_point(|sum| *sum <= place).min(last)
    }
}

struct Path<'a> {
    measured: &'a Measured,
    /// Picoseconds of a unit of work.
    unit: f64,
    received: Shares,
    spread: Shares,
    spreading: Spreading<'a>,
}

impl Path<'_> {
    fn work(&self) -> Work {
        match self.spreading {
            Spreading::Nothing => Work { stays: 0.0, moves: 0.0, own: self.measured.now },
            Spreading::Rps(_) => self.measured.rps,
            Spreading::Steer(_) => self.measured.steer,
        }
    }

    /// The rate at which the busiest CPU has no time left.
    fn bound(&self) -> f64 {
        let work = self.work();
        let spent = self.received.parts.iter().zip(&self.spread.parts).map(|(received, spread)| {
            match self.spreading {
                Spreading::Nothing => received * work.own,
                _ => {
                    received * (1.0 - spread) * work.stays
                        + received * spread * work.own
                        + (1.0 - received) * spread * work.moves
                }
            }
        });
        SECOND as f64 / (spent.fold(0.0, f64::max) * self.unit)
    }

    fn loses(&self, rate: f64) -> bool {
        let answer = run(self.plan(rate));
        let traffic = answer.traffic.iter();
        let (offered, lost) = traffic.fold((0, 0), |sum, one| (sum.0 + one.offered, sum.1 + one.lost()));
        lost as f64 > NONE * offered as f64
    }

    fn plan(&self, rate: f64) -> Plan {
        let work = self.work();
        let time = |units: f64| Cost { frame: (units * self.unit).round() as Time, byte: 0 };
        // What goes up the stack where it is received costs L in all, what is handed on S behind the hand-over.
        let (driver, stack) = match self.spreading {
            Spreading::Nothing => (0.0, work.own),
            Spreading::Rps(_) => (work.stays, work.moves),
            Spreading::Steer(_) => (work.stays, work.own - work.stays),
        };
        let cpus = self.received.parts.len();
        let inputs = if self.spreading == Spreading::Nothing { 0 } else { cpus };
        let gap = SECOND as f64 / rate;
        Plan {
            seed: 1,
            warm_up: 0,
            duration: (gap * FRAMES as f64) as Time,
            cpus,
            driver: Driver::Napi { budget: 64, round: 300, limit: SECOND / 500 },
            gro: None,
            inputs: (0..inputs).map(|cpu| Input { cpu, depth: DEPTH }).collect(),
            keeps_own: matches!(self.spreading, Spreading::Steer(_)),
            ahead: true,
            costs: Costs {
                driver: time(driver),
                take_over: time((work.moves - stack).max(0.0)).frame,
                ..Costs::default()
            },
            ports: vec![Port { name: "line".to_owned(), byte: 0, transmit_ring: 1 }],
            queues: (0..cpus)
                .map(|cpu| Queue { port: 0, cpu, ring: DEPTH, moderation: Moderation::Off })
                .collect(),
            applications: Vec::new(),
            sources: vec![Source {
                name: "frames".to_owned(),
                port: 0,
                arrivals: Arrivals::Poisson { gap: gap.round().max(1.0) as Time },
                sizes: Sizes::Fixed(Sizes::LEAST),
                overhead: 0,
                popularity: Popularity::Uniform,
                flows: self.flows(),
                longest: u32::MAX,
                stack: time(stack),
                coalesces: false,
                payload: 0,
                goal: Goal::Stack,
            }],
        }
    }

    /// Flows whose queues and CPUs have their shares, independently of each other.
    fn flows(&self) -> Box<[FlowPlan]> {
        const FLOWS: u32 = 4096;
        // Multiples of the golden ratio fill the unit interval evenly whatever is picked out of them.
        let golden = |flow: u32| (f64::from(flow) * 0.618_033_988_749_894_9).fract();
        let flow = |flow: u32| FlowPlan {
            queue: self.received.at((f64::from(flow) + 0.5) / f64::from(FLOWS)) as u32,
            input: self.spread.at(golden(flow)) as u32,
        };
        (0..FLOWS).map(flow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORWARDED: &Measured = &Measured::FORWARDED;
    const MICROSECOND: f64 = 1e-6;

    fn times(received: &[f64], spreading: Spreading<'_>) -> f64 {
        let now = transferred(FORWARDED, MICROSECOND, received, Spreading::Nothing).unwrap();
        transferred(FORWARDED, MICROSECOND, received, spreading).unwrap() / now
    }

    #[test]
    fn without_spreading_a_cpu_carries_what_its_time_allows() {
        let now = transferred(FORWARDED, MICROSECOND, &[1.0, 0.0], Spreading::Nothing).unwrap();
        assert!((0.95e6..1.02e6).contains(&now), "{now}");
        let even = transferred(FORWARDED, MICROSECOND, &[0.5, 0.5], Spreading::Nothing).unwrap();
        assert!((1.85e6..2.05e6).contains(&even), "{even}");
    }

    #[test]
    fn what_was_counted_in_the_lab_follows() {
        // Off over the busiest CPU: 5,083 over 1,767 of four CPUs, 5,078 over 1,233 of eight, 5,045 over 3,238 of two.
        // On eight, the CPUs that take over sleep and are woken more often than D and S know.
        for (cpus, counted, part) in [(2usize, 1.56, 0.05), (4, 2.88, 0.05), (8, 4.12, 0.3)] {
            let mut received = vec![0.0; cpus];
            received[0] = 1.0;
            let (own, other) = shares(FORWARDED.steer, cpus);
            let mut spread = vec![other; cpus];
            spread[0] = own;
            let found = times(&received, Spreading::Steer(&spread));
            assert!((found / counted - 1.0).abs() < part, "{cpus} CPUs: {found}, counted {counted}");
        }
        // RPS to the three others: 5,083 over 2,077.
        let third = 1.0 / 3.0;
        let found = times(&[1.0, 0.0, 0.0, 0.0], Spreading::Rps(&[0.0, third, third, third]));
        assert!((found / 2.45 - 1.0).abs() < 0.1, "{found}");
    }

    #[test]
    fn uneven_flows_bring_less() {
        let even = times(&[1.0, 0.0, 0.0], Spreading::Rps(&[0.0, 0.5, 0.5]));
        let uneven = times(&[1.0, 0.0, 0.0], Spreading::Rps(&[0.0, 0.95, 0.05]));
        assert!(uneven < even && uneven < 1.4, "{uneven} and {even}");
    }

    #[test]
    fn what_is_not_known_is_not_answered() {
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e3] {
            assert_eq!(transferred(FORWARDED, seconds, &[1.0], Spreading::Nothing), None);
        }
        assert_eq!(transferred(FORWARDED, MICROSECOND, &[], Spreading::Nothing), None);
        assert_eq!(transferred(FORWARDED, MICROSECOND, &[0.0], Spreading::Nothing), None);
        assert_eq!(transferred(FORWARDED, MICROSECOND, &[1.0, f64::NAN], Spreading::Nothing), None);
        assert_eq!(transferred(FORWARDED, MICROSECOND, &[1.0, 0.0], Spreading::Rps(&[1.0])), None);
    }

    #[test]
    fn one_cpu_gets_all_and_many_leave_the_receiving_one_out() {
        assert_eq!(shares(FORWARDED.steer, 1), (1.0, 0.0));
        let (own, other) = shares(FORWARDED.steer, 4);
        assert!((own - 0.187).abs() < 0.002 && (own + 3.0 * other - 1.0).abs() < 1e-9, "{own}");
        assert_eq!(shares(FORWARDED.steer, 16).0, 0.0);
    }
}
