//! How far reading has got, for another thread to look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A handle on a [`crate::Capture`] that another thread can poll; clones show the same reading.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    bytes: Arc<AtomicU64>,
    total: Option<u64>,
}

impl Progress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self { bytes: Arc::default(), total }
    }

    /// Bytes of the file consumed so far (of a compressed file: compressed bytes).
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Size of the file when it was opened; `None` for pipes.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
