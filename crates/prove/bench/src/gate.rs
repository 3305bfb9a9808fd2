//! Where threads wait for each other, and from which their time counts.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// As `std::sync::Barrier`, but that it opens once, for good, and also when not all come.
#[derive(Debug)]
pub struct Gate {
    missing: Mutex<usize>,
    opened: Condvar,
    since: OnceLock<Instant>,
}

impl Gate {
    pub fn new(number: usize) -> Gate {
        Gate { missing: Mutex::new(number), opened: Condvar::new(), since: OnceLock::new() }
    }

    /// Waits until all have come; when the first of them went on, which is the same for all: where there are more threads than
    /// CPUs the last goes on much later.
    pub fn pass(&self) -> Instant {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        if *missing == 0 {
            self.opened.notify_all();
        }
        let missing =
            self.opened.wait_while(missing, |missing| *missing > 0).unwrap_or_else(PoisonError::into_inner);
        drop(missing);
        *self.since.get_or_init(Instant::now)
    }

    /// Opens it for those who wait: others will not come.
    pub fn open(&self) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        self.opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn all_pass_together_or_when_it_is_opened() {
        let gate = Gate::new(3);
        let times: Vec<Instant> = thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| gate.pass())).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(times.iter().all(|time| *time == times[0]));
        let gate = Gate::new(3);
        thread::scope(|scope| {
            let waits = scope.spawn(|| gate.pass());
            gate.open();
            waits.join().expect("no panic");
        });
    }
}
