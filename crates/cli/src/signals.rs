//! Signals that end a command early, with what it has so far.

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set when a signal asks for the end. A second one changes nothing: timeout(1) sends each twice.
pub fn stop_by_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).with_context(|| format!("signal {signal}"))?;
    }
    Ok(stop)
}
