//! How much of the traffic each CPU should get.
//!
//! Of the work for a frame, a part stays on the CPU that its queue interrupts (driver, XDP program, handing over), and
//! a part moves with the frame (a thread that takes it over, socket buffer, decapsulation, forwarding or delivery):
//! D and S. A frame whose CPU is the one that receives it is handed over to nobody and costs L in all, which is less
//! than D + S. So a CPU that receives the share `a` of the traffic and works on the share `w` of it, whoever received
//! it, spends `a·(1−w)·D + a·w·L + (1−a)·w·S` a frame, which is `a·D + w·(a·(L−D) + (1−a)·S)`. [`weigh`] chooses the
//! shares `w` for which the busiest of the CPUs is least busy: it pours the traffic into the CPUs as water into vessels,
//! with a floor at `a·D` and as wide as the inverse of what multiplies `w`.
//!
//! With one receiving CPU among N and E = L − D, that is: none for it where `D ≥ S/(N−1)`; else
//! `w = (S − (N−1)·D) / (S + (N−1)·E)` for it and equal shares for the others.

use model::forecast;

/// Work for a frame, in any unit; only ratios matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// What stays on the receiving CPU when it gives the frame to another one: interrupt, driver, XDP program, handing
    /// over. D in the documentation.
    pub stays: f64,
    /// What goes with the frame then: from the socket buffer to its delivery. S in the documentation.
    pub moves: f64,
    /// All work for a frame that stays on the CPU that receives it. L in the documentation.
    pub own: f64,
}

impl Work {
    pub const fn measured(work: forecast::Work) -> Work {
        Work { stays: work.stays, moves: work.moves, own: work.own }
    }

    fn is_usable(self) -> bool {
        let all = [self.stays, self.moves, self.own];
        all.iter().all(|work| work.is_finite())
            && self.stays >= 0.0
            && self.moves > 0.0
            && self.own > self.stays
    }

    /// What a CPU that receives the part `share` of all frames spends on them if it gives them all away.
    fn floor(self, share: f64) -> f64 {
        share * self.stays
    }

    /// What it spends more for each frame that is given to it, on average over all frames of the interface: those that
    /// it received itself cost it less.
    fn slope(self, share: f64) -> f64 {
        share * (self.own - self.stays) + (1.0 - share) * self.moves
    }

    /// What it spends a frame of the interface, if it receives the part `receives` and works on the part `works`.
    pub fn spent(self, receives: f64, works: f64) -> f64 {
        self.floor(receives) + works * self.slope(receives)
    }
}

/// A CPU that receive queues of the interface interrupt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receiving {
    pub cpu: u32,
    /// Its part of the frames of the interface, 0 to 1; all receiving CPUs together 1.
    pub share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    pub cpu: u32,
    /// Its part of the steered frames, 0 to 1; all together 1. 0: it is better left out.
    pub share: f64,
}

/// The shares of `targets` for which the busiest CPU has least to do, in their order. A `receiving` CPU that is no
/// target changes nothing. Where `work` makes no sense (negative, not finite, or nothing that moves), all shares are
/// equal. A CPU named twice counts once.
pub fn weigh(work: Work, targets: &[u32], receiving: &[Receiving]) -> Vec<Weight> {
    let mut cpus = Vec::with_capacity(targets.len());
    for &cpu in targets {
        if !cpus.contains(&cpu) {
            cpus.push(cpu);
        }
    }
    if !work.is_usable() {
        return even(&cpus);
    }
    let shares: Vec<f64> = cpus.iter().map(|&cpu| received(cpu, receiving)).collect();
    let vessels: Vec<Vessel> =
        shares.iter().map(|&share| Vessel { floor: work.floor(share), slope: work.slope(share) }).collect();
    let level = water_level(&vessels);
    let poured = |vessel: &Vessel| ((level - vessel.floor) / vessel.slope).max(0.0);
    cpus.iter().zip(&vessels).map(|(&cpu, vessel)| Weight { cpu, share: poured(vessel) }).collect()
}

pub fn even(cpus: &[u32]) -> Vec<Weight> {
    cpus.iter().map(|&cpu| Weight { cpu, share: 1.0 / cpus.len() as f64 }).collect()
}

pub(crate) fn received(cpu: u32, receiving: &[Receiving]) -> f64 {
    let shares = receiving.iter().filter(|receiving| receiving.cpu == cpu).map(|receiving| receiving.share);
    shares.filter(|share| share.is_finite() && *share > 0.0).sum::<f64>().min(1.0)
}

/// A CPU: at the level L it takes the share `(L − floor) / slope`.
struct Vessel {
    floor: f64,
    slope: f64,
}

