//! Workers of a link beyond the first, each in a thread of its own.

use crate::datapath::{DataPath, PathError};
use service::event_loop::ready;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// The workers. When this is dropped they have ended, and their sockets are closed.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<JoinHandle<()>>,
    /// Workers end when this is closed.
    work: Option<UnixStream>,
    /// Readable when a worker cannot go on.
    bell: UnixStream,
    /// The other end, so that the bell is silent where there are no workers.
    _ring: UnixStream,
    failures: Receiver<PathError>,
}

/// What a worker reports when it cannot go on.
struct Report {
    ring: UnixStream,
    failures: Sender<PathError>,
}

impl Workers {
    /// Starts a thread for each.
    pub fn start<L: Send + 'static>(workers: Vec<(Box<dyn DataPath<L>>, L)>) -> io::Result<Workers> {
        let (work, end) = UnixStream::pair()?;
        let (bell, ring) = UnixStream::pair()?;
        let (sender, failures) = channel();
        let mut all =
            Workers { threads: Vec::new(), work: Some(work), bell, _ring: ring.try_clone()?, failures };
        for (number, (path, line)) in (1..).zip(workers) {
            let end = end.try_clone()?;
            let report = Report { ring: ring.try_clone()?, failures: sender.clone() };
            let name = format!("worker {number}");
            let thread =
                thread::Builder::new().name(name).spawn(move || work_on(path, &line, &end, report))?;
            all.threads.push(thread);
        }
        Ok(all)
    }

    /// What the worker failed with that rang.
    pub fn failure(&mut self) -> Result<(), PathError> {
        let mut byte = [0];
        // What was sent says why; who panicked has sent nothing.
        let _ = self.bell.read(&mut byte);
        Err(self.failures.try_recv().unwrap_or(PathError::Worker))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        drop(self.work.take());
        for thread in self.threads.drain(..) {
            // One that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

impl AsFd for Workers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Report {
    /// Also where the worker panicked.
    fn drop(&mut self) {
        let _ = self.ring.write_all(&[1]);
    }
}

fn work_on<L>(mut path: Box<dyn DataPath<L>>, line: &L, end: &UnixStream, report: Report) {
    path.begin();
    if let Err(error) = move_packets(&mut *path, line, end) {
        // Nobody listens any more when the link ends.
        let _ = report.failures.send(error);
    }
}

fn move_packets<L>(path: &mut dyn DataPath<L>, line: &L, end: &UnixStream) -> Result<(), PathError> {
    loop {
        if let Some(pause) = path.pause() {
            thread::sleep(pause);
        }
        let sources = [path.interface(), path.parent(), end.as_fd()].map(Some);
        let [from_interface, from_parent, ended] = ready(sources, None).map_err(PathError::Parent)?;
        if ended {
            return Ok(());
        }
        if from_interface {
            path.send_some(line)?;
        }
        if from_parent {
            path.receive_some(line)?;
        }
    }
}
