//! How far reading has got, for another thread to look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
struct Shared {
    bytes: AtomicU64,
    cancelled: AtomicBool,
}

/// A handle on a [`crate::Capture`] that another thread can poll; clones show the same reading.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    shared: Arc<Shared>,
    total: Option<u64>,
}

impl Progress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self { shared: Arc::default(), total }
    }

    /// Bytes of the file consumed so far (of a compressed file: compressed bytes).
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Size of the file when it was opened; `None` for pipes.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Makes reading stop after the batches under way, as if the file ended there without a problem.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// [`Progress::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.shared.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
