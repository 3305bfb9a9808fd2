//! The far end of a guest's network adapter.

use anyhow::{Context, Result};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any frame that an adapter here sends, bytes.
const LONGEST: usize = 70_000;
/// How many frames are kept until somebody collects them.
const KEPT: usize = 65_536;
/// How long a sender waits for a guest that takes nothing any more.
const STUCK: Duration = Duration::from_secs(20);

/// What stands behind an adapter instead of a cable: each datagram of a Unix socket is a frame, without FCS. A sender
/// is held up, not robbed, when the other side is slow (unix(7)).
#[derive(Debug)]
pub struct Port {
    socket: UnixDatagram,
    far: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    kept: Mutex<Vec<Vec<u8>>>,
    frames: AtomicU64,
    bytes: AtomicU64,
    ended: AtomicBool,
}

impl Port {
    /// Binds `near` and starts reading; `far` is where QEMU binds.
    pub(crate) fn bind(near: &Path, far: PathBuf) -> Result<Port> {
        let socket = UnixDatagram::bind(near).with_context(|| format!("{}", near.display()))?;
        socket.set_write_timeout(Some(STUCK))?;
        let reader = socket.try_clone()?;
        // So that the reader sees the port's end.
        reader.set_read_timeout(Some(Duration::from_millis(100)))?;
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        thread::Builder::new().name("port".to_owned()).spawn(move || own.receive(&reader))?;
        Ok(Port { socket, far, shared })
    }

    /// Sends frames into the adapter, `rate` a second, and says how long it took. A rate of zero is as fast as the
    /// adapter takes them; the emulation reads many frames before the guest has handled one, so that a burst longer
    /// than the adapter's ring loses frames there.
    ///
    /// # Errors
    ///
    /// The guest has ended, or has taken nothing for 20 s.
    pub fn inject<F: AsRef<[u8]>>(&self, frames: impl IntoIterator<Item = F>, rate: u32) -> Result<Duration> {
        let start = Instant::now();
        for (number, frame) in frames.into_iter().enumerate() {
            if rate > 0 {
                let due = Duration::from_secs(1).mul_f64(number as f64 / f64::from(rate));
                // Sleeping is coarse; frames that are less than this early go out together.
                if let Some(early) = due.checked_sub(start.elapsed())
                    && early > Duration::from_micros(200)
                {
                    thread::sleep(early);
                }
            }
            self.socket.send_to(frame.as_ref(), &self.far).with_context(|| format!("frame {number}"))?;
        }
        Ok(start.elapsed())
    }

    /// How many frames the adapter has sent since the guest was booted.
    pub fn received(&self) -> u64 {
        self.shared.frames.load(Ordering::Relaxed)
    }

    /// How many bytes these frames had.
    pub fn received_octets(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// The frames that the adapter has sent and nobody has collected yet, at most 65,536.
    pub fn collect(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.shared.kept())
    }

    /// Waits until a frame is there of which `is_match` says yes, and takes it with all before it.
    ///
    /// # Errors
    ///
    /// None came within `limit`.
    pub fn await_frame(&self, limit: Duration, is_match: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>> {
        let start = Instant::now();
        let mut seen = 0;
        loop {
            for frame in self.collect() {
                seen += 1;
                if is_match(&frame) {
                    return Ok(frame);
                }
            }
            anyhow::ensure!(start.elapsed() < limit, "none of {seen} frames in {limit:?} matched");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, socket: &UnixDatagram) {
        let mut buffer = vec![0; LONGEST];
        while !self.ended.load(Ordering::Relaxed) {
            match socket.recv(&mut buffer) {
                Ok(length) => {
                    let frame = buffer.get(..length).unwrap_or_default();
                    self.bytes.fetch_add(length as u64, Ordering::Relaxed);
                    self.frames.fetch_add(1, Ordering::Relaxed);
                    let mut kept = self.kept();
                    if kept.len() < KEPT {
                        kept.push(frame.to_vec());
                    }
                }
                Err(error) if is_pause(&error) => {}
                Err(_) => return,
            }
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_go_both_ways_and_are_kept_until_collected() {
        let folder = tempfile::tempdir().expect("a folder");
        let (near, far) = (folder.path().join("near"), folder.path().join("far"));
        let adapter = UnixDatagram::bind(&far).expect("the adapter's end");
        let port = Port::bind(&near, far).expect("a port");
        adapter.send_to(&[1; 60], &near).expect("sent");
        adapter.send_to(&[2; 1514], &near).expect("sent");
        let second = port.await_frame(Duration::from_secs(5), |frame| frame.len() == 1514);
        assert_eq!(second.expect("the second"), [2; 1514]);
        assert_eq!((port.received(), port.received_octets()), (2, 1574));
        let waited = port.inject([[3; 60], [4; 60]], 100).expect("injected");
        assert!(waited >= Duration::from_millis(9), "{waited:?}");
        let mut frame = [0; 100];
        assert_eq!(adapter.recv(&mut frame).expect("a frame"), 60);
        assert_eq!(frame.first(), Some(&3));
        assert!(port.collect().is_empty());
    }

    #[test]
    fn a_guest_that_has_ended_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let port = Port::bind(&folder.path().join("near"), folder.path().join("nobody")).expect("a port");
        let error = port.inject([[0; 60]], 0).expect_err("nobody there");
        assert!(error.to_string().contains("frame 0"), "{error}");
        let error = port.await_frame(Duration::from_millis(10), |_| true).expect_err("no frame");
        assert!(error.to_string().starts_with("none of 0 frames"), "{error}");
    }
}
