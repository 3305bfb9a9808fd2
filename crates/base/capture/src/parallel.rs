//! Reading with several threads.
//!
//! A regular file is cut into chunks of equal size. Each thread claims the next chunk and reads it into its own
//! buffer, all at the same time. Only the walk over the record headers must wait for the chunk before,
//! because nobody can know where a record starts but from the one before it; it is short and passes from
//! chunk to chunk as a baton. Then the threads work on their records, again at the same time. Anything else (a pipe,
//! packed data) is read under a lock, in order, by whichever thread needs work.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crate::batch::Batch;
use crate::stream::Stream;
use crate::walk::{Step, Walker, Window};
use crate::{Capture, Reason, Report};

/// Bytes read beyond a chunk, so that a record reaching over its end seldom needs a second read. Smaller
/// chunks overlap less.
const OVERLAP: usize = 4096;

/// Looks at the turn before a thread goes to sleep; a walk takes a few microseconds.
const SPINS: u32 = 200;

/// Address space that must be free for a further worker to start: its buffer and the caller's tables.
const WORKER_MEMORY: usize = 2 << 20;

impl Capture {
    /// Reads the rest of the capture with `workers` threads (at least one; fewer if the file has fewer chunks,
    /// or the system does not give so many). Each gets a state of its own from `init`, which gets the
    /// worker's number from 0, and hands every batch it takes to `each`. The states are returned in order of
    /// that number. A worker's batches come in file order; what order the workers take them in is not defined, but
    /// [`Batch::first_frame`] and [`crate::Frame::number`] are exact. Memory is bounded by the chunk size,
    /// whatever the size of the file.
    ///
    /// ```
    /// # use rxlane_capture::{Capture, LinkType, Resolution, Writer};
    /// # let mut writer = Writer::pcapng(Vec::new(), LinkType::Ethernet, Resolution::Microseconds)?;
    /// # (0..9).try_for_each(|at| writer.write(at, &[0; 60], 60))?;
    /// # let input = std::io::Cursor::new(writer.finish()?);
    /// let capture = Capture::from_reader(input, "example.pcapng")?;
    /// let (bytes, report) = capture.read_parallel(2, |_| 0u64, |bytes, batch| {
    ///     *bytes += batch.frames().map(|frame| u64::from(frame.wire_len)).sum::<u64>();
    /// });
    /// assert_eq!((report.frames, bytes.iter().sum::<u64>()), (9, 540));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If `init` or `each` panics, once all workers have stopped.
    pub fn read_parallel<S: Send>(
        mut self,
        workers: usize,
        init: impl Fn(usize) -> S + Sync,
        each: impl Fn(&mut S, &Batch) + Sync,
    ) -> (Vec<S>, Report) {
        let parallel_file = self.file.take_if(|_| workers > 1 && self.walker.frames == 0);
        let (states, walker) = match parallel_file {
            Some((file, size)) => {
                self.walker.progress.set(self.walker.offset);
                let chain = Chain::new(file, size, self.chunk, self.walker);
                let workers = workers.min(chain.chunks());
                let states = on_threads(workers, &|worker| {
                    let mut state = init(worker);
                    chain.work(|batch| each(&mut state, batch));
                    state
                });
                (states, chain.into_walker())
            }
            None => {
                let queue = Mutex::new((self.stream, self.walker));
                let states = on_threads(workers.max(1), &|worker| {
                    let mut state = init(worker);
                    take_in_turn(&queue, self.chunk, |batch| each(&mut state, batch));
                    state
                });
                (states, queue.into_inner().unwrap_or_else(PoisonError::into_inner).1)
            }
        };
        (states, walker.report())
    }
}

/// Runs `work` once per worker, the first on the calling thread. Where the system gives no more threads or
/// memory (a limit of the container or the user), the workers there are do the work.
fn on_threads<S: Send>(workers: usize, work: &(impl Fn(usize) -> S + Sync)) -> Vec<S> {
    let all_started = Mutex::new(());
    thread::scope(|scope| {
        let starting = all_started.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others = Vec::new();
        let mut kept_free = Vec::new();
        for worker in 1..workers {
            // An allocation that fails later ends the process: what the worker will need must fit now.
            let mut memory: Vec<u8> = Vec::new();
            if memory.try_reserve_exact(WORKER_MEMORY).is_err() {
                break;
            }
            kept_free.push(memory);
            let gate = &all_started;
            let started = thread::Builder::new().spawn_scoped(scope, move || {
                drop(gate.lock());
                work(worker)
            });
            let Ok(other) = started else { break };
            others.push(other);
        }
        drop(kept_free);
        drop(starting);
        let mut states = vec![work(0)];
        for other in others {
            match other.join() {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    })
}

/// Reads batches under the lock, and works on them outside.
fn take_in_turn(queue: &Mutex<(Stream, Walker)>, chunk: usize, mut each: impl FnMut(&Batch)) {
    let mut batch = Batch::new();
    loop {
        // Poisoned: another worker has panicked while reading, and its panic will be passed on.
        let Ok(mut guard) = queue.lock() else { return };
        let (stream, walker) = &mut *guard;
        if !stream.fill(walker, &mut batch, chunk) {
            return;
        }
        drop(guard);
        each(&batch);
    }
}

/// The chunks of a file and the walker that passes from one to the next.
struct Chain {
    file: Arc<File>,
    size: u64,
    chunk: usize,
    /// Offset of the first chunk.
    start: u64,
    /// The next chunk that nobody has claimed.
    unclaimed: AtomicU64,
    /// The chunk whose turn it is to walk.
    turn: AtomicU64,
    /// Here between two chunks. Its lock also guards changes of `turn`.
    baton: Mutex<Option<Walker>>,
    passed: Condvar,
    /// A worker has panicked.
    broken: AtomicBool,
}

/// Stops the other workers when the one holding it panics.
struct StopOthers<'a>(&'a Chain);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _guard = self.0.baton.lock();
            self.0.broken.store(true, Ordering::Relaxed);
            self.0.passed.notify_all();
        }
    }
}

