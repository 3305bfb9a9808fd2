//! A cable between two adapters of a guest that keeps what passes, and captures made of it.
//!
//! Frames are recorded between the adapters, where nothing has offloads: tags stand in the frame, checksums are
//! complete, segments have the size that the wire has. Every frame is there once, answers behind what they answer. Times
//! are those at which the harness passed a frame on; they say order and rough distance, not a network's timing.
//!
//! An adapter fills a short frame up to 60 bytes (IEEE 802.3 section 4.2.3.3; `igb` switches that on with TCTL.PSP) and
//! appends the FCS. The emulated one does neither: the cable fills frames up, and there is no FCS.

mod exchange;
mod lines;
mod peers;
pub mod shape;
pub mod stage;
pub mod summary;
mod tshark;

use crate::guest::Guest;
use crate::port::Port;
use anyhow::{Context, Result, bail, ensure};
use capture::{LinkType, Resolution, Writer};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the far ends of both adapters are looked at.
const POLL: Duration = Duration::from_micros(500);

/// The shortest frame, bytes without FCS, however many tags it has.
pub const SHORTEST: usize = 60;

/// A frame that passed the cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When, nanoseconds since 1970-01-01 UTC.
    pub time: i64,
    /// From the destination address on with padding, without FCS.
    pub bytes: Vec<u8>,
}

/// The cable: what one adapter sends, the other receives.
#[derive(Debug)]
pub struct Cable<'a> {
    ends: [&'a Port; 2],
    shared: Shared,
}

#[derive(Debug, Default)]
struct Shared {
    frames: Mutex<Vec<Frame>>,
    ended: AtomicBool,
}

/// Connects two adapters at whose far ends the harness is, for as long as `work` takes.
///
/// # Errors
///
/// Those of `work`; there are no such adapters; the guest has ended or takes no frames.
pub fn connected<T>(
    guest: &Guest,
    one: &str,
    other: &str,
    work: impl FnOnce(&Cable<'_>) -> Result<T>,
) -> Result<T> {
    let cable = Cable { ends: [guest.port(one)?, guest.port(other)?], shared: Shared::default() };
    thread::scope(|scope| {
        let relay = scope.spawn(|| cable.relay());
        // A panic in `work` must end the relay too, or the scope would wait for it for ever.
        let ending = Ending(&cable.shared.ended);
        let done = work(&cable);
        drop(ending);
        match relay.join() {
            Ok(relayed) => done.and_then(|done| relayed.context("the cable").map(|()| done)),
            Err(_) => bail!("the cable's thread panicked"),
        }
    })
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Cable<'_> {
    fn relay(&self) -> Result<()> {
        let [one, other] = self.ends;
        while !self.shared.ended.load(Ordering::Relaxed) {
            for (from, to) in [(one, other), (other, one)] {
                let mut frames = from.collect();
                if frames.is_empty() {
                    continue;
                }
                frames.iter_mut().for_each(fill_up);
                // Recorded before it is passed on, so that an answer stands behind it.
                let time = now()?;
                self.frames().extend(frames.iter().map(|bytes| Frame { time, bytes: bytes.clone() }));
                to.inject(frames, 0)?;
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn frames(&self) -> MutexGuard<'_, Vec<Frame>> {
        self.shared.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has passed since the last call.
    pub fn take(&self) -> Vec<Frame> {
        std::mem::take(&mut *self.frames())
    }

    /// Waits until nothing has passed for the time `quiet`, at most `limit`.
    ///
    /// # Errors
    ///
    /// Frames pass all the time.
    pub fn await_quiet(&self, quiet: Duration, limit: Duration) -> Result<()> {
        let start = Instant::now();
        let mut last = (self.frames().len(), Instant::now());
        while last.1.elapsed() < quiet {
            ensure!(start.elapsed() < limit, "frames pass all the time, {} of them in {limit:?}", last.0);
            thread::sleep(Duration::from_millis(20));
            let now = self.frames().len();
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
        Ok(())
    }
}

fn fill_up(frame: &mut Vec<u8>) {
    if frame.len() < SHORTEST {
        frame.resize(SHORTEST, 0);
    }
}

fn now() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    i64::try_from(since.as_nanos()).context("the clock")
}

/// Writes a classic pcap file with microseconds, and anew if it is there.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(path: &Path, frames: &[Frame]) -> Result<()> {
    let name = || format!("{}", path.display());
    let file = File::create(path).with_context(name)?;
    let mut writer = Writer::pcap(file, LinkType::Ethernet, Resolution::Microseconds).with_context(name)?;
    for frame in frames {
        let length = u32::try_from(frame.bytes.len()).with_context(name)?;
        writer.write(frame.time, &frame.bytes, length).with_context(name)?;
    }
    writer.finish().map(drop).with_context(name)
}
