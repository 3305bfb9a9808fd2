//! Threads that send or receive, and the one that looks at them each second.

use crate::counts::{Counts, Shared, sum};
use crate::gate::Gate;
use crate::machine::{Usage, Watched};
use crate::report::Interval;
use std::io;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How often it is looked whether it should end.
const LOOK: Duration = Duration::from_millis(20);
const SECOND: Duration = Duration::from_secs(1);
/// A rest at the end that is shorter has no line of its own.
const LEAST: Duration = Duration::from_millis(100);

/// There are no more threads to be had, or no memory for one.
#[derive(Debug, thiserror::Error)]
#[error(
    "no thread can be started: {0}; fewer threads take less memory, and `ulimit -u` says how many there may be"
)]
pub struct ThreadError(pub io::Error);

/// Starts a thread of a scope. Where there are none to be had, that is an error and no panic.
pub(crate) fn started<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, ThreadError> {
    thread::Builder::new().spawn_scoped(scope, work).map_err(ThreadError)
}

/// What a thread has come to. Its panic is that of the calling one.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Sets a flag when it is dropped, so that whoever reads it ends, however a scope is left.
pub(crate) struct EndWhenDropped<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Hears of each second, and may end it all.
pub type EachSecond<'a> = dyn FnMut(&Interval) -> ControlFlow<()> + 'a;

pub struct Supervisor<'a> {
    /// Set by whoever wants it to end.
    pub stop: &'a AtomicBool,
    /// Ends it after this time.
    pub length: Option<Duration>,
    /// Ends it when this says so.
    pub is_done: &'a dyn Fn(&Counts) -> bool,
    /// Where threads wait until all are ready, and this one with them: time counts from then on.
    pub ready: Option<&'a Gate>,
    pub machine: Option<Watched>,
    /// Called with each second.
    pub each_second: &'a mut EachSecond<'a>,
}

#[derive(Debug, Default)]
pub struct Seen {
    /// Second by second.
    pub intervals: Vec<Interval>,
    pub usage: Usage,
    pub time: Duration,
}

impl Supervisor<'_> {
    /// Runs `work` in a thread for each of `jobs` until all have come to their ends, or are to end. Each is given the flag
    /// that says so, and the place where it leaves its counts. Error: the first of a thread, or that one cannot be started;
    /// the others are ended then.
    pub fn run<J: Send, T: Send, E: Send + From<ThreadError>>(
        mut self,
        jobs: Vec<J>,
        work: impl Fn(J, &AtomicBool, &Shared) -> Result<T, E> + Sync,
    ) -> Result<(Vec<T>, Seen), E> {
        let end = AtomicBool::new(false);
        let shared: Vec<Shared> = jobs.iter().map(|_| Shared::default()).collect();
        thread::scope(|scope| {
            let (end, work) = (&end, &work);
            let mut threads: Vec<ScopedJoinHandle<'_, Result<T, E>>> = Vec::new();
            for (job, shared) in jobs.into_iter().zip(&shared) {
                let run = move || {
                    let result = work(job, end, shared);
                    if result.is_err() {
                        end.store(true, Ordering::Relaxed);
                    }
                    result
                };
                let started = started(scope, run).inspect_err(|_| {
                    // Those that were started wait for this one.
                    end.store(true, Ordering::Relaxed);
                    self.ready.into_iter().for_each(Gate::open);
                });
                threads.push(started?);
            }
            let seen = self.watch(&threads, &shared, end);
            Ok((threads.into_iter().map(joined).collect::<Result<Vec<T>, E>>()?, seen))
        })
    }

    fn watch<T>(&mut self, threads: &[ScopedJoinHandle<'_, T>], shared: &[Shared], end: &AtomicBool) -> Seen {
        let start = self.ready.map_or_else(Instant::now, Gate::pass);
        // What the machine did before counts for nothing; that the interface was removed shows in the first second.
        if let Some(machine) = &mut self.machine {
            let _ = machine.step();
        }
        let mut seen = Seen::default();
        let (mut before, mut from) = (Counts::default(), Duration::ZERO);
        let (mut former, mut since) = (before, from);
        loop {
            let is_over = threads.iter().all(ScopedJoinHandle::is_finished);
            let now = start.elapsed();
            if now >= from + SECOND || (is_over && (now >= from + LEAST || seen.intervals.is_empty())) {
                let counts = sum(shared);
                let interval = Interval::between(&before, &counts, now, now - from);
                self.look(&mut seen, &interval);
                // What fails at once has no second to report.
                let is_nothing = is_over && seen.intervals.is_empty() && counts.packets == 0;
                if !is_nothing && (self.each_second)(&interval).is_break() {
                    end.store(true, Ordering::Relaxed);
                }
                seen.intervals.push(interval);
                (former, since) = (before, from);
                (before, from) = (counts, now);
            }
            if is_over {
                // What came in the short rest belongs to the last second.
                if let Some(last) = seen.intervals.last_mut() {
                    *last = Interval::between(&former, &sum(shared), now, now - since);
                }
                seen.time = now;
                return seen;
            }
            let is_late = self.length.is_some_and(|length| now >= length);
            if is_late || self.stop.load(Ordering::Relaxed) || (self.is_done)(&sum(shared)) {
                end.store(true, Ordering::Relaxed);
            }
            let next = self.length.map_or(from + SECOND, |length| (from + SECOND).min(length.max(now)));
            thread::sleep(next.saturating_sub(start.elapsed()).min(LOOK).max(Duration::from_millis(1)));
        }
    }

    /// What the machine did counts where packets went.
    fn look(&mut self, seen: &mut Seen, interval: &Interval) {
        let Some(machine) = &mut self.machine else { return };
        match machine.step() {
            Ok(usage) if interval.packets > 0 => seen.usage.add(&usage),
            Ok(_) => {}
            // An interface that was removed has nothing more to report.
            Err(_) => self.machine = None,
        }
    }
}