/// The level at which the vessels take the share 1 together.
fn water_level(vessels: &[Vessel]) -> f64 {
    let mut sorted: Vec<&Vessel> = vessels.iter().collect();
    sorted.sort_by(|a, b| a.floor.total_cmp(&b.floor));
    // Of those under water: Σ 1/slope and Σ floor/slope.
    let (mut width, mut below, mut level) = (0.0, 0.0, f64::INFINITY);
    for vessel in sorted {
        if vessel.floor >= level {
            break;
        }
        width += 1.0 / vessel.slope;
        below += vessel.floor / vessel.slope;
        level = (1.0 + below) / width;
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(work: Work, targets: &[u32], receiving: &[(u32, f64)]) -> Vec<f64> {
        let receiving: Vec<_> = receiving.iter().map(|&(cpu, share)| Receiving { cpu, share }).collect();
        weigh(work, targets, &receiving).into_iter().map(|weight| weight.share).collect()
    }

    /// Work of which nothing is saved for a frame that stays.
    fn alike(stays: f64, moves: f64) -> Work {
        Work { stays, moves, own: stays + moves }
    }

    fn busiest(work: Work, shares: &[f64], received: &[f64]) -> f64 {
        let loads = shares
            .iter()
            .zip(received)
            .map(|(w, a)| a * (1.0 - w) * work.stays + a * w * work.own + (1.0 - a) * w * work.moves);
        loads.fold(0.0, f64::max)
    }

    #[track_caller]
    fn assert_near(found: &[f64], expected: &[f64]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_near), "{found:?}");
    }

    #[test]
    fn one_receiving_cpu_follows_the_formula() {
        // (9 − 3·1) / (9 + 3·9)
        assert_near(
            &shares(alike(1.0, 9.0), &[0, 1, 2, 3], &[(0, 1.0)]),
            &[1.0 / 6.0, 5.0 / 18.0, 5.0 / 18.0, 5.0 / 18.0],
        );
        // A frame that stays costs 6 more than one that goes: (9 − 3·1) / (9 + 3·6), and 21 of 27 for the others.
        let work = Work { stays: 1.0, moves: 9.0, own: 7.0 };
        assert_near(
            &shares(work, &[0, 1, 2, 3], &[(0, 1.0)]),
            &[6.0 / 27.0, 7.0 / 27.0, 7.0 / 27.0, 7.0 / 27.0],
        );
    }

    #[test]
    fn a_receiving_cpu_with_enough_to_do_is_left_out() {
        // D = S/(N−1) is the border.
        for stays in [1.0, 1.5, 10.0] {
            let third = 1.0 / 3.0;
            let found = shares(alike(stays, 3.0), &[0, 1, 2, 3], &[(0, 1.0)]);
            assert_near(&found, &[0.0, third, third, third]);
        }
        let found = shares(alike(0.99, 3.0), &[0, 1, 2, 3], &[(0, 1.0)]);
        assert!(found[0] > 0.0 && found[0] < 0.01, "{found:?}");
    }

    #[test]
    fn several_receiving_cpus_give_up_what_they_receive() {
        let work = alike(1.0, 3.0);
        assert_near(&shares(work, &[0, 1], &[(0, 0.5), (1, 0.5)]), &[0.5, 0.5]);
        let found = shares(work, &[0, 1, 2, 3], &[(0, 0.5), (1, 0.5)]);
        // Level (3 + 1) / 4 = 1: two of 0.5, two of 1.
        assert_near(&found, &[1.0 / 6.0, 1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0]);
        assert_near(&shares(work, &[2, 3], &[(0, 1.0)]), &[0.5, 0.5]);
    }

    #[test]
    fn no_other_shares_make_the_busiest_cpu_less_busy() {
        for (stays, received) in [(0.3, [1.0, 0.0, 0.0]), (2.0, [0.7, 0.3, 0.0]), (5.0, [0.2, 0.3, 0.5])] {
            // What stays on its CPU costs as much as what moves, less, and next to nothing more than handing it over.
            for saved in [0.0, 0.6, 1.9] {
                let work = Work { stays, moves: 2.0, own: stays + 2.0 - saved };
                least_busy(work, received);
            }
        }
    }

    fn least_busy(work: Work, received: [f64; 3]) {
        let receiving: Vec<_> = (0..).zip(received).collect();
        let best = busiest(work, &shares(work, &[0, 1, 2], &receiving), &received);
        for first in 0..=20 {
            for second in 0..=20 - first {
                let tried = [first, second, 20 - first - second].map(|part| f64::from(part) / 20.0);
                assert!(busiest(work, &tried, &received) >= best - 1e-9, "{tried:?} beats {best}, {work:?}");
            }
        }
    }

    #[test]
    fn work_that_makes_no_sense_means_equal_shares() {
        for (stays, moves, own) in [
            (f64::NAN, 1.0, 2.0),
            (-1.0, 1.0, 2.0),
            (1.0, 0.0, 2.0),
            (1.0, f64::INFINITY, 2.0),
            (1.0, 1.0, 1.0),
        ] {
            let work = Work { stays, moves, own };
            assert_near(&shares(work, &[0, 1], &[(0, 1.0)]), &[0.5, 0.5]);
        }
        let forwarded = Work::measured(forecast::Measured::FORWARDED.steer);
        assert!(weigh(forwarded, &[], &[]).is_empty());
        assert_near(&shares(forwarded, &[4, 4], &[]), &[1.0]);
    }
}
