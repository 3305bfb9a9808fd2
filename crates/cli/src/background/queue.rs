//! Lines that wait for a thread which writes them: as many as fit a number of octets, so that who hands them over never waits.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the writer may take for one of the last lines.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long for all of them.
const LONGEST: Duration = Duration::from_secs(10);

/// See the [module](self). Clones are the same queue.
#[derive(Clone, Debug)]
pub struct Queue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Octets that may wait.
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    octets: usize,
    /// Lines that were taken so far.
    taken: u64,
    is_closed: bool,
    has_ended: bool,
}

impl Queue {
    /// Of so many octets.
    pub fn new(most: usize) -> Queue {
        let shared = Shared { most, state: Mutex::default(), changed: Condvar::new() };
        Queue(Arc::new(shared))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a line over, without waiting.
    ///
    /// # Errors
    ///
    /// The line, where it does not fit any more or nothing is taken any more.
    pub fn push(&self, line: String) -> Result<(), String> {
        let mut state = self.state();
        if state.is_closed || state.octets + line.len() > self.0.most {
            return Err(line);
        }
        state.octets += line.len();
        state.lines.push_back(line);
        self.0.changed.notify_all();
        Ok(())
    }

    /// The next line, and whether there are no others behind it; waits for one. `None`: there will be none. The thread that
    /// writes asks, and holds [`Queue::writer`].
    pub fn next(&self) -> Option<(String, bool)> {
        let mut state = self.state();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.octets -= line.len();
                state.taken += 1;
                self.0.changed.notify_all();
                return Some((line, state.lines.is_empty()));
            }
            if state.is_closed {
                return None;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Held by the thread that writes until it ends, however it does.
    pub fn writer(&self) -> Writer {
        Writer(self.clone())
    }

    /// Takes no more, and waits until all is written, as long as it goes on. What is left then, beside a line that is perhaps
    /// just being written; `None`: everything is written.
    pub fn finish(&self) -> Option<Vec<String>> {
        let mut state = self.state();
        state.is_closed = true;
        self.0.changed.notify_all();
        let (end, mut taken, mut until) = (Instant::now() + LONGEST, state.taken, Instant::now() + PATIENCE);
        while !state.has_ended {
            let now = Instant::now();
            if state.taken != taken {
                (taken, until) = (state.taken, now + PATIENCE);
            }
            let left = until.min(end).saturating_duration_since(now);
            if left.is_zero() {
                state.octets = 0;
                return Some(state.lines.drain(..).collect());
            }
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

/// See [`Queue::writer`].
#[derive(Debug)]
pub struct Writer(Queue);

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.0.state();
        (state.is_closed, state.has_ended) = (true, true);
        self.0.0.changed.notify_all();
    }
}
