//! Frames that come in while something is looked at.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::netns::Namespace;

/// Sends `frames` out of an interface again and again, with pauses, while `work` runs.
pub fn under_load<T>(
    namespace: &Namespace,
    interface: &str,
    frames: &[Vec<u8>],
    work: impl FnOnce() -> T,
) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                namespace.send(interface, frames).expect("sent");
                thread::sleep(Duration::from_millis(20));
            }
        });
        let result = catch_unwind(AssertUnwindSafe(work));
        done.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}
