//! Which CPUs get which buckets when steering begins.

use crate::weights::{self, Receiving, Weight, Work};
use kernel::cpu::CpuSet;
use std::collections::BTreeMap;
use std::time::Duration;
use xdp::layout::{BUCKETS, CPUS};

/// Frames that the queue in front of each CPU holds, where nobody says otherwise.
///
/// It has to cover the time until a sleeping CPU begins to work: 133 µs out of a deep power-saving state are 1,979
/// frames of 64 bytes at 10 Gbit/s (14.88 million a second). Of frames of 1,500 bytes it holds 25 ms at 1 Gbit/s,
/// which bounds the delay that an overloaded CPU adds.
pub const QUEUE_SIZE: u32 = 2048;

/// The longest queue that the kernel allows (`__cpu_map_entry_alloc` in `kernel/bpf/cpumap.c`: 16,384).
pub const QUEUE_SIZE_MAX: u32 = 16_384;

/// How long a frame may take from its counting on the CPU it was sent to until nothing of its flow can overtake it.
///
/// Longer than a slice of the scheduler (about 3 ms), in which the thread that delivers may be held up between both,
/// and than the stack holds back what it may still coalesce (`gro_flush_timeout`, microseconds where it is set).
/// The longer, the fewer buckets are ever quiet enough to move.
pub const HOLD: Duration = Duration::from_millis(4);

#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// CPUs that somebody named; `None`: choose.
    pub cpus: Option<&'a [u32]>,
    pub online: &'a [u32],
    /// CPUs of each NUMA node; empty: unknown, or there is one node.
    pub nodes: &'a BTreeMap<u32, Vec<u32>>,
    /// CPUs that the interface interrupts; empty: unknown, and then no CPU is excluded.
    pub receiving: &'a [Receiving],
    pub work: Work,
    pub even: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The targets with their shares of the steered frames, each above 0, by number.
    pub weights: Vec<Weight>,
    /// The CPU of each bucket; neighbours differ where shares allow it.
    pub buckets: [u32; BUCKETS],
    /// CPUs that are none of the targets, and why, by number.
    pub left_out: Vec<(u32, LeftOut)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    Receives,
    OtherNode,
    TooLittle,
}

impl LeftOut {
    /// The reason in words, to follow "CPU 0 is left out: ".
    pub const fn reason(self) -> &'static str {
        match self {
            LeftOut::Receives => "receiving is work enough for it",
            LeftOut::OtherNode => "it is on another NUMA node than the CPUs that receive",
            LeftOut::TooLittle => "its share is less than half a bucket",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("CPU {cpu} is not online (online: {online}); name others")]
    Offline { cpu: u32, online: String },
    #[error("CPU {0} is beyond the {CPUS} CPUs that steering has places for; name others")]
    TooHigh(u32),
    #[error("no CPU is named to steer to: --cpus takes a list such as 0-3,8")]
    NoCpu,
}

/// Chooses targets and distributes the buckets.
///
/// Named CPUs are the only candidates; otherwise those online on the NUMA nodes of the receiving CPUs, where at least
/// two are, else all that are online. Among the candidates, a CPU that receives gets less or nothing
/// ([`weights::weigh`]). Which CPUs share a core is not considered.
pub fn plan(request: &Request<'_>) -> Result<Plan, PlanError> {
    let mut left_out = Vec::new();
    let candidates = candidates(request, &mut left_out)?;
    let shares = match request.even {
        true => weights::even(&candidates),
        false => weights::weigh(request.work, &candidates, request.receiving),
    };
    let seats = seats(&shares);
    let mut weights = Vec::new();
    for (weight, &seats) in shares.iter().zip(&seats) {
        match (seats, weight.share > 0.0) {
            (0, true) => left_out.push((weight.cpu, LeftOut::TooLittle)),
            (0, false) => left_out.push((weight.cpu, LeftOut::Receives)),
            _ => weights.push((*weight, seats)),
        }
    }
    let buckets = deal(&weights);
    let weights = weights.into_iter().map(|(weight, _)| weight).collect();
    left_out.sort_by_key(|&(cpu, _)| cpu);
    Ok(Plan { weights: whole(weights), buckets, left_out })
}

