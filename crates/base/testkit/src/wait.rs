//! Waiting for events.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited for what has to come: far longer than it takes where three others use the CPUs.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks `probe` again and again until it gives something. `what` may read what there is to say when that never happens
/// ([`std::fmt::from_fn`]).
///
/// # Panics
///
/// After [`PATIENCE`], with `what` was waited for.
#[track_caller]
pub fn wait_for<T>(what: impl Display, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited {} s in vain: {what}", PATIENCE.as_secs());
        thread::sleep(PAUSE);
    }
}

/// Waits until it is so.
///
/// # Panics
///
/// As [`wait_for`].
#[track_caller]
pub fn wait_until(what: impl Display, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_at_the_third_look_is_handed_on() {
        let mut looks = 0;
        let found = wait_for("three looks", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
    }
}