/// One chunk in a worker's buffer.
struct Chunk {
    base: u64,
    limit: u64,
    /// Nothing was there to read although the file was longer when it was opened.
    short: bool,
    failure: Option<io::Error>,
}

impl Chain {
    fn new(file: Arc<File>, size: u64, chunk: usize, walker: Walker) -> Self {
        // Chunks start at multiples of their size, so that reads are aligned to pages.
        let start = walker.offset - walker.offset % chunk as u64;
        Self {
            file,
            size,
            chunk,
            start,
            unclaimed: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            baton: Mutex::new(Some(walker)),
            passed: Condvar::new(),
            broken: AtomicBool::new(false),
        }
    }

    /// How many chunks there are, but at least one.
    fn chunks(&self) -> usize {
        let chunks = self.size.saturating_sub(self.start).div_ceil(self.chunk as u64);
        usize::try_from(chunks).unwrap_or(usize::MAX).max(1)
    }

    fn into_walker(self) -> Walker {
        // Absent only after a panic, which has been passed on before this is reached.
        let baton = self.baton.into_inner().unwrap_or_else(PoisonError::into_inner);
        baton.expect("every worker passes the baton on")
    }

    fn work(&self, mut each: impl FnMut(&Batch)) {
        let _stop_others = StopOthers(self);
        let mut batch = Batch::new();
        loop {
            let number = self.unclaimed.fetch_add(1, Ordering::Relaxed);
            let base = self.start.saturating_add(number.saturating_mul(self.chunk as u64));
            if base >= self.size {
                return;
            }
            let limit = self.size.min(base.saturating_add(self.chunk as u64));
            let mut chunk = Chunk { base, limit, short: false, failure: None };
            batch.clear();
            self.read_up_to(&mut chunk, &mut batch, self.chunk + OVERLAP.min(self.chunk / 16));
            let Some(mut walker) = self.await_turn(number) else { return };
            let from = walker.offset;
            self.walk(&mut walker, &mut chunk, &mut batch);
            let ended = walker.ended;
            walker.progress.add(walker.offset.min(self.size).saturating_sub(from));
            self.pass_on(number, walker);
            if !batch.is_empty() {
                each(&batch);
            }
            if ended {
                return;
            }
        }
    }

    /// Reads until the batch holds `target` bytes from the chunk's start on, or the file ends.
    fn read_up_to(&self, chunk: &mut Chunk, batch: &mut Batch, target: usize) {
        let left = usize::try_from(self.size - chunk.base).unwrap_or(usize::MAX);
        let target = target.min(left);
        batch.reserve(target);
        while batch.filled < target {
            let place = &mut batch.buf[batch.filled..target];
            match self.file.read_at(place, chunk.base + batch.filled as u64) {
                Ok(0) => {
                    chunk.short = true;
                    return;
                }
                Ok(read) => batch.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    chunk.failure = Some(error);
                    return;
                }
            }
        }
    }

    /// Waits until the chunk before has been walked. None if there is no point in going on.
    fn await_turn(&self, number: u64) -> Option<Walker> {
        for _ in 0..SPINS {
            if self.turn.load(Ordering::Relaxed) == number {
                break;
            }
            std::hint::spin_loop();
        }
        let mut baton = self.baton.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.broken.load(Ordering::Relaxed) {
                return None;
            }
            if self.turn.load(Ordering::Relaxed) == number {
                return baton.take();
            }
            baton = self.passed.wait(baton).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pass_on(&self, number: u64, walker: Walker) {
        let mut baton = self.baton.lock().unwrap_or_else(PoisonError::into_inner);
        *baton = Some(walker);
        self.turn.store(number + 1, Ordering::Relaxed);
        drop(baton);
        self.passed.notify_all();
    }

    /// Indexes the records that start in the chunk, and reads on if the last one reaches beyond the buffer.
    fn walk(&self, walker: &mut Walker, chunk: &mut Chunk, batch: &mut Batch) {
        walker.begin_batch();
        batch.first_frame = walker.frames + 1;
        let was_ended = walker.ended;
        loop {
            let buf = &batch.buf[..batch.filled];
            let stopped = chunk.short || chunk.failure.is_some();
            let eof = stopped || chunk.base + batch.filled as u64 >= self.size;
            let window = Window { buf, base: chunk.base, limit: chunk.limit, eof };
            match walker.walk(window, &mut batch.entries) {
                Step::Need(target) => self.read_up_to(chunk, batch, target),
                Step::Limit | Step::Broken => break,
                Step::End => {
                    if !was_ended {
                        self.end(walker, chunk, batch.filled);
                    }
                    break;
                }
            }
        }
        batch.interfaces = Arc::clone(&walker.interfaces);
    }

    /// Adds why the file ended here, if it ended early.
    fn end(&self, walker: &mut Walker, chunk: &mut Chunk, filled: usize) {
        let end = chunk.base + filled as u64;
        if let Some(error) = chunk.failure.take() {
            walker.note(end, 0, Reason::Read(Arc::new(error)));
        } else if chunk.short {
            walker.note(end, 0, Reason::Shrunk { from: self.size, to: end });
        }
    }
}