fn candidates(request: &Request<'_>, left_out: &mut Vec<(u32, LeftOut)>) -> Result<Vec<u32>, PlanError> {
    let mut named: Vec<u32> = match request.cpus {
        Some(cpus) => cpus.to_vec(),
        None => request.online.iter().copied().filter(|&cpu| (cpu as usize) < CPUS).collect(),
    };
    named.sort_unstable();
    named.dedup();
    if let Some(&cpu) = named.iter().find(|&&cpu| cpu as usize >= CPUS) {
        return Err(PlanError::TooHigh(cpu));
    }
    if let Some(&cpu) = named.iter().find(|cpu| !request.online.contains(cpu)) {
        return Err(PlanError::Offline { cpu, online: ranges(request.online) });
    }
    if request.cpus.is_none() {
        let near = |cpu: &u32| is_near(*cpu, request);
        if named.iter().filter(|cpu| near(cpu)).count() >= 2 {
            left_out.extend(named.iter().filter(|cpu| !near(cpu)).map(|&cpu| (cpu, LeftOut::OtherNode)));
            named.retain(near);
        }
    }
    if named.is_empty() { Err(PlanError::NoCpu) } else { Ok(named) }
}

/// Whether the CPU is on the NUMA node of one that receives. True where nodes or receiving CPUs are not known.
fn is_near(cpu: u32, request: &Request<'_>) -> bool {
    let of = |cpu: u32| request.nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)).map(|(node, _)| *node);
    let nodes: Vec<u32> = request.receiving.iter().filter_map(|receiving| of(receiving.cpu)).collect();
    nodes.is_empty() || of(cpu).is_none_or(|node| nodes.contains(&node))
}

/// Buckets for each share: the whole part, and one more for the largest remainders (Hamilton's method).
fn seats(weights: &[Weight]) -> Vec<usize> {
    let quotas: Vec<f64> = weights.iter().map(|weight| weight.share * BUCKETS as f64).collect();
    let mut seats: Vec<usize> = quotas.iter().map(|quota| quota.floor() as usize).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by(|&a, &b| quotas[b].fract().total_cmp(&quotas[a].fract()));
    let missing = BUCKETS.saturating_sub(seats.iter().sum());
    for &index in by_remainder.iter().cycle().filter(|&&index| quotas[index] > 0.0).take(missing) {
        seats[index] += 1;
    }
    seats
}

/// Spreads each CPU's buckets evenly over the table: in each round all gain their seats, the richest gets the
/// bucket and pays for all.
fn deal(weights: &[(Weight, usize)]) -> [u32; BUCKETS] {
    let mut credit = vec![0_i64; weights.len()];
    std::array::from_fn(|_| {
        for (credit, (_, seats)) in credit.iter_mut().zip(weights) {
            *credit += *seats as i64;
        }
        let richest = (0..weights.len()).rev().max_by_key(|&index| credit[index]).unwrap_or(0);
        credit[richest] -= BUCKETS as i64;
        weights[richest].0.cpu
    })
}

/// The shares of those that are left, together 1 again.
fn whole(mut weights: Vec<Weight>) -> Vec<Weight> {
    let sum: f64 = weights.iter().map(|weight| weight.share).sum();
    weights.iter_mut().for_each(|weight| weight.share /= sum);
    weights
}

