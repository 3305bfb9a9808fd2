//! An allocator that counts, for tests of what must allocate nothing, and for measurements. A program makes it its own:
//!
//! ```
//! use rxlane_kernel::allocations::{self, Counting};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let before = allocations::of_this_thread();
//! let text = std::hint::black_box("text".to_owned());
//! assert_eq!(allocations::of_this_thread() - before, 1);
//! # drop(text);
//! ```

mod sys;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub use sys::Counting;

static ALL: AtomicU64 = AtomicU64::new(0);
static IN_USE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Allocations of all threads so far.
pub fn of_all_threads() -> u64 {
    ALL.load(Ordering::Relaxed)
}

/// Allocations of this thread so far.
pub fn of_this_thread() -> u64 {
    OWN.get()
}

/// Bytes in use, as they were requested.
pub fn bytes_in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

fn count(bytes: usize) {
    IN_USE.fetch_add(bytes, Ordering::Relaxed);
    ALL.fetch_add(1, Ordering::Relaxed);
    // A thread that ends may have no place for its number any more.
    let _ = OWN.try_with(|own| own.set(own.get() + 1));
}

fn freed(bytes: usize) {
    IN_USE.fetch_sub(bytes, Ordering::Relaxed);
}
