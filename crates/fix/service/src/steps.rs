//! Where a process can be killed: the steps between which the state on the disk differs.

/// One more step is done. A test kills the process at a step of its choice (`RXLANE_KILL_AT_STEP`, from 1); a release has
/// no such thing.
#[cfg(debug_assertions)]
pub fn step() {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static LAST: LazyLock<u64> = LazyLock::new(|| {
        let step = std::env::var("RXLANE_KILL_AT_STEP").ok();
        step.and_then(|step| step.parse().ok()).unwrap_or_default()
    });
    static STEPS: AtomicU64 = AtomicU64::new(0);
    if *LAST > 0 && STEPS.fetch_add(1, Ordering::SeqCst) + 1 == *LAST {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// See above.
#[cfg(not(debug_assertions))]
pub const fn step() {}