/// `0-2,5`.
fn ranges(cpus: &[u32]) -> String {
    let set = CpuSet::new(cpus.iter().copied()).unwrap_or_default();
    if set.is_empty() { "none".to_owned() } else { set.list() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: BTreeMap<u32, Vec<u32>> = BTreeMap::new();

    fn request<'a>(
        online: &'a [u32],
        receiving: &'a [Receiving],
        nodes: &'a BTreeMap<u32, Vec<u32>>,
    ) -> Request<'a> {
        let work = Work { stays: 1.0, moves: 9.0, own: 10.0 };
        Request { cpus: None, online, nodes, receiving, work, even: false }
    }

    fn counts(plan: &Plan) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        plan.buckets.iter().for_each(|&cpu| *counts.entry(cpu).or_default() += 1);
        counts
    }

    #[test]
    fn buckets_are_distributed_by_largest_remainder_and_neighbours_differ() {
        let nodes = UNKNOWN;
        let receiving = [Receiving { cpu: 0, share: 1.0 }];
        let plan = plan(&request(&[0, 1, 2, 3], &receiving, &nodes)).expect("a plan");
        // Shares 1/6 and thrice 5/18 of 256: 42.67 and 71.11.
        assert_eq!(counts(&plan), BTreeMap::from([(0, 43), (1, 71), (2, 71), (3, 71)]));
        assert!(plan.buckets.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", plan.buckets);
        assert!(plan.left_out.is_empty());
    }

    #[test]
    fn seats_are_always_all_the_buckets() {
        for cpus in 1..=300_u32 {
            let cpus: Vec<u32> = (0..cpus).collect();
            let seats = seats(&weights::even(&cpus));
            assert_eq!(seats.iter().sum::<usize>(), BUCKETS);
        }
    }

    #[test]
    fn more_cpus_than_buckets_leave_some_out() {
        let (nodes, online) = (UNKNOWN, (0..300).collect::<Vec<u32>>());
        let plan = plan(&request(&online, &[], &nodes)).expect("a plan");
        assert_eq!((plan.weights.len(), plan.left_out.len()), (256, 44));
        assert!(plan.left_out.iter().all(|&(_, why)| why == LeftOut::TooLittle));
        assert!((plan.weights.iter().map(|weight| weight.share).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_receiving_cpu_is_left_out_unless_shares_are_to_be_equal() {
        let (nodes, receiving) = (UNKNOWN, [Receiving { cpu: 2, share: 1.0 }]);
        let mut request = request(&[0, 1, 2], &receiving, &nodes);
        request.work = Work { stays: 1.0, moves: 1.0, own: 2.0 };
        let weighed = plan(&request).expect("a plan");
        assert_eq!(weighed.left_out, [(2, LeftOut::Receives)]);
        assert_eq!(counts(&weighed), BTreeMap::from([(0, 128), (1, 128)]));
        request.even = true;
        let even = plan(&request).expect("a plan");
        assert_eq!((even.left_out.len(), counts(&even).len()), (0, 3));
    }

    #[test]
    fn named_cpus_are_the_only_ones_and_must_be_online() {
        let nodes = UNKNOWN;
        let mut request = request(&[0, 1, 2, 5], &[], &nodes);
        request.cpus = Some(&[5, 1, 1]);
        assert_eq!(counts(&plan(&request).expect("a plan")), BTreeMap::from([(1, 128), (5, 128)]));
        request.cpus = Some(&[3]);
        let error = plan(&request).expect_err("offline").to_string();
        assert_eq!(error, "CPU 3 is not online (online: 0-2,5); name others");
        request.cpus = Some(&[CPUS as u32]);
        assert_eq!(plan(&request), Err(PlanError::TooHigh(CPUS as u32)));
        request.cpus = Some(&[]);
        assert_eq!(plan(&request), Err(PlanError::NoCpu));
    }

    #[test]
    fn cpus_near_the_receiving_one_are_preferred_where_two_are() {
        let nodes = BTreeMap::from([(0, vec![0, 1, 2]), (1, vec![3, 4])]);
        let receiving = [Receiving { cpu: 1, share: 1.0 }];
        let mut request = request(&[0, 1, 2, 3, 4], &receiving, &nodes);
        let near = plan(&request).expect("a plan");
        assert_eq!(near.left_out, [(3, LeftOut::OtherNode), (4, LeftOut::OtherNode)]);
        request.online = &[1, 3, 4];
        assert_eq!(plan(&request).expect("a plan").weights.len(), 3);
        // Nobody said which CPU receives, or where it is.
        request.receiving = &[];
        assert!(plan(&request).expect("a plan").left_out.is_empty());
    }
}
