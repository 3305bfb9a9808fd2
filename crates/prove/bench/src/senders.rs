//! Threads that send at a rate: what those of datagrams and those of frames have in common.

use crate::counts::{Counts, Shared};
use crate::gate::Gate;
use crate::machine::Watched;
use crate::pace::{Pace, Pacing, sharpen_sleeps};
use crate::pin::{CpuError, cpu_of, pin};
use crate::report::Interval;
use crate::supervise::{EachSecond, Seen, Supervisor, ThreadError};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What all of them send together.
pub(crate) struct Senders<'a> {
    pub cpus: &'a [u16],
    pub pacing: Pacing,
}

/// What they have sent.
pub(crate) struct Total<T> {
    pub counts: Counts,
    pub time: Duration,
    pub seen: Seen,
    /// What each gives besides.
    pub each: Vec<T>,
}

/// One of them.
pub(crate) struct Sender<'a> {
    gate: &'a Gate,
    cpu: Option<u16>,
    pacing: Pacing,
}

impl Senders<'_> {
    /// Runs `work` in a thread for each of `jobs`, which has this part of the rate.
    pub fn run<J: Send, T: Send, E: Send + From<ThreadError>>(
        &self,
        jobs: Vec<(f64, J)>,
        machine: Option<Watched>,
        stop: &AtomicBool,
        each_second: &mut EachSecond<'_>,
        work: impl Fn(J, Sender<'_>, &AtomicBool, &Shared) -> Result<((Counts, Duration), T), E> + Sync,
    ) -> Result<Total<T>, E> {
        let threads = jobs.len();
        let gate = Gate::new(threads + 1);
        let sender = |(number, (part, job))| {
            let (number, of) = (number as u64, threads as u64);
            let pacing = Pacing {
                rate: self.pacing.rate.map(|rate| rate * part),
                // What is left over goes to the first.
                count: self.pacing.count.map(|count| count / of + u64::from(number < count % of)),
                ..self.pacing
            };
            (Sender { gate: &gate, cpu: cpu_of(self.cpus, number as usize), pacing }, job)
        };
        let jobs = jobs.into_iter().enumerate().map(sender).collect();
        let each_second = &mut |interval: &Interval| each_second(interval);
        let supervisor =
            Supervisor { stop, length: None, is_done: &|_| false, ready: Some(&gate), machine, each_second };
        let (done, seen) =
            supervisor.run(jobs, |(sender, job), end, shared| work(job, sender, end, shared))?;
        let mut total = Total { counts: Counts::default(), time: Duration::ZERO, seen, each: Vec::new() };
        for ((counts, time), each) in done {
            total.counts = total.counts.plus(&counts);
            total.time = total.time.max(time);
            total.each.push(each);
        }
        Ok(total)
    }
}

impl Sender<'_> {
    /// Has `send` send what is due `from` something, `most` at a time, until the end; `begin` goes before, and all begin together.
    pub fn pace<S, E: From<CpuError>>(
        self,
        (most, end, shared): (u64, &AtomicBool, &Shared),
        from: &mut S,
        begin: impl FnOnce(&mut S),
        mut send: impl FnMut(&mut S, u64, &mut Pace, &mut Counts) -> Result<(), E>,
    ) -> Result<(Counts, Duration), E> {
        let pinned = pin(self.cpu);
        sharpen_sleeps();
        begin(from);
        // Whatever became of this one, the others wait for it.
        let start = self.gate.pass();
        pinned?;
        let mut pace = Pace::from(start, self.pacing);
        let mut counts = Counts::default();
        while let Some(due) = pace.next(most, end) {
            send(from, due, &mut pace, &mut counts)?;
            counts.skipped = pace.skipped();
            shared.publish(&counts);
        }
        counts.skipped = pace.skipped();
        shared.conclude(&counts);
        Ok((counts, start.elapsed()))
    }
}
