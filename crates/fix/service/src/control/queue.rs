//! The thread that answers: all connections at once, and waiting for none of them.
//!
//! # Contract
//!
//! * What is ready is read or written as far as it goes. Who says nothing, or does not read, costs a descriptor and nobody's
//!   time.
//! * There are [`MOST`] connections at a time. One more closes that which has been idle for longest, as does a descriptor that
//!   is missing; nothing of a connection that is read or written is idle. One that has been idle for
//!   so long that its own end has given up is closed as well.
//! * Answers that nobody has read yet take [`UNREAD`] bytes at most, or one of them alone.

use super::{ControlHandler, peer};
use crate::instance::PATIENCE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Connections at the same time.
pub const MOST: usize = 64;
/// Bytes of answers that are not read yet, of all connections.
const UNREAD: usize = 1 << 26;
/// Between a connection that could not be had and the next.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest question, bytes.
const QUESTION: usize = 1024;

pub struct RequestQueue<H> {
    listener: UnixListener,
    handler: Arc<H>,
    stop: UnixStream,
    /// Those who wait for the end.
    waiting: Arc<Mutex<Vec<UnixStream>>>,
    connections: Vec<Connection>,
}

struct Connection {
    stream: UnixStream,
    /// When something of it was read or written last.
    since: Instant,
    state: State,
}

enum State {
    Reading(Vec<u8>),
    /// The answer, how much of it is written, and whether it is the last.
    Answer {
        text: Vec<u8>,
        written: usize,
        is_last: bool,
    },
}

impl Connection {
    fn is_answered(&self) -> bool {
        matches!(self.state, State::Answer { .. })
    }

    fn unread(&self) -> usize {
        match &self.state {
            State::Reading(_) => 0,
            State::Answer { text, .. } => text.len(),
        }
    }
}

impl<H: ControlHandler> RequestQueue<H> {
    /// `listener` does not block. `stop` is written to when somebody asks for the end.
    pub fn new(
        listener: UnixListener,
        handler: Arc<H>,
        stop: UnixStream,
        waiting: Arc<Mutex<Vec<UnixStream>>>,
    ) -> RequestQueue<H> {
        RequestQueue { listener, handler, stop, waiting, connections: Vec::with_capacity(MOST) }
    }

    pub fn serve(mut self) {
        loop {
            let Some((has_new, ready)) = self.wait() else { return };
            let all = std::mem::take(&mut self.connections);
            for (connection, is_ready) in all.into_iter().zip(ready) {
                let kept = if is_ready { self.go_on(connection) } else { Some(connection) };
                self.connections.extend(kept.filter(|kept| kept.since.elapsed() < PATIENCE));
            }
            if has_new {
                self.accept();
            }
        }
    }

    /// Whether there are new connections, and which of the others have something; `None`: the socket was shut down.
    fn wait(&self) -> Option<(bool, Vec<bool>)> {
        let events = |connection: &Connection| {
            if connection.is_answered() { PollFlags::OUT } else { PollFlags::IN }
        };
        let listener = PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN);
        let others = self.connections.iter();
        let others = others.map(|one| PollFd::from_borrowed_fd(one.stream.as_fd(), events(one)));
        let mut sources: Vec<PollFd<'_>> = [listener].into_iter().chain(others).collect();
        let oldest = self.connections.iter().map(|one| one.since).min();
        let timeout = oldest.map(|since| {
            let left = (since + PATIENCE).saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Some((false, vec![false; self.connections.len()])),
            // Out of memory for the moment: it is tried what there is.
            Err(_) => {
                thread::sleep(PAUSE);
                return Some((true, vec![true; self.connections.len()]));
            }
        }
        // A socket that does not block says so here, and accept(2) that there is nobody.
        if sources.first().is_some_and(|listener| listener.revents().contains(PollFlags::HUP)) {
            return None;
        }
        let mut ready = sources.iter().map(|source| !source.revents().is_empty());
        Some((ready.next().unwrap_or_default(), ready.collect()))
    }

    /// Whether root is at the other end, or the user of this process: a folder or socket that somebody opened to others is no way
    /// in.
    fn may_ask(&self, stream: &UnixStream) -> bool {
        let own = rustix::process::geteuid().as_raw();
        peer(stream).is_some_and(|peer| peer.uid == 0 || peer.uid == own)
    }

    fn accept(&mut self) {
        // As many at a time as there can be, so that those that are there have their turn.
        for _ in 0..MOST {
            match self.listener.accept() {
                Ok((stream, _)) if !self.may_ask(&stream) => drop(stream),
                Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                    if self.connections.len() >= MOST {
                        self.close_idle(|_| true);
                    }
                    let state = State::Reading(Vec::new());
                    // The question is mostly there already.
                    let new = self.go_on(Connection { stream, since: Instant::now(), state });
                    self.connections.extend(new);
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    if !self.close_idle(|_| true) {
                        thread::sleep(PAUSE);
                        break;
                    }
                }
                // Somebody who went away.
                Err(_) => break,
            }
        }
    }

    /// Closes the connection that has been idle for longest; whether there was one such.
    fn close_idle(&mut self, is_such: impl Fn(&Connection) -> bool) -> bool {
        let all = self.connections.iter().enumerate().filter(|(_, connection)| is_such(connection));
        let longest = all.min_by_key(|(_, connection)| connection.since).map(|(number, _)| number);
        longest.map(|number| self.connections.swap_remove(number)).is_some()
    }

    /// Reads or writes what goes; `None`: it is over.
    fn go_on(&mut self, connection: Connection) -> Option<Connection> {
        if connection.is_answered() { self.write(connection) } else { self.read(connection) }
    }

    fn read(&mut self, mut connection: Connection) -> Option<Connection> {
        let State::Reading(question) = &mut connection.state else { return Some(connection) };
        let mut piece = [0; QUESTION];
        loop {
            match connection.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => question.extend(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(connection),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return None,
            }
            connection.since = Instant::now();
            if let Some(end) = question.iter().position(|byte| *byte == b'\n') {
                question.truncate(end);
                let question = String::from_utf8(std::mem::take(question)).ok()?;
                return self.answer(connection, &question);
            }
            if question.len() >= QUESTION {
                return None;
            }
        }
    }

    fn answer(&mut self, connection: Connection, question: &str) -> Option<Connection> {
        let stream = self.handler.adopt(question, connection.stream)?;
        let text = (self.handler.answer(question)? + "\n").into_bytes();
        let unread = |connections: &[Connection]| connections.iter().map(Connection::unread).sum::<usize>();
        while unread(&self.connections) + text.len() > UNREAD && self.close_idle(Connection::is_answered) {}
        let state = State::Answer { text, written: 0, is_last: question == "down" };
        self.write(Connection { stream, since: Instant::now(), state })
    }

    fn write(&mut self, mut connection: Connection) -> Option<Connection> {
        let State::Answer { text, written, is_last } = &mut connection.state else { return Some(connection) };
        while let Some(rest) = text.get(*written..).filter(|rest| !rest.is_empty()) {
            match connection.stream.write(rest) {
                Ok(0) => return None,
                Ok(count) => *written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(connection),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return None,
            }
            connection.since = Instant::now();
        }
        if *is_last {
            // The process that requested the end waits for it.
            if let Ok(mut waiting) = self.waiting.lock() {
                waiting.push(connection.stream);
            }
            // It ends already, where nobody listens.
            let _ = self.stop.write_all(&[0]);
        }
        None
    }
}

#[cfg(test)]
mod tests;
