//! Frames played onto an interface from one CPU.

use crate::pin::pin;
use crate::supervise::ThreadError;
use link::{Transmit, TransmitError};
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The interface, in the calling thread's network namespace.
    pub interface: &'a str,
    /// Frames, from the destination address on, without FCS; played in turn, again and again.
    pub frames: &'a [Vec<u8>],
    /// How many are sent.
    pub count: u64,
    /// Frames a second; `None`: as fast as they go.
    pub rate: Option<u64>,
    /// The CPU that sends, and on a veth pair receives, too; `None`: whichever.
    pub cpu: Option<u16>,
}

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Time it took.
    pub time: Duration,
}

/// The load could not be sent.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The kernel refused a frame, or the interface.
    #[error(transparent)]
    Transmit(#[from] TransmitError),
    /// No thread could be started.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The thread could not be bound to the CPU.
    #[error("CPU {cpu} cannot be chosen for sending: {cause}")]
    Cpu {
        /// Its number.
        cpu: u16,
        /// What the kernel said: `EINVAL` for a CPU that is not there or not allowed.
        cause: io::Error,
    },
}

/// Sends a load, from the calling thread, which is bound to the CPU afterwards.
///
/// # Errors
///
/// The interface, the CPU, or the first frame that was refused.
pub fn send(load: &Load<'_>) -> Result<Sent, LoadError> {
    if let Some(cpu) = load.cpu {
        pin(cpu).map_err(|cause| LoadError::Cpu { cpu, cause })?;
    }
    let mut transmit = Transmit::open(load.interface)?;
    let mut frames = load.frames.iter().map(Vec::as_slice).cycle();
    let mut batch = Vec::with_capacity(Transmit::BATCH);
    let start = Instant::now();
    let mut sent = 0_u64;
    while sent < load.count {
        let size = usize::try_from(load.count - sent).unwrap_or(usize::MAX).min(Transmit::BATCH);
        batch.clear();
        batch.extend(frames.by_ref().take(size));
        if batch.is_empty() {
            break;
        }
        transmit.send(&batch)?;
        sent += batch.len() as u64;
        if let Some(rate) = load.rate {
            let due = Duration::from_secs_f64(sent as f64 / rate.max(1) as f64);
            thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
    Ok(Sent { frames: sent, time: start.elapsed() })
}
