//! How much of the traffic each CPU should get.
//!
//! Of the work for a frame, a part stays on the CPU that its queue interrupts (driver, XDP program, handing over), and
//! a part moves with the frame (socket buffer, decapsulation, forwarding or delivery). With D for the part that stays
//! and S for the part that moves, a CPU that receives the share `a` of the traffic and works on the share `w` of it
//! spends `a·D + w·S` a frame. [`weigh`] chooses the shares `w` for which the busiest of the CPUs is least busy: it
//! fills S into the CPUs as water is filled into vessels with floors at different heights `a·D`.
//!
//! With one receiving CPU among N that is: none of S for it where `D ≥ S/(N−1)`; else
//! `w = (S − (N−1)·D) / (N·S)` for it and equal shares for the others.

/// Work for a frame, in any unit; only the ratio matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// What stays on the receiving CPU: interrupt, driver, XDP program, handing over. D in the documentation.
    pub stays: f64,
    /// What goes with the frame: from the socket buffer to its delivery. S in the documentation.
    pub moves: f64,
}

impl Work {
    /// What weights are computed with where nobody says otherwise: instructions for a PPPoE frame with 1,400 octets of
    /// TCP that is forwarded, by `igb` on Linux 6.12 in the lab (`docs/steering/rebalancing.md`).
    pub const DEFAULT: Work = Work { stays: 790.0, moves: 6150.0 };

    fn is_usable(self) -> bool {
        self.stays.is_finite() && self.moves.is_finite() && self.stays >= 0.0 && self.moves > 0.0
    }
}

/// A CPU that receive queues of the interface interrupt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receiving {
    /// Its number.
    pub cpu: u32,
    /// Its part of the frames of the interface, 0 to 1; all receiving CPUs together 1.
    pub share: f64,
}

/// What a CPU should get.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// Its number.
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
    let floors: Vec<f64> = cpus.iter().map(|&cpu| work.stays * received(cpu, receiving)).collect();
    let level = water_level(&floors, work.moves);
    let poured = |floor: f64| (level - floor).max(0.0) / work.moves;
    cpus.iter().zip(&floors).map(|(&cpu, &floor)| Weight { cpu, share: poured(floor) }).collect()
}

/// Equal shares.
pub fn even(cpus: &[u32]) -> Vec<Weight> {
    cpus.iter().map(|&cpu| Weight { cpu, share: 1.0 / cpus.len() as f64 }).collect()
}

fn received(cpu: u32, receiving: &[Receiving]) -> f64 {
    let shares = receiving.iter().filter(|receiving| receiving.cpu == cpu).map(|receiving| receiving.share);
    shares.filter(|share| share.is_finite() && *share > 0.0).sum()
}

/// The level L with `Σ max(0, L − floor) = amount`.
fn water_level(floors: &[f64], amount: f64) -> f64 {
    let mut sorted = floors.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (mut under_water, mut level) = (0.0, f64::INFINITY);
    for (index, floor) in sorted.into_iter().enumerate() {
        if floor >= level {
            break;
        }
        under_water += floor;
        level = (amount + under_water) / (index + 1) as f64;
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

    fn busiest(work: Work, shares: &[f64], received: &[f64]) -> f64 {
        let loads = shares.iter().zip(received).map(|(w, a)| a * work.stays + w * work.moves);
        loads.fold(0.0, f64::max)
    }

    #[track_caller]
    fn assert_near(found: &[f64], expected: &[f64]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_near), "{found:?}");
    }

    #[test]
    fn one_receiving_cpu_follows_the_formula() {
        let work = Work { stays: 1.0, moves: 9.0 };
        // (9 − 3·1) / (4·9)
        assert_near(
            &shares(work, &[0, 1, 2, 3], &[(0, 1.0)]),
            &[1.0 / 6.0, 5.0 / 18.0, 5.0 / 18.0, 5.0 / 18.0],
        );
    }

    #[test]
    fn a_receiving_cpu_with_enough_to_do_is_left_out() {
        // D = S/(N−1) is the border.
        for stays in [1.0, 1.5, 10.0] {
            let third = 1.0 / 3.0;
            let found = shares(Work { stays, moves: 3.0 }, &[0, 1, 2, 3], &[(0, 1.0)]);
            assert_near(&found, &[0.0, third, third, third]);
        }
        let found = shares(Work { stays: 0.99, moves: 3.0 }, &[0, 1, 2, 3], &[(0, 1.0)]);
        assert!(found[0] > 0.0 && found[0] < 0.01, "{found:?}");
    }

    #[test]
    fn several_receiving_cpus_give_up_what_they_receive() {
        let work = Work { stays: 1.0, moves: 3.0 };
        assert_near(&shares(work, &[0, 1], &[(0, 0.5), (1, 0.5)]), &[0.5, 0.5]);
        let found = shares(work, &[0, 1, 2, 3], &[(0, 0.5), (1, 0.5)]);
        // Level (3 + 1) / 4 = 1: two of 0.5, two of 1.
        assert_near(&found, &[1.0 / 6.0, 1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0]);
        assert_near(&shares(work, &[2, 3], &[(0, 1.0)]), &[0.5, 0.5]);
    }

    #[test]
    fn no_other_shares_make_the_busiest_cpu_less_busy() {
        for (stays, received) in [(0.3, [1.0, 0.0, 0.0]), (2.0, [0.7, 0.3, 0.0]), (5.0, [0.2, 0.3, 0.5])] {
            let work = Work { stays, moves: 2.0 };
            let receiving: Vec<_> = (0..).zip(received).collect();
            let best = busiest(work, &shares(work, &[0, 1, 2], &receiving), &received);
            for first in 0..=20 {
                for second in 0..=20 - first {
                    let tried = [first, second, 20 - first - second].map(|part| f64::from(part) / 20.0);
                    assert!(busiest(work, &tried, &received) >= best - 1e-9, "{tried:?} beats {best}");
                }
            }
        }
    }

    #[test]
    fn work_that_makes_no_sense_means_equal_shares() {
        for work in [(f64::NAN, 1.0), (-1.0, 1.0), (1.0, 0.0), (1.0, f64::INFINITY)] {
            let work = Work { stays: work.0, moves: work.1 };
            assert_near(&shares(work, &[0, 1], &[(0, 1.0)]), &[0.5, 0.5]);
        }
        assert!(weigh(Work::DEFAULT, &[], &[]).is_empty());
        assert_near(&shares(Work::DEFAULT, &[4, 4], &[]), &[1.0]);
    }
}
